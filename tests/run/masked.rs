//! Four institutions learn from sums alone: what their nodes say, what their state folders prove, and what
//! is left on the disk.

use super::*;

/// A small model and a short heartbeat. All four are one group.
pub(crate) const SUMS: &str = "name = 'sums'
rounds = 4
silos = 4
[task.table]
data = 'diabetes'
standardise = 'silo'
model = { mlp = { hidden = [4] } }
[privacy]
mode = 'secure-aggregation'
[strategy]
name = 'fedavg'
weight = 'equal'
training = { epochs = 5, batch = 16, optimiser = { name = 'sgd', rate = 0.05 } }
[protocol]
heartbeat = '100ms'
keep-rounds = 3
";

fn blobs(state: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(state.join("blobs")).unwrap();
    let files = files
        .map(|file| file.unwrap().path())
        .filter(|file| file.is_file());
    files
        .map(|file| (file.clone(), fs::read(&file).unwrap()))
        .collect()
}

/// A copy of a state folder.
fn copied(state: &Path, name: &str) -> PathBuf {
    let to = nowhere(name);
    fs::create_dir_all(to.join("blobs")).unwrap();
    for part in ["", "blobs"] {
        for entry in fs::read_dir(state.join(part)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), to.join(part).join(entry.file_name())).unwrap();
            }
        }
    }
    to
}

