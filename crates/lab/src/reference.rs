//! The references that a federation is compared with: averages of other kinds over the same silos.
//!
//! They are federations without messages, because what counts is only what healthy members would agree on.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::serving::{Alone, Effort, WORK};
use methods::strategy::{FedAvgOptions, INTERCEPT, Method, StrategyConfig, WeightRule};
use methods::{Params, Strategy};

use crate::participation::ParticipatingSilos;
use crate::summary::{ModelKind, adopted_models, last_adopted};
use simulations::pool::Threads;
use simulations::scenario::Scenario;
use simulations::{Federation, Options, RunError, Surrounding, federate};

/// The references, and how much is tried for the models that silos train alone.
#[derive(Default)]
pub(crate) struct References {
    /// True if there are any.
    pub(crate) wanted: bool,
    /// The reference that the federation's strategy is itself, if it is one.
    pub(crate) itself: Option<ModelKind>,
    /// Results of every average.
    pub(crate) reached: BTreeMap<ModelKind, Reached>,
    /// Reasons of those that failed.
    pub(crate) failed: BTreeMap<ModelKind, String>,
    /// Remarks on references that were left out, one sentence each without a full stop.
    pub(crate) notes: Vec<String>,
}

/// Result of an average after the last round.
pub(crate) struct Reached {
    /// Equips silos for it.
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) model: Params,
    /// Personal parameters of every member.
    pub(crate) personal: Vec<Params>,
}

impl References {
    /// Computes the averages: by rows and with equal weights, unless the federation is that itself,
    /// and with an intercept of its own for every silo. Above [`WORK`] only the first.
    pub(crate) fn compute(
        scenario: &Scenario,
        participation: &ParticipatingSilos,
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
                Method::FedAvg(FedAvgOptions::weighing(weight)),
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
        // They are what the laboratory can compute, not what members would see.
        let scenario = &Scenario {
            privacy: None,
            ..scenario.clone()
        };
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

/// Returns what a federation of healthy members reaches after all rounds. The reason where too many of them
/// cannot train.
fn rounds(
    scenario: &Scenario,
    federation: &Federation,
    threads: &Arc<Threads>,
) -> Result<Reached, String> {
    let mut options = Options {
        surrounding: Surrounding::Direct,
        ..Options::default()
    };
    let recorded = federate(scenario, federation, &[], &mut options, threads);
    let recorded = recorded.map_err(|error| match error {
        RunError::Training { round, reason, .. } => format!("in round {round}: {reason}"),
        RunError::Round { round, what } => format!("in round {round}: {what}"),
        other => format!("({other})"),
    })?;
    let adopted = adopted_models(&recorded.notices);
    let last = last_adopted(&adopted, federation.members.len());
    let personal = last.iter().flatten().map(|own| own.model.1.clone());
    let first = last.iter().flatten().next().ok_or("there is no model")?;
    Ok(Reached {
        strategy: federation.members[0].strategy.clone(),
        model: first.model.0.clone(),
        personal: personal.collect(),
    })
}
