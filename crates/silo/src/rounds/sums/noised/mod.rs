//! Numbers of every unit of a silo, clipped and rounded by itself, added up, with noise. The formulas are those
//! of [`privacy::sensitivity`] and [`privacy::noise`].

use std::collections::BTreeMap;

use bytes::Bytes;
use methods::Params;
use methods::learner::UnitRows;
use privacy::masks::{Reach, Shape};
use privacy::noise::{Authors, Gaussian, Multiplier, Noise, Seed};
use privacy::sensitivity::Clip;
use protocol::parameters::{Noise as AgreedNoise, Release, Unit};
use protocol::privacy::{Masked, Sum};
use protocol::{Hash, MemberIndex};

use super::answers::AnswersOfRows;
use super::gradients::GradientStep;
use super::products::SolvedOnce;
use super::units::{NoisySum, UnitNumbers};
use super::{
    DrawnSecrets, OpenedTotal, PreparedInput, PreparedRound, PreparedSummand, SecretIntegers,
    SumBasis, Summand, ToldModel, Train,
};
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::secrets::RoundSecrets;

/// The agreement on noise, in the numbers of the mathematics.
pub(crate) struct Noised {
    clip: Clip,
    gaussian: Gaussian,
    rows: UnitRows,
    numbers: Box<dyn UnitNumbers>,
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
    /// That of a federation for models of so many numbers.
    ///
    /// # Errors
    /// The numbers give no noise that can be drawn.
    pub(crate) fn new(
        masked: &Masked,
        noise: &AgreedNoise,
        numbers: usize,
    ) -> Result<Self, String> {
        let numbers: Box<dyn UnitNumbers> = match noise.release {
            Release::Steps => Box::new(GradientStep(numbers)),
            Release::Once { .. } => Box::new(SolvedOnce::new(noise.release, numbers)?),
        };
        Self::of_units((masked, noise), numbers)
    }

    /// That of the round of a question.
    ///
    /// # Errors
    /// The numbers give no noise that can be drawn, or the question has no bound for one row.
    pub(crate) fn of_question(
        of: SumBasis<'_>,
        agreed: (&Masked, &AgreedNoise),
        question: u32,
    ) -> Result<Self, String> {
        let clip = agreed.1.clip.value();
        let numbers = AnswersOfRows::new(of, clip, question as usize)?;
        Self::of_units(agreed, Box::new(numbers))
    }

    fn of_units(
        (masked, noise): (&Masked, &AgreedNoise),
        numbers: Box<dyn UnitNumbers>,
    ) -> Result<Self, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let sensitivity = numbers.sensitivity()?;
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
            numbers,
        })
    }

    /// Returns the number of numbers that a sum has.
    pub(crate) fn count(&self) -> usize {
        self.clip.sensitivity().dimension() as usize
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
    pub(crate) fn vector(&self, of: SumBasis<'_>, seed: &Seed) -> Result<NoisedVector, String> {
        let mut summed = SecretIntegers::zeros(self.count());
        let integers = summed.all_mut();
        let mut wrong = None;
        let loss = self.each_unit(of, &mut |numbers| {
            let added = self.clip.add(numbers, integers);
            wrong = wrong.take().or(added.err());
        })?;
        if let Some(error) = wrong {
            return Err(error.to_string());
        }
        self.clip
            .sensitivity()
            .saturate(self.units(declared_by(of.config)), integers);
        self.add_noise(seed, integers);
        Ok(NoisedVector {
            integers: summed,
            loss,
            samples: of.config.learner.samples(),
        })
    }

    fn each_unit(&self, of: SumBasis<'_>, add: &mut dyn FnMut(&[f64])) -> Result<f64, String> {
        self.numbers.each(of, self.rows, add)
    }

    /// The units that silos which declared so many rows may have.
    fn units(&self, rows: u64) -> u64 {
        rows.saturating_mul(self.numbers.units_per_row())
    }

    /// Gives `with` the integers of every unit of the silo.
    ///
    /// # Errors
    /// Its learner has no numbers of single units.
    pub(crate) fn single_units(
        &self,
        of: SumBasis<'_>,
        with: &mut dyn FnMut(&[i64]),
    ) -> Result<(), String> {
        let mut integers = vec![0; self.count()];
        let mut wrong = None;
        self.each_unit(of, &mut |numbers| {
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

    /// The model that an opened sum of so many rows, by these authors, gives.
    ///
    /// # Errors
    /// It gives none in this round, or one that is not finite.
    pub(crate) fn model_of(
        &self,
        of: SumBasis<'_>,
        total: &[i64],
        (rows, authors): (u64, &[MemberIndex]),
    ) -> Result<Params, String> {
        let step = self.clip.step();
        let sum = NoisySum {
            total,
            step,
            authors,
            rows,
            noise: self.gaussian.sigma() as f64 * (authors.len() as f64).sqrt() * step,
        };
        self.numbers.model(of, &sum)
    }
}

impl Summand for Noised {
    fn check(&self, of: SumBasis<'_>) -> Result<(), String> {
        self.numbers.check(of)
    }

    fn shape(&self, of: SumBasis<'_>, sum: &Sum) -> Result<Shape, String> {
        let reach = self.reach(self.units(declared(of.config, sum)), sum.authors.len())?;
        let reach = reach.most().max(self.numbers.least_reach());
        let reach = Reach::new(reach).map_err(|error| error.to_string())?;
        Shape::new(self.count(), reach).map_err(|error| error.to_string())
    }

    fn weight(&self, of: SumBasis<'_>, sum: &Sum) -> u64 {
        declared(of.config, sum)
    }

    fn draw(&self, secrets: &mut dyn RoundSecrets) -> Result<DrawnSecrets, String> {
        Ok(DrawnSecrets {
            secret: secrets.mask()?,
            noise: Some(secrets.noise()?),
        })
    }

    fn effort(&self, config: &SiloConfig, _: WorkSize) -> WorkSize {
        WorkSize::Train {
            samples: config.learner.samples(),
        }
    }

    fn prepare(
        &self,
        of: SumBasis<'_>,
        drawn: DrawnSecrets,
        _: Train<'_>,
        lay: &dyn Fn(Bytes) -> Bytes,
    ) -> Result<PreparedSummand, String> {
        let DrawnSecrets { secret, noise } = drawn;
        let seed = noise.ok_or("no noise was drawn")?;
        let vector = self.vector(of, &seed)?;
        let (integers, epoch) = (vector.integers, &of.config.member.epoch.id);
        let blob = lay(PreparedRound::integers_blob(&secret, epoch, integers.all()));
        Ok(PreparedSummand {
            secret,
            input: PreparedInput::Integers(integers),
            hash: Hash::of(&blob),
            blob,
            // Nothing else is learned from rows.
            personal: None,
            loss: vector.loss,
            metrics: BTreeMap::new(),
            samples: vector.samples,
        })
    }

    fn model(&self, of: SumBasis<'_>, opened: &mut dyn OpenedTotal) -> Result<ToldModel, String> {
        let (rows, authors) = (opened.weights(), opened.members());
        let mut total = vec![0; self.count()];
        let whole = opened.each_block(&mut |at, block| {
            total[at..at + block.len()].copy_from_slice(block);
        })?;
        let model = self.model_of(of, &total, (rows, &authors));
        Ok((model.map(|model| vec![model]), whole))
    }

    fn sigma(&self) -> Option<f64> {
        Some(self.gaussian.sigma() as f64)
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

#[cfg(test)]
pub(crate) mod tests;
