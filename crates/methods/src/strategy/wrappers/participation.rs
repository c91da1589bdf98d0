//! Client sampling: in every round that trains, some members, drawn uniformly, take part. Goes with every
//! strategy that does not draw members itself.

use serde::{Deserialize, Serialize};

use crate::learner::{Task, mixed_seed};
use crate::strategy::options::{at_least_one, positive, share};
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;
use crate::strategy::{LoadedManifest, Outcome, Plan, SettleError, State, StrategyError, draws};

/// How many members take part in a round that trains.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Participation {
    /// This number of members; all, if there are fewer.
    Members(#[schemars(range(min = 1))] u64),
    /// This share of the members, rounded, and at least one.
    Share(#[schemars(range(max = 1), extend("exclusiveMinimum" = 0))] f64),
}

impl Participation {
    /// Returns how many of so many members are drawn.
    ///
    /// # Errors
    /// [`StrategyError::Option`]: out of its range.
    pub(crate) fn of(self, members: usize) -> Result<usize, StrategyError> {
        let drawn = match self {
            Self::Members(number) => {
                at_least_one("participation", number)?;
                usize::try_from(number).unwrap_or(usize::MAX)
            }
            Self::Share(part) => {
                positive("participation", part)?;
                share("participation", part)?;
                libm::round(part * members as f64) as usize
            }
        };
        Ok(drawn.clamp(1, members.max(1)))
    }
}

/// Draws members for every round that trains.
pub(crate) struct Sampled {
    /// Members of the federation.
    pub(crate) members: usize,
    /// How many take part.
    pub(crate) drawn: usize,
}

impl Sampled {
    /// The members that take part in a round, ascending: those with the smallest of `members` numbers that
    /// follow from the seed.
    fn participants(&self, state: &State, round: u64) -> Vec<u16> {
        let seed = draws::seed(state, round, 0);
        let number = |at: usize| (mixed_seed(seed, at as u64), at as u16);
        let mut all: Vec<(u64, u16)> = (0..self.members).map(number).collect();
        all.sort_unstable();
        let drawn = all.iter().take(self.drawn);
        let mut drawn: Vec<u16> = drawn.map(|&(_, member)| member).collect();
        drawn.sort_unstable();
        drawn
    }
}

impl StrategyWrapper for Sampled {
    fn draws_members(&self) -> bool {
        self.drawn < self.members
    }

    fn begin(&self, state: State, seed: u64) -> State {
        draws::seeded(state, seed)
    }

    fn take_part(&self, state: &State, plan: &Plan, round: u64) -> Option<Vec<u16>> {
        let trains = matches!(plan.task, Task::Train(_));
        (trains && self.draws_members()).then(|| self.participants(state, round))
    }

    fn adopt(
        &self,
        before: &State,
        _: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let mut after = after;
        draws::keep(before, &mut after.state);
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::params::{Layout, Params, Role, TensorSpec};

    fn state(weight: f32, seed: u64) -> State {
        let layout = Layout::new(vec![TensorSpec::new("weight", [1], Role::Weight)]).unwrap();
        draws::seeded(
            State::genesis(Params::from_values(&layout, &[weight])),
            seed,
        )
    }

    #[test]
    fn draws_are_uniform_and_follow_from_seed_and_round_alone() {
        let (members, drawn, rounds) = (10, 3, 3_000);
        let sampled = Sampled { members, drawn };
        let mut times = vec![0u64; members];
        let mut together = 0;
        for round in 1..=rounds {
            let all = sampled.participants(&state(0.0, 5), round);
            assert!(all.len() == drawn && all.is_sorted());
            assert_eq!(all, sampled.participants(&state(1.0, 5), round));
            all.iter().for_each(|&at| times[usize::from(at)] += 1);
            together += u64::from(all.contains(&0) && all.contains(&1));
        }
        // Binomial, with four standard deviations: 900 ± 100, and 200 ± 55.
        assert!(
            times.iter().all(|times| (800..1_000).contains(times)),
            "{times:?}"
        );
        assert!((145..255).contains(&together), "{together}");
        let of = |seed| sampled.participants(&state(0.0, seed), 1);
        assert!((0..20).any(|seed| of(seed) != of(5)));
    }

    #[test]
    fn a_share_is_rounded_and_never_nobody() {
        for (participation, members, drawn) in [
            (Participation::Share(0.1), 1_000, 100),
            (Participation::Share(0.1), 3, 1),
            (Participation::Share(1.0), 7, 7),
            (Participation::Members(4), 7, 4),
            (Participation::Members(9), 7, 7),
        ] {
            assert_eq!(
                participation.of(members).unwrap(),
                drawn,
                "{participation:?}"
            );
        }
        for wrong in [
            Participation::Share(0.0),
            Participation::Share(1.5),
            Participation::Share(f64::NAN),
            Participation::Members(0),
        ] {
            assert!(wrong.of(7).is_err(), "{wrong:?}");
        }
    }
}
