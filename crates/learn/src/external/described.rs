//! Description of a program by itself before there is an agreement.

use std::collections::BTreeMap;

use methods::learner::Split;

use super::config::LearnerConfig;
use super::frozen::Frozen;
use super::programs::Programs;
use super::session::{GRADIENTS, INITIAL, ProgramSilo, Session};
use super::wire::PartsOf;
use crate::data::DataError;
use task::external::{ExternalTask, TensorConfig};

/// Description of a program by itself.
#[derive(Debug, Clone)]
pub struct Described {
    /// Tensors of its model.
    pub tensors: Vec<TensorConfig>,
    /// Numbers in its personal state.
    pub personal: usize,
    /// Training, validation and test rows.
    pub rows: [usize; 3],
    /// True if strategies can modify its gradients.
    pub gradients: bool,
    /// True if the program gives outputs row by row.
    pub outputs: bool,
    /// Digest of the tensors that it has besides and does not train.
    pub frozen: Option<String>,
    /// A short digest of each of these, where the program gives them.
    pub held: BTreeMap<String, String>,
    /// Names of the columns of its rows; empty where they have none.
    pub columns: Vec<String>,
    /// Labels of the classes that its model tells apart; empty where they have none.
    pub classes: Vec<String>,
    /// True if the program gives the model that it holds, for all to start from.
    pub gives_start: bool,
    /// Names of the metrics that it measures and that can be agreed; empty where it could not measure the model before the first
    /// round.
    pub metrics: Vec<String>,
}

impl Described {
    /// Starts a program as if it were the only silo of a federation, asks it to describe itself, and ends
    /// it.
    ///
    /// # Errors
    /// [`DataError::Config`]: it cannot be started, or what it says makes no model.
    pub fn ask(config: &LearnerConfig, name: &str) -> Result<Self, DataError> {
        let silo = ProgramSilo {
            place: 0,
            name: name.to_owned(),
            of: 1,
            seed: 0,
            agreed: Vec::new(),
            frozen: Frozen::Open,
            rows: None,
            columns: Vec::new(),
            classes: Vec::new(),
        };
        let session = Session::open(Programs::new(config, 1)?, silo, 0)?;
        let metrics = session.metrics();
        let Session { opened, .. } = session;
        let PartsOf {
            train,
            validation,
            test,
        } = opened.rows;
        Ok(Self {
            personal: opened
                .personal
                .iter()
                .map(|tensor| tensor.shape.iter().product::<usize>())
                .sum(),
            rows: [train, validation, test],
            gradients: opened.can(GRADIENTS),
            gives_start: opened.can(INITIAL),
            outputs: opened.outputs.is_some(),
            columns: opened.columns,
            classes: opened.classes,
            frozen: opened.frozen,
            held: opened.held,
            metrics: metrics.unwrap_or_default(),
            tensors: opened.layout,
        })
    }
}

impl Session {
    /// The names of the metrics that the program gives for a model before the first round.
    fn metrics(&self) -> Option<Vec<String>> {
        let tensors = self.opened.layout.clone();
        let model = if self.gives_start() {
            self.initial(self.first.0).ok()?
        } else {
            ExternalTask::of_tensors(tensors).initial(&self.layout, self.first.0)
        };
        let rows = self.rows();
        let split = match (rows.test, rows.validation) {
            (0, 0) => return None,
            (0, _) => Split::Validation,
            _ => Split::Test,
        };
        let found = self.evaluate(None, &model, &self.first.1, split).ok()?;
        Some(found.values.into_keys().collect())
    }
}
