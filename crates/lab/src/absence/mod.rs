//! The attack by absence: what two sums tell that differ by one institution.
//!
//! Near convergence models hardly change from round to round. So the sum of all updates of a round, less the
//! sum of the next round without one institution, is nearly the update of that institution. A lead could
//! force the absence. Secure-aggregation rounds open sums of one and the same set of authors only (rule M3 of the
//! protocol); this measures what they would tell without that rule, and what they tell with it. Where sums have
//! noise, they differ by their authors, and this measures what the noise leaves of such a difference. On the
//! rounds that a node has kept it looks for sums that differ by their authors.

mod kept;
mod noised;

pub use kept::{AbsencePair, KeptAbsence, kept};
pub use noised::{AbsentSilo, NoisedAbsence, noised};

use methods::Params;
use methods::params::Gate;
use methods::strategy::{FedAvgOptions, Method, StrategyConfig, WeightRule};
use serde::Serialize;
use simulations::pool::Threads;
use simulations::{Contributions, Federation, Options, RunError, Scenario, Surrounding, federate};

use crate::run::study;
use crate::summary::adopted_models;

/// Information in the sums of a federation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct AbsenceAttack {
    /// Name of the scenario.
    pub scenario: String,
    /// The institutions.
    pub silos: Vec<String>,
    /// All rounds but the first, whose start no round gives, and the last, in order.
    pub rounds: Vec<AbsenceRound>,
}

/// Information in the sums of a round and of the next one about single updates of the round. All numbers are
/// cosines, from -1 to 1: at 1 the update is known but for its length.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct AbsenceRound {
    /// The round, from 1.
    pub round: u64,
    /// For each institution: the sum of all, less the next sum without it, against its update.
    pub without: Vec<f64>,
    /// The same where the next sum has all authors too, as secure-aggregation rounds demand.
    pub with_all: Vec<f64>,
    /// For each institution: the sum of all alone against its update. Masks do not hide this.
    pub sum: Vec<f64>,
}

/// Runs the scenario's task with FedAvg and equal weights, of which all sums are known, and measures them.
///
/// # Errors
/// [`RunError`]: as for [`run`](crate::run).
pub fn absence(scenario: &Scenario, options: Options<'_>) -> Result<AbsenceAttack, RunError> {
    let method = Method::FedAvg(FedAvgOptions::weighing(WeightRule::Equal));
    let before = &scenario.strategy;
    let scenario = Scenario {
        strategy: StrategyConfig {
            standardise: before.standardise,
            ..StrategyConfig::new(method, before.training.clone())
        },
        privacy: None,
        faults: Vec::new(),
        ..scenario.clone()
    };
    let study = study(&scenario, &options)?;
    let federation = Federation::of(&scenario, &study)?;
    let threads = Threads::new(options.threads);
    let mut options = Options {
        keep_contributions: true,
        surrounding: Surrounding::Direct,
        ..options
    };
    let recorded = federate(&scenario, &federation, &[], &mut options, &threads)?;
    let models = adopted_models(&recorded.notices);
    let start = |round: u64| {
        let adopted = models.iter().find(|adopted| adopted.round + 1 == round);
        adopted.map(|adopted| adopted.model.0.clone())
    };
    let updates = recorded.contributions.iter().filter_map(|of| {
        let start = start(of.round)?;
        Some((of.round, updates(of, &start)?))
    });
    let updates: Vec<_> = updates.collect();
    let silos = federation.epoch.roster.silos().iter();
    Ok(AbsenceAttack {
        scenario: scenario.name.clone(),
        silos: silos.map(|silo| silo.name.clone()).collect(),
        rounds: updates
            .windows(2)
            .map(|pair| compared(pair[0].0, &pair[0].1, &pair[1].1))
            .collect(),
    })
}

/// Returns what every member's model moved by; `None` if a model has another layout than the start.
fn updates(of: &Contributions, start: &Params) -> Option<Vec<Vec<f64>>> {
    let gate = Gate {
        layout: start.layout().clone(),
        norm: f64::INFINITY,
    };
    let models = of.models.iter().map(|(_, document)| {
        let model = gate.admit(document.clone()).ok()?;
        let pairs = model.values().iter().zip(start.values());
        let moved = pairs.map(|(model, start)| f64::from(*model) - f64::from(*start));
        Some(moved.collect())
    });
    models.collect()
}

fn compared(round: u64, now: &[Vec<f64>], next: &[Vec<f64>]) -> AbsenceRound {
    let (sum, later) = (total(now), total(next));
    let differences = now.iter().zip(next).map(|(own, absent)| {
        let without: Vec<_> = later
            .iter()
            .zip(absent)
            .map(|(all, one)| all - one)
            .collect();
        cosine(&minus(&sum, &without), own)
    });
    let of_all = minus(&sum, &later);
    AbsenceRound {
        round,
        without: differences.collect(),
        with_all: now.iter().map(|own| cosine(&of_all, own)).collect(),
        sum: now.iter().map(|own| cosine(&sum, own)).collect(),
    }
}

fn total(updates: &[Vec<f64>]) -> Vec<f64> {
    let length = updates.first().map_or(0, Vec::len);
    (0..length)
        .map(|at| updates.iter().map(|update| update[at]).sum())
        .collect()
}

fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// The cosine of the angle between two vectors; 0 if one of them is zero.
fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    if norms > 0.0 { dot(a, b) / norms } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_without_one_unchanged_update_reveals_that_update() {
        let updates = vec![
            vec![1.0, 0.0, 0.0],
            vec![0.0, 2.0, 0.0],
            vec![0.0, 1.0, 3.0],
        ];
        let found = compared(7, &updates, &updates);
        assert!(
            found
                .without
                .iter()
                .all(|cosine| (cosine - 1.0).abs() < 1e-12)
        );
        // With the same authors the difference is nothing.
        assert_eq!(found.with_all, [0.0; 3]);
        assert!(found.sum.iter().all(|cosine| (0.1..0.95).contains(cosine)));
    }
}
