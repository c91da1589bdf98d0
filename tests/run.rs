//! One institution's node as its operator runs it: what it needs, what it says, and how it ends.

#![allow(clippy::unwrap_used)]

mod nodes;

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

use ::rota::protocol::Hash;
use ::rota::silo::Record;
use ::rota::store;
use nodes::{Demo, Nodes, good, log, nowhere, output, overwrite, rota, scenario, text};
use serde_json::Value;

/// Null training with a short beat.
const QUICK: &str = "name = 'quick'
rounds = 3
silos = 4
task = { constant = { parameters = 100 } }
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }
[charter]
beat = '100ms'
patience = 20
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

/// Exit code of `rota run --until-done` on a configuration, and what it logged.
fn run(config: &Path) -> (i32, String) {
    let output = output(&["run", "--until-done", "--config", config.to_str().unwrap()]);
    (output.status.code().unwrap(), text(&output.stderr))
}

/// Changes the text of a file.
fn edit(file: &Path, from: &str, to: &str) {
    let before = fs::read_to_string(file).unwrap();
    assert!(before.contains(from), "{from:?} is in {}", file.display());
    fs::write(file, before.replacen(from, to, 1)).unwrap();
}

/// The line on which a text stands.
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
    assert_eq!(again.status.code(), Some(1));
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

