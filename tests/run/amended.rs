//! A federation whose agreement changes while its nodes run: one is admitted, one leaves, rounds are
//! added, and nobody edits another one's files.

pub(crate) use super::heard::Heard;
use super::*;

/// Returns what `rota federation changes` prints at a node.
pub(crate) fn changes(config: &Path) -> String {
    good(&[
        "federation",
        "changes",
        "--config",
        config.to_str().unwrap(),
    ])
}

/// The institution with this configuration says something about the agreement.
pub(crate) fn says(config: &Path, words: &[&str]) -> String {
    let config = config.to_str().unwrap();
    good(&[&["federation"], words, &["--config", config, "--yes"]].concat())
}

/// The id in the first line of what a proposal prints.
pub(crate) fn id(said: &str) -> &str {
    let line = said.lines().next().unwrap();
    line.strip_prefix("amendment ").unwrap()
}

/// Files of an institution that is in no agreement yet; gives its configuration, key and address.
fn newcomer(demo: &Demo, name: &str, port: u16) -> (PathBuf, String, String) {
    let folder = demo.folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    let key = folder.join("identity.key");
    let key = good(&["identity", "new", "--out", key.to_str().unwrap()]);
    let first = fs::read_to_string(&demo.configs[0]).unwrap();
    let listen = first
        .lines()
        .find(|line| line.starts_with("listen"))
        .unwrap();
    let address = format!("/ip4/127.0.0.1/udp/{port}/quic-v1");
    let config = folder.join("node.toml");
    fs::write(
        &config,
        first.replace(listen, &format!("listen = [\"{address}\"]")),
    )
    .unwrap();
    (config, key.trim().to_owned(), address)
}

