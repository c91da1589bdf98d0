//! `rota init`: from a table that nobody described to a federation that learns from it.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn rota(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command
        .current_dir(folder)
        .args(args)
        .env_remove("ROTA_DATA");
    command.output().unwrap()
}

/// Standard output of a command that succeeds.
fn good(folder: &Path, args: &[&str]) -> String {
    let output = rota(folder, args);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The error of a command that fails.
fn wrong(folder: &Path, args: &[&str]) -> String {
    let output = rota(folder, args);
    assert!(!output.status.success(), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Stays in five hospitals, like the table of 130 US hospitals: columns of text, codes, gaps,
/// an identifier, and a label that depends on two of the columns.
fn stays(rows: usize) -> String {
    let mut text = String::from(
        "encounter_id,hospital,race,gender,age,weight,admission_type_id,time_in_hospital,\
         diagnosis,insulin,payer,lactate,readmitted\n",
    );
    for row in 0..rows {
        // A sequence that looks random enough.
        let draw = |salt: usize, of: usize| ((row + 1) * (salt * 7919 + 104_729) / 97) % of;
        let insulin = ["No", "Up", "Down", "Steady"][draw(1, 4)];
        let days = 1 + draw(2, 14);
        let readmitted = match (insulin, days) {
            ("Up" | "Down", 5..) => "YES",
            _ if draw(3, 10) == 0 => "YES",
            _ => "NO",
        };
        writeln!(
            text,
            "{},{},{},{},[{}0-{}0),{},{},{days},{}.{},{insulin},{},{},{readmitted}",
            1_000_000 + row,
            ["north", "south", "east", "west", "centre"][draw(4, 5)],
            ["Caucasian", "AfricanAmerican", "?"][draw(5, 3)],
            ["Female", "Male"][draw(6, 2)],
            draw(7, 9),
            draw(7, 9) + 1,
            if row % 50 == 0 {
                ["70", "75", "80"][row % 3]
            } else {
                "?"
            },
            1 + draw(8, 6),
            250 + draw(9, 90),
            draw(10, 10),
            if row % 12 == 0 {
                "NULL"
            } else {
                ["MC", "HM"][draw(11, 2)]
            },
            // One hospital never measures it.
            match draw(4, 5) {
                1 => "?",
                _ => ["1.5", "2.5", "3.5"][draw(12, 3)],
            },
        )
        .unwrap();
    }
    text
}

#[test]
fn a_table_of_texts_becomes_a_federation_without_typed_columns() {
    let folder = folder("init-stays");
    fs::write(folder.join("stays.csv"), stays(2000)).unwrap();
    let found = good(
        &folder,
        &[
            "init",
            "stays.csv",
            "--target",
            "readmitted",
            "--silo-column",
            "hospital",
        ],
    );
    for said in [
        "2,000 rows of 5 silos",
        "to predict: readmitted, 2 classes, with their rows: ",
        "encounter_id",
        "an identifier",
        "98 % of the values are missing",
        " codes: ",
        "rota simulate scenario.toml",
    ] {
        assert!(found.contains(said), "{said}: {found}");
    }
    let run = good(
        &folder,
        &[
            "simulate",
            "scenario.toml",
            "--rounds",
            "4",
            "--json",
            "--quiet",
        ],
    );
    let summary: serde_json::Value = serde_json::from_str(&run).unwrap();
    let silos = summary["silos"].as_array().unwrap();
    assert_eq!(silos.len(), 5);
    let notes = summary["notes"].to_string();
    let absent =
        "columns with no value, which counts as average, in the training rows of a silo: lactate";
    assert!(notes.contains(absent), "{notes}");
    // The label depends on two of the columns: a model that reads them is better than chance.
    for silo in silos {
        let auc = silo["coalition"].as_f64().unwrap();
        assert!(auc > 0.65, "{}: {auc}", silo["name"]);
    }
    // A file that is there is not overwritten.
    let again = wrong(&folder, &["init", "stays.csv", "--silo-column", "hospital"]);
    assert!(again.contains("scenario.toml exists"), "{again}");
}

#[test]
fn a_compressed_or_semicolon_table_gives_the_same_result() {
    let folder = folder("init-same");
    let text = stays(600);
    fs::write(folder.join("plain.csv"), &text).unwrap();
    fs::write(folder.join("semicolons.csv"), text.replace(',', ";")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, text.as_bytes()).unwrap();
    fs::write(folder.join("packed.csv.gz"), packed.finish().unwrap()).unwrap();
    let results = ["plain.csv", "semicolons.csv", "packed.csv.gz"].map(|file| {
        let out = format!("{file}.toml");
        good(
            &folder,
            &[
                "init",
                file,
                "--target",
                "readmitted",
                "--silo-column",
                "hospital",
                "--out",
                &out,
            ],
        );
        let run = good(
            &folder,
            &[
                "simulate",
                &out,
                "--rounds",
                "2",
                "--json",
                "--quiet",
                "--no-references",
            ],
        );
        let summary: serde_json::Value = serde_json::from_str(&run).unwrap();
        summary["silos"][0]["model"].clone()
    });
    assert!(results[0].is_string());
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
}

#[test]
fn what_cannot_become_a_federation_is_refused_with_what_to_try() {
    let folder = folder("init-wrong");
    fs::write(folder.join("stays.csv"), stays(300)).unwrap();
    fs::write(folder.join("one.csv"), "x,y\n1,1\n2,1\n").unwrap();
    fs::write(folder.join("two.csv"), "x,z\n1,1\n2,1\n").unwrap();
    fs::write(folder.join("empty.csv"), "").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (
            &["stays.csv"],
            "say which column names it with --silo-column: \"hospital\"",
        ),
        (&["nothing.csv"], "cannot read nothing.csv"),
        (&["empty.csv"], "cannot read empty.csv: it is empty"),
        (
            &["stays.csv", "--silo-column", "hospitl"],
            "no column \"hospitl\"",
        ),
        (
            &["stays.csv", "--silo-column", "hospitl"],
            "did you mean \"hospital\"?",
        ),
        (
            &[
                "stays.csv",
                "--silo-column",
                "hospital",
                "--target",
                "encounter",
            ],
            "no column \"encounter\"",
        ),
        (
            &[
                "stays.csv",
                "--silo-column",
                "hospital",
                "--target",
                "diagnosis",
                "--positive",
                "1",
            ],
            "too many classes",
        ),
        (
            &[
                "stays.csv",
                "--silo-column",
                "hospital",
                "--positive",
                "yes",
            ],
            "no row has the value \"yes\" that --positive names; did you mean \"YES\"?",
        ),
        (&["one.csv", "two.csv"], "two.csv: there is no column \"y\""),
        (
            &["one.csv", "one.csv", "--target", "y"],
            "every row has the same value, so there is nothing to learn",
        ),
        (&[], "required arguments"),
    ];
    for (args, expected) in cases {
        let error = wrong(&folder, &[&["init"], *args].concat());
        assert!(error.contains(expected), "{args:?}: {error}");
        assert!(!folder.join("scenario.toml").exists(), "{args:?}");
    }
}

#[test]
fn a_model_that_was_kept_from_a_simulation_predicts() {
    let folder = folder("init-kept");
    fs::write(folder.join("stays.csv"), stays(600)).unwrap();
    let hospitals = ["--silo-column", "hospital", "--target", "readmitted"];
    good(&folder, &[&["init", "stays.csv"][..], &hospitals].concat());
    let keep = ["--keep", "kept", "--no-references", "--quiet"];
    good(
        &folder,
        &[&["simulate", "scenario.toml", "--rounds", "3"][..], &keep].concat(),
    );
    let index = fs::read_to_string(folder.join("kept/index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&index).unwrap();
    let exported = index["exported"].as_array().unwrap();
    assert_eq!(exported.len(), 5, "{index}");
    let file = format!("kept/{}", exported[0]["file"].as_str().unwrap());
    let shown = good(&folder, &["model", "show", "--model", &file]);
    assert!(shown.contains("a simulation"), "{shown}");
    // A column that the draft left out is none of the agreed schema.
    let ignored = "names = { ignore = ['encounter_id', 'hospital', 'weight'] }";
    fs::write(folder.join("names.toml"), ignored).unwrap();
    let rows = ["model", "predict", "stays.csv", "--names", "names.toml"];
    good(&folder, &[&rows[..], &["--model", &file]].concat());
    let predicted = fs::read_to_string(folder.join("predictions.csv")).unwrap();
    let yes = predicted.lines().filter(|line| line.starts_with("YES,"));
    assert_eq!(predicted.lines().count(), 601, "{predicted}");
    assert!((1..600).contains(&yes.count()), "{predicted}");
    // A model that members sent has no card, and the error names those that have.
    let raw = index["rounds"][2]["models"][0]["file"].as_str().unwrap();
    let raw = format!("kept/{raw}");
    let again = ["--model", &raw, "--out", "again.csv"];
    let error = wrong(&folder, &[&rows[..], &again].concat());
    assert!(error.contains("one of those in `exported/`"), "{error}");
}

#[test]
fn a_scenario_with_noise_is_drafted_so_that_it_runs() {
    let folder = folder("init-noise");
    fs::write(folder.join("stays.csv"), stays(900)).unwrap();
    let hospitals = ["--silo-column", "hospital", "--target", "readmitted"];
    let said = good(
        &folder,
        &[&["init", "stays.csv", "--epsilon", "2"][..], &hospitals].concat(),
    );
    assert!(
        said.contains("privacy: epsilon: for all 20 rounds together"),
        "{said}"
    );
    let text = fs::read_to_string(folder.join("scenario.toml")).unwrap();
    assert!(
        text.contains("keyed = true") && text.contains("middle"),
        "{text}"
    );
    let run = ["--json", "--quiet", "--no-references", "--rounds", "3"];
    let run = good(
        &folder,
        &[&["simulate", "scenario.toml", "--mesh", "direct"][..], &run].concat(),
    );
    assert!(run.contains("\"noise\""), "{run}");
}
