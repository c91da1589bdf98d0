//! Federations that learn from about half of the rows.

use std::sync::Arc;

use agreement::PrivacyTable;
use learn::Study;
use methods::learner::RowResults;
use methods::{Learner, Params, Split};
use protocol::MemberIndex;
use protocol::charter::Unit;
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
    learners: Vec<Arc<dyn Learner>>,
    noised: bool,
}

/// A federation that learned from some of the rows, and its confidence in all of them.
pub(super) struct HalfFederation {
    /// Whether it learned from each row: the training rows of all silos, in order.
    pub(super) members: Vec<bool>,
    /// The confidence of the final model in each row.
    pub(super) last: Vec<f64>,
    /// The mean confidence over all released models.
    pub(super) mean: Vec<f64>,
    /// Where asked for: the score of each row by one who knows all others, see [`informed`].
    pub(super) informed: Option<Vec<f64>>,
}

impl ShadowSetting {
    /// # Errors
    /// [`RunError::Setup`]: a federation that protects persons.
    pub(super) fn new(
        scenario: &Scenario,
        study: &Study,
        federation: Federation,
    ) -> Result<Self, RunError> {
        let noise = federation.epoch.charter.privacy.masked();
        let noise = noise.and_then(|masked| masked.noise());
        if noise.is_some_and(|noise| matches!(noise.unit, Unit::Person(_))) {
            return Err(RunError::Setup(format!(
                "{}: this attack is on single rows, and `privacy.unit` protects persons: use a scenario with \
                 the unit \"row\"",
                scenario.file
            )));
        }
        let noised = noise.is_some();
        let masked = scenario.privacy.as_ref();
        let federation = if !noised && masked.is_some_and(PrivacyTable::is_masked) {
            // Masks cancel: what is learned is the same.
            let clear = Scenario {
                privacy: None,
                ..scenario.clone()
            };
            Federation::of(&clear, study)?
        } else {
            federation
        };
        let learners = study.silos.iter();
        Ok(Self {
            scenario: Scenario {
                faults: Vec::new(),
                ..scenario.clone()
            },
            federation,
            learners: learners.map(|silo| silo.learner.clone()).collect(),
            noised,
        })
    }

    /// Rows that may be members.
    pub(super) fn rows(&self) -> usize {
        let rows = self.learners.iter().map(|learner| learner.samples());
        rows.sum::<u64>() as usize
    }

    /// Trains a federation; rows, noise and the order of rows follow from the seed. With `attacked` all opened
    /// sums are looked at, if they have noise.
    ///
    /// # Errors
    /// [`RunError`]: it cannot be trained or measured.
    pub(super) fn train(&self, seed: u64, attacked: bool) -> Result<HalfFederation, RunError> {
        let mut random = Random::new(seed, "rows of a shadow federation");
        let (mut members, mut silos) = (Vec::new(), self.federation.members.clone());
        for silo in &mut silos {
            let chosen = drawn(silo.learner.samples(), &mut random);
            let rows = (0_u32..).zip(&chosen).filter(|(_, chosen)| **chosen);
            let rows: Vec<_> = rows.map(|(row, _)| row).collect();
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

    /// How confident a model is in the target of every row.
    fn confidences(&self, model: &Params) -> Result<Vec<f64>, RunError> {
        let mut all = Vec::new();
        for learner in &self.learners {
            let failed = |error: &dyn std::fmt::Display| refused(error);
            let own = Params::gather(&learner.layout(), &[model]);
            let own = own.ok_or_else(|| refused("its models have other tensors than a silo's"))?;
            let (personal, part) = (Params::empty(), Split::Train);
            let outputs = learner.outputs().map_err(|error| failed(&error))?;
            let values = outputs.outputs(&own, &personal, part);
            let values = values.map_err(|error| failed(&error))?;
            let results = outputs.row_results(&own, &personal, &values, part);
            all.extend(confidence(&results.map_err(|error| failed(&error))?));
        }
        Ok(all)
    }
}

/// Adds what the sum of a round says of every row to one who knows all other rows and which of them were learned
/// from. Such an attacker takes their gradients off, and has g + noise of a row that was learned from, and noise
/// alone of another one. How much more likely the first is follows from the normal distribution: the logarithm is
/// ⟨g, what is left⟩ − ‖g‖²/2, divided by the variance of the noise, which is the same for all rows and rounds.
/// No test of a row is better than this one.
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
    let mut rows = members.iter().zip(scores);
    for silo in silos {
        unit_vectors(silo, played.base, &mut |row| {
            let Some((member, score)) = rows.next() else {
                return;
            };
            let numbers = || row.iter().map(|number| *number as f64);
            let square: f64 = numbers().map(|number| number * number).sum();
            let along: f64 = numbers().zip(&noise).map(|(row, noise)| row * noise).sum();
            *score += along + if *member { square } else { 0.0 } - square / 2.0;
        })?;
    }
    Ok(())
}

/// Whether each of so many rows is chosen: a fair coin each, and one row at least.
fn drawn(rows: u64, random: &mut Random) -> Vec<bool> {
    loop {
        let chosen: Vec<_> = (0..rows).map(|_| random.chance(0.5)).collect();
        if chosen.contains(&true) || rows == 0 {
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
    fn about_half_of_the_rows_are_drawn_and_never_none() {
        let mut random = Random::new(1, "test");
        let chosen = drawn(1000, &mut random);
        let count = chosen.iter().filter(|one| **one).count();
        assert!((440..560).contains(&count), "{count}");
        assert!((0..50).all(|_| drawn(1, &mut random) == [true]));
    }
}
