//! FedNova (Wang et al. 2020): changes are divided by how many steps a silo takes before they are averaged,
//! so that silos with many rows do not pull the global model towards an objective that nobody has.

use serde::{Deserialize, Serialize};

use super::one_model;
use crate::learner::{Optimiser, Training};
use crate::params::Params;
use crate::strategy::options::MethodSetting;
use crate::strategy::server::means::coalition_means;
use crate::strategy::{
    AssignAndAggregate, LoadedManifest, ModelEntry, SettleError, State, Strategy, StrategyError,
};

/// Options of FedNova: none. Silos weigh by their training rows, which are sent with contributions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedNova {}

impl FedNova {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let Optimiser::Sgd { momentum, .. } = setting.training.optimiser else {
            // How far Adam goes is not a number of steps times a rate.
            return Err(StrategyError::Option {
                option: "training.optimiser",
                allowed: "sgd for fednova",
                got: "another".into(),
            });
        };
        Ok(Box::new(StepNormalised {
            training: setting.training,
            momentum,
        }))
    }
}

/// `θ ← θ + τ·Σ p_k (θ_k − θ)/a_k` with `p_k = n_k/n`, `τ = Σ p_k a_k`, and `a_k` the sum of the factors with
/// which the gradients of a silo's `t_k` steps enter its change: `t_k` for plain SGD, and
/// `(t_k − ρ(1 − ρ^t_k)/(1 − ρ))/(1 − ρ)` with momentum ρ (the paper's ‖a‖₁). Buffers are means by rows.
struct StepNormalised {
    training: Training,
    /// ρ.
    momentum: f64,
}

impl StepNormalised {
    /// `a_k` of a silo with this number of training rows.
    fn steps(&self, rows: f64) -> f64 {
        let steps = self.training.steps(rows as u64) as f64;
        let rho = self.momentum;
        let remaining = 1.0 - libm::pow(rho, steps);
        (steps - rho * remaining / (1.0 - rho)) / (1.0 - rho)
    }
}

impl AssignAndAggregate for StepNormalised {
    fn name(&self) -> &'static str {
        "fednova"
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn by_rows(&self) -> bool {
        true
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        _: u64,
    ) -> Result<State, SettleError> {
        manifest.require_rows()?;
        let rows = |entry: &ModelEntry| entry.share(true);
        let rule = crate::aggregation::Aggregation::Mean;
        let means = coalition_means(&rule, manifest, assignment, &[], 1, rows)?;
        let (start, mean) = one_model(&state.models, &means)?;
        let layout = start.layout();
        let all: f64 = manifest.entries.iter().map(rows).sum();
        let shares: Vec<_> = manifest.entries.iter().map(|one| rows(one) / all).collect();
        let steps: Vec<_> = manifest
            .entries
            .iter()
            .map(|one| self.steps(rows(one)))
            .collect();
        let effective: f64 = shares.iter().zip(&steps).map(|(p, a)| p * a).sum();
        let mut model = mean.values().to_vec();
        for at in layout.trained_ranges().flatten() {
            let from = f64::from(start.values()[at]);
            let change = |((entry, p), a): ((&ModelEntry, &f64), &f64)| {
                p * effective / a * (f64::from(entry.model.values()[at]) - from)
            };
            let changes = manifest.entries.iter().zip(&shares).zip(&steps).map(change);
            model[at] = (from + changes.sum::<f64>()) as f32;
        }
        Ok(state.with(vec![Params::from_values(layout, &model)]))
    }
}
