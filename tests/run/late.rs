//! An institution joins a federation that runs, as a person would: invited to the agreement in force, it
//! reads and signs that, its rows are tried before anybody admits it, and the members see so.

use super::amended::{Heard, changes, id, says};
use super::nodes::base_port;
use super::stays::{SCENARIO, patients};
use super::*;

/// The table of a hospital.
fn table(hospital: usize) -> String {
    let row = |[age, pulse, ward, outcome]: [usize; 4]| {
        let (ward, outcome) = (["general", "intensive"][ward], ["home", "died"][outcome]);
        format!("{age},{pulse},{ward},{outcome}\n")
    };
    let rows: String = patients(hospital).map(row).collect();
    format!("age,pulse,ward,outcome\n{rows}")
}

/// Folder, key file and public key of an institution.
fn institution(folder: &Path, name: &str, at: usize) -> (PathBuf, String, String) {
    let own = folder.join(name);
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("stays.csv"), table(at)).unwrap();
    let file = own.join("identity.key");
    let key = good(&["identity", "new", "--out", file.to_str().unwrap()]);
    let file = file.to_str().unwrap().to_owned();
    (own, file, key.trim().to_owned())
}

/// Runs `rota federation join`; exit code, output and errors.
fn join(invitation: &str, own: &Path, more: &[&str]) -> (i32, String, String) {
    let (key, out) = (own.join("identity.key"), own.join("node"));
    let all = ["federation", "join", invitation, "--yes", "--identity"];
    let all = [
        &all[..],
        &[key.to_str().unwrap(), "--out", out.to_str().unwrap()],
        more,
    ]
    .concat();
    let done = output(&all);
    let code = done.status.code().unwrap();
    (code, text(&done.stdout), text(&done.stderr))
}

/// Exit code and document of `rota check --offline`.
fn checked(config: &Path) -> (i32, String) {
    let found = output(&[
        "check",
        "--json",
        "--offline",
        "--config",
        config.to_str().unwrap(),
    ]);
    (found.status.code().unwrap(), text(&found.stdout))
}

