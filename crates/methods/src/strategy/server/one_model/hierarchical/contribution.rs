//! Contributions of silos to a round: numbers of double precision, each as two of single precision.

use std::sync::Arc;

use crate::mixed::folds::NUMBERS;
use crate::mixed::{MixedProgress, SiteSums, SumsShape};
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::strategy::split_double;

/// The numbers, and what single precision leaves of them.
const SUMS: &str = "hierarchical.sums";
const REST: &str = "hierarchical.sums.rest";

/// Work of the members in a round.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SumsPhase {
    /// Sums of the models that are not done.
    Sums {
        /// Of every model that is not done, what is sent.
        shapes: Vec<SumsShape>,
    },
    /// All models are done, and one is chosen: it is compared with fits alone.
    Folds,
    /// Nothing is left to do.
    Over,
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
            Self::Sums { shapes } => 2 + shapes.iter().map(|shape| shape.len()).sum::<usize>(),
            Self::Folds => NUMBERS,
            Self::Over => 1,
        }
    }

    /// Layout of a contribution.
    pub(super) fn layout(&self) -> Arc<Layout> {
        let numbers = self.numbers();
        let tensor = |name| TensorSpec::new(name, [numbers], Role::Buffer);
        Layout::new(vec![tensor(SUMS), tensor(REST)]).expect("two names, of small shapes")
    }

    /// A contribution of these numbers; `None` where one is out of range.
    pub(super) fn contribution(&self, numbers: &[f64]) -> Option<Params> {
        let (high, low): (Vec<f32>, Vec<f32>) = numbers.iter().map(|&n| split_double(n)).unzip();
        let finite = high.iter().chain(&low).all(|part| part.is_finite());
        // In the order of names: the numbers, then what is left of them.
        finite.then(|| Params::from_values(&self.layout(), &[high, low].concat()))
    }
}

/// The numbers of a contribution, or in one sentence why it is none.
pub(super) fn numbers(contribution: &Params) -> Result<Vec<f64>, String> {
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

/// Rows of a silo, and its sums of every model; `None` for numbers that no silo can have.
pub(super) fn site(shapes: &[SumsShape], numbers: &[f64]) -> Option<(f64, Vec<SiteSums>)> {
    let (&[sites, rows], mut numbers) = numbers.split_first_chunk()?;
    let counts = sites == 1.0 && rows >= 1.0 && rows.fract() == 0.0 && rows <= MOST_ROWS;
    counts.then_some(())?;
    let mut all = Vec::with_capacity(shapes.len());
    for &shape in shapes {
        let (own, rest) = numbers.split_at_checked(shape.len())?;
        all.push(SiteSums::read(shape, own).filter(SiteSums::is_plausible)?);
        numbers = rest;
    }
    numbers.is_empty().then_some((rows, all))
}

/// The most rows of a silo.
const MOST_ROWS: f64 = 1e12;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mixed::{MixedSettings, Varying};

    #[test]
    fn numbers_travel_with_twice_the_digits_of_single_precision() {
        let phase = SumsPhase::Folds;
        let sent = [1.0, 0.1, 123_456.789_012_345, -1e-9];
        let contribution = phase.contribution(&sent).unwrap();
        assert_eq!(contribution.layout(), &phase.layout());
        for (sent, read) in sent.iter().zip(numbers(&contribution).unwrap()) {
            assert!((sent - read).abs() <= 4e-15 * sent.abs(), "{sent}, {read}");
        }
        assert!(phase.contribution(&[1.0, f64::MAX, 0.0, 0.0]).is_none());
        assert!(phase.contribution(&[1.0, f64::NAN, 0.0, 0.0]).is_none());
        assert!(numbers(&Params::zeros(&SumsPhase::Over.layout())).is_ok());
        assert!(numbers(&Params::empty()).is_err());
    }

    #[test]
    fn counts_that_no_silo_has_are_refused() {
        let model = MixedProgress::start(Varying::Nothing, 2, &MixedSettings::default());
        let shapes = [model.shape(false, false)];
        let with = |sites: f64, rows: f64| {
            let mut numbers = vec![sites, rows];
            numbers.resize(2 + shapes[0].len(), 0.0);
            site(&shapes, &numbers).is_some()
        };
        assert!(with(1.0, 20.0));
        for (sites, rows) in [
            (2.0, 20.0),
            (0.0, 20.0),
            (1.0, 0.0),
            (1.0, 2.5),
            (1.0, -3.0),
        ] {
            assert!(!with(sites, rows), "{sites} {rows}");
        }
        assert!(site(&shapes, &[1.0]).is_none());
        assert!(site(&shapes, &vec![1.0; 3 + shapes[0].len()]).is_none());
    }
}
