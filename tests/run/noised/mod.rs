//! Four institutions learn from sums with noise: what is said before, what their ledgers hold afterwards,
//! and what a kill in the middle of a round leaves of both.

mod amended;
mod counted;
mod once;
mod put_back;
mod silent;

use std::collections::{BTreeMap, BTreeSet};

use ::rota::silo::Journal;

use super::heard::Heard;
use super::*;

const ROUNDS: u64 = 6;

/// A small model and a short heartbeat.
pub(super) const NOISED: &str = "name = 'noised'
rounds = 6
silos = 4
[task.table]
data = 'diabetes'
standardise = 'none'
model = { linear = { loss = 'squared' } }
split = { keyed = true }
[privacy]
mode = 'differential-privacy'
epsilon = 2.0
clipping-norm = 1.0
min-authors = 3
colluders = 1
[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
[protocol]
heartbeat = '100ms'
keep-rounds = 20
";

/// A federation of a scenario, each node with a ledger of its own.
fn noised(name: &str, text: &str) -> Demo {
    let file = scenario(name, text);
    Demo::new(name, &["--scenario", file.to_str().unwrap()])
}

/// The same of institutions that agree on rounds of all of them only, so that each has a line for every round.
fn of_all(name: &str, text: &str) -> Demo {
    let demo = noised(name, text);
    let federation = demo.folder.join("federation.toml");
    edit(&federation, "min-authors = 3", "min-authors = 4");
    edit(
        &federation,
        "min-contributions = 3",
        "min-contributions = 4",
    );
    for config in &demo.configs {
        fs::remove_file(config.with_file_name("consent.toml")).unwrap();
        sign(config);
    }
    demo
}

/// A text without its line breaks.
pub(super) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The name of a node's institution.
fn name(config: &Path) -> String {
    let institution = Institution::load(config).unwrap();
    let roster = &institution.agreement.epoch.roster;
    roster.name(institution.me).to_owned()
}

/// The lines of the ledger of a node's source.
fn ledger(config: &Path) -> Vec<Value> {
    let said = good(&[
        "ledger",
        "show",
        "--json",
        "--config",
        config.to_str().unwrap(),
    ]);
    let said: Value = serde_json::from_str(&said).unwrap();
    said["contributions"].as_array().unwrap().clone()
}

/// Returns what a node that is down prepared for each round, by its journal: the hash of what it computed.
fn prepared(config: &Path) -> BTreeMap<u64, Vec<String>> {
    let mut journal = journal_of(config);
    let mut rounds: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for record in journal.load().unwrap() {
        if let JournalRecord::Prepared { round, blob, .. } = record {
            let blob = format!("{:#}", Hash(blob));
            rounds.entry(round).or_default().push(blob);
        }
    }
    rounds
}

/// The two numbers of a federation, from the sentence that has both.
fn numbers(page: &str) -> (String, String) {
    let said = page.split_once("rounds together: epsilon ");
    let said = said.or_else(|| page.split_once("the only round: epsilon "));
    let (_, said) = said.unwrap();
    let (epsilon, said) = said.split_once(" and epsilon_alone ").unwrap();
    let (alone, _) = said
        .split_once(", both at delta 1e-5, for one row")
        .unwrap();
    (epsilon.to_owned(), alone.to_owned())
}

/// Both pages say what leaves, who learns what, both numbers, when it stops, and what the officer reads.
fn told_before_the_first_round(demo: &Demo) -> (String, String) {
    let federation = demo.folder.join("federation.toml");
    let config = demo.configs[1].to_str().unwrap();
    let shown = good(&["federation", "show", federation.to_str().unwrap()]);
    let check = text(&output(&["check", "--offline", "--config", config]).stdout);
    let (epsilon, alone) = numbers(&flat(&shown));
    assert_ne!(epsilon, alone);
    for page in [flat(&shown), flat(&check)] {
        assert_eq!(numbers(&page), (epsilon.clone(), alone.clone()));
        for sentence in [
            "in each of 6 rounds, one gradient of 11 numbers: the sum over its training rows",
            "one sum a round of all institutions that are ready, of at least 4 institutions",
            "epsilon assumes that at most 1 member is curious and no two members collude",
            "experimental: not reviewed by a cryptographer",
            "When it stops: after the 6 rounds that are agreed on",
            "For the data protection officer: What leaves us in a round looks like random numbers to everybody. \
             Only the sum over at least 4 institutions is opened",
            &format!(
                " (e^{epsilon}) times as likely, except with probability about 1 in 100,000, as long as at most 1 \
                 institution is curious"
            ),
            &format!(" (e^{alone}): epsilon is {epsilon}, and epsilon_alone is {alone}"),
        ] {
            assert!(page.contains(sentence), "{sentence}: {page}");
        }
    }
    let check = flat(&check);
    let room = "the ledger here has room for all of the 6 rounds to come";
    assert!(check.contains(room), "{check}");
    (epsilon, alone)
}

/// Every ledger has one line for each round, and the last one has the bound that was announced.
fn one_line_a_round(demo: &Demo, (epsilon, alone): &(String, String)) {
    for config in &demo.configs {
        let lines = ledger(config);
        let rounds: Vec<_> = lines
            .iter()
            .map(|line| line["round"].as_u64().unwrap())
            .collect();
        assert_eq!(
            rounds,
            (1..=ROUNDS).collect::<Vec<_>>(),
            "{}",
            config.display()
        );
        let said = good(&["ledger", "show", "--config", config.to_str().unwrap()]);
        for round in 1..=ROUNDS {
            let line = format!("epoch 0, round {round}: z ");
            assert_eq!(said.matches(&line).count(), 1, "{said}");
        }
        let last = lines.last().unwrap();
        let both = (
            last["epsilon"].as_str().unwrap(),
            last["epsilon-alone"].as_str().unwrap(),
        );
        assert_eq!(both, (&epsilon[..], &alone[..]), "{said}");
    }
}

#[test]
fn four_institutions_learn_with_noise_and_a_kill_in_a_round_costs_no_line_and_no_second_draw() {
    let demo = of_all("run-noised", NOISED);
    let announced = told_before_the_first_round(&demo);
    let mut nodes = Heard::of(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    // One dies when it has its gradients, one when it sees a sum that is final and not adopted yet.
    let mut before = Vec::new();
    for (node, event, round) in [(1, "work-ends", 2), (3, "final", 4)] {
        let mut adopted = 0;
        loop {
            let line = nodes.next(node, event);
            match line["event"].as_str() {
                Some("adopted") => adopted = line["round"].as_u64().unwrap(),
                Some("work-ends") if line["work"] != "prepare" => {}
                Some(heard) if heard == event && adopted + 1 == round => break,
                _ => {}
            }
        }
        nodes.nodes.kill(node);
        before.push((
            node,
            prepared(&demo.configs[node]),
            ledger(&demo.configs[node]),
        ));
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        assert_eq!(nodes.nodes.code(node), 0, "{}", nodes.nodes.tails());
    }
    one_line_a_round(&demo, &announced);
    // What was computed before a kill is what the ledger has, and what was in the ledger still is.
    let mut known = 0;
    for (node, prepared, lines) in before {
        let after = ledger(&demo.configs[node]);
        assert_eq!(after[..lines.len()], lines[..]);
        for (round, blobs) in prepared {
            let line = after.iter().find(|line| line["round"] == round).unwrap();
            assert_eq!(
                blobs,
                [line["commitment"].as_str().unwrap()],
                "round {round}"
            );
            known += 1;
        }
    }
    assert!(known > 0, "no kill was after a draw");
}

/// The kinds of messages that only an author of a round sends.
const OF_AUTHORS: [&str; 4] = ["Contribution", "Keys", "MaskedVector", "Inclusion"];

/// The kinds of messages with which a node votes on the blocks and outcomes of rounds.
const VOTES: [&str; 3] = ["Notarize", "Finalize", "Outcome"];

/// Returns what a node wrote down before it left: the events of its audit log.
fn sent(config: &Path) -> Vec<Value> {
    let folder = config.with_file_name("state").join("audit");
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|end| end == "jsonl"));
    let lines: String = files
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    // A kill may leave a part of a line.
    let lines = lines.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// The hashes of everything that a node keeps for others.
fn blobs(config: &Path) -> impl Iterator<Item = String> {
    let folder = config.with_file_name("state").join("blobs");
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|file| file.is_file());
    files.map(|file| format!("{:#}", Hash::of(&fs::read(file).unwrap())))
}

