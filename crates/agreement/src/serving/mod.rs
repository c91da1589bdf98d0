//! `[serving]` of an agreement: the members decide together which model each of them serves.

use methods::serving::TogetherRounds;
use methods::strategy::{StrategyConfig, StrategyView, answer_size};
use protocol::parameters::RoundMode;
use protocol::privacy::Privacy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::question::REPEATED;

/// Choice of the model that each member serves, behind the last round that learns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServingTable {
    /// True: each weighs what its own rows say by what those of all members say, of which sums are opened. Without this
    /// table every member decides alone.
    pub(crate) together: bool,
    /// Parts into which every member divides its training rows to compare models on them, where it keeps fewer than 20
    /// for validation. Its own `serve` in node.toml does not count then.
    #[serde(default = "folds")]
    #[schemars(range(min = 2, max = 100))]
    pub folds: usize,
    /// Most rounds in which members wait until all have compared, each of up to a third of the straggler timeout for a
    /// member that has not: who has not compared by then decides without being counted. `rounds` has to hold them, one
    /// for the sums, and five that may be repeated.
    #[serde(default = "waiting_rounds")]
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "rounds"))]
    pub waiting_rounds: u64,
}

fn folds() -> usize {
    5
}

fn waiting_rounds() -> u64 {
    20
}

impl ServingTable {
    /// The rounds in which members decide.
    pub fn rounds(&self) -> TogetherRounds {
        TogetherRounds {
            waiting: self.waiting_rounds,
        }
    }

    /// The most rounds that this takes, repeated ones included.
    pub fn most_rounds(&self) -> u64 {
        self.rounds().most() + REPEATED
    }

    /// Bytes of the largest contribution to these rounds.
    pub fn largest_answer(&self) -> u64 {
        answer_size(TogetherRounds::NUMBERS)
    }

    /// Returns what is wrong with the table in a federation with this privacy, strategy and largest contribution: the
    /// path of the key, and words that follow it.
    pub(crate) fn fault(
        &self,
        privacy: &Privacy,
        strategy: &StrategyConfig,
        blob_limit: u64,
    ) -> Option<(&'static str, String)> {
        let together = |what: &str| Some(("serving.together", what.to_owned()));
        if !self.together {
            return together(
                "must be true: an agreement in which every member decides alone has no `[serving]`",
            );
        }
        if !(2..=100).contains(&self.folds) {
            return Some(("serving.folds", "must be between 2 and 100".into()));
        }
        if !(1..=1000).contains(&self.waiting_rounds) {
            let what = "must be between 1 and 1000";
            return Some(("serving.waiting-rounds", what.into()));
        }
        if strategy.method.sees() == StrategyView::SingleResults {
            let what = format!(
                "cannot be true with the strategy {}: there is no model of several members to serve",
                strategy.name()
            );
            return together(&what);
        }
        match privacy.mode() {
            RoundMode::Clear | RoundMode::Named => {}
            RoundMode::Noised(..) => {
                return together(
                    "cannot be true where rounds have noise: what is compared depends on every row in no simple way, so \
                     that nothing would bound what the sums disclose",
                );
            }
            RoundMode::Masked(masked) => {
                let [group] = masked.groups() else {
                    return together(
                        "needs one `[[privacy.group]]`: the sums of each of several groups would be opened, and say more \
                         about its institutions",
                    );
                };
                let least = TogetherRounds::least_silos(masked.colluders.into());
                let authors = group.authors.len();
                if (authors as u64) < least {
                    let what = format!(
                        "needs a group of {least} institutions or more, and there are {authors}: four sums of two \
                         unknown numbers of each are opened, and the institutions that are neither one that looks on \
                         nor among {} that may collude need three unknown numbers for every sum",
                        masked.colluders
                    );
                    return together(&what);
                }
            }
        }
        let size = self.largest_answer();
        (blob_limit < size).then(|| {
            let what =
                format!("must be at least {size}: members that decide together send so many bytes");
            ("protocol.blob-limit", what)
        })
    }
}

#[cfg(test)]
mod tests;
