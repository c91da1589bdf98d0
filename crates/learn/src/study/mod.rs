//! The silos and learners made from a task.

mod digits8;
mod family;
mod far;
mod findings;
mod lifetimes;
mod table;

use std::sync::Arc;

use methods::Learner;
use methods::learner::Split;

use crate::data::Preparation;
use crate::device::Device;
use crate::external::Proposed;
use crate::learners::TableLearner;
use crate::metrics::Metric;

pub(crate) use digits8::digits_study;
pub(crate) use family::family;
pub use far::{FarColumn, far_columns};
pub use table::study_of;

/// Default number of silos for sources whose rows can be partitioned into any number.
pub(crate) const SILOS: usize = task::SILOS;

/// A silo and its learner.
#[derive(Clone)]
pub struct StudySilo {
    /// Name of the silo.
    pub name: String,
    /// Data and model of the silo.
    pub learner: Arc<dyn Learner>,
    /// Number of its rows.
    pub rows: RowCounts,
    /// Preparation of its rows for its models; `None` where rows are no table.
    pub preparation: Option<Arc<Preparation>>,
    /// The group that it is known to belong to, such as its region.
    pub group: Option<String>,
    /// That learner, where it is one of a table.
    pub table: Option<Arc<TableLearner>>,
}

/// A silo's rows, by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Training rows.
    pub train: usize,
    /// Validation rows.
    pub validation: usize,
    /// Test rows.
    pub test: usize,
}

impl RowCounts {
    /// Rows in the part that `split` names.
    pub fn of(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train,
            Split::Validation => self.validation,
            Split::Test => self.test,
        }
    }
}

/// All silos of a task, and its primary metric.
#[derive(Clone)]
pub struct Study {
    /// The silos, in the source's order; all learners have one layout.
    pub silos: Vec<StudySilo>,
    /// The primary metric.
    pub metric: Metric,
    /// Makes a learner with the training rows of several silos, by their positions, for a centralised
    /// reference model. `None` if rows cannot be pooled.
    pub pooled: Option<PoolRows>,
    /// Remarks on the data for the user: one sentence each, without a full stop.
    pub notes: Vec<String>,
    /// Start and terms of the federation where programs train its models; `None` in other
    /// tasks.
    pub proposed: Option<Arc<Proposed>>,
    /// Names of the classes, in the order of their indices; empty where the target is none.
    pub classes: Vec<String>,
    /// Names of the subgroups of rows, to which
    /// [`RowResults::subgroups`](methods::learner::RowResults::subgroups) points; empty where there are
    /// none.
    pub subgroups: Vec<String>,
}

impl StudySilo {
    /// Returns whether Rota trains its model, from its table of rows. Programs and benchmarks without rows
    /// train elsewhere.
    fn trains_here(&self) -> Option<&Arc<TableLearner>> {
        let own = |table: &&Arc<TableLearner>| {
            std::ptr::addr_eq(Arc::as_ptr(table), Arc::as_ptr(&self.learner))
        };
        self.table.as_ref().filter(own)
    }

    /// Returns whether every model has the same metrics at both silos, because they hold the same test rows: in
    /// some benchmarks all silos do. Both are silos of one study.
    pub fn tests_like(&self, other: &Self) -> bool {
        match (self.trains_here(), other.trains_here()) {
            (Some(one), Some(other)) => one.tests_like(other),
            _ => false,
        }
    }

    /// This silo with its model computed on `device`, where Rota computes it.
    fn on(mut self, device: &Device) -> Self {
        if let Some(table) = self.trains_here() {
            let table = Arc::new(table.on(device));
            self.learner = table.clone();
            self.table = Some(table);
        }
        self
    }
}

impl Study {
    /// This study with all models computed on `device` that Rota computes: not those of programs.
    #[must_use]
    pub fn on(mut self, device: &Device) -> Self {
        self.silos = self.silos.into_iter().map(|silo| silo.on(device)).collect();
        let tables = self.silos.iter().map(|silo| silo.table.clone());
        if let (Some(_), Some(tables)) = (&self.pooled, tables.collect::<Option<Vec<_>>>()) {
            let tables = tables.iter().map(|table| Arc::new(table.on(device)));
            self.pooled = pool(tables.collect());
        }
        self
    }
}

/// Puts the training rows of silos together.
pub type PoolRows = Arc<dyn Fn(&[usize]) -> Arc<dyn Learner> + Send + Sync>;

/// The pool of these silos' learners.
fn pool(learners: Vec<Arc<TableLearner>>) -> Option<PoolRows> {
    Some(Arc::new(move |places: &[usize]| {
        let chosen: Vec<_> = places.iter().map(|&at| &*learners[at]).collect();
        Arc::new(TableLearner::pooled(&chosen))
    }))
}
