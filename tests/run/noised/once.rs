//! A model from one noised sum: one round, one line in every ledger.

use super::*;

/// A linear model that is solved from one sum.
fn solved_once() -> String {
    let keys = "release = 'once'\nrows-norm = 1.1\ntargets-within = 350.0";
    let text = NOISED.replace("rounds = 6", "rounds = 1");
    text.replace("clip = 1.0", keys)
}

#[test]
fn four_institutions_solve_one_model_from_a_noised_sum_with_one_line_in_every_ledger() {
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
            &format!("as likely up to a factor e^{epsilon} (but for about 1e-5)"),
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
