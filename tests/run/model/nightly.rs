//! Predictions for new rows where the node's key and state are not, and the model in a backup.

use std::fs;

use serde_json::Value;

use super::hospitals::{OUTCOME, config, rows, scenario};
use super::*;

/// One row of five does not fit.
const NEW: &str = "Nr,Station,age,pulse,weight
a,general,34,70,80
b,attic,81,110,62
c,,55,,70
d,children,30,80,
e,ITS,60,90,70
";

#[test]
fn exported_files_predict_new_rows_without_key_and_state() {
    let scenario = scenario(
        "'logistic'",
        "name = 'fedavg'",
        OUTCOME,
        "metric = 'roc-auc'\nsplit = { validation = 0.2, test = 0.3 }",
    );
    let hospitals = TestHospitals::new("model-nightly", &scenario);
    // Enough rows for a threshold of its own, under its own names.
    let own = rows(0)
        .replace("patient,", "Nr,")
        .replace(",ward,", ",Station,");
    let (head, body) = own.split_once('\n').unwrap();
    let own = format!("{head}\n{}", body.repeat(7).replace(",intensive,", ",ITS,"));
    fs::write(hospitals.path("north/rows.csv"), own).unwrap();
    let silo = fs::read_to_string(&hospitals.configs[0]).unwrap();
    let names = "columns = { ward = 'Station' }\ncodes = { ward = { ITS = 'intensive' } }";
    let silo = silo.replace("'patient'", "'Nr'");
    let silo = silo.replace(
        "[[peer]]\nname = 'south'",
        &format!("{names}\n[[peer]]\nname = 'south'"),
    );
    fs::write(&hospitals.configs[0], silo).unwrap();
    TestHospitals::run(&hospitals.configs);
    let north = config(&hospitals.configs[0]);
    let model = hospitals.path("m.safetensors");
    let names = hospitals.path("names.toml");
    good(&[
        "model", "export", "--config", north, "--out", &model, "--names", &names,
    ]);
    let backup = hospitals.path("b.tar");
    let said = good(&["backup", &backup, "--config", north]);
    assert!(said.contains("its personal state, its model"), "{said}");

    // Nothing of the node is there any more.
    fs::rename(hospitals.path("north"), hospitals.path("gone")).unwrap();
    let new = hospitals.path("new.csv");
    fs::write(&new, NEW).unwrap();
    let out = hospitals.path("p.csv");
    let predict = |model: &str, more: &[&str]| {
        let arguments = [
            "model", "predict", &new, "--model", model, "--names", &names, "--keep", "Nr",
            "--force", "--out", &out,
        ];
        output(&[&arguments[..], more].concat())
    };
    let refused = predict(&model, &[]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("line 3: column \"Station\" holds \"attic\""),
        "{said}"
    );
    assert!(!fs::exists(&out).unwrap(), "nothing is written");
    let skipped = predict(&model, &["--skip-bad-rows"]);
    let said = text(&skipped.stderr);
    assert_eq!(skipped.status.code(), Some(4), "{said}");
    for part in [
        "skipped: line 3: column \"Station\" holds \"attic\", but the agreed levels are",
        "1 row does not fit and has no prediction",
    ] {
        assert!(said.contains(part), "{said}");
    }
    let found = fs::read_to_string(&out).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 6, "{found}");
    for (line, begins) in [
        (1, "a,"),
        (2, "b,,,,\"line 3: "),
        (4, "d,,,,weight"),
        (5, "e,"),
    ] {
        assert!(lines[line].starts_with(begins), "{begins}: {found}");
    }

    // A file that fits exits with 0.
    fs::write(&new, NEW.replace("attic", "general")).unwrap();
    let done = predict(&model, &["--skip-bad-rows"]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    let by_export = fs::read_to_string(&out).unwrap();

    // The threshold that was chosen on own rows is in the card, and in what is said.
    let card = good(&["model", "show", "--json", "--model", &model]);
    let card: Value = serde_json::from_str(&card).unwrap();
    let own = &card["threshold"];
    assert_eq!(own["class"], "died", "{card}");
    let value = own["value"].as_f64().unwrap();
    assert!(0.0 < value && value < 1.0);
    assert!(own["chosen_on"]["positives"].as_u64() >= Some(10), "{own}");
    assert!(own["held_out"]["sensitivity"].is_number(), "{own}");
    let done = predict(&model, &["--threshold", "own"]);
    let said = text(&done.stdout)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let words = format!("classes: the threshold {value:.3} for died has the largest sum");
    assert!(
        said.contains(&words) && said.contains("validation rows of north"),
        "{said}"
    );
    let classes = |more: &[&str]| {
        assert_eq!(predict(&model, more).status.code(), Some(0));
        let found = fs::read_to_string(&out).unwrap();
        let class = |line: &str| line.split(',').nth(1).unwrap().to_owned();
        let classes: Vec<String> = found.lines().skip(1).map(class).collect();
        classes
    };
    assert_eq!(
        classes(&["--threshold", "0"]),
        ["died", "died", "died", "", "died"]
    );
    assert_eq!(
        classes(&["--threshold", "1"]),
        ["home", "home", "home", "", "home"]
    );
    let probability = |line: &str| line.split(',').nth(3).unwrap().parse::<f64>().ok();
    let expected: Vec<&str> = by_export
        .lines()
        .skip(1)
        .map(|line| match probability(line) {
            None => "",
            Some(died) if died >= value => "died",
            Some(_) => "home",
        })
        .collect();
    assert_eq!(classes(&["--threshold", "own"]), expected);

    // The model in a backup is the same, and needs no node either.
    let restored = nowhere("model-nightly-restored").join("north");
    good(&[
        "restore",
        &backup,
        "--outside",
        "--out",
        restored.to_str().unwrap(),
    ]);
    let from_backup = restored.join("model.safetensors");
    let done = predict(from_backup.to_str().unwrap(), &[]);
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert_eq!(fs::read_to_string(&out).unwrap(), by_export);
}
