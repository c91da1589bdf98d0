//! Mixed models from sums over sites: every site has coefficients of its own, drawn around common ones.
//!
//! The model of site `k` is `β_k = μ + b_k`, where the deviations `b_k` are independent normal numbers of
//! variance `T_j` for coefficient `j` (the intercept first). So a coefficient that is the same everywhere
//! gets `T_j = 0` and is learned from all rows; one that differs is shrunken towards `μ_j` by as much as the
//! site's own rows are uninformative (random effects, Laird & Ware 1982; empirical Bayes, Morris 1983).
//! `μ`, `T` and the variance `s²` of the noise are estimated in rounds. In each of them a site computes
//! [`SiteSums`] at the [`mode`](fn@mode) of its own penalised fit, and everybody takes the next
//! [step](MixedProgress::step) from their sum. Without a prior on the common slopes the fixed point is that of
//! restricted maximum likelihood (REML, Patterson & Thompson 1971) for numbers, and of Laplace's
//! approximation to it (Breslow & Clayton 1993) for classes.
//!
//! * [`Varying`]: which coefficients may differ; several such models are fitted at once and [compared].
//! * [`AveragedEstimates`]: their estimates as one, each model by how well it is expected to predict.
//! * [`SiteSums`]: what one site contributes to a round, and its layout as a list of numbers.
//! * [`MixedProgress`]: what all know of one model, and the step that follows from a sum.
//! * [`folds`]: whether the sites' own fits would have served them better.
//!
//! Steps use additions, multiplications, divisions and square roots in a fixed order only, so all who take one
//! get the same bits; weights of models use libm's exponential besides, which is made of these. A site's own numbers
//! may use logarithms.
//!
//! [compared]: MixedProgress::criterion

mod averaged;
pub mod folds;
mod mode;
mod progress;
mod site;
mod symmetric;
mod varying;

pub use averaged::{AveragedEstimates, model_weights};
pub use mode::{Prior, SiteMode, mode};
pub use progress::{MixedProgress, MixedSettings, is_whole};
pub use site::{SiteSums, SumsShape};
pub use varying::Varying;

use crate::robust::ridge::PlainLoss;

/// The distribution of a target given its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// A number with normal noise: squared loss.
    Gaussian,
    /// One of two classes, as −1 and 1: logistic loss.
    Binomial,
}

impl Family {
    /// The family whose likelihood a loss is; `None` for absolute loss.
    pub fn of(loss: PlainLoss) -> Option<Self> {
        match loss {
            PlainLoss::Squared => Some(Self::Gaussian),
            PlainLoss::Logistic => Some(Self::Binomial),
            PlainLoss::Absolute => None,
        }
    }

    /// The loss of the family.
    pub fn loss(self) -> PlainLoss {
        match self {
            Self::Gaussian => PlainLoss::Squared,
            Self::Binomial => PlainLoss::Logistic,
        }
    }
}

/// Reason for which a site has no numbers for a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MixedError {
    /// The global model does not fit the rows.
    #[error(
        "the global model has {known} coefficients, and the rows need {needed}: one for each column and \
         the intercept"
    )]
    Width {
        /// Coefficients of the global model.
        known: usize,
        /// Columns of the rows, and one.
        needed: usize,
    },
    /// A fit that did not converge, or a number that is not finite.
    #[error(
        "the fit of this site's own rows around the global model gives numbers that are not finite: look \
         for columns of very large values, and scale them"
    )]
    NotFinite,
    /// A fit of folds failed.
    #[error(transparent)]
    Fit(#[from] crate::robust::fit::FitError),
}

#[cfg(test)]
mod tests;
