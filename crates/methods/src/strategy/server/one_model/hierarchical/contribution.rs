//! Contributions of silos to a round: a list of numbers, and which lists no silo can have.

use crate::mixed::folds::{NUMBERS, OwnFoldLosses};
use crate::mixed::{MixedProgress, SiteSums, SumsShape};

/// Work of the members in a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SumsPhase {
    /// Silos and their rows, before anything else is opened.
    Counts,
    /// Sums of the models that are not done.
    Sums {
        /// Of every model that is not done, what is sent.
        shapes: Vec<SumsShape>,
    },
    /// All models are done: fits around their average are compared with fits alone.
    Folds,
    /// Nothing is left to do.
    Over,
}

/// Numbers of a list that are whole: silos and rows.
const COUNTS: usize = 2;
/// The most rows of a silo.
const MOST_ROWS: f64 = 1e12;

/// The silos that a list is the sum of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SumOf {
    /// Silos.
    pub(super) silos: f64,
    /// The most by which rounding moved a number.
    pub(super) rounding: f64,
}

impl SumsPhase {
    /// Of the sums of these models.
    pub(super) fn sums<'a>(
        open: impl Iterator<Item = &'a MixedProgress>,
        whole: bool,
        noise: bool,
    ) -> Self {
        Self::Sums {
            shapes: open.map(|model| model.shape(whole, noise)).collect(),
        }
    }

    /// Numbers of a contribution.
    pub(super) fn numbers(&self) -> usize {
        match self {
            Self::Counts => COUNTS,
            Self::Sums { shapes } => COUNTS + shapes.iter().map(|shape| shape.len()).sum::<usize>(),
            Self::Folds => NUMBERS,
            Self::Over => 1,
        }
    }

    /// Number of whole numbers, which come first.
    pub(super) fn whole_numbers(&self) -> usize {
        match self {
            Self::Counts | Self::Sums { .. } => COUNTS,
            Self::Folds | Self::Over => 1,
        }
    }

    /// Returns whether silos can have these numbers.
    pub(super) fn is_plausible(&self, numbers: &[f64], of: SumOf) -> bool {
        match self {
            Self::Counts => counts(numbers, of).is_some_and(|(_, rest)| rest.is_empty()),
            Self::Sums { shapes } => {
                let all = site(shapes, numbers, of);
                all.is_some_and(|(_, all)| all.iter().all(|sums| sums.is_plausible(of.rounding)))
            }
            Self::Folds => OwnFoldLosses::of_sum(numbers, of.silos, of.rounding).is_some(),
            Self::Over => numbers.len() == 1,
        }
    }
}

/// Rows of these silos, and the other numbers.
fn counts(numbers: &[f64], of: SumOf) -> Option<(f64, &[f64])> {
    let (&[silos, rows], rest) = numbers.split_first_chunk()?;
    let each = rows >= silos && rows.fract() == 0.0 && rows <= MOST_ROWS * silos;
    (silos == of.silos && silos >= 1.0 && each).then_some((rows, rest))
}

/// Rows of silos, and their sums of every model; `None` for a list of another length, and counts that no silos have.
pub(super) fn site(
    shapes: &[SumsShape],
    numbers: &[f64],
    of: SumOf,
) -> Option<(f64, Vec<SiteSums>)> {
    let (rows, mut numbers) = counts(numbers, of)?;
    let mut all = Vec::with_capacity(shapes.len());
    for &shape in shapes {
        let (own, rest) = numbers.split_at_checked(shape.len())?;
        all.push(SiteSums::read(shape, own)?);
        numbers = rest;
    }
    numbers.is_empty().then_some((rows, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixed::{MixedSettings, Varying};

    const ONE: SumOf = SumOf {
        silos: 1.0,
        rounding: 0.0,
    };

    #[test]
    fn counts_that_no_silo_has_are_refused() {
        let model = MixedProgress::start(Varying::Nothing, 2, &MixedSettings::default());
        let phase = SumsPhase::sums([&model].into_iter(), false, false);
        let with = |silos: f64, rows: f64, of: SumOf| {
            let mut numbers = vec![silos, rows];
            numbers.resize(phase.numbers(), 0.0);
            let counts = SumsPhase::Counts.is_plausible(&[silos, rows], of);
            assert_eq!(phase.is_plausible(&numbers, of), counts);
            counts
        };
        assert!(with(1.0, 20.0, ONE));
        for (silos, rows) in [
            (2.0, 20.0),
            (0.0, 20.0),
            (1.0, 0.0),
            (1.0, 2.5),
            (1.0, -3.0),
            (1.0, f64::NAN),
        ] {
            assert!(!with(silos, rows, ONE), "{silos} {rows}");
        }
        let of_three = SumOf { silos: 3.0, ..ONE };
        assert!(with(3.0, 20.0, of_three));
        assert!(!with(3.0, 2.0, of_three), "each has a row");
        assert!(!with(1.0, 20.0, of_three));
        let none = SumOf { silos: 0.0, ..ONE };
        assert!(!with(0.0, 0.0, none));
        assert!(!phase.is_plausible(&[1.0], ONE));
        assert!(!phase.is_plausible(&vec![1.0; 1 + phase.numbers()], ONE));
    }
}
