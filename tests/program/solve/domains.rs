//! `rota solve domains`.

use std::fs;

use serde_json::json;

use crate::nodes::good;
use crate::solve::{SolveFiles, close, keys, printed, refused, solved};

const MODELS: &str = "0,0\n5,5\n0.1,0\n5,5.2\n0,0.1\n";

#[test]
fn models_that_are_near_each_other_share_a_domain() {
    let files = SolveFiles::new();
    let models = files.put("models.csv", MODELS);
    let found = solved(&["domains", &models, "--domains", "2"]);
    assert_eq!(found["domains"], json!([0, 1, 0, 1, 0]));
    // (1/3)·(.01 + .01 + .02) and .02.
    close(&found["inertia"], 0.04 / 3.0 + 0.02);
    assert_eq!(keys(&found), ["domains", "inertia"].into());
    let alone = solved(&["domains", &models, "-d", "5"]);
    assert_eq!(alone["domains"], json!([0, 1, 2, 3, 4]));
    let text = printed(&["domains", &models, "--domains", "2"]);
    assert!(text.contains("  0    3 silos  0, 2, 4\n"), "{text}");
    assert!(text.ends_with("\ndomains = [0, 1, 0, 1, 0]\n"), "{text}");
}

/// Nine silos of three true models.
const SCENARIO: &str = r#"
name = "kinds"
seed = 1
rounds = 4
silos = 9
[task.table]
data = { synthetic = { target = "linear", groups = 3, noise = 0.1 } }
model = { linear = { loss = "squared" } }
DOMAINS
[strategy]
name = "fedcg"
given = true
domains = 3
training = { epochs = 5, batch = 16, optimiser = { name = "sgd", rate = 0.01 } }
"#;

#[test]
fn domains_of_models_that_were_trained_alone_go_into_a_scenario() {
    let files = SolveFiles::new();
    let kept = files.path("kept");
    let alone = files.put("alone.toml", &SCENARIO.replace("DOMAINS", ""));
    let quiet = ["--quiet", "--no-references"];
    let local = ["simulate", &alone, "--strategy", "local", "--keep", &kept];
    good(&[&local[..], &quiet].concat());
    let found = solved(&["domains", &kept, "--domains", "3"]);
    assert_eq!(found["silos"].as_array().unwrap().len(), 9);
    let text = printed(&["domains", &kept, "--domains", "3"]);
    assert!(
        text.starts_with("3 domains of 9 silos, by their models of round 4.\n"),
        "{text}"
    );
    let error = refused(&["domains", &kept, "--domains", "10"]);
    assert!(error.contains("has 9 silos: ask for 1 to 9"), "{error}");
    let line = text.lines().last().unwrap();
    let known = files.put("known.toml", &SCENARIO.replace("DOMAINS", line));
    let said = good(&[&["simulate", &known], &quiet[..], &["--json"]].concat());
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    // All rows of a silo are of its domain.
    let silos = said["rounds"].as_array().unwrap().last().unwrap()["memory"]["fedcg.silos"].clone();
    let expected = (0..3).map(|domain| {
        found["domains"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| **one == domain)
            .count()
    });
    assert_eq!(silos, json!(expected.collect::<Vec<_>>()), "{said}");
}

#[test]
fn what_is_no_model_is_refused() {
    let files = SolveFiles::new();
    let models = files.put("models.csv", MODELS);
    for (domains, what) in [("0", "0"), ("6", "6")] {
        let error = refused(&["domains", &models, "--domains", domains]);
        assert!(
            error.contains(&format!("--domains is {what}, but")),
            "{error}"
        );
        assert!(error.contains("ask for 1 to 5"), "{error}");
    }
    let folder = files.path("kept");
    fs::create_dir(&folder).unwrap();
    let error = refused(&["domains", &folder, "-d", "2"]);
    assert!(
        error.contains("index.json") && error.contains("--keep DIR"),
        "{error}"
    );
    files.put(
        "kept/index.json",
        r#"{ "rounds": [{ "round": 1, "contributions": [] }] }"#,
    );
    let error = refused(&["domains", &folder, "-d", "2"]);
    assert!(error.contains("no round has contributions"), "{error}");
    let index = r#"{ "rounds": [{ "round": 1, "contributions": [{ "silo": "A", "file": "a.safetensors" }] }] }"#;
    files.put("kept/index.json", index);
    files.put("kept/a.safetensors", "nothing");
    let error = refused(&["domains", &folder, "-d", "2"]);
    assert!(error.contains("a.safetensors"), "{error}");
}
