//! Wraps a strategy to agree on a common scale of the columns first, in one round in which members
//! share summaries only.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::learner::{LearnError, Learner, Task, Update};
use crate::merging::MergeTree;
use crate::params::{Layout, Params, Role};
use crate::strategy::{
    DecideError, Decision, EquipError, LoadedManifest, ModelEntry, Newcomer, Objection, Outcome,
    Participant, Plan, Scored, SettleError, State, StatisticsAccount, Strategy, Watch,
};

/// Buffer of a model that standardises: mean of every column, over all members' training rows.
pub const MEAN: &str = "scale.mean";
/// Buffer of a model that standardises: standard deviation of every column, above 0.
pub const DEVIATION: &str = "scale.deviation";
/// Buffer of a model that standardises: what single precision leaves of the mean of every column, to be
/// added to [`MEAN`] in double precision. Models made before it was there have none: it counts as 0.
pub const REST: &str = "scale.rest";
/// All buffers of the common scale.
pub const SCALE: [&str; 3] = [MEAN, DEVIATION, REST];
/// Tensor of a summary: what single precision leaves of `sum`.
pub const SUM_REST: &str = "sum.rest";

/// A number as two of single precision, the second of which is what the first leaves: together they
/// have twice as many digits.
pub fn split_double(value: f64) -> (f32, f32) {
    let high = value as f32;
    (high, (value - f64::from(high)) as f32)
}

/// The tensors of a model that a silo can have by itself: all but the scale that the federation agreed
/// on. Running statistics and other buffers are among them.
pub(crate) fn without_scale(model: &Layout) -> Arc<Layout> {
    model.select(|tensor| !SCALE.contains(&tensor.name.as_str()))
}

/// Round 1 combines the members' summaries into one mean and deviation per column, kept in the
/// model's buffers [`MEAN`] and [`DEVIATION`]; later rounds are the inner strategy's, from its
/// round 1 on.
///
/// A summary has `count` `[1]`, `sum` `[c]`, [`SUM_REST`] `[c]` and `squares` `[c]` (squared deviations
/// from the member's own mean). Sums and means are pairs of numbers of single precision, because seconds
/// since 1970 need more digits than one has. They are combined pair by pair in the order of the contribution list
/// (Chan, Golub & LeVeque
/// 1979), which does not cancel where means are large. Deviations are over all rows
/// (`squares / count`); a column that never varies gets deviation 1.
pub struct Standardised {
    inner: Box<dyn Strategy>,
    /// Rounds before the inner strategy's first.
    rounds: u64,
}

impl Standardised {
    /// Puts a round of summaries before `inner`. The learner needs a
    /// [`summary_layout`](crate::learner::Summaries::summary_layout) and a model with both buffers.
    pub fn new(inner: Box<dyn Strategy>) -> Self {
        Self { inner, rounds: 1 }
    }

    /// `inner` from its round 1 on, with the scale that the model it starts from has already. All
    /// later models keep it.
    pub fn agreed(inner: Box<dyn Strategy>) -> Self {
        Self { inner, rounds: 0 }
    }
}

/// A summary, read.
struct ReadSummary<'a> {
    count: f64,
    sum: &'a [f32],
    rest: Option<&'a [f32]>,
    squares: &'a [f32],
}

/// The common scale.
struct CommonScale {
    mean: Vec<f32>,
    rest: Vec<f32>,
    deviation: Vec<f32>,
}

/// A deviation below this part of the mean is what rounding leaves of a column that never varies, where
/// sums are pairs of numbers of single precision.
const ROUNDING: f64 = 1.0 / (1u64 << 46) as f64;

