//! Aggregation rules: how the models of one coalition become one model.
//!
//! An [`Aggregation`] takes models with weights and returns one model. The result enters the state
//! of a federation, so every rule gives the same bits on every machine and with any number of
//! threads: `f64` sums in a fixed order, no fused operations, integers where values are only
//! compared.
//!
//! **Weights** act as multiplicities in means and medians. Where models are counted or ranked (the
//! trimmed ends, the neighbours of Krum and of mixing) each model counts once. The breakdown point
//! of a rule is a share of the total weight. Where weights are self-reported (numbers of rows), use
//! equal weights with a robust rule, or a member that exaggerates outweighs the rest.
//!
//! **Buffers** (running statistics and scalings) are averaged by the mean, and handled like all
//! other values by the coordinate-wise rules. Distances ignore them, so a distance-based rule cannot
//! tell whose buffers are bad: these rules take the coordinate median of the buffers.
//!
//! ```
//! use methods::aggregation::{Aggregation, ReferenceModels};
//! use methods::{Layout, Params, Role, TensorSpec};
//!
//! let layout = Layout::new(vec![TensorSpec::new("weight", [2], Role::Weight)])?;
//! let honest = [[1.0, 2.0], [1.5, 2.5], [0.5, 3.0]].map(|row| Params::from_values(&layout, &row));
//! let byzantine = Params::from_values(&layout, &[1e30, -1e30]);
//! let models = [(&honest[0], 1.0), (&honest[1], 1.0), (&byzantine, 1.0), (&honest[2], 1.0)];
//!
//! // As a scenario names it: nearest-neighbour mixing, then the coordinate median.
//! let rule: Aggregation = serde_json::from_str(
//!     r#"{"name": "nearest-neighbour-mixing", "byzantine": 1,
//!         "then": {"name": "coordinate-median"}}"#,
//! )?;
//! let combined = rule.combine(&models, ReferenceModels::default())?;
//! assert_eq!(combined.values(), [1.0, 2.5]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`weights`] computes the weights that baselines give to models; [`step()`] applies weights that do
//! not sum to 1.

mod buffers;
mod clipping;
mod columns;
mod distance;
mod error;
mod geometric;
mod krum;
mod median;
mod mixing;
mod models;
mod network;
mod step;
mod trimmed;
mod trust;
pub mod weights;

pub use clipping::ClippingStart;
pub use error::AggregationError;
pub use step::step;

use serde::{Deserialize, Serialize};

use crate::params::{Params, weighted_mean};
use models::{Models, is_finite};

