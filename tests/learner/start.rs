//! Starts of federations of programs, and what is compared of the programs before that.

use std::fs;

use rota::agreement::Agreement;
use rota::learn::Study;
use rota::learn::export::start_model;
use rota::learn::external::external_study;
use rota::protocol::Hash;
use rota::task::{TaskConfig, data::DataError};
use serde_json::Value;

use super::federations::{
    demo_of, external, rota, rota_run, run_all, scenario, simulate, start, text,
};
use super::heard::Heard;
use super::nodes::good;
use super::one::{TENSORS, command, config};

/// Three silos of a simulation, with programs that behave so.
fn study(how: &str, name: &str, task: &str) -> Result<Study, DataError> {
    let task: toml::Table = format!("[external]\n{task}\n{TENSORS}").parse().unwrap();
    let task: TaskConfig = task.try_into().unwrap();
    external_study(&task, &config(how, name), Some(3), None, 5, |place| {
        place as u64
    })
}

/// Returns the reason for which these silos cannot learn together.
fn refused(how: &str, name: &str, task: &str) -> String {
    match study(how, name, task) {
        Ok(_) => panic!("{how} is not refused"),
        Err(error) => error.to_string(),
    }
}

/// The biases that the silos start from.
fn biases(study: &Study) -> Vec<f32> {
    let silos = study.silos.iter();
    let bias = |model: rota::methods::Params| model.tensor("bias").unwrap()[0];
    silos.map(|silo| bias(silo.learner.initial(5))).collect()
}

pub(crate) fn silos_start_from_what_the_first_program_holds() {
    // Every program begins with another bias, and nothing is said about the start.
    let first = study("own", "start-own", "").unwrap();
    assert_eq!(biases(&first), [7.0; 3]);
    let notes = first.notes.join("\n");
    assert!(
        notes.contains("the values that the program of silo 1 holds"),
        "{notes}"
    );
    let proposed = first.proposed.unwrap();
    let hash = proposed.task.model.clone().unwrap();
    assert_eq!(
        hash,
        format!("{:#}", Hash(proposed.model.clone().unwrap().hash()))
    );
    // Said, and with the hash that an agreement has.
    let said = study("own", "start-said", "start = 'proposer'").unwrap();
    assert_eq!(biases(&said), [7.0; 3]);
    let agreed = format!("start = 'proposer'\nmodel = '{hash}'");
    assert_eq!(
        biases(&study("own", "start-agreed", &agreed).unwrap()),
        [7.0; 3]
    );
    let other = format!("start = 'proposer'\nmodel = '{}'", "0".repeat(64));
    let why = refused("own", "start-other", &other);
    assert!(why.contains("`external.model` is 000"), "{why}");
    // As the tensors say, where that is wanted, or where a program gives none.
    let drawn = study("own", "start-tensors", "start = 'tensors'").unwrap();
    assert_eq!(biases(&drawn), [0.0; 3]);
    let none = study("well", "start-none", "").unwrap();
    assert_eq!(biases(&none), [0.0; 3]);
    assert!(none.notes.is_empty() && none.proposed.unwrap().model.is_none());
    let why = refused("well", "start-wanted", "start = 'proposer'");
    assert!(why.contains("gives no model to start from"), "{why}");
}

pub(crate) fn programs_with_other_meanings_of_the_same_names_are_refused() {
    let why = refused("swapped", "swapped", "");
    assert!(
        why.contains("\"silo 2\": its program computes something else"),
        "{why}"
    );
    assert!(why.contains("say by `names` which is which"), "{why}");
    // The agreement says what the proposer's computes, for nodes that see no other program.
    let agreed = study("own", "agreed", "").unwrap().proposed.unwrap();
    let trial = toml::to_string(&agreed.task).unwrap();
    assert!(trial.contains("[trial]"), "{trial}");
    let wrong = "trial = { inputs = [2, 1], outputs = [100.0, 200.0] }";
    let why = refused("own", "agreed-wrong", wrong);
    assert!(
        why.contains("\"silo 1\": its program computes something else"),
        "{why}"
    );
    // Batches of other dimensions cannot be compared, and that is said.
    let wide = study("wide", "wide", "").unwrap();
    let notes = wide.notes.join("\n");
    assert!(
        notes.contains("the programs of silo \"silo 2\" and 1 more"),
        "{notes}"
    );
}