impl<'a> ReadSummary<'a> {
    /// Reads a contribution, or gives the reason why it is no summary in one sentence.
    fn read(model: &'a Params) -> Result<Self, String> {
        let tensor = |name: &str| {
            model
                .tensor(name)
                .ok_or_else(|| format!("the summary has no tensor {name:?}"))
        };
        let (sum, squares) = (tensor("sum")?, tensor("squares")?);
        let &[count] = tensor("count")? else {
            return Err("the summary's count is not one number".into());
        };
        let rest = model.tensor(SUM_REST);
        if sum.len() != squares.len() || rest.is_some_and(|rest| rest.len() != sum.len()) {
            return Err("the summary's sums and squares are of different columns".into());
        }
        if !model.values().iter().all(|value| value.is_finite()) {
            return Err("the summary holds a value that is not finite".into());
        }
        if count < 1.0 {
            return Err(format!("the summary is of {count} rows"));
        }
        if let Some(column) = squares.iter().position(|&square| square < 0.0) {
            return Err(format!(
                "the summary's squares of column {column} are negative"
            ));
        }
        Ok(Self {
            count: count.into(),
            sum,
            rest,
            squares,
        })
    }

    /// The mean of a column.
    fn mean(&self, column: usize) -> f64 {
        let rest = self.rest.map_or(0.0, |rest| f64::from(rest[column]));
        (f64::from(self.sum[column]) + rest) / self.count
    }
}

/// Mean and deviation of every column over all summaries, or which entry is unusable and why.
fn combine(manifest: &LoadedManifest) -> Result<CommonScale, DecideError> {
    let first = manifest.entries.first().ok_or(DecideError::NoEntries)?;
    let columns = first.model.tensor("sum").map_or(0, <[f32]>::len);
    let (mut count, mut mean, mut squares) = (0f64, vec![0f64; columns], vec![0f64; columns]);
    let mut rounding = ROUNDING;
    for (entry, ModelEntry { model, .. }) in manifest.entries.iter().enumerate() {
        let unusable = |reason| DecideError::Unusable { entry, reason };
        let summary = ReadSummary::read(model).map_err(unusable)?;
        if summary.sum.len() != columns {
            return Err(unusable(format!(
                "the summary is of {} columns, the others are of {columns}",
                summary.sum.len()
            )));
        }
        if summary.rest.is_none() {
            rounding = f32::EPSILON.into();
        }
        let total = count + summary.count;
        for column in 0..columns {
            let own = summary.mean(column);
            let apart = own - mean[column];
            mean[column] += apart * summary.count / total;
            squares[column] +=
                f64::from(summary.squares[column]) + apart * apart * count * summary.count / total;
        }
        count = total;
    }
    let deviation = |(square, mean): (&f64, &f64)| {
        let deviation = (square / count).sqrt();
        // What rounding the sums leaves of a column that never varies.
        if deviation <= rounding * mean.abs() {
            return 1.0;
        }
        // At the edges of `f32` the result still has to be a positive number.
        (deviation as f32).clamp(f32::MIN_POSITIVE, f32::MAX)
    };
    let deviation = squares.iter().zip(&mean).map(deviation).collect();
    let (mean, rest) = mean.into_iter().map(split_double).unzip();
    Ok(CommonScale {
        mean,
        rest,
        deviation,
    })
}

/// `model` with the buffers of the scale filled. One without [`REST`] keeps the mean in single precision.
fn with_scale(model: &Params, scale: &CommonScale) -> Result<Params, SettleError> {
    let layout = model.layout();
    let buffer = |name: &str, values: &[f32]| {
        layout
            .position(name)
            .filter(|&at| layout.tensors()[at].role == Role::Buffer)
            .map(|at| layout.range(at))
            .filter(|range| range.len() == values.len())
            .ok_or_else(|| {
                SettleError::Summary(format!(
                    "the model has no buffer {name:?} of {} columns: {}",
                    values.len(),
                    layout.describe()
                ))
            })
    };
    let mut places = vec![
        (buffer(MEAN, &scale.mean)?, &scale.mean),
        (buffer(DEVIATION, &scale.deviation)?, &scale.deviation),
    ];
    if layout.position(REST).is_some() {
        places.push((buffer(REST, &scale.rest)?, &scale.rest));
    }
    Ok(Params::build(layout, |into| {
        into.copy_from_slice(model.values());
        for (place, values) in places {
            into[place].copy_from_slice(values);
        }
    }))
}

