//! Client sampling: who trains in a round and whose losses count, where members are drawn by their
//! weights.

use serde::{Deserialize, Serialize};

use crate::strategy::{State, draws};
use crate::topology::{Sample, Sampling, half, uniform};

/// Members that train in a round.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Participants {
    /// All members train; the mean weighs them by λ.
    #[default]
    All,
    /// Number of draws with probabilities λ; 0: half the number of members, rounded up. The draws
    /// follow λ already, so the mean weighs them equally.
    Sample(usize),
}

/// Whose losses move λ, where members are drawn.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Those of all members. Members that do not train evaluate the model and send only its loss.
    #[default]
    All,
    /// Those of this number of members, drawn uniformly without replacement (DRFA's second sample);
    /// 0: as many as there are draws of members that train.
    Uniform(usize),
}

/// Sampling of the members of a round. Everything is a function of λ, the agreed seed and the round,
/// so that every member can draw again.
#[derive(Debug, Clone)]
pub(crate) struct ClientSampling {
    pub(crate) participants: Participants,
    /// True if a member can be drawn twice, and then counts twice.
    pub(crate) replacement: bool,
    pub(crate) losses: Losses,
    /// Number of rounds after which all members train; 0: never.
    pub(crate) refresh: u64,
}

impl ClientSampling {
    /// All members, in every round.
    pub(crate) fn all_members() -> Self {
        Self {
            participants: Participants::All,
            replacement: true,
            losses: Losses::All,
            refresh: 0,
        }
    }

    /// Returns whether all train in every round.
    pub(crate) fn is_full_every_round(&self) -> bool {
        self.participants == Participants::All
    }

    /// Returns whether all train in this round.
    pub(crate) fn is_full(&self, round: u64) -> bool {
        self.is_full_every_round() || self.refresh > 0 && round.is_multiple_of(self.refresh)
    }

    /// Returns who trains, and the weight of each of their models in the mean, by the seed that the state keeps.
    ///
    /// `lambda` is a point of the simplex over all members.
    pub(crate) fn trains(&self, lambda: &[f64], state: &State, round: u64) -> Sample {
        let sampling = match self.replacement {
            _ if self.is_full(round) => Sampling::Full,
            true => Sampling::WithReplacement,
            false => Sampling::WithoutReplacement,
        };
        let draws = self.draws(lambda.len());
        let drawn = sampling.draw(lambda, draws, draws::seed(state, round, 0));
        drawn.expect("λ is on the simplex, and there is at least one draw")
    }

    /// The members whose losses count, ascending; `None`: all that contribute.
    pub(crate) fn reports(&self, members: usize, state: &State, round: u64) -> Option<Vec<usize>> {
        let reporting = match self.losses {
            _ if self.is_full(round) => return None,
            Losses::All => return None,
            Losses::Uniform(0) => self.draws(members),
            Losses::Uniform(members) => members,
        };
        let once = Sampling::WithoutReplacement;
        let drawn = once.draw(&uniform(members), reporting, draws::seed(state, round, 1));
        Some(drawn.expect("a uniform distribution is one").clients)
    }

    fn draws(&self, members: usize) -> usize {
        match self.participants {
            Participants::All => members,
            Participants::Sample(0) => half(members),
            Participants::Sample(draws) => draws,
        }
    }
}
