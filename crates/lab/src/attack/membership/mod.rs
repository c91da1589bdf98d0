//! The attack on membership: who sees the models of a federation guesses which rows it learned from.
//!
//! The attack is the *likelihood ratio attack* (Carlini, Chien, Nasr, Song, Terzis & Tramèr, *Membership inference
//! attacks from first principles*, 2022). The attacker knows all rows that may have been learned from, and trains
//! *shadows*: federations like the attacked one, each with about half of the rows. For every row it so knows how
//! a model treats it that learned from it, and one that did not: a normal distribution of the model's confidence
//! each. The score of a row in an attacked federation is the logarithm of how much more likely its confidence is
//! under the first than under the second. Where noise protects persons, all rows of a person are in or out
//! together, and its confidence is the mean over them.
//!
//! The attacked federations are further ones with half of the rows. How well scores tell members from others is
//! the area under the ROC curve over all rows of all attacked federations; 0.5 is guessing. Where silos add noise
//! no attack can have an area above Φ(μ/√2), whatever it knows of the other rows. There the sums are attacked, too,
//! by one who knows all rows but those in question, and sees every opened sum: no test of them is better, so it
//! shows how much of the bound is used.

mod likelihood;
mod own;
mod shadows;

use std::sync::Arc;

use agreement::{bound, most_auc};
use formatting::numbers::plural;
use protocol::ProtocolParameters;
use protocol::parameters::{RoundMode, Unit};
use serde::Serialize;
use simulations::pool::Threads;
use simulations::{Federation, Options, RunError, Scenario};

pub use own::OwnMembership;

use super::AttackEstimate;
use super::scored::{RowScore, RowScores};
use crate::run::study;
use likelihood::ConfidenceModel;
use shadows::{HalfFederation, ShadowSetting};

/// Fewest shadows: the normal distributions of a row are rough with fewer.
pub const FEWEST_SHADOWS: usize = 16;

/// What this attack does not try.
const NOT_TRIED: [&str; 3] = [
    "shadows that look at the opened sums",
    "colluding members that subtract their own noise",
    "more shadows, or other questions to a model than its confidence in the rows as they are",
];

/// How large the attack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembershipOptions {
    /// Shadow federations; at least [`FEWEST_SHADOWS`] are trained.
    pub shadows: usize,
    /// Attacked federations, at least one.
    pub targets: usize,
}

impl Default for MembershipOptions {
    fn default() -> Self {
        Self {
            shadows: 64,
            targets: 16,
        }
    }
}

/// How well membership can be told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct MembershipAttack {
    /// Name of the scenario.
    pub scenario: String,
    /// Institutions.
    pub silos: usize,
    /// What is a member or not: `row`, or `person` with all its rows where noise protects persons.
    pub unit: String,
    /// Rows, or persons, that may be members.
    pub rows: usize,
    /// Rounds of each federation.
    pub rounds: u64,
    /// Shadow federations.
    pub shadows: usize,
    /// Attacked federations.
    pub targets: usize,
    /// What noise bounds; none where there is no noise.
    pub bound: Option<MembershipBound>,
    /// What was tried, with its area under the ROC curve.
    pub tests: Vec<MembershipTest>,
    /// What was not tried.
    pub not_tried: Vec<String>,
}

/// What the noise of a federation bounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MembershipBound {
    /// ε, ε_alone and δ in words.
    pub words: String,
    /// The largest area under the ROC curve of any attack.
    pub auc: f64,
}

/// One way to tell members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MembershipTest {
    /// What it looks at.
    pub name: String,
    /// The area under its ROC curve, with an interval from rows resampled.
    pub auc: AttackEstimate,
}

