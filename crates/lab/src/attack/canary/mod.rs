//! The audit with canaries: a lower bound on ε, measured on runs of a federation with noise.
//!
//! *Canaries* are synthetic units that silos have beside their rows. The gradient of each is one large number in a
//! coordinate of its own, so that clipping leaves the longest vector that one unit may have. A coin decides for
//! each whether it is in. The auditor sees all opened sums, and knows all real rows, as the bound allows an
//! attacker to: it takes their gradients off. What is left in a coordinate is the canary, if it is in, and noise.
//! The auditor guesses "in" where most is left and "out" where least is, and says nothing of the others.
//!
//! From the number of right guesses follows a lower bound on ε ([`CoinGuesses`]). If it is above the ε that is
//! claimed, the claim is wrong; an error of this kind happens in one of twenty audits at most. If it is below, the
//! claim is not proved: most errors that matter to a bound are too small for an audit to see, and have tests of
//! their own.

mod bound;
mod planted;

use std::sync::Arc;

use agreement::bound;
use methods::Learner;
use protocol::parameters::{Noise, RoundMode};
use serde::Serialize;
use silo::SiloConfig;
use silo::rounds::noised_part;
use simulations::random::Random;
use simulations::{Federation, Options, RunError, Scenario};

pub use bound::{CoinGuesses, LEVEL};

use super::replay;
use crate::run::study;
use crate::summary::or_no_bound;
use planted::PlantedCanaries;

/// What this audit does not try.
const NOT_TRIED: [&str; 4] = [
    "rows as canaries, which only the models see",
    "colluding members that subtract their own noise",
    "masks, votes, restarts and ledgers: sums are computed in clear here",
    "units with other contents in other rounds",
];

/// Most canaries, unless more are asked for.
const MOST_CANARIES: usize = 500;

/// How long the gradient of a canary is before it is clipped, in clipping norms.
const LENGTH: f64 = 1000.0;

/// How large the audit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanaryOptions {
    /// Canaries; by default as many as the model has numbers, 500 at most. Never more than it has numbers.
    pub canaries: Option<usize>,
    /// Runs with other coins and noise each.
    pub runs: u64,
}

/// What the audit found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct CanaryAudit {
    /// Name of the scenario.
    pub scenario: String,
    /// Rounds of a run.
    pub rounds: u64,
    /// ε, ε_alone and δ that are claimed, in words.
    pub bound: String,
    /// The claimed ε; none, in documents the words "no bound", where there is none.
    #[serde(serialize_with = "or_no_bound::serialize")]
    pub epsilon: Option<f64>,
    /// δ, for claim and audit.
    pub delta: f64,
    /// Canaries of a run.
    pub canaries: usize,
    /// Guesses of a run.
    pub guesses: usize,
    /// The lower bound if all guesses of a run are right: the most that this audit can show.
    pub most: f64,
    /// The runs.
    pub runs: Vec<CanaryRun>,
    /// Runs with a lower bound above the claim.
    pub above: usize,
    /// What was not tried.
    pub not_tried: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct CanaryRun {
    /// Its seed.
    pub seed: u64,
    /// Right guesses.
    pub right: usize,
    /// The lower bound on ε, with 95 % confidence.
    pub epsilon: f64,
}

/// What is put around the learner of each silo.
type AroundLearner<'a> = &'a dyn Fn(Arc<dyn Learner>) -> Arc<dyn Learner>;

/// Runs a scenario with canaries, and bounds its ε from below.
///
/// # Errors
/// [`RunError`]: as for [`run`](crate::run); a scenario without noise.
pub fn canary(
    scenario: &Scenario,
    options: &Options<'_>,
    size: CanaryOptions,
) -> Result<CanaryAudit, RunError> {
    canary_with(scenario, options, size, &|learner| learner)
}

/// The same with `around` put around the learner of each silo, canaries included: to see whether an audit notices
/// a learner that gives wrong gradients.
///
/// # Errors
/// [`RunError`]: as for [`canary`].
pub fn canary_with(
    scenario: &Scenario,
    options: &Options<'_>,
    size: CanaryOptions,
    around: &dyn Fn(Arc<dyn Learner>) -> Arc<dyn Learner>,
) -> Result<CanaryAudit, RunError> {
    audited(
        &PlantedStudy::new(scenario, options, size)?,
        size.runs,
        around,
    )
}

/// A federation that declares room for canaries.
struct PlantedStudy {
    scenario: Scenario,
    federation: Federation,
    noise: Noise,
    /// The coordinate of each canary. Canary k is at silo k modulo the number of silos.
    coordinates: Vec<usize>,
}

