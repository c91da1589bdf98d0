//! Members of a running federation ask what their rows look like together, and answer as far as they agreed to.

use super::amended::{Heard, id, says};
use super::*;

/// Returns what a question asks; `files` are the tables of those that answer, for one process that plays them.
fn question(folder: &Path, name: &str, kind: &str, files: &[&Path]) -> PathBuf {
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

fn answers(config: &Path) -> Value {
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
