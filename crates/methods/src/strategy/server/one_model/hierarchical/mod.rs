//! A mixed model by sums: every silo has a model of its own, shrunken towards a common one by as much as its
//! rows are few and the silos are alike. See [`mixed`](crate::mixed) for the mathematics.
//!
//! In every round each silo contributes the [numbers](SiteSums) of several models that differ in
//! [what may vary](Varying), and all members take the same step. Silos are served the [average](AveragedEstimates) of
//! their estimates. Once all models are done, in one round more every silo contributes its losses by cross-validation
//! with the average and alone, and the federation ends. A silo's own fit stays with it.
//!
//! Nothing but sums over silos is needed. With an agreed [exponent](Hierarchical::exponent) numbers travel as integers,
//! so that rounds can open sums alone; then numbers of rows are opened first, because it depends on them how many
//! numbers may be opened.

mod account;
mod contribution;
mod encoding;
mod memory;
mod own;

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::contribution::{SumsPhase, site};
use self::encoding::{MOST_EXPONENT, SumsEncoding, SumsTotal};
use self::own::{Common, Estimates};
use crate::learner::{LearnError, Learner, Task, Training, Update};
use crate::mixed::folds::OwnFoldLosses;
use crate::mixed::{
    AveragedEstimates, Family, MixedError, MixedProgress, MixedSettings, SiteSums, SumsShape,
    Varying, is_whole, mode, model_weights,
};
use crate::params::Layout;
use crate::robust::Samples;
use crate::strategy::options::{MethodSetting, positive, require};
use crate::strategy::statistics::mark_nothing;
use crate::strategy::{
    DecideError, Decision, EquipError, Kept, LoadedManifest, Memory, ModelEntry, Objection,
    Outcome, Participant, Plan, SettleError, State, StatisticsAccount, Strategy, StrategyError,
    Watch,
};

/// Options of the hierarchical model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hierarchical {
    /// The models that are fitted at once, whose estimates are averaged with weights by their conditional information
    /// criterion: `"nothing"` varies (one model for all), the `"intercept"` alone, all with `"one-strength"` for the
    /// slopes and one for the intercept, or all `"slopes"` with a strength each. Default: all four.
    pub varying: Vec<Varying>,
    /// True if silos send the whole matrix of information only in rounds 1, 3 and 6, and its diagonal otherwise.
    /// The estimates are nearly the same, and far fewer numbers are seen. Default true.
    pub lean: bool,
    /// Rounds end once no estimate moves by more than this part of its standard error. Default 0.02.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tolerance: f64,
    /// Precision of the common slopes around 0, in units of the standardised columns; left out: it is estimated.
    /// With 1e-9 the estimates are those of restricted maximum likelihood.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub precision: Option<f64>,
    /// Numbers travel as integers in steps of 2^(exponent − 30), up to ±2^(22 + exponent), which rounds of
    /// `mode = "secure-aggregation"` need: 0 for standardised columns, more where a number would be larger, which
    /// its silo refuses. Left out: they travel as they are, for `mode = "clear"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 20))]
    pub exponent: Option<u8>,
    /// In secure-aggregation rounds: unknowns of the other silos that each opened number needs. Before more is opened
    /// than that in all rounds, a silo refuses. Default 3.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub unknowns_per_number: f64,
}

impl Default for Hierarchical {
    fn default() -> Self {
        Self {
            varying: Varying::ALL.to_vec(),
            lean: true,
            tolerance: MixedSettings::default().tolerance,
            precision: None,
            exponent: None,
            unknowns_per_number: 3.0,
        }
    }
}

impl Hierarchical {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let mut distinct = self.varying.clone();
        distinct.sort_unstable();
        distinct.dedup();
        require(
            !distinct.is_empty() && distinct.len() == self.varying.len(),
            "varying",
            "at least one of \"nothing\", \"intercept\", \"one-strength\" and \"slopes\", none of them twice",
            format!(
                "{:?}",
                self.varying
                    .iter()
                    .map(|one| one.name())
                    .collect::<Vec<_>>()
            ),
        )?;
        positive("tolerance", self.tolerance)?;
        if let Some(precision) = self.precision {
            positive("precision", precision)?;
            require(precision <= 1e12, "precision", "at most 1e12", precision)?;
        }
        if let Some(exponent) = self.exponent {
            require(
                exponent <= MOST_EXPONENT,
                "exponent",
                "at most 20",
                exponent,
            )?;
        }
        positive("unknowns-per-number", self.unknowns_per_number)?;
        let integers = |exponent| SumsEncoding::Integers { exponent };
        Ok(Box::new(MixedModel {
            encoding: self.exponent.map_or(SumsEncoding::Pairs, integers),
            training: setting.training,
            settings: MixedSettings {
                precision: self.precision,
                tolerance: self.tolerance,
            },
            options: self.clone(),
        }))
    }
}

