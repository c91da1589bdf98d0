//! FedFa (Huang et al. 2020): silos on whose data the model is poor weigh more.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::aggregation::weights::{WeightsError, fedfa, fedfa_by_accuracy};
use crate::learner::{LearnError, Learner, Split, Update};
use crate::params::Params;
use crate::strategy::options::MethodSetting;
use crate::strategy::options::require;
use crate::strategy::server::one_model::self_weighted::{SelfReported, SelfWeighted, Weighing};
use crate::strategy::wrappers::report::{ReportMetrics, must_measure};
use crate::strategy::wrappers::self_reported::{SelfReport, equip};
use crate::strategy::{EquipError, Strategy, StrategyError};

/// Options of FedFa.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedFa {
    /// Numbers that the weights are computed from.
    pub variant: Information,
    /// Share of accuracy, against the frequency of taking part, in the weights of the variant
    /// `"huang"`. Default 0.5.
    #[schemars(range(min = 0, max = 1))]
    pub alpha: f64,
}

/// Information that the weights of FedFa are made of.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Information {
    /// The information (`−log₂` of shares) of the silos' accuracies and of how often they took part
    /// (Huang et al. 2020).
    #[default]
    Huang,
    /// `−log₂` of the accuracy alone, the variant in HCCT's experiments (Sun et al. 2024).
    Accuracy,
}

impl Default for FedFa {
    fn default() -> Self {
        Self {
            variant: Information::default(),
            alpha: 0.5,
        }
    }
}

impl FedFa {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let valid = (0.0..=1.0).contains(&self.alpha);
        require(valid, "alpha", "from 0 to 1", self.alpha)?;
        Ok(Box::new(SelfWeighted {
            name: "fedfa",
            training: setting.training,
            by: self.clone(),
        }))
    }
}

impl Weighing for FedFa {
    fn report(&self) -> ReportMetrics {
        Account.report()
    }

    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        must_measure(&*inner, "accuracy")?;
        equip(Account, inner)
    }

    fn validate(&self, values: &[f64], round: u64) -> Result<(), String> {
        let (accuracy, rounds) = (values[0], values[1]);
        if !(0.0..=1.0).contains(&accuracy) {
            return Err(format!(
                "an accuracy of {accuracy}, which is not from 0 to 1"
            ));
        }
        if rounds < 1.0 || rounds > round as f64 || rounds.fract() != 0.0 {
            return Err(format!("{rounds} rounds taken part in, of {round}"));
        }
        Ok(())
    }

    fn weights(&self, reported: &[SelfReported], _: u64) -> Result<Vec<f64>, WeightsError> {
        let accuracies: Vec<f64> = reported.iter().map(|one| one.values[0]).collect();
        let rounds: Vec<u64> = reported.iter().map(|one| one.values[1] as u64).collect();
        match self.variant {
            Information::Huang => fedfa(&accuracies, &rounds, self.alpha),
            Information::Accuracy => fedfa_by_accuracy(&accuracies),
        }
    }
}

/// The accuracy of the start model on the own training rows, and the rounds taken part in.
struct Account;

impl SelfReport for Account {
    fn report(&self) -> ReportMetrics {
        ReportMetrics(&["accuracy", "participations"])
    }

    fn kept(&self) -> &'static [&'static str] {
        &["participations"]
    }

    fn measure(
        &self,
        learner: &dyn Learner,
        start: &Params,
        personal: &Params,
        _: &Update,
        kept: &mut [f32],
    ) -> Result<Vec<f64>, LearnError> {
        let metrics = learner.evaluate(start, personal, Split::Train)?;
        kept[0] += 1.0;
        Ok(vec![metrics.get("accuracy")?, kept[0].into()])
    }
}
