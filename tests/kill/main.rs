//! Real processes are killed by SIGKILL. No record may be lost, no member may sign contradictory
//! statements or adopt a round twice, whether the processes restart (here) or not (`forever`).
//!
//! Five `rota run` processes learn over loopback. Every second or two some of them, often the lead and
//! up to all, are killed at the same moment, and each restarts a little later. In the end every member holds all rounds of one chain.
//! Once with models that all see, once masked, where one federation follows another, each with another
//! seed, until 100 kills were survived. `ROTA_SOAK_KILLS` asks for more, `ROTA_SOAK_MINUTES` goes on for
//! that long, and `ROTA_SEED` chooses the first seed.

#![allow(clippy::unwrap_used)]

#[path = "../nodes/mod.rs"]
mod nodes;

mod forever;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use nodes::{Demo, TestNodes, scenario};
use rota::node::institution::Institution;
use rota::protocol::Hash;
use witness::Witness;

const SILOS: usize = 5;
const ROUNDS: u64 = 20;
/// Time within which all rounds must be final at all members.
const BOUND: Duration = Duration::from_secs(110);

/// A few hundred milliseconds of training a round, and a short heartbeat.
const SCENARIO: &str = "name = 'killed'
rounds = 20
silos = 5

[task.table]
data = 'diabetes'
standardise = 'federation'
split = { validation = 0.0, test = 0.3 }
model = { mlp = { hidden = [32] } }

[strategy]
name = 'cs-rcfl'
coalitions = 2
training = { epochs = 1000, batch = 8, optimiser = { name = 'sgd', rate = 0.005 } }

[protocol]
heartbeat = '100ms'
straggler-timeout = 10
";

/// Pseudorandom numbers from a seed.
struct KillDraws(u64);

impl KillDraws {
    fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.below(most - least))
    }
}

/// Results of one federation.
struct Survived {
    kills: usize,
    /// Kills of the lead of that moment.
    leads: usize,
    seconds: f64,
}

/// The same with secure-aggregation rounds: nobody's model is seen, and one silo that is down stops all.
const MASKED: &str = "name = 'masked'
rounds = 20
silos = 5

[task.table]
data = 'diabetes'
standardise = 'silo'
split = { validation = 0.0, test = 0.3 }
model = { mlp = { hidden = [32] } }

[privacy]
mode = 'secure-aggregation'

[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 1000, batch = 8, optimiser = { name = 'sgd', rate = 0.005 } }

[protocol]
heartbeat = '100ms'
straggler-timeout = 10
";