/// The strategy.
struct MixedModel {
    /// Not used by the fits: it says what a round is expected to cost.
    training: Training,
    options: Hierarchical,
    settings: MixedSettings,
    encoding: SumsEncoding,
}

/// Common knowledge before a round.
struct Before {
    common: Common,
    known: Estimates,
    models: Vec<MixedProgress>,
}

impl Before {
    /// The models that are not done.
    fn open(&self) -> impl Iterator<Item = &MixedProgress> {
        self.models.iter().filter(|model| !model.done)
    }

    /// Returns whether there is noise to estimate.
    fn noise(&self) -> bool {
        self.known.family == Family::Gaussian
    }
}

impl MixedModel {
    /// Returns what a state says. `None` where its model is no global model of this strategy.
    fn before(&self, state: &State) -> Option<Before> {
        let [model] = &state.models[..] else {
            return None;
        };
        let common = Common::find(model.layout())?;
        let each = self.options.varying.iter();
        let models = each
            .map(|&varying| memory::read(&state.memory, varying, common.width(), &self.settings));
        Some(Before {
            known: common.read(model),
            models: models.collect(),
            common,
        })
    }

    fn phase(&self, state: &State, before: &Before, round: u64) -> SumsPhase {
        if self.ends(state) {
            return SumsPhase::Over;
        }
        if self.all_done(state) {
            return SumsPhase::Folds;
        }
        if self.counts_first(state) {
            return SumsPhase::Counts;
        }
        let fresh = before.open().any(|model| model.pattern.is_none());
        let whole = self.is_whole(round) || fresh;
        SumsPhase::sums(before.open(), whole, before.noise())
    }

    /// Returns whether the next round opens numbers of rows alone.
    fn counts_first(&self, state: &State) -> bool {
        let integers = matches!(self.encoding, SumsEncoding::Integers { .. });
        integers && state.memory.number(memory::ROWS).is_none()
    }

    /// Returns whether the whole matrices are sent in a round that is not the first of a model.
    fn is_whole(&self, round: u64) -> bool {
        let before = match self.encoding {
            SumsEncoding::Pairs => 0,
            SumsEncoding::Integers { .. } => 1,
        };
        !self.options.lean || is_whole(round.saturating_sub(before))
    }

    /// Returns whether all models are done.
    fn all_done(&self, state: &State) -> bool {
        let most = state.memory.count(memory::CHOSEN);
        most.is_some_and(|most| most < self.options.varying.len() as u64)
    }

    /// The numbers of a silo with these rows.
    fn numbers(
        &self,
        rows: &Samples,
        before: &Before,
        phase: &SumsPhase,
    ) -> Result<Vec<f64>, MixedError> {
        let family = before.known.family;
        let counts = vec![1.0, rows.len() as f64];
        match phase {
            SumsPhase::Counts => Ok(counts),
            SumsPhase::Sums { shapes } => {
                let mut numbers = counts;
                for (model, &shape) in before.open().zip(shapes) {
                    let fit = mode(rows, family, model.prior())?;
                    let inverse = model.inverse();
                    let sums = SiteSums::of(shape, model.prior(), &fit, inverse.as_ref());
                    numbers.extend(sums.numbers());
                }
                Ok(numbers)
            }
            SumsPhase::Folds => {
                let losses = OwnFoldLosses::of(rows, family, before.known.prior())?;
                Ok(losses.numbers().to_vec())
            }
            SumsPhase::Over => Ok(vec![0.0]),
        }
    }

