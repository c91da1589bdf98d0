//! A ledger that is not the newest one: an older copy of it is put back, or it is lost together with the
//! journal and made anew. The institution contributes nothing more, and rounds go on without it.

use super::*;

/// The node whose ledger is touched.
const OWN: usize = 3;

/// A federation with more rounds than a test waits for, of which each needs three of the four.
fn long_noised(name: &str) -> Demo {
    noised(name, &NOISED.replace("rounds = 6", "rounds = 1000"))
}

/// Waits until the node sees this many final rounds after one, with its institution among the authors
/// (`included`) or not, and gives the last of them.
fn sees(nodes: &mut Heard, own: &str, (after, rounds): (u64, usize), included: bool) -> u64 {
    let mut seen = 0;
    loop {
        let line = nodes.until(OWN, "final");
        let round = line["round"].as_u64().unwrap();
        let authors = line["contributors"].as_array().unwrap();
        let is_there = authors.iter().any(|author| author == own);
        seen += usize::from(round > after && is_there == included);
        if seen == rounds {
            return round;
        }
    }
}

/// The last round that has a line in the node's ledger.
fn last_line(config: &Path) -> u64 {
    ledger(config).last().unwrap()["round"].as_u64().unwrap()
}

/// Returns what the node sent of these kinds for rounds after one, or with no round in its header.
fn sent_after(config: &Path, round: u64, kinds: &[&str]) -> usize {
    let later = |line: &Value| line["round"].as_u64().is_none_or(|of| of > round);
    let is_sent = |line: &Value| line["event"] == "message" && later(line);
    let sent = sent(config).into_iter().filter(is_sent);
    sent.filter(|line| kinds.contains(&line["kind"].as_str().unwrap()))
        .count()
}

/// Starts the node after its ledger was touched, when `last` was the last round that it had taken part in. It says
/// why it contributes nothing, in one sentence, votes, and sees rounds that are made without it.
///
/// Gives the last of these rounds.
fn sits_out(nodes: &mut Heard, demo: &Demo, last: u64) -> u64 {
    let config = &demo.configs[OWN];
    let votes = sent_after(config, last, &VOTES);
    nodes.nodes.start(OWN);
    let refused = nodes.until(OWN, "training-failed");
    let why = refused["reason"].as_str().unwrap();
    for part in [
        "rows.ledger is an older copy, or another one: this institution contributed to round ",
        "and it has no such line; put back the newest copy of it, or, where there is none, add the line with `rota \
         ledger reconcile`",
    ] {
        assert!(why.contains(part), "{why}");
    }
    let seen = sees(nodes, &name(config), (last, 3), false);
    // Without its journal it listens first.
    for _ in 0..8 {
        if sent_after(config, last, &VOTES) > votes {
            break;
        }
        nodes.until(OWN, "final");
    }
    let status = flat(&good(&["status", "--config", config.to_str().unwrap()]));
    let sentence = "rows.ledger is an older copy, or another one";
    assert!(status.contains(sentence), "{status}");
    nodes.nodes.terminate(OWN);
    assert_eq!(nodes.nodes.code(OWN), 0);
    assert_eq!(sent_after(config, last, &OF_AUTHORS), 0, "after {last}");
    assert!(sent_after(config, last, &VOTES) > votes, "it votes");
    seen
}

