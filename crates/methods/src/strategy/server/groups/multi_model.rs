//! Several models, and every silo with one or some of them: what IFCA, FLSC and FeSEM share.
//!
//! There is one model before the first round, and silos that start from equal models would all
//! choose the first of them. So in round 1 everybody trains from the initial model, and the
//! contributions are divided into as many groups as there are to be models; their means are the
//! models. From round 2 on the method takes over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering::kmeans::KMeans;
use crate::learner::{LearnError, Learner, Task};
use crate::params::{Params, squared_distance};
use crate::strategy::catalogue::require;
use crate::strategy::server::means::{
    Basis, admit_rows, coalition_means, given, must_be, require_rows, weight,
};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    DecideError, Decision, Entry, EquipError, Objection, Outcome, Place, Plan, SettleError, Sheet,
    Start, State, Strategy, StrategyError,
};

/// How the contributions of the first round are divided among the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// Dealt out evenly, in the order of their hashes: as good as at random.
    Random,
    /// By k-means on what was trained, seeded as k-means++.
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

/// Who belongs to which model, from round 2 on.
pub(crate) trait Belonging: Send + Sync {
    /// See [`Strategy::equip`].
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        Ok(inner)
    }

    /// The model that a silo starts from, and the coalition that it names.
    fn start(&self, state: &State, place: Place<'_>) -> Result<(Params, u32), LearnError>;

    /// In one sentence, what is wrong with a contribution.
    fn sane(&self, entry: &Entry) -> Result<(), String> {
        let _ = entry;
        Ok(())
    }

    /// The model of every entry.
    fn assign(&self, state: &State, sheet: &Sheet) -> Result<Vec<u32>, DecideError>;

    /// All models that an entry updates, ascending, `own` among them.
    fn updates(&self, entry: &Entry, own: u32) -> Vec<u32> {
        let _ = entry;
        vec![own]
    }

    /// What a mean of contributions is as a model to start from.
    fn cleared(&self, mean: Params) -> Params {
        mean
    }
}

/// A strategy of several models.
pub(crate) struct Several<B> {
    name: &'static str,
    basis: Basis,
    models: Models,
    by: B,
}

impl<B: Belonging + 'static> Several<B> {
    pub(crate) fn build(
        name: &'static str,
        basis: Basis,
        models: Models,
        by: B,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        let valid = (1..=MOST).contains(&models.count);
        require(valid, "models", "from 1 to 1000", models.count)?;
        Ok(Box::new(Self {
            name,
            basis,
            models,
            by,
        }))
    }
}

impl<B: Belonging> Several<B> {
    fn by_rows(&self) -> bool {
        self.models.weight == WeightRule::Exact
    }

    fn assign(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Vec<u32>, DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        if self.by_rows() {
            require_rows(sheet)?;
        }
        match (round, self.models.first) {
            (1, First::Random) => Ok(dealt(sheet, self.models.count)),
            (1, First::KMeans) => clusters(sheet, self.models.count),
            _ => self.by.assign(state, sheet),
        }
    }
}

/// Every entry's hash, and the order of those.
fn hashed(sheet: &Sheet) -> (Vec<crate::Digest>, Vec<usize>) {
    let hashes: Vec<_> = sheet.entries.iter().map(|e| e.model.hash()).collect();
    let mut order: Vec<usize> = (0..hashes.len()).collect();
    order.sort_by_key(|&at| hashes[at]);
    (hashes, order)
}

/// Entries dealt out to so many models, one after the other in the order of their hashes.
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
    let found = found.map_err(|error| DecideError::Unusable {
        entry: 0,
        reason: error.to_string(),
    })?;
    Ok(found.labels)
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

impl<B: Belonging> Strategy for Several<B> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.by.equip(learner)
    }

    /// But in the first, which makes the models.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.basis.training.clone()),
            cross_evaluate: false,
            weights: self.by_rows(),
        }
    }

    fn start(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        place: Place<'_>,
    ) -> Result<Start, LearnError> {
        let (model, coalition) = match (round, state.models.first()) {
            (1, Some(initial)) => (initial.clone(), place.coalition),
            _ => self.by.start(state, place)?,
        };
        let task = plan.task.clone();
        Ok(Start {
            model,
            coalition,
            task,
        })
    }

    fn admit(&self, entry: &Entry, round: u64) -> Result<(), String> {
        admit_rows(entry, self.by_rows())?;
        match round {
            1 => Ok(()),
            _ => self.by.sane(entry),
        }
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        Ok(given(self.assign(state, sheet, round)?))
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        let expected = self.assign(state, sheet, round)?;
        must_be(
            decision,
            &expected,
            "every entry has the model it belongs to",
        )
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        crate::strategy::server::means::fits(sheet, &decision.assignment)?;
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
        let mut assignment = Vec::new();
        for (entry, &own) in sheet.entries.iter().zip(&decision.assignment) {
            let models = match round {
                1 => vec![own],
                _ => self.by.updates(entry, own),
            };
            let copies = models.iter().map(|_| entry.clone());
            updates.entries.extend(copies);
            assignment.extend(models);
        }
        let weight = |entry: &Entry| weight(entry, self.by_rows());
        let (rule, count) = (&self.basis.rule, before.len());
        let models = coalition_means(rule, &updates, &assignment, &before, count, weight)?;
        let models = models.into_iter().map(|model| self.by.cleared(model));
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(models.collect()),
        })
    }
}
