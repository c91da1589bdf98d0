//! The model family of a task.

use serde::{Deserialize, Serialize};

use crate::data::{DataError, Target};
use crate::models::{Head, Linear, Loss, Mlp, Model, Network, NetworkConfig, RegressionLoss};

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
    /// every number.
    Mlp {
        /// Widths of the hidden layers, each at least 1.
        hidden: Vec<usize>,
        /// Loss of a row, for targets that are numbers only. Default: `"squared"`.
        #[serde(default)]
        loss: Option<RegressionLoss>,
    },
    /// A network of layers, for images or any rows: softmax and cross-entropy for classes, one
    /// output for every number, the soft Dice loss for masks.
    Network(Box<NetworkConfig>),
}

impl ModelConfig {
    /// The family for this many features and this target.
    pub(crate) fn family(
        &self,
        features: usize,
        target: &Target,
    ) -> Result<(Box<dyn Model>, Loss), DataError> {
        let fail = |text: &str| Err(DataError::Config(text.into()));
        match (self, target) {
            (Self::Linear { loss }, Target::Number { .. }) => {
                Ok((Box::new(Linear { features }), Loss::Regression(*loss)))
            }
            (Self::Linear { .. }, Target::Classes(_)) => fail(
                "a linear model predicts a number, but the target has classes: use model = \"logistic\" or an mlp",
            ),
            (Self::Linear { .. }, _) => fail(
                "a linear model predicts one number, but the target has several: use an mlp or a network",
            ),
            (Self::Logistic, Target::Classes(classes)) if classes.len() == 2 => {
                Ok((Box::new(Linear { features }), Loss::Logistic))
            }
            (Self::Logistic, _) => fail(
                "a logistic model needs two classes: give `positive` or two `classes`, or use another model",
            ),
            (Self::Mlp { hidden, .. }, _) if hidden.contains(&0) => {
                fail("mlp: every hidden width must be at least 1")
            }
            (Self::Mlp { hidden, loss: None }, Target::Classes(classes)) => Ok((
                Box::new(Mlp::new(features, hidden, classes.len())),
                Loss::Softmax,
            )),
            (Self::Mlp { .. }, Target::Classes(_)) => {
                fail("mlp: `loss` is for numbers; classes are learned by cross-entropy")
            }
            (Self::Mlp { hidden, loss }, Target::Number { .. }) => {
                let loss = Loss::Regression(loss.unwrap_or_default());
                Ok((Box::new(Mlp::new(features, hidden, 1)), loss))
            }
            (Self::Mlp { hidden, loss }, Target::Numbers { count, .. }) => {
                let loss = Loss::Regression(loss.unwrap_or_default());
                Ok((Box::new(Mlp::new(features, hidden, *count)), loss))
            }
            (Self::Mlp { .. }, Target::Mask { .. }) => {
                fail("an mlp cannot predict a mask: use a network, such as the unet")
            }
            (Self::Network(config), target) => {
                let (head, loss) = match target {
                    Target::Number { .. } => (Head::Dense(1), None),
                    Target::Numbers { count, .. } => (Head::Dense(*count), None),
                    Target::Classes(classes) => (Head::Dense(classes.len()), Some(Loss::Softmax)),
                    Target::Mask { pixels } => {
                        (Head::Pixels(*pixels), Some(Loss::Dice { pixels: *pixels }))
                    }
                };
                if loss.is_some() && config.loss.is_some() {
                    return fail(
                        "network: `loss` is for numbers; classes are learned by cross-entropy and masks by the Dice loss",
                    );
                }
                let loss = loss.unwrap_or(Loss::Regression(config.loss.unwrap_or_default()));
                let network = Network::new(config, features, head)
                    .map_err(|error| DataError::Config(format!("network: {error}")))?;
                Ok((Box::new(network), loss))
            }
        }
    }
}
