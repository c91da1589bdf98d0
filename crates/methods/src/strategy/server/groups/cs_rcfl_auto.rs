//! CS-RCFL (Konti et al. 2024) where nobody says how many coalitions there are.
//!
//! By the losses that form them, more coalitions never cost more, since every silo's own model is
//! the best on the rows that it was fitted to. What tells is rows that models have not seen, in
//! two rounds. In the first every silo scores all models, its own by cross-fitting, and the lead
//! divides the entries into 1, 2, … coalitions. In the second every silo reports what the mean
//! models of its coalitions lose on its rows, its own part of each mean fitted without these rows;
//! the division of least loss is taken.

mod formed;
mod held_out;

use std::sync::Arc;

use rayon::prelude::*;

use crate::aggregation::Aggregation;
use crate::coalitions::{Program, choice};
use crate::learner::{LearnError, Learner, Metrics, Task, Training, Update};
use crate::params::{Layout, Params};
use crate::strategy::participant::{begin_and_train, robust_loss};
use crate::strategy::server::groups::cs_rcfl::{CsRcfl, scores_of};
use crate::strategy::server::means::{combined, fits};
use crate::strategy::{
    DecideError, Decision, Entry, EquipError, Newcomer, Objection, Outcome, OwnRadius, Plan,
    Scored, SettleError, Sheet, Site, State, Strategy, Watch,
};

use formed::{Formed, LOSSES, report};
use held_out::HeldOut;

/// Numbers of coalitions that are tried one by one; beyond, only everybody alone.
pub const MOST: usize = 32;

/// CS-RCFL that finds the number of coalitions. Coalitions are formed in pairs of rounds: in the
/// odd ones everybody keeps the model it trained, in the even ones nobody trains for others.
#[derive(Debug, Clone)]
pub struct AutoCsRcfl {
    /// What a member does in a round.
    pub training: Training,
    /// Folds of cross-fitting, at least 2; a silo with fewer rows takes a fold for every row.
    pub folds: usize,
    /// Pairs of rounds that form coalitions anew; 0: all.
    pub freeze: u64,
    /// What takes the place of the mean in a coalition.
    pub rule: Aggregation,
}

/// What a round is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Models are trained, scored, and divided into every number of coalitions.
    Form,
    /// The divisions are measured, and one is taken.
    Measure,
    /// Coalitions train as they are.
    Keep,
}

/// The numbers of coalitions that are tried with so many entries.
fn numbers(entries: usize) -> Vec<usize> {
    let most = (entries > MOST).then_some(entries);
    (1..=entries.min(MOST)).chain(most).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

impl AutoCsRcfl {
    fn phase(&self, round: u64) -> Phase {
        match (self.freeze > 0 && round > 2 * self.freeze, round % 2) {
            (true, _) => Phase::Keep,
            (false, 1) => Phase::Form,
            (false, _) => Phase::Measure,
        }
    }

    /// What keeps coalitions as they are, in every round after the first.
    fn kept(&self) -> CsRcfl {
        CsRcfl {
            training: self.training.clone(),
            coalitions: 1,
            freeze: 1,
            rule: self.rule.clone(),
        }
    }

    /// The division of least reported loss, the sum of these losses, and the coalition of every
    /// entry.
    fn measured(&self, state: &State, sheet: &Sheet) -> Result<Measured, DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        let formed = Formed::read(state).ok_or(DecideError::NoScores)?;
        let mut sums = vec![0f64; formed.candidates.len()];
        let mut places = Vec::with_capacity(sheet.entries.len());
        for (at, entry) in sheet.entries.iter().enumerate() {
            let unusable = |reason: &str| DecideError::Unusable {
                entry: at,
                reason: reason.into(),
            };
            let own = entry.coalition.map(|own| own as usize);
            let own = own.filter(|&own| own < formed.models.len());
            places.push(own.ok_or_else(|| unusable("it names no model that it measured with"))?);
            let losses = entry.model.tensor(LOSSES).unwrap_or_default();
            if losses.len() < sums.len() {
                return Err(unusable("it does not report a loss for every division"));
            }
            for (sum, &loss) in sums.iter_mut().zip(losses) {
                *sum += f64::from(loss);
            }
        }
        let chosen = choice::least(&sums).expect("there is at least one candidate");
        let division = formed.candidates[chosen].clone();
        Ok(Measured {
            assignment: places.iter().map(|&own| division[own]).collect(),
            division,
            loss: sums[chosen],
        })
    }

    /// What the silo's fold models make of its own rows.
    fn held_out(
        &self,
        site: Site<'_>,
        start: &Params,
        progress: &mut Watch<'_>,
    ) -> Result<HeldOut, LearnError> {
        HeldOut::fit(site, start, &self.training, self.folds, progress)
    }
}

