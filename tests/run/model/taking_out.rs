//! Listing, showing and exporting models, and predicting with them.

use std::fs;

use serde_json::Value;

use super::hospitals::{DAYS, OUTCOME, config, events, scenario};
use super::nodes::{Demo, TestNodes, sign};
use super::*;

/// Rows to predict: of another ward, with gaps, without the target.
pub(crate) const ROWS: &str = "patient,ward,age,pulse,weight
a,general,34,70,80
b,intensive,81,110,62
c,,55,,70
d,children,30,80,
e,general,12,90,40
";

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&good(arguments)).unwrap()
}

#[test]
fn a_model_is_listed_exported_and_predicts_the_same_everywhere() {
    let strategy = "name = 'cs-rcfl'\ncoalitions = 2";
    let more = "metric = 'roc-auc'";
    let hospitals = TestHospitals::new(
        "model-home",
        &scenario("'logistic'", strategy, OUTCOME, more),
    );
    let north = config(&hospitals.configs[0]);
    let early = output(&["model", "list", "--config", north]);
    assert_eq!(early.status.code(), Some(1));
    let said = text(&early.stderr);
    assert!(said.contains("has not run yet (`rota run`)"), "{said}");
    let lines = TestHospitals::run(&hospitals.configs);
    let served: Vec<&Value> = lines
        .iter()
        .map(|lines| events(lines, "serves")[0])
        .collect();
    assert_eq!(served[0]["round"], 3);
    assert!(
        served
            .iter()
            .all(|line| !line["measured"].as_array().unwrap().is_empty()),
        "{served:?}"
    );

    // The models that there are.
    let listed = json(&["model", "list", "--json", "--config", north]);
    assert_eq!(listed["silo"], "north");
    let last = listed["rounds"].as_array().unwrap().last().unwrap();
    assert_eq!(last["round"], 3);
    let chain = hospitals.path("north/state");
    let chain = json(&["chain", "--json", "--state", &chain]);
    let block = chain["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|block| block["round"] == 3);
    assert_eq!(block.unwrap()["block"], last["block"]);
    assert_eq!(block.unwrap()["outcome"], last["outcome"]);
    assert_eq!(listed["serves"]["candidate"], served[0]["candidate"]);
    let coalitions = last["models"].as_array().unwrap();
    let own = coalitions
        .iter()
        .find(|model| model["own"] == true)
        .unwrap();
    assert!(own["held_out"]["metrics"]["roc-auc"].is_number(), "{own}");
    let said = good(&["model", "list", "--config", north]);
    assert!(
        said.contains("held-out roc-auc") && said.contains("serves: the "),
        "{said}"
    );

    // Into a file, and what the file says.
    let out = hospitals.path("m.safetensors");
    let said = good(&["model", "export", "--config", north, "--out", &out]);
    assert!(
        said.contains("The model that north serves after round 3"),
        "{said}"
    );
    let card: Value =
        serde_json::from_str(&fs::read_to_string(hospitals.path("m.card.json")).unwrap()).unwrap();
    let mut shown = json(&["model", "show", "--json", "--model", &out]);
    assert_eq!(shown, card);
    shown = json(&["model", "show", "--json", "--config", north]);
    shown["created"] = card["created"].clone();
    assert_eq!(shown, card);
    assert_eq!(card["origin"]["id"], listed["id"]);
    assert_eq!(card["origin"]["certificate"], last["certificate"]);
    assert_eq!(card["origin"]["certificate"].as_str().unwrap().len(), 64);
    assert_eq!(card["served"], served[0]["candidate"]);
    assert_eq!(card["held_out"]["metrics"]["roc-auc"], served[0]["value"]);
    let page = fs::read_to_string(hospitals.path("m.card.md")).unwrap();
    assert!(page.starts_with("# A model of stays\n"), "{page}");
    let again = output(&["model", "export", "--config", north, "--out", &out]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("overwrite it with --force"));

    // Predictions: by the node, and by the file alone.
    let rows = hospitals.path("rows.csv");
    fs::write(&rows, ROWS).unwrap();
    let (by_node, by_file) = (hospitals.path("by-node.csv"), hospitals.path("by-file.csv"));
    // The node ignores the patients' numbers, and the names of its rows are those of the schema.
    let said = good(&[
        "model", "predict", &rows, "--config", north, "--out", &by_node,
    ]);
    assert!(
        said.contains("5 rows, 2 of them without a prediction"),
        "{said}"
    );
    let stranger = output(&[
        "model", "predict", &rows, "--model", &out, "--out", &by_file,
    ]);
    let said = text(&stranger.stderr);
    assert_eq!(stranger.status.code(), Some(1), "{said}");
    assert!(
        said.contains("rows.csv: the column \"patient\" is not in the schema"),
        "{said}"
    );
    let names = hospitals.path("names.toml");
    fs::write(&names, "names = { ignore = ['patient'] }").unwrap();
    good(&[
        "model", "predict", &rows, "--model", &out, "--names", &names, "--out", &by_file,
    ]);
    let found = fs::read_to_string(&by_file).unwrap();
    assert_eq!(found, fs::read_to_string(&by_node).unwrap());
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(
        lines[0],
        "predicted_outcome,probability_home,probability_died,note"
    );
    assert_eq!(lines.len(), 6, "{found}");
    assert!(lines[4].starts_with(",,,weight is missing"), "{found}");
    assert!(
        lines[5].starts_with(",,,the schema is for rows with age >= 18"),
        "{found}"
    );
    assert!(
        lines[2].starts_with("died,") && lines[1].starts_with("home,"),
        "{found}"
    );
    let kept = hospitals.path("kept.csv");
    good(&[
        "model",
        "predict",
        &rows,
        "--model",
        &hospitals.path("m.card.json"),
        "--keep",
        "patient",
        "--out",
        &kept,
    ]);
    let kept = fs::read_to_string(&kept).unwrap();
    let patients: Vec<&str> = kept
        .lines()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(patients, ["patient", "a", "b", "c", "d", "e"]);

    // Other models, and what there is not.
    let refused = |arguments: &[&str]| {
        let refused = output(&[&["model", "show", "--config", north], arguments].concat());
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        text(&refused.stderr)
    };
    assert!(refused(&["--round", "9"]).contains("does not hold the models of round 9"));
    assert!(refused(&["--coalition", "7"]).contains("there is no coalition 7 in round 3"));
    for which in ["coalition", "global"] {
        let card = json(&[
            "model", "show", "--json", "--config", north, "--which", which,
        ]);
        assert_eq!(card["origin"]["which"], which);
        assert_eq!(card["served"], Value::Null);
    }
    // Without its rows the node's notes suffice.
    fs::remove_file(hospitals.path("north/rows.csv")).unwrap();
    let moved = hospitals.path("moved.safetensors");
    let done = output(&["model", "export", "--config", north, "--out", &moved]);
    assert_eq!(done.status.code(), Some(0));
    assert!(text(&done.stderr).contains("the models cannot be measured here"));
    let by_notes = hospitals.path("by-notes.csv");
    good(&[
        "model", "predict", &rows, "--model", &moved, "--names", &names, "--out", &by_notes,
    ]);
    assert_eq!(fs::read_to_string(&by_notes).unwrap(), found);

    python::check(&hospitals, "outcome");
}

#[test]
fn numbers_on_a_common_scale_come_out_in_their_own_unit() {
    let hospitals = TestHospitals::new(
        "model-days",
        &scenario(
            "{ mlp = { hidden = [6] } }",
            "name = 'fedavg'",
            DAYS,
            "metric = 'mae'",
        ),
    );
    // While the nodes run, their models can be listed.
    hospitals.configs.iter().for_each(|config| sign(config));
    let mut nodes = TestNodes::new(&hospitals.configs, &["--until-done"]);
    (0..3).for_each(|node| nodes.start(node));
    nodes.until(0, "adopted", 60);
    let north = config(&hospitals.configs[0]);
    let listed = json(&["model", "list", "--json", "--config", north]);
    assert!(!listed["rounds"].as_array().unwrap().is_empty());
    for node in 0..3 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    let out = hospitals.path("m.safetensors");
    good(&[
        "model",
        "export",
        "--config",
        north,
        "--out",
        &out,
        "--which",
        "coalition",
    ]);
    let rows = hospitals.path("rows.csv");
    fs::write(&rows, ROWS).unwrap();
    let predictions = hospitals.path("p.csv");
    good(&[
        "model",
        "predict",
        &rows,
        "--model",
        &out,
        "--keep",
        "patient",
        "--out",
        &predictions,
    ]);
    let found = fs::read_to_string(&predictions).unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "patient,predicted_days,note");
    for line in &lines[1..4] {
        let days: f64 = line.split(',').nth(1).unwrap().parse().unwrap();
        assert!((1.0..20.0).contains(&days), "{line}");
    }
    python::check(&hospitals, "days");
}

