//! Remarks on settings with an unexpected result: allowed, but without the effect that they are
//! there for.

use super::methods::Method;
use crate::strategy::StrategyConfig;
use crate::strategy::client::fedcg::Neighbours;

/// Rounds below which a hierarchical model is rarely done.
const FEWEST_ROUNDS: u64 = 12;

impl StrategyConfig {
    /// Sentences on settings that are allowed and do not do what they are there for in a federation of so
    /// many rounds; empty where there are none.
    pub fn remarks(&self, rounds: u64) -> Vec<String> {
        let mut remarks = Vec::new();
        let trainings = (rounds + 1).saturating_sub(self.first_training());
        match &self.method {
            Method::FedCg(options) => {
                let halves = options.domains == 2 && options.beta == 0.5;
                if halves && options.adjacency != Neighbours::Identity {
                    remarks.push(
                        "with two domains and `beta = 0.5` all shares of the graph are one half, so after the \
                         first averaging both domains have the same branch; set another `beta`, more `domains`, or \
                         `adjacency = \"identity\"`"
                            .to_owned(),
                    );
                }
                if options.domains == 1 {
                    remarks.push("with one domain all rows have the same branch".to_owned());
                }
                if !options.given && options.domains > 1 && options.refresh >= trainings {
                    remarks.push(format!(
                        "the teacher that sorts the rows is as it was drawn in the first {} rounds of training \
                         (`refresh`), and this federation has no more",
                        options.refresh
                    ));
                }
            }
            Method::Cfl(options) if options.after >= trainings => {
                remarks.push(format!(
                    "members are not divided in the first {} rounds of training (`after`), and this federation has no \
                     more; so all members have one model, as with fedavg",
                    options.after
                ));
            }
            Method::Hierarchical(_) if trainings < FEWEST_ROUNDS => {
                remarks.push(format!(
                    "its estimates usually take 5 to 20 rounds, and one more compares them with fits of each silo alone; \
                     this federation has {trainings}. It ends by itself, so 40 cost no more than are needed"
                ));
            }
            _ => (),
        }
        remarks
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::strategy::STRATEGIES;

    fn config(name: &str, options: Value) -> StrategyConfig {
        let mut table = json!({ "name": name, "training": { "epochs": 1, "batch": 8,
            "optimiser": { "name": "sgd", "rate": 0.1 } } });
        for (key, value) in options.as_object().unwrap() {
            table[key] = value.clone();
        }
        serde_json::from_value(table).unwrap()
    }

    /// Asserts remarks on settings, by the words that each has to have.
    fn assert_said(name: &str, options: Value, rounds: u64, words: &[&str]) {
        let said = config(name, options).remarks(rounds);
        assert_eq!(said.len(), words.len(), "{said:?}");
        for (one, words) in said.iter().zip(words) {
            assert!(one.contains(words), "{one}");
        }
    }

    #[test]
    fn defaults_do_what_they_are_there_for_in_enough_rounds() {
        for info in STRATEGIES {
            assert_said(info.name, json!({}), 100, &[]);
        }
    }

    #[test]
    fn two_domains_that_share_everything_are_named() {
        let halves = ["both domains have the same branch"];
        assert_said("fedcg", json!({ "domains": 2 }), 100, &halves);
        let uniform = json!({ "domains": 2, "adjacency": "uniform", "given": true });
        assert_said("fedcg", uniform, 3, &halves);
        assert_said("fedcg", json!({ "domains": 2, "beta": 0.6 }), 100, &[]);
        assert_said(
            "fedcg",
            json!({ "domains": 2, "adjacency": "identity" }),
            100,
            &[],
        );
        assert_said("fedcg", json!({ "domains": 1 }), 100, &["one domain"]);
    }

    #[test]
    fn what_begins_after_the_last_round_is_named() {
        assert_said("fedcg", json!({}), 11, &[]);
        assert_said(
            "fedcg",
            json!({}),
            10,
            &["in the first 10 rounds of training"],
        );
        assert_said("fedcg", json!({ "given": true }), 10, &[]);
        assert_said("cfl", json!({ "after": 4 }), 5, &[]);
        assert_said("cfl", json!({ "after": 5 }), 5, &["as with fedavg"]);
        assert_said("hierarchical", json!({}), 12, &[]);
        assert_said("hierarchical", json!({}), 11, &["this federation has 11"]);
        // The first round agrees on a scale.
        let mut scaled = config("cfl", json!({ "after": 4 }));
        scaled.standardise = true;
        assert_eq!((scaled.remarks(5).len(), scaled.remarks(6).len()), (1, 0));
    }
}
