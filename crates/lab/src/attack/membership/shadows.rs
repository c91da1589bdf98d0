//! Federations that learn from about half of the units: of the rows or, where noise protects persons, of the
//! persons, each with all its rows.

use std::sync::Arc;

use learn::Study;
use methods::learner::RowResults;
use methods::{Learner, Params, Split};
use protocol::MemberIndex;
use protocol::parameters::{RoundMode, Unit};
use silo::outcome::genesis;
use silo::rounds::unit_vectors;
use silo::{Notice, SiloConfig};
use simulations::pool::Threads;
use simulations::random::Random;
use simulations::{Federation, Options, RunError, Scenario, Surrounding, federate};

use crate::attack::{PlayedRound, replay};

/// Probabilities are taken this far away from 0 and 1 at least.
const CERTAIN: f64 = 1e-12;

/// What all shadows of a scenario have in common.
pub(super) struct ShadowSetting {
    scenario: Scenario,
    federation: Federation,
    silos: Vec<SiloUnits>,
    noised: bool,
}

/// A silo with the rows of its units.
struct SiloUnits {
    learner: Arc<dyn Learner>,
    /// The training rows of every unit, in the order in which the learner gives their gradients.
    rows: Vec<Vec<usize>>,
}

/// A federation that learned from some of the units, and its confidence in all of them.
pub(super) struct HalfFederation {
    /// Whether it learned from each unit: those of all silos, in order.
    pub(super) members: Vec<bool>,
    /// The confidence of the final model in each unit.
    pub(super) last: Vec<f64>,
    /// The mean confidence over all released models.
    pub(super) mean: Vec<f64>,
    /// Where asked for: the score of each unit by one who knows all others, see [`informed`].
    pub(super) informed: Option<Vec<f64>>,
}

impl ShadowSetting {
    /// # Errors
    /// [`RunError::Setup`]: a federation that protects persons, whose rows name none.
    pub(super) fn new(
        scenario: &Scenario,
        study: &Study,
        federation: Federation,
    ) -> Result<Self, RunError> {
        let (noised, persons, masked) = match federation.epoch.protocol.privacy.mode() {
            RoundMode::Noised(_, noise) => (true, matches!(noise.unit, Unit::Person(_)), false),
            RoundMode::Masked(_) => (false, false, true),
            RoundMode::Clear | RoundMode::Named => (false, false, false),
        };
        let federation = if masked {
            // Masks cancel: what is learned is the same.
            let clear = Scenario {
                privacy: None,
                ..scenario.clone()
            };
            Federation::of(&clear, study)?
        } else {
            federation
        };
        let silos = federation.members.iter();
        let silos = silos.map(|silo| SiloUnits::of(silo, persons));
        Ok(Self {
            silos: silos.collect::<Result<_, _>>()?,
            scenario: Scenario {
                faults: Vec::new(),
                ..scenario.clone()
            },
            federation,
            noised,
        })
    }

    /// Units that may be members.
    pub(super) fn units(&self) -> usize {
        self.silos.iter().map(|silo| silo.rows.len()).sum()
    }

