//! CS-RCFL (Konti et al. 2024) that finds the number of coalitions.
//!
//! By the losses that form them, more coalitions never cost more, since every silo's local model is
//! the best on the rows that it was fitted to. So the number is chosen by losses on held-out rows, in
//! two rounds. In the first every silo scores all models, its own by cross-fitting, and the lead
//! groups the entries into 1, 2, … coalitions. In the second every silo reports what the mean
//! models of its coalitions lose on its rows, its own part of each mean fitted without these rows;
//! the grouping of least loss is taken.

mod formed;
mod held_out;
mod numbers;
mod reported;

use std::sync::Arc;

use rayon::prelude::*;

use crate::aggregation::Aggregation;
use crate::coalitions::{CoalitionProgram, choice};
use crate::learner::{Capability, LearnError, Learner, Metrics, Split, Update};
use crate::params::{Layout, Params};
use crate::strategy::server::groups::cs_rcfl::CsRcfl;
use crate::strategy::server::means::{coalition_means, combined};
use crate::strategy::{
    Claim, DecideError, Decision, EquipError, Fitting, Kept, LoadedManifest, ModelEntry, Newcomer,
    Objection, Outcome, OwnRadius, Participant, Plan, Scored, SettleError, State, Strategy, Watch,
};

use formed::{Formed, LOSSES, report};
pub(crate) use held_out::FoldModels;
pub use numbers::MOST;
pub(super) use numbers::grid;
use numbers::preferred;
use reported::reported;

/// CS-RCFL that finds the number of coalitions. Coalitions are formed in pairs of rounds: in the
/// odd ones every silo keeps the model it trained; in the even ones silos only measure.
#[derive(Debug, Clone)]
pub struct AutoCsRcfl {
    /// Fit of a member's model in a round.
    pub fit: Fitting,
    /// That of a silo that is alone in its coalition, where models have exact fits: around 0 and not around its last
    /// fit, which would wear its ridge down, round by round.
    pub alone: Fitting,
    /// Rounds before coalitions are first formed, in which all silos train one model together; by
    /// default 0 for learners with exact fits, otherwise 2, because the mean of networks that were
    /// trained apart from their start is poor.
    pub warm_up: Option<u64>,
    /// Folds of cross-fitting, at least 2; a silo with fewer rows takes a fold for every row.
    pub folds: usize,
    /// Pairs of rounds that form coalitions anew; 0: all.
    pub freeze: u64,
    /// Rule in the place of the mean in a coalition.
    pub rule: Aggregation,
    /// True if a model counts by its training rows in a mean; otherwise all models count alike.
    pub by_rows: bool,
}

/// In the state: rounds before coalitions are first formed, where the strategy does not say.
const WARM_UP: &str = "coalitions.warm-up";

/// Number of these rounds for learners without exact fits.
const WARM_UP_ROUNDS: u64 = 2;

/// Purpose of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AutoPhase {
    /// All silos train one model.
    Together,
    /// Models are trained, scored, and grouped into every number of coalitions.
    Form,
    /// The groupings are measured, and one is taken.
    Measure,
    /// Coalitions train as they are.
    Keep,
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

impl AutoCsRcfl {
    /// Returns what a round is for, given the state before it.
    pub(super) fn phase(&self, state: &State, round: u64) -> AutoPhase {
        let warm_up = self.warm_up.or_else(|| state.memory.count(WARM_UP));
        self.phase_after(warm_up.unwrap_or(0), round)
    }

    fn phase_after(&self, warm_up: u64, round: u64) -> AutoPhase {
        let Some(round) = round.checked_sub(warm_up).filter(|&round| round > 0) else {
            return AutoPhase::Together;
        };
        match (self.freeze > 0 && round > 2 * self.freeze, round % 2) {
            (true, _) => AutoPhase::Keep,
            (false, 1) => AutoPhase::Form,
            (false, _) => AutoPhase::Measure,
        }
    }

    /// Returns whether silos have exact fits, where the [rounds of one model for all](Self::warm_up) follow from that.
    fn fits_exactly(&self, state: &State) -> bool {
        self.warm_up.is_none() && state.memory.count(WARM_UP).is_none()
    }

    /// Returns whether the silo of this coalition keeps to its exact fit, because it is alone.
    pub(super) fn fits_alone(&self, state: &State, round: u64, coalition: u32) -> bool {
        self.phase(state, round) == AutoPhase::Keep && formed::is_alone(state, coalition)
    }

