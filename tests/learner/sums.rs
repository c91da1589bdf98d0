//! Secure-aggregation rounds of programs.

use super::federations::{external, scenario, simulate};
use super::one::command;

pub(crate) fn programs_learn_from_sums_what_they_learn_in_clear() {
    let played = |mode: &str| -> Vec<f64> {
        let name = format!("sums-{mode}");
        let learner = format!("command = {:?}", command("well", &name));
        let task = format!("[privacy]\nmode = '{mode}'\n{}", external());
        let strategy = "name = 'fedavg'\nweight = 'equal'";
        let file = scenario(&name, &learner, &task, strategy);
        let summary = simulate(&file, &["--silos", "4", "--no-references"]);
        let rounds = summary["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 4, "{mode}");
        let silos = summary["silos"].as_array().unwrap().iter();
        silos
            .map(|silo| silo["coalition"].as_f64().unwrap())
            .collect()
    };
    let (clear, masked) = (played("clear"), played("secure-aggregation"));
    assert_ne!(
        clear, masked,
        "nothing was rounded: the rounds were not masked"
    );
    for (clear, masked) in clear.iter().zip(&masked) {
        assert!(
            (clear - masked).abs() < 1e-4 * clear.abs(),
            "{clear} {masked}"
        );
    }
}
