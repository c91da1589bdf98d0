//! The references that a federation is compared with: averages of other kinds over the same silos.
//!
//! They are computed round by round without a protocol, because what counts is only what healthy
//! members would agree on.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::learner::Update;
use methods::serving::{Alone, Effort, WORK};
use methods::strategy::{
    Averaging, INTERCEPT, Method, ModelEntry, Participant, Sheet, StrategyConfig, WeightRule,
};
use methods::{Params, Strategy};
use std::ops::ControlFlow;

use crate::participation::Participation;
use crate::summary::ModelKind;
use simulations::Federation;
use simulations::RunError;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

/// The references, and how much is tried for the models that silos train alone.
#[derive(Default)]
pub(crate) struct References {
    /// Whether there are any.
    pub(crate) wanted: bool,
    /// Which of them the federation's strategy is itself.
    pub(crate) itself: Option<ModelKind>,
    /// What every average reached.
    pub(crate) reached: BTreeMap<ModelKind, Reached>,
    /// Why one failed.
    pub(crate) failed: BTreeMap<ModelKind, String>,
    /// What was left out, one sentence each without a full stop.
    pub(crate) notes: Vec<String>,
}

/// What an average reached after the last round.
pub(crate) struct Reached {
    /// Equips silos for it.
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) model: Params,
    /// What every member keeps.
    pub(crate) personal: Vec<Params>,
}

impl References {
    /// Computes the averages: by rows and with equal weights, unless the federation is that itself,
    /// and with an intercept of its own for every silo. Above [`WORK`] only the first.
    pub(crate) fn compute(
        scenario: &Scenario,
        participation: &Participation,
        threads: &Arc<Threads>,
    ) -> Result<Self, RunError> {
        let strategy = &scenario.strategy;
        let mut all = Self {
            wanted: true,
            ..Self::default()
        };
        let average = |weight, personal: &[&str]| StrategyConfig {
            standardise: strategy.standardise,
            personal: personal.iter().map(|&name| name.to_owned()).collect(),
            ..StrategyConfig::new(
                Method::FedAvg(Averaging { weight }),
                strategy.training.clone(),
            )
        };
        let wanted = [
            (ModelKind::Global, average(WeightRule::Exact, &[])),
            (ModelKind::GlobalEqual, average(WeightRule::Equal, &[])),
            (
                ModelKind::OwnIntercept,
                average(WeightRule::Exact, &[INTERCEPT]),
            ),
        ];
        let study = &participation.study;
        for (kind, config) in wanted {
            if config == *strategy {
                all.itself = Some(kind);
                continue;
            }
            let federation = match Federation::new(scenario, study, &config, &[]) {
                Ok(federation) => federation,
                // A model may have no intercept, or nothing else.
                Err(_) if kind == ModelKind::OwnIntercept => continue,
                Err(error) => return Err(error),
            };
            if kind != ModelKind::Global && work(scenario, &federation) > WORK {
                all.notes.push(format!(
                    "{} is not among the references: the work of one training at all silos is more \
                     than {WORK:.0e} parameters × rows × epochs",
                    kind.words()
                ));
                continue;
            }
            match rounds(scenario, &federation, threads) {
                Ok(reached) => drop(all.reached.insert(kind, reached)),
                Err(reason) => drop(all.failed.insert(kind, reason)),
            }
        }
        Ok(all)
    }
}

/// The work of one training alone at all members.
fn work(scenario: &Scenario, federation: &Federation) -> f64 {
    let each = federation.members.iter().map(|member| {
        let learner = &*member.learner;
        let alone = Alone {
            start: learner.initial(member.initial_seed),
            initial: member.initial_seed,
            task: methods::learner::Task::Train(scenario.strategy.training.clone()),
            seed: member.seed,
            rounds: 1..=scenario.rounds,
        };
        Effort::work(learner, &alone)
    });
    each.sum()
}

/// All rounds of a federation whose members are healthy and do not cross-evaluate. The reason where
/// too many of them cannot train.
fn rounds(
    scenario: &Scenario,
    federation: &Federation,
    threads: &Arc<Threads>,
) -> Result<Reached, String> {
    let members = &federation.members;
    let (strategy, initial) = (members[0].strategy.clone(), members[0].initial_seed);
    let least = scenario.charter.min_contributions_for(members.len());
    let mut state = Arc::new(strategy.initial_state(&*members[0].learner, initial));
    let own = members
        .iter()
        .map(|member| member.learner.initial_personal(initial));
    let mut personal: Vec<Params> = own.collect();
    for round in 1..=scenario.rounds {
        let plan = strategy.plan(&state, round);
        let jobs = members.iter().zip(&personal).map(|(member, personal)| {
            let (learner, strategy) = (member.learner.clone(), strategy.clone());
            let (state, plan, personal) = (state.clone(), plan.clone(), personal.clone());
            let (radius, seed, me) = (member.radius.clone(), member.seed, member.member.me.0);
            move || {
                let participant = Participant {
                    member: me,
                    coalition: 0,
                    learner: &*learner,
                    personal: &personal,
                    radius: &radius,
                    seed: learner.seed(seed, round),
                };
                let go_on = &mut |_| ControlFlow::Continue(());
                strategy.contribute(&state, &plan, round, participant, go_on)
            }
        });
        let mut entries = Vec::new();
        let mut failed = None;
        let updates = threads.all(jobs.collect::<Vec<_>>())?;
        for (personal, contributed) in personal.iter_mut().zip(updates) {
            let (coalition, update): (u32, Update) = match contributed {
                Ok(contributed) => contributed,
                Err(error) => {
                    failed = Some(error);
                    continue;
                }
            };
            *personal = update.personal;
            entries.push(ModelEntry {
                model: update.shared,
                coalition: Some(coalition),
                weight: plan.weights.then_some(update.samples),
                member: None,
            });
        }
        if let Some(error) = failed.filter(|_| entries.len() < least as usize) {
            return Err(format!("in round {round}: {error}"));
        }
        let sheet = Sheet {
            entries,
            scores: None,
        };
        let decision = strategy.decide(&state, &sheet, round);
        let decision = decision.map_err(|error| format!("in round {round}: {error}"))?;
        let outcome = strategy.settle(&state, &sheet, &decision, round);
        let outcome = outcome.map_err(|error| format!("in round {round}: {error}"))?;
        state = Arc::new(outcome.state);
    }
    let model = state.models.first().ok_or("there is no model")?.clone();
    Ok(Reached {
        strategy,
        model,
        personal,
    })
}
