//! A final round whose outcome nobody has who goes on is done again after a recovery: it stands in the chain
//! twice, with two blocks. Whoever had adopted the first comes back and goes on from the second.

use ::rota::protocol::Record;
use ::rota::silo::Journal;

use super::amended::{Heard, id, says};
use super::*;

/// Takes from a node that is down what it adopted in the last round. It knows the block, and has no outcome.
fn forgets_the_outcome(config: &Path) {
    let institution = Institution::load(config).unwrap();
    let mut journal = journal_of(config);
    let mut records = journal.load().unwrap();
    let is_adopted = |record: &JournalRecord| matches!(record, JournalRecord::Adopted(_));
    let last = records.iter().rposition(is_adopted).unwrap();
    let JournalRecord::Adopted(last) = records.remove(last) else {
        unreachable!("it is found above")
    };
    let before = records.iter().rev().find_map(|record| match record {
        JournalRecord::Adopted(adopted) => Some(adopted.blobs.clone()),
        _ => None,
    });
    let before = before.unwrap();
    let applied =
        |record: &JournalRecord| matches!(record, JournalRecord::Protocol(Record::Applied { .. }));
    records.retain(|record| !applied(record));
    let round = last.round - 1;
    records.push(JournalRecord::Protocol(Record::Applied { round }));
    journal.replace(0, records).unwrap();
    for blob in last.blobs.iter().filter(|blob| !before.contains(blob)) {
        let name = format!("{:#}", Hash(*blob));
        fs::remove_file(institution.state.join("blobs").join(name)).unwrap();
    }
}

/// Returns what `rota verify` says of a node's state.
fn verified(config: &Path) -> String {
    let state = config.with_file_name("state");
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The blocks and outcomes of a round, as a node's chain has them.
fn blocks(config: &Path, round: u64) -> Vec<(String, String)> {
    let state = config.with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let blocks = chain["blocks"].as_array().unwrap().iter();
    let of = blocks.filter(|block| block["round"] == round && block["outcome"].is_string());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of.map(|block| (text(&block["block"]), text(&block["outcome"])))
        .collect()
}

#[test]
fn a_repeated_round_is_verified_and_replaces_the_first() {
    let demo = quick("run-redone", 2);
    let mut nodes = Heard::of(&demo.configs, &[]);
    let name = |line: &Value| line["member"].as_str().unwrap().to_owned();
    (0..2).for_each(|node| nodes.nodes.start(node));
    let goes = [0, 1].map(|node| name(&nodes.until(node, "start")))[1].clone();
    for node in 0..2 {
        nodes.until(node, "finished");
    }
    for node in 0..2 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
    }
    forgets_the_outcome(&demo.configs[0]);
    // It cannot adopt round 3, which only the lost one has, and does it again.
    nodes.nodes.start(0);
    nodes.until(0, "start");
    let config = demo.configs[0].to_str().unwrap();
    good(&["recover", "--lost", &goes, "--config", config, "--yes"]);
    assert_eq!(nodes.until(0, "epoch")["epoch"], 1);
    assert_eq!(nodes.until(0, "adopted")["round"], 3);
    nodes.until(0, "finished");
    let twice = blocks(&demo.configs[0], 3);
    assert_eq!(twice.len(), 2, "{twice:?}");
    assert!(twice[0].0 != twice[1].0 && twice[0].1 != twice[1].1);
    let said = verified(&demo.configs[0]);
    for what in [
        "1 to 3 computed again",
        "a recovery continued without it, and the round was repeated",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    // The lost one comes back.
    nodes.nodes.start(1);
    let told = nodes.until(1, "left-behind");
    assert_eq!(told["round"], 2);
    let recovery = told["recovery"].as_str().unwrap().to_owned();
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    let first = fs::read_to_string(demo.folder.join("federation.toml")).unwrap();
    let mut keys = first.lines().filter_map(|line| line.strip_prefix("key = "));
    let key = keys.next_back().unwrap().trim_matches('"');
    let own = fs::read_to_string(&demo.configs[1]).unwrap();
    let listen = own.lines().find(|line| line.starts_with("listen = "));
    let address = listen.unwrap().split('"').nth(1).unwrap();
    says(&demo.configs[0], &["admit", &goes, key, address]);
    let follow = ["--wait-for-admission", "--follow-recovery", &recovery];
    let mut again = Heard::of(&demo.configs[1..], &follow);
    again.nodes.start(0);
    assert_eq!(nodes.until(0, "epoch")["epoch"], 2);
    assert_eq!(again.until(0, "epoch")["epoch"], 2);
    // Both learn in a round more.
    let in_force = demo.configs[0]
        .with_file_name("state")
        .join("in-force.toml");
    let agreed = fs::read_to_string(in_force).unwrap();
    let more = demo.folder.join("more.toml");
    fs::write(&more, agreed.replace("rounds = 3", "rounds = 4")).unwrap();
    let said = says(&demo.configs[0], &["change", more.to_str().unwrap()]);
    let rounds = id(&said).to_owned();
    while again.until(0, "amendment")["amendment"] != rounds.as_str() {}
    says(&demo.configs[1], &["approve", &rounds]);
    for line in [nodes.until(0, "epoch"), again.until(0, "epoch")] {
        assert_eq!(line["epoch"], 3);
    }
    while again.until(0, "adopted")["round"] != 4 {}
    while nodes.until(0, "adopted")["round"] != 4 {}
    assert_eq!(blocks(&demo.configs[0], 4), blocks(&demo.configs[1], 4));
    nodes.nodes.terminate(0);
    again.nodes.terminate(0);
    assert_eq!((nodes.nodes.code(0), again.nodes.code(0)), (0, 0));
    for config in &demo.configs {
        let said = verified(config);
        assert!(said.contains("computed again"), "{said}");
    }
}
