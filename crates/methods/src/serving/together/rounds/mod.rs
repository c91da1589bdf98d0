//! Rounds of a federation in which its members decide together, behind those that learn.
//!
//! A comparison takes minutes, so members first wait for each other: in each of these rounds a silo says whether it
//! is still comparing, and what is opened is how many are. Once none is, or after the agreed number of rounds, one
//! round opens four sums of each candidate, once: two sums of different silos would show what one of them measured.
//! Whoever is not done by then adds zeros.

use super::{AdvantageSums, Together};
use crate::serving::{Advantage, Candidate, ComparedModels};
use crate::strategy::{LARGEST_WORD, QuestionRounds, QuestionState};

/// The candidates of which sums are opened, in the order in which they travel. All are compared with the local model,
/// and those that adapt a model to own rows are there only where rounds have noise, which opens no such sums.
const OPENED: [Candidate; 4] = [
    Candidate::Robust,
    Candidate::Coalition,
    Candidate::Global,
    Candidate::FineTuned,
];
/// Sums of each candidate: the number of silos, and the sums of their advantages, of the squares of these, and of the
/// squares of their standard errors.
const SUMS: usize = 4;
/// Unknown numbers of a silo in the sums of a candidate: its advantage and the standard error.
const UNKNOWNS: u64 = 2;
/// Unknowns of the other silos that each opened number needs, as for statistics of questions.
const UNKNOWNS_PER_NUMBER: u64 = 3;
/// Steps of an advantage in one unit of loss.
const ADVANTAGE_STEPS: f64 = (1_u64 << 30) as f64;
/// Steps of a square in one: finer, because standard errors are small. Numbers reach up to 2⁸.
const SQUARE_STEPS: f64 = (1_u64 << 36) as f64;

/// The rounds of a federation in which its members decide together what each serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TogetherRounds {
    /// Rounds in which members wait for comparisons, at most; at least 1.
    pub waiting: u64,
}

/// The next round of those in which members decide together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TogetherStage<'a> {
    /// Every silo says with 1 that it is still comparing, with 0 that it is not.
    Waiting,
    /// Every silo adds [its sums](TogetherRounds::own).
    Adding,
    /// None: these are the sums.
    Opened(&'a [u64]),
}

/// Reason for which every silo chooses alone though the members agreed to decide together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotTogether {
    /// Silos that had begun to decide together stayed away, or sums told nothing.
    #[error("silos that had begun to decide together stayed away for three rounds")]
    StayedAway,
    /// A silo refused.
    #[error("a silo refused to decide together")]
    Refused,
    /// Rounds that learn came after it began, so that the sums are of other models.
    #[error("the members learned on after they had begun to decide together")]
    LearnedOn,
    /// The federation was over before the sums were opened.
    #[error("no round was left in which the sums could be opened")]
    NoRoundLeft,
    /// Less than two silos are in the sums of every candidate.
    #[error("less than two silos had compared models")]
    TooFew,
}

impl TogetherRounds {
    /// Numbers of the sums.
    pub const NUMBERS: usize = SUMS * OPENED.len();

    /// The most rounds that it takes, without those that are repeated.
    pub fn most(self) -> u64 {
        self.waiting.saturating_add(1)
    }

    /// Unknowns of the other silos for each number that the sums of so many silos open, as one of them sees it with so
    /// many members that collude.
    pub fn unknowns_per_number(silos: u64, colluders: u64) -> f64 {
        let others = silos.saturating_sub(colluders.saturating_add(1));
        (others * UNKNOWNS) as f64 / SUMS as f64
    }

    /// The fewest silos whose sums may be opened where single numbers are hidden and so many members may collude: from
    /// then on the others have three unknowns for each number that is opened.
    pub fn least_silos(colluders: u64) -> u64 {
        let others = (UNKNOWNS_PER_NUMBER * SUMS as u64).div_ceil(UNKNOWNS);
        others + colluders + 1
    }

