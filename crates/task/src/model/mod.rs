//! Model families of tasks, as configurations: what the layers are, not how they compute.

mod architectures;
mod layer;
mod network;

use serde::{Deserialize, Serialize};

use crate::loss::RegressionLoss;

pub use architectures::{Architecture, Design, domains};
pub use layer::{ConvConfig, LayerConfig, MaxPoolConfig, NormConfig, StartWeights};
pub use network::{LayersConfig, NetworkConfig};

/// The model family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ModelConfig {
    /// Linear regression.
    Linear {
        /// Loss of a row. Default: `"squared"`.
        #[serde(default)]
        loss: RegressionLoss,
    },
    /// Logistic regression, for two classes.
    Logistic,
    /// A multi-layer perceptron with ReLU: softmax and cross-entropy for classes, one output for
    /// every number, one risk score by Cox's partial likelihood for a time to an event.
    Mlp {
        /// Widths of the hidden layers, each at least 1.
        hidden: Vec<usize>,
        /// Loss of a row, for targets that are numbers only. Default: `"squared"`.
        #[serde(default)]
        loss: Option<RegressionLoss>,
    },
    /// A network of layers, for images or any rows: softmax and cross-entropy for classes, one
    /// output for every number, the soft Dice loss for masks, one risk score by Cox's partial likelihood for a time
    /// to an event.
    Network(Box<NetworkConfig>),
    /// Cox regression, for a time to an event: a risk score that is linear in the features. Its baseline hazard
    /// stays at each institution.
    Cox,
}
