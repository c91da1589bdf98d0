//! Whole federations whose silos learn with programs: simulated, and of real nodes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rota::agreement::Agreement;
use rota::learn::export::start_model;
use serde_json::Value;

use super::child::FROZEN;
use super::one::{TENSORS, command, is_gone, noted, table};

pub(crate) fn rota(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG")
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A scenario in a file, with the strategy's options.
pub(crate) fn scenario(name: &str, learner: &str, task: &str, strategy: &str) -> PathBuf {
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}.toml"));
    let text = format!(
        "name = 'programs'
rounds = 4
seed = 1
protocol = {{ heartbeat = '300ms', straggler-timeout = {} }}

[strategy]
{strategy}
training = {{ epochs = 1, batch = 0, optimiser = {{ name = 'sgd', rate = 0.2 }} }}

[learner]
{learner}

{task}",
        patience(name)
    );
    fs::write(&file, text).unwrap();
    file
}

/// Beats that the others wait: long where nobody may have to.
fn patience(name: &str) -> u32 {
    match name {
        "unable" | "empty" => 60,
        "late" => 15,
        _ => 12,
    }
}

pub(crate) fn simulate(file: &std::path::Path, options: &[&str]) -> Value {
    let arguments = [
        &["simulate", "--json", "--quiet", file.to_str().unwrap()],
        options,
    ]
    .concat();
    let output = rota(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn external() -> String {
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

pub(crate) fn what_a_program_says_is_passed_on_in_bounded_amounts() {
    let learner = format!("command = {:?}\nprograms = 1", command("flood", "flood"));
    let file = scenario("flood", &learner, &external(), "name = 'fedavg'");
    let output = rota(&[
        "simulate",
        "--quiet",
        "--silos",
        "3",
        file.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Forty megabytes were written.
    let said = text(&output.stderr);
    assert!(said.len() < 200_000, "{} bytes", said.len());
    let left_out = |line: &str| {
        line.starts_with("rota: ") && line.contains("lines of the learner's standard error")
    };
    assert!(said.lines().any(left_out), "{said}");
    assert!(said.contains("more bytes of this line are left out)"));
}

pub(crate) fn programs_and_rota_train_one_model_together() {
    let task = table("together", 1.0);
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

pub(crate) fn a_comparison_runs_the_program_where_its_scenario_is() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("learner-compared");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let mut words = command("well", "compared");
    // Its notes lie where it runs.
    *words.last_mut().unwrap() = "notes".into();
    let learner = format!("command = {words:?}");
    let moved = folder.join("scenario.toml");
    let compared = |task: &str, options: &[&str]| {
        let file = scenario("compared", &learner, task, "name = 'fedavg'");
        fs::rename(file, &moved).unwrap();
        let always = ["compare", moved.to_str().unwrap(), "--json", "--quiet"];
        let choices = ["--strategies", "local", "--seeds", "1"];
        rota(&[&always, &choices, options].concat())
    };
    let good = |output: Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["variants"][0]["strategies"][0]["label"], "local");
    };
    let task = table("compared-rows", 1.0);
    good(compared(&task, &[]));
    let notes = fs::read_to_string(folder.join("notes")).unwrap();
    assert!(notes.contains("trained"), "{notes}");
    // Another program in its place, which runs where the command does.
    let other = command("well", "compared-other").join(" ");
    good(compared(&task, &["--learner", &other]));
    assert!(noted("compared-other").1 > 0);
    assert_eq!(fs::read_to_string(folder.join("notes")).unwrap(), notes);
    // The rows of a program are its own, and nothing is trained before that is said.
    let refused = compared(&external(), &[]);
    let said = text(&refused.stderr);
    assert!(said.contains("no silo has validation rows"), "{said}");
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
    let task = format!("[task.external]\nstart = 'learner'\n{TENSORS}");
    let configs = demo_of("nodes", "crash", "name = 'fedprox'\nmu = 0.1", &task);
    let outputs = run_all(&configs);
    // All nodes note in one file, so that one training fails, at one of them.
    let all: String = outputs.iter().map(|output| text(&output.stdout)).collect();
    assert!(all.contains("\"training-failed\""), "{all}");
    assert!(
        all.contains("MemoryError: out of memory, as a test"),
        "{all}"
    );
    let adopted = |output: &Output| text(&output.stdout).matches("\"adopted\"").count();
    assert!(outputs.iter().all(|output| adopted(output) >= 4), "{all}");
    // Its program reads the rows, so nothing can be left out to compare with: nobody trains alone after the
    // last round.
    let (trained, rounds) = (noted("nodes").1, all.matches("\"adopted\"").count());
    assert!(
        trained <= rounds + 1,
        "{trained} trainings for {rounds} rounds of all silos"
    );
    assert!(
        !all.contains("\"comparing\"") && all.contains("\"on\":\"nothing\""),
        "{all}"
    );
    // Without the programs the chain can be checked, and the rounds cannot be computed again.
    let state = configs[0].with_file_name("state");
    let verified = rota(&["verify", "--state", state.to_str().unwrap()]);
    let said = text(&verified.stdout);
    assert!(
        verified.status.success(),
        "{said}{}",
        text(&verified.stderr)
    );
    let why = "the model before the first round comes from the members' programs";
    assert!(
        said.split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .contains(why),
        "{said}"
    );
}

/// The documents of this event in a node's output.
fn events(output: &Output, event: &str) -> Vec<Value> {
    let lines = text(&output.stdout);
    let documents = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    documents.filter(|one| one["event"] == event).collect()
}

pub(crate) fn nobody_waits_for_a_node_whose_program_always_fails() {
    nobody_waits("unable", "out of memory, as a test");
}

pub(crate) fn nobody_waits_for_a_node_that_has_nothing_to_train_on() {
    nobody_waits("empty", "no rows in the training part");
}

/// One of three nodes, whose programs behave as `how` says, contributes nothing in any round, for the reason
/// `why`.
fn nobody_waits(how: &str, why: &str) {
    let outputs = run_all(&demo(how, how, "name = 'fedavg'"));
    let failing: Vec<_> = outputs
        .iter()
        .filter(|output| !events(output, "training-failed").is_empty())
        .collect();
    assert_eq!(failing.len(), 1);
    for output in &outputs {
        let at = |one: &Value| one["at"].as_f64().unwrap();
        let finals: Vec<f64> = events(output, "final").iter().map(at).collect();
        assert_eq!(finals.len(), 4, "{}", text(&output.stdout));
        // The others would wait for 18 seconds.
        let longest = finals
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(0.0, f64::max);
        assert!(longest < 9.0, "{finals:?}");
        // The reason is read by its own institution only.
        let told = text(&output.stdout).contains(why);
        assert_eq!(told, std::ptr::eq(output, failing[0]));
        if !told {
            assert!(
                !events(output, "nothing").is_empty(),
                "{}",
                text(&output.stdout)
            );
        }
    }
}

pub(crate) fn a_node_that_is_late_is_told_by_how_much() {
    let outputs = run_all(&demo("late", "late", "name = 'fedavg'"));
    let late: Vec<Vec<Value>> = outputs
        .iter()
        .map(|output| events(output, "late"))
        .collect();
    let mut told = late.iter().filter(|own| !own.is_empty());
    let own = told.next().expect("one of them is late");
    assert!(told.next().is_none(), "{late:?}");
    // Patience is 4.5 seconds.
    assert!(
        own[0]["ready"].is_null() && own[0]["over"].as_f64().unwrap() > 4.4,
        "{own:?}"
    );
    assert!(
        own[0]["suggested_patience"].as_u64().unwrap() > 15,
        "{own:?}"
    );
    // The others waited for it in the first round, not in the second, in the third, and not in the next
    // three: of four rounds, two became final without waiting. What a round takes without it is not part
    // of this, so that a machine that does other work changes nothing.
    let waited = |one: &&Value| one["over"].as_f64().unwrap() > 4.4;
    assert_eq!(own.len(), 4, "{own:?}");
    assert_eq!(own.iter().filter(waited).count(), 2, "{own:?}");
}

/// Before the first round its institution is told, too.
pub(crate) fn a_check_says_that_the_others_will_not_wait_for_a_training() {
    let configs = demo("late-check", "late", "name = 'fedavg'");
    let check = |config: &Path| {
        let said = text(&rota(&["check", "--config", config.to_str().unwrap()]).stdout);
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let said = check(&configs[1]);
    assert!(
        said.contains("one training takes more than")
            && said.contains(
                "and the others wait 3.6 s for it: this institution's model would come too late"
            ),
        "{said}"
    );
    assert!(
        said.contains("agree on `straggler-timeout = ") && said.contains("; 12 now)"),
        "{said}"
    );
    assert!(is_gone("late-check"), "the program was ended");
    // A training that is quick is not worth a line.
    let said = check(&configs[0]);
    assert!(!said.contains("one training takes"), "{said}");
}

pub(crate) fn a_node_that_is_ended_takes_its_program_and_its_files_with_it() {
    let configs = demo("taken", "quiet", "name = 'fedavg'");
    let temporary = configs[0].with_file_name("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut node = rota_run(&configs[0]);
    node.env("TMPDIR", &temporary);
    let mut node = start(node);
    let files = || fs::read_dir(&temporary).unwrap().count();
    // It trains before it has met the others.
    let said = BufReader::new(node.stderr.take().unwrap()).lines();
    let mut said = said.map(Result::unwrap);
    assert!(said.any(|line| line == "learner: quiet from here"));
    assert_eq!(files(), 1);
    let id = rustix::process::Pid::from_child(&node);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(node.wait_with_output().unwrap().status.success());
    assert!(is_gone("taken"));
    assert_eq!(files(), 0);
}

/// Writes the files of three nodes whose programs behave so. Returns their configurations.
pub(crate) fn demo(name: &str, how: &str, strategy: &str) -> Vec<PathBuf> {
    demo_of(name, how, strategy, &external())
}

pub(crate) fn demo_of(name: &str, how: &str, strategy: &str, task: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("learner-{name}"));
    let _ = fs::remove_dir_all(&folder);
    let learner = format!("command = {:?}", command(how, name));
    let file = scenario(name, &learner, task, strategy);
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
    let configs = said
        .lines()
        .filter_map(|line| line.trim().strip_prefix("rota run --config "));
    let configs: Vec<_> = configs.map(PathBuf::from).collect();
    assert_eq!(configs.len(), 3, "{said}");
    configs
}

/// A node of the program `rota`, until the end of its federation.
pub(crate) fn rota_run(config: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rota"));
    command.args(["run", "--json", "--until-done", "--config"]);
    command.arg(config);
    command
}

/// Starts a program whose output is collected.
pub(crate) fn start(mut command: Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Runs nodes to the end of their federation.
pub(crate) fn run_all(configs: &[PathBuf]) -> Vec<Output> {
    let nodes: Vec<_> = configs
        .iter()
        .map(|config| start(rota_run(config)))
        .collect();
    let outputs: Vec<_> = nodes
        .into_iter()
        .map(|node| node.wait_with_output().unwrap())
        .collect();
    for output in &outputs {
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    outputs
}

pub(crate) fn a_federation_of_programs_goes_on() {
    let configs = demo("goes-on", "well", "name = 'fedavg'");
    run_all(&configs);
    let folder = configs[0].parent().unwrap().parent().unwrap();
    let next = folder.join("next");
    fs::create_dir_all(&next).unwrap();
    let agreement = next.join("federation.toml");
    let go_on = |config: &[&str]| {
        let out = ["--rounds", "2", "--out", agreement.to_str().unwrap()];
        rota(&[&["federation", "continue"], config, &out].concat())
    };
    // An exported model of programs does not say where it comes from.
    let earlier = folder.join("federation.toml");
    let earlier = earlier.to_str().unwrap();
    let refused = go_on(&["--model", "m.safetensors", "--earlier", earlier]);
    let error = text(&refused.stderr);
    assert!(
        error.contains("name the node that holds it with --config"),
        "{error}"
    );
    let north = configs[0].to_str().unwrap();
    let output = go_on(&["--config", north]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("It continues from round 4"));
    let agreed = Agreement::load(&agreement).unwrap();
    let start = start_model(&next.join("start.safetensors"), u64::MAX).unwrap();
    assert_eq!(agreed.continues.unwrap().model.0, start.hash());
    // Far from the drawn start: the mean of lines with the slope 2.
    assert!((start.tensor("weight").unwrap()[0] - 2.0).abs() < 0.1);

    let second = configs.iter().map(|config| {
        let mut silo: toml::Table = fs::read_to_string(config).unwrap().parse().unwrap();
        silo.insert("consent".into(), "next-consent.toml".into());
        silo.insert("state".into(), "next-state".into());
        silo.insert("federation".into(), agreement.to_str().unwrap().into());
        let file = config.with_file_name("next.toml");
        fs::write(&file, toml::to_string(&silo).unwrap()).unwrap();
        crate::nodes::good(&[
            "federation",
            "sign",
            "--yes",
            "--config",
            file.to_str().unwrap(),
        ]);
        file
    });
    let second: Vec<_> = second.collect();
    let outputs = run_all(&second);
    let adopted = |output: &Output| text(&output.stdout).matches("\"adopted\"").count();
    assert!(outputs.iter().all(|output| adopted(output) == 2));
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
    assert!(table["task"]["external"].get("frozen").is_none());
    assert!(
        said.contains("# It measures loss, and Rota more of its outputs: `metric` is one of these"),
        "{said}"
    );
}

/// A metric that is agreed and that nobody measures would be missing in every round.
pub(crate) fn a_metric_that_no_program_measures_is_refused_at_the_start() {
    let task = |metric: &str| format!("[task.external]\nmetric = {metric:?}\n{TENSORS}");
    let learner = |name: &str| format!("command = {:?}\nprograms = 1", command("well", name));
    let file = scenario(
        "unmeasured",
        &learner("unmeasured"),
        &task("accuracy"),
        "name = 'fedavg'",
    );
    let output = rota(&["simulate", "--quiet", file.to_str().unwrap()]);
    let said = text(&output.stderr);
    assert!(!output.status.success());
    let expected = "no program measures the agreed metric \"accuracy\": the program of \"silo 1\" measures \
                    loss, mae, mse, rmse; agree on one of these (`metric` of [task.external]";
    assert!(said.contains(expected), "{said}");
    assert!(
        said.contains("or let its `evaluate` give \"accuracy\""),
        "{said}"
    );
    assert_eq!(noted("unmeasured").1, 0, "nobody trains");
    // A metric of its outputs is measured by Rota, also in a node.
    let configs = demo_of("measured", "well", "name = 'fedavg'", &task("mae"));
    for output in run_all(&configs) {
        let adopted = events(&output, "adopted");
        let mae = |one: &Value| one["held_out"]["metrics"]["mae"].is_f64();
        assert!(adopted.len() == 4 && adopted.iter().all(mae), "{adopted:?}");
    }
    // The node of an institution knows its own program only.
    let agreed = configs[0].parent().unwrap().parent().unwrap();
    let agreed = fs::read_to_string(agreed.join("federation.toml")).unwrap();
    let agreed = agreed.replace("metric = \"mae\"", "metric = \"accuracy\"");
    let agreed = Agreement::parse("federation.toml", &agreed).unwrap();
    let config = super::one::config("well", "unmeasured-here");
    let why = super::one::opened(&agreed.task, &config).err().unwrap();
    let why = why.to_string();
    assert!(
        why.contains(
            "the agreed metric \"accuracy\" is not measured here: the program of \"north\""
        ),
        "{why}"
    );
}

pub(crate) fn an_agreement_takes_the_start_from_the_program() {
    let learner = format!("command = {:?}", command("well", "start-new"));
    let start = |name: &str, task: &str| {
        let task = format!("[task.external]\n{task}");
        let file = scenario(name, &learner, &task, "name = 'fedavg'");
        let out = file.with_extension("federation.toml");
        let (file, written) = (file.to_str().unwrap(), out.to_str().unwrap());
        let new = [
            "federation",
            "new",
            "--scenario",
            file,
            "--force",
            "--out",
            written,
        ];
        let output = rota(&new);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let agreed: toml::Table = fs::read_to_string(out).unwrap().parse().unwrap();
        agreed["start"].as_str().unwrap().to_owned()
    };
    let asked = start("start-asked", &format!("start = 'learner'\n{TENSORS}"));
    // The start that the program gives, written down.
    let given = TENSORS.replace("role = 'bias'", "role = 'bias', initial = 7.0");
    let given = given.replace("{ uniform = 0.5 }", "0.0");
    assert_eq!(asked, start("start-given", &given));
    assert_ne!(asked, start("start-drawn", TENSORS));
}

pub(crate) fn frozen_tensors_are_the_same_at_all_silos_of_a_simulation() {
    let with = |how: &str| format!("command = {:?}", command(how, how));
    let file = scenario("same", &with("frozen"), &external(), "name = 'fedavg'");
    let summary = simulate(&file, &["--silos", "3"]);
    assert_eq!(summary["rounds"].as_array().unwrap().len(), 4);
    let file = scenario("apart", &with("apart"), &external(), "name = 'fedavg'");
    let refused = rota(&["simulate", "--quiet", file.to_str().unwrap()]);
    let error = text(&refused.stderr);
    assert!(!refused.status.success());
    assert!(error.contains("others than the agreed ones"), "{error}");
    let named = "\"mask\" has other values than at the first silo";
    assert!(error.contains(named), "{error}");
    // The output of `describe` is what the agreement states.
    let command = command("frozen", "describe-frozen");
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    let said = rota(&[&["learner", "describe", "--"], words.as_slice()].concat());
    let table: toml::Value = toml::from_str(&text(&said.stdout)).unwrap();
    let digest = &table["task"]["external"]["frozen"];
    assert_eq!(digest.as_str(), Some(FROZEN));
}
