//! Questions with noise: what one row changes at most, and what an opened sum with noise says.
//!
//! A row is in one cell of a table, so that tables of counts and survival on a grid have a small bound that no row
//! exceeds (Dwork & Roth 2014, 3.3). Sums of products of columns have a larger one, the norm of all products of one row
//! (`row_norm` of each kind), and what follows from them says how much of its
//! error is noise. Other kinds have no bound.

mod deviation;

pub use deviation::SumNoise;
pub(crate) use deviation::{determined, more_rows};

use crate::layout::power;
use crate::question::FederatedQuestion;
use crate::sums::CommonKnowledge;
use crate::table::RowTable;
use crate::{Kind, QuestionError, QuestionMode, QuestionProgress, SiteRefusal, SumLayout};

/// Exponent of blocks of counts.
const COUNTS: i32 = 30;

impl FederatedQuestion {
    /// Why no noise can be added to its sums, in a sentence; `None` if it can.
    pub fn without_noise(&self) -> Option<&'static str> {
        match &self.kind {
            Kind::Describe(_) | Kind::Crosstab(_) | Kind::Km(_) | Kind::Correlate(_) => None,
            Kind::Glm(glm) => glm.without_noise(),
            Kind::Logrank(logrank) => logrank.grid.is_none().then_some(
                "one row changes the terms of all others that are at risk with it, so its part in the sum has no small \
                 bound: ask for the test on a `grid`, which follows from counts",
            ),
            Kind::Cox(_) => Some(
                "one row changes the terms of all others that are at risk with it, so its part in the sum has no small \
                 bound: ask for kind \"km\" or \"logrank\" on a grid, which follow from counts",
            ),
            Kind::Quantiles(_) => Some(
                "the bins of a round follow from the counts of the one before, and every round would need noise of \
                 its own: ask for kind \"describe\", or for \"crosstab\" of agreed levels",
            ),
            Kind::Meta(_) | Kind::Mixed(_) | Kind::Baselines(_) => Some(
                "its sums are of the estimates of whole sites, which one row changes without a small bound: ask for \
                 kind \"glm\" with a condition for each group of sites, or \"describe\" by group",
            ),
            Kind::Trees(_) => Some(
                "every level of every tree would need noise of its own, and few rows are in a node: ask for kind \
                 \"glm\", \"describe\" by group, or \"crosstab\"",
            ),
        }
    }

    /// Checks that the noise of its sums can be drawn, where sites add some.
    ///
    /// # Errors
    /// None is agreed on, or it cannot be drawn.
    pub fn check_noise(&self) -> Result<(), QuestionError> {
        self.agreed_noise().map(drop)
    }

    /// The noise of its sums; `None` in the other modes.
    ///
    /// # Errors
    /// None is agreed on in a mode that adds some, or it cannot be drawn.
    pub(crate) fn agreed_noise(&self) -> Result<Option<SumNoise>, QuestionError> {
        match self.mode {
            QuestionMode::Masked | QuestionMode::Clear => Ok(None),
            QuestionMode::Noised => {
                let missing =
                    || QuestionError::Other("the noise of the sums is not agreed".to_owned());
                let noise = self.noise.ok_or_else(missing)?;
                noise.deviation(1.0, u32::MAX as usize, 1.0)?;
                Ok(Some(noise))
            }
        }
    }

    /// The Euclidean norm by which one more row changes the numbers of a round at most, without the number of sites.
    ///
    /// # Errors
    /// If the question cannot be asked, or its kind has no such bound.
    pub fn row_norm(&self, progress: &QuestionProgress) -> Result<f64, QuestionError> {
        if let Some(why) = self.without_noise() {
            return Err(QuestionError::Other(why.to_owned()));
        }
        let norm = match progress {
            QuestionProgress::Counts => {
                Some(self.kind.gates(&self.known(Default::default())?).norm())
            }
            QuestionProgress::Rounds { counts, kind } => {
                let known = self.known(counts.clone())?;
                self.kind.row_norm(&known, kind)
            }
        };
        norm.ok_or_else(|| QuestionError::Other("one row has no bound in this round".to_owned()))
    }

    /// Standard deviation of the noise in each number that the next round opens, of so many sites; `None` without noise.
    pub fn noise_of_round(&self, progress: &QuestionProgress, sites: f64) -> Option<f64> {
        let noise = self.agreed_noise().ok().flatten()?;
        let numbers = self.layout(progress).ok()?.len();
        noise
            .deviation(self.row_norm(progress).ok()?, numbers, sites)
            .ok()
    }

    /// Gives `each` the numbers of every row that the filter keeps, whose sum is the answer of a site but for the
    /// number of sites.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn row_numbers(
        &self,
        table: &RowTable,
        progress: &QuestionProgress,
        each: &mut dyn FnMut(&[f64]),
    ) -> Result<(), SiteRefusal> {
        let counts = progress.counts().cloned().unwrap_or_default();
        let wrong = |error: QuestionError| SiteRefusal::Rows(error.to_string());
        let known: CommonKnowledge = self.known(counts).map_err(wrong)?;
        let rows = table.read(&self.filter, &known.inputs)?;
        for row in rows.chunks(1) {
            let mut numbers = self.answer_of(&known, row, progress)?;
            if let QuestionProgress::Counts = progress {
                numbers[0] = 0.0;
            }
            each(&numbers);
        }
        Ok(())
    }

    /// The words of a sum whose numbers have noise, of so many sites: counts are rounded to whole numbers, which may be
    /// negative.
    ///
    /// # Errors
    /// If the question cannot be asked, or there are more or fewer numbers than its round opens.
    pub fn noised_words(
        &self,
        progress: &QuestionProgress,
        numbers: &[f64],
        sites: u64,
    ) -> Result<Vec<u64>, QuestionError> {
        let layout: SumLayout = self.layout(progress)?;
        if layout.len() != numbers.len() {
            return Err(QuestionError::Other(format!(
                "the round opens {} numbers, and its sum has {}",
                layout.len(),
                numbers.len()
            )));
        }
        let mut words = Vec::with_capacity(numbers.len());
        let mut numbers = numbers.iter();
        for block in &layout.blocks {
            for number in numbers.by_ref().take(block.len) {
                words.push(match block.exponent {
                    COUNTS => number.round_ties_even() as i64,
                    exponent => steps(number / power(exponent))?,
                } as u64);
            }
        }
        if let (QuestionProgress::Counts, Some(first)) = (progress, words.first_mut()) {
            *first = sites;
        }
        Ok(words)
    }
}

/// A number in steps of 2⁻³⁰. Nothing is clipped.
fn steps(number: f64) -> Result<i64, QuestionError> {
    let steps = (number * power(30)).round_ties_even();
    if steps.abs() < power(62) {
        return Ok(steps as i64);
    }
    Err(QuestionError::Other(
        "a sum is beyond what its words can hold: ask with a larger `exponent`".to_owned(),
    ))
}

#[cfg(test)]
pub(crate) mod tests;