pub(crate) fn columns_in_another_order_are_refused_or_put_in_order() {
    let why = refused("columns", "columns", "");
    assert!(why.contains("\"silo 2\""), "{why}");
    assert!(
        why.contains("it has them in another order; agreed are height, weight"),
        "{why}"
    );
    let why = refused("columns", "columns-other", "columns = ['height', 'age']");
    assert!(why.contains("it has no column \"age\""), "{why}");
    let why = refused("columns", "columns-more", "columns = ['height']");
    assert!(
        why.contains("nobody agreed on its column \"weight\""),
        "{why}"
    );
    // A program that is told the order puts its columns into it.
    let mended = study("mended", "columns-mended", "").unwrap();
    assert_eq!(mended.proposed.unwrap().task.columns, ["height", "weight"]);
    // Without names nothing can be compared, and that is said.
    let unnamed = study("own", "columns-none", "columns = ['height']").unwrap();
    let notes = unnamed.notes.join("\n");
    assert!(
        notes.contains("nobody knows whether the programs of silo \"silo 1\" and 2 more"),
        "{notes}"
    );
}

pub(crate) fn nodes_start_from_what_the_proposers_program_holds() {
    // The programs of the three nodes begin with three biases.
    let configs = demo_of("proposer", "own", "name = 'fedavg'", &external());
    let folder = configs[0].parent().unwrap().parent().unwrap();
    let file = folder.join("start.safetensors");
    let model = start_model(&file, u64::MAX).unwrap();
    assert_eq!(model.tensor("bias").unwrap(), [7.0]);
    let agreed = fs::read_to_string(folder.join("federation.toml")).unwrap();
    assert!(agreed.contains("start = \"proposer\""), "{agreed}");
    let outputs = run_all(&configs);
    let adopted =
        |output: &std::process::Output| text(&output.stdout).matches("\"adopted\"").count();
    assert!(outputs.iter().all(|output| adopted(output) == 4));
    // The node keeps the start, so its rounds can be computed again.
    let state = configs[1].with_file_name("state");
    let verified = rota(&["verify", "--state", state.to_str().unwrap()]);
    let said = text(&verified.stdout);
    assert!(
        verified.status.success(),
        "{said}{}",
        text(&verified.stderr)
    );
    let other = rota::methods::Params::build(model.layout(), |values| values.fill(1.0));
    fs::write(&file, other.document()).unwrap();
    fs::remove_dir_all(configs[1].with_file_name("state")).unwrap();
    let node = start(rota_run(&configs[1])).wait_with_output().unwrap();
    assert!(!node.status.success());
    let said = text(&node.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        said.contains("use the file that came with this agreement"),
        "{said}"
    );
}

pub(crate) fn members_fetch_the_start_from_the_proposers_node() {
    let configs = demo_of("fetched", "own", "name = 'fedavg'", &external());
    let folder = configs[0].parent().unwrap().parent().unwrap();
    let (file, own) = (
        folder.join("start.safetensors"),
        configs[0].with_file_name("mine.safetensors"),
    );
    fs::rename(&file, &own).unwrap();
    // The others have the agreement alone.
    let check = text(&rota(&["check", "--config", configs[1].to_str().unwrap()]).stdout);
    let check = check.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        check.contains("the node fetches it from the other members"),
        "{check}"
    );
    let mut first: toml::Table = fs::read_to_string(&configs[0]).unwrap().parse().unwrap();
    first.insert("start-model".into(), "mine.safetensors".into());
    fs::write(&configs[0], toml::to_string(&first).unwrap()).unwrap();
    let outputs = run_all(&configs);
    let count =
        |output: &std::process::Output, what: &str| text(&output.stdout).matches(what).count();
    assert!(
        outputs
            .iter()
            .all(|output| count(output, "\"adopted\"") == 4)
    );
    assert_eq!(count(&outputs[0], "\"asks-for-start\""), 0);
    assert!(
        outputs[1..]
            .iter()
            .all(|output| count(output, "\"has-start\"") == 1)
    );
    let kept = configs[2].with_file_name("state").join("start.safetensors");
    assert_eq!(fs::read(kept).unwrap(), fs::read(own).unwrap());
}

