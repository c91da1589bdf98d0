//! A round whose sums nobody can open any more: all machines stopped right after its block was final, and came
//! back without their secrets. All institutions give it up, and it is done again.

use ::rota::protocol::Record;
use ::rota::silo::Journal;

use super::amended::Heard;
use super::masked::SUMS;
use super::*;

/// The state of a silo as it was when the block of the last round was final there, but for its secret, which is
/// gone. Nothing is left of what came afterwards.
fn stopped_after_the_block(config: &Path) {
    let mut journal = journal_of(config);
    let records = journal.load().unwrap();
    let adopted = |record: &JournalRecord| matches!(record, JournalRecord::Adopted(_));
    assert!(records.iter().any(adopted));
    let agreed = |record: &JournalRecord| {
        matches!(
            record,
            JournalRecord::Protocol(Record::Final { .. } | Record::Circle(_))
        )
    };
    let kept: Vec<_> = records.into_iter().filter(agreed).collect();
    assert!(!kept.is_empty());
    journal.replace(0, kept).unwrap();
}

#[test]
fn a_round_whose_secrets_are_lost_is_aborted_and_repeated() {
    let text = SUMS.replace("rounds = 4", "rounds = 1").replace(
        "heartbeat = '100ms'",
        "heartbeat = '100ms'\nstraggler-timeout = 2",
    );
    let file = scenario("given-up", &text);
    let demo = Demo::new("given-up", &["--scenario", file.to_str().unwrap()]);
    let state = |node: usize| demo.configs[node].with_file_name("state");
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    drop(nodes);
    demo.configs
        .iter()
        .for_each(|config| stopped_after_the_block(config));
    let chain = |node: usize| good(&["chain", "--state", state(node).to_str().unwrap()]);
    assert!(chain(0).contains("not known yet"), "{}", chain(0));

    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..3).for_each(|node| nodes.nodes.start(node));
    let give_up = |node: usize, round: &str| {
        let config = demo.configs[node].to_str().unwrap();
        output(&[
            "recover",
            "--abort-round",
            round,
            "--config",
            config,
            "--yes",
        ])
    };
    // Another round than the last final one is no choice.
    let refused = give_up(0, "2");
    assert_eq!(refused.status.code(), Some(1));
    let said = text_of(&refused.stderr);
    assert!(
        said.contains("only the last final round can be given up, which is round 1"),
        "{said}"
    );
    // Three that run ask for it, and the fourth before its node starts.
    for node in 0..3 {
        let said = text_of(&give_up(node, "1").stdout);
        for what in [
            "new masks",
            "cannot be undone",
            "after the agreed `straggler-timeout`",
        ] {
            assert!(said.contains(what), "{what}: {said}");
        }
    }
    assert_eq!(give_up(3, "1").status.code(), Some(0));
    nodes.nodes.start(3);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        assert_eq!(nodes.until(node, "adopted")["round"], 1);
        nodes.until(node, "finished");
    }
    for node in 0..4 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
        let said = good(&["verify", "--state", state(node).to_str().unwrap()]);
        assert!(said.contains("1 computed again"), "{said}");
        assert_eq!(chain(node), chain(0));
    }
    for what in [
        "recovery  ",
        "no outcome: the recovery continues without it",
    ] {
        assert!(chain(0).contains(what), "{what}: {}", chain(0));
    }
}

/// Output as one line.
fn text_of(bytes: &[u8]) -> String {
    let said = text(bytes);
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}
