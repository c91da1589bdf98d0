//! The learning task: its configuration, and the silos and learners made from it.

mod digits8;
mod family;
mod far;
mod findings;
mod own_rows;
mod source;

use std::path::Path;
use std::sync::Arc;

use methods::Learner;
use methods::learner::Split;
use methods::robust::TransportCost;
use serde::{Deserialize, Serialize};

use crate::data::{
    DataError, DataSet, Preparation, Prepared, Rows, SplitConfig, Standardise, Target, digits,
};
use crate::device::Device;
use crate::external::{ExternalTask, Proposed};
use crate::learners::{ConstantLearner, TableLearner};
use crate::metrics::{Metric, MetricName};
use crate::propose::noticed;
use crate::schema::Schema;
use digits8::digits_study;

pub use family::ModelConfig;
pub use far::{FarColumn, far_columns};
pub use source::Source;

/// Default number of silos for sources whose rows can be partitioned into any number.
pub(crate) const SILOS: usize = 8;

/// A learning task. In TOML: `[task.table]`, `[task.external]`, `task = "digits8-bench"`, or
/// `[task.constant]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TaskConfig {
    /// A model on tables of rows.
    Table(Box<TableTask>),
    /// A benchmark with given initial weights and order of rows: a 64-128-10 perceptron on the optical
    /// digits of UCI, in 20 (the default) or 100 silos, from the folder `digits8_bench` of the data.
    Digits8Bench,
    /// A model of the members' own programs, on rows that these read themselves.
    External(Box<ExternalTask>),
    /// Null training, to measure the cost of everything but learning.
    Constant {
        /// Number of values in the model.
        #[schemars(range(min = 1), extend("x-unit" = "values"))]
        parameters: usize,
    },
}

/// A model on tables of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableTask {
    /// Source of the rows of a simulation: `"diabetes"`, `"heart"`, or a table `tpt48`, `eicu-los`,
    /// `eicu-mortality`, `synthetic`, `images` or `rows`. Without it every institution has rows of its own, which
    /// `schema` describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Source>,
    /// What the columns of all rows mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Model family: `"logistic"`, or a table `linear`, `mlp` or `network`.
    pub model: ModelConfig,
    /// Which rows are held out, to choose with and to test on.
    #[serde(default)]
    pub split: SplitConfig,
    /// How features, and a target that is a number, are scaled to mean 0 and deviation 1. Default:
    /// `"federation"` where numbers are predicted, `"silo"` for classes and masks, `"none"` for built-in
    /// data that are on a common scale already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// The cost of moving a row in robust losses.
    #[serde(default)]
    pub robust: TransportCost,
    /// The metric that reports compare; by default `"mae"` for numbers, `"accuracy"` for classes.
    #[serde(default)]
    pub metric: Option<MetricName>,
    /// Domain of the rows of every silo, from 0, in the order of the source; for institutions with their
    /// own rows, in the order of the roster. By default what the source knows, which may be another
    /// domain for every row. Needed by strategies with given domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
}

/// A silo and its learner.
#[derive(Clone)]
pub struct Silo {
    /// Its name.
    pub name: String,
    /// Its data and model.
    pub learner: Arc<dyn Learner>,
    /// Number of its rows.
    pub rows: RowCounts,
    /// How its rows became what its models take; `None` where rows are no table.
    pub preparation: Option<Arc<Preparation>>,
    /// The group that it is known to belong to, such as its region.
    pub group: Option<String>,
    /// The same learner, where it is one of a table.
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
    pub silos: Vec<Silo>,
    /// The primary metric.
    pub metric: Metric,
    /// Makes a learner with the training rows of several silos, by their positions, for a centralised
    /// reference model. `None` if rows cannot be pooled.
    pub pooled: Option<Pool>,
    /// What was noticed about the data, for the user: one sentence each, without a full stop.
    pub notes: Vec<String>,
    /// What the federation starts from and agrees on where programs train its models; `None` in other
    /// tasks.
    pub proposed: Option<Arc<Proposed>>,
    /// Names of the classes, in the order of their indices; empty where the target is none.
    pub classes: Vec<String>,
    /// Names of the subgroups of rows, to which
    /// [`RowResults::subgroups`](methods::learner::RowResults::subgroups) points; empty where there are
    /// none.
    pub subgroups: Vec<String>,
}

impl Silo {
    /// Whether Rota trains its model, from its table of rows. Programs and benchmarks without rows
    /// train elsewhere.
    fn trains_here(&self) -> Option<&Arc<TableLearner>> {
        let own = |table: &&Arc<TableLearner>| {
            std::ptr::addr_eq(Arc::as_ptr(table), Arc::as_ptr(&self.learner))
        };
        self.table.as_ref().filter(own)
    }

