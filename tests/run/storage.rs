//! Damaged and lost state folders of a node.

use super::*;

#[test]
fn a_state_folder_of_another_process_or_federation_is_refused() {
    let demo = quick("run-state", 2);
    let mut nodes = TestNodes::new(&demo.configs[..1], &[]);
    nodes.start(0);
    nodes.until(0, "start", 10);
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("in use by another running process"), "{said}");
    nodes.terminate(0);
    assert_eq!(nodes.code(0), 0);
    edit(
        &demo.folder.join("federation.toml"),
        "straggler-timeout = 20",
        "straggler-timeout = 21",
    );
    edit(
        &demo.folder.join("federation.toml"),
        "view-timeout = ",
        "view-timeout = 1",
    );
    sign(&demo.configs[0]);
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is the journal of federation"), "{said}");
}

#[test]
fn a_node_with_a_damaged_journal_listens_until_it_may_take_part() {
    let demo = long("run-damaged", 150);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    adopts(&nodes, 3, 3);
    kill(&mut nodes, 3);
    let config = &demo.configs[3];
    let state = config.with_file_name("state");
    overwrite(&state.join("journal.redb"), |bytes| {
        // All but the header: what lies behind may be room that is not used yet.
        bytes[8192..].iter_mut().for_each(|byte| *byte ^= 0x5a);
    });
    let (code, said) = run(config);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("journal.redb is damaged") && said.contains("--journal-lost"),
        "{said}"
    );
    let mut once = TestNodes::new(&demo.configs[3..], &["--journal-lost"]);
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
    // Without the flag it continues to listen until it may take part.
    nodes.start(3);
    nodes.until(3, "waiting", 10);
    nodes.until(3, "taking-part", 60);
    // The chains up to the last round are equal.
    let all = ended(&mut nodes);
    assert!(all.iter().all(|chain| *chain == all[0]));
}

#[test]
fn missing_or_damaged_blobs_are_fetched_and_chains_are_equal() {
    let demo = long("run-blobs", 40);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    let state = demo.configs[3].with_file_name("state");
    let blobs = state.join("blobs");
    for case in ["outcome", "models", "everything"] {
        adopts(&nodes, 3, 2);
        kill(&mut nodes, 3);
        let mut records = store::snapshot(&state).unwrap().records.into_iter().rev();
        let adopted = records.find_map(|record| match record {
            JournalRecord::Adopted(adopted) => Some(adopted),
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
                // Contributions to a round whose outcome was fetched may never have been here.
                for file in others.map(|hash| file(*hash)).filter(|file| file.exists()) {
                    overwrite(&file, |bytes| bytes[40] ^= 1);
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
    // With a given agreement, and without any.
    let state = state.to_str().unwrap();
    let agreed = demo.folder.join("federation.toml");
    let named = [
        "chain",
        "--state",
        state,
        "--federation",
        agreed.to_str().unwrap(),
    ];
    let printed = good(&named);
    assert!(
        printed.starts_with(&format!("federation {}, ", demo.id)),
        "{printed}"
    );
    assert!(
        printed.contains("round   40") && printed.contains("lead silo "),
        "{printed}"
    );
    fs::remove_file(Path::new(state).join("federation.toml")).unwrap();
    let bare: Value = serde_json::from_str(&good(&["chain", "--json", "--state", state])).unwrap();
    assert!(
        bare["members"].is_null() && bare["blocks"][0]["included"][0].is_u64(),
        "{bare}"
    );
    assert_eq!(bare["blocks"][5]["block"], all[0]["blocks"][5]["block"]);
    // An agreement of another federation, and a folder without a journal.
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
    assert_eq!(nothing.status.code(), Some(1));
    assert!(text(&nothing.stderr).contains("there is no journal in"));
}

/// A demo of four silos with null training and this number of short rounds.
pub(super) fn long(name: &str, rounds: u64) -> Demo {
    let text = QUICK.replace("rounds = 3", &format!("rounds = {rounds}"));
    let file = scenario(name, &text);
    Demo::new(name, &["--scenario", file.to_str().unwrap()])
}

/// Kills a node, and skips the lines that it printed before.
pub(super) fn kill(nodes: &mut TestNodes, node: usize) {
    nodes.kill(node);
    let end = Instant::now() + Duration::from_secs(10);
    while nodes
        .next(end)
        .is_some_and(|said| said.node != node || !said.line.is_null())
    {}
}

/// Waits until a node has adopted this number of further rounds.
pub(super) fn adopts(nodes: &TestNodes, node: usize, rounds: usize) {
    (0..rounds).for_each(|_| drop(nodes.until(node, "adopted", 30)));
}

/// Waits for the end of all nodes, and returns the chain of each.
pub(super) fn ended(nodes: &mut TestNodes) -> Vec<Value> {
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
