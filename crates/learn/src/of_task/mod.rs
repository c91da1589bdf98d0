//! The study of each kind of task.

mod layout;
mod stand_in;

use std::path::Path;
use std::sync::Arc;

use methods::Learner;
use task::external::ExternalTask;
use task::questions::{AskedAt, Unanswered, questions};
use task::survival::NUMBERS;
use task::{Source, TableTask, TaskConfig};

pub use layout::layout;
pub use stand_in::stand_in;

use crate::data::{DataError, DataSet, Table, Target, digits};
use crate::external::absent::absent;
use crate::learners::ConstantLearner;
use crate::metrics::{Metric, MetricName};
use crate::propose::noticed;
use crate::study::{RowCounts, SILOS, Study, StudySilo, digits_study, study_of};

/// Most numbers of a constant task's model.
const PARAMETERS: usize = 1 << 40;
/// Most values in the table of a stand-in, 1 GiB.
const CELLS: usize = 1 << 27;

/// Makes the learners of a task.
pub trait TaskStudy {
    /// Reads the data, from `folder` where they are known files, partitions them into `silos` silos and
    /// splits the rows of each by `seed`. By default 8 silos where the source can be partitioned
    /// into any number, and otherwise all that it has (of a smaller number the first ones).
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read or partitioned, a model that does not fit the target, a
    /// task whose models are trained by programs.
    fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError>;

    /// Stand-ins for institutions whose rows or programs are elsewhere: of tables with the agreed schema
    /// and rows that mean nothing, so that layout and initial model can be computed without anybody's
    /// data.
    ///
    /// # Errors
    /// [`DataError`]: a task without a schema, or one that contradicts itself.
    fn stand_ins(&self, names: &[String], seed: u64) -> Result<Study, DataError>;
}

impl TaskStudy for TaskConfig {
    fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError> {
        if silos == Some(0) {
            return Err(DataError::Config(
                "a federation needs at least one silo".into(),
            ));
        }
        match self {
            Self::Table(task) => task.study(silos, folder, seed),
            Self::External(task) => task.study(silos, folder, seed),
            Self::Digits8Bench => Ok(digits_study(digits(folder, silos.unwrap_or(20))?)),
            Self::Constant { parameters } => {
                check_parameters(*parameters)?;
                let learner: Arc<dyn Learner> = Arc::new(ConstantLearner::new(*parameters));
                let silo = |number: usize| StudySilo {
                    name: format!("silo {number}"),
                    learner: learner.clone(),
                    rows: RowCounts {
                        train: 1,
                        validation: 0,
                        test: 1,
                    },
                    preparation: None,
                    group: None,
                    table: None,
                };
                Ok(Study {
                    subgroups: Vec::new(),
                    notes: Vec::new(),
                    proposed: None,
                    classes: Vec::new(),
                    pooled: None,
                    silos: (1..=silos.unwrap_or(SILOS)).map(silo).collect(),
                    metric: Metric {
                        name: MetricName::Loss,
                        unit: String::new(),
                    },
                })
            }
        }
    }

    fn stand_ins(&self, names: &[String], seed: u64) -> Result<Study, DataError> {
        match self {
            Self::Table(task) => task.stand_ins(names, seed),
            Self::External(task) => task.stand_ins(names, seed),
            Self::Digits8Bench | Self::Constant { .. } => self.study(Some(names.len()), None, seed),
        }
    }
}

/// Returns whether the model of a constant task can have this many numbers.
fn check_parameters(parameters: usize) -> Result<(), DataError> {
    let wrong = match parameters {
        0 => "`parameters` must be at least 1".to_owned(),
        1..=PARAMETERS => return Ok(()),
        _ => format!("`parameters` must be at most {PARAMETERS}"),
    };
    Err(DataError::Config(wrong))
}

impl TaskStudy for TableTask {
    fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError> {
        let mut data = self.tables(silos, folder, seed)?;
        if let Some(Source::Rows(rows)) = &self.data {
            let open = Unanswered::at(AskedAt::Scenario, questions(&data, &rows.answers));
            match open {
                // With noise nothing that a row can tip may stop a silo.
                Some(open) if self.is_noised() => data.notes.extend(open.sentences),
                Some(open) => return Err(DataError::Unanswered(open)),
                None => {}
            }
            // What people bring may give the target away, or hold rows twice: said before anything is learned.
            data.notes.extend(noticed(&data));
        }
        study_of(self, data, seed)
    }

    fn stand_ins(&self, names: &[String], seed: u64) -> Result<Study, DataError> {
        self.check()?;
        let schema = self.agreed_schema()?.ok_or_else(|| {
            DataError::Config(
                "the task has no [task.table.schema], and institutions need one to read their own \
                 rows: `rota init` drafts one"
                    .into(),
            )
        })?;
        let (columns, target) = (schema.encoded(), schema.target());
        let (outputs, values) = match &target {
            Target::Number { .. } => (1, 2),
            Target::Classes(classes) => (1, classes.len()),
            Target::Numbers { count, .. } => (*count, 2),
            Target::Mask { pixels } => (*pixels, 2),
            Target::Survival { .. } => (NUMBERS, 2),
        };
        let rows = 20 * values;
        let cells = columns.len().checked_add(outputs);
        let cells = cells.and_then(|cells| cells.checked_mul(rows));
        if cells.is_none_or(|cells| cells > CELLS) {
            return Err(DataError::Config(format!(
                "the schema has {} columns, {outputs} outputs and {values} values of the target: too many to try \
                 the task without rows",
                columns.len()
            )));
        }
        let table = || {
            let mut table = Table::encoded(&columns);
            table.target_range = schema.target.range;
            for row in 0..rows {
                let value = (row % values) as f64;
                let targets = match &target {
                    // An event or none, one after the other.
                    Target::Survival { .. } => vec![value, 1.0 + row as f64, 0.0],
                    _ => vec![value; outputs],
                };
                table.push_all(&vec![value; columns.len()], &targets);
            }
            table
        };
        let silos = names.iter().map(|name| (name.clone(), table()));
        let data = DataSet {
            silos: silos.collect(),
            target,
            schema: Some(schema),
            notes: Vec::new(),
            subgroups: Vec::new(),
        };
        study_of(self, data, seed)
    }
}

impl TaskStudy for ExternalTask {
    fn study(&self, _: Option<usize>, _: Option<&Path>, _: u64) -> Result<Study, DataError> {
        Err(DataError::Config(
            "the models of this task are trained by programs of the members: name one by `learner`, \
             such as `learner = [\"python3\", \"learner.py\"]`"
                .into(),
        ))
    }

    fn stand_ins(&self, names: &[String], _: u64) -> Result<Study, DataError> {
        absent(self, names)
    }
}

#[cfg(test)]
mod tests;
