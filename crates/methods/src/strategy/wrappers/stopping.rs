//! Early stopping: the federation ends when the models of its rounds get no better on the silos'
//! validation rows, and keeps the models of the best round (Prechelt 1998). Goes with every strategy.
//!
//! With every contribution a silo sends two numbers: the rows that it validates on, and a measure of
//! the model that it starts from, summed over them. The sums over all entries give the measure of the
//! round before. All members compute it from the same entries, so all end in the same round. Nobody can
//! check what a member reports: with wrong numbers it can end a federation early, or keep it from ending
//! before its last round; and if it says that it started from another coalition's model, the last models
//! are kept instead of the best.

use std::fmt;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::learner::{Capability, Job, LearnError, Learner, OwnMetric, Split, Update, Watch};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::report::must_measure;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;
use crate::strategy::{EquipError, Kept, LoadedManifest, ModelEntry, Outcome, SettleError, State};

/// Name of what is attached to a model.
const ATTACHED: &str = "validation";
/// Number of validation rows, and the measure summed over them, as tensors of a model.
const ROWS: &str = "validation.rows";
const SUM: &str = "validation.sum";
/// Measure of the best round so far.
const BEST: &str = "stop.best";
/// Rounds since then that were measured and were not better.
const WAITED: &str = "stop.waited";
/// The patience with which the federation ended. With more of it, which members may agree on, it goes
/// on.
const ENDED: &str = "stop.ended";

/// When a federation ends before its last round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Stop {
    /// Rounds that may pass without a better one.
    #[schemars(range(min = 1))]
    pub patience: u64,
    /// What is compared.
    #[serde(default)]
    pub measure: Measure,
    /// Least difference to the best round that counts as better, in units of the measure.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    #[serde(rename = "min-delta")]
    pub gain: f64,
}

fn is_zero(gain: &f64) -> bool {
    *gain == 0.0
}

/// A measure of a model on validation rows, over all rows of all silos.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The loss that silos train on; smaller is better.
    #[default]
    Loss,
    /// The part of rows that are classified rightly; larger is better.
    Accuracy,
    /// A metric of the programs' own: `{ own = "f1", better = "larger" }`, or `"smaller"`. A silo where it has no value
    /// counts as one without validation rows in this round.
    #[serde(untagged)]
    Own(OwnMetric),
}

struct WrittenMeasure;

impl<'de> Visitor<'de> for WrittenMeasure {
    type Value = Measure;

    fn expecting(&self, into: &mut fmt::Formatter<'_>) -> fmt::Result {
        into.write_str("\"loss\", \"accuracy\" or { own = \"NAME\", better = \"larger\" } with \"larger\" or \"smaller\"")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Measure, E> {
        [Measure::Loss, Measure::Accuracy]
            .into_iter()
            .find(|measure| measure.name() == name)
            .ok_or_else(|| {
                E::custom(format!(
                    "unknown measure `{name}`, expected `loss` or `accuracy`; one of your own is {{ own = {name:?}, \
                     better = \"larger\" }}, or \"smaller\""
                ))
            })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Measure, A::Error> {
        OwnMetric::deserialize(MapAccessDeserializer::new(map)).map(Measure::Own)
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WrittenMeasure)
    }
}

impl Measure {
    /// The name of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Accuracy => "accuracy",
            Self::Own(own) => own.name(),
        }
    }

    fn is_better(self, value: f64, than: f64, gain: f64) -> bool {
        let larger = match self {
            Self::Loss => false,
            Self::Accuracy => true,
            Self::Own(own) => own.higher_is_better(),
        };
        if larger {
            value > than + gain
        } else {
            value < than - gain
        }
    }
}

/// Measures on validation rows by which a federation ends early.
pub(crate) struct Stopping(pub(crate) Stop);