#[test]
fn an_older_ledger_is_noticed_and_rounds_run_without_its_owner() {
    let demo = long_noised("run-ledger-older");
    let config = &demo.configs[OWN];
    let (own, file) = (name(config), config.with_file_name("rows.ledger"));
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    sees(&mut nodes, &own, (0, 1), true);
    nodes.nodes.kill(OWN);
    let (older, known) = (fs::read(&file).unwrap(), last_line(config));
    nodes.nodes.start(OWN);
    sees(&mut nodes, &own, (known, 2), true);
    nodes.nodes.kill(OWN);
    let newest = fs::read(&file).unwrap();
    assert!(newest.len() > older.len());
    let (lines, last) = (ledger(config), last_line(config));
    fs::write(&file, &older).unwrap();
    let seen = sits_out(&mut nodes, &demo, last);
    assert_eq!(fs::read(&file).unwrap(), older, "no line was written");
    // With the newest one it takes part again.
    fs::write(&file, &newest).unwrap();
    nodes.nodes.start(OWN);
    sees(&mut nodes, &own, (seen, 1), true);
    nodes.nodes.kill(OWN);
    let after = ledger(config);
    assert_eq!(after[..lines.len()], lines[..]);
    let rounds: BTreeSet<_> = after.iter().map(|line| line["round"].as_u64()).collect();
    assert_eq!(rounds.len(), after.len(), "one line a round: {after:?}");
}

#[test]
fn a_new_ledger_with_a_lost_journal_is_noticed_by_others_chains() {
    let demo = long_noised("run-ledger-lost");
    let config = &demo.configs[OWN];
    let (own, file) = (name(config), config.with_file_name("rows.ledger"));
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    sees(&mut nodes, &own, (0, 2), true);
    nodes.nodes.kill(OWN);
    let (last, before) = (last_line(config), ledger(config));
    fs::remove_file(&file).unwrap();
    fs::remove_file(config.with_file_name("state").join("journal.redb")).unwrap();
    // Without a ledger it votes as soon as that is safe, and says what is missing.
    let mut lost = Heard::of(&demo.configs[OWN..], &["--journal-lost"]);
    lost.nodes.start(0);
    let missing = "rows.ledger is missing: put it back, or, only if nothing was ever contributed from this \
                   source, make one with `rota ledger new`";
    while !lost.until(0, "waiting")["why"]
        .as_str()
        .unwrap()
        .contains(missing)
    {}
    lost.nodes.terminate(0);
    assert_eq!(lost.nodes.code(0), 0);
    // The institution makes one all the same.
    let new = ["ledger", "new", "rows", "--unit", "row", "--config"];
    good(&[&new[..], &[config.to_str().unwrap()]].concat());
    let seen = sits_out(&mut nodes, &demo, last);
    assert_eq!(ledger(config), [Value::Null; 0]);
    // The contributions that the final rounds of the others show are added, and the institution takes part again.
    let reconcile = ["ledger", "reconcile", "--config", config.to_str().unwrap()];
    let asked = output(&reconcile);
    assert!(
        flat(&text(&asked.stderr)).contains("add --yes"),
        "{asked:?}"
    );
    let said = flat(&good(&[&reconcile[..], &["--yes"]].concat()));
    let added = ledger(config);
    let rounds: Vec<_> = added
        .iter()
        .map(|line| line["round"].as_u64().unwrap())
        .collect();
    assert_eq!(rounds, shown(config, &own));
    // A contribution that it had prepared when it was killed may be in no final round.
    let known: BTreeSet<_> = before
        .iter()
        .map(|line| line["round"].as_u64().unwrap())
        .collect();
    assert!(
        rounds.len() > 1 && rounds.iter().all(|round| known.contains(round)),
        "{rounds:?}"
    );
    assert_eq!(
        added.last().unwrap()["epsilon"],
        before[rounds.len() - 1]["epsilon"]
    );
    for part in ["known of other members alone", "is not: nobody opened it"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(good(&reconcile).contains("nothing was added"));
    nodes.nodes.start(OWN);
    sees(&mut nodes, &own, (seen, 1), true);
    nodes.nodes.kill(OWN);
}

/// The rounds in which the chain of a node shows an institution.
fn shown(config: &Path, own: &str) -> Vec<u64> {
    let chain = good(&["chain", "--json", "--config", config.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let links = chain["blocks"].as_array().unwrap().iter();
    let of = links.filter(|link| {
        link["included"]
            .as_array()
            .unwrap()
            .iter()
            .any(|by| by == own)
    });
    of.filter_map(|link| link["round"].as_u64()).collect()
}
