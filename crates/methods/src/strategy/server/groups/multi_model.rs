//! What IFCA, FLSC and FeSEM share: several models, of which every silo trains one or some.
//!
//! There is one model before the first round, and silos that start from equal models would all
//! choose the first of them. So in round 1 all silos train from the initial model, and the
//! contributions are grouped into as many groups as there are to be models, whose means are the
//! models. From round 2 on the method takes over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering::kmeans::KMeans;
use crate::learner::{LearnError, Learner, Training, Update};
use crate::params::{Params, squared_distance};
use crate::strategy::options::{Setting, require};
use crate::strategy::server::means::coalition_means;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, ModelEntry, Participant, Plan, SettleError, Sheet,
    State, Strategy, StrategyError, Watch,
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

/// Most models that can be asked for: all of them are kept, and measured by every silo.
const MOST: usize = 1000;

/// The options that these methods have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Models {
    /// Their number.
    pub(crate) count: usize,
    pub(crate) weight: WeightRule,
    pub(crate) first: First,
}

/// A rule by which silos choose among the models, from round 2 on.
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
    fn assign(&self, state: &State, sheet: &Sheet) -> Result<Vec<u32>, DecideError>;

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
    setting: Setting,
    models: Models,
    by: B,
}

impl<B: ModelChoice + 'static> MultiModel<B> {
    pub(crate) fn build(
        name: &'static str,
        setting: Setting,
        models: Models,
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

/// Every entry's hash, and the order of those.
fn hashed(sheet: &Sheet) -> (Vec<crate::Digest>, Vec<usize>) {
    let hashes: Vec<_> = sheet.entries.iter().map(|e| e.model.hash()).collect();
    let mut order: Vec<usize> = (0..hashes.len()).collect();
    order.sort_by_key(|&at| hashes[at]);
    (hashes, order)
}

/// Assigns entries to this number of models in turn, in the order of their hashes.
fn dealt(sheet: &Sheet, models: usize) -> Vec<u32> {
    let mut assignment = vec![0; sheet.entries.len()];
    for (turn, at) in hashed(sheet).1.into_iter().enumerate() {
        assignment[at] = (turn % models) as u32;
    }
    assignment
}

/// Clusters of the entries' models, as many as there are models, or entries if they are fewer.
fn clusters(sheet: &Sheet, models: usize) -> Result<Vec<u32>, DecideError> {
    let entries = &sheet.entries;
    let (hashes, order) = hashed(sheet);
    let all: Vec<u8> = order.iter().flat_map(|&at| hashes[at]).collect();
    let [a, b, c, d, e, f, g, h, ..] = *blake3::hash(&all).as_bytes();
    let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    let squares = distances(sheet, entries.iter().map(|entry| &entry.model));
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
    sheet: &Sheet,
    others: impl ExactSizeIterator<Item = &'a Params> + Clone,
) -> Matrix {
    let mut squares = Matrix::zeros(sheet.entries.len(), others.len());
    for (row, entry) in sheet.entries.iter().enumerate() {
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

    /// But in the first, which makes the models.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let (start, coalition) = match (round, state.models.first()) {
            (1, Some(initial)) => (initial.clone(), participant.coalition),
            _ => self.by.start(state, participant)?,
        };
        let update = participant.carry_out(&plan.task, &start, progress)?;
        Ok((coalition, update))
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        entry.admit_rows(self.by_rows())?;
        match round {
            1 => Ok(()),
            _ => self.by.validate(entry),
        }
    }

    fn assign(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Vec<u32>, DecideError> {
        if self.by_rows() {
            sheet.require_rows()?;
        }
        match (round, self.models.first) {
            (1, First::Random) => Ok(dealt(sheet, self.models.count)),
            (1, First::KMeans) => clusters(sheet, self.models.count),
            _ => self.by.assign(state, sheet),
        }
    }

    fn rule(&self) -> &'static str {
        "every entry belongs to the model that the method assigns it"
    }

    fn aggregate(
        &self,
        state: &State,
        sheet: &Sheet,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        let Some(initial) = state.models.first() else {
            return Err(SettleError::Infeasible("there is no model".into()));
        };
        // With fewer contributions than models, the last of these are as at the start.
        let before = match round {
            1 => vec![initial.clone(); self.models.count],
            _ => state.models.clone(),
        };
        let mut updates = Sheet {
            entries: Vec::new(),
            scores: None,
        };
        let mut updated = Vec::new();
        for (entry, &own) in sheet.entries.iter().zip(assignment) {
            let models = match round {
                1 => vec![own],
                _ => self.by.updates(entry, own),
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
