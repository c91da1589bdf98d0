//! Members of a running federation ask what their rows look like together, and answer as far as they agreed to.

use super::amended::{Heard, id, says};
use super::*;

/// Returns what a question asks; `files` are the tables of those that answer, for one process that plays them.
pub(crate) fn question(folder: &Path, name: &str, kind: &str, files: &[&Path]) -> PathBuf {
    let file = |(at, file): (usize, &&Path)| {
        format!(
            "{{ silo = \"site {at}\", path = {:?} }}",
            file.display().to_string()
        )
    };
    let files: Vec<String> = files.iter().enumerate().map(file).collect();
    let text = format!(
        "reason = \"what the patients are like\"\n{kind}\n[ranges]\nage = [-0.2, 0.2]\nbmi = [-0.2, 0.3]\nbp = [-0.2, 0.3]\n\
         [sites]\nfiles = [{}]\n",
        files.join(", ")
    );
    let file = folder.join(name);
    fs::write(&file, text).unwrap();
    file
}

const DESCRIBE: &str = "kind = \"describe\"\ncolumns = [\"age\", \"bmi\"]";
const REGRESSION: &str = "kind = \"glm\"\nfamily = \"binomial\"\noutcome = \"bp > 0\"\nterms = [\"age\", \"bmi\"]\nrobust = true";

/// The tables of the answer that one process computes from all files.
fn played(question: &Path) -> Value {
    let said = good(&["ask", question.to_str().unwrap(), "--json"]);
    let document: Value = serde_json::from_str(&said).unwrap();
    document["answer"].clone()
}

pub(crate) fn answers(config: &Path) -> Value {
    let config = config.to_str().unwrap();
    let said = good(&["federation", "answers", "--json", "--config", config]);
    serde_json::from_str(&said).unwrap()
}