/// The outcome of every round as a node said it, round by round.
fn outcomes(nodes: &mut Nodes, rounds: usize) -> Vec<Vec<String>> {
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
fn processes_come_to_the_outcomes_of_the_simulation() {
    let text = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let file = scenario(
        "run-diabetes",
        &text.replace("beat = \"5s\"", "beat = \"100ms\""),
    );
    let file = file.to_str().unwrap();
    for (name, transport) in [("run-quic", "quic"), ("run-tcp", "tcp")] {
        let options = ["--silos", "4", "--rounds", "4"];
        let more = ["--transport", transport, "--scenario", file];
        let demo = Demo::new(name, &[&options[..], &more].concat());
        let mut nodes = Nodes::new(&demo.configs, &["--until-done"]);
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
fn people_read_a_line_per_round() {
    let demo = quick("run-people", 1);
    let config = demo.configs[0].to_str().unwrap();
    let said = good(&["run", "--until-done", "--config", config]);
    let rounds: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("round "))
        .collect();
    assert_eq!(rounds.len(), 3, "{said}");
    assert!(
        rounds[0].contains("lead silo 1") && rounds[0].contains("loss 0.0"),
        "{said}"
    );
    assert!(said.contains("all 3 rounds are done"), "{said}");
    // Again: nothing is left to do.
    let again = good(&["run", "--until-done", "--config", config]);
    assert!(!again.contains("\nround "), "{again}");
    assert!(again.contains("all 3 rounds are done"), "{again}");
}

#[test]
fn a_signal_ends_a_node_in_order() {
    let demo = quick("run-signal", 2);
    let mut nodes = Nodes::new(&demo.configs, &[]);
    (0..2).for_each(|node| nodes.start(node));
    nodes.until(1, "finished", 30);
    // Without --until-done it stays for the others.
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
fn a_member_that_comes_late_catches_up_from_those_that_are_done() {
    let demo = quick("run-late", 4);
    let mut nodes = Nodes::new(&demo.configs, &["--until-done"]);
    (0..3).for_each(|node| nodes.start(node));
    nodes.until(0, "finished", 30);
    nodes.start(3);
    nodes.until(3, "finished", 30);
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
}

#[test]
fn wrong_configurations_are_refused_with_the_place() {
    let demo = quick("run-wrong", 2);
    let config = &demo.configs[0];
    let original = fs::read_to_string(config).unwrap();
    let refused = |from: &str, to: &str| {
        fs::write(config, &original).unwrap();
        edit(config, from, to);
        let (code, said) = run(config);
        assert_eq!(code, 2, "{said}");
        said.replace(&config.display().to_string(), "silo.toml")
    };
    let typo = refused("identity = ", "identiti = ");
    assert!(
        typo.contains("unknown field `identiti`, expected"),
        "{typo}"
    );
    let stranger = refused("name = \"silo 2\"", "name = \"silo 7\"");
    let line = line_of(config, "silo 7");
    assert!(
        stranger.starts_with(&format!(
            "error: silo.toml, line {line}: `name` is \"silo 7\", which is not in the roster"
        )),
        "{stranger}"
    );
    assert!(stranger.contains("there are silo 1, silo 2"), "{stranger}");
    let address = refused("listen = [\"/ip4/127.0.0.1", "listen = [\"/ip4/127.0.0");
    assert!(
        address.starts_with(&format!(
            "error: silo.toml, line {}: `listen` holds",
            line_of(config, "listen")
        )),
        "{address}"
    );
    let share = refused("1 of 2", "3 of 2");
    assert!(
        share.contains("`share` is \"3 of 2\", it must be like \"3 of 8\""),
        "{share}"
    );
    let file = refused("../federation.toml", "../elsewhere.toml");
    assert!(
        file.contains("cannot read") && file.contains("elsewhere.toml"),
        "{file}"
    );

    fs::write(config, &original).unwrap();
    let identity = config.with_file_name("other.key");
    good(&["identity", "new", "--out", identity.to_str().unwrap()]);
    let key = refused("identity.key", "other.key");
    assert!(key.contains("is not in the roster of"), "{key}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&identity, fs::Permissions::from_mode(0o644)).unwrap();
        let open = refused("identity.key", "other.key");
        assert!(open.contains("can be read by others"), "{open}");
    }

    fs::write(config, &original).unwrap();
    let agreed = demo.folder.join("federation.toml");
    edit(&agreed, "blob-limit = ", "blob-limit = 9 # was ");
    let (code, said) = run(config);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("the charter allows 9: raise blob-limit"),
        "{said}"
    );
}

#[test]
fn missing_data_are_named() {
    let demo = Demo::new("run-data", &["--silos", "2"]);
    fs::remove_file(demo.configs[0].with_file_name("rows.csv")).unwrap();
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1);
    assert!(
        said.contains("cannot read") && said.contains("rows.csv"),
        "{said}"
    );
    // Other columns make another model than the one that was agreed on.
    let rows = demo.configs[1].with_file_name("rows.csv");
    let fewer: String = fs::read_to_string(&rows)
        .unwrap()
        .lines()
        .map(|line| line.split_once(',').unwrap().1.to_owned() + "\n")
        .collect();
    fs::write(&rows, fewer).unwrap();
    let (code, said) = run(&demo.configs[1]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("differs from what was agreed"), "{said}");
}

#[test]
fn a_port_in_use_is_named() {
    let demo = quick("run-port", 1);
    let config = fs::read_to_string(&demo.configs[0]).unwrap();
    let (_, rest) = config.split_once("/udp/").unwrap();
    let (port, _) = rest.split_once('/').unwrap();
    let _taken = UdpSocket::bind(format!("127.0.0.1:{port}")).unwrap();
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("/udp/{port}/")), "{said}");
    assert!(said.contains("another program uses this port"), "{said}");
}

#[test]
fn a_name_without_an_address_is_spoken_of_and_the_node_goes_on() {
    let demo = quick("run-resolve", 2);
    let peer = fs::read_to_string(&demo.configs[0]).unwrap();
    let (_, rest) = peer.split_once("[[peer]]").unwrap();
    let host = "addresses = [\"/ip4/127.0.0.1";
    assert!(rest.contains(host));
    edit(
        &demo.configs[0],
        host,
        "addresses = [\"/dns/nowhere.invalid",
    );
    let mut nodes = Nodes::new(&demo.configs, &["--until-done"]);
    (0..2).for_each(|node| nodes.start(node));
    // The other one finds this node.
    nodes.until(0, "finished", 30);
    assert_eq!((nodes.code(0), nodes.code(1)), (0, 0), "{}", nodes.tails());
    let said = fs::read_to_string(log(&demo.configs[0])).unwrap();
    assert!(said.contains("nowhere.invalid does not resolve"), "{said}");
}

