//! A model from one differentially private sum. Whoever is killed in its only round, every institution draws its noise once, and
//! its ledger has one line.

use super::*;

/// A linear model that is solved from one sum.
fn solved_once() -> String {
    let keys = "mechanism = 'sufficient-statistics'\nmax-row-norm = 1.1\nmax-target = 350.0";
    let text = NOISED.replace("rounds = 6", "rounds = 1");
    text.replace("clipping-norm = 1.0", keys)
}

#[test]
fn four_institutions_solve_a_private_model_with_one_ledger_line() {
    let demo = of_all("run-noised-once", &solved_once());
    let federation = demo.folder.join("federation.toml");
    let shown = flat(&good(&["federation", "show", federation.to_str().unwrap()]));
    let config = demo.configs[1].to_str().unwrap();
    let check = flat(&text(
        &output(&["check", "--offline", "--config", config]).stdout,
    ));
    let (epsilon, alone) = numbers(&shown);
    for page in [&shown, &check] {
        assert_eq!(numbers(page), (epsilon.clone(), alone.clone()));
        for sentence in [
            // Of 11 columns with each other and with the target.
            "in the only round, one list of 77 numbers: the sums over its training rows of the products",
            "of at least 4 institutions, once a quorum has agreed on exactly these authors: every member, which solves \
             the model from it",
            "When it stops: after the only round that is agreed on",
            &format!(" (e^{epsilon}) times as likely, except with probability about 1 in 100,000"),
        ] {
            assert!(page.contains(sentence), "{sentence}: {page}");
        }
    }
    assert!(
        check.contains("the ledger here has room for the round to come"),
        "{check}"
    );
    let mut nodes = Heard::of(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    for node in 0..4 {
        assert_eq!(nodes.nodes.code(node), 0, "{}", nodes.nodes.tails());
    }
    // All computed the same model, and the federation is over.
    let outcomes: BTreeSet<_> = demo.configs.iter().map(|config| outcomes(config)).collect();
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes.first().map(Vec::len), Some(1), "{outcomes:?}");
    for config in &demo.configs {
        let lines = ledger(config);
        assert_eq!(lines.len(), 1, "{}", config.display());
        let line = &lines[0];
        assert_eq!(line["round"], 1);
        let both = [&line["epsilon"], &line["epsilon-alone"]];
        assert_eq!(both, [&epsilon[..], &alone[..]]);
    }
}

/// The outcomes of all rounds, as a node's journal has them.
fn outcomes(config: &Path) -> Vec<(u64, String)> {
    let state = config.with_file_name("state");
    let chain = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
    let chain: Value = serde_json::from_str(&chain).unwrap();
    let blocks = chain["blocks"].as_array().unwrap().iter();
    let rounds = blocks.filter_map(|block| {
        let outcome = block["outcome"].as_str()?;
        Some((block["round"].as_u64()?, outcome.to_owned()))
    });
    rounds.collect()
}

/// Files of a node's state folder that hold what a silo keeps to itself for a round.
fn secrets(config: &Path) -> usize {
    let folder = config.with_file_name("state").join("blobs");
    let files = fs::read_dir(folder).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let files = files.filter(|file| file.is_file());
    files
        .filter(|file| fs::read(file).unwrap().starts_with(b"rota prepared"))
        .count()
}

/// Files that a node that was killed had on its disk.
struct Killed {
    node: usize,
    drawn: BTreeMap<u64, Vec<String>>,
    lines: Vec<Value>,
    secrets: usize,
}

/// Kills a node, looks at its disk, and starts it again.
fn killed(nodes: &mut TestNodes, node: usize) -> Killed {
    nodes.kill(node);
    let config = &nodes.configs[node];
    let killed = Killed {
        node,
        drawn: prepared(config),
        lines: ledger(config),
        secrets: secrets(config),
    };
    nodes.start(node);
    killed
}

/// Kills one that does not lead as soon as it has drawn its noise, and whoever leads as soon as it has sent a list,
/// so that another lead makes another one.
fn kills_in_the_round(nodes: &mut TestNodes, names: &[String]) -> [Killed; 2] {
    let (mut lead, mut member, mut of_lead) = (String::new(), None, None);
    let end = Instant::now() + Duration::from_secs(60);
    while member.is_none() || of_lead.is_none() {
        let Some(said) = nodes.next(end) else {
            panic!("no two kills within a minute\n{}", nodes.tails());
        };
        let (node, line) = (said.node, said.line);
        match line["event"].as_str() {
            Some("view") => lead = line["lead"].as_str().unwrap().to_owned(),
            Some("work-ends") if line["work"] == "prepare" && names[node] != lead => {
                member.get_or_insert_with(|| killed(nodes, node));
            }
            Some("leading") if line["phase"] == "masking" => {
                of_lead.get_or_insert_with(|| killed(nodes, node));
            }
            _ => {}
        }
    }
    [member.unwrap(), of_lead.unwrap()]
}

#[test]
fn kills_in_the_only_round_leave_one_draw_and_no_secret() {
    let demo = of_all("run-noised-once-killed", &solved_once());
    let names: Vec<_> = demo.configs.iter().map(|config| name(config)).collect();
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    let before = kills_in_the_round(&mut nodes, &names);
    for node in 0..4 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    let all: BTreeSet<_> = demo.configs.iter().map(|config| outcomes(config)).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all.first().map(Vec::len), Some(1), "{all:?}");
    // The noise that was drawn before a kill is what the ledger has, from then on.
    let (mut known, mut kept) = (0, 0);
    for Killed {
        node,
        drawn,
        lines,
        secrets,
    } in before
    {
        assert_eq!(lines.len(), 1, "the line comes before anything is sent");
        assert_eq!(ledger(&demo.configs[node]), lines);
        let commitment = lines[0]["commitment"].as_str().unwrap();
        for drawn in drawn.values() {
            assert_eq!(drawn, &[commitment]);
            known += 1;
        }
        kept += secrets;
    }
    assert!(known > 0 && kept > 0, "no kill was within the round");
    for config in &demo.configs {
        assert_eq!(ledger(config).len(), 1, "{}", config.display());
        assert_eq!(secrets(config), 0, "{}", config.display());
    }
}
