//! The snippets of the page *Add a strategy* (`docs/methods/add-a-strategy.md`), compiled: options of
//! a method, how they build it, and its declaration. A test of the book compares them with the page.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Built, MethodSetting, NoisedUse, StrategyError, StrategyInfo, StrategyView, build_with,
    sees_with,
};
use crate::learner::Training;
use crate::params::{Params, weighted_mean};
use crate::strategy::options::fraction;
use crate::strategy::{
    AssignAndAggregate, LoadedManifest, ModelEntry, SettleError, State, Strategy, WeightRule,
};

/// Options of FedAvgM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedAvgMOptions {
    /// Momentum β in [0, 1) of the server. Default 0.9.
    pub momentum: f64,
}

impl Default for FedAvgMOptions {
    fn default() -> Self {
        Self { momentum: 0.9 }
    }
}

impl FedAvgMOptions {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        fraction("momentum", self.momentum)?;
        Ok(Box::new(FedAvgM {
            training: setting.training,
            momentum: self.momentum,
        }))
    }
}

/// Name of the velocity in the state.
const VELOCITY: &str = "fedavgm.velocity";

/// `v ← βv + mean(θ_k) − θ` and `θ ← θ + v`, silos weighted by their training rows.
struct FedAvgM {
    training: Training,
    /// β in [0, 1); 0 is FedAvg.
    momentum: f64,
}

impl AssignAndAggregate for FedAvgM {
    fn name(&self) -> &'static str {
        "fedavgm"
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
        _: &[u32],
        _: u64,
    ) -> Result<State, SettleError> {
        manifest.require_rows()?;
        let rows = |entry: &ModelEntry| entry.weight.unwrap_or(0) as f64;
        let models: Vec<_> = manifest
            .entries
            .iter()
            .map(|entry| (&entry.model, rows(entry)))
            .collect();
        let mean = weighted_mean(&models)?;
        let start = &state.models[0];
        let before = state.tables.get(VELOCITY).and_then(|kept| kept.first());
        let velocity = Params::build(start.layout(), |into| {
            for (at, velocity) in into.iter_mut().enumerate() {
                let before = before.map_or(0.0, |before| f64::from(before.values()[at]));
                let change = f64::from(mean.values()[at]) - f64::from(start.values()[at]);
                *velocity = (self.momentum * before + change) as f32;
            }
        });
        let next = Params::build(start.layout(), |into| {
            for (at, next) in into.iter_mut().enumerate() {
                *next = start.values()[at] + velocity.values()[at];
            }
        });
        let mut after = state.with(vec![next]);
        after.tables.insert(VELOCITY.into(), vec![velocity]);
        Ok(after)
    }
}

methods! {
    FedAvgM(FedAvgMOptions) {
        name: "fedavgm",
        about: "one model; the server keeps a momentum of the mean change",
        paper: "Hsu et al. 2019, Measuring the Effects of Non-Identical Data Distribution",
        takes_rule: false,
        sees: |_| StrategyView::Sums(WeightRule::Exact),
        noised: NoisedUse::Steps,
        build: FedAvgMOptions::build,
    }
}

#[test]
fn the_method_of_the_page_is_read_and_built_by_its_declaration() {
    let read = |text| serde_json::from_str::<Method>(text).unwrap();
    let method = read(r#"{ "name": "fedavgm" }"#);
    assert_eq!(method, Method::FedAvgM(FedAvgMOptions { momentum: 0.9 }));
    assert_eq!((method.name(), method.takes_rule()), ("fedavgm", false));
    assert_eq!(method.sees(), StrategyView::Sums(WeightRule::Exact));
    assert_eq!(method.noised(), NoisedUse::Steps);
    assert_eq!(STRATEGIES[0].name, "fedavgm");
    let setting = || MethodSetting {
        training: crate::strategy::tests::training(),
        rule: crate::aggregation::Aggregation::Mean,
        members: 4,
    };
    assert!(method.build(setting()).is_ok());
    let wrong = read(r#"{ "name": "fedavgm", "momentum": 1.5 }"#);
    let refused = wrong.build(setting()).map(drop).unwrap_err();
    assert!(
        refused.to_string().contains("momentum must be"),
        "{refused}"
    );
}
