//! Comparison of the sites' own fits with the shrunken ones.
//!
//! At the end of the rounds every site measures both by cross-validation on its own rows: the fit around the
//! global model, with `μ`, `T` and `s²` as they are, and a fit of its own rows alone with a ridge. The sites'
//! sums of the losses, and of the squares of their differences, say which is better on average, and by how many
//! standard errors.

use super::mode::linear;
use super::{Family, MixedError, Prior, mode};
use crate::robust::folds::FoldsError;
use crate::robust::ridge::ridge_fit;
use crate::robust::{Folds, LinearModel, Samples};

/// Folds of a site's rows.
const FOLDS: usize = 5;
/// Strengths of the ridge of a fit alone, of which the folds choose.
const RIDGES: [f64; 7] = [1e-4, 1e-3, 0.01, 0.03, 0.1, 1.0, 10.0];

/// Numbers of a site's [`OwnFoldLosses`].
pub const NUMBERS: usize = 4;

/// Losses of a site's own fits, or their sum over sites.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OwnFoldLosses {
    /// Sites that could measure, 0 or 1 for one site.
    pub sites: f64,
    /// Mean loss of the shrunken fits on rows that they have not seen.
    pub chosen: f64,
    /// The same of fits alone.
    pub alone: f64,
    /// The square of the difference of the two.
    pub square: f64,
}

impl OwnFoldLosses {
    /// The losses of a site; 0 of everything where it has too few rows to divide.
    ///
    /// # Errors
    /// [`MixedError`] where a fit fails.
    pub fn of(rows: &Samples, family: Family, prior: Prior<'_>) -> Result<Self, MixedError> {
        let Ok(splits) = divided(rows, family) else {
            return Ok(Self::default());
        };
        let loss = family.loss();
        let (mut chosen, mut alone) = (0.0, 0.0);
        for (seen, unseen) in &splits {
            let part = unseen.len() as f64 / rows.len() as f64;
            chosen += part * loss.mean(unseen, &mode(seen, family, prior)?.model());
            alone += part * loss.mean(unseen, &fit_alone(seen, family)?);
        }
        let apart = chosen - alone;
        Ok(Self {
            sites: 1.0,
            chosen,
            alone,
            square: apart * apart,
        })
    }

    /// As a list.
    pub fn numbers(&self) -> [f64; NUMBERS] {
        [self.sites, self.chosen, self.alone, self.square]
    }

    /// The sum over so many sites from a list, in which rounding moved a number by this at most; `None` for another
    /// number of numbers, and what no sites can have.
    pub fn of_sum(numbers: &[f64], of: f64, rounding: f64) -> Option<Self> {
        let &[sites, chosen, alone, square] = numbers else {
            return None;
        };
        let apart = chosen - alone;
        // The sum of squares is at least that of equal differences, and of one site no more.
        let least = apart * apart / sites.max(1.0);
        let slack = 1e-3 * (least + 1e-6) + rounding * (1.0 + apart.abs());
        let most = if of == 1.0 { least } else { f64::INFINITY };
        let holds = numbers
            .iter()
            .all(|number| number.is_finite() && *number >= 0.0)
            && (0.0..=of).contains(&sites)
            && sites.fract() == 0.0
            // Sites that measured nothing have nothing to say.
            && (sites >= 1.0 || chosen + alone == 0.0)
            && square >= least - slack
            && square <= most + slack;
        holds.then_some(Self {
            sites,
            chosen,
            alone,
            square,
        })
    }

    /// Adds those of another site.
    pub fn add(&mut self, other: &Self) {
        self.sites += other.sites;
        self.chosen += other.chosen;
        self.alone += other.alone;
        self.square += other.square;
    }

    /// Returns whether fits alone are better by more than the standard error of the mean difference over sites.
    pub fn says_alone(&self) -> bool {
        if self.sites < 2.0 {
            return false;
        }
        let mean = (self.chosen - self.alone) / self.sites;
        let spread = (self.square - self.sites * mean * mean).max(0.0);
        mean > (spread / (self.sites * (self.sites - 1.0))).sqrt()
    }
}

/// The fit of a site's rows alone, with a ridge by folds.
///
/// # Errors
/// [`MixedError::Fit`].
pub fn fit_alone(rows: &Samples, family: Family) -> Result<LinearModel, MixedError> {
    let centre = linear(&vec![0.0; rows.features() + 1]);
    let fit = |rows: &Samples, ridge| ridge_fit(rows, family.loss(), &centre, ridge);
    let Ok(splits) = divided(rows, family) else {
        return Ok(fit(rows, RIDGES[RIDGES.len() - 1])?);
    };
    let mut best = (f64::INFINITY, RIDGES[0]);
    for ridge in RIDGES {
        let mut total = 0.0;
        for (seen, unseen) in &splits {
            total += unseen.len() as f64 * family.loss().mean(unseen, &fit(seen, ridge)?);
        }
        if total < best.0 {
            best = (total, ridge);
        }
    }
    Ok(fit(rows, best.1)?)
}

/// A site's rows in folds: those outside and those inside each.
fn divided(rows: &Samples, family: Family) -> Result<Vec<(Samples, Samples)>, FoldsError> {
    // The order of the rows is not known to others.
    let most = rows.together().len();
    let folds = Folds::new(rows, family.loss().kind(), FOLDS.min(most), 0)?;
    Ok(folds.splits(rows))
}
