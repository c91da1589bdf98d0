//! Equipment with which a silo learns: its own rows and model family, and the same as the strategy equips it.

use std::sync::Arc;

use agreement::Agreement;
use learn::export::{HeldOut, Threshold};
use learn::external::Programs;
use learn::{RowCounts, StudySilo, TaskStudy};
use methods::learner::Split;
use methods::strategy::{equip, warm_started};
use methods::{Learner, Params};
use protocol::MemberIndex;
use task::questions::{RowQuestion, RowsProfile};
use task::survival::{Baseline, NUMBERS, observed};
use task::{TaskConfig, data::DataError, metrics::Metric};

use crate::comparison::ComparisonSlot;

/// Equipment with which a silo learns.
#[derive(Clone)]
pub struct Equipment {
    /// The silo's own rows and model family, without a strategy.
    pub plain: StudySilo,
    /// The learner of the silo as the strategy equips it.
    pub equipped: Arc<dyn Learner>,
    /// The metric that the members agreed to compare.
    pub metric: Metric,
    /// True if the rows are its own. If not, nothing can be measured on them.
    pub own_rows: bool,
    /// The program that learns, where it is one.
    pub programs: Option<Arc<Programs>>,
    /// Warnings about own rows that cannot be read and count as nothing, in sentences without a full stop.
    pub unreadable: Vec<String>,
    /// Distribution of the values of its own rows, where they are rows of files.
    pub profile: Option<RowsProfile>,
    /// Numbers among them of which nobody has said whether they stand for missing values.
    pub questions: Vec<RowQuestion>,
    /// The comparison of the models that it could serve, once it is made.
    pub(crate) comparison: ComparisonSlot,
}

impl Equipment {
    /// Equips a silo by the strategy of the agreement. `start` is the model that the federation starts
    /// from, where it is a given one.
    ///
    /// # Errors
    /// [`DataError::Config`]: a model with which the strategy cannot work, or another start model.
    pub fn new(
        agreement: &Agreement,
        plain: StudySilo,
        metric: Metric,
        start: Option<&Params>,
        radius: &methods::strategy::OwnRadius,
    ) -> Result<Self, DataError> {
        let strategy = &*agreement.strategy;
        let learner = warm(plain.learner.clone(), start)?;
        let equipped = equip(strategy, learner, radius)
            .map_err(|error| DataError::Config(format!("the strategy: {error}")))?;
        Ok(Self {
            plain,
            equipped,
            metric,
            own_rows: true,
            programs: None,
            unreadable: Vec::new(),
            profile: None,
            questions: Vec::new(),
            comparison: ComparisonSlot::default(),
        })
    }

    /// Equipment without anybody's rows: layouts and initial models are right, and nothing can be trained or
    /// measured.
    ///
    /// # Errors
    /// [`DataError`]: a task without a schema, one that contradicts itself, or one whose initial model
    /// only the members' programs know.
    pub fn stand_in(
        agreement: &Agreement,
        me: MemberIndex,
        start: Option<&Params>,
    ) -> Result<Self, DataError> {
        match &agreement.task {
            TaskConfig::External(task) if !task.start_is_known() && start.is_none() => {
                Err(DataError::Config(
                    "the model before the first round comes from the members' programs".into(),
                ))
            }
            _ => Self::of_family(agreement, me, start),
        }
    }

    /// Equipment of which only the layouts matter: the initial model may be another one.
    ///
    /// # Errors
    /// [`DataError`]: a task without a schema, or one that contradicts itself.
    pub fn of_family(
        agreement: &Agreement,
        me: MemberIndex,
        start: Option<&Params>,
    ) -> Result<Self, DataError> {
        let name = agreement.epoch.roster.name(me).to_owned();
        let study = match &agreement.task {
            TaskConfig::Table(task) => {
                let mut task = task.clone();
                task.domains = None;
                task.stand_ins(&[name], agreement.seed)?
            }
            TaskConfig::External(task) => task.stand_ins(&[name], agreement.seed)?,
            TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => {
                return Err(DataError::Config(
                    "the task is a benchmark without a table of rows".into(),
                ));
            }
        };
        let mut plain = study.silos.into_iter().next().ok_or_else(none)?;
        (plain.preparation, plain.rows) = (None, RowCounts::default());
        let equipped = agreement
            .strategy
            .equip(warm(plain.learner.clone(), start)?)
            .map_err(|error| DataError::Config(format!("the strategy: {error}")))?;
        Ok(Self {
            plain,
            equipped,
            metric: study.metric,
            own_rows: false,
            programs: None,
            unreadable: Vec::new(),
            profile: None,
            questions: Vec::new(),
            comparison: ComparisonSlot::default(),
        })
    }