    /// The next models from the sums of all silos whose numbers are those of a silo.
    fn step(
        &self,
        before: &Before,
        total: &SumsTotal,
        shapes: &[SumsShape],
    ) -> Option<Vec<MixedProgress>> {
        let (rows, sums) = site(shapes, &total.numbers, total.of)?;
        let mut sums = sums.into_iter();
        let next = before.models.iter().map(|model| match model.done {
            true => Some(model.clone()),
            false => Some(model.step(&sums.next()?, total.of.silos, rows, &self.settings)),
        });
        next.collect()
    }

    /// The state after the step of a round.
    fn stepped(&self, state: &State, before: &Before, models: &[MixedProgress]) -> State {
        let mut after = state.clone();
        for model in models {
            memory::write(&mut after.memory, model);
        }
        let least = (0..models.len()).reduce(|best, at| {
            let less = models[at].criterion() < models[best].criterion();
            if less { at } else { best }
        });
        let best = least.expect("at least one model is fitted");
        if models.iter().all(|model| model.done) {
            after
                .memory
                .insert(memory::CHOSEN, Kept::Count(best as u64));
        }
        let weights = Kept::Numbers(model_weights(models));
        after.memory.insert(memory::WEIGHTS, weights);
        let averaged = AveragedEstimates::of(models);
        let known = Estimates {
            mean: averaged.mean,
            strengths: averaged.strengths,
            noise: averaged.noise,
            ..before.known.clone()
        };
        after.models = vec![before.common.write(&state.models[0], &known)];
        after
    }

    /// The state after the silos compared their losses.
    fn compared(&self, state: &State, before: &Before, total: &SumsTotal) -> State {
        let SumsTotal { of, numbers, .. } = total;
        let sum = OwnFoldLosses::of_sum(numbers, of.silos, of.rounding).unwrap_or_default();
        let mut after = state.clone();
        let losses = Kept::Numbers(sum.numbers().to_vec());
        after.memory.insert(memory::LOSSES, losses);
        after.memory.insert(memory::ENDED, Kept::Count(1));
        let known = Estimates {
            alone: sum.says_alone(),
            ..before.known.clone()
        };
        after.models = vec![before.common.write(&state.models[0], &known)];
        after
    }

    /// The state after a round of which the sums are these.
    fn after(
        &self,
        state: &State,
        before: &Before,
        (phase, total): (&SumsPhase, &SumsTotal),
    ) -> State {
        let mut after = match phase {
            // Where sums alone are opened, one silo that refuses leaves nothing to go on with.
            _ if total.is_refused() => {
                let mut after = state.clone();
                after.memory.insert(memory::ENDED, Kept::Count(1));
                after
            }
            SumsPhase::Sums { shapes } => match self.step(before, total, shapes) {
                Some(models) => self.stepped(state, before, &models),
                None => state.clone(),
            },
            SumsPhase::Folds => self.compared(state, before, total),
            SumsPhase::Counts | SumsPhase::Over => state.clone(),
        };
        let memory = &mut after.memory;
        if self.encoding != SumsEncoding::Pairs {
            let counted = matches!(phase, SumsPhase::Counts | SumsPhase::Sums { .. });
            if counted && total.of.silos > 0.0 {
                memory.insert(memory::ROWS, Kept::Number(total.numbers[1]));
            }
            if total.refused.iter().any(|silos| *silos > 0) {
                memory.insert(memory::REFUSED, Kept::Counts(total.refused.clone()));
            }
            mark_nothing(memory, false);
        }
        if !total.is_refused() {
            count_opened(memory, phase);
        }
        after
    }
}

/// Counts the numbers of a round as opened.
fn count_opened(memory: &mut Memory, phase: &SumsPhase) {
    if *phase != SumsPhase::Over {
        let opened = memory.count(memory::OPENED).unwrap_or(0);
        let opened = opened.saturating_add(phase.numbers() as u64);
        memory.insert(memory::OPENED, Kept::Count(opened));
    }
}

const NO_COMMON_MODEL: &str = "the state has no global model of the hierarchical strategy";

