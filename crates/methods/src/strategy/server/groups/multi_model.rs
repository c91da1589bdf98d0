//! What IFCA, FLSC and FeSEM share: several models, of which every silo trains one or some.
//!
//! Either all models are there before the first round ([`starts`]), and silos choose among them at
//! once. Or there is one, from which all silos train in round 1; the contributions are grouped into as
//! many groups as there are to be models, and their means are the models, among which silos choose
//! from round 2 on.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering::kmeans::KMeans;
use crate::learner::{LearnError, Learner, Training, Update};
use crate::params::{Params, squared_distance};
use crate::strategy::options::{MethodSetting, require};
use crate::strategy::server::groups::starts;
use crate::strategy::server::means::coalition_means;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, LoadedManifest, ModelEntry, Participant, Plan,
    SettleError, State, Strategy, StrategyError, Watch,
};

/// The grouping of the contributions of the first round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// In equal numbers, in the order of the hashes of their models, which is as good as random.
    Random,
    /// By k-means on the trained models, initialised by k-means++.
    #[serde(rename = "k-means")]
    KMeans,
}

/// The models before the first round, or how they come about in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InitialModels {
    /// Different random models: silos choose among them in the first round.
    Random,
    /// Equal models, as in HCCT's code for IFCA: all silos choose the first, and as a rule there is
    /// one group forever.
    Equal,
    /// One model, from which all train in the first round; the contributions are dealt to the models
    /// in equal numbers, in the order of their hashes, which is as good as random.
    RandomGroups,
    /// The same, dealt by k-means on the trained models, initialised by k-means++.
    #[serde(rename = "k-means")]
    KMeans,
}

impl From<First> for InitialModels {
    fn from(first: First) -> Self {
        match first {
            First::Random => Self::RandomGroups,
            First::KMeans => Self::KMeans,
        }
    }
}

impl InitialModels {
    /// Returns whether silos choose among several models in the first round already.
    fn has_models(self) -> bool {
        matches!(self, Self::Random | Self::Equal)
    }
}

/// Most models that can be asked for: all of them are kept, and measured by every silo.
const MOST: usize = 1000;

/// The options that these methods have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MultiModelOptions {
    /// Number of models.
    pub(crate) count: usize,
    pub(crate) weight: WeightRule,
    pub(crate) start: InitialModels,
}

/// A rule by which silos choose among the models.
pub(crate) trait ModelChoice: Send + Sync {
    /// See [`Strategy::equip`].
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(inner)
    }

    /// The model that a silo starts from, and the coalition that it names.
    fn start(
        &self,
        state: &State,
        participant: Participant<'_>,
    ) -> Result<(Params, u32), LearnError>;

    /// Refuses a contribution that cannot be used, with the reason in one sentence.
    fn validate(&self, entry: &ModelEntry) -> Result<(), String> {
        let _ = entry;
        Ok(())
    }

    /// The model of every entry.
    fn assign(&self, state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError>;

    /// All models that an entry updates, ascending, `own` among them.
    fn updates(&self, entry: &ModelEntry, own: u32) -> Vec<u32> {
        let _ = entry;
        vec![own]
    }

    /// The model to start from, of a mean of contributions.
    fn cleared(&self, mean: Params) -> Params {
        mean
    }
}

/// A strategy of several models with this rule of choice.
pub(crate) struct MultiModel<B> {
    name: &'static str,
    setting: MethodSetting,
    models: MultiModelOptions,
    by: B,
}

impl<B: ModelChoice + 'static> MultiModel<B> {
    pub(crate) fn build(
        name: &'static str,
        setting: MethodSetting,
        models: MultiModelOptions,
        by: B,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        let valid = (1..=MOST).contains(&models.count);
        require(valid, "models", "from 1 to 1000", models.count)?;
        Ok(Box::new(Self {
            name,
            setting,
            models,
            by,
        }))
    }
}

impl<B> MultiModel<B> {
    /// Returns whether silos choose a model in this round.
    fn chooses(&self, round: u64) -> bool {
        round > 1 || self.models.start.has_models()
    }
}

/// Every entry's hash, and the order of those.
fn hashed(manifest: &LoadedManifest) -> (Vec<crate::Digest>, Vec<usize>) {
    let hashes: Vec<_> = manifest.entries.iter().map(|e| e.model.hash()).collect();
    let mut order: Vec<usize> = (0..hashes.len()).collect();
    order.sort_by_key(|&at| hashes[at]);
    (hashes, order)
}