    /// Returns what keeps coalitions as they are, in every round after the first.
    fn kept(&self) -> CsRcfl {
        CsRcfl {
            fit: self.fit.clone(),
            coalitions: 1,
            gap: 1.0,
            freeze: 1,
            rule: self.rule.clone(),
        }
    }

    /// Returns what every silo leaves to the round that measures: its local model, and these candidates.
    pub(super) fn leave(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
    ) -> Outcome {
        Outcome {
            assignment: decision.assignment.clone(),
            state: formed::leave(state, manifest, candidates(decision), self.by_rows),
        }
    }

    /// The grouping of least reported loss, the sum of these losses, and the coalition of every
    /// entry.
    fn measured<'a>(
        &self,
        state: &'a State,
        manifest: &LoadedManifest,
    ) -> Result<MeasuredRound<'a>, DecideError> {
        manifest.not_empty()?;
        let formed = Formed::read(state).ok_or(DecideError::NoScores)?;
        let mut sums = vec![0f64; formed.candidates.len()];
        let mut reported = Vec::with_capacity(manifest.entries.len());
        let mut places = Vec::with_capacity(manifest.entries.len());
        for (at, entry) in manifest.entries.iter().enumerate() {
            let unusable = |reason: &str| DecideError::Unusable {
                entry: at,
                reason: reason.into(),
            };
            let own = entry.coalition.map(|own| own as usize);
            let own = own.filter(|&own| own < formed.models.len());
            places.push(own.ok_or_else(|| unusable("it names no model that it measured with"))?);
            let losses = entry.model.tensor(LOSSES).unwrap_or_default();
            if losses.len() < sums.len() {
                return Err(unusable("it does not report a loss for every grouping"));
            }
            for (sum, &loss) in sums.iter_mut().zip(losses) {
                *sum += f64::from(loss);
            }
            reported.push(&losses[..sums.len()]);
        }
        let least = choice::least(&sums).expect("there is at least one candidate");
        let chosen = preferred(&reported, least);
        let grouping = formed.candidates[chosen].clone();
        Ok(MeasuredRound {
            assignment: places.iter().map(|&own| grouping[own]).collect(),
            grouping,
            models: formed.models.iter().zip(formed.weights).collect(),
            loss: sums[chosen],
        })
    }

    /// Returns what the silo's fold models make of its own rows.
    fn held_out(
        &self,
        plan: &Plan,
        participant: Participant<'_>,
        start: &Params,
        progress: &mut Watch<'_>,
    ) -> Result<FoldModels, LearnError> {
        FoldModels::fit(
            participant,
            start,
            &self.fit.of(&plan.task, participant.learner),
            self.folds,
            progress,
        )
    }
}

/// Result of a measuring round.
struct MeasuredRound<'a> {
    /// The coalition of every entry of this round.
    assignment: Vec<u32>,
    /// The coalition of every model of the round before.
    grouping: Vec<u32>,
    /// These models, and what each counts in a mean.
    models: Vec<(&'a Params, f64)>,
    /// Sum of the losses that were reported for it.
    loss: f64,
}

