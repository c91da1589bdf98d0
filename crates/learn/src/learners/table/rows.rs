//! The order in which a silo trains on its rows, and learners with a part of the rows.

use std::sync::Arc;

use methods::learner::{JointStep, RowAccess, RowsOfModel};
use methods::{LearnError, Learner, Params, Split, Training};

use super::TableLearner;
use crate::data::Rows;
use crate::learners::fits;
use crate::learners::training::{EpochOrder, batches};
use crate::models::NamedValues;

/// Start weights and the order of rows by round, given instead of drawn.
pub(crate) struct TrainingScript {
    pub(crate) start: NamedValues,
    /// For round 1, 2, …
    pub(crate) orders: Vec<Vec<u32>>,
}

/// The order in which a learner trains on its rows.
#[derive(Clone)]
pub(super) enum RowOrder {
    /// Random, from the seed.
    Drawn,
    /// Given, together with the start weights.
    Script(Arc<TrainingScript>),
    /// Given, for a model with other start weights.
    ScriptOrders(Arc<TrainingScript>),
    /// The order of the table.
    Standing,
}

impl TableLearner {
    /// The order of rows that goes with a seed.
    pub(super) fn order_of(&self, seed: u64) -> Result<EpochOrder<'_>, LearnError> {
        let script = match &self.order {
            RowOrder::Drawn => return Ok(EpochOrder::Seeded(seed)),
            RowOrder::Standing => return Ok(EpochOrder::Standing),
            RowOrder::Script(script) | RowOrder::ScriptOrders(script) => script,
        };
        let given = seed
            .checked_sub(1)
            .and_then(|at| script.orders.get(at as usize));
        let given = given.ok_or_else(|| {
            let rounds = script.orders.len();
            LearnError::Failed(format!(
                "the order of rows is given for rounds 1 to {rounds}, not for {seed}"
            ))
        })?;
        Ok(EpochOrder::Given(given))
    }

    /// This silo with other rows in one part.
    fn with(&self, split: Split, rows: Rows) -> Self {
        let mut other = self.clone();
        let part = match split {
            Split::Train => &mut other.train,
            Split::Validation => &mut other.validation,
            Split::Test => &mut other.test,
        };
        *part = Arc::new(rows);
        other
    }

    /// This silo with some rows of one part alone.
    pub(super) fn picked(&self, split: Split, rows: &[u32]) -> Option<Self> {
        let part = self.part(split).ok()?;
        if rows.iter().any(|&row| row as usize >= part.len()) {
            return None;
        }
        let mut other = self.with(split, part.pick(rows));
        if split == Split::Train {
            other.order = RowOrder::Standing;
        }
        Some(other)
    }

    /// This silo with a fold of its training rows as its validation rows.
    pub(super) fn without_fold(&self, fold: usize, folds: usize, seed: u64) -> Option<Self> {
        let (rest, out) = self.train.without_fold(fold, folds, seed)?;
        let mut other = self.with(Split::Train, rest).with(Split::Validation, out);
        // A given order is for all rows.
        other.order = RowOrder::Drawn;
        Some(other)
    }
}

impl RowAccess for TableLearner {
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(self.without_fold(fold, folds, seed)?))
    }

    fn batches(&self, training: &Training, seed: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        batches(&self.train, training, self.order_of(seed)?)
    }

    fn only(&self, split: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        Some(Arc::new(self.picked(split, rows)?))
    }

    fn joint_step(
        &self,
        parts: &[RowsOfModel<'_>],
        personal: &Params,
        rate: f64,
        seed: u64,
    ) -> Option<Result<JointStep, LearnError>> {
        let first = parts.first()?;
        for part in parts {
            if let Err(error) = fits(&self.layout, part.model) {
                return Some(Err(error));
            }
        }
        let rows = self.scaled(first.model, &self.train);
        let stepped = self.model.joint_step(parts, &rows, self.loss, rate, seed);
        stepped.map(|(models, loss)| {
            let models = parts.iter().zip(models);
            let models = models.map(|(part, named)| {
                self.params(|into| into.copy_from_slice(part.model.values()), named)
            });
            Ok(JointStep {
                models: models.collect(),
                loss,
                personal: personal.clone(),
            })
        })
    }
}
