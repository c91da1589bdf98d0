//! Changes that no institution may accept, or that its node could not live under: the commands refuse them, and so do
//! the nodes of institutions that approved them past the commands.

use std::time::SystemTime;

use ::rota::agreement::Agreement;
use ::rota::node::institution::{AmendmentFolder, AmendmentWord, Institution, KnownAmendment};
use ::rota::protocol::message::Amendment;

use super::amended::{Heard, says};
use super::approvals::{proposed, told};
use super::undone::{by_hand, with};
use super::*;

/// The agreement of a federation, and its text.
fn agreed(demo: &Demo) -> (Agreement, String) {
    let institution = Institution::load(&demo.configs[0]).unwrap();
    let agreement = institution.configured.agreement;
    let text = agreement.to_toml().unwrap();
    (agreement, text)
}

/// An amendment that no command makes: another seed, in the text and in what follows from it.
fn other_seed(agreement: &Agreement) -> Amendment {
    by_hand(agreement, "seed", "4711")
}

fn known(agreement: &Agreement, amendment: &Amendment) -> KnownAmendment {
    KnownAmendment {
        epoch: agreement.epoch.id,
        approved: Vec::new(),
        needed: 3,
        amendment: amendment.clone(),
    }
}

fn amendments(config: &Path) -> AmendmentFolder {
    AmendmentFolder::of(&config.with_file_name("state"))
}

#[test]
fn a_change_no_node_can_follow_is_not_proposed_or_approved() {
    let demo = quick("run-examined", 4);
    let (agreement, text) = agreed(&demo);
    let config = &demo.configs[0];
    for (key, value, remedy) in [
        ("seed", "4711", "a new federation"),
        ("blob-limit", "39", "set it to"),
    ] {
        let file = demo.folder.join(format!("{key}.toml"));
        fs::write(&file, with(&text, key, value)).unwrap();
        let words = ["change", file.to_str().unwrap(), "--yes"];
        let (code, said) = told(&words, config);
        assert_eq!(code, 1, "{key}: {said}");
        assert!(said.contains(key) && said.contains(remedy), "{said}");
        assert_eq!(amendments(config).found(), Default::default(), "{key}");
    }
    // A change that somebody else made by hand is shown as what it is, and nobody can approve it.
    let known = known(&agreement, &other_seed(&agreement));
    let config = &demo.configs[3];
    amendments(config).keep(&known).unwrap();
    let hand_made = format!("{:#}", known.hash());
    let (code, said) = told(&["approve", &hand_made, "--yes"], config);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("cannot change") && said.contains("`seed`"),
        "{said}"
    );
    assert_eq!(amendments(config).found().words, []);
    let (code, said) = told(&["changes"], config);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("cannot be accepted"), "{said}");
}

#[test]
fn nodes_sign_nothing_that_they_cannot_follow_despite_approvals() {
    let demo = quick("run-examined-nodes", 4);
    let (agreement, text) = agreed(&demo);
    let forged = other_seed(&agreement);
    for config in &demo.configs[..3] {
        let about = (agreement.epoch.id, &forged);
        let word = AmendmentWord::after(&[], about, true, SystemTime::now());
        let amendments = amendments(config);
        amendments.keep(&known(&agreement, &forged)).unwrap();
        amendments.say(&word).unwrap();
    }
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..3 {
        let why = loop {
            let line = nodes.next(node, "refused");
            assert_ne!(line["event"], "epoch", "{line}");
            let why = line["reason"].as_str().unwrap_or_default().to_owned();
            if line["event"] == "refused" && why.contains("cannot change") {
                break why;
            }
        };
        assert!(why.contains("`seed`"), "{why}");
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    // A change that may be is the only one that the fourth hears of, and the only one that comes.
    let longer = proposed(&demo, 0, 4);
    for node in 1..3 {
        assert_eq!(nodes.until(node, "amendment")["amendment"], longer.as_str());
        says(&demo.configs[node], &["approve", &longer]);
    }
    loop {
        let line = nodes.next(3, "epoch");
        match line["event"].as_str() {
            Some("amendment") => assert_eq!(line["amendment"], longer.as_str()),
            Some("epoch") => break,
            _ => {}
        }
    }
    nodes.until(3, "finished");
    let state = demo.configs[3].with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let blocks = chain["blocks"].as_array().unwrap();
    let changes = blocks.iter().filter(|block| !block["change"].is_null());
    assert_eq!(changes.count(), 1, "{chain:#}");
    let in_force = fs::read_to_string(state.join("in-force.toml")).unwrap();
    let seed = |text: &str| {
        text.lines()
            .find(|line| line.starts_with("seed = "))
            .map(str::to_owned)
    };
    assert_eq!(seed(&in_force), seed(&text));
}
