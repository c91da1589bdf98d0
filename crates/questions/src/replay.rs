//! A question as a function of what its rounds have opened.

use std::sync::{Mutex, PoisonError};

use crate::{
    FederatedQuestion, Kind, Outcome, QuestionError, QuestionMode, QuestionProgress, Step,
    SumLayout,
};

impl FederatedQuestion {
    /// Returns what follows from the sums of its rounds so far, in order, as integers modulo 2⁶⁴.
    ///
    /// # Errors
    /// If the question cannot be asked, or a sum is of another length than its round opens.
    pub fn after(
        &self,
        sums: &[Vec<u64>],
    ) -> Result<Step<QuestionProgress, Outcome>, QuestionError> {
        self.inputs()?;
        self.after_more(Step::Next(QuestionProgress::Counts), 0, sums)
    }

    /// Returns what follows from the sums behind the first `known`, from which `step` follows.
    fn after_more(
        &self,
        step: Step<QuestionProgress, Outcome>,
        known: usize,
        sums: &[Vec<u64>],
    ) -> Result<Step<QuestionProgress, Outcome>, QuestionError> {
        let mut step = step;
        for (round, words) in sums.iter().enumerate().skip(known) {
            let Step::Next(progress) = &step else { break };
            let layout = self.layout(progress)?;
            if words.len() != layout.len() {
                return Err(QuestionError::Other(format!(
                    "round {} opens {} numbers, and its sum has {}",
                    round + 1,
                    layout.len(),
                    words.len()
                )));
            }
            step = self.step(progress, &layout.decode(words));
        }
        Ok(step)
    }

    /// A length that no sum of its rounds exceeds; 0 where the question cannot be asked.
    pub fn largest_sum(&self) -> usize {
        let Ok(inputs) = self.inputs() else { return 0 };
        let first = self.first_layouts().unwrap_or_default();
        let first = first.iter().map(SumLayout::len).max().unwrap_or(0);
        let nodes = match &self.kind {
            Kind::Trees(trees) => usize::try_from(trees.most_in_a_round(&self.agreed)),
            Kind::Baselines(baselines) => Ok(baselines.most_in_a_round()),
            _ => Ok(0),
        };
        // Later rounds open what the first ones do, and products of columns.
        let columns = inputs.len() + 3;
        (4 * (first + columns * columns)).max(nodes.unwrap_or(usize::MAX))
    }

    /// The most rounds that it takes, the first one included, which opens counts.
    pub fn most_rounds(&self) -> u64 {
        match &self.kind {
            Kind::Describe(_) | Kind::Crosstab(_) | Kind::Km(_) | Kind::Logrank(_) => 2,
            Kind::Correlate(_) => 3,
            // Sixty-four times as fine with each, as fine as numbers are.
            Kind::Quantiles(_) => 12,
            // Steps of Newton's method, and what else is asked of the fit.
            Kind::Glm(glm) if self.mode == QuestionMode::Noised => glm.noised_rounds(),
            Kind::Cox(_) | Kind::Glm(_) => 30,
            Kind::Meta(meta) if meta.reml => 103,
            Kind::Meta(_) => 3,
            Kind::Mixed(_) => 303,
            // Counts, twice the steps of Newton's method, and losses.
            Kind::Baselines(_) => 52,
            Kind::Trees(trees) => trees.most_rounds(),
        }
    }
}

/// Sums in order, and what follows from them.
type FollowedSums = (Vec<Vec<u64>>, Step<QuestionProgress, Outcome>);

/// A question whose rounds are followed as they come: no step is taken twice as long as sums are only added.
pub struct QuestionReplay {
    question: FederatedQuestion,
    /// The sums that were followed last, and what follows from them.
    last: Mutex<Option<FollowedSums>>,
}

impl QuestionReplay {
    /// Of a question.
    pub fn new(question: FederatedQuestion) -> Self {
        Self {
            question,
            last: Mutex::new(None),
        }
    }

    /// The question.
    pub fn question(&self) -> &FederatedQuestion {
        &self.question
    }

    /// As [`FederatedQuestion::after`].
    ///
    /// # Errors
    /// As there.
    pub fn after(
        &self,
        sums: &[Vec<u64>],
    ) -> Result<Step<QuestionProgress, Outcome>, QuestionError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = last.take();
        let begun = begun.filter(|(known, _)| sums.starts_with(known));
        let (mut known, step) = match begun {
            Some((known, step)) if known.len() == sums.len() => (known, step),
            Some((known, step)) => {
                let step = self.question.after_more(step, known.len(), sums)?;
                (known, step)
            }
            None => (Vec::new(), self.question.after(sums)?),
        };
        // What is known already is not copied again.
        known.extend_from_slice(&sums[known.len()..]);
        let found = step.clone();
        *last = Some((known, step));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kinds::describe::Describe;
    use crate::tests::agreed;

    #[test]
    fn sums_of_another_length_are_refused() {
        let describe = Describe {
            columns: vec!["a".to_owned()],
            group: None,
        };
        let question =
            FederatedQuestion::new(Kind::Describe(describe), agreed(&[("a", [0.0, 1.0])], &[]));
        assert!(matches!(
            question.after(&[]),
            Ok(Step::Next(QuestionProgress::Counts))
        ));
        let why = question.after(&[vec![1]]).unwrap_err().to_string();
        assert!(
            why.starts_with("round 1 opens") && why.ends_with("its sum has 1"),
            "{why}"
        );
    }

    #[test]
    fn followed_rounds_are_those_that_are_replayed() {
        let describe = Describe {
            columns: vec!["a".to_owned()],
            group: None,
        };
        let question =
            FederatedQuestion::new(Kind::Describe(describe), agreed(&[("a", [0.0, 1.0])], &[]));
        let replay = QuestionReplay::new(question.clone());
        // Sites, rows, complete and outside; then known, sum and squares.
        let grid = |number: u64| number << 30;
        let sums = [vec![4, 400, 390, 1], vec![390, grid(10), grid(40)]];
        for upto in [0, 1, 2, 2, 1, 0] {
            let sums = &sums[..upto];
            assert_eq!(replay.after(sums), question.after(sums), "{upto} sums");
        }
        assert!(matches!(replay.after(&sums), Ok(Step::Done(_))));
        assert!(replay.after(&[vec![1]]).is_err());
        assert_eq!(replay.after(&sums), question.after(&sums));
    }
}