#[test]
fn a_state_folder_has_one_owner_and_one_federation() {
    let demo = quick("run-state", 2);
    let mut nodes = Nodes::new(&demo.configs[..1], &[]);
    nodes.start(0);
    nodes.until(0, "start", 10);
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("in use by another running process"), "{said}");
    nodes.terminate(0);
    assert_eq!(nodes.code(0), 0);
    edit(
        &demo.folder.join("federation.toml"),
        "patience = 20",
        "patience = 21",
    );
    edit(
        &demo.folder.join("federation.toml"),
        "limit = ",
        "limit = 1",
    );
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is the journal of federation"), "{said}");
}

#[test]
fn a_damaged_journal_is_set_aside_and_the_node_listens_until_it_may_take_part() {
    let demo = long("run-damaged", 150);
    let mut nodes = Nodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    adopts(&nodes, 3, 3);
    kill(&mut nodes, 3);
    let config = &demo.configs[3];
    let state = config.with_file_name("state");
    overwrite(&state.join("journal.redb"), |bytes| {
        let middle = bytes.len() / 3;
        bytes[middle..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    });
    let (code, said) = run(config);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("journal.redb is damaged") && said.contains("--journal-lost"),
        "{said}"
    );
    let mut once = Nodes::new(&demo.configs[3..], &["--journal-lost"]);
    once.start(0);
    let aside = once.until(0, "state", 10);
    assert_eq!(aside["what"], "set-aside");
    assert!(state.join("journal.redb.damaged-1").exists());
    let waiting = once.until(0, "waiting", 10);
    let why = waiting["why"].as_str().unwrap();
    assert!(
        why.contains("only listening") && why.contains("3 other members"),
        "{why}"
    );
    once.kill(0);
    // Without the flag it goes on listening, until it may take part.
    nodes.start(3);
    nodes.until(3, "waiting", 10);
    nodes.until(3, "taking-part", 60);
    // What is shown to the end of the last round is one chain.
    let all = ended(&mut nodes);
    assert!(all.iter().all(|chain| *chain == all[0]));
}

