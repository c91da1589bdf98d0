//! One institution's node as its operator runs it: its files, its output and its end.

#![allow(clippy::unwrap_used)]

mod amended;
mod approvals;
mod asked;
mod backup;
mod blamed;
mod decided;
mod doubled;
mod evicted;
mod examined;
mod figures;
mod given_up;
mod grown;
#[path = "../nodes/heard.rs"]
mod heard;
mod hospitals;
mod join;
mod late;
mod masked;
mod model;
#[path = "../nodes/mod.rs"]
mod nodes;
mod noised;
mod policy;
mod put_back;
mod rare;
mod recovered;
mod redone;
mod refusals;
mod regrouped;
mod rehearsed;
mod said;
#[path = "../skipped/mod.rs"]
mod skipped;
mod status;
#[path = "../nodes/stays.rs"]
mod stays;
mod storage;
mod undone;
mod verify;
mod year;

use std::fs::{self, File};
use std::io::Read;
use std::net::UdpSocket;
#[cfg(unix)]
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use ::rota::node::institution::Institution;
use ::rota::node::store::{self, DiskJournal, Owner};
use ::rota::protocol::Hash;
use ::rota::silo::JournalRecord;
use nodes::{Demo, TestNodes, good, log, nowhere, output, overwrite, rota, scenario, text};
use serde_json::Value;

/// The journal of a node that is down.
fn journal_of(config: &Path) -> DiskJournal {
    let institution = Institution::load(config).unwrap();
    let owner = Owner {
        federation: institution.agreement.epoch.federation,
        me: institution.me,
        key: institution.key.clone(),
    };
    DiskJournal::open(&institution.state, &owner).unwrap()
}

/// Null training with a short heartbeat.
const QUICK: &str = "name = 'quick'
rounds = 3
silos = 4
task = { constant = { parameters = 100 } }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
[protocol]
heartbeat = '100ms'
straggler-timeout = 20
";

/// A federation of `silos` with null training.
fn quick(name: &str, silos: usize) -> Demo {
    let file = scenario(name, QUICK);
    let silos = silos.to_string();
    Demo::new(
        name,
        &["--scenario", file.to_str().unwrap(), "--silos", &silos],
    )
}

/// Exit code and log of `rota run --until-done` on a configuration.
fn run(config: &Path) -> (i32, String) {
    let output = output(&["run", "--until-done", "--config", config.to_str().unwrap()]);
    (output.status.code().unwrap(), text(&output.stderr))
}

/// Signs the agreement that a configuration names.
fn sign(config: &Path) {
    let config = config.to_str().unwrap();
    good(&["federation", "sign", "--yes", "--config", config]);
}

/// Changes the text of a file.
fn edit(file: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(file).unwrap();
    assert!(before.contains(from), "{from:?} is in {}", file.display());
    fs::write(file, before.replacen(from, to, 1)).unwrap();
}

/// The number of the line that contains a text.
fn line_of(file: &Path, of: &str) -> usize {
    let text = fs::read_to_string(file).unwrap();
    text.lines().position(|line| line.contains(of)).unwrap() + 1
}

#[test]
fn an_identity_is_made_once_and_shown() {
    let folder = nowhere("run-identity");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("a.key");
    let file = file.to_str().unwrap();
    let made = good(&["identity", "new", "--out", file]);
    assert_eq!(made.trim().len(), 64);
    assert_eq!(good(&["identity", "show", file]), made);
    let again = output(&["identity", "new", "--out", file]);
    assert_eq!(again.status.code(), Some(2));
    let said = text(&again.stderr);
    assert!(said.contains("a.key exists already"), "{said}");
    assert_eq!(good(&["identity", "show", file]), made);
}