/// What a measuring round comes to.
struct Measured {
    /// The coalition of every entry of this round.
    assignment: Vec<u32>,
    /// The coalition of every model of the round before.
    division: Vec<u32>,
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
        Ok(radius.suits(learner)?)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            // To measure, folds are trained in the same way.
            task: Task::Train(self.training.clone()),
            cross_evaluate: self.phase(round) == Phase::Form,
            weights: false,
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        site: Site<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        if self.phase(round) != Phase::Measure {
            return begin_and_train(self, state, plan, round, site, progress);
        }
        let place = site.place;
        let own = place.coalition as usize;
        let formed = Formed::read(state).filter(|formed| own < formed.models.len());
        let formed = formed
            .ok_or_else(|| LearnError::Failed("there are no coalitions to be measured".into()))?;
        let start = formed.starts[own];
        let radius = site.radius.get(place.learner, start, place.personal)?;
        let held_out = self.held_out(site, start, progress)?;
        let mut known: Vec<(Vec<usize>, f64)> = Vec::new();
        let mut losses = vec![0f32; MOST + 1];
        for (loss, division) in losses.iter_mut().zip(&formed.candidates) {
            let members = formed::coalition(division, own);
            let before = known.iter().find(|(known, _)| *known == members);
            let value = match before {
                Some((_, value)) => *value,
                None => held_out.loss(radius, |fold| {
                    let part = |&member: &usize| match member == own {
                        true => (fold, 1.0),
                        false => (&formed.models[member], 1.0),
                    };
                    combined(&self.rule, &members.iter().map(part).collect::<Vec<_>>())
                        .map_err(|error| LearnError::Failed(error.to_string()))
                })?,
            };
            *loss = value as f32;
            known.push((members, value));
        }
        let alone = known.last().map_or(0.0, |(_, value)| *value);
        let samples = place.learner.samples();
        let update = Update {
            shared: Params::from_values(&report(), &losses),
            personal: place.personal.clone(),
            samples,
            metrics: Metrics {
                samples,
                values: [("loss".to_owned(), alone)].into(),
            },
        };
        Ok((place.coalition, update))
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        site: Site<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        if !scored.own {
            return robust_loss(site, scored);
        }
        let (place, personal) = (site.place, scored.personal);
        let radius = site.radius.get(place.learner, scored.model, personal)?;
        let start = self.start(state, plan, round, place)?;
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let held_out = self.held_out(site, &start.model, go_on)?;
        held_out.loss(radius, |fold| Ok(fold.clone()))
    }

    fn expects(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>, round: u64) -> Arc<Layout> {
        match self.phase(round) {
            Phase::Measure => report(),
            Phase::Form | Phase::Keep => model.clone(),
        }
    }

    fn admit(&self, entry: &Entry, round: u64) -> Result<(), String> {
        if self.phase(round) != Phase::Measure {
            return Ok(());
        }
        if entry.coalition.is_none() {
            return Err("the report does not say which model it is about".into());
        }
        let mut losses = entry.model.values().iter();
        let real = losses.all(|loss| loss.is_finite() && *loss >= 0.0);
        let why = "the report holds a loss that is not finite, or below 0";
        real.then_some(()).ok_or_else(|| why.into())
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        match self.phase(round) {
            Phase::Keep => self.kept().decide(state, sheet, round),
            Phase::Measure => {
                let measured = self.measured(state, sheet)?;
                Ok(Decision {
                    assignment: measured.assignment,
                    objective: measured.loss,
                    lower_bound: measured.loss,
                    ..Decision::default()
                })
            }
            Phase::Form => {
                let programs = programs(sheet)?;
                let solve = |program: &Program| program.solve(round);
                let found: Vec<_> = programs.par_iter().map(solve).collect();
                Ok(Decision {
                    assignment: (0..sheet.entries.len() as u32).collect(),
                    objective: mean(found.iter().map(|solution| solution.objective)),
                    lower_bound: mean(found.iter().map(|solution| solution.lower_bound)),
                    candidates: found.into_iter().map(|found| found.assignment).collect(),
                })
            }
        }
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        match self.phase(round) {
            Phase::Keep => self.kept().check(state, sheet, decision, round),
            Phase::Measure => {
                let expected = self.decide(state, sheet, round)?;
                if *decision != expected {
                    let why = "the division of least reported loss is to be taken";
                    return Err(Objection::Infeasible(why.into()));
                }
                Ok(())
            }
            Phase::Form => {
                let programs = programs(sheet)?;
                feasible(sheet, decision, &programs).map_err(Objection::Infeasible)?;
                let cases: Vec<_> = programs.iter().zip(&decision.candidates).collect();
                let audit = |(program, division): &(&Program, &Vec<u32>)| program.audit(division);
                let audits: Vec<_> = cases.par_iter().map(audit).collect();
                for ((program, division), audit) in cases.iter().zip(&audits) {
                    if audit.assignment != **division {
                        return Err(Objection::NotBest {
                            proposed: program.objective(division),
                            found: audit.objective,
                        });
                    }
                }
                // All programs are about the same losses, so any of them knows what rounding is.
                let same = |a: f64, b: f64| programs[0].same(a, b);
                let (stated, actual) = (
                    decision.objective,
                    mean(audits.iter().map(|audit| audit.objective)),
                );
                if !same(stated, actual) {
                    return Err(Objection::Misstated { stated, actual });
                }
                let (stated, actual) = (
                    decision.lower_bound,
                    mean(audits.iter().map(|audit| audit.lower_bound)),
                );
                if !stated.is_finite() || (stated > actual && !same(stated, actual)) {
                    return Err(Objection::Misstated { stated, actual });
                }
                Ok(())
            }
        }
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        match self.phase(round) {
            Phase::Keep => self.kept().settle(state, sheet, decision, round),
            Phase::Form => {
                let programs = programs(sheet)?;
                feasible(sheet, decision, &programs).map_err(SettleError::Infeasible)?;
                let after = formed::leave(state, sheet, &decision.candidates);
                Ok(Outcome {
                    assignment: decision.assignment.clone(),
                    state: after,
                })
            }
            Phase::Measure => {
                fits(sheet, &decision.assignment)?;
                let measured = self.measured(state, sheet)?;
                if decision.assignment != measured.assignment {
                    let why = "the division of least reported loss is to be taken";
                    return Err(SettleError::Infeasible(why.into()));
                }
                let coalitions = measured.division.iter().max().map_or(0, |&last| last + 1);
                let model = |coalition: u32| {
                    let entries = state.models.iter().zip(&measured.division);
                    let members = entries.filter(|(_, own)| **own == coalition);
                    let members: Vec<_> = members.map(|(model, _)| (model, 1.0)).collect();
                    combined(&self.rule, &members)
                };
                let models = (0..coalitions).map(model).collect::<Result<_, _>>()?;
                let after = formed::forget(state.with(models));
                Ok(Outcome {
                    assignment: measured.assignment,
                    state: after,
                })
            }
        }
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.phase(round) == Phase::Keep
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

/// The program for every number of coalitions that is tried.
fn programs(sheet: &Sheet) -> Result<Vec<Program>, DecideError> {
    let scores = scores_of(sheet)?;
    let program = |&coalitions: &usize| {
        Program::new(scores, coalitions).expect("from one coalition to one per entry")
    };
    Ok(numbers(scores.len()).iter().map(program).collect())
}

/// Whether everybody keeps the own model, and there is a division for every program.
fn feasible(sheet: &Sheet, decision: &Decision, programs: &[Program]) -> Result<(), String> {
    let own = (0..sheet.entries.len() as u32).eq(decision.assignment.iter().copied());
    let as_many = decision.candidates.len() == programs.len();
    let mut pairs = programs.iter().zip(&decision.candidates);
    if own && as_many && pairs.all(|(program, division)| program.is_canonical(division)) {
        return Ok(());
    }
    Err(format!(
        "{} entries have to keep their own models, and be divided into every number of coalitions \
         up to {MOST} and into one for each, numbered in the order of their first entries",
        sheet.entries.len()
    ))
}
