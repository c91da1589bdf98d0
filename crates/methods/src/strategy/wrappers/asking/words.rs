//! Contributions that are integers of 64 bits, as tensors of single precision: answers to a question, and statistics of
//! a silo that a strategy adds up.

use std::sync::Arc;

use crate::params::{Layout, Params, Role, TensorSpec};

/// The largest size of an integer that stands for a number: masks carry ± 2²² in steps of 2⁻³⁰.
pub const LARGEST_WORD: u64 = 1 << 52;

/// Rules by which a silo may refuse a question: every answer says by which of them, and under masks the sum says how
/// many silos refuse by each.
pub const REFUSAL_RULES: usize = 16;

/// Tensor of a contribution: the pseudonym of the silo, for this question, and the number of silos.
const SITE: &str = "answer.site";
/// Tensor of a contribution: the silo's numbers.
const WORDS: &str = "answer.words";
/// Tensor of a contribution: for every rule 1 if the silo refuses by it, in a sum the number of those that do.
const REFUSED: &str = "answer.refused";
/// Values of single precision in which a number of 64 bits travels: 16 bits each, which it holds exactly.
const DIGITS: usize = 4;
/// Value of a digit's place.
const PLACE: u64 = 1 << 16;

/// Contribution of a silo to the round of a question, or to one of a strategy that adds up statistics; or the sum of
/// several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerWords {
    /// The pseudonym of the silo; of a sum that of all its authors together.
    pub site: u64,
    /// Silos whose answer it is: 1, or the authors of a sum.
    pub authors: u64,
    /// The numbers, modulo 2⁶⁴. They tell nothing where somebody refuses.
    pub words: Vec<u64>,
    /// For each of [`REFUSAL_RULES`] how many silos refuse by it.
    pub refused: Vec<u64>,
}

impl AnswerWords {
    /// The rule by which statistics are refused that have a number beyond reach.
    pub const BEYOND_REACH: usize = 0;
    /// The rule by which statistics are refused where sums would open too many numbers.
    pub const TOO_MANY_OPENED: usize = 1;

    /// The refusal of a silo that was asked for so many numbers, by the rule of this number.
    pub fn refusal(site: u64, words: usize, rule: usize) -> Self {
        let mut refused = vec![0; REFUSAL_RULES];
        refused[rule.min(REFUSAL_RULES - 1)] = 1;
        Self {
            site,
            authors: 1,
            words: vec![0; words],
            refused,
        }
    }

    /// Returns whether somebody refuses.
    pub fn refuses(&self) -> bool {
        self.refused.iter().any(|silos| *silos > 0)
    }

    /// Checks that it is of one silo, as all are that members see apart.
    ///
    /// # Errors
    /// It is not: one sentence.
    pub(crate) fn must_be_of_one(&self) -> Result<(), String> {
        match self.authors {
            1 => Ok(()),
            authors => Err(format!(
                "the contribution is of {authors} silos, not of one"
            )),
        }
    }

    /// Reads a contribution.
    ///
    /// # Errors
    /// Why it is no answer, in one sentence.
    pub fn read(model: &Params) -> Result<Self, String> {
        let numbers = |name: &str| {
            let digits = model.tensor(name);
            let digits = digits.ok_or_else(|| format!("the answer has no tensor {name:?}"))?;
            let whole = |digit: &&f32| digit.fract() == 0.0 && (0.0..PLACE as f32).contains(*digit);
            if !digits.iter().all(|digit| whole(&digit)) {
                return Err(
                    "the answer holds a digit that is no whole number of 16 bits".to_owned(),
                );
            }
            let number = |digits: &[f32]| {
                let places = digits.iter().rev();
                places.fold(0, |number: u64, &digit| {
                    number.wrapping_mul(PLACE).wrapping_add(digit as u64)
                })
            };
            Ok(digits.chunks(DIGITS).map(number).collect::<Vec<_>>())
        };
        let site = numbers(SITE)?;
        let &[site, authors] = site.as_slice() else {
            return Err("the answer has not one pseudonym".into());
        };
        let refused = numbers(REFUSED)?;
        if refused.len() != REFUSAL_RULES {
            return Err(format!(
                "the answer has {} rules, there are {REFUSAL_RULES}",
                refused.len()
            ));
        }
        Ok(Self {
            site,
            authors,
            words: numbers(WORDS)?,
            refused,
        })
    }

    /// The contribution.
    pub fn write(&self) -> Params {
        let digits = |word: &u64| {
            let mut rest = *word;
            std::array::from_fn::<_, DIGITS, _>(|_| {
                let digit = rest % PLACE;
                rest /= PLACE;
                digit as f32
            })
        };
        // A layout has its own order of tensors.
        let layout = layout(self.words.len());
        let tensors = [
            (SITE, &[self.site, self.authors][..]),
            (WORDS, &self.words),
            (REFUSED, &self.refused),
        ];
        Params::build(&layout, |values| {
            for (name, numbers) in tensors {
                let place = layout.position(name).expect("a tensor of this layout");
                let into = values[layout.range(place)].iter_mut();
                into.zip(numbers.iter().flat_map(digits))
                    .for_each(|(into, digit)| *into = digit);
            }
        })
    }

    /// The integers that are added up where sums alone are opened: its numbers, and behind them the refusals.
    pub fn integers(&self) -> Vec<i64> {
        let all = self.words.iter().chain(&self.refused);
        all.map(|word| word.cast_signed()).collect()
    }

    /// The sum of these integers of so many silos, with their pseudonym.
    pub fn of_integers((site, authors): (u64, u64), integers: &[i64]) -> Self {
        let words: Vec<u64> = integers.iter().map(|word| word.cast_unsigned()).collect();
        let (words, refused) = words.split_at(words.len().saturating_sub(REFUSAL_RULES));
        Self {
            site,
            authors,
            words: words.to_vec(),
            refused: refused.to_vec(),
        }
    }

    /// Layout of an answer of so many numbers.
    pub fn layout(words: usize) -> Arc<Layout> {
        layout(words)
    }

    /// Integers of an answer with this layout.
    pub fn integers_of(layout: &Layout) -> usize {
        (layout.len() / DIGITS).saturating_sub(2)
    }
}

/// Layout of an answer of so many numbers.
pub(super) fn layout(words: usize) -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new(SITE, [2, DIGITS], Role::Buffer),
        TensorSpec::new(WORDS, [words, DIGITS], Role::Buffer),
        TensorSpec::new(REFUSED, [REFUSAL_RULES, DIGITS], Role::Buffer),
    ])
    .expect("three tensors with different names")
}

/// Bytes of an answer of so many numbers.
pub fn answer_size(words: usize) -> u64 {
    layout(words).document_len() as u64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_answer_is_the_same_as_tensors_and_as_integers() {
        let answer = AnswerWords {
            site: u64::MAX,
            authors: 4,
            words: vec![0, 1, 1 << 63, u64::MAX - 5],
            refused: (0..REFUSAL_RULES as u64).collect(),
        };
        assert_eq!(AnswerWords::read(&answer.write()), Ok(answer.clone()));
        let integers = answer.integers();
        let layout = answer.write().layout().clone();
        assert_eq!(integers.len(), AnswerWords::integers_of(&layout));
        assert_eq!(AnswerWords::of_integers((u64::MAX, 4), &integers), answer);
        assert!(answer.refuses());
        let refusal = AnswerWords::refusal(7, 2, 3);
        assert_eq!((refusal.words.len(), refusal.refused[3]), (2, 1));
    }
}
