//! Every file of a state folder and of an export, with one bit flipped, cut, empty and gone: a command answers as
//! before, or says in a sentence which file is damaged and what to do. It never gives another answer.

use std::fs;
use std::path::{Path, PathBuf};

use super::hospitals::{OUTCOME, config, scenario};
use super::taking_out::ROWS;
use super::*;

/// Answer of a command: its exit code, its output with the file that it wrote, and its errors.
#[derive(Debug, PartialEq)]
struct CommandAnswer {
    code: Option<i32>,
    out: String,
    said: String,
}

/// Runs a command, which may write the file `written`.
fn answer(arguments: &[&str], written: &Path) -> CommandAnswer {
    let _ = fs::remove_file(written);
    let done = output(arguments);
    let written = fs::read_to_string(written).unwrap_or_default();
    // The time of the card is that of the command.
    let dated = |line: &&str| !line.contains("\"created\"");
    let printed = text(&done.stdout);
    let printed: Vec<&str> = printed.lines().filter(dated).collect();
    CommandAnswer {
        code: done.status.code(),
        out: printed.join("\n") + &written,
        said: text(&done.stderr),
    }
}

/// All regular files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            all.extend(files(&path));
        } else if kind.is_file() {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, &target).unwrap();
    }
}

/// Returns what becomes of the bytes of a file, each by its name; `None` for a file that is gone.
fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let mut all = vec![("gone".to_owned(), None)];
    if bytes.is_empty() {
        return all;
    }
    all.push(("empty".into(), Some(Vec::new())));
    all.push(("cut".into(), Some(bytes[..bytes.len() / 2].to_vec())));
    // The byte of a journal that says which of two states is the newest, and others everywhere.
    let places = (0..6).map(|part| part * (bytes.len() - 1) / 5);
    for at in places.chain([9]).filter(|at| *at < bytes.len()) {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1;
        all.push((format!("bit of byte {at}"), Some(flipped)));
    }
    all
}

/// Phrases by which an answer states that it goes without a file: a model that is not kept any more, say, is no error.
const SAYS: [&str; 6] = [
    "is not listed",
    "is gone",
    "not here",
    "\"here\": false",
    "there is no journal beside it",
    "members have no names here",
];

/// Damages every file of a folder in every way, and compares the answers of commands.
fn walk(folder: &Path, written: &Path, commands: &[Vec<&str>]) {
    let ask = || -> Vec<CommandAnswer> {
        let asked = commands.iter().map(|command| answer(command, written));
        asked.collect()
    };
    let before = ask();
    for (command, answer) in commands.iter().zip(&before) {
        assert_eq!(answer.code, Some(0), "{command:?}: {}", answer.said);
    }
    let mut wrong = Vec::new();
    for file in files(folder) {
        let name = file.file_name().unwrap().to_str().unwrap();
        let whole = fs::read(&file).unwrap();
        for (how, bytes) in damages(&whole) {
            match bytes {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            for ((command, before), after) in commands.iter().zip(&before).zip(ask()) {
                // An error is a sentence with the file, or with its folder where that is all that is known.
                let of = folder.to_str().unwrap();
                let refuses = after.code != Some(0)
                    && (after.said.contains(name) || after.said.contains(of))
                    && after.said.lines().count() == 1;
                let says = |what: &str| after.out.contains(what) || after.said.contains(what);
                let goes = after.code == Some(0);
                // `verify` computes what it has, and says what that is.
                let verified = how == "gone" && says("computed again");
                let same = after.out == before.out || SAYS.iter().any(|what| says(what));
                let same = same || verified;
                if !(refuses || goes && same) {
                    wrong.push(format!("{name} ({how}): {command:?}: {after:?}"));
                }
            }
        }
        fs::write(&file, whole).unwrap();
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_damaged_file_is_named_and_never_another_answer() {
    let task = scenario("'logistic'", "name = 'fedavg'", OUTCOME, "");
    let hospitals = TestHospitals::new("model-damaged", &task);
    TestHospitals::run(&hospitals.configs);
    let copied = hospitals.folder.join("copied");
    copy(&hospitals.folder.join("north"), &copied);
    let (state, own) = (copied.join("state"), copied.join("node.toml"));
    let _ = fs::remove_file(state.join("lock"));
    let (state_text, own) = (state.to_str().unwrap(), config(&own));
    let rows = hospitals.path("rows.csv");
    fs::write(&rows, ROWS).unwrap();
    let out = hospitals.path("predicted.csv");
    let written = Path::new(&out);
    walk(
        &state,
        written,
        &[
            vec!["model", "predict", &rows, "--config", own, "--out", &out],
            vec!["model", "show", "--json", "--config", own],
            vec!["model", "list", "--json", "--config", own],
            vec!["chain", "--json", "--state", state_text],
            vec!["verify", "--state", state_text],
            vec!["audit", "--state", state_text],
        ],
    );

    // The exported model, and its names.
    let exported = hospitals.folder.join("exported");
    fs::create_dir_all(&exported).unwrap();
    let model = exported.join("m.safetensors");
    let card = exported.join("m.card.json");
    let (model, card) = (model.to_str().unwrap(), card.to_str().unwrap());
    let names = hospitals.path("names.toml");
    good(&[
        "model", "export", "--config", own, "--out", model, "--names", &names,
    ]);
    walk(
        &exported,
        written,
        &[
            vec![
                "model", "predict", &rows, "--model", model, "--names", &names, "--out", &out,
            ],
            vec!["model", "show", "--json", "--model", card],
        ],
    );

    // The remedy in the error of a served model, and what happens then.
    let predict = |more: &[&str]| {
        let command = [
            &["model", "predict", &rows, "--config", own, "--out", &out],
            more,
        ];
        answer(&command.concat(), written)
    };
    let before = predict(&[]);
    fs::remove_file(state.join("served.safetensors")).unwrap();
    let refused = predict(&[]);
    assert!(refused.said.contains("--instead"), "{refused:?}");
    let instead = predict(&["--instead"]);
    assert!(
        instead.out.contains("in place of the one that it serves"),
        "{instead:?}"
    );
    fs::remove_file(state.join("served.json")).unwrap();
    let refused = predict(&[]);
    assert!(
        refused.said.contains("after round 3, the last one"),
        "{refused:?}"
    );
    assert_eq!(predict(&["--instead"]).code, Some(0));

    // The node writes and fetches again what is damaged.
    let north = hospitals.folder.join("north/state");
    for file in files(&north.join("blobs")) {
        fs::write(file, "").unwrap();
    }
    TestHospitals::run(&hospitals.configs);
    for file in ["served.json", "served.safetensors", "preparation.json"] {
        let mut bytes = fs::read(north.join(file)).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(north.join(file), bytes).unwrap();
    }
    TestHospitals::run(&hospitals.configs);
    let own = config(&hospitals.configs[0]);
    let command = ["model", "predict", &rows, "--config", own, "--out", &out];
    assert_eq!(answer(&command, written), before);
}
