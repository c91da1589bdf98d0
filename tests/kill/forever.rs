//! Processes that are killed and never come back: the others finish on one chain.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rota::node::institution::Institution;

use crate::KillDraws;
use crate::nodes::{Demo, TestNodes, good, scenario};
use crate::witness::Witness;

/// A scenario with models of 4 bytes times `parameters` and no learning.
fn federation(name: &str, silos: usize, rounds: u64, parameters: u64, training: &str) -> String {
    format!(
        "name = '{name}'
rounds = {rounds}
silos = {silos}
task = {{ constant = {{ parameters = {parameters} }} }}
[strategy]
name = 'fedavg'
training = {{ {training}, batch = 0, optimiser = {{ name = 'sgd', rate = 0.1 }} }}
[protocol]
heartbeat = '200ms'
straggler-timeout = 20
"
    )
}

/// Runs a federation in which `f` processes are killed for good, one after another: each time the
/// lead of that moment, some time into its view.
fn outlive(name: &str, text: &str, silos: usize, f: usize, bound: Duration, views: Duration) {
    let file = scenario(name, text);
    let demo = Demo::new(name, &["--scenario", file.to_str().unwrap()]);
    let names: Vec<_> = demo
        .configs
        .iter()
        .map(|config| {
            let institution = Institution::load(config).unwrap();
            let roster = &institution.agreement.epoch.roster;
            roster.name(institution.me).to_owned()
        })
        .collect();
    let mut nodes = TestNodes::new(&demo.configs, &[]);
    let mut draws = KillDraws(7);
    let end = Instant::now() + bound;
    (0..silos).for_each(|node| nodes.start(node));
    let (mut newest, mut dead, mut finished) = ((0, 0), Vec::new(), Vec::new());
    let mut strike: Option<Instant> = None;
    let mut finals = 0;
    while finished.len() + dead.len() < silos {
        let due = strike.unwrap_or(end).min(end);
        let Some(said) = nodes.next(due) else {
            assert!(
                Instant::now() < end,
                "not done after {bound:?}\n{}",
                nodes.tails()
            );
            strike = None;
            let (_, lead) = newest;
            if !dead.contains(&lead) && !finished.contains(&lead) {
                nodes.kill(lead);
                dead.push(lead);
            }
            continue;
        };
        let (node, line) = (said.node, &said.line);
        match line["event"].as_str() {
            Some("view") => {
                let lead = names
                    .iter()
                    .position(|name| line["lead"] == **name)
                    .unwrap();
                newest = newest.max((line["view"].as_u64().unwrap(), lead));
            }
            Some("final") => {
                finals = finals.max(line["round"].as_u64().unwrap());
                // After its first final round, and again after every second one.
                if dead.len() < f && strike.is_none() && finals > 2 * dead.len() as u64 {
                    let within = draws.below(views.as_millis() as u64);
                    strike = Some(Instant::now() + Duration::from_millis(within));
                }
            }
            Some("finished") => finished.push(node),
            Some("fault") => panic!("{line}\n{}", nodes.tails()),
            _ => {
                let ended = line.is_null() && !dead.contains(&node);
                assert!(!ended, "{} ended\n{}", names[node], nodes.tails());
            }
        }
    }
    assert_eq!(dead.len(), f, "the rounds are too fast for this test");
    (0..silos).for_each(|node| nodes.kill(node));
    let (mut blocks, mut chain) = (BTreeMap::new(), String::new());
    let mut all: Vec<_> = (0..silos).collect();
    all.sort_by_key(|node| dead.contains(node));
    for node in all {
        let mut witness = Witness::default();
        witness.read(&demo.configs[node], &names[node]);
        if dead.contains(&node) {
            // The chain of a killed node is a prefix of the others' chain.
            let known = |(view, block)| blocks.get(view) == Some(block);
            assert!(witness.blocks.iter().all(known), "{}", names[node]);
            continue;
        }
        let rounds = witness.rounds.keys().next_back().copied().unwrap_or(0);
        witness.check(&names[node], rounds);
        // The same chains as `rota chain` prints them.
        let state = Institution::load(&demo.configs[node])
            .unwrap()
            .configured
            .state;
        let printed = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
        if blocks.is_empty() {
            (blocks, chain) = (witness.blocks, printed);
        } else {
            assert_eq!(blocks, witness.blocks, "{}: one chain", names[node]);
            assert_eq!(chain, printed, "{}: one chain, printed", names[node]);
        }
    }
    // Models of forty megabytes are much to leave behind.
    std::fs::remove_dir_all(&demo.folder).unwrap();
}

#[test]
fn with_a_lead_that_never_returns_the_others_finish_one_chain() {
    let text = federation("forever", 4, 8, 100, "epochs = 2000");
    let bound = Duration::from_secs(60);
    outlive("forever", &text, 4, 1, bound, Duration::from_millis(300));
}

#[test]
fn with_two_of_seven_leads_gone_the_others_finish_one_chain() {
    let text = federation("forever-seven", 7, 10, 100, "epochs = 2000");
    let bound = Duration::from_secs(90);
    outlive(
        "forever-seven",
        &text,
        7,
        2,
        bound,
        Duration::from_millis(300),
    );
}

#[test]
fn with_models_of_forty_megabytes_the_others_finish_one_chain() {
    let text = federation("forever-large", 4, 5, 10_000_000, "epochs = 1");
    let bound = Duration::from_secs(240);
    outlive(
        "forever-large",
        &text,
        4,
        1,
        bound,
        Duration::from_millis(1500),
    );
}
