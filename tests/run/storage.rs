//! Damaged and lost state folders of a node.

use super::*;

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
        let ended = said.line.is_null() && said.start == nodes.starts[said.node];
        alive -= usize::from(ended);
    }
    for node in 0..nodes.configs.len() {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    nodes.configs.iter().map(chain).collect()
}
