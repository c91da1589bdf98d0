//! Federations of programs without messages.

use super::federations::{external, scenario, simulate};
use super::one::command;

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