impl StrategyWrapper for Stopping {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        must_measure(&*inner, self.0.measure.name())?;
        let tensor = |name: &str| TensorSpec::new(name, [1], Role::Buffer);
        let numbers = Layout::new(vec![tensor("rows"), tensor("sum")])?;
        let by = Validating {
            measure: self.0.measure,
            models: Attached::new(&inner.layout(), &[(ATTACHED, &numbers)])?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn can_take_part(&self, learner: &dyn Learner) -> Result<(), EquipError> {
        let (model, personal) = (learner.initial(0), learner.initial_personal(0));
        match learner.evaluate(&model, &personal, Split::Validation) {
            Err(LearnError::NoRows(_)) => Err(EquipError::NoValidation),
            _ => Ok(()),
        }
    }

    fn admit(&self, entry: &ModelEntry) -> Result<(), String> {
        let (rows, sum) = numbers(entry);
        if rows >= 0.0 && rows.fract() == 0.0 && (rows > 0.0 || sum == 0.0) {
            Ok(())
        } else {
            Err(format!(
                "it reports a sum of {sum} over {rows} validation rows"
            ))
        }
    }

    fn adopt(
        &self,
        before: &State,
        manifest: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let Outcome {
            assignment,
            mut state,
        } = after;
        // What the inner strategy made of the numbers means nothing.
        let tables = state.tables.values_mut().flatten();
        for model in state.models.iter_mut().chain(tables) {
            *model = cleared(model);
        }
        let found = manifest.entries.iter().map(numbers);
        let (rows, sum) = found.fold((0.0, 0.0), |all, own| (all.0 + own.0, all.1 + own.1));
        if rows > 0.0 {
            self.judge(sum / rows, before, &mut state);
        } else {
            carry_over(before, &mut state);
        }
        if !keeps_numbers(&assignment, manifest) {
            // They were made for other members.
            state.tables.remove(BEST);
        }
        if self.ends(&state) {
            let best = state
                .tables
                .get(BEST)
                .filter(|best| best.len() == state.models.len());
            if let Some(best) = best.cloned() {
                state.models = best;
            }
        }
        Ok(Outcome { assignment, state })
    }

    fn ends(&self, state: &State) -> bool {
        state.memory.count(ENDED) == Some(self.0.patience)
    }
}

impl Stopping {
    /// Notes the measure of the models of the state before.
    fn judge(&self, value: f64, before: &State, state: &mut State) {
        let best = match before.memory.get(BEST) {
            Some(Kept::Number(best)) => Some(*best),
            _ => None,
        };
        let Stop {
            patience,
            measure,
            gain,
        } = self.0;
        let waited = before.memory.count(WAITED).unwrap_or(0);
        let better = best.is_none_or(|best| measure.is_better(value, best, gain));
        if better && value.is_finite() {
            note(state, value, 0);
            state.tables.insert(BEST.into(), before.models.clone());
            return;
        }
        carry_over(before, state);
        note(state, best.unwrap_or(value), waited + 1);
        if waited + 1 >= patience {
            state.memory.insert(ENDED, Kept::Count(patience));
        }
    }
}

fn note(state: &mut State, best: f64, waited: u64) {
    state.memory.insert(BEST, Kept::Number(best));
    state.memory.insert(WAITED, Kept::Count(waited));
    state.memory.remove(ENDED);
}

/// What is remembered, as it was.
fn carry_over(before: &State, state: &mut State) {
    for name in [BEST, WAITED] {
        if let Some(value) = before.memory.get(name) {
            state.memory.insert(name, value.clone());
        }
    }
    if let Some(best) = before.tables.get(BEST) {
        state.tables.insert(BEST.into(), best.clone());
    }
}

/// Returns whether every entry is still in the coalition whose model it started from. Only then do models of an
/// earlier round go to those that they were made for.
fn keeps_numbers(assignment: &[u32], manifest: &LoadedManifest) -> bool {
    let entries = manifest.entries.iter().zip(assignment);
    let mut entries = entries.map(|(entry, now)| entry.coalition == Some(*now));
    entries.all(|stays| stays)
}

/// Rows and sum that an entry reports.
fn numbers(entry: &ModelEntry) -> (f64, f64) {
    let number = |name| match entry.model.tensor(name) {
        Some(&[number]) => f64::from(number),
        _ => 0.0,
    };
    (number(ROWS), number(SUM))
}

/// The model without numbers.
fn cleared(model: &Params) -> Params {
    let layout = model.layout();
    if [ROWS, SUM]
        .iter()
        .all(|name| matches!(model.tensor(name), Some([0.0]) | None))
    {
        return model.clone();
    }
    Params::build(layout, |values| {
        values.copy_from_slice(model.values());
        for at in [ROWS, SUM].iter().filter_map(|name| layout.position(name)) {
            values[layout.range(at)].fill(0.0);
        }
    })
}

/// A learner that measures the model that it starts from on its validation rows.
struct Validating {
    measure: Measure,
    models: Attached,
}

impl Validating {
    fn with(&self, model: &Params, rows: f32, sum: f32) -> Params {
        let numbers = Params::from_values(self.models.part(0), &[rows, sum]);
        self.models.join(model, &[&numbers])
    }

    fn reported(
        &self,
        inner: &dyn Learner,
        (start, personal): (&Params, &Params),
        update: Update,
    ) -> Result<Update, LearnError> {
        let (rows, sum) = match inner.evaluate(start, personal, Split::Validation) {
            Ok(found) => {
                let value = found.get(self.measure.name())?;
                let rows = match self.measure {
                    // Such as the precision of a class that a model never names.
                    Measure::Own(_) if !value.is_finite() => 0.0,
                    _ => found.samples as f64,
                };
                let sum = if rows > 0.0 { value * rows } else { 0.0 };
                (rows as f32, sum as f32)
            }
            Err(LearnError::NoRows(_)) => (0.0, 0.0),
            Err(error) => return Err(error),
        };
        Ok(Update {
            shared: self.with(&update.shared, rows, sum),
            ..update
        })
    }
}

impl LearnerWrapper for Validating {
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
        self.with(&inner.initial(seed), 0.0, 0.0)
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
        let (start, _) = self.inside(job.start, job.personal);
        let update = Job {
            start: &start,
            ..job
        }
        .run(inner, progress)?;
        self.reported(inner, (&start, job.personal), update)
    }
}
