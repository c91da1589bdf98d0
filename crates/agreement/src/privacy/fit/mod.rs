//! Makes a plan go with secure-aggregation rounds: where one value alone goes with them, and nobody has to choose.
//!
//! Values that somebody has to choose (another strategy, another model) stay as they are, and
//! [`PrivacyTable::faults`] lists them.

use methods::learner::{Optimiser, Training};
use methods::strategy::{Method, StrategyConfig, WeightRule};
use task::data::{Standardise, Target};
use task::schema::{ColumnType, FeatureColumns, MissingRule, Quantity, Schema};
use task::{ModelConfig, TableTask, TaskConfig};

use super::delta::enough;
use crate::file::{Mode, PrivacyTable, UnitName};

/// Settings of rounds with noise that look at no row. Of a grid they lose least in the worst case of two public
/// tables, for features between −½ and ½ and the logistic model; `just table-noised` measures how much that is.
#[derive(Debug, Clone, Copy)]
pub struct NoisedSettings {
    /// Rounds, which share ε.
    pub rounds: u64,
    /// Norm to which the gradient of every unit is clipped.
    pub clip: f64,
    /// Learning rate of the logistic model.
    pub rate: f64,
}

/// The settings of a federation with noise that says nothing else.
pub const NOISED: NoisedSettings = NoisedSettings {
    rounds: 20,
    clip: 0.5,
    rate: 4.0,
};

/// Rate of other models than the logistic one, whose loss bends four times as much.
const OTHER_RATE: f64 = 1.0;

/// δ at most, however few rows there are.
const DELTA: f64 = 1e-5;

impl PrivacyTable {
    /// A table that asks for sums with noise, within this ε for all rounds together: of every row, or of every
    /// person that `group` tells apart. The members are to have up to `rows` rows together.
    pub fn noised(epsilon: f64, group: Option<String>, rows: Option<u64>) -> Self {
        Self {
            epsilon: Some(epsilon),
            delta: rows.map(|rows| enough(rows).min(DELTA)),
            unit: group.map(UnitName::Person),
            clip: Some(NOISED.clip),
            ..Self::in_mode(Mode::MaskedNoised)
        }
    }

    /// The rows of all members together up to which nothing has to be said of δ; `None` without noise.
    pub fn rows_for_delta(&self) -> Option<u64> {
        let delta = self.delta.unwrap_or(DELTA);
        self.is_noised().then(|| (0.1 / delta).round() as u64)
    }

    /// Gives task and strategy the values that go with this table, where there is one for each. What was changed,
    /// one sentence each, without a full stop.
    pub fn fit(&self, task: &mut TaskConfig, strategy: &mut StrategyConfig) -> Vec<String> {
        let mut changed = Vec::new();
        if !self.is_masked() {
            return changed;
        }
        let noised = self.is_noised();
        let mut rate = OTHER_RATE;
        if let TaskConfig::Table(task) = task {
            if task.model == ModelConfig::Logistic {
                rate = NOISED.rate;
            }
            changed.extend(scaled(task, noised));
            if noised {
                changed.extend(read_row_by_row(task));
            }
        }
        let weight = weight(&mut strategy.method);
        if let Some(weight) = weight.filter(|weight| **weight != WeightRule::Equal) {
            *weight = WeightRule::Equal;
            changed.push("weight = \"equal\": numbers of rows stay at home".into());
        }
        if let (false, Method::Hierarchical(options)) = (noised, &mut strategy.method)
            && options.exponent.is_none()
        {
            options.exponent = Some(0);
            changed.push("exponent = 0: its sums are of integers, in agreed steps".into());
        }
        let step = Training {
            epochs: 1,
            batch: 0,
            optimiser: Optimiser::Sgd {
                rate,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let one_step = (strategy.training.epochs, strategy.training.batch) == (1, 0);
        if noised && !one_step {
            strategy.training = step;
            changed.push(format!(
                "training: one step of all rows a round, at a rate of {rate}, because a second step would use rows \
                 again without noise"
            ));
        }
        strategy.standardise = task.common_scale();
        changed
    }
}

/// The weights of a method, if sums are enough for it.
fn weight(method: &mut Method) -> Option<&mut WeightRule> {
    match method {
        Method::FedAvg(options) => Some(&mut options.weight),
        Method::FedPer(options) | Method::FedBn(options) => Some(&mut options.weight),
        Method::FedProx(options) => Some(&mut options.weight),
        Method::FedAdam(options) | Method::FedYogi(options) | Method::FedAdagrad(options) => {
            Some(&mut options.weight)
        }
        Method::FedRep(options) => Some(&mut options.weight),
        Method::Ditto(options) => Some(&mut options.weight),
        Method::Apfl(options) => Some(&mut options.weight),
        Method::PFedMe(options) => Some(&mut options.weight),
        Method::FedAla(options) => Some(&mut options.weight),
        _ => None,
    }
}

/// Scales by what is agreed, where a scale of all or of own rows cannot be used.
fn scaled(task: &mut TableTask, noised: bool) -> Option<String> {
    let schema = task.schema.as_ref()?;
    let now = task.scaling();
    let (scaling, why) = match now {
        Standardise::Federation if !noised && !has_ranges(schema) => (
            Standardise::Silo,
            "\"silo\": a common scale would be a sum of its own",
        ),
        Standardise::Federation | Standardise::Silo if noised || now == Standardise::Federation => {
            (
                Standardise::Ranges,
                "\"ranges\": numbers are scaled by the agreed ranges, which say nothing of anybody's rows",
            )
        }
        _ => return None,
    };
    task.standardise = Some(scaling);
    Some(format!("standardise = {why}"))
}

/// True where all numbers of a schema have ranges.
fn has_ranges(schema: &Schema) -> bool {
    let target = matches!(
        schema.target(),
        Target::Classes(_) | Target::Mask { .. } | Target::Survival { .. }
    );
    let mut columns = schema.encoded().into_iter();
    columns.all(|column| column.range.is_some()) && (target || schema.target.range.is_some())
}

/// Lets the part and the numbers of every row depend on itself alone.
fn read_row_by_row(task: &mut TableTask) -> Vec<String> {
    let mut changed = Vec::new();
    let split = &mut task.split;
    if !split.is_by_unit() && split.time.is_none() {
        split.keyed = true;
        changed.push(
            "split: keyed = true: a keyed hash of each row holds it out, and no other row does"
                .into(),
        );
    }
    let mut filled = Vec::new();
    let features = task
        .schema
        .iter_mut()
        .flat_map(|schema| &mut schema.features);
    for feature in features {
        if let Some(middle) = middle(feature) {
            feature.missing = middle;
            filled.extend(feature.name.iter().map(str::to_owned));
        }
    }
    if !filled.is_empty() {
        changed.push(format!(
            "missing values of {}: the middle of the agreed range takes their place, not a mean of own rows",
            filled.join(", ")
        ));
    }
    changed
}

/// The rule for missing values that looks at no row, in place of one that does.
fn middle(feature: &FeatureColumns) -> Option<MissingRule> {
    let agreed = match &feature.kind {
        ColumnType::Number(Quantity { range, .. })
        | ColumnType::Integer(Quantity { range, .. }) => range.is_some(),
        ColumnType::Date(days) => days.has_ranges(),
        ColumnType::Category(_) => true,
    };
    match feature.missing {
        _ if !agreed => None,
        MissingRule::Mean | MissingRule::Median => Some(MissingRule::Middle),
        MissingRule::Indicator => Some(MissingRule::MiddleIndicator),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