    /// Whether every model has the same metrics at both silos, because they hold the same test rows: in
    /// some benchmarks all silos do. Both are silos of one study.
    pub fn tests_like(&self, other: &Self) -> bool {
        match (self.trains_here(), other.trains_here()) {
            (Some(one), Some(other)) => one.tests_like(other),
            _ => false,
        }
    }

    /// The same silo with its model computed on `device`, where Rota computes it.
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
    /// The same silos with all models computed on `device` that Rota computes: not those of
    /// programs.
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
pub type Pool = Arc<dyn Fn(&[usize]) -> Arc<dyn Learner> + Send + Sync>;

/// The pool of these silos' learners.
fn pool(learners: Vec<Arc<TableLearner>>) -> Option<Pool> {
    Some(Arc::new(move |places: &[usize]| {
        let chosen: Vec<_> = places.iter().map(|&at| &*learners[at]).collect();
        Arc::new(TableLearner::pooled(&chosen))
    }))
}

impl TaskConfig {
    /// Whether the silos agree on a common scale in a first round before they train.
    pub fn common_scale(&self) -> bool {
        matches!(self, Self::Table(task) if task.scaling() == Standardise::Federation)
    }

    /// Makes the paths of files of rows relative to `folder`: that of the TOML file that names them.
    pub fn resolve(&mut self, folder: &Path) {
        if let Self::Table(task) = self
            && let Some(source) = &mut task.data
        {
            source.resolve(folder);
        }
    }

