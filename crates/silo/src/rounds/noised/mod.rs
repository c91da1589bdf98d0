//! What a silo sends in a round with noise, and what the opened sum of all says: one step of gradient descent
//! on the rows of all authors. The formulas are those of [`privacy::sensitivity`] and [`privacy::noise`].
//!
//! Every unit's gradient is clipped and rounded by itself, the integers are added, and the noise is added to
//! them. The opened sum times the step of the rounding, divided by the rows that the authors declared, is the
//! mean gradient.

use methods::learner::{Optimiser, UnitRows};
use methods::{Params, Task};
use privacy::masks::{Reach, Shape};
use privacy::noise::{Authors, Gaussian, Multiplier, Noise, Seed};
use privacy::sensitivity::{Clip, Sensitivity};
use protocol::charter::{Noise as AgreedNoise, Unit};
use protocol::privacy::{Masked, Sum};

use super::RoundBase;
use crate::config::SiloConfig;

/// The agreement on noise, in the numbers of the mathematics.
pub(crate) struct Noised {
    clip: Clip,
    gaussian: Gaussian,
    rows: UnitRows,
}

/// The integers of a silo with their noise, and what training says of itself.
#[derive(Debug)]
pub(crate) struct NoisedVector {
    pub(crate) integers: Vec<i64>,
    /// Mean loss of the rows before the step. It stays at home.
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
        let sensitivity = Sensitivity::new(numbers as u64).map_err(|error| said(&error))?;
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
        })
    }

    /// The shape of the vectors of a sum.
    ///
    /// # Errors
    /// The sum could be larger than words can be.
    pub(crate) fn shape(&self, config: &SiloConfig, sum: &Sum) -> Result<Shape, String> {
        let reach = self.reach(declared(config, sum), sum.authors.len())?;
        let numbers = self.clip.sensitivity().dimension() as usize;
        Shape::new(numbers, reach).map_err(|error| error.to_string())
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
    /// # Errors
    /// The silo has more rows than it declared, or its learner has no gradients of single units.
    pub(crate) fn vector(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        seed: &Seed,
    ) -> Result<NoisedVector, String> {
        let (samples, agreed) = (config.learner.samples(), declared_by(config));
        if samples > agreed {
            return Err(format!(
                "this institution has {samples} training rows and declared {agreed}: the noise is too little for \
                 more, so it takes no part until an amendment raises its `rows`"
            ));
        }
        let model = base.start()?;
        let mut integers = vec![0; model.values().len()];
        let units = config.learner.units().map_err(|error| error.to_string())?;
        let mut wrong = None;
        let loss = units.unit_gradients(&model, self.rows, &mut |gradient| {
            let added = self.clip.add(gradient, &mut integers);
            wrong = wrong.take().or(added.err());
        });
        let loss = loss.map_err(|error| error.to_string())?;
        if let Some(error) = wrong {
            return Err(error.to_string());
        }
        self.add_noise(seed, &mut integers);
        Ok(NoisedVector {
            integers,
            loss,
            samples,
        })
    }

    /// Gives `with` the integers of every unit of the silo.
    ///
    /// # Errors
    /// Its learner has no gradients of single units.
    pub(crate) fn units(
        &self,
        config: &SiloConfig,
        base: &RoundBase,
        with: &mut dyn FnMut(&[i64]),
    ) -> Result<(), String> {
        let model = base.start()?;
        let mut integers = vec![0; model.values().len()];
        let units = config.learner.units().map_err(|error| error.to_string())?;
        let mut wrong = None;
        let given = units.unit_gradients(&model, self.rows, &mut |gradient| {
            let written = self.clip.integers(gradient, &mut integers);
            wrong = wrong.take().or(written.err());
            with(&integers);
        });
        given.map_err(|error| error.to_string())?;
        wrong.map_or(Ok(()), |error| Err(error.to_string()))
    }

    /// Adds the noise of one silo, which follows from `seed` alone.
    pub(crate) fn add_noise(&self, seed: &Seed, integers: &mut [i64]) {
        Noise::new(seed).add(self.gaussian, integers);
    }

    /// The model after a step along an opened sum of these authors.
    ///
    /// # Errors
    /// The plan of the round is no step of gradient descent.
    pub(crate) fn step(
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
/// The noise cannot be drawn for models of this size, or rows have no gradients of their own.
pub(crate) fn check_noise(config: &SiloConfig, base: &RoundBase) -> Result<(), String> {
    let masked = config.member.epoch.charter.privacy.masked();
    if Noised::of(masked, base.gate.layout.len())?.is_some() {
        config.learner.units().map_err(|error| error.to_string())?;
    }
    Ok(())
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
                "noised rounds take steps of plain gradient descent, and the plan has adam".into(),
            ),
        },
        Task::Summarise | Task::Keep => {
            Err("noised rounds take steps, and the plan of this round has none".into())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