#[test]
fn nodes_answer_what_one_process_answers_with_all_tables() {
    let whole = fs::read_to_string("simulations/scenarios/diabetes.toml").unwrap();
    let quick = "heartbeat = \"100ms\"\nrows-declared = true";
    let file = scenario("run-asked", &whole.replace("heartbeat = \"5s\"", quick));
    let options = ["--silos", "4", "--rounds", "2", "--scenario"];
    let demo = Demo::new(
        "run-asked",
        &[&options[..], &[file.to_str().unwrap()]].concat(),
    );
    // The fourth says nothing to questions, and its policy lets them be answered.
    let policy = "[policy]\nmin-rows = 0\nmin-sum-size = 0\n\
                  auto-approve = [\"rounds\", \"addresses\", \"training-epochs\", \"members\", \"questions\"]\n";
    let fourth = fs::read_to_string(&demo.configs[3]).unwrap();
    fs::write(&demo.configs[3], format!("{fourth}\n{policy}")).unwrap();
    let tables: Vec<PathBuf> = demo
        .configs
        .iter()
        .map(|config| config.with_file_name("rows.csv"))
        .collect();
    let files = |of: &[usize]| -> Vec<&Path> { of.iter().map(|at| &*tables[*at]).collect() };
    let mut nodes = Heard::of(&demo.configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    let none = output(&[
        "federation",
        "answers",
        "--config",
        demo.configs[0].to_str().unwrap(),
    ]);
    assert!(
        text(&none.stderr).contains("has no question"),
        "{}",
        text(&none.stderr)
    );
    let ask = |nodes: &mut Heard, file: &Path, yes: [usize; 2], epoch: u64| {
        let said = says(&demo.configs[0], &["ask", file.to_str().unwrap()]);
        assert!(
            said.contains("Every member sees the numbers of every site"),
            "{said}"
        );
        let amendment = id(&said).to_owned();
        for node in yes {
            while nodes.until(node, "amendment")["amendment"] != amendment.as_str() {}
            says(&demo.configs[node], &["approve", &amendment]);
        }
        for node in 0..4 {
            assert_eq!(nodes.until(node, "epoch")["epoch"], epoch);
            nodes.until(node, "finished");
        }
    };
    let everybody = question(
        &demo.folder,
        "describe.toml",
        DESCRIBE,
        &files(&[0, 1, 2, 3]),
    );
    ask(&mut nodes, &everybody, [1, 2], 1);
    let found = answers(&demo.configs[0]);
    assert_eq!(
        (&found[0]["state"], &found[0]["rounds"]),
        (&"answered".into(), &2.into()),
        "{found:#}"
    );
    assert_eq!(found[0]["answer"], played(&everybody));
    // The third says nothing to the next one, so the answer is of the three others, and says so.
    let three = question(
        &demo.folder,
        "regression.toml",
        REGRESSION,
        &files(&[0, 1, 3]),
    );
    ask(&mut nodes, &three, [1, 3], 2);
    for config in &demo.configs {
        let found = answers(config);
        assert_eq!(found[1]["state"], "answered", "{found:#}");
        assert_eq!(found[1]["answer"], played(&three));
        let said = good(&[
            "federation",
            "answers",
            "--config",
            config.to_str().unwrap(),
        ]);
        assert!(
            said.contains("question 2 (glm)") && said.contains("answered by 3 sites"),
            "{said}"
        );
    }
    // It owes no signature for what is over.
    let third = demo.configs[2].to_str().unwrap();
    let said = text(&output(&["check", "--offline", "--config", third]).stdout);
    assert!(!said.contains("contributions are paused"), "{said}");
    let certificate = &answers(&demo.configs[0])[1]["certificate"];
    assert_eq!(
        (&certificate["quorum"], &certificate["members"]),
        (&3.into(), &4.into())
    );
    let page = demo.folder.join("answers.html");
    let write = [
        "federation",
        "answers",
        "--html",
        page.to_str().unwrap(),
        "--config",
        demo.configs[0].to_str().unwrap(),
    ];
    good(&write);
    let written = fs::read_to_string(&page).unwrap();
    for part in [
        "Question 1 (describe)",
        "Question 2 (glm)",
        "<h2>Ratios</h2>",
        "a quorum: 3 of 4 members",
        certificate["certificate"].as_str().unwrap(),
    ] {
        assert!(written.contains(part), "{part}: {written}");
    }
    assert!(!output(&write).status.success());
    // Everybody can compute every sum again.
    let state = demo.configs[2].with_file_name("state");
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    assert!(said.contains("computed again"), "{said}");
}

const QUANTILES: &str =
    "kind = \"quantiles\"\ncolumns = [\"bmi\"]\nprobabilities = [0.5]\nwidth = 0.01";
const META: &str = "kind = \"meta\"\neffect = { mean = { column = \"age\" } }";

/// Adds lines to the configuration of a node.
pub(crate) fn configured(config: &Path, lines: &str) {
    let before = fs::read_to_string(config).unwrap();
    fs::write(config, format!("{before}\n{lines}")).unwrap();
}

/// The first institution asks, and these others approve.
pub(crate) fn proposed(
    nodes: &mut Heard,
    configs: &[PathBuf],
    file: &Path,
    yes: &[usize],
) -> String {
    let said = says(&configs[0], &["ask", file.to_str().unwrap()]);
    let amendment = id(&said).to_owned();
    for &node in yes {
        while nodes.until(node, "amendment")["amendment"] != amendment.as_str() {}
        says(&configs[node], &["approve", &amendment]);
    }
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn nodes_answer_under_masks_and_a_kill_changes_nothing() {
    let agreed = crate::masked::SUMS.replace("rounds = 4", "rounds = 2");
    let file = scenario("run-asked-masked", &agreed);
    let demo = Demo::new("run-asked-masked", &["--scenario", file.to_str().unwrap()]);
    let configs = &demo.configs;
    // The fourth lets its policy answer, but for one kind.
    let policy = "[policy]\nmin-rows = 0\nmin-sum-size = 0\n\
                  auto-approve = [\"rounds\", \"addresses\", \"training-epochs\", \"members\", \"questions\"]\n\
                  [policy.questions]\nkinds = [\"describe\", \"glm\"]\n";
    configured(&configs[3], policy);
    let tables: Vec<_> = configs
        .iter()
        .map(|config| config.with_file_name("rows.csv"))
        .collect();
    let files: Vec<_> = tables.iter().map(PathBuf::as_path).collect();
    let asks = |name: &str, kind: &str| question(&demo.folder, name, kind, &files);
    let mut nodes = Heard::of(configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    let describe = asks("describe.toml", DESCRIBE);
    let said = proposed(&mut nodes, configs, &describe, &[1, 2]);
    for sentence in [
        "Opened is the sum over sites, and no site's own numbers (mode secure-aggregation)",
        "rounds wait until each of them has approved the question",
    ] {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        nodes.until(node, "finished");
    }
    for config in configs {
        let found = answers(config);
        assert_eq!(found[0]["mode"], "secure-aggregation", "{found:#}");
        assert_eq!(found[0]["answer"], played(&describe));
    }
    // One is killed in the middle of a regression, and starts again: the sums are those of all four.
    let regression = asks("regression.toml", REGRESSION);
    proposed(&mut nodes, configs, &regression, &[1, 2]);
    assert_eq!(nodes.until(2, "epoch")["epoch"], 2);
    nodes.until(2, "adopted");
    nodes.until(2, "adopted");
    nodes.nodes.kill(2);
    nodes.nodes.start(2);
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    for config in configs {
        let found = answers(config);
        assert_eq!(found[1]["state"], "answered", "{found:#}");
        assert_eq!(found[1]["answer"], played(&regression));
        let said = good(&[
            "federation",
            "answers",
            "--config",
            config.to_str().unwrap(),
        ]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("answered by 4 sites") && said.contains("sees the sums alone"),
            "{said}"
        );
    }
    // The policy of one refuses: all hear of the rule, and of nobody's name.
    let quantiles = asks("quantiles.toml", QUANTILES);
    proposed(&mut nodes, configs, &quantiles, &[1, 2]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 3);
        nodes.until(node, "finished");
    }
    for config in configs {
        let found = answers(config);
        assert_eq!(
            (&found[2]["state"], &found[2]["rounds"]),
            (&"stopped".into(), &0.into())
        );
        let why = found[2]["why"].as_str().unwrap();
        assert!(why.starts_with("1 site refused (rule kinds"), "{why}");
    }
    // A question that masks could not hide is not even proposed.
    let meta = asks("meta.toml", META);
    let refused = output(&[
        "federation",
        "ask",
        meta.to_str().unwrap(),
        "--config",
        configs[0].to_str().unwrap(),
        "--yes",
    ]);
    let refused = text(&refused.stderr);
    assert!(refused.contains("needs 14 sites or more"), "{refused}");
    // An answer that is there is not asked for again.
    let again = output(&[
        "federation",
        "ask",
        describe.to_str().unwrap(),
        "--config",
        configs[0].to_str().unwrap(),
        "--yes",
    ]);
    let again = text(&again.stderr);
    assert!(again.contains("is the answer to question 1"), "{again}");
    for config in configs {
        let state = config.with_file_name("state");
        let said = good(&["verify", "--state", state.to_str().unwrap()]);
        assert!(said.contains("computed again"), "{said}");
        let blobs = fs::read_dir(state.join("blobs")).unwrap();
        for blob in blobs
            .map(|blob| blob.unwrap().path())
            .filter(|blob| blob.is_file())
        {
            assert!(!fs::read(blob).unwrap().starts_with(b"rota prepared"));
        }
    }
}

/// Kinds that no other test asks nodes for.
const FURTHER: [&str; 4] = [
    "kind = \"correlate\"\ncolumns = [\"age\", \"bmi\"]",
    "kind = \"km\"\ntime = \"target\"\nevent = \"bp > 0\"\ngrid = { step = 50, cells = 7 }",
    "kind = \"cox\"\ntime = \"target\"\nevent = \"bp > 0\"\nterms = [\"bmi\"]",
    "kind = \"glm\"\nfamily = \"gaussian\"\noutcome = \"bp\"\nterms = [\"bmi\"]\nrobust = true",
];

#[test]
fn nodes_answer_products_curves_and_hazards_under_masks() {
    let agreed = crate::masked::SUMS.replace("rounds = 4", "rounds = 2");
    let file = scenario("run-asked-further", &agreed);
    let demo = Demo::new("run-asked-further", &["--scenario", file.to_str().unwrap()]);
    let configs = &demo.configs;
    let tables: Vec<_> = configs
        .iter()
        .map(|config| config.with_file_name("rows.csv"))
        .collect();
    let files: Vec<_> = tables.iter().map(PathBuf::as_path).collect();
    let mut nodes = Heard::of(configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    for (at, kind) in FURTHER.into_iter().enumerate() {
        let asked = question(&demo.folder, &format!("{at}.toml"), kind, &files);
        proposed(&mut nodes, configs, &asked, &[1, 2, 3]);
        for node in 0..4 {
            assert_eq!(nodes.until(node, "epoch")["epoch"], at + 1);
            nodes.until(node, "finished");
        }
        let played = played(&asked);
        for config in configs {
            let found = answers(config);
            assert_eq!(found[at]["state"], "answered", "{found:#}");
            assert_eq!(found[at]["answer"], played, "{kind}");
        }
    }
}

#[test]
fn nodes_answer_counts_with_noise_and_say_what_they_cost() {
    let agreed = crate::noised::NOISED.replace("rounds = 6", "rounds = 2");
    let demo = crate::noised::of_all("run-asked-noised", &agreed);
    let configs = &demo.configs;
    let tables: Vec<_> = configs
        .iter()
        .map(|config| config.with_file_name("rows.csv"))
        .collect();
    let files: Vec<_> = tables.iter().map(PathBuf::as_path).collect();
    let mut nodes = Heard::of(configs, &[]);
    for node in 0..4 {
        nodes.nodes.start(node);
    }
    for node in 0..4 {
        nodes.until(node, "finished");
    }
    let regression = question(&demo.folder, "regression.toml", REGRESSION, &files);
    let refused = output(&[
        "federation",
        "ask",
        regression.to_str().unwrap(),
        "--config",
        configs[0].to_str().unwrap(),
        "--yes",
    ]);
    let refused = text(&refused.stderr);
    let refused = refused.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(refused.contains("without `offset`"), "{refused}");
    let describe = question(&demo.folder, "describe.toml", DESCRIBE, &files);
    let said = proposed(&mut nodes, configs, &describe, &[1, 2, 3]);
    for sentence in [
        "with the noise of each, and no site's own numbers",
        "all agreed rounds together: epsilon ",
        "; without the question epsilon ",
    ] {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
        nodes.until(node, "finished");
    }
    let found = answers(&configs[0]);
    assert_eq!(
        (&found[0]["state"], &found[0]["mode"]),
        (&"answered".into(), &"differential-privacy".into()),
        "{found:#}"
    );
    let rows = &found[0]["answer"][0]["rows"][0];
    assert_eq!(rows[0], 4);
    let notes = found[0]["answer"][1]["notes"].to_string();
    assert!(
        notes.contains("noise with a standard deviation of "),
        "{notes}"
    );
    // 442 rows, with a noise of about two hundred in both numbers: they are none of the exact counts.
    let counted = rows[1].as_i64().unwrap();
    assert!((counted - 442).abs() < 2_000, "{counted}");
    // A regression of as few rows is all noise: it ends after its first sums, and costs no more than these.
    let plain = REGRESSION.replace("\nrobust = true", "");
    let plain = question(&demo.folder, "plain.toml", &plain, &files);
    proposed(&mut nodes, configs, &plain, &[1, 2, 3]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 2);
        nodes.until(node, "finished");
    }
    let found = answers(&configs[1]);
    assert_eq!(
        (&found[1]["state"], &found[1]["rounds"]),
        (&"stopped".into(), &2.into()),
        "{found:#}"
    );
    let why = found[1]["why"].as_str().unwrap();
    assert!(why.contains("not determined under this noise"), "{why}");
    // Two rounds of learning, and two of each question.
    let lines = good(&[
        "ledger",
        "show",
        "--json",
        "--config",
        configs[1].to_str().unwrap(),
    ]);
    let lines: Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(lines["contributions"].as_array().unwrap().len(), 6);
    let state = configs[2].with_file_name("state");
    let said = good(&["verify", "--state", state.to_str().unwrap()]);
    assert!(said.contains("computed again"), "{said}");
}
