//! A change that an institution's policy does not let go on pauses its contributions, not its votes, until
//! it has signed.

use super::amended::{Heard, changes, id, says};
use super::*;

#[test]
fn whoever_did_not_agree_to_a_weaker_agreement_contributes_again_once_it_has_signed() {
    let demo = quick("run-policy", 4);
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    // Three show names and believe the lead from now on, for more rounds.
    let folder = demo.configs[0].with_file_name("federation.toml");
    let agreed = fs::read_to_string(&folder)
        .or_else(|_| fs::read_to_string(demo.folder.join("federation.toml")))
        .unwrap();
    let mut weaker = agreed.replace("\nrounds = 3", "\nrounds = 6");
    for (strong, weak) in [
        ("names = \"removed\"", "names = \"shown\""),
        ("verification = \"full\"", "verification = \"inclusion\""),
    ] {
        assert!(weaker.contains(strong), "{weaker}");
        weaker = weaker.replace(strong, weak);
    }
    let file = demo.folder.join("weaker.toml");
    fs::write(&file, weaker).unwrap();
    let said = says(&demo.configs[0], &["change", file.to_str().unwrap()]);
    let said: Vec<_> = said.split_whitespace().collect();
    let said = said.join(" ");
    for key in ["charter.names", "charter.verification"] {
        assert!(said.contains(key), "{key}: {said}");
    }
    let weaker = id(changes(&demo.configs[0]).split_once('\n').unwrap().1).to_owned();
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &weaker]);
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    // The fourth says what is missing. The others learn without it.
    let why = loop {
        let line = nodes.until(3, "waiting");
        let why = line["why"].as_str().unwrap().to_owned();
        if why.contains("contributions are paused") {
            break why;
        }
    };
    assert!(why.contains("`rota federation sign`"), "{why}");
    nodes.until(0, "finished");
    let state = demo.configs[0].with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let paused = nodes.until(3, "finished");
    assert_eq!(paused["event"], "finished");
    // Its institution reads and signs, and one round more has its contribution.
    sign(&demo.configs[3]);
    nodes.until(3, "signed");
    assert!(
        chain.contains("\"round\":6") || chain.contains("\"round\": 6"),
        "{chain}"
    );
}
