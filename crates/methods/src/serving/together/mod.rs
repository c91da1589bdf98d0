//! Serving decided together: every silo judges what it measured beside what all silos measured.
//!
//! With few rows a silo cannot tell an advantage over its local model from luck, and keeps its own although most
//! silos would gain. So the advantage that it measured is shrunken towards the mean of all silos, by empirical
//! Bayes (Morris 1983, "Parametric empirical Bayes inference", JASA 78): the less it knows, and the more alike
//! silos are, the more the others count.
//!
//! For one candidate, silo `k` of `K` measured the advantage `a_k` with standard error `s_k`. The estimate of
//! moments is DerSimonian and Laird's (1986) with equal weights, as Hedges and Olkin (1985) have it:
//!
//! ```text
//! m    = Σ a / K                                          the mean advantage
//! s²   = Σ s_k² / K                                       what silos cannot tell, in the mean
//! τ²   = max(0, Σ (a_k − m)² / (K − 1) − s²)              how unlike silos are
//! v_k  = (s_k² + s²)/2                                    what silo k cannot tell, moderated
//! b_k  = (a_k/v_k + m/τ²) / (1/v_k + 1/τ²)                the shrunken advantage; m where τ² = 0
//! e_k² = 1/(1/v_k + 1/τ²) + (v_k/(v_k + τ²))² (τ² + s²)/K         its variance
//! ```
//!
//! The last term is the variance of `m`. Weights `1/s_k²` would be better if the `s_k` were known. They are
//! estimates from a handful of folds, and a silo whose folds agree by luck would speak for all. For the same reason
//! `v_k` is between what the silo's folds say and the mean of all, as in moderated tests (Smyth 2004, "Linear models
//! and empirical Bayes methods", SAGMB 3). What the rows of
//! one silo show [clearly](CLEAR) no other outweighs.
//!
//! Sums over silos of four numbers are enough: of 1, `a`, `a²` and `s²`. A simulation has every comparison; members of
//! a federation open the sums in [rounds](TogetherRounds) of their own.
//!
//! A mean over silos removes luck, but not a bias that all silos share. One bias: a silo alone measures losses
//! [as if there were one row more of each class](super). With ten rows that favours models that say little. So in the
//! sums these extra rows weigh no more than they would among fifty. Another bias is that a silo's
//! rows decided which of several coalitions it belongs to. Their [selection bias](crate::selection::selection_bias) is taken off.

mod rounds;
mod student;

use std::collections::BTreeMap;

use super::{Advantage, Candidate, ComparedModels, Measured, Served, choose};

use student::two_sided;

pub use rounds::{NotTogether, TogetherRounds, TogetherStage};

/// Where all silos are alike, the probability that at least one of them seems to be unlike the others (Bonferroni). An
/// advantage that is less likely than that stays as the silo measured it. Student's distribution, because the standard
/// error is over few folds: with five, one silo in nine is two standard errors off by chance.
const CLEAR: f64 = 0.05;

/// Sums over silos of what they measured of one candidate, in the unit of the loss.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct AdvantageSums {
    /// Number of silos.
    silos: f64,
    /// Sum of the advantages over their local models.
    advantages: f64,
    /// Sum of the squares of these.
    squares: f64,
    /// Sum of the squares of their standard errors.
    variances: f64,
}

/// Distribution of the true advantages of all silos.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TrueAdvantages {
    mean: f64,
    /// Variance of the true advantages between silos.
    between: f64,
    /// Variance of the mean.
    of_mean: f64,
}

impl AdvantageSums {
    /// Adds what one silo measured; nothing where that is not finite.
    fn add(&mut self, one: Advantage) {
        let variance = one.error * one.error;
        let square = one.mean * one.mean;
        if variance.is_finite() && square.is_finite() {
            self.silos += 1.0;
            self.advantages += one.mean;
            self.squares += square;
            self.variances += variance;
        }
    }

    /// `None` with less than two silos: nobody knows how unlike silos are.
    fn population(&self) -> Option<TrueAdvantages> {
        if self.silos < 2.0 {
            return None;
        }
        let mean = self.advantages / self.silos;
        let unknown = self.variances / self.silos;
        let apart = (self.squares - self.silos * mean * mean).max(0.0) / (self.silos - 1.0);
        let between = (apart - unknown).max(0.0);
        Some(TrueAdvantages {
            mean,
            between,
            of_mean: (between + unknown) / self.silos,
        })
    }

    /// Returns whether a silo's own rows show an advantage, or a disadvantage, beyond chance.
    fn is_clear(&self, own: Advantage, parts: u64) -> bool {
        parts > 1 && two_sided(own.mean.abs() / own.error, parts - 1) * self.silos <= CLEAR
    }

    /// Returns the measurement of a silo with its advantage shrunken towards the mean of all. Where that is
    /// [clear](CLEAR), it is not shrunken. The measurement is unchanged without other silos, and where it is not finite or
    /// exact.
    fn shrunken(&self, one: &Measured) -> Measured {
        let own = one.together;
        // The local model is 0 better than itself, for certain.
        let known = own.error.is_finite() && own.mean.is_finite() && own.error > 0.0;
        let Some(all) = self.population().filter(|_| known) else {
            return one.clone();
        };
        let (advantage, error) = if self.is_clear(own, one.parts) {
            (own.mean, own.error)
        } else {
            let unknown = 0.5 * (own.error * own.error + self.variances / self.silos);
            let towards = unknown / (unknown + all.between);
            let variance = towards * all.between + towards * towards * all.of_mean;
            (own.mean + towards * (all.mean - own.mean), variance.sqrt())
        };
        Measured {
            advantage,
            error,
            loss: one.loss + one.advantage - advantage,
            ..one.clone()
        }
    }
}

/// Measurements of all silos of every candidate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Together(BTreeMap<Candidate, AdvantageSums>);

impl Together {
    /// The sums over silos, of the comparison of each.
    pub fn of<'a>(silos: impl IntoIterator<Item = &'a ComparedModels>) -> Self {
        Self::sums(silos.into_iter().map(|silo| &silo.measured[..]))
    }

    fn sums<'a>(silos: impl IntoIterator<Item = &'a [Measured]>) -> Self {
        let mut all = Self::default();
        for one in silos.into_iter().flatten() {
            all.0.entry(one.candidate).or_default().add(one.together);
        }
        all
    }

    /// Returns what a silo serves with this comparison: by the rule for one that [chooses alone](choose), with every
    /// advantage and its standard error shrunken.
    pub fn serve(&self, compared: ComparedModels) -> Served {
        let candidate = self.choose(&compared.measured);
        compared.serve(candidate)
    }

    /// The candidate that a silo with these measurements serves, if sums have them.
    pub fn choose(&self, measured: &[Measured]) -> Candidate {
        choose(&self.shrunken(measured))
    }

    fn shrunken(&self, measured: &[Measured]) -> Vec<Measured> {
        let shrunken = |one: &Measured| {
            let sums = self.0.get(&one.candidate);
            sums.map_or_else(|| one.clone(), |sums| sums.shrunken(one))
        };
        measured.iter().map(shrunken).collect()
    }
}

#[cfg(test)]
mod tests;
