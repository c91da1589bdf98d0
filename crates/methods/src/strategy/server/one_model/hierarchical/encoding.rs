//! Encodings of lists of numbers: as two numbers of single precision each, or as integers of 64 bits that add up, which
//! rounds that open sums alone need. The sum of integers is the same in whatever order and under masks.

use std::sync::Arc;

use super::contribution::{SumOf, SumsPhase};
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::strategy::{AnswerWords, LARGEST_WORD, REFUSAL_RULES, split_double};

/// The numbers, and what single precision leaves of them.
const SUMS: &str = "hierarchical.sums";
const REST: &str = "hierarchical.sums.rest";
/// Integers stand for numbers in steps of 2 to the power of minus this, and of the agreed exponent.
const BITS: u32 = 30;
/// The largest agreed exponent.
pub(super) const MOST_EXPONENT: u8 = 20;

/// Encoding of the numbers of a contribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SumsEncoding {
    /// As two numbers of single precision.
    Pairs,
    /// As integers, in steps of 2^(exponent − 30), up to ± 2^(22 + exponent).
    Integers {
        /// The exponent.
        exponent: u8,
    },
}

/// The numbers of all silos of a round together.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SumsTotal {
    /// The silos that they are the sum of: without any silo there are no numbers.
    pub(super) of: SumOf,
    /// The numbers.
    pub(super) numbers: Vec<f64>,
    /// For each of [`REFUSAL_RULES`] how many silos refuse by it.
    pub(super) refused: Vec<u64>,
}

/// One contribution, read.
enum ReadSums {
    Numbers(Vec<f64>),
    Integers(AnswerWords),
}

impl SumsEncoding {
    /// Layout of a contribution.
    pub(super) fn layout(self, phase: &SumsPhase) -> Arc<Layout> {
        let numbers = phase.numbers();
        match self {
            Self::Pairs => {
                let tensor = |name| TensorSpec::new(name, [numbers], Role::Buffer);
                Layout::new(vec![tensor(SUMS), tensor(REST)]).expect("two names, of small shapes")
            }
            Self::Integers { .. } => AnswerWords::layout(numbers),
        }
    }

    /// A contribution of these numbers; `None` where one is out of range. As integers it is a refusal then: nothing is
    /// clipped.
    pub(super) fn contribution(self, phase: &SumsPhase, numbers: &[f64]) -> Option<Params> {
        let exponent = match self {
            Self::Pairs => {
                let each = numbers.iter().map(|&number| split_double(number));
                let (high, low): (Vec<f32>, Vec<f32>) = each.unzip();
                let finite = high.iter().chain(&low).all(|part| part.is_finite());
                // In the order of names: the numbers, then what is left of them.
                let values = [high, low].concat();
                return finite.then(|| Params::from_values(&self.layout(phase), &values));
            }
            Self::Integers { exponent } => exponent,
        };
        let steps = numbers.iter().zip(steps(phase, exponent));
        let words: Option<Vec<u64>> = steps.map(|(number, step)| word(*number, step)).collect();
        let answer = match words {
            Some(words) => AnswerWords {
                site: 0,
                authors: 1,
                words,
                refused: vec![0; REFUSAL_RULES],
            },
            None => AnswerWords::refusal(0, phase.numbers(), AnswerWords::BEYOND_REACH),
        };
        Some(answer.write())
    }

    /// Reads a contribution.
    fn read(self, model: &Params) -> Result<ReadSums, String> {
        match self {
            Self::Pairs => pairs(model).map(ReadSums::Numbers),
            Self::Integers { .. } => AnswerWords::read(model).map(ReadSums::Integers),
        }
    }

    /// Checks that a contribution of one silo can be read.
    ///
    /// # Errors
    /// Why it cannot, in one sentence.
    pub(super) fn admit(self, model: &Params) -> Result<(), String> {
        match self.read(model)? {
            ReadSums::Integers(answer) => answer.must_be_of_one(),
            ReadSums::Numbers(_) => Ok(()),
        }
    }

