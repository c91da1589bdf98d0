//! `rota compare` and `rota advise` from outside: tables, files, parts, errors.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::skipped;

fn rota(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

/// Standard output and standard error of a run that must succeed.
fn good(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = rota(folder, arguments);
    let texts =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", texts[1]);
    let [out, error] = texts;
    (out, error)
}

/// Exit code and standard error.
fn refused(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = rota(folder, arguments);
    (
        output.status.code().unwrap(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn example() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("examples/experiment.toml")
        .to_str()
        .unwrap()
        .to_owned()
}

/// The comparison that a folder holds, without what differs from run to run.
fn comparison(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("comparison.json")).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    forget_seconds(&mut value);
    value
}

/// Takes out all that a clock measured.
fn forget_seconds(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| name != "seconds");
            fields.values_mut().for_each(forget_seconds);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_seconds),
        _ => {}
    }
}

#[test]
fn parts_of_an_experiment_are_merged_into_what_one_run_gives() {
    let here = folder("compare-parts");
    let file = example();
    let (text, progress) = good(&here, &["compare", &file, "--quick"]);
    assert!(
        text.contains("== four hospitals ==")
            && text.contains("vs local (95 %)")
            && text.contains("what members would serve: mae"),
        "{text}"
    );
    assert!(
        text.contains("do not quote its numbers") && text.ends_with("comparison.html\n"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(
        progress.contains("12/12 ") && progress.contains(" left"),
        "{progress}"
    );
    let whole = here.join("rota-compare/patients-quick");
    let page = fs::read_to_string(whole.join("comparison.html")).unwrap();
    assert!(page.contains("What was tried") && !page.contains("http:"));
    let tables = fs::read_to_string(whole.join("comparison.md")).unwrap();
    assert!(tables.contains("| --- |") && tables.contains("**work and grouping**"));
    let csv = fs::read_to_string(whole.join("comparison.csv")).unwrap();
    assert!(csv.starts_with("variant,strategy,model,metric,"));
    assert!(
        csv.contains("\neight hospitals,coalitions,strategy,mae,members,,,1,")
            && csv.contains("\nfour hospitals,one model,served,mae,members,,,1,"),
        "{csv}"
    );

    for part in ["1/2", "2/2"] {
        let out = format!("part-{}", &part[..1]);
        good(
            &here,
            &[
                "compare", &file, "--quick", "--quiet", "--shard", part, "--out", &out,
            ],
        );
    }
    let half = comparison(&here.join("part-1"));
    assert_eq!(half["missing"].as_array().unwrap().len(), 6);
    good(
        &here,
        &["compare", "merge", "part-1", "part-2", "--out", "both"],
    );
    assert_eq!(comparison(&here.join("both")), comparison(&whole));

    // A folder with results is not overwritten, and is continued when that is asked for.
    let (code, error) = refused(&here, &["compare", &file, "--quick"]);
    assert!(code == 2 && error.contains("--resume"), "{error}");
    let (_, progress) = good(&here, &["compare", &file, "--quick", "--resume"]);
    assert_eq!(progress, "");
}

/// The text of a link to a CSV of this name on a page, as it would be saved.
fn saved(page: &str, name: &str) -> String {
    let end = format!("\" download=\"{name}.csv\"");
    let (before, _) = page.split_once(&end).unwrap();
    let link = before
        .rsplit("data:text/csv;charset=utf-8,")
        .next()
        .unwrap();
    let mut bytes = Vec::new();
    let mut rest = link.bytes();
    while let Some(byte) = rest.next() {
        let hexadecimal = |byte: Option<u8>| char::from(byte.unwrap()).to_digit(16).unwrap() as u8;
        bytes.push(match byte {
            b'%' => 16 * hexadecimal(rest.next()) + hexadecimal(rest.next()),
            plain => plain,
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn the_page_has_every_learning_curve_over_rounds_bytes_and_time() {
    let here = folder("compare-courses");
    let file = example();
    good(
        &here,
        &["compare", &file, "--quick", "--quiet", "--out", "all"],
    );
    let page = fs::read_to_string(here.join("all/comparison.html")).unwrap();
    let text = fs::read_to_string(here.join("all/comparison.json")).unwrap();
    let whole: Value = serde_json::from_str(&text).unwrap();
    let variant = &whole["variants"][0];
    assert_eq!(variant["name"], "eight hospitals");
    for (axis, key, unit) in [
        ("round", "round", 1.0),
        ("megabytes", "bytes", 1e6),
        ("seconds", "seconds", 1.0),
    ] {
        // The drawn values are those that were measured: of all that have a curve, and nobody else.
        let mut expected = Vec::new();
        for row in variant["strategies"].as_array().unwrap() {
            let course = row["curve"].as_array().unwrap();
            if course.len() < 2 {
                continue;
            }
            for point in course {
                let at = point[key].as_f64().unwrap() / unit;
                let value = point["inside"].as_f64().unwrap();
                let label = row["label"].as_str().unwrap();
                expected.push(format!("{label},{at},{value}"));
            }
        }
        let of = ["local", "one model", "coalitions"];
        assert!(
            of.iter()
                .all(|label| expected.iter().any(|line| line.starts_with(label)))
        );
        let csv = saved(&page, &format!("patients-eight hospitals-by-{axis}"));
        let mut lines = csv.lines();
        assert_eq!(lines.next().unwrap(), format!("strategy,{axis},value"));
        assert_eq!(lines.collect::<Vec<_>>(), expected, "{axis}");
        // Further along the axis from point to point.
        for pair in expected.windows(2) {
            let of = |line: &str| -> (String, f64) {
                let mut cells = line.split(',');
                (
                    cells.next().unwrap().to_owned(),
                    cells.next().unwrap().parse().unwrap(),
                )
            };
            let (before, after) = (of(&pair[0]), of(&pair[1]));
            assert!(
                before.0 != after.0 || before.1 < after.1,
                "{axis}: {pair:?}"
            );
        }
    }
}

#[test]
fn advice_ends_in_a_paragraph() {
    let here = folder("compare-advice");
    let (text, _) = good(
        &here,
        &["advise", "diabetes", "--minutes", "0.2", "--quiet"],
    );
    let advice = text
        .split("\nAdvice\n")
        .nth(1)
        .unwrap()
        .replace("\n    ", " ");
    let known = [
        "Learn together with ",
        "So far, learn together with ",
        "Stay alone, or get more rows: ",
        "Not beyond chance: cannot tell; until then stay alone, ",
        "Not known yet: ",
    ];
    assert!(
        known
            .iter()
            .any(|start| advice.trim_start().starts_with(start)),
        "{advice}"
    );
    assert!(advice.contains("The advice is based on "), "{advice}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat.contains("were trained without messages (mesh direct)"),
        "{text}"
    );
}

/// FedAvg with own intercepts beats hospitals that train alone in the same steps, and not the models that they tune.
#[test]
fn hospitals_that_gain_nothing_are_not_told_to_join() {
    let Some(data) = std::env::var_os("ROTA_DATA") else {
        return skipped::skipped("needs the data sets, and ROTA_DATA is not set");
    };
    let data = data.to_str().expect("a path in Unicode");
    let advise = "advise heart --minutes 0.5 --quiet --data".split(' ');
    let arguments: Vec<&str> = advise.chain([data]).collect();
    let text = good(&folder("compare-heart"), &arguments).0;
    let advice = text.split("\nAdvice\n").nth(1).unwrap();
    let advice = advice.replace("\n    ", " ");
    let alone = ["until then stay alone", "Not known yet: ", "Stay alone"];
    assert!(alone.iter().any(|one| advice.contains(one)), "{advice}");
    assert!(!advice.contains("earn together with"), "{advice}");
}

#[test]
fn a_comparison_states_whether_it_trained_over_a_network() {
    let here = folder("compare-meshes");
    let scenario = "[scenario]\nrounds = 2\nsilos = 4\n\
                    [scenario.task.table]\nmodel = { linear = {} }\n\
                    data = { synthetic = { groups = 1, features = 2, rows = [30, 30] } }\n";
    let ways = "[training]\nepochs = 1\nbatch = 0\noptimiser = { name = 'sgd', rate = 0.1 }\n\
                [[strategy]]\nname = 'fedavg'\n[[strategy]]\nname = 'local'\n";
    let kill =
        "[[scenario.fault]]\nkill = 'lead'\nphase = 'voting'\nround = 2\nrestart-after = '8s'\n";
    let slow = "[[variant]]\nname = 'calm'\n[[variant]]\nname = 'slow'\n\
                set = { network = { latency = ['50ms', '90ms'] } }\n";
    for (name, more, said) in [
        (
            "calm",
            "",
            "were trained without messages (mesh direct), which gives bit by bit the same models",
        ),
        (
            "killed",
            kill,
            "were trained over the simulated network (mesh virtual).",
        ),
        (
            "slow",
            slow,
            "over the simulated network where the experiment has faults, links or costs, otherwise without \
             messages (mesh direct)",
        ),
    ] {
        let text = format!("name = '{name}'\nseeds = 1\n{scenario}{more}{ways}");
        fs::write(here.join("few.toml"), text).unwrap();
        let arguments = ["compare", "few.toml", "--quiet", "--out", name];
        let (text, _) = good(&here, &arguments);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(said), "{name}: {text}");
        let page = fs::read_to_string(here.join(name).join("comparison.html")).unwrap();
        assert!(page.contains(said), "{name}");
    }
}

#[test]
fn advice_ends_when_its_time_ended_and_states_what_is_missing() {
    let here = folder("compare-no-time");
    let began = std::time::Instant::now();
    // Every run of 300 silos takes longer than all the time there is.
    let scenario = "name = 'many'\nsilos = 300\nrounds = 300\n\
                    [strategy]\nname = 'fedavg'\ntraining = { epochs = 1, batch = 16, \
                    optimiser = { name = 'sgd', rate = 0.02 } }\n\
                    [task.table]\ndata = { synthetic = {} }\nmodel = { linear = {} }\n";
    fs::write(here.join("many.toml"), scenario).unwrap();
    let (text, _) = good(
        &here,
        &["advise", "many.toml", "--minutes", "0.02", "--quiet"],
    );
    let said = text.replace("\n    ", " ");
    assert!(
        said.contains("Not known yet: 0 of 3 seeds that would confirm a gain are complete")
            && said.contains("The advice is based on no complete seed")
            && said.contains("runs not done yet"),
        "{text}"
    );
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

/// Four silos of one model.
const ALIKE: &str = "name = 'alike'\nrounds = 8\nsilos = 4\n\
                     [task.table]\nmodel = 'logistic'\n\
                     data = { synthetic = { target = 'logistic', groups = 1, features = 2, rows = [30, 30] } }\n\
                     [strategy]\nname = 'fedavg'\nweight = 'equal'\n\
                     training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.5 } }\n";

#[test]
fn noise_is_compared_with_local_models_with_both_bounds() {
    let here = folder("compare-noise");
    fs::write(here.join("alike.toml"), ALIKE).unwrap();
    let arguments = [
        "compare",
        "alike.toml",
        "--epsilon",
        "1,50",
        "--seeds",
        "2",
        "--quiet",
    ];
    let (text, _) = good(&here, &arguments);
    for part in [
        "own-fit",
        "without noise",
        "steps, epsilon 1 ",
        "once, epsilon 1 ",
        "vs own-fit (95 %)",
        "epsilon_alone",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let kept = comparison(&here.join("rota-compare/alike"));
    let rows = kept["variants"][0]["strategies"].as_array().unwrap();
    let noised: Vec<_> = rows.iter().filter(|row| row["noise"].is_object()).collect();
    // Two releases at two bounds, as they are, with intercepts of the silos' own, and shrunken to by each silo.
    assert_eq!(noised.len(), 12);
    for row in noised {
        let [epsilon, alone] = ["epsilon", "epsilon_alone"].map(|key| row["noise"][key].as_f64());
        assert!(alone.unwrap() > epsilon.unwrap());
    }
    let csv = fs::read_to_string(here.join("rota-compare/alike/comparison.csv")).unwrap();
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",epsilon,epsilon_alone,delta")
    );
}

#[test]
fn advice_on_noise_states_whether_to_join_and_what_would_help() {
    let here = folder("compare-worth");
    fs::write(here.join("alike.toml"), ALIKE).unwrap();
    // With so much noise there is nothing to learn.
    let arguments = [
        "advise",
        "alike.toml",
        "--epsilon",
        "0.01",
        "--minutes",
        "0.5",
    ];
    let (text, said) = good(&here, &arguments);
    assert!(said.contains("this takes at most 0.5 minutes"), "{said}");
    let (table, advice) = text.split_once("\nAdvice\n").unwrap();
    let advice = advice.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = "Do not join: with epsilon 0.010000 (0.0";
    assert_eq!(advice.matches(start).count(), 2, "{advice}");
    assert!(advice.starts_with(start), "{advice}");
    // Both kinds of release are advised on, each by the name of its row.
    for row in ["steps, epsilon 0.01", "once, epsilon 0.01"] {
        assert!(table.contains(row), "{row}: {table}");
        // Worse, or not clearly better: the noise decides.
        let of = |before: &str| {
            let verdicts = ["significantly worse than", "not significantly better than"];
            let each = verdicts.map(|is| advice.matches(&format!("{before}{is}")).count());
            each.iter().sum::<usize>()
        };
        assert_eq!(of(&format!(" ({row}) is ")), 1, "{row}: {advice}");
        let own = format!("({row}, own intercept): this model is ");
        assert_eq!(of(&own), 1, "{row}: {advice}");
    }
    for part in [
        "if all others collude), delta 1e-5",
        "the whole interval would have to be above 0",
        "times the epsilon",
        "silos",
        "rows at every silo",
        "The advice is based on ",
    ] {
        assert!(advice.contains(part), "{part}: {advice}");
    }
}

#[test]
fn rows_of_files_are_refused_where_their_source_has_a_ledger() {
    let here = folder("compare-ledger");
    for silo in 0..4 {
        let rows = (0..40).map(|row| {
            let (age, ill) = ((17 * row + silo) % 70, u8::from(row % 3 == 0));
            format!("0.{age:02},{ill}\n")
        });
        let text = format!("age,ill\n{}", rows.collect::<String>());
        fs::write(here.join(format!("{silo}.csv")), text).unwrap();
    }
    let files = (0..4).map(|silo| format!("{{ path = '{silo}.csv' }}"));
    let files = files.collect::<Vec<_>>().join(", ");
    let scenario = ALIKE
        .replace("silos = 4\n", "")
        .replace("[task.table]\n", "[task.table]\nstandardise = 'none'\n")
        .replace(
            "data = { synthetic = { target = 'logistic', groups = 1, features = 2, rows = [30, 30] } }",
            &format!("data = {{ rows = {{ files = [{files}], columns = {{ target = 'ill', positive = '= 1' }} }} }}"),
        );
    fs::write(here.join("own.toml"), scenario).unwrap();
    let silo = "federation = 'federation.toml'\nidentity = 'node.key'\nstate = 'state'\nlisten = []\n\
                [policy]\nledger = 'patients.ledger'\n";
    fs::write(here.join("node.toml"), silo).unwrap();
    let compare = [
        "compare",
        "own.toml",
        "--epsilon",
        "1",
        "--seeds",
        "1",
        "--quiet",
        "--json",
    ];
    let advise = [
        "advise",
        "own.toml",
        "--epsilon",
        "1",
        "--minutes",
        "0.05",
        "--quiet",
    ];
    // The ledger is named, and not made yet.
    good(&here, &compare);
    good(&here, &["ledger", "new", "patients", "--unit", "row"]);
    for refused_now in [&compare[..], &advise[..]] {
        let (code, why) = refused(&here, refused_now);
        assert_eq!(code, 2, "{why}");
        assert!(
            why.contains("own.toml reads rows of files") && why.contains("patients.ledger"),
            "{why}"
        );
    }
    good(&here, &[&compare[..], &["--public-rows"]].concat());
    // Without noise nothing is promised that the looking could break.
    good(
        &here,
        &["compare", "own.toml", "--seeds", "1", "--quiet", "--json"],
    );
}

#[test]
fn a_column_that_leaks_the_target_is_named_before_the_tables() {
    let here = folder("compare-leak");
    for silo in 0..3 {
        let rows = (0..60).map(|row| {
            let (age, died) = (20 + (17 * row + silo) % 70, u8::from(row % 5 < 2));
            format!("{age},{died},{died}\n")
        });
        let text = format!("age,discharge,died\n{}", rows.collect::<String>());
        fs::write(here.join(format!("{silo}.csv")), text).unwrap();
    }
    let files = ["init", "0.csv", "1.csv", "2.csv", "--out", "s.toml"];
    good(&here, &files);
    let said = "note: \"discharge\" alone gives AUC 1.000: is it known before the outcome?";
    let compared = good(&here, &["compare", "s.toml", "--seeds", "1"]).0;
    let advised = good(&here, &["advise", "s.toml", "--minutes", "0.2", "--quiet"]).0;
    for text in [compared, advised] {
        let table = text.find("vs own-fit").or(text.find("vs local"));
        assert!(text.contains(said) && text.find(said) < table, "{text}");
    }
    let page = fs::read_to_string(here.join("rota-compare/s/comparison.html")).unwrap();
    assert!(page.contains("alone gives AUC 1.000"));
    // The command is the one that was typed.
    assert!(page.contains(">rota compare s.toml --seeds 1</pre>"));
}

#[test]
#[cfg(unix)]
fn an_interrupted_comparison_names_the_command_that_resumes() {
    let here = folder("compare-interrupted");
    let mut run = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["compare", "diabetes", "--seeds", "500", "--out", "kept"])
        .current_dir(&here)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stderr.take().unwrap()).lines();
    // Something is done, so the signal is listened to.
    let first = lines.next().unwrap().unwrap();
    let signal = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(signal.unwrap().success());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(run.wait().unwrap().code(), Some(130), "{first} {rest:?}");
    let said = rest.last().unwrap();
    assert!(
        said.ends_with("`rota compare diabetes --seeds 500 --out kept --resume` measures the rest"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_named_before_anything_runs() {
    let here = folder("compare-wrong");
    for (arguments, code, parts) in [
        (
            &["compare", "hart"][..],
            2,
            &["hart", "did you mean \"heart\""][..],
        ),
        (
            &["compare", "heart", "--strategies", "tlf"],
            2,
            &["--strategies", "tlf"],
        ),
        (&["compare", "heart", "--quick"], 2, &["heart_disease"]),
        (&["compare", "heart", "--shard", "3/2"], 2, &["such as 2/8"]),
        (
            &["compare", "merge", "nowhere"],
            1,
            &["nowhere/experiment.json"],
        ),
        (&["compare"], 2, &["Usage"]),
    ] {
        let (got, error) = refused(&here, arguments);
        assert_eq!(got, code, "{arguments:?}: {error}");
        for part in parts {
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn a_strategy_that_diverges_is_named_and_the_exit_code_is_1() {
    let here = folder("compare-wild");
    let text = fs::read_to_string(example()).unwrap();
    let wild = text.replace("[0.01, 0.003]", "[1e30]");
    assert_ne!(wild, text);
    fs::write(here.join("wild.toml"), wild).unwrap();
    let output = rota(
        &here,
        &[
            "compare",
            "wild.toml",
            "--quick",
            "--quiet",
            "--strategies",
            "one model,constant",
        ],
    );
    let (out, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(1), "{out}{error}");
    assert!(
        out.contains("What went wrong") && out.contains("one model failed in 1 seed"),
        "{out}"
    );
    assert!(error.contains("2 runs of 4"), "{error}");
}
