//! The transport cost of a Wasserstein ball: what moving a row costs.

use serde::{Deserialize, Serialize};

use super::RobustError;

/// The norm by which the distance of two feature vectors is measured.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Norm {
    /// Sum of absolute values; its dual is the largest absolute value.
    L1,
    /// Euclidean; its own dual.
    #[default]
    L2,
    /// Largest absolute value; its dual is the sum of absolute values.
    Linf,
}

impl Norm {
    /// The dual norm of a vector: the Lipschitz constant of a linear function with these weights.
    pub fn dual(self, vector: impl IntoIterator<Item = f64>) -> f64 {
        let sizes = vector.into_iter().map(f64::abs);
        match self {
            Self::L1 => sizes.fold(0.0, f64::max),
            Self::L2 => sizes.map(|size| size * size).sum::<f64>().sqrt(),
            Self::Linf => sizes.sum(),
        }
    }
}

/// The cost of moving a row in robust losses: the norm of the change in its features (and target, in
/// a regression), plus the label cost if its label changes. The Wasserstein ball of a radius holds
/// the distributions that the rows can be moved to at a mean cost of at most that radius.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TransportCost {
    /// Norm that measures how far (standardised) features move, and the target in a regression.
    /// Default: `"l2"`.
    pub norm: Norm,
    /// Cost of changing a label (κ in CS-RCFL, eqs. (14)–(15)); `inf` if labels are certain. Default 1.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub label_cost: f64,
}

impl Default for TransportCost {
    fn default() -> Self {
        Self {
            norm: Norm::default(),
            label_cost: 1.0,
        }
    }
}

impl TransportCost {
    /// Refuses a label cost that is not above 0.
    ///
    /// # Errors
    /// [`RobustError::LabelCost`], and no other.
    pub fn validate(self) -> Result<(), RobustError> {
        validate_label_cost(self.label_cost)
    }
}

/// Refuses a label cost of 0 or less, or NaN.
pub(super) fn validate_label_cost(label_cost: f64) -> Result<(), RobustError> {
    if label_cost.is_nan() || label_cost <= 0.0 {
        return Err(RobustError::LabelCost(label_cost));
    }
    Ok(())
}