#[test]
fn whoever_comes_late_consents_like_everybody_and_its_rows_are_tried_first() {
    let folder = nowhere("run-joins-late");
    fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let port = base_port();
    let address = |at: usize| format!("127.0.0.1:{}", usize::from(port) + at);
    let agreed = folder.join("federation.toml");
    let agreed = agreed.to_str().unwrap();
    let names = ["north", "south", "east", "west"];
    let founders: Vec<_> = (0..4)
        .map(|at| institution(&folder, names[at], at))
        .collect();
    let scenario = scenario.to_str().unwrap();
    good(&["federation", "new", "--scenario", scenario, "--out", agreed]);
    for (at, (_, _, key)) in founders.iter().enumerate() {
        let name = names[at];
        good(&[
            "federation",
            "add",
            name,
            key,
            &address(at),
            "--file",
            agreed,
        ]);
    }
    let invitation = good(&["federation", "invite", "--file", agreed]);
    let mut configs = Vec::new();
    for (own, ..) in &founders {
        let rows = own.join("stays.csv");
        let (code, _, said) = join(invitation.trim(), own, &["--data", rows.to_str().unwrap()]);
        assert_eq!(code, 0, "{said}");
        configs.push(own.join("node").join("silo.toml"));
    }
    let (own, _, key) = institution(&folder, "archive", 7);
    let config = own.join("node").join("silo.toml");
    configs.push(config.clone());
    // The same institution after its key was lost: the new key lies in another folder.
    let (again, _, new_key) = institution(&folder, "archive-again", 7);
    configs.push(again.join("node").join("silo.toml"));
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    nodes.until(0, "finished");
    // The agreement has changed since the first day.
    let first = founders[0].0.join("node").join("federation.toml");
    let longer = folder.join("longer.toml");
    let text_of = fs::read_to_string(&first).unwrap();
    fs::write(&longer, text_of.replace("rounds = 3", "rounds = 4")).unwrap();
    let said = says(&configs[0], &["change", longer.to_str().unwrap()]);
    let change = id(&said).to_owned();
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&configs[node], &["approve", &change]);
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        nodes.until(node, "finished");
    }

    let invite = |name: &str| {
        let config = configs[0].to_str().unwrap();
        good(&["federation", "invite", name, "--config", config])
    };
    let token = invite("archive");
    assert!(token.starts_with("rota-invite-2-"), "{token}");
    // A table that does not fit is found before anybody hears of it.
    let wrong = own.join("wrong.csv");
    fs::write(&wrong, table(7).replace("intensive", "ITS")).unwrap();
    let address = address(9);
    let about = ["--address", &address, "--rows", "60"];
    let with = |file: &Path| {
        let data = ["--data", file.to_str().unwrap()];
        let all = [&data[..], &about].concat();
        join(token.trim(), &own, &all)
    };
    let (code, said, why) = with(&wrong);
    assert_eq!(code, 1, "{said}\n{why}");
    assert!(why.contains("Nothing was signed"), "{why}");
    assert!(!said.contains("rota federation admit"), "{said}");
    assert!(!config.with_file_name("consent.toml").exists());
    let _ = fs::remove_file(&config);
    let (code, said, why) = with(&own.join("stays.csv"));
    assert_eq!(code, 0, "{said}\n{why}");
    for words in [
        "The agreement in force, after 1 change, with this institution in it",
        "a federation of 5",
        "signed as archive",
    ] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(words) || said.contains(&words.replace("The", "Its")),
            "{words}: {said}"
        );
    }
    let mut lines = said.lines().map(str::trim);
    let request = lines.find_map(|line| line.strip_prefix("rota federation admit "));
    let request = request.unwrap();
    nodes.nodes.start(4);
    nodes.until(4, "waits-for-admission");
    let said = says(&configs[0], &["admit", request]);
    let at = said.find("amendment ").unwrap();
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("archive has signed this agreement with itself in it")
            && words.contains("60 rows of it fit"),
        "{said}"
    );
    let admission = id(&said[at..]).to_owned();
    for node in 1..3 {
        while nodes.until(node, "amendment")["amendment"] != admission.as_str() {}
        says(&configs[node], &["approve", &admission]);
    }
    for node in 0..5 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 2);
    }
    // It has signed what is in force, and nothing is left to do.
    nodes.until(4, "finished");
    let (code, said) = checked(&config);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("archive signed the agreement in force"),
        "{said}"
    );
    // It approves like any other, and its model is in the rounds that follow.
    let in_force = configs[0].with_file_name("state").join("in-force.toml");
    let text_of = fs::read_to_string(in_force).unwrap();
    fs::write(&longer, text_of.replace("rounds = 4", "rounds = 6")).unwrap();
    let said = says(&configs[4], &["change", longer.to_str().unwrap()]);
    let change = id(&said).to_owned();
    for node in 0..4 {
        while nodes.until(node, "amendment")["amendment"] != change.as_str() {}
        says(&configs[node], &["approve", &change]);
    }
    for node in 0..5 {
        while nodes.until(node, "epoch")["epoch"] != 3 {}
        nodes.until(node, "finished");
    }
    let state = configs[0].with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let blocks = chain["blocks"].as_array().unwrap();
    let with = blocks.iter().filter(|block| {
        let included = block["included"].as_array().unwrap();
        included.contains(&"archive".into())
    });
    assert!(with.count() > 0, "{chain:#}");
    // The request is of the agreement as it was: a second use is refused.
    let here = ["--config", configs[1].to_str().unwrap(), "--yes"];
    let twice = output(&[&["federation", "admit", request][..], &here].concat());
    assert_eq!(twice.status.code(), Some(1));

    // Its key is lost: the same door, by the new key.
    nodes.nodes.terminate(4);
    assert_eq!(nodes.nodes.code(4), 0);
    let token = invite("archive");
    let data = again.join("stays.csv");
    let (code, said, why) = join(token.trim(), &again, &["--data", data.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}\n{why}");
    let rekey = format!("rota federation rekey archive {new_key} --lost");
    assert!(said.contains(&rekey), "{said}");
    assert_ne!(key, new_key);
    nodes.nodes.start(5);
    nodes.until(5, "waits-for-admission");
    let said = says(&configs[0], &["rekey", "archive", &new_key, "--lost"]);
    let rekeying = id(&said).to_owned();
    for node in 1..4 {
        while nodes.until(node, "amendment")["amendment"] != rekeying.as_str() {}
        says(&configs[node], &["approve", &rekeying]);
    }
    for node in [0, 1, 2, 3, 5] {
        while nodes.until(node, "epoch")["epoch"] != 4 {}
    }
    nodes.until(5, "finished");
    let (code, said) = checked(&configs[5]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("archive signed the agreement in force"),
        "{said}"
    );
    assert!(changes(&configs[5]).contains("no amendment is proposed"));
}