impl PlantedStudy {
    fn new(
        scenario: &Scenario,
        options: &Options<'_>,
        size: CanaryOptions,
    ) -> Result<Self, RunError> {
        let mut study = study(scenario, options)?;
        let silos = study.silos.len();
        let numbers = study
            .silos
            .first()
            .map_or(0, |silo| silo.learner.layout().len());
        let canaries = size.canaries.unwrap_or(MOST_CANARIES).min(numbers);
        for (at, silo) in study.silos.iter_mut().enumerate() {
            // Those at k = at, at + silos, at + 2·silos, …
            silo.rows.train += (canaries + silos - 1 - at) / silos;
        }
        let federation = Federation::of(scenario, &study)?;
        let noise = match federation.epoch.protocol.privacy.mode() {
            RoundMode::Noised(_, noise) => noise.clone(),
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => {
                let file = &scenario.file;
                return Err(RunError::Setup(format!(
                    "{file}: its sums have no noise, so no ε is claimed that could be audited: add `[privacy]` with \
                     `mode = \"differential-privacy\"`"
                )));
            }
        };
        let mut coordinates: Vec<_> = (0..numbers).collect();
        Random::new(scenario.seed, "coordinates of canaries").shuffle(&mut coordinates);
        coordinates.truncate(canaries);
        Ok(Self {
            scenario: scenario.clone(),
            federation,
            noise,
            coordinates,
        })
    }

    /// The silos of a run, with the canaries that are in.
    fn members(&self, inside: &[bool], around: AroundLearner<'_>) -> Vec<SiloConfig> {
        let silos = self.federation.members.len();
        let members = self.federation.members.iter().enumerate();
        let members = members.map(|(at, member)| {
            let all = self.coordinates.iter().zip(inside).enumerate();
            let own = all.filter(|(nth, (_, inside))| nth % silos == at && **inside);
            let planted = PlantedCanaries {
                inner: member.learner.clone(),
                coordinates: own.map(|(_, (coordinate, _))| *coordinate).collect(),
                length: LENGTH * self.noise.clip.value(),
            };
            SiloConfig {
                learner: around(Arc::new(planted)),
                ..member.clone()
            }
        });
        members.collect()
    }

    /// Returns what the opened sums of a run leave in the coordinate of each canary, besides the real rows.
    fn scores(
        &self,
        inside: &[bool],
        seed: u64,
        around: AroundLearner<'_>,
    ) -> Result<Vec<i64>, RunError> {
        let mut scores = vec![0; self.coordinates.len()];
        replay(&self.members(inside, around), seed, |played| {
            let mut known = vec![0; played.sum.len()];
            for member in &self.federation.members {
                let part = noised_part(member, played.base, [0; 32])?;
                for (known, gradient) in known.iter_mut().zip(part.units) {
                    *known += gradient;
                }
            }
            for (score, at) in scores.iter_mut().zip(&self.coordinates) {
                *score += played.sum[*at] - known[*at];
            }
            Ok(())
        })?;
        Ok(scores)
    }

    /// One run with coins and noise of this seed.
    fn guess(
        &self,
        seed: u64,
        guesses: usize,
        around: AroundLearner<'_>,
    ) -> Result<usize, RunError> {
        let mut random = Random::new(seed, "coins of canaries");
        let inside: Vec<_> = self
            .coordinates
            .iter()
            .map(|_| random.chance(0.5))
            .collect();
        let scores = self.scores(&inside, seed, around)?;
        Ok(right(&scores, &inside, guesses))
    }
}

/// Guesses that are right: "in" for the highest scores, "out" for as many of the lowest.
fn right(scores: &[i64], inside: &[bool], guesses: usize) -> usize {
    let mut order: Vec<_> = (0..scores.len()).collect();
    order.sort_by_key(|&canary| scores[canary]);
    let each = guesses / 2;
    let out = order.iter().take(each).filter(|&&canary| !inside[canary]);
    let into = order.iter().rev().take(each);
    out.count() + into.filter(|&&canary| inside[canary]).count()
}

/// How many guesses are made: of a quarter of the canaries, whose scores say most; of ten at least, where there
/// are so many. An even number.
fn guesses(canaries: usize) -> usize {
    (canaries / 4).max(canaries.min(10)) / 2 * 2
}