/// Assigns entries to this number of models in turn, in the order of their hashes.
fn dealt(manifest: &LoadedManifest, models: usize) -> Vec<u32> {
    let mut assignment = vec![0; manifest.entries.len()];
    for (turn, at) in hashed(manifest).1.into_iter().enumerate() {
        assignment[at] = (turn % models) as u32;
    }
    assignment
}

/// Clusters of the entries' models, as many as there are models, or entries if they are fewer.
fn clusters(manifest: &LoadedManifest, models: usize) -> Result<Vec<u32>, DecideError> {
    let entries = &manifest.entries;
    let (hashes, order) = hashed(manifest);
    let all: Vec<u8> = order.iter().flat_map(|&at| hashes[at]).collect();
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&all).as_bytes();
    let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let squares = distances(manifest, entries.iter().map(|entry| &entry.model));
    // Inner products with the first entry as the origin.
    let gram = Matrix::from_fn(entries.len(), entries.len(), |i, j| {
        (squares[(i, 0)] + squares[(j, 0)] - squares[(i, j)]) / 2.0
    });
    let found = KMeans::new(models.min(entries.len()), seed).fit(&gram);
    Ok(found.map_err(DecideError::unusable)?.labels)
}

/// Squared distances of the entries' models (rows) from others (columns), buffers left out; the
/// same bits everywhere. Infinite between models of different layouts.
pub(crate) fn distances<'a>(
    manifest: &LoadedManifest,
    others: impl ExactSizeIterator<Item = &'a Params> + Clone,
) -> Matrix {
    let mut squares = Matrix::zeros(manifest.entries.len(), others.len());
    for (row, entry) in manifest.entries.iter().enumerate() {
        for (square, other) in squares.row_mut(row).iter_mut().zip(others.clone()) {
            *square = squared_distance(&entry.model, other).unwrap_or(f64::INFINITY);
        }
    }
    squares
}

impl<B: ModelChoice> AssignAndAggregate for MultiModel<B> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn training(&self) -> &Training {
        &self.setting.training
    }

    fn by_rows(&self) -> bool {
        self.models.weight == WeightRule::Exact
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.by.equip(learner)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        let initial = State::genesis(learner.initial(seed));
        let count = self.models.count;
        match self.models.start {
            InitialModels::Random => initial.with(starts::random(learner, seed, count)),
            InitialModels::Equal => initial.with(vec![initial.models[0].clone(); count]),
            InitialModels::RandomGroups | InitialModels::KMeans => initial,
        }
    }

    /// In every round but a first that makes the models.
    fn keeps_numbers(&self, round: u64) -> bool {
        self.chooses(round)
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let (start, coalition) = match (self.chooses(round), state.models.first()) {
            (false, Some(initial)) => (initial.clone(), participant.coalition),
            _ => self.by.start(state, participant)?,
        };
        let update = participant.carry_out(&plan.task, &start, progress)?;
        Ok((coalition, update))
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        entry.admit_rows(self.by_rows())?;
        if self.chooses(round) {
            self.by.validate(entry)
        } else {
            Ok(())
        }
    }

    fn assign(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        if self.by_rows() {
            manifest.require_rows()?;
        }
        match (round, self.models.start) {
            (1, InitialModels::RandomGroups) => Ok(dealt(manifest, self.models.count)),
            (1, InitialModels::KMeans) => clusters(manifest, self.models.count),
            _ => self.by.assign(state, manifest),
        }
    }

    fn rule(&self) -> &'static str {
        "every entry belongs to the model that the method assigns it"
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        let Some(initial) = state.models.first() else {
            return Err(SettleError::Infeasible("there is no model".into()));
        };
        // With fewer contributions than models, the last of these are as at the start.
        let before = if self.chooses(round) {
            state.models.clone()
        } else {
            vec![initial.clone(); self.models.count]
        };
        let mut updates = LoadedManifest {
            entries: Vec::new(),
            scores: None,
        };
        let mut updated = Vec::new();
        for (entry, &own) in manifest.entries.iter().zip(assignment) {
            let models = if self.chooses(round) {
                self.by.updates(entry, own)
            } else {
                vec![own]
            };
            let copies = models.iter().map(|_| entry.clone());
            updates.entries.extend(copies);
            updated.extend(models);
        }
        let weight = |entry: &ModelEntry| entry.share(self.by_rows());
        let (rule, count) = (&self.setting.rule, before.len());
        let models = coalition_means(rule, &updates, &updated, &before, count, weight)?;
        let models = models.into_iter().map(|model| self.by.cleared(model));
        Ok(state.with(models.collect()))
    }
}
