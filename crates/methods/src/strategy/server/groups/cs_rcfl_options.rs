//! Options of CS-RCFL, with a given number of coalitions or one that is found.

use serde::{Deserialize, Serialize};

use crate::robust::Ridge;
use crate::strategy::options::{MethodSetting, at_least_one, is_default, require};
use crate::strategy::server::groups::cs_rcfl::CsRcfl;
use crate::strategy::server::groups::cs_rcfl_auto::AutoCsRcfl;
use crate::strategy::{FitRule, Fitting, Strategy, StrategyError};

/// Options of CS-RCFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CsRcflOptions {
    /// Number of coalitions, from 1 to the number of members; or `"auto"`, which takes two rounds to
    /// form coalitions and finds their number by losses on held-out rows. Default 2, a guess.
    pub coalitions: Coalitions,
    /// Largest gap to the best grouping that members accept, as a part of its cost, from 0 to 1. With more
    /// than 15 contributions the lead proves how good its grouping is, and a round in which it
    /// cannot prove as much fails; with fewer the gap is 0. Not used with `"auto"`. Default 0.25.
    #[schemars(range(min = 0, max = 1))]
    pub gap: f64,
    /// Number of times that coalitions are formed, after which they stay the same; 0 forms them in
    /// every round. Default 1.
    #[schemars(extend("x-unit" = "rounds"))]
    pub freeze: u64,
    /// Number of folds of cross-fitting with `"auto"`; not used otherwise. Default 5.
    #[schemars(range(min = 2), extend("x-unit" = "folds"))]
    pub folds: usize,
    /// Number of rounds, with `"auto"`, in which all silos train one model before coalitions are
    /// formed; not used otherwise. Default: 0 for models that have exact fits, 2 for others, such as
    /// networks.
    #[schemars(extend("x-unit" = "rounds"))]
    #[serde(skip_serializing_if = "is_default")]
    pub warm_up: Option<u64>,
    /// Fit of the silos' models. With exact fits the ridge pulls towards the model of the silo's
    /// coalition (towards the start model in the first round). Default: `"exact-if-possible"` with
    /// `"auto"`, otherwise `"trained"`.
    #[serde(skip_serializing_if = "is_default")]
    pub fit: Option<FitRule>,
    /// Strength of the ridge of exact fits: a number, or `{ folds, grid }` to choose it by
    /// cross-validation at every silo. Not used otherwise. Default: 5 folds, 0.0001 to 10.
    #[serde(skip_serializing_if = "is_default")]
    pub ridge: Ridge,
}

impl Default for CsRcflOptions {
    fn default() -> Self {
        Self {
            coalitions: Coalitions::default(),
            gap: 0.25,
            freeze: 1,
            folds: 5,
            warm_up: None,
            fit: None,
            ridge: Ridge::default(),
        }
    }
}

/// Number of coalitions that are to be formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "a number of coalitions, or \"auto\"")]
pub enum Coalitions {
    /// This many.
    Number(usize),
    /// As many as do best on held-out rows.
    Found(Auto),
}

/// The value of [`Coalitions::Found`] in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Auto {
    /// `"auto"`.
    Auto,
}

impl Coalitions {
    /// `"auto"`.
    pub const AUTO: Self = Self::Found(Auto::Auto);

    /// The number, where it is given.
    pub fn number(self) -> Option<usize> {
        match self {
            Self::Number(number) => Some(number),
            Self::Found(_) => None,
        }
    }
}

impl Default for Coalitions {
    fn default() -> Self {
        Self::Number(2)
    }
}

impl From<usize> for Coalitions {
    fn from(number: usize) -> Self {
        Self::Number(number)
    }
}

impl CsRcflOptions {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let MethodSetting {
            training,
            rule,
            members,
        } = setting;
        let freeze = self.freeze;
        let within = (0.0..=1.0).contains(&self.gap);
        require(within, "gap", "a number from 0 to 1", self.gap)?;
        let how = self.fit.unwrap_or(match self.coalitions {
            Coalitions::Number(_) => FitRule::Trained,
            Coalitions::Found(_) => FitRule::ExactIfPossible,
        });
        let fitting = |around_start| Fitting::new(how, &self.ridge, around_start, training.clone());
        let fit = fitting(true)?;
        match self.coalitions {
            Coalitions::Number(coalitions) => {
                at_least_one("coalitions", coalitions as u64)?;
                if coalitions > members {
                    return Err(StrategyError::TooManyCoalitions {
                        coalitions,
                        members,
                    });
                }
                Ok(Box::new(CsRcfl {
                    fit,
                    coalitions,
                    gap: self.gap,
                    freeze,
                    rule,
                }))
            }
            Coalitions::Found(_) => {
                let folds = self.folds;
                require(folds >= 2, "folds", "at least 2", folds)?;
                Ok(Box::new(AutoCsRcfl {
                    fit,
                    alone: fitting(false)?,
                    warm_up: self.warm_up,
                    folds,
                    freeze,
                    rule,
                    by_rows: false,
                }))
            }
        }
    }

    /// Rounds that form the coalitions, before any that only trains.
    pub(crate) fn forming_rounds(&self) -> u64 {
        match self.coalitions {
            Coalitions::Number(_) => 1,
            Coalitions::Found(_) => self.warm_up.unwrap_or(0) + 2,
        }
    }
}
