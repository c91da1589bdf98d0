//! FLSC (Li et al. 2021): every silo trains the mean of the models that do best on its own data,
//! and updates all of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::clustering::ifca::{flsc, flsc_start};
use crate::learner::{Capability, Job, LearnError, Learner, Update, Watch};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::strategy::options::MethodSetting;
use crate::strategy::options::require;
use crate::strategy::server::groups::ifca::{losses, unusable};
use crate::strategy::server::groups::multi_model::{
    InitialModels, ModelChoice, MultiModel, MultiModelOptions,
};
use crate::strategy::server::means::kept;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::{
    DecideError, EquipError, LoadedManifest, ModelEntry, Participant, State, Strategy,
    StrategyError,
};

/// Name under which the chosen models travel: 1 for each of them, 0 for the others.
const CHOSEN: &str = "flsc";

/// Options of FLSC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Flsc {
    /// Number of models. Default 3, a guess.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "models"))]
    pub models: usize,
    /// Number of models that a silo chooses and whose mean it trains, at most `models`. With 1 it is
    /// IFCA; with all of them the models become one in the end. Default 2.
    #[schemars(range(min = 1, max = 1000), extend("x-unit" = "models"))]
    pub select: usize,
    /// Weight of a silo's model in the mean of each model that it chose. Default equal, as in IFCA.
    pub weight: WeightRule,
    /// The models that silos choose among in the first round. Default different random ones.
    pub start: InitialModels,
}

impl Default for Flsc {
    fn default() -> Self {
        Self {
            models: 3,
            select: 2,
            weight: WeightRule::Equal,
            start: InitialModels::Random,
        }
    }
}

impl Flsc {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let valid = (1..=self.models.max(1)).contains(&self.select);
        require(
            valid,
            "select",
            "from 1 to the number of models",
            self.select,
        )?;
        let models = MultiModelOptions {
            count: self.models,
            weight: self.weight,
            start: self.start,
        };
        let by = BestModels {
            models: self.models,
            select: self.select,
        };
        MultiModel::build("flsc", setting, models, by)
    }
}

struct BestModels {
    models: usize,
    select: usize,
}

/// The models that a contribution names, ascending.
fn chosen(model: &Params) -> Vec<u32> {
    let flags = model.tensor(&format!("{CHOSEN}.chosen")).unwrap_or(&[]);
    let named = (0..).zip(flags).filter(|(_, flag)| **flag == 1.0);
    named.map(|(model, _)| model).collect()
}

/// This model, naming these.
fn naming(model: &Params, chosen: &[u32]) -> Params {
    let attached = Attached::find(model.layout(), &[CHOSEN]);
    let (base, _) = attached.split(model);
    let flags = Params::build(attached.part(0), |flags| {
        for &chosen in chosen {
            flags[chosen as usize] = 1.0;
        }
    });
    attached.join(&base, &[&flags])
}

impl ModelChoice for BestModels {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let flags = TensorSpec::new("chosen", [self.models], Role::Buffer);
        let flags = Layout::new(vec![flags])?;
        let models = Attached::new(&inner.layout(), &[(CHOSEN, &flags)])?;
        Ok(WrappedLearner::equip(inner, Naming { models })?)
    }

    fn start(
        &self,
        state: &State,
        participant: Participant<'_>,
    ) -> Result<(Params, u32), LearnError> {
        let losses = losses(state, participant)?;
        let best = flsc(&losses, self.select).map_err(unusable)?.swap_remove(0);
        let start = flsc_start(&best, &state.models).map_err(unusable)?;
        Ok((naming(&start, &best), best[0]))
    }

    fn validate(&self, entry: &ModelEntry) -> Result<(), String> {
        let chosen = chosen(&entry.model);
        let own = entry.coalition.is_some_and(|own| chosen.contains(&own));
        if chosen.len() != self.select || !own {
            return Err(format!(
                "the contribution has to name {} models, and its coalition among them",
                self.select
            ));
        }
        Ok(())
    }

    fn assign(&self, state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError> {
        let bad = manifest.entries.iter().enumerate();
        let mut bad = bad.filter_map(|(entry, model)| Some((entry, self.validate(model).err()?)));
        match bad.next() {
            Some((entry, reason)) => Err(DecideError::Unusable { entry, reason }),
            None => kept(state, manifest),
        }
    }

    fn updates(&self, entry: &ModelEntry, _: u32) -> Vec<u32> {
        chosen(&entry.model)
    }

    fn cleared(&self, mean: Params) -> Params {
        naming(&mean, &[])
    }
}

/// A learner of models that name others, which it does not look at.
struct Naming {
    models: Attached,
}

impl LearnerWrapper for Naming {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn layout(&self, _: &dyn Learner) -> Arc<Layout> {
        self.models.whole().clone()
    }

    fn initial(&self, inner: &dyn Learner, seed: u64) -> Params {
        let none = Params::zeros(self.models.part(0));
        self.models.join(&inner.initial(seed), &[&none])
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (self.models.split(model).0, personal.clone())
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (start, named) = self.models.split(job.start);
        let inside = Job {
            start: &start,
            ..job
        };
        let update = inside.run(inner, progress)?;
        Ok(Update {
            shared: self.models.join(&update.shared, &[&named[0]]),
            ..update
        })
    }
}