/// A rule that combines several models into one. In TOML: `{ name = "trimmed-mean", share = 0.2 }`.
///
/// `n` is the number of models with a weight above 0, `f` of them arbitrary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Aggregation {
    /// `Σ w_i x_i / Σ w_i`. Not robust: one arbitrary model can move it anywhere.
    Mean,
    /// The weighted median of every coordinate; the mean of the two middle values where there are
    /// two (Yin et al. 2018). With less than half of the weight arbitrary, every coordinate stays
    /// within the range of the honest models.
    CoordinateMedian,
    /// The mean of every coordinate without its `⌊share·n⌋` smallest and largest values (Yin et al.
    /// 2018). With at most this number of models arbitrary, every coordinate stays within the range of
    /// the honest models.
    TrimmedMean {
        /// Share β of the models left out at each end. Default 0.1.
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 0.5))]
        #[serde(default = "tenth")]
        share: f64,
    },
    /// The point with the least sum of distances from the models (Pillutla et al. 2022). With a
    /// share `α < ½` of the weight arbitrary, it is at most `(1 − α)/√(1 − 2α)` times as far from
    /// any point as the farthest of the other models is (Minsker 2015, Lemma 2.1).
    GeometricMedian {
        /// Lower bound of a distance, as a fraction of the median distance. Default 1e-6.
        #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
        #[serde(default = "millionth")]
        smoothing: f64,
        /// Norm of the gradient, relative to the total weight, at which the iteration stops. Default
        /// 1e-4: a smaller gradient is rounding in `f32` once models are close to each other.
        #[schemars(range(min = 0))]
        #[serde(default = "ten_thousandth")]
        tolerance: f64,
        /// Maximum number of iterations. Default 50; similar models need only a few.
        #[schemars(range(min = 1, max = 1000), extend("x-unit" = "iterations"))]
        #[serde(default = "fifty")]
        iterations: u32,
    },
    /// The model with the least sum of squared distances from its `n − f − 2` nearest (Blanchard
    /// et al. 2017). Needs `n ≥ 2f + 3`; then the model is at most `√(n − f − 2)` times as far
    /// from an honest one as those are from each other.
    Krum {
        /// Number `f` of models that may be arbitrary. Default 1.
        #[schemars(extend("x-unit" = "models"))]
        #[serde(default = "one")]
        byzantine: usize,
    },
    /// The mean of the models that Krum ranks first. Needs `n ≥ 2f + 3`.
    MultiKrum {
        /// Number `f` of models that may be arbitrary. Default 1.
        #[schemars(extend("x-unit" = "models"))]
        #[serde(default = "one")]
        byzantine: usize,
        /// Number of models that are averaged, at most `n − f`. Default: `n − f`.
        #[schemars(range(min = 1), extend("x-unit" = "models"))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        select: Option<usize>,
    },
    /// The centre moves by the mean of the differences to the models, each clipped to a radius
    /// (Karimireddy, He & Jaggi 2021). In total it moves by at most the sum of the radii.
    CentredClipping {
        /// Radius τ, in the unit of the weights. Default: in every iteration the median distance of
        /// the models from the centre, which is at most the largest distance of an honest model while
        /// less than half of the weight is arbitrary.
        #[schemars(extend("exclusiveMinimum" = 0))]
        #[serde(default, skip_serializing_if = "Option::is_none")]
        radius: Option<f64>,
        /// Number of iterations. Default 5, a guess.
        #[schemars(range(min = 1, max = 1000), extend("x-unit" = "iterations"))]
        #[serde(default = "five")]
        iterations: u32,
        /// Initial centre. Default: the coordinate median.
        #[serde(default)]
        start: ClippingStart,
    },
    /// The mean of the updates, each weighted by its cosine with a trusted update and scaled to the
    /// length of that (FLTrust, Cao et al. 2021). Any number of models may be arbitrary: the result
    /// is at most as far from the start model as the trusted model is. Needs both in [`ReferenceModels`].
    /// No strategy offers it yet: a federation has no trusted data.
    #[schemars(skip)]
    TrustWeighted,
    /// Every model is replaced by the mean of its `n − f` nearest before another rule is applied
    /// (Allouah et al. 2023). Needs `n ≥ 2f + 1`, and as many models as the other rule needs.
    NearestNeighbourMixing {
        /// Number `f` of models that may be arbitrary. Default 1.
        #[schemars(extend("x-unit" = "models"))]
        #[serde(default = "one")]
        byzantine: usize,
        /// The rule for the mixed models; any but this one.
        then: Box<Aggregation>,
    },
}

/// Reference models that some rules compare the others with.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReferenceModels<'a> {
    /// The model that all training started from.
    pub start: Option<&'a Params>,
    /// A model trained from `start` in the same way, on data that everybody trusts.
    pub trusted: Option<&'a Params>,
}

fn tenth() -> f64 {
    0.1
}

fn millionth() -> f64 {
    1e-6
}

fn ten_thousandth() -> f64 {
    1e-4
}

fn fifty() -> u32 {
    50
}

fn five() -> u32 {
    5
}

fn one() -> usize {
    1
}