fn survive(text: &str, seed: u64) -> Survived {
    let name = if text == MASKED { "masked" } else { "killed" };
    let file = scenario(name, text);
    let (file, number) = (file.to_str().unwrap(), seed.to_string());
    let demo = Demo::new(name, &["--scenario", file, "--seed", &number]);
    // What a silo serves takes many trainings as long as these, and is not what is tested here.
    for config in &demo.configs {
        let text = fs::read_to_string(config).unwrap();
        assert!(!text.contains("[serve]"));
        fs::write(config, text + "\n[serve]\nfolds = 0\n").unwrap();
    }
    let names: Vec<_> = demo
        .configs
        .iter()
        .map(|config| {
            let institution = Institution::load(config).unwrap();
            institution
                .agreement
                .epoch
                .roster
                .name(institution.me)
                .to_owned()
        })
        .collect();
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    let mut draws = KillDraws(seed);
    let mut witnesses: Vec<_> = names.iter().map(|_| Witness::default()).collect();
    let began = Instant::now();
    let end = began + BOUND;
    (0..SILOS).for_each(|node| nodes.start(node));

    let mut survived = Survived {
        kills: 0,
        leads: 0,
        seconds: 0.0,
    };
    // The newest view that a node entered, and its lead.
    let mut newest = (0, 0);
    let mut adopted: Vec<BTreeMap<u64, String>> = vec![BTreeMap::new(); SILOS];
    let mut blocks = BTreeMap::<u64, String>::new();
    let mut done = BTreeSet::new();
    let mut next_kill = began + draws.millis(1000, 2000);
    // Nodes that were killed, with when they start again.
    let mut down: Vec<(usize, Instant)> = Vec::new();
    let mut finished = false;
    while done.len() < SILOS {
        let due = match down.iter().map(|(_, back)| *back).min() {
            Some(back) => back,
            None if finished => end,
            None => next_kill,
        };
        let Some(said) = nodes.next(due.min(end)) else {
            let now = Instant::now();
            assert!(
                now < end,
                "seed {seed}: not done after {BOUND:?}\n{}",
                nodes.tails()
            );
            if let Some(at) = down.iter().position(|(_, back)| *back <= now) {
                let (node, _) = down.swap_remove(at);
                nodes.start(node);
                if down.is_empty() {
                    next_kill = now + draws.millis(500, 1500);
                }
                continue;
            }
            // As many as there are, also at the same moment; the lead of that moment often among them.
            let mut all: Vec<_> = (0..SILOS).collect();
            let lead = draws.below(2) == 0;
            for count in (0..=draws.below(SILOS as u64)).rev() {
                let of_lead = all.iter().position(|node| lead && *node == newest.1);
                let drawn = || draws.below(all.len() as u64) as usize;
                let node = all.swap_remove(of_lead.unwrap_or_else(drawn));
                nodes.kill(node);
                survived.kills += 1;
                survived.leads += usize::from(node == newest.1);
                let context = format!("seed {seed}, {}, {count} more", names[node]);
                witnesses[node].read(&demo.configs[node], &context);
                down.push((node, now + draws.millis(50, 1000)));
            }
            continue;
        };
        let (node, line) = (said.node, &said.line);
        let number = |key: &str| line[key].as_u64().unwrap();
        let word = |key: &str| line[key].as_str().unwrap().to_owned();
        match line["event"].as_str() {
            Some("view") => {
                let lead = names.iter().position(|name| *name == word("lead")).unwrap();
                newest = newest.max((number("view"), lead));
            }
            Some("final") => {
                let block = blocks
                    .entry(number("round"))
                    .or_insert_with(|| word("block"));
                assert_eq!(
                    *block,
                    word("block"),
                    "seed {seed}: two blocks of round {}",
                    number("round")
                );
            }
            Some("adopted") => {
                let again = adopted[node].insert(number("round"), word("outcome"));
                assert_eq!(
                    again, None,
                    "seed {seed}: {} adopted a round twice",
                    names[node]
                );
            }
            // From now on no node is killed, and nodes that are done end.
            Some("finished") => finished = true,
            Some("fault") => panic!("seed {seed}: {line}\n{}", nodes.tails()),
            // Its output ended, and it was not killed.
            _ if line.is_null()
                && said.start == nodes.starts[node]
                && nodes.children[node].is_some() =>
            {
                let code = nodes.code(node);
                assert_eq!(code, 0, "seed {seed}: {}\n{}", names[node], nodes.tails());
                done.insert(node);
            }
            _ => {}
        }
    }
    survived.seconds = began.elapsed().as_secs_f64();
    for (node, witness) in witnesses.iter_mut().enumerate() {
        let context = format!("seed {seed}, {}", names[node]);
        witness.read(&demo.configs[node], &context);
        witness.check(&context, ROUNDS);
        for (round, outcome) in &adopted[node] {
            let block = Hash::to_string(&witness.rounds[round].1);
            assert!(
                outcome.starts_with(&block),
                "{context}: outcome of round {round}"
            );
        }
    }
    // What any node ever called final is in every journal.
    for (round, said) in &blocks {
        for (node, witness) in witnesses.iter().enumerate() {
            let held = Hash::to_string(&witness.rounds[round].0);
            assert!(
                said.starts_with(&held),
                "seed {seed}: {} lost the final block {said} of round {round}, it holds {held}",
                names[node]
            );
        }
    }
    for pair in witnesses.windows(2) {
        assert_eq!(pair[0].blocks, pair[1].blocks, "seed {seed}: one chain");
        assert_eq!(
            pair[0].rounds, pair[1].rounds,
            "seed {seed}: the same outcomes"
        );
    }
    for config in &demo.configs {
        let institution = Institution::load(config).unwrap();
        assert_eq!(
            secrets(&institution.state),
            0,
            "seed {seed}: {}",
            config.display()
        );
    }
    survived
}

/// Blobs that a silo keeps to itself for a secure-aggregation round.
fn secrets(state: &Path) -> usize {
    let blobs = fs::read_dir(state.join("blobs")).unwrap();
    let blobs = blobs
        .map(|blob| blob.unwrap().path())
        .filter(|blob| blob.is_file());
    blobs
        .filter(|blob| fs::read(blob).unwrap().starts_with(b"rota prepared"))
        .count()
}

#[test]
fn restarted_processes_finish_one_chain() {
    restarted(SCENARIO, 1);
}

#[test]
fn restarted_processes_finish_their_masked_rounds_and_keep_no_secret() {
    restarted(MASKED, 100);
}

/// Runs one federation after another until this number of kills, or more, was survived.
fn restarted(text: &str, kills: u64) {
    let number = |name: &str| {
        env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let first = number("ROTA_SEED").unwrap_or(1);
    let minutes = number("ROTA_SOAK_MINUTES").unwrap_or(0);
    let wanted = number("ROTA_SOAK_KILLS").unwrap_or(kills);
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let (mut all, mut all_leads, mut rounds) = (0, 0, 0);
    for seed in first.. {
        let Survived {
            kills,
            leads,
            seconds,
        } = survive(text, seed);
        println!("seed {seed}: {kills} kills, {leads} of leads, {ROUNDS} rounds in {seconds:.1} s");
        (all, all_leads, rounds) = (all + kills, all_leads + leads, rounds + ROUNDS);
        assert!(
            kills > 0,
            "no node was killed: the rounds are too fast for this test"
        );
        if Instant::now() >= end && all as u64 >= wanted {
            break;
        }
    }
    println!(
        "{all} kills, {all_leads} of leads, {rounds} rounds at {SILOS} processes: no final block lost, no \
         vote contradicted, no outcome adopted twice"
    );
}