    /// The metrics of a model without a strategy around it, on the silo's held-out rows; `None` where
    /// they are not here, or the model cannot be measured.
    pub fn held_out(&self, model: &Params) -> Option<HeldOut> {
        if !self.own_rows {
            return None;
        }
        let learner = &self.plain.learner;
        self.metrics(&**learner, model, &Params::empty())
    }

    /// The threshold for the probability of `class`, the second of two, that suits the silo's own rows: see
    /// [`Threshold::youden`]. `None` where they are not here, or are too few.
    pub fn threshold(&self, model: &Params, class: &str) -> Option<Threshold> {
        if !self.own_rows {
            return None;
        }
        let learner = &*self.plain.learner;
        let validation = two_classes(learner, model, Split::Validation)?;
        let held_out = two_classes(learner, model, Split::Test).unwrap_or_default();
        Threshold::youden(class, &validation, &held_out)
    }

    /// The baseline hazard of the silo's own training rows under a model of a time to an event, with which its risk
    /// scores become probabilities, and the last time at which one of these rows is observed. `None` where they are not
    /// here, have no event, or the model is another one.
    pub fn baseline(&self, model: &Params) -> Option<(Baseline, f64)> {
        if !self.own_rows {
            return None;
        }
        let (personal, split) = (&Params::empty(), Split::Train);
        let outputs = self.plain.learner.outputs().ok()?;
        let scores = outputs.outputs(model, personal, split).ok()?;
        let found = outputs.row_results(model, personal, &scores, split).ok()?;
        if found.targets.len() != NUMBERS * scores.len() {
            return None;
        }
        let rows = observed(&found.targets);
        let last = rows
            .iter()
            .map(|row| f64::from(row.time))
            .fold(0.0, f64::max);
        Baseline::of(&scores, &rows).map(|baseline| (baseline, last))
    }

    /// The metrics of a model as this learner, one of the two, uses it.
    pub fn metrics(
        &self,
        learner: &dyn Learner,
        model: &Params,
        personal: &Params,
    ) -> Option<HeldOut> {
        let found = learner.evaluate(model, personal, Split::Test).ok()?;
        let finite = found
            .values
            .into_iter()
            .filter(|(_, value)| value.is_finite());
        Some(HeldOut {
            rows: found.samples,
            metric: self.metric.name.key().into(),
            unit: self.metric.unit.clone(),
            metrics: finite.collect(),
            constant: constant(learner, model, personal).unwrap_or_default(),
        })
    }
}

/// The rows of a part as pairs: the probability of the second of two classes, and whether the row is of it.
/// `None` where the model does not tell two classes apart.
fn two_classes(learner: &dyn Learner, model: &Params, split: Split) -> Option<Vec<(f64, bool)>> {
    let personal = &Params::empty();
    let outputs = learner.outputs().ok()?;
    let values = outputs.outputs(model, personal, split).ok()?;
    let found = outputs.row_results(model, personal, &values, split).ok()?;
    found.positive()
}

/// Returns what a constant prediction, the mean target of the training rows, gives on the held-out rows.
fn constant(
    learner: &dyn Learner,
    model: &Params,
    personal: &Params,
) -> Option<std::collections::BTreeMap<String, f64>> {
    let outputs = learner.outputs().ok()?;
    let values = outputs.outputs(model, personal, Split::Test).ok()?;
    let rows = outputs
        .row_results(model, personal, &values, Split::Test)
        .ok()?
        .len();
    let mean = outputs.mean_target(model, personal, values.len().checked_div(rows)?)?;
    let values = outputs.constant(&mean).repeat(rows);
    let measured = outputs
        .measure(model, personal, &values, Split::Test)
        .ok()?;
    let finite = measured
        .values
        .into_iter()
        .filter(|(_, value)| value.is_finite());
    Some(finite.collect())
}

fn none() -> DataError {
    DataError::Config("the task has no silo".into())
}

fn warm(learner: Arc<dyn Learner>, start: Option<&Params>) -> Result<Arc<dyn Learner>, DataError> {
    match start {
        None => Ok(learner),
        Some(start) => {
            warm_started(learner, start).map_err(|error| DataError::Config(error.to_string()))
        }
    }
}