    /// Reads the data, from `folder` where they are known files, partitions them into `silos` silos and
    /// splits the rows of each by `seed`. By default 8 silos where the source can be partitioned
    /// into any number, and otherwise all that it has (of a smaller number the first ones).
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read or partitioned, a model that does not fit the target.
    pub fn study(
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
            Self::External(_) => Err(DataError::Config(
                "the models of this task are trained by programs of the members: name one by `learner`, \
                 such as `learner = [\"python3\", \"learner.py\"]`"
                    .into(),
            )),
            Self::Digits8Bench => Ok(digits_study(digits(folder, silos.unwrap_or(20))?)),
            Self::Constant { parameters: 0 } => {
                Err(DataError::Config("`parameters` must be at least 1".into()))
            }
            Self::Constant { parameters } => {
                let learner: Arc<dyn Learner> = Arc::new(ConstantLearner::new(*parameters));
                let silo = |number: usize| Silo {
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
}

impl TableTask {
    /// How numbers are scaled: as the task says, or by default by a common scale where numbers are
    /// predicted and by every silo otherwise. A silo that scales the target by its own mean makes
    /// models look better than they are at predicting the number itself.
    pub fn scaling(&self) -> Standardise {
        let scaled = self.data.as_ref().is_some_and(Source::is_scaled);
        self.standardise
            .unwrap_or(match (scaled, self.predicts_numbers()) {
                (true, _) => Standardise::None,
                (false, true) => Standardise::Federation,
                (false, false) => Standardise::Silo,
            })
    }

    fn predicts_numbers(&self) -> bool {
        let of_schema = |schema: &Schema| {
            matches!(
                schema.target(),
                Target::Number { .. } | Target::Numbers { .. }
            )
        };
        match (&self.schema, &self.data) {
            (Some(schema), _) => of_schema(schema),
            (None, Some(source)) => source.predicts_numbers(),
            (None, None) => false,
        }
    }

    /// The rows of all silos as they were read, before they are split and standardised. What a source
    /// draws at random follows from `seed`.
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read, or not be partitioned into that many silos; no
    /// `data` in the task; a task that contradicts itself.
    pub fn tables(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<DataSet, DataError> {
        self.check()?;
        let source = self.data.as_ref().ok_or_else(|| {
            DataError::Config(
                "the task names no data: every institution has rows of its own. To simulate, write \
                 `data`, such as [task.table.data.rows] with `files`"
                    .into(),
            )
        })?;
        let schema = self.schema.as_ref();
        let seed = self.split.seed.unwrap_or(seed);
        source.read(schema, silos, folder, &self.split, seed)
    }

    /// The domain of the rows of the silo at position `place` of `silos`, if domains are given.
    ///
    /// # Errors
    /// [`DataError::Config`]: another number of domains than of silos.
    pub fn domain(&self, place: usize, silos: usize) -> Result<Option<u32>, DataError> {
        match &self.domains {
            Some(domains) if domains.len() != silos => Err(DataError::Config(format!(
                "`domains` has {} entries for {silos} silos: give one for every silo, in their order",
                domains.len()
            ))),
            domains => Ok(domains.as_ref().and_then(|all| all.get(place)).copied()),
        }
    }

    fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError> {
        let mut data = self.tables(silos, folder, seed)?;
        if let Some(Source::Rows(_)) = self.data {
            // What people bring may give the target away, or hold rows twice: said before anything is learned.
            data.notes.extend(noticed(&data));
        }
        self.study_of(data, seed)
    }

    /// Whether its numbers are in range and its schema is no contradiction.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub fn check(&self) -> Result<(), DataError> {
        self.split.check()?;
        self.robust
            .validate()
            .map_err(|error| DataError::Config(format!("`robust.label-cost`: {error}")))?;
        self.schema.as_ref().map_or(Ok(()), Schema::check)
    }

    /// The learners of silos with these rows, which are split by `seed`; the notes are those of `data` and
    /// what is noticed about single columns.
    ///
    /// # Errors
    /// [`DataError`]: rows of another kind than the task's, a model that does not fit the target.
    pub fn study_of(&self, data: DataSet, seed: u64) -> Result<Study, DataError> {
        let DataSet {
            target,
            silos: tables,
            mut notes,
            subgroups,
            ..
        } = data;
        let metric = self.metric(&target)?;
        let scaling = self.scaling();
        let silos = tables.len();
        let (mut built, mut learners) = (Vec::with_capacity(silos), Vec::new());
        findings::classes(&target, &tables, &mut notes)?;
        let (mut constant, mut absent) = <(findings::Columns, findings::Columns)>::default();
        let mut far = findings::Far::default();
        for (place, (name, table)) in tables.into_iter().enumerate() {
            let domain = self.domain(place, silos)?.or_else(|| table.domain());
            let target = target.clone();
            let data = Prepared::new(&name, &table, target, &self.split, scaling, seed)?;
            constant.add(&data.constant);
            absent.add(&data.absent);
            // Test rows alone may be of another season or population on purpose.
            if data.train.len() > 0 {
                far.add(&name, &table.columns, &data.columns);
            }
            let rows = counts(&data);
            let (model, loss) = self.model.family(data.features, &data.target)?;
            let preparation = Some(Arc::new(data.preparation.clone()));
            let learner = TableLearner::new(data, model, loss, scaling, self.robust);
            let learner = Arc::new(learner.within(domain));
            learners.push(learner.clone());
            built.push(Silo {
                name,
                learner: learner.clone(),
                rows,
                preparation,
                group: table.group,
                table: Some(learner),
            });
        }
        // Pixels at the edge are alike in all rows, and domains differ by nature.
        if !matches!(self.data, Some(Source::Images(_))) {
            notes.extend(constant.note("a single value", silos));
            notes.extend(absent.note("no value, which counts as average,", silos));
            notes.extend(far.note());
        }
        let numbers = matches!(target, Target::Number { .. } | Target::Numbers { .. });
        if numbers && scaling == Standardise::Silo {
            notes.push(
                "every silo scales the target by its own mean and deviation (`standardise = \
                 \"silo\"`): errors are in the target's units, but of models that are told each \
                 silo's mean"
                    .into(),
            );
        }
        let classes = match target {
            Target::Classes(names) => names,
            _ => Vec::new(),
        };
        Ok(Study {
            silos: built,
            metric,
            pooled: pool(learners),
            notes,
            proposed: None,
            classes,
            subgroups,
        })
    }

    /// The primary metric, if the target has it.
    fn metric(&self, target: &Target) -> Result<Metric, DataError> {
        use MetricName::{
            Accuracy, BalancedAccuracy, Brier, CalibrationError, Dice, LogLoss, Loss, Mae, Mse,
            RocAuc,
        };
        let classes = [
            Loss,
            Accuracy,
            BalancedAccuracy,
            LogLoss,
            Brier,
            CalibrationError,
            RocAuc,
        ];
        let (fitting, default) = match target {
            Target::Number { .. } | Target::Numbers { .. } => (&[Loss, Mae, Mse][..], Mae),
            Target::Mask { .. } => (&[Loss, Dice][..], Dice),
            Target::Classes(names) if names.len() == 2 => (&classes[..], Accuracy),
            // An area is for two classes.
            Target::Classes(_) => (&classes[..6], Accuracy),
        };
        let name = self.metric.unwrap_or(default);
        if !fitting.contains(&name) {
            let names: Vec<&str> = fitting.iter().map(|name| name.key()).collect();
            return Err(DataError::Config(format!(
                "`metric = {:?}` does not suit this target: choose one of {}",
                name.key(),
                names.join(", ")
            )));
        }
        let unit = match (target, name) {
            (Target::Number { unit } | Target::Numbers { unit, .. }, Mae) => unit.clone(),
            (Target::Number { unit } | Target::Numbers { unit, .. }, Mse) => {
                format!("({unit})²")
            }
            _ => String::new(),
        };
        Ok(Metric { name, unit })
    }
}

fn counts(data: &Prepared) -> RowCounts {
    let of = |rows: &Rows| rows.len();
    RowCounts {
        train: of(&data.train),
        validation: of(&data.validation),
        test: of(&data.test),
    }
}

#[cfg(test)]
mod tests;
