//! Answers of an institution while the members decide together which model each serves.

use std::time::Duration;

use agreement::Agreement;
use methods::learner::{LearnError, OwnAnswer};
use methods::serving::{TogetherRounds, TogetherStage};

use crate::comparison::ComparisonSlot;

/// Parts of the straggler timeout of which one may pass in a round before the institution says that it still compares.
const PARTS: u32 = 3;

/// Answers of an institution of what its comparison found.
pub(crate) struct ServingAnswers {
    rounds: TogetherRounds,
    comparison: ComparisonSlot,
    /// The longest that it is waited for in a round.
    longest: Duration,
}

impl ServingAnswers {
    /// Those of an institution with this comparison; `None` where the members do not decide together.
    pub(crate) fn of(agreement: &Agreement, comparison: &ComparisonSlot) -> Option<Self> {
        let serving = agreement.serving.as_ref()?;
        Some(Self {
            rounds: serving.rounds(),
            comparison: comparison.clone(),
            longest: agreement.epoch.patience() / PARTS,
        })
    }

    /// Returns what it says after these sums, and how its comparison is going.
    pub(super) fn answer(&self, opened: &[Vec<u64>]) -> Result<OwnAnswer, LearnError> {
        let stage = self.rounds.stage(opened);
        if let TogetherStage::Opened(_) = stage {
            let why = "the members have decided together already";
            return Err(LearnError::Failed(why.into()));
        }
        let made = self.comparison.within(self.longest);
        Ok(OwnAnswer::Numbers(match stage {
            TogetherStage::Waiting => vec![u64::from(made.is_none())],
            TogetherStage::Adding | TogetherStage::Opened(_) => {
                TogetherRounds::own(made.map(|made| &made.models))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::nothing;

    #[test]
    fn an_institution_tells_whether_it_compares_and_then_its_sums() {
        let comparison = ComparisonSlot::default();
        let own = ServingAnswers {
            rounds: TogetherRounds { waiting: 2 },
            comparison: comparison.clone(),
            longest: Duration::ZERO,
        };
        let said = |opened: &[Vec<u64>]| own.answer(opened).ok();
        let numbers = |numbers: &[u64]| Some(OwnAnswer::Numbers(numbers.to_vec()));
        assert_eq!(said(&[]), numbers(&[1]));
        // It is not done in time: it is in no sum.
        let late = [vec![3], vec![1]];
        assert_eq!(said(&late), numbers(&[0; TogetherRounds::NUMBERS]));
        comparison.make(nothing);
        assert_eq!(said(&[vec![3]]), numbers(&[0]));
        assert_eq!(said(&late), numbers(&[0; TogetherRounds::NUMBERS]));
        let over = [vec![0], vec![0; TogetherRounds::NUMBERS]];
        assert!(own.answer(&over).is_err());
    }
}