/// A member that comes in by a change of the agreement has the agreement alone, and no file of the start.
pub(crate) fn a_member_that_is_admitted_later_fetches_the_start() {
    let mut configs = demo_of("later", "own", "name = 'fedavg'", &external());
    let folder = configs[0].parent().unwrap().parent().unwrap().to_owned();
    let own = configs[0].with_file_name("mine.safetensors");
    fs::rename(folder.join("start.safetensors"), &own).unwrap();
    let plain = fs::read_to_string(&configs[0]).unwrap();
    let mut first: toml::Table = plain.parse().unwrap();
    first.insert("start-model".into(), "mine.safetensors".into());
    fs::write(&configs[0], toml::to_string(&first).unwrap()).unwrap();
    // The newcomer has a key, an address, and what else the first one has.
    let newcomer = folder.join("newcomer");
    fs::create_dir_all(&newcomer).unwrap();
    let key = newcomer.join("identity.key");
    let key = good(&["identity", "new", "--out", key.to_str().unwrap()]);
    let listen = first["listen"][0].as_str().unwrap();
    let port = listen.split('/').nth(4).unwrap();
    let above: u16 = port.parse::<u16>().unwrap() + 9;
    let address = listen.replace(port, &above.to_string());
    let config = newcomer.join("node.toml");
    fs::write(&config, plain.replace(listen, &address)).unwrap();
    configs.push(config.clone());
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    nodes.until(3, "waits-for-admission");
    nodes.until(0, "finished");
    let says = |node: usize, words: &[&str]| {
        let config = ["--config", configs[node].to_str().unwrap(), "--yes"];
        good(&[&["federation"], words, &config[..]].concat())
    };
    let agree = |nodes: &mut Heard, proposer: usize, words: &[&str], others: &[usize]| {
        let said = says(proposer, words);
        let line = said.lines().next().unwrap();
        let id = line.strip_prefix("amendment ").unwrap();
        for &node in others {
            while nodes.until(node, "amendment")["amendment"] != id {}
            says(node, &["approve", id]);
        }
    };
    agree(
        &mut nodes,
        0,
        &["admit", "newcomer", key.trim(), &address],
        &[1],
    );
    nodes.until(3, "asks-for-start");
    nodes.until(3, "has-start");
    let kept = config.with_file_name("state").join("start.safetensors");
    assert_eq!(fs::read(kept).unwrap(), fs::read(&own).unwrap());
    nodes.until(3, "finished");
    good(&[
        "federation",
        "sign",
        "--yes",
        "--config",
        config.to_str().unwrap(),
    ]);
    // It learns with the others, and its rounds are computed again from that start.
    let force = config.with_file_name("state").join("in-force.toml");
    let more = fs::read_to_string(force)
        .unwrap()
        .replace("rounds = 4", "rounds = 6");
    let file = newcomer.join("more.toml");
    fs::write(&file, more).unwrap();
    agree(&mut nodes, 3, &["change", file.to_str().unwrap()], &[0, 1]);
    nodes.until(3, "adopted");
    nodes.until(3, "finished");
    let state = config.with_file_name("state");
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    assert!(said.contains("computed again"), "{said}");
}

pub(crate) fn a_new_agreement_comes_with_the_proposers_start() {
    let learner = format!("command = {:?}", command("own", "new"));
    let file = scenario("new", &learner, &external(), "name = 'fedavg'");
    let folder = file.with_extension("agreed");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let out = folder.join("federation.toml");
    let (scenario, written) = (file.to_str().unwrap(), out.to_str().unwrap());
    // The base point, which is a key that somebody could have.
    let key = format!("58{}", "66".repeat(31));
    let member = format!("north={key}");
    let new = [
        "federation",
        "new",
        "--scenario",
        scenario,
        "--out",
        written,
        "--member",
        &member,
    ];
    let output = rota(&new);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}{}", text(&output.stderr));
    assert!(said.contains("start.safetensors"), "{said}");
    let model = start_model(&folder.join("start.safetensors"), u64::MAX).unwrap();
    let agreement = Agreement::load(&out).unwrap();
    let TaskConfig::External(task) = &agreement.task else {
        panic!("the task is one of programs");
    };
    assert_eq!(task.model, Some(format!("{:#}", Hash(model.hash()))));
    let shown = text(&rota(&["federation", "show", written]).stdout);
    assert!(
        shown.contains("the values that the proposer's program held"),
        "{shown}"
    );
    // A file that is there is not written over.
    fs::remove_file(&out).unwrap();
    let again = rota(&new);
    assert!(!again.status.success());
    // The simulation of the same scenario starts from the same bits.
    let summary: Value = simulate(&file, &["--silos", "3"]);
    assert_eq!(summary["rounds"].as_array().unwrap().len(), 4);
}

pub(crate) fn what_an_agreement_says_about_the_start() {
    // An agreement without a start is one from before there was a choice: its id stays.
    let plain = demo_of("said-plain", "well", "name = 'fedavg'", &external());
    let file = plain[0]
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("federation.toml");
    let text = fs::read_to_string(file).unwrap();
    assert!(
        !text.contains("proposer") && !text.contains("\nmodel"),
        "{text}"
    );
    let said = text.replacen("[task.external]", "[task.external]\nstart = \"tensors\"", 1);
    assert_ne!(text, said);
    let id = |text: &str| Agreement::parse("federation.toml", text).map(|it| it.epoch.federation);
    assert_eq!(id(&text).unwrap(), id(&said).unwrap());
    // A start that nothing names is none.
    let own = demo_of("said-own", "own", "name = 'fedavg'", &external());
    let file = own[0]
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("federation.toml");
    let text = fs::read_to_string(file).unwrap();
    let without: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("model = "))
        .collect();
    let why = id(&without.join("\n")).unwrap_err().to_string();
    assert!(why.contains("needs `model`"), "{why}");
    let held = text.replace("uniform = 0.5", "uniform = -0.5");
    assert!(
        id(&held)
            .unwrap_err()
            .to_string()
            .contains("a bound at least 0")
    );
}