#[test]
fn a_demo_follows_from_its_seed_and_never_overwrites() {
    let one = Demo::new("run-demo-1", &["--silos", "3"]);
    let two = Demo::new("run-demo-2", &["--silos", "3", "--transport", "tcp"]);
    let other = Demo::new("run-demo-3", &["--silos", "3", "--seed", "9"]);
    assert_eq!((one.id.len(), one.configs.len()), (64, 3));
    assert_eq!(one.id, two.id);
    assert_ne!(one.id, other.id);
    for config in &one.configs {
        let rows = fs::read_to_string(config.with_file_name("rows.csv")).unwrap();
        assert!(rows.starts_with("age,sex,bmi"), "{rows}");
        assert!(fs::read_to_string(config).unwrap().contains("/quic-v1"));
    }
    let tcp = fs::read_to_string(&two.configs[0]).unwrap();
    assert!(tcp.contains("/tcp/") && !tcp.contains("/udp/"));
    let again = output(&["federation", "demo", one.folder.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("is not empty"));
    let few = output(&[
        "federation",
        "demo",
        "run-demo-4",
        "--base-port",
        "65535",
        "--silos",
        "2",
    ]);
    assert_eq!(few.status.code(), Some(2));
    assert!(text(&few.stderr).contains("port 65536 is not free"));
}

/// The outcomes of all rounds that each node printed.
fn outcomes(nodes: &mut TestNodes, rounds: usize) -> Vec<Vec<String>> {
    let count = nodes.configs.len();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let mut all = vec![Vec::new(); count];
    let mut ended = 0;
    while ended < count {
        let Some(said) = nodes.next(end) else {
            panic!("not done after 60 s\n{}", nodes.tails());
        };
        if said.line.is_null() {
            ended += 1;
        } else if said.line["event"] == "adopted" {
            assert_eq!(said.line["round"], all[said.node].len() as u64 + 1);
            all[said.node].push(said.line["outcome"].as_str().unwrap().to_owned());
        }
    }
    for (node, outcomes) in all.iter().enumerate() {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
        assert_eq!(outcomes.len(), rounds, "{}", nodes.tails());
    }
    all
}

#[test]
fn processes_reach_the_outcomes_of_the_simulation() {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let file = scenario(
        "run-diabetes",
        // As in the agreement of a demo.
        &text.replace(
            "heartbeat = \"5s\"",
            "heartbeat = \"100ms\"\nrows-declared = true",
        ),
    );
    let file = file.to_str().unwrap();
    for (name, transport) in [("run-quic", "quic"), ("run-tcp", "tcp")] {
        let options = ["--silos", "4", "--rounds", "4"];
        let more = ["--transport", transport, "--scenario", file];
        let demo = Demo::new(name, &[&options[..], &more].concat());
        let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
        (0..4).for_each(|node| nodes.start(node));
        let all = outcomes(&mut nodes, 4);
        let simulated = good(
            &[
                &["simulate", file, "--json", "--quiet", "--no-references"],
                &options[..],
            ]
            .concat(),
        );
        let simulated: Value = serde_json::from_str(&simulated).unwrap();
        let rounds = simulated["rounds"].as_array().unwrap();
        let expected: Vec<_> = rounds
            .iter()
            .map(|round| round["outcome"].as_str().unwrap())
            .collect();
        for own in all {
            assert_eq!(own, expected, "{}", nodes.tails());
        }
    }
}

#[test]
fn the_text_output_has_a_line_per_round() {
    let demo = quick("run-people", 1);
    let config = demo.configs[0].to_str().unwrap();
    let said = good(&["run", "--until-done", "--config", config]);
    let rounds: Vec<_> = said
        .lines()
        .filter_map(|line| line.split_once("Z  "))
        .filter(|(_, line)| line.starts_with("round "))
        .collect();
    let times = rounds.iter().map(|(time, _)| format!("{time}Z"));
    for time in times {
        assert!(humantime::parse_rfc3339(&time).is_ok(), "{time}");
    }
    let rounds: Vec<_> = rounds.into_iter().map(|(_, line)| line).collect();
    assert_eq!(rounds.len(), 3, "{said}");
    assert!(
        rounds[0].contains("lead silo 1") && rounds[0].contains("loss 0.0"),
        "{said}"
    );
    assert!(said.contains("all 3 rounds are done"), "{said}");
    // A second run has nothing left to do.
    let again = good(&["run", "--until-done", "--config", config]);
    assert!(!again.contains("Z  round "), "{again}");
    assert!(
        again.contains("resuming after round 3, coalition 1 of 1"),
        "{again}"
    );
    assert!(again.contains("all 3 rounds are done"), "{again}");
}

#[test]
fn a_signal_ends_a_node_in_order() {
    let demo = quick("run-signal", 2);
    let mut nodes = TestNodes::new(&demo.configs, &[]);
    (0..2).for_each(|node| nodes.start(node));
    nodes.until(1, "finished", 30);
    // Without --until-done the node continues to serve the others.
    nodes.terminate(0);
    let leaving = nodes.until(0, "leaving", 10);
    assert_eq!(leaving["why"], "SIGTERM");
    assert_eq!(
        nodes.until(0, "stopped", 10)["reason"],
        "the silo was stopped"
    );
    assert_eq!(nodes.code(0), 0);
    let down = nodes.until(1, "peer-down", 10);
    assert_eq!(down["member"], "silo 1");
}

#[test]
fn a_member_that_starts_late_catches_up_from_finished_members() {
    let demo = quick("run-late", 4);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..3).for_each(|node| nodes.start(node));
    nodes.until(0, "finished", 30);
    nodes.start(3);
    nodes.until(3, "finished", 30);
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
}