    /// Trains a federation; units, noise and the order of rows follow from the seed. With `attacked` all opened
    /// sums are looked at, if they have noise.
    ///
    /// # Errors
    /// [`RunError`]: it cannot be trained or measured.
    pub(super) fn train(&self, seed: u64, attacked: bool) -> Result<HalfFederation, RunError> {
        let mut random = Random::new(seed, "rows of a shadow federation");
        let (mut members, mut silos) = (Vec::new(), self.federation.members.clone());
        for (silo, units) in silos.iter_mut().zip(&self.silos) {
            let chosen = drawn(units.rows.len(), &mut random);
            let rows = units.rows.iter().zip(&chosen);
            let rows = rows.filter(|(_, chosen)| **chosen);
            let rows = rows.flat_map(|(rows, _)| rows).map(|row| *row as u32);
            let mut rows: Vec<_> = rows.collect();
            rows.sort_unstable();
            let access = silo.learner.row_access().map_err(refused)?;
            let half = access.only(Split::Train, &rows);
            silo.learner =
                half.ok_or_else(|| refused("a silo has too few rows to leave some out"))?;
            silo.seed = methods::learner::mixed_seed(silo.seed, seed);
            members.extend(chosen);
        }
        let attacked = attacked && self.noised;
        let mut scores = vec![0.0; if attacked { members.len() } else { 0 }];
        let models = if self.noised {
            replay(&silos, seed, |played| {
                if attacked {
                    informed(&self.federation.members, played, &members, &mut scores)?;
                }
                Ok(())
            })?
        } else {
            self.clear(silos)?
        };
        let mut confidences = Vec::with_capacity(models.len());
        for model in &models {
            confidences.push(self.confidences(model)?);
        }
        let count = confidences.len() as f64;
        let mean = (0..members.len())
            .map(|row| confidences.iter().map(|one| one[row]).sum::<f64>() / count);
        Ok(HalfFederation {
            mean: mean.collect(),
            last: confidences.pop().unwrap_or_default(),
            informed: attacked.then_some(scores),
            members,
        })
    }

    /// The models of all rounds of a federation without noise.
    fn clear(&self, members: Vec<SiloConfig>) -> Result<Vec<Params>, RunError> {
        let federation = Federation {
            members,
            ..self.federation.clone()
        };
        let mut options = Options {
            references: false,
            surrounding: Surrounding::Direct,
            ..Options::default()
        };
        let threads = Threads::new(1);
        let recorded = federate(&self.scenario, &federation, &[], &mut options, &threads)?;
        let adopted = recorded.notices.iter().filter_map(|(_, by, notice)| {
            let Notice::Adopted { state, model, .. } = notice else {
                return None;
            };
            (*by == MemberIndex(0)).then_some((state.models.len(), model))
        });
        let single = adopted.map(|(models, model)| match models {
            1 => Ok(model.clone()),
            _ => Err(refused(
                "the federation has several models: this attack is on one",
            )),
        });
        single.collect()
    }

    /// Returns how confident a model is in the targets of every unit: the mean over its rows.
    fn confidences(&self, model: &Params) -> Result<Vec<f64>, RunError> {
        let mut all = Vec::new();
        for silo in &self.silos {
            let of_rows = confidence(&results(&*silo.learner, model)?);
            all.extend(silo.rows.iter().map(|rows| {
                let sum: f64 = rows.iter().map(|row| of_rows[*row]).sum();
                sum / rows.len() as f64
            }));
        }
        Ok(all)
    }
}

impl SiloUnits {
    /// The persons of a silo, or its rows.
    ///
    /// # Errors
    /// [`RunError::Setup`]: the rows name no person.
    fn of(silo: &SiloConfig, persons: bool) -> Result<Self, RunError> {
        let learner = silo.learner.clone();
        let samples = learner.samples() as usize;
        if !persons {
            let rows = (0..samples).map(|row| vec![row]).collect();
            return Ok(Self { learner, rows });
        }
        // Who a row is of does not depend on the model.
        let start = genesis(&*silo.strategy, &*learner, silo.initial_seed);
        let start = start.state.models.first();
        let start = start.ok_or_else(|| refused("there is no global model"))?;
        let results = results(&*learner, start)?;
        if results.groups.len() != samples {
            return Err(refused(
                "its noise protects persons, and the rows name none: agree on `group` in `[task.table.split]`",
            ));
        }
        let rows = results.together();
        Ok(Self { learner, rows })
    }
}

/// Returns what a model gives for the training rows of a silo.
fn results(learner: &dyn Learner, model: &Params) -> Result<RowResults, RunError> {
    let own = Params::gather(&learner.layout(), &[model]);
    let own = own.ok_or_else(|| refused("its models have other tensors than a silo's"))?;
    let (personal, part) = (Params::empty(), Split::Train);
    let outputs = learner.outputs().map_err(refused)?;
    let values = outputs.outputs(&own, &personal, part).map_err(refused)?;
    let results = outputs.row_results(&own, &personal, &values, part);
    results.map_err(refused)
}