#[test]
fn blobs_that_are_gone_or_damaged_are_fetched_and_the_chains_of_all_are_equal() {
    let demo = long("run-blobs", 40);
    let mut nodes = Nodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    let state = demo.configs[3].with_file_name("state");
    let blobs = state.join("blobs");
    for case in ["outcome", "models", "everything"] {
        adopts(&nodes, 3, 2);
        kill(&mut nodes, 3);
        let mut records = store::snapshot(&state).unwrap().records.into_iter().rev();
        let adopted = records.find_map(|record| match record {
            Record::Adopted(adopted) => Some(adopted),
            _ => None,
        });
        let adopted = adopted.unwrap();
        let file = |hash: [u8; 32]| blobs.join(format!("{:#}", Hash(hash)));
        match case {
            "outcome" => fs::remove_file(file(adopted.outcome)).unwrap(),
            "models" => {
                let others = adopted
                    .blobs
                    .iter()
                    .filter(|hash| **hash != adopted.outcome);
                for hash in others {
                    overwrite(&file(*hash), |bytes| bytes[40] ^= 1);
                }
            }
            _ => fs::remove_dir_all(&blobs).unwrap(),
        }
        nodes.start(3);
        let gone = nodes.until(3, "gone", 20);
        assert_eq!(gone["what"], "outcome", "{case}: {gone}");
        assert_eq!(gone["round"], adopted.round, "{case}");
    }
    let all = ended(&mut nodes);
    assert_eq!(
        all[0]["blocks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|b| !b["round"].is_null())
            .count(),
        40
    );
    assert!(all.iter().all(|chain| *chain == all[0]));
    // With the agreement named, and with none at hand.
    let state = state.to_str().unwrap();
    let agreed = demo.folder.join("federation.toml");
    let named = [
        "chain",
        "--state",
        state,
        "--federation",
        agreed.to_str().unwrap(),
    ];
    let told = good(&named);
    assert!(
        told.starts_with(&format!("federation {}, ", demo.id)),
        "{told}"
    );
    assert!(
        told.contains("round   40") && told.contains("lead silo "),
        "{told}"
    );
    fs::remove_file(Path::new(state).join("federation.toml")).unwrap();
    let bare: Value = serde_json::from_str(&good(&["chain", "--json", "--state", state])).unwrap();
    assert!(
        bare["members"].is_null() && bare["blocks"][0]["included"][0].is_u64(),
        "{bare}"
    );
    assert_eq!(bare["blocks"][5]["block"], all[0]["blocks"][5]["block"]);
    // What is no chain of this federation.
    let other = quick("run-blobs-other", 2).folder.join("federation.toml");
    let refused = output(&[
        "chain",
        "--state",
        state,
        "--federation",
        other.to_str().unwrap(),
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("is the agreement of federation"));
    let nothing = output(&["chain", "--state", demo.folder.to_str().unwrap()]);
    assert_eq!(nothing.status.code(), Some(2));
    assert!(text(&nothing.stderr).contains("there is no journal in"));
}

/// Four silos with null training for that many short rounds.
fn long(name: &str, rounds: u64) -> Demo {
    let text = QUICK.replace("rounds = 3", &format!("rounds = {rounds}"));
    let file = scenario(name, &text);
    Demo::new(name, &["--scenario", file.to_str().unwrap()])
}

/// Kills a node, and lets what it said before go by.
fn kill(nodes: &mut Nodes, node: usize) {
    nodes.kill(node);
    let end = Instant::now() + Duration::from_secs(10);
    while nodes
        .next(end)
        .is_some_and(|said| said.node != node || !said.line.is_null())
    {}
}

/// Waits for a node to adopt that many more rounds.
fn adopts(nodes: &Nodes, node: usize, rounds: usize) {
    (0..rounds).for_each(|_| drop(nodes.until(node, "adopted", 30)));
}

/// Waits for the end of all nodes; the chain that each has then.
fn ended(nodes: &mut Nodes) -> Vec<Value> {
    let chain = |config: &PathBuf| {
        let state = config.with_file_name("state");
        let said = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
        serde_json::from_str(&said).unwrap()
    };
    let end = Instant::now() + Duration::from_secs(120);
    let mut alive = nodes.configs.len();
    while alive > 0 {
        let Some(said) = nodes.next(end) else {
            panic!("not done after 120 s\n{}", nodes.tails());
        };
        let ended = said.line.is_null() && said.life == nodes.lives[said.node];
        alive -= usize::from(ended);
    }
    for node in 0..nodes.configs.len() {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    nodes.configs.iter().map(chain).collect()
}

#[test]
fn two_processes_with_one_key_are_named() {
    let demo = quick("run-key", 2);
    let mut nodes = Nodes::new(&demo.configs[..1], &[]);
    nodes.start(0);
    let weakness = nodes.until(0, "weakness", 20);
    let why = weakness["why"].as_str().unwrap();
    assert!(
        why.contains("does not protect against a lying member") && why.contains("stands still"),
        "{why}"
    );
    nodes.until(0, "view", 20);
    let second = demo.configs[0].with_file_name("second.toml");
    fs::copy(&demo.configs[0], &second).unwrap();
    edit(&second, "state = \"state\"", "state = \"another\"");
    let (code, said) = run(&second);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("another process uses this institution's key"),
        "{said}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let state = demo.configs[0].with_file_name("state");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        for file in ["journal.redb", "lock", "federation.toml"] {
            assert_eq!(mode(&state.join(file)), 0o600, "{file}");
        }
        assert_eq!(mode(&demo.configs[0].with_file_name("identity.key")), 0o600);
        assert_eq!(mode(demo.configs[0].parent().unwrap()), 0o700);
    }
}

#[test]
fn names_that_steer_a_terminal_are_refused_where_the_agreement_is_read() {
    let demo = quick("run-names", 2);
    let agreed = demo.folder.join("federation.toml");
    let original = fs::read_to_string(&agreed).unwrap();
    let refused = |from: &str, to: &str| {
        fs::write(&agreed, original.replacen(from, to, 1)).unwrap();
        let (code, said) = run(&demo.configs[0]);
        assert_eq!(code, 2, "{said}");
        assert!(said.starts_with("error: "), "{said}");
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!said.chars().any(steers), "{said:?}");
        // Nothing but the program's own line begins at the margin.
        assert!(
            said.lines().skip(1).all(|line| line.starts_with(' ')),
            "{said}"
        );
        assert!(said.len() < 5000, "{} bytes", said.len());
        said
    };
    let silo = "name = \"silo 2\"";
    let line = original.lines().position(|line| line == silo).unwrap() + 1;
    let escape = refused(silo, "name = \"\\u001b[2Jsilo 2\"");
    assert!(
        escape.contains(&format!(
            "line {line}: the name of member 2 holds the character U+001B"
        )),
        "{escape}"
    );
    let forged = refused(silo, "name = \"a\\nround 9   view 9   lead a   4 models\"");
    assert!(forged.contains("U+000A"), "{forged}");
    let long = refused(silo, &format!("name = \"{}\"", "x".repeat(200_000)));
    assert!(long.contains("has 200000 characters"), "{}", long.len());
    let turned = refused(silo, "name = \"a\\u202eb\"");
    assert!(turned.contains("U+202E"), "{turned}");
    assert!(refused(silo, "name = \" \"").contains("is empty"));
    assert!(refused(silo, "name = \"Silo  1\"").contains("two members are named"));
    let own = refused("name = \"quick\"", "name = \"q\\u009b2J\"");
    assert!(
        own.contains("the federation's name holds the character U+009B"),
        "{own}"
    );
    let key = refused("rounds = ", "\"\\u001b[2J\\nround 9 final\" = 1\nrounds = ");
    assert!(key.contains("unknown field"), "{key}");
}

