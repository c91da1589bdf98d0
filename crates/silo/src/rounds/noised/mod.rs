//! What a silo sends in a round with noise, and what the opened sum of all says. The formulas are those of
//! [`privacy::sensitivity`], [`privacy::noise`] and [`privacy::least_squares`].
//!
//! Every unit's numbers are clipped and rounded by themselves, the integers are added, and the noise is added
//! to them. What the numbers are is agreed on:
//!
//! - *steps*: the gradient of the unit. The opened sum times the step of the rounding, divided by the rows that
//!   the authors declared, is the mean gradient, and all take one step of gradient descent;
//! - *once*: products of the features and the target. All solve the linear model from their opened sum.

mod once;

use methods::learner::{Optimiser, UnitRows};
use methods::{Params, Task};
use privacy::masks::{Reach, Shape};
use privacy::noise::{Authors, Gaussian, Multiplier, Noise, Seed};
use privacy::sensitivity::{Clip, Sensitivity};
use protocol::charter::{Noise as AgreedNoise, Release, Unit};
use protocol::privacy::{Masked, Sum};

use super::RoundBase;
use super::masked::SecretIntegers;
use crate::config::SiloConfig;
use once::SolvedOnce;

/// The agreement on noise, in the numbers of the mathematics.
pub(crate) struct Noised {
    clip: Clip,
    gaussian: Gaussian,
    rows: UnitRows,
    /// How the model is solved, where it is.
    once: Option<SolvedOnce>,
}

/// The integers of a silo with their noise, and what training says of itself.
#[derive(Debug)]
pub(crate) struct NoisedVector {
    pub(crate) integers: SecretIntegers,
    /// Mean loss of the rows before the round, not a number where there are none. It stays at home.
    pub(crate) loss: f64,
    /// Training rows.
    pub(crate) samples: u64,
}

impl Noised {
    /// That of a federation for models of so many numbers; `None` where no noise is agreed on.
    ///
    /// # Errors
    /// The numbers give no noise that can be drawn.
    pub(crate) fn of(masked: Option<&Masked>, numbers: usize) -> Result<Option<Self>, String> {
        let agreed = masked.and_then(|masked| Some((masked, masked.noise()?)));
        let Some((masked, noise)) = agreed else {
            return Ok(None);
        };
        Self::new(masked, noise, numbers).map(Some)
    }