#[test]
fn a_node_serves_what_the_simulation_serves() {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let file = nodes::scenario(
        "model-diabetes",
        &text.replace("heartbeat = \"5s\"", "heartbeat = \"100ms\""),
    );
    let file = file.to_str().unwrap();
    let options = ["--silos", "4", "--rounds", "3"];
    let demo = Demo::new(
        "model-serves",
        &[&options[..], &["--scenario", file]].concat(),
    );
    let lines = TestHospitals::run(&demo.configs);
    let simulated = good(&[&["simulate", file, "--json", "--quiet"], &options[..]].concat());
    let simulated: Value = serde_json::from_str(&simulated).unwrap();
    for (silo, lines) in simulated["silos"].as_array().unwrap().iter().zip(&lines) {
        let (expected, found) = (&silo["served"], events(lines, "serves")[0]);
        // A node chooses alone.
        let alone = &expected["alone"];
        assert_eq!(found["candidate"], alone["candidate"]);
        let number = |value: &Value| value.as_f64().unwrap();
        let same = |a: &Value, b: &Value| (number(a) - number(b)).abs() < 1e-6 * number(b).abs();
        assert!(
            same(&found["value"], &alone["metric"]),
            "{found} {expected}"
        );
        let expected = expected["measured"].as_array().unwrap();
        let found = found["measured"].as_array().unwrap();
        assert_eq!(found.len(), expected.len());
        for (own, other) in found.iter().zip(expected) {
            assert_eq!(own["candidate"], other["candidate"]);
            assert!(same(&own["loss"], &other["loss"]), "{own} {other}");
        }
    }
}

#[test]
fn a_choice_that_was_interrupted_is_made_at_the_next_start() {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let file = nodes::scenario(
        "model-resumes",
        &text.replace("heartbeat = \"5s\"", "heartbeat = \"100ms\""),
    );
    let file = file.to_str().unwrap();
    let options = ["--silos", "2", "--rounds", "2", "--scenario", file];
    let demo = Demo::new("model-resumes", &options);
    let first = TestHospitals::run(&demo.configs);
    let state = demo.configs[0].with_file_name("state");
    fs::remove_file(state.join("served.json")).unwrap();
    let list = [
        "model",
        "list",
        "--json",
        "--config",
        config(&demo.configs[0]),
    ];
    let listed = output(&list);
    assert_eq!(listed.status.code(), Some(1));
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed["serves"], Value::Null);
    let second = TestHospitals::run(&demo.configs);
    let (first, second) = (events(&first[0], "serves"), events(&second[0], "serves"));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(first[0]["measured"], second[0]["measured"]);
    // And no third time.
    assert!(events(&TestHospitals::run(&demo.configs)[0], "serves").is_empty());
    assert!(state.join("served.json").exists());
}
