//! Federations of programs without messages.

use super::federations::{external, rota, scenario, simulate, text};
use super::one::{command, noted};

pub(crate) fn programs_learn_the_same_without_messages() {
    for strategy in ["fedavg", "fedprox"] {
        let name = format!("direct-{strategy}");
        let learner = format!("command = {:?}", command("well", &name));
        let file = scenario(
            &name,
            &learner,
            &external(),
            &format!("name = '{strategy}'"),
        );
        let outcomes = |mesh: &str| -> Vec<String> {
            let options = ["--silos", "3", "--no-references", "--mesh", mesh];
            let summary = simulate(&file, &options);
            assert_eq!(summary["mesh"], mesh);
            let rounds = summary["rounds"].as_array().unwrap().iter();
            rounds.map(|round| round["outcome"].to_string()).collect()
        };
        let direct = outcomes("direct");
        assert_eq!(direct.len(), 4, "{strategy}");
        assert_eq!(direct, outcomes("virtual"), "{strategy}");
    }
}

/// Its program gives outputs as well, of which Rota measures the rest.
pub(crate) fn a_programs_own_metric_is_summarised() {
    let learner = format!("command = {:?}\nprograms = 1", command("graded", "graded"));
    for (name, more, agreed) in [
        (
            "graded-agreed",
            "metric = { own = 'grade', better = 'larger' }\n",
            true,
        ),
        ("graded-beside", "", false),
    ] {
        let task = external().replacen('\n', &format!("\n{more}"), 1);
        let file = scenario(name, &learner, &task, "name = 'fedavg'");
        let summary = simulate(&file, &["--silos", "3"]);
        for silo in summary["silos"].as_array().unwrap() {
            assert_eq!(silo["program_metrics"]["grade"], 0.75, "{name}");
            for model in ["local", "coalition"] {
                let value = silo[model].as_f64().unwrap();
                assert_eq!(value == 0.75, agreed, "{name}: {model} {value}");
            }
        }
        let means = summary["means"].as_array().unwrap();
        let coalition = means.iter().find(|one| one["model"] == "coalition");
        assert_eq!(coalition.is_some_and(|mean| mean["worst"] == 0.75), agreed);
    }
}

pub(crate) fn what_a_program_lacks_ends_a_comparison_before_its_runs() {
    let learner = format!("command = {:?}", command("well", "unable-to"));
    let file = scenario("unable-to", &learner, &external(), "name = 'fedavg'");
    let name = file.to_str().unwrap();
    let output = rota(&[
        "compare",
        name,
        "--json",
        "--quiet",
        "--strategies",
        "fedavg,fedsr",
    ]);
    let said = text(&output.stderr);
    let why = "strategy \"fedsr\": the learner has no stochastic models";
    assert!(!output.status.success() && said.contains(why), "{said}");
    assert_eq!(noted("unable-to").1, 0);
}