impl Aggregation {
    /// Name of the rule in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::CoordinateMedian => "coordinate-median",
            Self::TrimmedMean { .. } => "trimmed-mean",
            Self::GeometricMedian { .. } => "geometric-median",
            Self::Krum { .. } => "krum",
            Self::MultiKrum { .. } => "multi-krum",
            Self::CentredClipping { .. } => "centred-clipping",
            Self::TrustWeighted => "trust-weighted",
            Self::NearestNeighbourMixing { .. } => "nearest-neighbour-mixing",
        }
    }

    /// The smallest number of models it can combine: 1, unless the rule assumes a number of
    /// arbitrary models.
    pub fn least_models(&self) -> usize {
        let then = match self {
            Self::NearestNeighbourMixing { then, .. } => then.least_models(),
            _ => 1,
        };
        self.counted().map_or(then, |(_, needed)| needed.max(then))
    }

    /// The assumed number of arbitrary models, and the number of models needed for it.
    fn counted(&self) -> Option<(usize, usize)> {
        let (byzantine, beside) = match self {
            Self::Krum { byzantine } | Self::MultiKrum { byzantine, .. } => (*byzantine, 3),
            Self::NearestNeighbourMixing { byzantine, .. } => (*byzantine, 1),
            _ => return None,
        };
        Some((
            byzantine,
            byzantine.saturating_mul(2).saturating_add(beside),
        ))
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`AggregationError::Option`] for the first that is out of its range.
    pub fn validate(&self) -> Result<(), AggregationError> {
        let option = |option, allowed, got: &dyn ToString, valid: bool| {
            let (rule, got) = (self.name(), got.to_string());
            valid.then_some(()).ok_or(AggregationError::Option {
                rule,
                option,
                allowed,
                got,
            })
        };
        let iterations = |count: &u32| {
            let valid = (1..=1000).contains(count);
            option("iterations", "1 to 1000", count, valid)
        };
        match self {
            Self::TrimmedMean { share } => {
                let valid = (0.0..0.5).contains(share);
                option("share", "at least 0 and below 0.5", share, valid)
            }
            Self::GeometricMedian {
                smoothing,
                tolerance,
                iterations: count,
            } => {
                let valid = *smoothing > 0.0 && *smoothing <= 1.0;
                option("smoothing", "above 0 and at most 1", smoothing, valid)?;
                let valid = tolerance.is_finite() && *tolerance >= 0.0;
                option("tolerance", "finite and at least 0", tolerance, valid)?;
                iterations(count)
            }
            Self::MultiKrum {
                select: Some(select),
                ..
            } => option("select", "at least 1", select, *select > 0),
            Self::CentredClipping {
                radius,
                iterations: count,
                ..
            } => {
                if let Some(radius) = radius {
                    let valid = radius.is_finite() && *radius > 0.0;
                    option("radius", "finite and above 0", radius, valid)?;
                }
                iterations(count)
            }
            Self::NearestNeighbourMixing { then, .. } => {
                let nested = matches!(**then, Self::NearestNeighbourMixing { .. });
                option("then", "a rule other than mixing", &then.name(), !nested)?;
                then.validate()
            }
            Self::Mean
            | Self::CoordinateMedian
            | Self::Krum { .. }
            | Self::MultiKrum { select: None, .. }
            | Self::TrustWeighted => Ok(()),
        }
    }

    /// Combines models, each with its weight ≥ 0, into one; models of weight 0 count as absent. The
    /// order of the models affects at most the last bit of a mean.
    ///
    /// # Errors
    /// [`AggregationError`]: no models, different layouts, unusable weights, a value that is not
    /// finite, an option out of its range, too few models for the number of arbitrary ones, a
    /// missing or unusable reference.
    pub fn combine(
        &self,
        models: &[(&Params, f64)],
        references: ReferenceModels<'_>,
    ) -> Result<Params, AggregationError> {
        self.validate()?;
        let models = Models::new(models)?;
        self.enough(models.len())?;
        self.applied(&models, references)
    }

    fn applied(
        &self,
        models: &Models,
        references: ReferenceModels<'_>,
    ) -> Result<Params, AggregationError> {
        match self {
            Self::Mean => {
                let all: Vec<usize> = (0..models.len()).collect();
                Ok(weighted_mean(&models.chosen(&all))?)
            }
            Self::CoordinateMedian => Ok(median::coordinate_median(models)),
            Self::TrimmedMean { share } => Ok(trimmed::trimmed_mean(models, *share)),
            Self::GeometricMedian {
                smoothing,
                tolerance,
                iterations,
            } => geometric::geometric_median(models, *smoothing, *tolerance, *iterations),
            Self::Krum { byzantine } => krum::krum(models, *byzantine, 1),
            Self::MultiKrum { byzantine, select } => {
                let most = models.len() - byzantine;
                let selected = select.map_or(most, |select| select.min(most));
                krum::krum(models, *byzantine, selected)
            }
            Self::CentredClipping {
                radius,
                iterations,
                start,
            } => {
                let centre = match start {
                    ClippingStart::CoordinateMedian => median::coordinate_median(models),
                    ClippingStart::Start => {
                        self.reference("start", references.start, models)?.clone()
                    }
                };
                clipping::centred_clipping(models, centre, *radius, *iterations)
            }
            Self::TrustWeighted => {
                let start = self.reference("start", references.start, models)?;
                let trusted = self.reference("trusted", references.trusted, models)?;
                trust::trust_weighted(models, start, trusted)
            }
            Self::NearestNeighbourMixing { byzantine, then } => {
                let mixed = mixing::mixed(models, *byzantine);
                then.applied(&models.with_weights_of(&mixed), references)
            }
        }
    }

    /// Refuses too few models.
    fn enough(&self, got: usize) -> Result<(), AggregationError> {
        if let Some((byzantine, needed)) = self.counted()
            && got < needed
        {
            return Err(AggregationError::TooFew {
                rule: self.name(),
                byzantine,
                needed,
                got,
            });
        }
        match self {
            Self::NearestNeighbourMixing { then, .. } => then.enough(got),
            _ => Ok(()),
        }
    }

    /// A reference that this rule needs, of the models' layout and finite.
    fn reference<'a>(
        &self,
        which: &'static str,
        reference: Option<&'a Params>,
        models: &Models,
    ) -> Result<&'a Params, AggregationError> {
        let rule = self.name();
        let reference = reference.ok_or(AggregationError::NoReference { rule, which })?;
        if reference.layout() != models.layout() {
            return Err(AggregationError::Layout);
        }
        if !is_finite(reference) {
            return Err(AggregationError::BadReference { which });
        }
        Ok(reference)
    }
}

#[cfg(test)]
mod tests;