/// What a command says that must end by itself, and soon.
fn soon(arguments: &[&str], input: Stdio) -> (i32, String) {
    let mut child = rota(arguments)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (teller, told) = channel();
    let mut error = child.stderr.take().unwrap();
    thread::spawn(move || {
        let mut said = String::new();
        let read = error.read_to_string(&mut said);
        let _ = teller.send(read.map(|_| said));
    });
    let said = told.recv_timeout(Duration::from_secs(60));
    if said.is_err() {
        child.kill().unwrap();
    }
    let code = child.wait().unwrap().code();
    (code.unwrap(), said.unwrap().unwrap())
}

#[cfg(unix)]
#[test]
fn pipes_devices_folders_and_endless_files_are_refused_at_once() {
    let demo = Demo::new("run-pipes", &["--silos", "2"]);
    let pipe = demo.folder.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let large = demo.folder.join("large");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let kinds = [
        (pipe.to_str().unwrap(), "it is a pipe"),
        ("/dev/zero", "it is a device"),
        (demo.folder.to_str().unwrap(), "it is a folder"),
        (large.to_str().unwrap(), "it has more than"),
    ];
    let config = &demo.configs[0];
    let original = fs::read_to_string(config).unwrap();
    let (rows, key) = (
        config.with_file_name("rows.csv"),
        config.with_file_name("identity.key"),
    );
    fs::set_permissions(&large, fs::Permissions::from_mode(0o600)).unwrap();
    for (name, why) in kinds {
        let refused = |arguments: &[&str]| {
            let (code, said) = soon(arguments, Stdio::null());
            assert!(code == 1 || code == 2, "{arguments:?}: {code}");
            assert!(
                said.contains(why) && said.lines().count() == 1,
                "{arguments:?}: {said}"
            );
        };
        refused(&["run", "--config", name]);
        refused(&["simulate", name]);
        refused(&["federation", "demo", "run-pipes-other", "--scenario", name]);
        refused(&["identity", "show", name]);
        refused(&["solve", "coalitions", name, "--coalitions", "2"]);
        let node = ["run", "--config", config.to_str().unwrap()];
        for key in [
            "federation = \"../federation.toml\"",
            "identity = \"identity.key\"",
        ] {
            let (word, _) = key.split_once(' ').unwrap();
            fs::write(config, original.replace(key, &format!("{word} = {name:?}"))).unwrap();
            refused(&node);
        }
        fs::write(config, &original).unwrap();
        let kept = fs::read(&rows).unwrap();
        fs::remove_file(&rows).unwrap();
        std::os::unix::fs::symlink(name, &rows).unwrap();
        refused(&node);
        fs::remove_file(&rows).unwrap();
        fs::write(&rows, kept).unwrap();
    }
    assert!(key.exists());
    let zeros = File::open("/dev/zero").unwrap().into();
    let (code, said) = soon(&["solve", "coalitions", "-", "--coalitions", "2"], zeros);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("it has more than 256 MiB"), "{said}");
}