    /// Adds up all contributions but those that no silo can have, which count as absent. Where sums alone are opened
    /// there is one, of all authors.
    pub(super) fn total<'a>(
        self,
        phase: &SumsPhase,
        models: impl ExactSizeIterator<Item = &'a Params>,
    ) -> SumsTotal {
        let exponent = match self {
            Self::Pairs => 0,
            Self::Integers { exponent } => exponent,
        };
        let steps: Vec<f64> = steps(phase, exponent).collect();
        let rounding = match self {
            Self::Pairs => 0.0,
            Self::Integers { .. } => steps.last().copied().unwrap_or_default(),
        };
        let alone = models.len() == 1;
        let mut silos = 0.0;
        let mut numbers = vec![0.0; steps.len()];
        let mut words = vec![0u64; steps.len()];
        let mut refused = vec![0u64; REFUSAL_RULES];
        let decoded = |words: &[u64]| -> Vec<f64> {
            let pairs = words.iter().zip(&steps);
            pairs.map(|(word, step)| number(*word, *step)).collect()
        };
        for read in models.filter_map(|model| self.read(model).ok()) {
            let (authors, own) = match &read {
                ReadSums::Numbers(own) => (1, own.clone()),
                ReadSums::Integers(answer) if answer.refuses() => {
                    // Whoever sends something else than 0 or 1 only refuses.
                    let most = if alone { answer.authors } else { 1 };
                    for (sum, own) in refused.iter_mut().zip(&answer.refused) {
                        *sum = sum.saturating_add(*own.min(&most));
                    }
                    continue;
                }
                ReadSums::Integers(answer)
                    if answer.authors != 1 && !alone || answer.words.len() != steps.len() =>
                {
                    continue;
                }
                ReadSums::Integers(answer) => (answer.authors, decoded(&answer.words)),
            };
            let authors = authors as f64;
            let of = SumOf {
                silos: authors,
                rounding: authors * rounding,
            };
            // A list of another length is none.
            if !phase.is_plausible(&own, of) {
                continue;
            }
            silos += authors;
            match read {
                ReadSums::Numbers(own) => {
                    let pairs = numbers.iter_mut().zip(own);
                    pairs.for_each(|(sum, own)| *sum += own);
                }
                ReadSums::Integers(answer) => {
                    let pairs = words.iter_mut().zip(answer.words);
                    pairs.for_each(|(sum, own)| *sum = sum.wrapping_add(own));
                }
            }
        }
        if matches!(self, Self::Integers { .. }) {
            numbers = decoded(&words);
        }
        let of = SumOf {
            silos,
            rounding: silos * rounding,
        };
        SumsTotal {
            of,
            numbers,
            refused,
        }
    }
}

impl SumsTotal {
    /// Returns whether there are no numbers because silos refused.
    pub(super) fn is_refused(&self) -> bool {
        self.of.silos == 0.0 && self.refused.iter().any(|silos| *silos > 0)
    }
}

/// The step of every number.
fn steps(phase: &SumsPhase, exponent: u8) -> impl Iterator<Item = f64> {
    let fine = (1u64 << exponent.min(MOST_EXPONENT)) as f64 / (1u64 << BITS) as f64;
    let whole = phase.whole_numbers();
    (0..phase.numbers()).map(move |at| if at < whole { 1.0 } else { fine })
}

/// A number in steps, modulo 2⁶⁴; `None` beyond reach.
fn word(number: f64, step: f64) -> Option<u64> {
    let steps = (number / step).round_ties_even();
    let within = steps.abs() <= LARGEST_WORD as f64;
    within.then(|| (steps as i64).cast_unsigned())
}

fn number(word: u64, step: f64) -> f64 {
    word.cast_signed() as f64 * step
}

