//! A change that an institution's policy does not let go on pauses its contributions, not its votes, until
//! it has signed.

use super::amended::{Heard, changes, id, says};
use super::*;

#[test]
fn who_refuses_a_weaker_agreement_votes_and_adds_once_it_signed() {
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
    // There are more rounds than the test waits for.
    let mut weaker = agreed.replace("\nrounds = 3", "\nrounds = 1000");
    for (strong, weak) in [
        ("names = \"removed\"", "names = \"shown\""),
        ("verification = \"full\"", "verification = \"inclusion\""),
    ] {
        assert!(weaker.contains(strong), "{weaker}");
        weaker = weaker.replace(strong, weak);
    }
    let file = demo.folder.join("weaker.toml");
    fs::write(&file, &weaker).unwrap();
    let said = says(&demo.configs[0], &["change", file.to_str().unwrap()]);
    let said: Vec<_> = said.split_whitespace().collect();
    let said = said.join(" ");
    for key in ["protocol.names", "protocol.verification"] {
        assert!(said.contains(key), "{key}: {said}");
    }
    let first = id(changes(&demo.configs[0]).split_once('\n').unwrap().1).to_owned();
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &first]);
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    // The fourth says what is missing.
    let why = loop {
        let line = nodes.until(3, "waiting");
        let why = line["why"].as_str().unwrap().to_owned();
        if why.contains("contributions are paused") {
            break why;
        }
    };
    assert!(why.contains("`rota federation sign`"), "{why}");
    // It votes: the third approves one round more and stops, so that a quorum needs the fourth, which
    // approves nothing.
    fs::write(&file, weaker.replace("rounds = 1000", "rounds = 1001")).unwrap();
    let said = says(&demo.configs[0], &["change", file.to_str().unwrap()]);
    let more = id(&said).to_owned();
    while nodes.until(2, "amendment")["amendment"] != more.as_str() {}
    says(&demo.configs[2], &["approve", &more]);
    loop {
        let line = nodes.until(1, "amendment");
        let approved = line["approved"].as_array().unwrap().len();
        if line["amendment"] == more.as_str() && approved == 2 {
            break;
        }
    }
    nodes.nodes.terminate(2);
    assert_eq!(nodes.nodes.code(2), 0);
    says(&demo.configs[1], &["approve", &more]);
    for node in [0, 1, 3] {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 2);
    }
    let paused = rounds(&demo.configs[0]);
    let fourth = |included: &Vec<String>| included.iter().any(|name| name == "silo 4");
    assert!(paused[..3].iter().any(fourth), "{paused:?}");
    assert!(!paused[3..].iter().any(fourth), "{paused:?}");
    // Its institution reads and signs, and what it learns is in rounds again: without it none has enough
    // contributions.
    sign(&demo.configs[3]);
    nodes.until(3, "signed");
    while nodes.until(0, "adopted")["round"].as_u64().unwrap() <= paused.len() as u64 {}
    let again = rounds(&demo.configs[0]);
    assert!(again[paused.len()..].iter().all(fourth), "{again:?}");
}

/// Returns who contributed to each round that is final at a member.
fn rounds(config: &Path) -> Vec<Vec<String>> {
    let state = config.with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let blocks = chain["blocks"].as_array().unwrap().iter();
    let rounds = blocks.filter(|block| !block["round"].is_null() && block["change"].is_null());
    let names = |block: &Value| serde_json::from_value(block["included"].clone()).unwrap();
    rounds.map(names).collect()
}
