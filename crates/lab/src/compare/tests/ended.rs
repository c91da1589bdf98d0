//! A federation that ends by itself is measured where it ends.

use super::*;

/// The row of a mixed model of patients, which has this many rounds at most.
fn mixed(rounds: u64, tune: &str) -> ComparisonRow {
    let text = format!(
        "name = \"ended\"
        seeds = 2
        served = false
        [scenario]
        rounds = {rounds}
        silos = 4
        [scenario.task.table]
        data = \"diabetes\"
        standardise = \"federation\"
        model = {{ linear = {{}} }}
        [training]
        epochs = 1
        batch = 0
        optimiser = {{ name = \"sgd\", rate = 0.1 }}
        [tune]
        {tune}
        [[strategy]]
        name = \"local\"
        [[strategy]]
        name = \"hierarchical\""
    );
    let experiment = Experiment::parse("ended.toml", &text, Path::new(""), &Choices::default());
    let comparison = compare(&experiment.unwrap(), CompareOptions::default()).unwrap();
    comparison.variants[0].strategies[1].clone()
}

#[test]
fn what_ends_by_itself_is_measured_where_it_ends() {
    let rounds = |cost: &Option<CostToReach>| cost.as_ref().unwrap().rounds.mean;
    for tune in ["", "every-seed = false", "again = false"] {
        let long = mixed(100, tune);
        assert_eq!(long.unfinished, [""; 0], "{tune}");
        assert_eq!(rounds(&long.to_best), rounds(&long.to_end), "{tune}");
        assert!(rounds(&long.to_end) < 100.0, "{tune}");
    }
    // Cut off after two rounds: more are tried, and where these may not be, that is said.
    let short = mixed(2, "widen = 0");
    assert_eq!(short.unfinished.len(), 1, "{:?}", short.unfinished);
    assert_eq!(mixed(2, "widen = 5").unfinished, [""; 0]);
}
