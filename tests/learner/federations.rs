//! Whole federations whose silos learn with programs: simulated, and of real nodes.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use super::one::{TENSORS, command, table};

fn rota(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A scenario in a file, with the strategy's options.
fn scenario(name: &str, learner: &str, task: &str, strategy: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}.toml"));
    let text = format!(
        "name = 'programs'
rounds = 4
seed = 1
charter = {{ beat = '300ms' }}

[strategy]
{strategy}
training = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.2 }} }}

[learner]
{learner}

{task}"
    );
    fs::write(&file, text).unwrap();
    file
}

fn simulate(file: &std::path::Path, options: &[&str]) -> Value {
    let arguments = [
        &["simulate", "--json", "--quiet", file.to_str().unwrap()],
        options,
    ]
    .concat();
    let output = rota(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn external() -> String {
    format!("[task.external]\n{TENSORS}")
}

pub(crate) fn a_simulation_survives_a_program_that_breaks() {
    for how in ["crash", "nan"] {
        let name = format!("simulated-{how}");
        let learner = format!("command = {:?}\nprograms = 1", command(how, &name));
        let file = scenario(&name, &learner, &external(), "name = 'fedavg'");
        let summary = simulate(&file, &["--silos", "5"]);
        let rounds = summary["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 4, "{how}");
        let failed = summary["training_failed"].as_array().unwrap();
        assert_eq!(failed.len(), 1, "{how}: {failed:?}");
        let authors = |round: &Value| round["authors"].as_array().unwrap().len();
        let counts: Vec<usize> = rounds.iter().map(authors).collect();
        // One is missing where it failed, and is back in the next round.
        assert_eq!(
            counts.iter().filter(|&&count| count == 4).count(),
            1,
            "{how}: {counts:?}"
        );
        assert_eq!(
            counts.iter().filter(|&&count| count == 5).count(),
            3,
            "{how}: {counts:?}"
        );
        let said = failed[0].to_string();
        let expected = if how == "crash" {
            "MemoryError"
        } else {
            "not finite"
        };
        assert!(said.contains(expected), "{how}: {said}");
    }
}

pub(crate) fn programs_and_rota_train_one_model_together() {
    let task = table("together");
    let learner = format!("command = {:?}\nsilos = ['b']", command("well", "together"));
    let file = scenario("together", &learner, &task, "name = 'fedavg'");
    let both = simulate(&file, &["--rounds", "12", "--no-references"]);
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("learner-together.log");
    let notes = fs::read_to_string(log).unwrap();
    // The first round agrees on a scale.
    assert!(notes.matches("trained").count() >= 11, "{notes}");
    assert_eq!(both["rounds"].as_array().unwrap().len(), 12);
    assert_eq!(both["usable"], true, "{}", both["unusable"]);
}

pub(crate) fn what_a_program_lacks_is_said_before_the_first_round() {
    let learner = format!("command = {:?}", command("well", "lacks"));
    let strategy = "name = 'fedsr'";
    let file = scenario("lacks", &learner, &external(), strategy);
    let output = rota(&[
        "simulate",
        "--quiet",
        "--silos",
        "4",
        file.to_str().unwrap(),
    ]);
    let error = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        error.contains("the learner has no stochastic models"),
        "{error}"
    );
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("learner-lacks.log");
    assert!(!fs::read_to_string(log).unwrap().contains("trained"));
}

pub(crate) fn nodes_learn_with_programs() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("learner-nodes");
    let _ = fs::remove_dir_all(&folder);
    let learner = format!("command = {:?}", command("crash", "nodes"));
    let file = scenario("nodes", &learner, &external(), "name = 'fedprox'\nmu = 0.1");
    let base = (12_000 + std::process::id() % 900 * 16).to_string();
    let output = rota(&[
        "federation",
        "demo",
        folder.to_str().unwrap(),
        "--scenario",
        file.to_str().unwrap(),
        "--silos",
        "3",
        "--base-port",
        &base,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let configs: Vec<_> = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("rota run --config "))
        .collect();
    assert_eq!(configs.len(), 3, "{said}");
    let start = |config: &&str| {
        Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["run", "--json", "--until-done", "--config", config])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let nodes: Vec<_> = configs.iter().map(start).collect();
    let outputs: Vec<_> = nodes
        .into_iter()
        .map(|node| node.wait_with_output().unwrap())
        .collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    // All nodes note in one file, so that one training fails, at one of them.
    let all: String = outputs.iter().map(|output| text(&output.stdout)).collect();
    assert!(all.contains("\"training-failed\""), "{all}");
    assert!(
        all.contains("MemoryError: out of memory, as a test"),
        "{all}"
    );
    let adopted = |output: &Output| text(&output.stdout).matches("\"adopted\"").count();
    assert!(outputs.iter().all(|output| adopted(output) >= 4), "{all}");
}

pub(crate) fn describe_prints_the_task_of_a_program() {
    let command = command("well", "describe");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let output = rota(&[&["learner", "describe", "--"], words.as_slice()].concat());
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("2 numbers in 2 tensors"), "{said}");
    let table: toml::Value = toml::from_str(&said).unwrap();
    let tensor = &table["task"]["external"]["tensors"][0];
    assert_eq!(tensor["name"].as_str(), Some("weight"));
    assert_eq!(tensor["initial"]["uniform"].as_float(), Some(0.5));
}
