//! Strategies by name: what a charter says, made into something that runs.

use serde::{Deserialize, Serialize};

use super::Strategy;
use super::cs_rcfl::CsRcfl;
use super::fedavg::FedAvg;
use super::local::Local;
use super::standardise::Standardised;
use crate::learner::{Optimiser, Training};

/// A strategy, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyInfo {
    /// The name in files and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub paper: &'static str,
}

/// All strategies.
pub const STRATEGIES: &[StrategyInfo] = &[
    StrategyInfo {
        name: "fedavg",
        about: "one model for everybody, the mean of all",
        paper: "McMahan et al. 2017, Communication-Efficient Learning of Deep Networks",
    },
    StrategyInfo {
        name: "local",
        about: "everybody alone, for comparison",
        paper: "none",
    },
    StrategyInfo {
        name: "cs-rcfl",
        about: "coalitions of silos whose models do well on each other's data",
        paper: "Konti et al. 2024, Distributionally Robust Clustered Federated Learning",
    },
];

/// A strategy and its options, as in a charter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum StrategyConfig {
    /// [`FedAvg`].
    #[serde(rename = "fedavg")]
    FedAvg {
        /// Local training of a round.
        training: Training,
        /// Whether a common scale is agreed on in a round of its own first.
        #[serde(default)]
        standardise: bool,
        /// How models weigh.
        #[serde(default)]
        weight: WeightRule,
    },
    /// [`Local`].
    Local {
        /// Local training of a round.
        training: Training,
        /// Whether a common scale is agreed on in a round of its own first.
        #[serde(default)]
        standardise: bool,
    },
    /// [`CsRcfl`].
    CsRcfl {
        /// Local training of a round.
        training: Training,
        /// Whether a common scale is agreed on in a round of its own first.
        #[serde(default)]
        standardise: bool,
        /// Number of coalitions, from 1 to the number of members. Default 2, a guess: the program
        /// cannot choose it.
        #[serde(default = "two")]
        coalitions: usize,
        /// Rounds that form coalitions anew; later ones keep them. Default 1; 0 never keeps them.
        #[serde(default = "one")]
        freeze: u64,
    },
}

fn one() -> u64 {
    1
}

fn two() -> usize {
    2
}

/// How models weigh in a mean.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightRule {
    /// By training rows. A number of rows may tell who a nameless contribution is from.
    #[default]
    Exact,
    /// All alike.
    Equal,
}

/// Why a configuration is not a strategy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StrategyError {
    /// No strategy of that name.
    #[error("there is no strategy {0:?}; there are {list}", list = names())]
    Unknown(String),
    /// A number out of its range.
    #[error("strategy option {option} must be {allowed}, not {got}")]
    Option {
        /// The option, as written in a file.
        option: &'static str,
        /// What it may be.
        allowed: &'static str,
        /// What it is.
        got: String,
    },
    /// More coalitions than members.
    #[error(
        "{coalitions} coalitions of {members} members cannot be formed: ask for at most {members}"
    )]
    TooManyCoalitions {
        /// Coalitions asked for.
        coalitions: usize,
        /// Members at hand.
        members: usize,
    },
}

fn names() -> String {
    let names: Vec<_> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
    names.join(", ")
}