/// Audits what a federation claims.
fn audited(
    planted: &PlantedStudy,
    runs: u64,
    around: AroundLearner<'_>,
) -> Result<CanaryAudit, RunError> {
    let protocol = &planted.federation.epoch.protocol;
    let bound = bound(protocol);
    let bound = bound.ok_or_else(|| RunError::Setup("its noise gives no bound".into()))?;
    let (delta, epsilon) = (bound.delta().value(), bound.epsilon().value());
    let canaries = planted.coordinates.len();
    let guesses = guesses(canaries);
    let of = |right| CoinGuesses {
        canaries,
        guesses,
        right,
    };
    let mut found = Vec::new();
    for run in 0..runs.max(1) {
        let seed = planted.scenario.seed.wrapping_add(run);
        let right = planted.guess(seed, guesses, around)?;
        found.push(CanaryRun {
            seed,
            right,
            epsilon: of(right).lower_bound(delta),
        });
    }
    Ok(CanaryAudit {
        scenario: planted.scenario.name.clone(),
        rounds: protocol.rounds,
        bound: bound.to_string(),
        epsilon: Some(epsilon).filter(|epsilon| epsilon.is_finite()),
        delta,
        canaries,
        guesses,
        most: of(guesses).lower_bound(delta),
        above: found.iter().filter(|run| run.epsilon > epsilon).count(),
        runs: found,
        not_tried: NOT_TRIED.map(str::to_owned).into(),
    })
}

impl CanaryAudit {
    /// Returns what was found, as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let runs = formatting::numbers::plural(self.runs.len(), "run");
        let mut lines = vec![
            format!(
                "{}: lower bounds on epsilon from {} canaries in {runs} of {} rounds (95 % confidence each)",
                self.scenario, self.canaries, self.rounds
            ),
            String::new(),
            format!("  claimed: {}", self.bound),
            format!(
                "  the most that this audit can show, with all {} guesses right: {:.2}",
                self.guesses, self.most
            ),
            String::new(),
            format!(
                "  {:>20}  {:>14}  {:>11}",
                "seed", "right guesses", "lower bound"
            ),
        ];
        for run in &self.runs {
            lines.push(format!(
                "  {:>20}  {:>7} of {:>3}  {:>11.2}",
                run.seed, run.right, self.guesses, run.epsilon
            ));
        }
        lines.push(String::new());
        lines.push(self.verdict());
        lines.push(format!("Not tried: {}.", self.not_tried.join("; ")));
        lines
    }

    /// Returns what follows, in words.
    pub fn verdict(&self) -> String {
        let (above, runs) = (self.above, self.runs.len());
        // With right bounds one of twenty is above the truth; more than three times as many are not chance.
        let most = 3.0 * LEVEL * runs as f64;
        if above as f64 > most.max(1.0) {
            return format!(
                "{above} of {runs} lower bounds are above the claimed epsilon: the claim or the program is wrong."
            );
        }
        let Some(claimed) = self.epsilon else {
            return "The noise bounds nothing, so no epsilon is claimed that an audit could contradict.".into();
        };
        if self.most <= claimed {
            return format!(
                "This audit cannot contradict the claim: even with all {} guesses right it would show only {:.2}, \
                 which is not above the claimed epsilon. More canaries could show more; they need a model with \
                 more parameters.",
                self.guesses, self.most
            );
        }
        format!(
            "{above} of {runs} lower bounds are above the claimed epsilon; by chance one in twenty may be. That \
             does not prove the claim: an audit detects only large errors."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audit_that_can_show_too_little_says_so() {
        let audit = |most, epsilon| CanaryAudit {
            scenario: "few".into(),
            rounds: 1,
            bound: "epsilon 1".into(),
            epsilon,
            delta: 1e-5,
            canaries: 4,
            guesses: 4,
            most,
            above: 0,
            runs: Vec::new(),
            not_tried: Vec::new(),
        };
        for most in [0.0, 1.0] {
            let said = audit(most, Some(1.0)).verdict();
            assert!(said.contains("cannot contradict the claim"), "{said}");
        }
        let said = audit(3.0, None).verdict();
        assert!(said.contains("so no epsilon is claimed"), "{said}");
        let said = audit(3.0, Some(1.0)).verdict();
        assert!(said.contains("does not prove the claim"), "{said}");
    }

    #[test]
    fn guesses_are_of_the_scores_at_both_ends() {
        assert_eq!([0, 4, 14, 40, 400].map(guesses), [0, 4, 10, 10, 100]);
        let inside = [true, false, true, false, true, false];
        assert_eq!(right(&[9, -9, 8, -8, 0, 1], &inside, 4), 4);
        assert_eq!(right(&[-9, 9, -8, 8, 0, 1], &inside, 4), 0);
        assert_eq!(right(&[9, -9, -8, 8, 0, 1], &inside, 4), 2);
    }
}