    fn new(masked: &Masked, noise: &AgreedNoise, numbers: usize) -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let once = match noise.release {
            Release::Steps => None,
            Release::Once { .. } => Some(SolvedOnce::new(noise.release, numbers)?),
        };
        let opened = once.as_ref().map_or(numbers, SolvedOnce::numbers);
        let sensitivity = Sensitivity::new(opened as u64).map_err(|error| said(&error))?;
        let authors = Authors::new(masked.smallest_sum, masked.colluders);
        let authors = authors.map_err(|error| said(&error))?;
        let z = Multiplier::new(noise.z.value()).map_err(|error| said(&error))?;
        let gaussian = authors.gaussian(z, sensitivity);
        Ok(Self {
            clip: Clip::new(noise.clip.value(), sensitivity).map_err(|error| said(&error))?,
            gaussian: gaussian.map_err(|error| said(&error))?,
            rows: match noise.unit {
                Unit::Row => UnitRows::One,
                Unit::Person(_) => UnitRows::Group,
            },
            once,
        })
    }

    /// How many numbers a sum has.
    pub(crate) fn numbers(&self) -> usize {
        self.clip.sensitivity().dimension() as usize
    }

    /// The shape of the vectors of a sum.
    ///
    /// # Errors
    /// The sum could be larger than words can be.
    pub(crate) fn shape(&self, config: &SiloConfig, sum: &Sum) -> Result<Shape, String> {
        let reach = self.reach(declared(config, sum), sum.authors.len())?;
        Shape::new(self.numbers(), reach).map_err(|error| error.to_string())
    }

    /// The standard deviation of the noise of one silo in each coordinate.
    pub(crate) fn sigma(&self) -> u64 {
        self.gaussian.sigma()
    }

    fn reach(&self, rows: u64, authors: usize) -> Result<Reach, String> {
        let (sensitivity, sigma) = (self.clip.sensitivity(), self.gaussian.sigma());
        let reach = sensitivity.reach(rows, sigma, authors as u16);
        reach.map_err(|error| error.to_string())
    }

    /// The silo's vector: its units' integers, and noise that follows from `seed` alone.
    ///
    /// Whatever rows the silo has, it has a vector: if a row could decide whether there is one, no noise would
    /// hide that row. A silo without rows sends its noise, and the sum of one with more than it declared is
    /// saturated ([`Sensitivity::saturate`]).
    ///
    /// # Errors
    /// The learner has no gradients of single units.
    pub(crate) fn vector(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        seed: &Seed,
    ) -> Result<NoisedVector, String> {
        let mut summed = SecretIntegers::zeros(self.numbers());
        let integers = summed.all_mut();
        let mut wrong = None;
        let loss = self.each_unit(config, base, &mut |numbers| {
            let added = self.clip.add(numbers, integers);
            wrong = wrong.take().or(added.err());
        })?;
        if let Some(error) = wrong {
            return Err(error.to_string());
        }
        self.clip
            .sensitivity()
            .saturate(declared_by(config), integers);
        self.add_noise(seed, integers);
        Ok(NoisedVector {
            integers: summed,
            loss,
            samples: config.learner.samples(),
        })
    }

    /// Gives `add` the numbers of every unit of the silo, and returns the mean loss of its rows.
    fn each_unit(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        add: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, String> {
        let model = base.start()?;
        let units = config.learner.units().map_err(|error| error.to_string())?;
        let loss = match &self.once {
            None => units.unit_gradients(&model, self.rows, add),
            Some(once) => {
                once.units(units, self.rows, add)?;
                units.unit_gradients(&model, UnitRows::One, &mut |_| {})
            }
        };
        loss.map_err(|error| error.to_string())
    }

    /// Gives `with` the integers of every unit of the silo.
    ///
    /// # Errors
    /// Its learner has no numbers of single units.
    pub(crate) fn units(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        with: &mut dyn FnMut(&[i64]),
    ) -> Result<(), String> {
        let mut integers = vec![0; self.numbers()];
        let mut wrong = None;
        self.each_unit(config, base, &mut |numbers| {
            let written = self.clip.integers(numbers, &mut integers);
            wrong = wrong.take().or(written.err());
            with(&integers);
        })?;
        wrong.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// Adds the noise of one silo, which follows from `seed` alone.
    pub(crate) fn add_noise(&self, seed: &Seed, integers: &mut [i64]) {
        Noise::new(seed).add(self.gaussian, integers);
    }

    /// The model that an opened sum of so many rows and authors gives: that after a step along it, or the one
    /// that is solved from it.
    ///
    /// # Errors
    /// The plan of the round is no step of gradient descent; the solved model is not finite.
    pub(crate) fn model(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        sum: &[i64],
        (rows, authors): (u64, usize),
    ) -> Result<Params, String> {
        let Some(once) = &self.once else {
            return self.step(config, base, sum, rows);
        };
        let step = self.clip.step();
        let noise = self.sigma() as f64 * (authors as f64).sqrt() * step;
        once.model(&base.gate.layout, (sum, rows), step, noise)
    }

    /// The model after a step along an opened sum of so many rows.
    fn step(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        sum: &[i64],
        rows: u64,
    ) -> Result<Params, String> {
        let rate = rate(config, base)?;
        let start = base.start()?;
        let step = self.clip.step();
        Ok(Params::build(&base.gate.layout, |values| {
            let parts = values.iter_mut().zip(start.values()).zip(sum);
            for ((value, start), sum) in parts {
                let gradient = *sum as f64 * step / rows as f64;
                *value = (f64::from(*start) - rate * gradient) as f32;
            }
        }))
    }
}

/// Whether a silo can take part in rounds with the agreed noise, if there is some.
///
/// # Errors
/// The noise cannot be drawn for models of this size, rows have no gradients of their own, or the model is none
/// that is solved at once where that is agreed on.
pub(crate) fn check_noise(config: &SiloConfig, base: &RoundBase) -> Result<(), String> {
    let masked = config.member.epoch.charter.privacy.masked();
    let Some(noised) = Noised::of(masked, base.gate.layout.len())? else {
        return Ok(());
    };
    let units = config.learner.units().map_err(|error| error.to_string())?;
    match &noised.once {
        Some(_) => once::check(units, &base.gate.layout),
        None => Ok(()),
    }
}

/// The rows that the authors of a sum declared.
pub(crate) fn declared(config: &SiloConfig, sum: &Sum) -> u64 {
    let roster = &config.member.epoch.roster;
    let rows = sum.authors.iter().map(|(by, _)| roster.rows(*by));
    rows.fold(0, u64::saturating_add)
}

fn declared_by(config: &SiloConfig) -> u64 {
    config.member.epoch.roster.rows(config.member.me)
}

/// The learning rate of the round.
fn rate(config: &SiloConfig, base: &RoundBase) -> Result<f64, String> {
    match &base.plan(config).task {
        Task::Train(training) => match training.optimiser {
            Optimiser::Sgd { rate, .. } => Ok(rate),
            Optimiser::Adam { .. } => Err(
                "differentially private rounds take steps of plain gradient descent, and the plan has adam".into(),
            ),
        },
        Task::Summarise | Task::Keep => {
            Err("differentially private rounds take steps, and the plan of this round has none".into())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