#[test]
fn members_come_and_go_and_rounds_are_added_while_nodes_run() {
    let demo = quick("run-amended", 4);
    let base: u16 = {
        let text = fs::read_to_string(&demo.configs[0]).unwrap();
        let at = text.find("/udp/").unwrap() + 5;
        let digits = |c: char| c.is_ascii_digit();
        text[at..]
            .split(|c| !digits(c))
            .next()
            .unwrap()
            .parse()
            .unwrap()
    };
    let (config, key, address) = newcomer(&demo, "newcomer", base + 9);
    let mut configs = demo.configs.clone();
    configs.push(config.clone());
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    for node in 0..5 {
        nodes.nodes.start(node);
    }
    nodes.until(4, "waits-for-admission");
    nodes.until(0, "finished");
    assert!(changes(&demo.configs[0]).contains("no change is proposed"));
    // One proposes: a member more, and four rounds.
    let said = says(&demo.configs[0], &["admit", "newcomer", &key, &address]);
    assert!(said.contains("newcomer comes in"), "{said}");
    assert!(said.contains("1 of 3 approvals so far"), "{said}");
    let admission = id(&said).to_owned();
    for node in 1..3 {
        let line = nodes.until(node, "amendment");
        assert_eq!(
            (&line["amendment"], &line["needed"]),
            (&admission.as_str().into(), &3.into())
        );
        let said = says(&demo.configs[node], &["approve", &admission[..32]]);
        assert!(said.contains("newcomer comes in"), "{said}");
    }
    for node in 0..5 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    // The newcomer adopts the models of the last round, though no round follows. Its institution has
    // signed nothing, so its node contributes nothing until it has.
    nodes.until(4, "finished");
    let silo = config.to_str().unwrap();
    let owed = output(&["check", "--json", "--offline", "--config", silo]);
    assert_eq!(owed.status.code(), Some(1), "{}", text(&owed.stdout));
    assert!(text(&owed.stdout).contains("contributions are paused"));
    let said = good(&["federation", "sign", "--yes", "--config", silo]);
    assert!(said.contains("signed as newcomer"), "{said}");
    let signed = output(&["check", "--json", "--offline", "--config", silo]);
    assert_eq!(signed.status.code(), Some(0), "{}", text(&signed.stdout));
    // Rounds are added; the newcomer is a member like any other.
    let in_force = config.with_file_name("state").join("in-force.toml");
    let text = fs::read_to_string(&in_force).unwrap();
    assert!(text.contains(&key) && text.contains(&address), "{text}");
    let more = demo.folder.join("more.toml");
    fs::write(&more, text.replace("rounds = 3", "rounds = 5")).unwrap();
    let said = says(&config, &["change", more.to_str().unwrap()]);
    let rounds = id(&said).to_owned();
    for node in 0..3 {
        loop {
            let line = nodes.until(node, "amendment");
            if line["amendment"] == rounds.as_str() {
                break;
            }
        }
        says(&demo.configs[node], &["approve", &rounds]);
    }
    for node in 0..5 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 2);
        nodes.until(node, "finished");
    }
    // One leaves: its own word is enough.
    let said = says(&demo.configs[3], &["leave"]);
    assert!(!said.contains("approvals so far"), "{said}");
    nodes.until(3, "left");
    // Nobody else may have the proof that it left, so it stays until a quorum has it.
    let said = nodes.until(3, "leaving");
    assert!(said["why"].as_str().unwrap().contains("quorum"), "{said}");
    assert_eq!(nodes.nodes.code(3), 0);
    for node in [0, 1, 2, 4] {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 3);
    }
    // Nobody edited anybody's agreement, and all have the same chain.
    let chain = |config: &Path| {
        let state = config.with_file_name("state");
        good(&["chain", "--state", state.to_str().unwrap()])
    };
    let chains: Vec<_> = demo.configs[..3]
        .iter()
        .map(|config| chain(config))
        .collect();
    assert!(chains.iter().all(|other| *other == chains[0]));
    assert!(chains[0].contains("round    5"), "{}", chains[0]);
    for what in ["admits newcomer", "5 rounds", "without "] {
        assert!(chains[0].contains(what), "{what}: {}", chains[0]);
    }
    // The rounds of all epochs are computed again from what is kept; a newcomer has models to take.
    let verified = |config: &Path| {
        let state = config.with_file_name("state");
        good(&["verify", "--state", state.to_str().unwrap()])
    };
    // A member on a busy machine may adopt a round that the others computed before it did.
    let all: Vec<_> = demo.configs[..3].iter().map(|own| verified(own)).collect();
    let whole = |said: &String| said.contains("1 to 5 computed again");
    assert!(all.iter().any(whole), "{all:#?}");
    let said = verified(&config);
    assert!(said.contains("5 computed again"), "{said}");
    assert!(said.starts_with("newcomer in the federation"), "{said}");
    // It has none of the rounds before it was admitted, and says who has.
    assert!(
        said.contains("missing   rounds 1 to 3 are not in"),
        "{said}"
    );
    let state = config.with_file_name("state");
    let state = state.to_str().unwrap();
    let said: Value = serde_json::from_str(&good(&["chain", "--json", "--state", state])).unwrap();
    let missing = &said["missing"][0];
    assert_eq!((&missing["from"], &missing["to"]), (&1.into(), &3.into()));
    assert!(
        missing["members"].as_array().unwrap().len() >= 3,
        "{said:#}"
    );
    // Its chain is the end of that of the founders, byte for byte.
    let founder = demo.configs[0].with_file_name("state");
    let founder = good(&["chain", "--json", "--state", founder.to_str().unwrap()]);
    let founder: Value = serde_json::from_str(&founder).unwrap();
    let (all, own) = (&founder["blocks"], said["blocks"].as_array().unwrap());
    let all = all.as_array().unwrap();
    assert!(own.len() > 3 && all.ends_with(own), "{said:#}");
    let said = good(&["chain", "--state", state]);
    assert!(
        said.contains("missing      rounds 1 to 3 are not in"),
        "{said}"
    );
    assert!(!chains[0].contains("missing "), "{}", chains[0]);
    // Its log is that of a member, too.
    let said = good(&["audit", "--summary", "--state", state]);
    assert!(said.starts_with("newcomer: lines 1 to"), "{said}");
    assert!(said.contains("the journal beside it names line"), "{said}");
    let said = good(&["model", "list", "--config", config.to_str().unwrap()]);
    assert!(said.contains('5'), "{said}");
    // A check speaks of the agreement in force, at a newcomer, at a founder, and at one that left.
    let checked = |config: &Path| {
        let words = ["check", "--json", "--offline", "--config"];
        let found = output(&[&words[..], &[config.to_str().unwrap()]].concat());
        let document: Value = serde_json::from_slice(&found.stdout).unwrap();
        (found.status.code().unwrap(), document.to_string())
    };
    for (own, name) in [(&config, "newcomer"), (&demo.configs[0], "")] {
        let (code, said) = checked(own);
        assert_eq!(code, 0, "{said}");
        let force = "the agreement in force is that of change 3, with 4 members and 5 rounds";
        assert!(said.contains(force) && said.contains(name), "{said}");
    }
    let (code, said) = checked(&demo.configs[3]);
    assert!(
        code == 1 && said.contains("is no member any more"),
        "{said}"
    );
    // A node that starts again is in the last epoch at once.
    nodes.nodes.terminate(1);
    assert_eq!(nodes.nodes.code(1), 0);
    nodes.nodes.start(1);
    assert_eq!(nodes.until(1, "epoch")["epoch"], 3);
}