/// The outcome of a later round with the scale that was agreed on: it travels with every model, and
/// no contribution may change it.
fn keep_scale(state: &State, mut after: Outcome) -> Result<Outcome, SettleError> {
    let agreed = state.models.first();
    let buffer = |name| Some(agreed?.tensor(name)?.to_vec());
    let (Some(mean), Some(deviation)) = (buffer(MEAN), buffer(DEVIATION)) else {
        return Ok(after);
    };
    let scale = CommonScale {
        rest: buffer(REST).unwrap_or_else(|| vec![0.0; mean.len()]),
        mean,
        deviation,
    };
    let tables = after.state.tables.values_mut().flatten();
    for model in after.state.models.iter_mut().chain(tables) {
        *model = with_scale(model, &scale)?;
    }
    Ok(after)
}

impl Strategy for Standardised {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn inner(&self) -> Option<&dyn Strategy> {
        Some(&*self.inner)
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        if self.rounds > 0 {
            learner.summaries()?;
        }
        self.inner.equip(learner)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        if round > self.rounds {
            return self.inner.plan(state, round - self.rounds);
        }
        Plan::everyone(state, Task::Summarise)
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        if round > self.rounds {
            let (inner, round) = (&self.inner, round - self.rounds);
            return inner.contribute(state, plan, round, participant, progress);
        }
        let none = || LearnError::Failed("there is no model to start from".into());
        let start = state.models.first().ok_or_else(none)?;
        let update = participant.carry_out(&plan.task, start, progress)?;
        Ok((participant.coalition, update))
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        // Summaries are not scored.
        self.inner.score(
            state,
            plan,
            round.saturating_sub(self.rounds),
            participant,
            scored,
        )
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        round <= self.rounds || self.inner.keeps_numbers(round - self.rounds)
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        if round > self.rounds {
            let round = round - self.rounds;
            return self.inner.expects(state, model, summary, round);
        }
        summary.unwrap_or(model).clone()
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        let mut layouts = self.inner.layouts(model, summary);
        if self.rounds > 0 {
            layouts.push(summary.unwrap_or(model).clone());
        }
        layouts
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        if round > self.rounds {
            return self.inner.admit(entry, round - self.rounds);
        }
        ReadSummary::read(&entry.model).map(|_| ())
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        if round > self.rounds {
            return self.inner.decide(state, manifest, round - self.rounds);
        }
        combine(manifest)?;
        Ok(Decision::fixed(vec![0; manifest.entries.len()]))
    }

    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        let round = round.checked_sub(self.rounds).filter(|&round| round > 0)?;
        self.inner.merge_tree(state, manifest, round)
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if round > self.rounds {
            return self
                .inner
                .check(state, manifest, decision, round - self.rounds);
        }
        combine(manifest)?;
        let all = vec![0; manifest.entries.len()];
        decision.must_be_fixed(&all, "every entry belongs to coalition 0")
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        if round > self.rounds {
            let after = self
                .inner
                .settle(state, manifest, decision, round - self.rounds)?;
            return keep_scale(state, after);
        }
        manifest.fits(&decision.assignment)?;
        let scale = combine(manifest).map_err(|error| SettleError::Summary(error.to_string()))?;
        let models = state
            .models
            .iter()
            .map(|model| with_scale(model, &scale))
            .collect::<Result<_, _>>()?;
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(models),
        })
    }

    fn statistics(&self, state: &State, rounds: RangeInclusive<u64>) -> Option<StatisticsAccount> {
        let inner = |round: &u64| round.saturating_sub(self.rounds);
        let inner = inner(rounds.start()).max(1)..=inner(rounds.end());
        self.inner.statistics(state, inner)
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        self.inner
            .unseen(state, round.saturating_sub(self.rounds), newcomer)
    }
}