#[test]
fn a_node_whose_policy_refuses_votes_and_sends_nothing_of_its_own_while_rounds_go_on() {
    const REFUSED: usize = 4;
    let demo = noised(
        "run-noised-refused",
        &NOISED
            .replace("silos = 4", "silos = 5")
            .replace("min-authors = 3", "min-authors = 4"),
    );
    let refused = &demo.configs[REFUSED];
    let silo = fs::read_to_string(refused).unwrap();
    fs::write(refused, silo + "allowed-modes = ['clear']\n").unwrap();
    let mut nodes = Heard::of(&demo.configs, &["--until-done"]);
    nodes.nodes.start(REFUSED);
    nodes.until(REFUSED, "waiting");
    let status = flat(&good(&["status", "--config", refused.to_str().unwrap()]));
    let sentence = "takes part no: the institution's policy lets this node vote but not contribute: the rounds of \
                    this agreement are differential-privacy, and [policy] allows clear only (`allowed-modes`)";
    assert_eq!(status.matches(sentence).count(), 1, "{status}");
    (0..REFUSED).for_each(|node| nodes.nodes.start(node));
    for node in 0..=REFUSED {
        assert_eq!(nodes.nodes.code(node), 0, "{}", nodes.nodes.tails());
    }
    // It has all rounds, and is ready in none.
    let state = refused.with_file_name("state");
    let chain = good(&["chain", "--state", state.to_str().unwrap()]);
    let ready = chain.lines().map(str::trim_start);
    let ready: Vec<_> = ready.filter(|line| line.starts_with("ready ")).collect();
    assert_eq!(ready.len() as u64, ROUNDS, "{chain}");
    let name = name(refused);
    for line in ready {
        let (ready, left_out) = line.split_once("left out by ").unwrap();
        assert!(!ready.contains(&name) && left_out.contains(&name), "{line}");
    }
    assert_eq!(ledger(refused), [Value::Null; 0]);

    let kinds = |node: usize, of: &[&str]| {
        let sent = sent(&demo.configs[node]).into_iter();
        let kinds = sent.filter(|line| line["event"] == "message");
        let kinds = kinds.filter(|line| of.contains(&line["kind"].as_str().unwrap()));
        kinds.count()
    };
    for votes in VOTES {
        // The others are a quorum and need not wait for it, so it is late for some.
        assert!(kinds(REFUSED, &[votes]) > 0, "{votes}");
    }
    assert_eq!(kinds(REFUSED, &OF_AUTHORS), 0);
    assert!(kinds(0, &OF_AUTHORS) as u64 >= ROUNDS);
    // What it handed out is what others have made: models, lists, vectors and sums that it had fetched.
    let others: BTreeSet<_> = demo.configs[..REFUSED]
        .iter()
        .flat_map(|config| blobs(config))
        .collect();
    for line in sent(refused) {
        if line["event"] == "blob" {
            let hash = line["hash"].as_str().unwrap();
            assert!(others.contains(hash), "{line}");
        }
    }
}