#[test]
fn an_absent_member_and_a_replaced_key_find_the_new_agreement() {
    let demo = quick("run-rekeyed", 4);
    // The key of the last one was lost before its node ever ran; it gets a new one, and an empty state
    // folder.
    let config = demo.configs[3].clone();
    let name = {
        let text = fs::read_to_string(demo.folder.join("federation").join("federation.toml"))
            .or_else(|_| fs::read_to_string(demo.folder.join("federation.toml")));
        let text = text.unwrap();
        let mut names = text.lines().filter(|line| line.starts_with("name = "));
        let last = names.next_back().unwrap();
        last.trim_start_matches("name = ")
            .trim_matches('"')
            .to_owned()
    };
    let new = config.with_file_name("new.key");
    let key = good(&["identity", "new", "--out", new.to_str().unwrap()]);
    let text = fs::read_to_string(&config).unwrap();
    let line = |key: &str| {
        let mut lines = text.lines();
        lines.find(|line| line.starts_with(key)).unwrap().to_owned()
    };
    let rekeyed = text
        .replace(&line("identity"), "identity = \"new.key\"")
        .replace(&line("state"), "state = \"state-2\"");
    let renewed = config.with_file_name("renewed.toml");
    fs::write(&renewed, &rekeyed).unwrap();
    let mut configs = demo.configs.clone();
    configs.push(renewed);
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    for node in 0..3 {
        nodes.nodes.start(node);
    }
    nodes.until(0, "finished");
    let here = ["--config", demo.configs[0].to_str().unwrap(), "--yes"];
    let unsaid = output(&[&["federation", "rekey", &name, key.trim()][..], &here].concat());
    assert_eq!(
        unsaid.status.code(),
        Some(2),
        "lost or stolen has to be said"
    );
    let said = says(&demo.configs[0], &["rekey", &name, key.trim(), "--lost"]);
    let rekeying = id(&said).to_owned();
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &rekeying]);
    }
    // No member signs its approval before a node with the new key has answered, also after a restart,
    // which takes up what its institution says.
    for node in 0..3 {
        nodes.nodes.terminate(node);
        assert_eq!(nodes.nodes.code(node), 0);
        loop {
            let line = nodes.next(node, "the end of its output");
            assert_ne!(line["event"], "epoch", "{line}");
            if line["event"] == "amendment" {
                assert_eq!(line["approved"], serde_json::json!([]), "{line}");
                assert_eq!(line["awaits"], serde_json::json!([key.trim()]), "{line}");
            }
            if line.is_null() {
                break;
            }
        }
        nodes.nodes.start(node);
    }
    for node in 0..3 {
        let line = nodes.until(node, "amendment");
        assert_eq!(line["approved"], serde_json::json!([]), "{line}");
        assert_eq!(line["awaits"], serde_json::json!([key.trim()]), "{line}");
    }
    nodes.nodes.start(4);
    nodes.until(4, "waits-for-admission");
    for node in [0, 1, 2, 4] {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    nodes.until(4, "finished");
    // With the old key, at the same address, it is told that it is none any more.
    nodes.nodes.terminate(4);
    assert_eq!(nodes.nodes.code(4), 0);
    nodes.nodes.start(3);
    nodes.until(3, "left");
    assert_eq!(nodes.nodes.code(3), 0);
    // Without the option, a key of nobody is refused with what to do.
    let other = config.with_file_name("other.key");
    good(&["identity", "new", "--out", other.to_str().unwrap()]);
    let text = rekeyed
        .replace("new.key", "other.key")
        .replace("state-2", "state-3");
    let stranger = config.with_file_name("stranger.toml");
    fs::write(&stranger, text).unwrap();
    let (code, said) = run(&stranger);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`rota federation admit NAME"), "{said}");
}
