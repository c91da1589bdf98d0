//! The result of an experiment, as one document.

use serde::Serialize;

use super::takeover::TakeOver;
use super::timeline::TimelineView;
use crate::compare::Spread;
use crate::summary::{MetricInfo, StoppedMember};

/// The result of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Laboratory {
    /// The scenario's name.
    pub scenario: String,
    /// What the scenario is about, in a sentence.
    pub description: String,
    /// Version of the program.
    pub version: &'static str,
    /// The strategy's name.
    pub strategy: String,
    /// The silos' names, in roster order.
    pub silos: Vec<String>,
    /// Faulty members that the federation tolerates.
    pub faulty: usize,
    /// Rounds to learn.
    pub rounds: u64,
    /// Seeds: this number, from the scenario's on.
    pub seeds: usize,
    /// Virtual seconds after which a run is given up.
    pub limit_seconds: f64,
    /// The faults in words.
    pub faults: Vec<String>,
    /// The metric of the models.
    pub metric: MetricInfo,
    /// What was found under every policy, in the order in which they were asked for.
    pub policies: Vec<PolicyResult>,
    /// Where the nodes ran, if they were real processes and not simulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<Deployment>,
}

/// An experiment with real processes. Seconds are then those of a real clock, and work is CPU time,
/// training included.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deployment {
    /// How the nodes reached each other, in words.
    pub network: String,
    /// Number of different machines on which nodes ran.
    pub machines: usize,
    /// What the bytes count, in words; `None` if they were not counted.
    pub bytes: Option<String>,
    /// What differed from the scenario, or could not be measured.
    pub notes: Vec<String>,
    /// This experiment in virtual time.
    pub simulated: Box<Laboratory>,
}

/// What was found under a policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PolicyResult {
    /// Name of the policy, as in the parameter set.
    pub policy: String,
    /// Rounds of the scenario that were not final when a run ended, over seeds.
    pub rounds_lost: Spread,
    /// Views that ended without a block, over seeds.
    pub views_failed: Spread,
    /// Virtual seconds until the last round was final; `None` if no run got that far.
    pub seconds: Option<Spread>,
    /// By how many seconds it takes longer than the first policy, seed by seed; only seeds in which
    /// both had all rounds.
    pub seconds_more: Option<Spread>,
    /// Leads that stopped, in all runs.
    pub leads_stopped: usize,
    /// After how many of these nobody took over before the run ended.
    pub never: usize,
    /// The median time until another lead was at work, in seconds; `None`: after most leads nobody
    /// took over.
    pub take_over_median: Option<f64>,
    /// The longest of these times; `None` if `never` is above 0.
    pub take_over_worst: Option<f64>,
    /// The longest time without a final round after a lead stopped; `None`: for ever.
    pub stalled_worst: Option<f64>,
    /// Bytes that all members sent, for each final round.
    pub bytes_per_round: Spread,
    /// Bytes that the lead of a round sent during it, for each final round.
    pub lead_bytes_per_round: Spread,
    /// Modelled seconds of work besides training (signatures, reading, checking, averaging and
    /// evaluating models) of all members, for each final round; of real processes, their CPU time.
    pub work_per_round: Spread,
    /// Work besides training of the lead during its round, for each final round.
    pub lead_work_per_round: Spread,
    /// Gini coefficient of the bytes that members sent, over members.
    pub gini_bytes: Spread,
    /// Gini coefficient of the work besides training, over members.
    pub gini_work: Spread,
    /// Gini coefficient of the rounds that members led, over members.
    pub gini_led: Spread,
    /// Share of the other members whose contributions a member has seen with their names at the
    /// end: mean over members.
    pub seen_mean: Spread,
    /// Largest share of the other members whose contributions one member has seen with their names at the
    /// end.
    pub seen_most: Spread,
    /// Mean held-out metric over silos, at the end.
    pub metric: Option<Spread>,
    /// By how much that differs from the first policy, seed by seed.
    pub metric_more: Option<Spread>,
    /// Every run.
    pub trials: Vec<RotationRun>,
}

/// One run: a policy and a seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RotationRun {
    /// The seed.
    pub seed: u64,
    /// Hash over all events in order; the same at every run of the same program.
    pub trace: String,
    /// Final rounds.
    pub rounds: u64,
    /// True if every member that was not stopped for good had all rounds in the end.
    pub complete: bool,
    /// Virtual seconds until the last final round.
    pub seconds: f64,
    /// Views that ended without a block.
    pub views_failed: u64,
    /// What followed when leads stopped.
    pub take_overs: Vec<TakeOver>,
    /// Members that stopped.
    pub stops: Vec<StoppedMember>,
    /// Bytes that every member sent, in roster order.
    pub bytes: Vec<u64>,
    /// Seconds of work besides training of every member, in roster order.
    pub work: Vec<f64>,
    /// Bytes that leads sent during their own rounds.
    pub lead_bytes: u64,
    /// Seconds of work besides training of leads during their own rounds.
    pub lead_work: f64,
    /// Rounds that every member led, in roster order.
    pub led: Vec<u64>,
    /// After each final round: what a curious member has seen.
    pub seen: Vec<SeenAuthors>,
    /// After each final round: the metric.
    pub curve: Vec<MetricPoint>,
    /// Every view.
    pub views: Vec<TimelineView>,
}

/// How many authors curious members have seen: members that sent them a contribution to a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SeenAuthors {
    /// The round.
    pub round: u64,
    /// Mean over members of the share of the others that they have seen.
    pub mean: f64,
    /// The largest of these shares.
    pub most: f64,
}

/// The metric after a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MetricPoint {
    /// The round.
    pub round: u64,
    /// When it was final, in seconds.
    pub seconds: f64,
    /// Mean held-out metric of the models that silos adopted with it.
    pub metric: Option<f64>,
}

/// The Gini coefficient of these amounts: 0 if all are equal, (n−1)/n if one has everything, and 0
/// if there is nothing.
pub(super) fn gini(amounts: impl IntoIterator<Item = f64>) -> f64 {
    let mut amounts: Vec<f64> = amounts.into_iter().collect();
    amounts.sort_by(f64::total_cmp);
    let (n, sum) = (amounts.len() as f64, amounts.iter().sum::<f64>());
    if sum <= 0.0 {
        return 0.0;
    }
    let ranks = amounts.iter().zip(1..);
    let weighted: f64 = ranks
        .map(|(amount, rank)| (2.0 * f64::from(rank) - n - 1.0) * amount)
        .sum();
    weighted / (n * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gini_coefficient_is_0_for_equals_and_nearly_1_for_one_that_has_all() {
        assert_eq!(gini([3.0; 5]), 0.0);
        assert_eq!(gini([0.0; 5]), 0.0);
        assert!((gini([0.0, 0.0, 0.0, 8.0]) - 0.75).abs() < 1e-12);
        assert!((gini([1.0, 3.0]) - 0.25).abs() < 1e-12);
    }
}
