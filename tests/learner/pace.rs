//! What a silo that gives nothing costs the others: rounds per minute of real nodes, side by side.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Child;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::federations::{rota, rota_run, start, text};
use super::one::{TENSORS, command};

/// Rounds of each federation: enough that the few waits for a silo, each after twice as many rounds as the
/// one before, are a small share.
const ROUNDS: usize = 400;

/// Three nodes whose programs behave so, at ports of their own, with short beats. Gives their
/// configurations.
fn nodes(how: &str, nth: u32) -> Vec<PathBuf> {
    let name = format!("pace-{how}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}"));
    let _ = fs::remove_dir_all(&folder);
    let scenario = folder.with_extension("toml");
    let text_of = format!(
        "name = 'pace'
rounds = {ROUNDS}
seed = 1
charter = {{ beat = '50ms', patience = 8 }}
task.external = {{ {} }}

[strategy]
name = 'fedavg'
training = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.2 }} }}

[learner]
command = {:?}
",
        TENSORS.replace('\n', " "),
        command(how, &name)
    );
    fs::write(&scenario, text_of).unwrap();
    let port = (12_000 + std::process::id() % 900 * 16 + 3 * nth).to_string();
    let (folder, scenario) = (folder.to_str().unwrap(), scenario.to_str().unwrap());
    let output = rota(&[
        "federation",
        "demo",
        folder,
        "--scenario",
        scenario,
        "--silos",
        "3",
        "--base-port",
        &port,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let configs = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("rota run --config "));
    configs.map(PathBuf::from).collect()
}

/// When each round became final at this node, in seconds.
fn finals(lines: &str) -> Vec<f64> {
    let events = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finals = events.filter(|event| event["event"] == "final");
    finals.map(|event| event["at"].as_f64().unwrap()).collect()
}

/// The lines that a node prints, read as they come.
fn heard(node: &mut Child) -> JoinHandle<String> {
    let mut out = node.stdout.take().unwrap();
    thread::spawn(move || {
        let mut lines = String::new();
        out.read_to_string(&mut lines).unwrap();
        lines
    })
}

/// A federation of three whose second silo fails at every training, is always late, or has no rows makes as
/// many rounds a minute as one in which all three train, but for a tenth. All four run at the same time, so
/// that a machine that does other work slows all of them down. Nobody reads what they write to standard
/// error, a warning in every round: a full pipe holds no node up.
pub(crate) fn a_silo_that_gives_nothing_costs_the_others_less_than_a_tenth_of_their_pace() {
    let federations = ["well", "unable", "late", "empty"];
    let configs: Vec<_> = federations
        .iter()
        .zip(0..)
        .map(|(how, nth)| nodes(how, nth))
        .collect();
    let started: Vec<Vec<_>> = configs
        .iter()
        .map(|nodes| nodes.iter().map(|config| start(rota_run(config))).collect())
        .collect();
    let started: Vec<Vec<_>> = started
        .into_iter()
        .map(|nodes| {
            let heard = |mut node: Child| (heard(&mut node), node);
            nodes.into_iter().map(heard).collect()
        })
        .collect();
    let ended = started.into_iter().map(|nodes| {
        let outputs = nodes.into_iter().map(|(lines, mut node)| {
            let lines = lines.join().unwrap();
            assert!(node.wait().unwrap().success());
            finals(&lines)
        });
        let all: Vec<Vec<f64>> = outputs.collect();
        assert!(all.iter().all(|finals| finals.len() == ROUNDS));
        all[0].clone()
    });
    let finals: Vec<Vec<f64>> = ended.collect();
    // Until the first federation ended: afterwards the others have the machine for themselves.
    let until = finals
        .iter()
        .filter_map(|finals| finals.last().copied())
        .fold(f64::INFINITY, f64::min);
    let pace = |finals: &Vec<f64>| {
        let rounds = finals.iter().filter(|at| **at <= until).count();
        rounds as f64 * 60.0 / until
    };
    let paces: Vec<f64> = finals.iter().map(pace).collect();
    let said: Vec<_> = federations.iter().zip(&paces).collect();
    println!("rounds per minute: {said:?}");
    for (how, pace) in &said[1..] {
        assert!(**pace > 0.9 * paces[0], "{how}: {said:?}");
    }
}