/// The numbers of a contribution of pairs.
fn pairs(contribution: &Params) -> Result<Vec<f64>, String> {
    let tensor = |name| {
        let found = contribution.tensor(name);
        found.ok_or_else(|| format!("the contribution has no tensor {name:?}"))
    };
    let (high, low) = (tensor(SUMS)?, tensor(REST)?);
    if high.len() != low.len() {
        return Err("the contribution's sums and their rests are of different numbers".into());
    }
    if !contribution.values().iter().all(|value| value.is_finite()) {
        return Err("the contribution holds a value that is not finite".into());
    }
    let pairs = high.iter().zip(low);
    Ok(pairs
        .map(|(&high, &low)| f64::from(high) + f64::from(low))
        .collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FOLDS: SumsPhase = SumsPhase::Folds;
    const FINE: SumsEncoding = SumsEncoding::Integers { exponent: 0 };

    #[test]
    fn numbers_travel_with_twice_the_digits_of_single_precision() {
        let sent = [1.0, 0.1, 123_456.789_012_345, -1e-9];
        let encoding = SumsEncoding::Pairs;
        let contribution = encoding.contribution(&FOLDS, &sent).unwrap();
        assert_eq!(contribution.layout(), &encoding.layout(&FOLDS));
        for (sent, read) in sent.iter().zip(pairs(&contribution).unwrap()) {
            assert!((sent - read).abs() <= 4e-15 * sent.abs(), "{sent}, {read}");
        }
        for wrong in [f64::MAX, f64::NAN] {
            let numbers = [1.0, wrong, 0.0, 0.0];
            assert!(encoding.contribution(&FOLDS, &numbers).is_none());
        }
        assert!(encoding.admit(&contribution).is_ok());
        assert!(encoding.admit(&Params::empty()).is_err());
        let other = encoding.total(&SumsPhase::Over, [contribution].iter());
        assert_eq!((other.of.silos, other.is_refused()), (0.0, false));
    }

    /// Losses of a silo by folds, as a contribution.
    fn losses(chosen: f64, alone: f64) -> Params {
        let apart = chosen - alone;
        let numbers = [1.0, chosen, alone, apart * apart];
        FINE.contribution(&FOLDS, &numbers).unwrap()
    }

    #[test]
    fn sums_of_integers_are_those_of_single_contributions() {
        let all = [losses(0.5, 0.25), losses(0.1, 0.3), losses(0.7, 0.2)];
        let single = FINE.total(&FOLDS, all.iter());
        let mut together = AnswerWords::read(&all[0]).unwrap();
        for other in &all[1..] {
            let other = AnswerWords::read(other).unwrap();
            together.authors += 1;
            let pairs = together.words.iter_mut().zip(&other.words);
            pairs.for_each(|(sum, own)| *sum = sum.wrapping_add(*own));
        }
        let summed = FINE.total(&FOLDS, [together.write()].iter());
        assert_eq!(summed, single);
        assert_eq!(summed.of.silos, 3.0);
        assert!((summed.numbers[1] - 1.3).abs() < 3e-9, "{summed:?}");
        assert_eq!(summed.numbers[0], 3.0);
        // Beside other contributions nobody speaks for several silos.
        let with = FINE.total(&FOLDS, [together.write(), losses(0.5, 0.25)].iter());
        assert_eq!(with, FINE.total(&FOLDS, [losses(0.5, 0.25)].iter()));
        assert!(FINE.admit(&together.write()).is_err());
        assert!(FINE.admit(&all[0]).is_ok());
    }

    #[test]
    fn a_number_beyond_reach_is_refused_and_nothing_is_clipped() {
        let reach = 4_194_304.0;
        let phase = SumsPhase::Counts;
        let sent = |number: f64, exponent: u8| {
            let encoding = SumsEncoding::Integers { exponent };
            let numbers = [1.0, number, number, 0.0];
            let contribution = encoding.contribution(&FOLDS, &numbers).unwrap();
            encoding.total(&FOLDS, [contribution].iter())
        };
        assert_eq!(sent(reach, 0).numbers[1], reach);
        let mut once = vec![0; REFUSAL_RULES];
        once[AnswerWords::BEYOND_REACH] = 1;
        for wrong in [reach * 1.001, f64::INFINITY, f64::NAN] {
            let total = sent(wrong, 0);
            assert!(total.is_refused());
            assert_eq!((total.of.silos, &total.refused), (0.0, &once));
        }
        assert_eq!(sent(16.0 * reach, 4).numbers[1], 16.0 * reach);
        assert!(sent(16.001 * reach, 4).is_refused());
        // Counts are whole numbers whatever the exponent is.
        let counts = FINE.contribution(&phase, &[1.0, 1e9]).unwrap();
        assert_eq!(FINE.total(&phase, [counts].iter()).numbers, [1.0, 1e9]);
        // Who refuses is left out where others can be seen apart.
        let refusal = FINE.contribution(&FOLDS, &[1.0, f64::NAN, 0.0, 0.0]);
        let both = [refusal.unwrap(), losses(0.5, 0.25)];
        let total = FINE.total(&FOLDS, both.iter());
        assert!(!total.is_refused() && total.of.silos == 1.0);
    }
}
