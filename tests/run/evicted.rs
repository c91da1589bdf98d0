//! Members that others remove while they run: one is evicted, and another one's key is replaced because
//! somebody stole it.

use std::collections::BTreeSet;

use super::amended::{Heard, changes, id, says};
use super::status::status;
use super::*;

/// A federation with more rounds than a test waits for.
fn endless(name: &str) -> Demo {
    let file = scenario(name, &QUICK.replace("rounds = 3", "rounds = 10000"));
    let file = file.to_str().unwrap();
    Demo::new(name, &["--scenario", file, "--silos", "4"])
}

/// Returns what the first member proposes, two others approve; gives the amendment's id.
fn agreed(nodes: &mut Heard, demo: &Demo, words: &[&str]) -> String {
    let said = says(&demo.configs[0], words);
    let amendment = id(&said).to_owned();
    for node in 1..3 {
        while nodes.until(node, "amendment")["amendment"] != amendment.as_str() {}
        says(&demo.configs[node], &["approve", &amendment]);
    }
    amendment
}

/// Everything that a node has printed and that was not waited for, to its end.
fn rest(nodes: &mut Heard, node: usize) -> Vec<Value> {
    let lines = std::iter::from_fn(|| Some(nodes.next(node, "the end of its output")));
    lines.take_while(|line| !line.is_null()).collect()
}

#[test]
fn an_evicted_member_is_informed_and_gets_no_later_rounds() {
    let demo = endless("run-evicted");
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    nodes.until(3, "adopted");
    agreed(&mut nodes, &demo, &["evict", "silo 4"]);
    for node in 0..3 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    nodes.until(3, "left");
    // The others go on without it, while it may still be connected.
    for node in 0..3 {
        nodes.until(node, "adopted");
    }
    let after = rest(&mut nodes, 3);
    assert_eq!(nodes.nodes.code(3), 0);
    for (node, config) in demo.configs[..3].iter().enumerate() {
        let (code, status, said) = status(config);
        assert_eq!(code, 0, "{said}");
        let others: Vec<_> = (0..3).filter(|other| *other != node).collect();
        let others: Vec<_> = others
            .iter()
            .map(|other| format!("silo {}", other + 1))
            .collect();
        let peers: Vec<_> = status["peers"].as_array().unwrap().iter().collect();
        let names: Vec<_> = peers
            .iter()
            .map(|peer| peer["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, others, "{status:#}");
        assert_eq!(status["federation"]["members"], 3, "{status:#}");
    }
    for line in after {
        for event in ["epoch", "final", "adopted"] {
            assert_ne!(line["event"], event, "{line}");
        }
    }
    // The change is the last block that it has, and it is none of the members any more.
    let chain = |node: usize| -> Vec<Value> {
        let state = demo.configs[node].with_file_name("state");
        let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
        let chain: Value = serde_json::from_str(&chain).unwrap();
        chain["blocks"].as_array().unwrap().clone()
    };
    let (own, all) = (chain(3), chain(0));
    let at = all.iter().position(|block| !block["change"].is_null());
    let at = at.unwrap();
    assert!(
        all[at]["change"].to_string().contains("silo 4"),
        "{}",
        all[at]
    );
    let rounds = |blocks: &[Value]| {
        blocks
            .iter()
            .filter(|block| !block["round"].is_null())
            .count()
    };
    let change = own.iter().position(|block| !block["change"].is_null());
    assert_eq!(rounds(&own[change.unwrap() + 1..]), 0, "{own:#?}");
    assert!(rounds(&all[at + 1..]) > 0, "{all:#?}");
    // Of the rounds that followed, and of the one that the change interrupted, the others told only each
    // other.
    let before = all[..at]
        .iter()
        .rev()
        .find_map(|block| block["round"].as_u64());
    let later = |line: &&Value| line["round"].as_u64() > before.map(|round| round + 1);
    for (node, config) in demo.configs[..3].iter().enumerate() {
        let state = config.with_file_name("state");
        let audit = good(&["audit", "--json", "--state", state.to_str().unwrap()]);
        let lines: Vec<Value> = audit
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let told: BTreeSet<_> = lines
            .iter()
            .filter(later)
            .map(|line| line["to"].as_str().unwrap())
            .collect();
        let allowed = ["all", "silo 1", "silo 2", "silo 3"];
        assert!(!told.is_empty(), "{node}: {audit}");
        assert!(
            told.iter().all(|to| allowed.contains(to)),
            "{node}: {told:?}"
        );
    }
}

#[test]
fn a_node_with_a_stolen_key_gets_nothing_and_is_refused() {
    let demo = endless("run-stolen");
    let old = demo.configs[3].clone();
    let shown = |key: &Path| {
        good(&["identity", "show", key.to_str().unwrap()])
            .trim()
            .to_owned()
    };
    let stolen = shown(&old.with_file_name("identity.key"));
    // Its owner has another machine, whose node gets another key.
    let key = old.with_file_name("new.key");
    good(&["identity", "new", "--out", key.to_str().unwrap()]);
    let text = fs::read_to_string(&old).unwrap();
    let line = |key: &str| {
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(key)).unwrap().to_owned()
    };
    let port = line("listen")
        .split('/')
        .nth(4)
        .unwrap()
        .parse::<u16>()
        .unwrap();
    let listen = line("listen").replace(&format!("/{port}/"), &format!("/{}/", port + 9));
    let text = text
        .replace(&line("identity"), "identity = \"new.key\"")
        .replace(&line("state"), "state = \"state-2\"")
        .replace(&line("listen"), &listen);
    let new = old.with_file_name("new.toml");
    fs::write(&new, text).unwrap();
    let mut configs = demo.configs.clone();
    configs.push(new);
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    nodes.until(3, "adopted");
    // While it is a member, it hears what members hear, so it is down when the change becomes final.
    nodes.nodes.terminate(3);
    rest(&mut nodes, 3);
    assert_eq!(nodes.nodes.code(3), 0);
    nodes.nodes.start(4);
    nodes.until(4, "waits-for-admission");
    let key = shown(&key);
    agreed(&mut nodes, &demo, &["rekey", "silo 4", &key, "--stolen"]);
    for node in [0, 1, 2, 4] {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    nodes.nodes.start(3);
    // The thief's node finds no member any more that lets it in, and nobody tells it why.
    for node in 0..3 {
        let knocked = |line: &Value| line["key"] == stolen.as_str();
        while !knocked(&nodes.until(node, "stranger")) {}
        nodes.until(node, "adopted");
    }
    nodes.nodes.terminate(3);
    for line in rest(&mut nodes, 3) {
        assert!(
            line["event"] != "left" && line["event"] != "epoch",
            "{line}"
        );
    }
    assert_eq!(nodes.nodes.code(3), 0);
}

#[test]
fn a_key_that_was_stolen_is_named_before_anybody_approves() {
    let demo = quick("run-stolen-words", 4);
    let key = demo.folder.join("new.key");
    let key = good(&["identity", "new", "--out", key.to_str().unwrap()]);
    let rekey = |why: &str| {
        says(&demo.configs[0], &["rekey", "silo 4", key.trim(), why]);
        let said = changes(&demo.configs[0]);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let stolen = "the old key of silo 4 is declared stolen";
    assert!(!rekey("--lost").contains(stolen));
    assert!(rekey("--stolen").contains(stolen));
}