impl Strategy for AutoCsRcfl {
    fn name(&self) -> &'static str {
        "cs-rcfl"
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        learner.row_access()?;
        Ok(learner)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.fit.suits(learner)?;
        Ok(radius.suits(learner)?)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        let mut state = State::genesis(learner.initial(seed));
        if self.warm_up.is_none() && !learner.has(Capability::ExactFits) {
            state.memory.insert(WARM_UP, Kept::Count(WARM_UP_ROUNDS));
        }
        state
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            cross_evaluate: self.phase(state, round) == AutoPhase::Form,
            weights: self.by_rows,
            // To measure, folds are trained in the same way.
            ..Plan::everyone(state, self.fit.task())
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        if self.phase(state, round) != AutoPhase::Measure {
            let start = participant.start(state)?;
            let fit = match self.fits_alone(state, round, participant.coalition) {
                true => &self.alone,
                false => &self.fit,
            };
            let fit = fit.of(&plan.task, participant.learner);
            let update = fit.update(participant, start, progress)?;
            return Ok((participant.coalition, update));
        }
        let Participant {
            learner, personal, ..
        } = participant;
        let own = participant.coalition as usize;
        let formed = Formed::read(state).filter(|formed| own < formed.models.len());
        let formed = formed
            .ok_or_else(|| LearnError::Failed("there are no coalitions to be measured".into()))?;
        let start = formed.starts[own];
        // Of networks only a bound of the robust loss is known. It falls where unlike networks are
        // averaged, because their weights cancel, and would reward just that.
        let radius = if learner.has(Capability::ExactFits) {
            participant.radius.get(learner, start, personal)?
        } else {
            0.0
        };
        let held_out = self.held_out(plan, participant, start, progress)?;
        let own = reported(&formed, own, (&held_out, radius), |members| {
            combined(&self.rule, members).map_err(|error| LearnError::Failed(error.to_string()))
        })?;
        let mut losses = vec![0f32; MOST + 1];
        let places = losses.iter_mut().zip(&own);
        places.for_each(|(place, own)| *place = *own as f32);
        // Silos alone are the last candidate.
        let alone = own.last().copied().unwrap_or(0.0);
        let samples = learner.samples();
        let update = Update {
            shared: Params::from_values(&report(), &losses),
            personal: personal.clone(),
            samples,
            metrics: Metrics {
                samples,
                values: [("loss".to_owned(), alone)].into(),
            },
        };
        Ok((participant.coalition, update))
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        _: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        if !scored.own {
            return participant.robust_loss(scored);
        }
        let (learner, personal) = (participant.learner, scored.personal);
        let radius = participant.radius.get(learner, scored.model, personal)?;
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let held_out = self.held_out(plan, participant, participant.start(state)?, go_on)?;
        let loss = |radius| held_out.own_loss(radius);
        if learner.has(Capability::ExactFits) {
            return loss(radius);
        }
        // The bound for networks grows with every step of training, and models without a fold took
        // fewer. So that the local model is not preferred for that, it keeps what the radius adds to it.
        let own = |radius| learner.loss(scored.model, personal, radius, Split::Train);
        Ok(loss(0.0)? + (own(radius)? - own(0.0)?).max(0.0))
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        _: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        match self.phase(state, round) {
            AutoPhase::Measure => report(),
            AutoPhase::Together | AutoPhase::Form | AutoPhase::Keep => model.clone(),
        }
    }

    fn layouts(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        vec![model.clone(), report()]
    }

    fn admit(&self, entry: &ModelEntry, _: u64) -> Result<(), String> {
        entry.admit_rows(self.by_rows)?;
        // The layout that a round expects says which it is.
        if **entry.model.layout() != *report() {
            return Ok(());
        }
        if entry.coalition.is_none() {
            return Err("the report names no model that it measured".into());
        }
        let mut losses = entry.model.values().iter();
        let real = losses.all(|loss| loss.is_finite() && *loss >= 0.0);
        let why = "the report holds a loss that is not finite, or below 0";
        real.then_some(()).ok_or_else(|| why.into())
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        match self.phase(state, round) {
            AutoPhase::Together => {
                manifest.not_empty()?;
                Ok(Decision::fixed(vec![0; manifest.entries.len()]))
            }
            AutoPhase::Keep => self.kept().decide(state, manifest, round),
            AutoPhase::Measure => {
                let measured = self.measured(state, manifest)?;
                Ok(Decision {
                    assignment: measured.assignment,
                    claim: Some(Claim {
                        objective: measured.loss,
                        lower_bound: measured.loss,
                        candidates: Vec::new(),
                        proof: None,
                    }),
                })
            }
            AutoPhase::Form => {
                let found = numbers::solve(manifest.require_scores()?, round);
                Ok(Decision {
                    assignment: (0..manifest.entries.len() as u32).collect(),
                    claim: Some(Claim {
                        objective: mean(found.iter().map(|solution| solution.objective)),
                        lower_bound: mean(found.iter().map(|solution| solution.lower_bound)),
                        candidates: found.into_iter().map(|found| found.assignment).collect(),
                        proof: None,
                    }),
                })
            }
        }
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        match self.phase(state, round) {
            AutoPhase::Together => {
                let all = vec![0; manifest.entries.len()];
                decision.must_be_fixed(&all, "all train one model")
            }
            AutoPhase::Keep => self.kept().check(state, manifest, decision, round),
            AutoPhase::Measure => {
                let expected = self.decide(state, manifest, round)?;
                if *decision != expected {
                    let why = "the grouping of least reported loss is to be taken";
                    return Err(Objection::Infeasible(why.into()));
                }
                Ok(())
            }
            AutoPhase::Form => {
                let claim = decision.claimed()?;
                let programs = feasible(manifest, decision)?;
                let programs = programs.map_err(Objection::Infeasible)?;
                let cases: Vec<_> = programs.iter().zip(&claim.candidates).collect();
                let audit =
                    |(program, grouping): &(&CoalitionProgram, &Vec<u32>)| program.audit(grouping);
                let audits: Vec<_> = cases.par_iter().map(audit).collect();
                for ((program, grouping), audit) in cases.iter().zip(&audits) {
                    if audit.assignment != **grouping {
                        return Err(Objection::NotBest {
                            proposed: program.objective(grouping),
                            found: audit.objective,
                        });
                    }
                }
                // All programs are about the same losses and tolerate the same rounding.
                let same = |a: f64, b: f64| programs[0].same(a, b);
                let actual = mean(audits.iter().map(|audit| audit.objective));
                if !same(claim.objective, actual) {
                    return Err(Objection::objective(claim.objective, actual));
                }
                let claimed = claim.lower_bound;
                let confirmed = mean(audits.iter().map(|audit| audit.lower_bound));
                if !claimed.is_finite() || (claimed > confirmed && !same(claimed, confirmed)) {
                    return Err(Objection::lower_bound(claimed, confirmed));
                }
                Ok(())
            }
        }
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        match self.phase(state, round) {
            AutoPhase::Together => {
                let all = vec![0; manifest.entries.len()];
                if decision.assignment != all {
                    return Err(SettleError::Infeasible("all train one model".into()));
                }
                let weight = |entry: &ModelEntry| entry.share(self.by_rows);
                let models = coalition_means(&self.rule, manifest, &all, &[], 1, weight)?;
                Ok(Outcome {
                    assignment: all,
                    state: state.with(models),
                })
            }
            AutoPhase::Keep => {
                let (own, before) = (&decision.assignment, &state.models);
                let weight = |entry: &ModelEntry| entry.share(self.by_rows);
                let models =
                    coalition_means(&self.rule, manifest, own, before, before.len(), weight)?;
                Ok(Outcome {
                    assignment: own.clone(),
                    state: state.with(models),
                })
            }
            AutoPhase::Form => {
                feasible(manifest, decision)?.map_err(SettleError::Infeasible)?;
                Ok(self.leave(state, manifest, decision))
            }
            AutoPhase::Measure => {
                manifest.fits(&decision.assignment)?;
                let measured = self.measured(state, manifest)?;
                if decision.assignment != measured.assignment {
                    let why = "the grouping of least reported loss is to be taken";
                    return Err(SettleError::Infeasible(why.into()));
                }
                let coalitions = measured.grouping.iter().max().map_or(0, |&last| last + 1);
                let model = |coalition: u32| {
                    let entries = measured.grouping.iter().zip(measured.models.iter());
                    let members = entries.filter(|(own, _)| **own == coalition);
                    let members: Vec<_> = members.map(|(_, &model)| model).collect();
                    combined(&self.rule, &members)
                };
                let models = (0..coalitions).map(model).collect::<Result<_, _>>()?;
                let mut after = formed::forget(state.with(models));
                if self.fits_exactly(state) {
                    formed::keep_silos(&mut after, &measured.grouping);
                }
                Ok(Outcome {
                    assignment: measured.assignment,
                    state: after,
                })
            }
        }
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        let keeps = |warm_up| {
            let phase = self.phase_after(warm_up, round);
            matches!(phase, AutoPhase::Together | AutoPhase::Keep)
        };
        match self.warm_up {
            Some(warm_up) => keeps(warm_up),
            // Whatever the state says.
            None => keeps(0) && keeps(WARM_UP_ROUNDS),
        }
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        self.kept().unseen(state, round, newcomer)
    }
}

/// The groupings that a decision leaves to the next round.
fn candidates(decision: &Decision) -> &[Vec<u32>] {
    let claim = decision.claim.as_ref();
    claim.map_or(&[], |claim| &claim.candidates)
}

/// The programs of a decision's groupings, if every entry keeps its local model and the groupings are
/// into numbers of coalitions that may be tried.
fn feasible(
    manifest: &LoadedManifest,
    decision: &Decision,
) -> Result<Result<Vec<CoalitionProgram>, String>, DecideError> {
    let scores = manifest.require_scores()?;
    let own = (0..manifest.entries.len() as u32).eq(decision.assignment.iter().copied());
    let programs = numbers::programs(scores, candidates(decision)).filter(|_| own);
    Ok(programs.ok_or_else(|| {
        format!(
            "expected {0} entries that keep their local models, with groupings of them into at most \
             {1} numbers of coalitions, ascending, among them {2:?}, each numbered in the order of \
             its first entries",
            manifest.entries.len(),
            MOST + 1,
            numbers::grid(manifest.entries.len()),
        )
    }))
}