    /// The round that follows on these sums.
    pub fn stage(self, opened: &[Vec<u64>]) -> TogetherStage<'_> {
        match opened.last().map(Vec::as_slice) {
            Some(sums) if sums.len() == Self::NUMBERS => TogetherStage::Opened(sums),
            Some([0]) => TogetherStage::Adding,
            Some(_) if opened.len() as u64 >= self.waiting => TogetherStage::Adding,
            None | Some(_) => TogetherStage::Waiting,
        }
    }

    /// Returns what a silo with this comparison adds: for each candidate the integers that stand for 1, its advantage,
    /// the square of it and that of its standard error, as two's complements. Zeros without a comparison, and where a number
    /// is beyond reach or not finite.
    pub fn own(compared: Option<&ComparedModels>) -> Vec<u64> {
        let measured = compared.map_or(&[][..], |compared| &compared.measured);
        let of = |candidate: &Candidate| {
            let mut all = measured.iter();
            let one = all.find(|one| one.candidate == *candidate);
            one.and_then(|one| words(one.together)).unwrap_or([0; SUMS])
        };
        OPENED.iter().flat_map(of).collect()
    }

    /// The sums of all members, once the federation is over.
    ///
    /// # Errors
    /// [`NotTogether`]: there are none.
    pub fn decided(self, state: &QuestionState) -> Result<Together, NotTogether> {
        match self.stage(&state.opened) {
            TogetherStage::Opened(_) if state.ended => Err(NotTogether::LearnedOn),
            TogetherStage::Opened(sums) => {
                let together = Together::opened(sums);
                match together.silos() {
                    0 | 1 => Err(NotTogether::TooFew),
                    _ => Ok(together),
                }
            }
            _ if state.is_abandoned() => Err(NotTogether::StayedAway),
            _ if state.refused.iter().any(|silos| *silos > 0) => Err(NotTogether::Refused),
            _ if state.ended => Err(NotTogether::LearnedOn),
            _ => Err(NotTogether::NoRoundLeft),
        }
    }
}

impl QuestionRounds for TogetherRounds {
    fn next(&self, opened: &[Vec<u64>]) -> Option<usize> {
        match self.stage(opened) {
            TogetherStage::Waiting => Some(1),
            TogetherStage::Adding => Some(Self::NUMBERS),
            TogetherStage::Opened(_) => None,
        }
    }

    fn largest(&self) -> usize {
        Self::NUMBERS
    }
}

/// The integers of what a silo measured of a candidate; `None` where one is beyond reach or not finite.
fn words(one: Advantage) -> Option<[u64; SUMS]> {
    let steps = |number: f64, steps: f64| {
        let whole = (number * steps).round();
        let reached = whole.abs() <= LARGEST_WORD as f64;
        reached.then_some((whole as i64).cast_unsigned())
    };
    Some([
        1,
        steps(one.mean, ADVANTAGE_STEPS)?,
        steps(one.mean * one.mean, SQUARE_STEPS)?,
        steps(one.error * one.error, SQUARE_STEPS)?,
    ])
}

impl Together {
    /// That of opened sums, in the order of [`TogetherRounds::own`]. Sums that no silos can have, because somebody made
    /// them up, are left out: a candidate without sums is judged alone.
    pub fn opened(sums: &[u64]) -> Self {
        let sums = OPENED.iter().zip(sums.chunks(SUMS));
        let possible = sums.filter_map(|(candidate, words)| Some((*candidate, of_words(words)?)));
        Self(possible.collect())
    }

    /// Number of silos in the sums of the candidate that most have.
    pub fn silos(&self) -> u64 {
        let silos = self.0.values().map(|sums| sums.silos as u64);
        silos.max().unwrap_or(0)
    }
}

/// The sums that these integers stand for; `None` for such as no silos can have.
fn of_words(words: &[u64]) -> Option<AdvantageSums> {
    let &[silos, advantages, squares, variances] = words else {
        return None;
    };
    let number = |word: u64, steps: f64| word.cast_signed() as f64 / steps;
    let sums = AdvantageSums {
        silos: number(silos, 1.0),
        advantages: number(advantages, ADVANTAGE_STEPS),
        squares: number(squares, SQUARE_STEPS),
        variances: number(variances, SQUARE_STEPS),
    };
    (sums.silos >= 1.0 && sums.squares >= 0.0 && sums.variances >= 0.0).then_some(sums)
}

#[cfg(test)]
mod tests;