#[test]
fn four_institutions_learn_from_sums_that_can_be_opened_again() {
    let file = scenario("sums", SUMS);
    let demo = Demo::new("sums", &["--scenario", file.to_str().unwrap()]);
    let state = |node: usize| demo.configs[node].with_file_name("state");
    let federation = demo.folder.join("federation.toml");
    let said = good(&["federation", "show", federation.to_str().unwrap()]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in [
        "to every member it looks like random numbers",
        "they give no bound on what is learned about a patient",
        "masks do not protect the result",
        "if all other 3 of them collude, they see our update exactly",
        "if one institution is down, the sum is not opened",
        "experimental: not reviewed by a cryptographer",
    ] {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    // Three are a quorum, and no group.
    (0..3).for_each(|node| nodes.start(node));
    let waits = loop {
        let next = nodes.next(Instant::now() + Duration::from_secs(60));
        let next = next.unwrap_or_else(|| panic!("nobody says who is missing\n{}", nodes.tails()));
        let missing = next.line["missing"].as_array().map_or(0, Vec::len);
        if next.line["event"] == "groups-incomplete" && missing == 1 {
            break next.line;
        }
    };
    assert_eq!(waits["round"], 1);
    let absent = waits["missing"][0].as_str().unwrap().to_owned();
    nodes.start(3);
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    let lines = (0..3).map(|node| fs::read_to_string(demo.configs[node].with_file_name("lines")));
    let lines: String = lines.map(Result::unwrap).collect();
    assert!(!lines.contains("\"event\":\"left-out\""), "{lines}");

    // Every one opens the sums of the kept rounds again.
    for node in 0..4 {
        let state = state(node);
        let said = good(&["verify", "--state", state.to_str().unwrap()]);
        assert!(said.contains("rounds    3 to 4 computed again"), "{said}");
        let chain = good(&["chain", "--state", state.to_str().unwrap()]);
        assert_eq!(chain.matches("   outcome ").count(), 4, "{chain}");
        let ready = chain
            .lines()
            .filter(|line| line.trim_start().starts_with("ready "));
        assert_eq!(
            ready.filter(|line| line.contains(&absent)).count(),
            4,
            "{chain}"
        );
        // The trained model of no round is left, nor what it was masked with.
        let secret = |(_, blob): &&(PathBuf, Vec<u8>)| blob.starts_with(b"rota prepared");
        assert_eq!(blobs(&state).iter().filter(secret).count(), 0);
    }

    // No two of these sums differ in a part of their authors.
    let kept = state(2);
    let attack = ["attack", "absence", "--state", kept.to_str().unwrap()];
    let said = good(&attack);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("2 of 4 secure-aggregation rounds opened again, with 1 author set"),
        "{said}"
    );
    assert!(
        said.contains("this attack has nothing to subtract"),
        "{said}"
    );
    let json = good(&[&attack[..], &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["opened"], serde_json::json!([3, 4]), "{json}");
    assert_eq!(json["pairs"], serde_json::json!([]), "{json}");

    // The losses of the global model on a node's own rows, row by row.
    let config = demo.configs[2].to_str().unwrap();
    let json = good(&["attack", "membership", "--config", config, "--json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["train"].as_u64().unwrap() > 10, "{json}");
    let auc = |of: &str| json["auc"][of].as_f64().unwrap();
    assert!(
        auc("low") <= auc("value") && auc("value") <= auc("high"),
        "{json}"
    );

    // Whoever changes one of them is found out, by its name.
    for (what, beginning) in [
        ("list", &b"rota masked list"[..]),
        ("manifest", b"rota masked sheet"),
        ("unmaskings", b"rota unmaskings"),
    ] {
        let copy = copied(&state(1), &format!("sums-{what}"));
        let found = blobs(&copy)
            .into_iter()
            .find(|(_, blob)| blob.starts_with(beginning));
        let (file, _) = found.unwrap_or_else(|| panic!("no {what} is kept"));
        overwrite(&file, |bytes| *bytes.last_mut().unwrap() ^= 1);
        let done = output(&["verify", "--state", copy.to_str().unwrap()]);
        assert_eq!(done.status.code(), Some(1), "{what}");
        let said = text(&done.stderr);
        assert!(said.contains("is damaged"), "{what}: {said}");
        assert!(
            said.contains("the list, the manifest, a transcript or the unmaskings"),
            "{said}"
        );
    }
}

#[test]
fn what_one_member_can_do_to_a_group_is_stated_where_chosen() {
    let folder = nowhere("masked-said");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("stays.toml");
    let equal = "name = 'fedavg'\nweight = 'equal'";
    let own = "[task.table]\nstandardise = 'silo'\n";
    fs::write(
        &file,
        stays::SCENARIO
            .replace("name = 'fedavg'", equal)
            .replace("[task.table]\n", own),
    )
    .unwrap();
    let out = folder.join("federation.toml");
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let new = ["federation", "new", "--scenario", file, "--out", out];
    let said = good(&[&new[..], &["--secure-aggregation"]].concat());
    let help = good(&["federation", "new", "--help"]);
    for said in [said, help] {
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in ["stop", "--epsilon", "--groups"] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
    let said = good(&[&new[..], &["--force"]].concat());
    assert!(!said.contains("can stop this federation"), "{said}");
}

#[test]
fn shrunken_models_are_computed_again_from_sums_alone() {
    let text = SUMS
        .replace(
            "{ mlp = { hidden = [4] } }",
            "{ linear = { loss = 'squared' } }",
        )
        .replace(
            "name = 'fedavg'\nweight = 'equal'",
            "name = 'hierarchical'\nexponent = 0\nunknowns-per-number = 0.01",
        );
    let file = scenario("sums-shrunken", &text);
    let demo = Demo::new("sums-shrunken", &["--scenario", file.to_str().unwrap()]);
    let federation = demo.folder.join("federation.toml");
    let said = good(&["federation", "show", federation.to_str().unwrap()]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("one is opened for every 0.01 unknowns of the others"),
        "{said}"
    );
    // By default an institution requires 3 unknowns for each number.
    let allowed = "\n[policy]\nmin-rows = 0\nmin-sum-size = 0\n[policy.questions]\nunknowns-per-number = 0.01\n";
    for config in &demo.configs {
        let own = fs::read_to_string(config).unwrap();
        fs::write(config, format!("{own}{allowed}")).unwrap();
    }
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    for config in &demo.configs {
        let state = config.with_file_name("state");
        let said = good(&["verify", "--state", state.to_str().unwrap()]);
        assert!(said.contains("rounds    3 to 4 computed again"), "{said}");
    }
}