/// Adds what the sum of a round says of every unit to one who knows all others and which of them were learned
/// from. Such an attacker takes their gradients off, and has g + noise of a unit that was learned from, and noise
/// alone of another one. How much more likely the first is follows from the normal distribution: the logarithm is
/// ⟨g, what is left⟩ − ‖g‖²/2, divided by the variance of the noise, which is the same for all units and rounds.
/// No test of a unit is better than this one.
fn informed(
    silos: &[SiloConfig],
    played: &PlayedRound<'_>,
    members: &[bool],
    scores: &mut [f64],
) -> Result<(), String> {
    let mut noise = vec![0.0; played.sum.len()];
    for part in played.parts {
        for (noise, own) in noise.iter_mut().zip(&part.noise) {
            *noise += *own as f64;
        }
    }
    let mut units = members.iter().zip(scores);
    for silo in silos {
        unit_vectors(silo, played.base, &mut |unit| {
            let Some((member, score)) = units.next() else {
                return;
            };
            let numbers = || unit.iter().map(|number| *number as f64);
            let square: f64 = numbers().map(|number| number * number).sum();
            let along: f64 = numbers().zip(&noise).map(|(own, noise)| own * noise).sum();
            *score += along + if *member { square } else { 0.0 } - square / 2.0;
        })?;
    }
    Ok(())
}

/// Tosses a coin for each of this number of units, and says which are chosen. It tosses again if none is.
fn drawn(units: usize, random: &mut Random) -> Vec<bool> {
    loop {
        let chosen: Vec<_> = (0..units).map(|_| random.chance(0.5)).collect();
        if chosen.contains(&true) || units == 0 {
            return chosen;
        }
    }
}

/// ln(p/(1−p)) of the probability p of a row's class, which is nearly normal; for numbers the loss with its sign
/// changed.
pub(super) fn confidence(results: &RowResults) -> Vec<f64> {
    let classes = results.classes();
    if classes < 2 {
        let losses = results.scores.get("loss").into_iter().flatten();
        return losses.map(|loss| -loss).collect();
    }
    let rows = results.probabilities.chunks_exact(classes);
    let rows = rows.zip(&results.targets);
    let confidences = rows.map(|(probabilities, target)| {
        let right = probabilities[*target as usize].clamp(CERTAIN, 1.0 - CERTAIN);
        (right / (1.0 - right)).ln()
    });
    confidences.collect()
}

fn refused(why: impl std::fmt::Display) -> RunError {
    RunError::Setup(format!("membership cannot be attacked: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confidence_is_the_logit_of_the_right_class_and_finite() {
        let results = RowResults {
            targets: vec![0.0, 1.0, 1.0],
            probabilities: vec![0.8, 0.2, 0.5, 0.5, 1.0, 0.0],
            ..RowResults::default()
        };
        let results = RowResults {
            scores: [("loss".to_owned(), vec![0.2, 0.7, 99.0])].into(),
            ..results
        };
        let found = confidence(&results);
        assert!((found[0] - 4.0_f64.ln()).abs() < 1e-12 && found[1].abs() < 1e-12);
        assert!(found[2] < -20.0 && found[2].is_finite());
        let numbers = RowResults {
            probabilities: Vec::new(),
            ..results
        };
        assert_eq!(confidence(&numbers), [-0.2, -0.7, -99.0]);
    }

    #[test]
    fn about_half_of_the_units_are_drawn_and_never_none() {
        let mut random = Random::new(1, "test");
        let chosen = drawn(1000, &mut random);
        let count = chosen.iter().filter(|one| **one).count();
        assert!((440..560).contains(&count), "{count}");
        assert!((0..50).all(|_| drawn(1, &mut random) == [true]));
    }
}