/// Trains shadows and attacked federations of a scenario, and measures how well membership is told.
///
/// # Errors
/// [`RunError`]: as for [`run`](crate::run); a federation that ends with several models, one that protects persons
/// whose rows name none, or learners that give no outputs of single rows.
pub fn membership(
    scenario: &Scenario,
    options: &Options<'_>,
    size: MembershipOptions,
) -> Result<MembershipAttack, RunError> {
    let study = study(scenario, options)?;
    let federation = Federation::of(scenario, &study)?;
    let protocol = federation.epoch.protocol.clone();
    let setting = ShadowSetting::new(scenario, &study, federation)?;
    let (rows, persons) = (setting.units(), protects_persons(&protocol));
    let shadows = size.shadows.max(FEWEST_SHADOWS);
    let targets = size.targets.max(1);
    let setting = Arc::new(setting);
    let threads = Threads::new(options.threads);
    let jobs = (0..shadows + targets).map(|nth| {
        let (setting, seed) = (setting.clone(), scenario.seed.wrapping_add(nth as u64 + 1));
        move || setting.train(seed, nth >= shadows)
    });
    let trained = threads.all(jobs.collect::<Vec<_>>());
    let trained = trained.map_err(RunError::Setup)?.into_iter();
    let mut trained: Vec<HalfFederation> = trained.collect::<Result<_, _>>()?;
    let attacked = trained.split_off(shadows);
    let tests = tests(&trained, &attacked, rows, scenario.seed);
    Ok(MembershipAttack {
        scenario: scenario.name.clone(),
        silos: study.silos.len(),
        unit: if persons { "person" } else { "row" }.into(),
        rows,
        rounds: protocol.rounds,
        shadows,
        targets,
        bound: bound(&protocol)
            .zip(most_auc(&protocol))
            .map(|(bound, auc)| {
                let words = bound.to_string();
                MembershipBound { words, auc }
            }),
        tests: tests.ok_or_else(|| {
            RunError::Setup("no row was a member of one federation and not of another".into())
        })?,
        not_tried: not_tried(persons),
    })
}

/// Returns whether the noise of a federation protects persons.
fn protects_persons(protocol: &ProtocolParameters) -> bool {
    match protocol.privacy.mode() {
        RoundMode::Noised(_, noise) => matches!(noise.unit, Unit::Person(_)),
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => false,
    }
}

/// Returns what is not tried where whole persons are members or not, or single rows.
fn not_tried(persons: bool) -> Vec<String> {
    let rows = if persons {
        "the rows of a person one by one"
    } else {
        "rows of one person together"
    };
    let all = NOT_TRIED.into_iter().chain([rows]);
    all.map(str::to_owned).collect()
}

/// The areas of all tests.
fn tests(
    shadows: &[HalfFederation],
    attacked: &[HalfFederation],
    rows: usize,
    seed: u64,
) -> Option<Vec<MembershipTest>> {
    let scored = |score: &dyn Fn(usize, &HalfFederation) -> f64| {
        let each = attacked.iter().flat_map(|target| {
            (0..rows).map(move |row| RowScore {
                row: row as u32,
                score: score(row, target),
                member: target.members[row],
            })
        });
        RowScores::new(each.collect(), rows).estimate(seed)
    };
    let ratio = |of: fn(&HalfFederation) -> &[f64]| {
        let models: Vec<_> = (0..rows)
            .map(|row| ConfidenceModel::of(shadows, row, of))
            .collect();
        scored(&|row, target| models[row].ratio(of(target)[row]))
    };
    let mut found = vec![
        ("likelihood ratio, final model", ratio(|half| &half.last)),
        (
            "likelihood ratio, mean over all released models",
            ratio(|half| &half.mean),
        ),
        (
            "baseline: low loss of the final model (Yeom 2018)",
            scored(&|row, target| target.last[row]),
        ),
    ];
    if attacked.iter().all(|target| target.informed.is_some()) {
        let informed = scored(&|row, target| {
            let scores = target.informed.as_ref();
            scores.map_or(f64::NAN, |scores| scores[row])
        });
        found.insert(2, ("all opened sums, all other rows known", informed));
    }
    let tests = found.into_iter().map(|(name, auc)| {
        Some(MembershipTest {
            name: name.into(),
            auc: auc?,
        })
    });
    tests.collect()
}

impl MembershipAttack {
    /// Returns what was found, as lines of text.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!(
                "{}: how well an attacker can tell from the models of {} which of {} they were trained on (area \
                 under the ROC curve; 0.5: guessing, 1: always right)",
                self.scenario,
                plural(self.silos, "institution"),
                plural(self.rows, &self.unit)
            ),
            String::new(),
        ];
        for test in &self.tests {
            lines.push(format!("  {:50} {}", test.name, test.auc.words(3)));
        }
        lines.push(format!("  {:50} 0.500", "baseline: guessing"));
        match &self.bound {
            Some(bound) => {
                lines.push(format!(
                    "  {:50} {:.3}",
                    "bound for every attack, by differential privacy", bound.auc
                ));
                lines.push(format!("  all rounds together: {}", bound.words));
            }
            None => lines.push("  without noise there is no bound".into()),
        }
        lines.push(String::new());
        lines.push(format!(
            "{} shadows and {} attacked federations of {} rounds, each with about half of the {unit}s. Intervals \
             (95 %): {unit}s resampled. An attack that finds little does not prove that there is little to find. Not \
             tried: {}.",
            self.shadows,
            self.targets,
            self.rounds,
            self.not_tried.join("; "),
            unit = self.unit,
        ));
        lines
    }
}