impl Strategy for MixedModel {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        own::equip(learner)
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan::everyone(state, Task::Train(self.training.clone()))
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let failed = |error: &dyn ToString| LearnError::Failed(error.to_string());
        let before = self.before(state).ok_or_else(|| failed(&NO_COMMON_MODEL))?;
        let phase = self.phase(state, &before, round);
        let start = participant.start(state)?;
        // For the comparison the silo needs its fit alone, too.
        let start = match phase {
            SumsPhase::Folds => {
                let known = Estimates {
                    alone: true,
                    ..before.known.clone()
                };
                before.common.write(start, &known)
            }
            SumsPhase::Counts | SumsPhase::Sums { .. } | SumsPhase::Over => start.clone(),
        };
        let update = participant.carry_out(&plan.task, &start, progress)?;
        let Participant {
            learner, personal, ..
        } = participant;
        let rows = learner.linear_rows()?.linear_rows(&start, personal)?;
        let numbers = self.numbers(&rows, &before, &phase);
        let numbers = numbers.map_err(|error| failed(&error))?;
        let shared = self.encoding.contribution(&phase, &numbers);
        let shared = shared.ok_or_else(|| failed(&MixedError::NotFinite))?;
        Ok((participant.coalition, Update { shared, ..update }))
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        _: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        match self.before(state) {
            Some(before) => self.encoding.layout(&self.phase(state, &before, round)),
            None => model.clone(),
        }
    }

    fn layouts(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        let Some(common) = Common::find(model) else {
            return vec![model.clone()];
        };
        let start = |&varying| MixedProgress::start(varying, common.width(), &self.settings);
        let models: Vec<MixedProgress> = self.options.varying.iter().map(start).collect();
        let single = [SumsPhase::Counts, SumsPhase::Folds, SumsPhase::Over];
        let mut layouts = single.map(|phase| self.encoding.layout(&phase)).to_vec();
        // Every choice of models that are not done.
        for open in 1..1u32 << models.len() {
            for whole in [false, true] {
                for noise in [false, true] {
                    let chosen = (0..).zip(&models);
                    let chosen = chosen.filter(|(at, _)| open >> at & 1 == 1);
                    let phase = SumsPhase::sums(chosen.map(|(_, model)| model), whole, noise);
                    layouts.push(self.encoding.layout(&phase));
                }
            }
        }
        layouts
    }

    fn admit(&self, entry: &ModelEntry, _: u64) -> Result<(), String> {
        self.encoding.admit(&entry.model)
    }

    fn decide(
        &self,
        _: &State,
        manifest: &LoadedManifest,
        _: u64,
    ) -> Result<Decision, DecideError> {
        manifest.not_empty()?;
        Ok(Decision::fixed(vec![0; manifest.entries.len()]))
    }

    fn check(
        &self,
        _: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        _: u64,
    ) -> Result<(), Objection> {
        manifest.not_empty()?;
        let all = vec![0; manifest.entries.len()];
        decision.must_be_fixed(&all, "every entry belongs to coalition 0")
    }

    /// Contributions that no silo can have count as absent; without any other, the state stays as it is.
    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        manifest.not_empty()?;
        manifest.fits(&decision.assignment)?;
        if decision.assignment.iter().any(|&own| own != 0) {
            return Err(SettleError::Infeasible("there is one model for all".into()));
        }
        let before = self.before(state);
        let before = before.ok_or_else(|| SettleError::Infeasible(NO_COMMON_MODEL.into()))?;
        let phase = self.phase(state, &before, round);
        let models = manifest.entries.iter().map(|entry| &entry.model);
        let total = self.encoding.total(&phase, models);
        let after = self.after(state, &before, (&phase, &total));
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: after,
        })
    }

    fn statistics(&self, state: &State, rounds: RangeInclusive<u64>) -> Option<StatisticsAccount> {
        (self.encoding != SumsEncoding::Pairs).then_some(())?;
        Some(self.account(state, &self.before(state)?, rounds))
    }

    /// Whoever made its sum void knows by how much, and can read it: its numbers count as opened.
    fn nothing_told(&self, state: &State, round: u64) -> State {
        let mut after = state.clone();
        if self.encoding != SumsEncoding::Pairs {
            mark_nothing(&mut after.memory, true);
            if let Some(before) = self.before(state) {
                count_opened(&mut after.memory, &self.phase(state, &before, round));
            }
        }
        after
    }

    fn ends(&self, state: &State) -> bool {
        state.memory.count(memory::ENDED) == Some(1)
    }
}