impl StrategyConfig {
    /// Its name, as in [`STRATEGIES`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::FedAvg { .. } => "fedavg",
            Self::Local { .. } => "local",
            Self::CsRcfl { .. } => "cs-rcfl",
        }
    }

    /// Local training of a round.
    pub fn training(&self) -> &Training {
        match self {
            Self::FedAvg { training, .. }
            | Self::Local { training, .. }
            | Self::CsRcfl { training, .. } => training,
        }
    }

    /// Whether a common scale is agreed on in a round of its own first.
    pub fn standardise(&self) -> bool {
        match self {
            Self::FedAvg { standardise, .. }
            | Self::Local { standardise, .. }
            | Self::CsRcfl { standardise, .. } => *standardise,
        }
    }

    /// Another strategy with the same training and scale, and defaults for its own options: for
    /// comparing strategies under one tuning. Its own name gives it back as it is.
    ///
    /// # Errors
    /// [`StrategyError::Unknown`].
    pub fn switch(&self, name: &str) -> Result<Self, StrategyError> {
        let (training, standardise) = (self.training().clone(), self.standardise());
        match name {
            name if name == self.name() => Ok(self.clone()),
            "fedavg" => Ok(Self::FedAvg {
                training,
                standardise,
                weight: WeightRule::default(),
            }),
            "local" => Ok(Self::Local {
                training,
                standardise,
            }),
            "cs-rcfl" => Ok(Self::CsRcfl {
                training,
                standardise,
                coalitions: two(),
                freeze: one(),
            }),
            _ => Err(StrategyError::Unknown(name.into())),
        }
    }

    /// Whether all options are in their ranges, and a federation of `members` can run it.
    ///
    /// # Errors
    /// [`StrategyError`]: the first thing that is wrong.
    pub fn validate(&self, members: usize) -> Result<(), StrategyError> {
        self.validate_options()?;
        match *self {
            Self::CsRcfl { coalitions, .. } if coalitions > members => {
                Err(StrategyError::TooManyCoalitions {
                    coalitions,
                    members,
                })
            }
            _ => Ok(()),
        }
    }

    fn validate_options(&self) -> Result<(), StrategyError> {
        let Training {
            epochs,
            batch: _,
            optimiser,
        } = self.training();
        require(*epochs >= 1, "training.epochs", "at least 1", epochs)?;
        let (rate, momentum, decay) = match *optimiser {
            Optimiser::Sgd {
                rate,
                momentum,
                weight_decay,
            } => (rate, momentum, weight_decay),
            Optimiser::Adam { rate, weight_decay } => (rate, 0.0, weight_decay),
        };
        let allowed = "a number above 0";
        require(
            rate.is_finite() && rate > 0.0,
            "training.optimiser.rate",
            allowed,
            rate,
        )?;
        let allowed = "at least 0 and below 1";
        require(
            (0.0..1.0).contains(&momentum),
            "training.optimiser.momentum",
            allowed,
            momentum,
        )?;
        let option = "training.optimiser.weight-decay";
        require(
            decay.is_finite() && decay >= 0.0,
            option,
            "a number of at least 0",
            decay,
        )?;
        match *self {
            Self::CsRcfl { coalitions, .. } => {
                require(coalitions >= 1, "coalitions", "at least 1", coalitions)
            }
            _ => Ok(()),
        }
    }
}

fn require(
    holds: bool,
    option: &'static str,
    allowed: &'static str,
    got: impl ToString,
) -> Result<(), StrategyError> {
    if holds {
        return Ok(());
    }
    Err(StrategyError::Option {
        option,
        allowed,
        got: got.to_string(),
    })
}

/// The strategy that a configuration describes.
///
/// # Errors
/// [`StrategyError::Option`] if an option is out of its range.
pub fn build(config: &StrategyConfig) -> Result<Box<dyn Strategy>, StrategyError> {
    config.validate_options()?;
    let (training, standardise) = (config.training().clone(), config.standardise());
    Ok(match *config {
        StrategyConfig::FedAvg { weight, .. } => scaled(
            FedAvg {
                training,
                weighted: weight == WeightRule::Exact,
            },
            standardise,
        ),
        StrategyConfig::Local { .. } => scaled(Local { training }, standardise),
        StrategyConfig::CsRcfl {
            coalitions, freeze, ..
        } => scaled(
            CsRcfl {
                training,
                coalitions,
                freeze,
            },
            standardise,
        ),
    })
}

fn scaled(strategy: impl Strategy + 'static, standardise: bool) -> Box<dyn Strategy> {
    if standardise {
        Box::new(Standardised::new(strategy))
    } else {
        Box::new(strategy)
    }
}

#[cfg(test)]
mod tests;
