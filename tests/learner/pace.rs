//! What a silo that gives nothing costs the others: rounds per minute of real nodes, side by side.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::Child;
use std::thread::{self, JoinHandle};

use serde_json::Value;

use super::federations::{rota, rota_run, start, text};
use super::one::{TENSORS, command};

/// Rounds of each federation, or as many as `ROTA_PACE_ROUNDS` says: docs/reliability.md has what they gave.
/// The others wait for a silo in ever fewer rounds, so that few rounds show more of it.
fn rounds() -> usize {
    let asked = std::env::var("ROTA_PACE_ROUNDS").ok();
    asked.map_or(50, |rounds| rounds.parse().unwrap())
}

/// Three nodes whose programs behave so, at ports of their own, with short heartbeats. Gives their
/// configurations.
fn nodes(how: &str, nth: u32, rounds: usize) -> Vec<PathBuf> {
    let name = format!("pace-{how}");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}"));
    let _ = fs::remove_dir_all(&folder);
    let scenario = folder.with_extension("toml");
    let text_of = format!(
        "name = 'pace'
rounds = {rounds}
seed = 1
protocol = {{ heartbeat = '50ms', straggler-timeout = 8 }}
task.external = {{ {} }}

[strategy]
name = 'fedavg'
training = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.2 }} }}

[learner]
command = {:?}
",
        TENSORS.replace('\n', " "),
        command(&format!("slow-{how}"), &name)
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

/// Returns when each round became final at this node, in seconds.
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

/// A federation of three whose second silo fails at every training, is always late, or has no rows makes
/// nearly as many rounds a minute as one in which all three train. All four run at the same time, so
/// that a machine that does other work slows all of them down. Nobody reads what they write to standard
/// error, a warning in every round: a full pipe holds no node up.
pub(crate) fn a_silo_that_gives_nothing_hardly_slows_the_others_down() {
    let rounds = rounds();
    let federations = ["well", "unable", "late", "empty"];
    let configs: Vec<_> = federations
        .iter()
        .zip(0..)
        .map(|(how, nth)| nodes(how, nth, rounds))
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
        assert!(all.iter().all(|finals| finals.len() == rounds));
        all[0].clone()
    });
    let finals: Vec<Vec<f64>> = ended.collect();
    // Until the first federation ended: afterwards the others have the machine for themselves.
    let until = finals
        .iter()
        .filter_map(|finals| finals.last().copied())
        .fold(f64::INFINITY, f64::min);
    let pace = |finals: &Vec<f64>| {
        let from = finals[0];
        let done = finals.iter().filter(|at| **at <= until).count() - 1;
        done as f64 * 60.0 / (until - from)
    };
    let paces: Vec<f64> = finals.iter().map(pace).collect();
    let said: Vec<_> = federations.iter().zip(&paces).collect();
    println!("rounds per minute: {said:?}");
    // A tenth, and another one for a machine that does other work in the few seconds of few rounds.
    let least = if rounds < 200 { 0.8 } else { 0.9 };
    for (how, pace) in &said[1..] {
        assert!(**pace > least * paces[0], "{how}: {said:?}");
    }
}
