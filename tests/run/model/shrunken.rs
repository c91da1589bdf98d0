//! Hospitals that each get a model of their own, shrunken towards the common one: real nodes estimate it from
//! sums, end by themselves, and anybody can recompute it.

use std::fs;

use serde_json::Value;

use super::hospitals::{DAYS, config, events, scenario};
use super::taking_out::ROWS;
use super::*;

#[test]
fn a_hierarchical_model_ends_verifies_and_predicts() {
    let linear = "{ linear = { loss = 'squared' } }";
    let text = scenario(
        linear,
        "name = 'hierarchical'",
        DAYS,
        "standardise = 'federation'",
    );
    let hospitals =
        TestHospitals::new("model-shrunken", &text.replace("rounds = 3", "rounds = 60"));
    let lines = TestHospitals::run(&hospitals.configs);
    let chains = ["north", "south", "east"].map(|name| {
        let state = hospitals.path(&format!("{name}/state"));
        let verified = good(&["verify", "--state", &state]);
        assert!(
            verified.contains("computed again: plan, decision and outcome are as agreed"),
            "{verified}"
        );
        good(&["chain", "--json", "--state", &state])
    });
    assert!(chains[0] == chains[1] && chains[1] == chains[2]);
    let north: Value = serde_json::from_str(&chains[0]).unwrap();
    let rounds = north["blocks"].as_array().unwrap().iter();
    let last = rounds.filter_map(|block| block["round"].as_u64()).max();
    assert!(
        (6..60).contains(&last.unwrap()),
        "it ends by itself: {last:?}"
    );

    // Each has chosen what it serves, though the agreed last round never came.
    for lines in &lines {
        let [serves] = events(lines, "serves")[..] else {
            panic!("one choice: {lines:?}");
        };
        assert_eq!(serves["round"].as_u64(), last);
    }

    // Every hospital predicts by its own coefficients, which the others never see.
    let rows = hospitals.path("rows.csv");
    fs::write(&rows, ROWS).unwrap();
    let predicted = |at: usize| {
        let node = config(&hospitals.configs[at]);
        let out = hospitals.path(&format!("{at}.safetensors"));
        let coalition = ["--which", "coalition"];
        let export = ["model", "export", "--config", node, "--out", &out];
        good(&[&export[..], &coalition].concat());
        let to = hospitals.path(&format!("{at}.csv"));
        let names = hospitals.path("names.toml");
        fs::write(&names, "names = { ignore = ['patient'] }").unwrap();
        good(&[
            "model", "predict", &rows, "--model", &out, "--names", &names, "--out", &to,
        ]);
        fs::read_to_string(to).unwrap()
    };
    let (north, south) = (predicted(0), predicted(1));
    assert_ne!(north, south);
    assert!(north.starts_with("predicted_days"), "{north}");
}
