//! Sums of silos in secure-aggregation rounds. The protocol knows vectors of integers, lists of their authors
//! and sums; the meaning of the integers, and the conclusions from the sum of all, are here, one file for each:
//!
//! - [`models`]: trained models, weighted as agreed. The sum is their mean;
//! - [`answers`]: answers to a question, in the rounds whose plan has one;
//! - [`statistics`]: integers that a strategy adds up, where its silos send no models;
//! - [`noised`]: what every row or person says, clipped and rounded by itself, with noise. The numbers of a unit are
//!   those of an agreed release: [`gradients`] of a step, or [`products`] that the model is solved from.
//!
//! Whoever adds a summand that has noise adds its numbers ([`UnitNumbers`](units::UnitNumbers)); another one adds a
//! [`Summand`] and its mode.

mod answers;
mod gradients;
mod models;
mod noised;
mod prepared;
mod products;
mod statistics;
mod units;

use std::collections::BTreeMap;

use bytes::Bytes;
use methods::{Params, Task};
use privacy::masks::{Secret, Shape};
use privacy::noise::Seed;
use protocol::privacy::{Masked, Noise, Privacy, RoundMode, Sum};
use protocol::{Hash, MemberIndex};

use super::{Contributed, Personal, RoundBase};
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::secrets::RoundSecrets;

pub use answers::authors_pseudonym;

use answers::SumOfAnswers;
use models::MeanOfModels;
pub(crate) use models::reach;
pub(crate) use noised::Noised;
#[cfg(test)]
pub(crate) use noised::tests::noise;
pub use prepared::disclosed_secret;
pub(crate) use prepared::{PreparedInput, PreparedRound, SecretIntegers};
use statistics::SumOfStatistics;

/// A silo at the beginning of a round.
#[derive(Clone, Copy)]
pub(crate) struct SumBasis<'a> {
    pub(crate) config: &'a SiloConfig,
    pub(crate) base: &'a RoundBase,
}

/// Kind of vectors that silos add up.
pub(crate) trait Summand: Send {
    /// Checks that a silo can take part in such rounds.
    ///
    /// # Errors
    /// Reason for which it cannot.
    fn check(&self, of: SumBasis<'_>) -> Result<(), String>;

    /// The shape of the vectors of a sum.
    ///
    /// # Errors
    /// The sum could be larger than words can be.
    fn shape(&self, of: SumBasis<'_>, sum: &Sum) -> Result<Shape, String>;

    /// Returns what a sum is divided by.
    fn weight(&self, of: SumBasis<'_>, sum: &Sum) -> u64;

    /// Draws what is random in a silo's vector. Once for an epoch and round.
    ///
    /// # Errors
    /// There are no random bytes.
    fn draw(&self, secrets: &mut dyn RoundSecrets) -> Result<DrawnSecrets, String>;

    /// The size of the work of preparing a vector, where that of training is this one.
    fn effort(&self, config: &SiloConfig, training: WorkSize) -> WorkSize;

    /// Returns what a silo adds to the sum of the next round. `lay` puts bytes where they take no memory.
    ///
    /// # Errors
    /// Reason for which the silo has nothing to add.
    fn prepare(
        &self,
        of: SumBasis<'_>,
        drawn: DrawnSecrets,
        train: Train<'_>,
        lay: &dyn Fn(Bytes) -> Bytes,
    ) -> Result<PreparedSummand, String>;

    /// The models that the opened sums give, one for all of them or one for each, and whether none of the sums turned out
    /// to be void. The models are an error if nothing can be made of the sums.
    ///
    /// # Errors
    /// The sums cannot be opened.
    fn model(&self, of: SumBasis<'_>, opened: &mut dyn OpenedTotal) -> Result<ToldModel, String>;

    /// With noise, the standard deviation of that of one author in each coordinate.
    fn sigma(&self) -> Option<f64>;
}

/// Models that sums gave, or why they give none, and whether all of them were whole.
pub(crate) type ToldModel = (Result<Vec<Params>, String>, bool);

/// The training of the round under way.
pub(crate) type Train<'a> = Box<dyn FnOnce() -> Result<Contributed, String> + 'a>;

/// Random parts of a silo's vector.
pub(crate) struct DrawnSecrets {
    /// Secret that its masks follow from.
    pub(crate) secret: Secret,
    /// Seed that its noise follows from, where there is some.
    pub(crate) noise: Option<Seed>,
}

impl DrawnSecrets {
    /// Those of a vector without noise.
    ///
    /// # Errors
    /// There are no random bytes.
    fn masks_alone(secrets: &mut dyn RoundSecrets) -> Result<Self, String> {
        Ok(Self {
            secret: secrets.mask()?,
            noise: None,
        })
    }
}

/// Prepared summand of a silo.
pub(crate) struct PreparedSummand {
    pub(crate) secret: Secret,
    pub(crate) input: PreparedInput,
    /// The bytes that are kept of it, and their hash.
    pub(crate) blob: Bytes,
    pub(crate) hash: Hash,
    /// Personal state after the training; `None` where it stays as it was.
    pub(crate) personal: Option<Personal>,
    /// Mean loss of the rows, not a number where there are none. It stays at home.
    pub(crate) loss: f64,
    /// Further metrics that the learner reports of its training, by name. They stay at home.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// Training rows.
    pub(crate) samples: u64,
}

/// The opened sums that tell something, added up.
pub(crate) trait OpenedTotal {
    /// Σ of what they are divided by.
    fn weights(&self) -> u64;

    /// Returns whose vectors are in them.
    fn members(&self) -> Vec<MemberIndex>;

    /// Gives `block` each block of coordinates of the total, with its beginning. Returns whether none of the sums
    /// turned out to be void.
    ///
    /// # Errors
    /// The sums cannot be opened.
    fn each_block(&mut self, block: &mut dyn FnMut(usize, &[i64])) -> Result<bool, String>;

    /// Gives `each` the authors and the coordinates of every sum by itself, in their order. Returns whether none of them
    /// turned out to be void.
    ///
    /// # Errors
    /// The sums cannot be opened.
    fn each_sum(&mut self, each: &mut dyn FnMut(&[MemberIndex], &[i64])) -> Result<bool, String>;
}

/// Returns what the silos of a federation add up in the next round.
///
/// # Errors
/// Rounds are in clear, or the agreed numbers give no noise that can be drawn.
pub(crate) fn summand(of: SumBasis<'_>) -> Result<Box<dyn Summand>, String> {
    match of.config.member.epoch.protocol.privacy.mode() {
        RoundMode::Clear | RoundMode::Named => Err("rounds in clear open no sums".into()),
        RoundMode::Masked(masked) => match of.base.plan(of.config).task {
            Task::Answer(_) => Ok(Box::new(SumOfAnswers)),
            Task::Train(_) | Task::Summarise | Task::Keep => match SumOfStatistics::of(of, masked)?
            {
                Some(statistics) => Ok(Box::new(statistics)),
                None => Ok(Box::new(MeanOfModels)),
            },
        },
        RoundMode::Noised(masked, noise) => Ok(Box::new(noised_sum(of, (masked, noise))?)),
    }
}

/// Returns what silos that add noise add up in the next round.
fn noised_sum(of: SumBasis<'_>, agreed: (&Masked, &Noise)) -> Result<Noised, String> {
    match of.base.plan(of.config).task {
        Task::Answer(question) => Noised::of_question(of, agreed, question),
        Task::Train(_) | Task::Summarise | Task::Keep => {
            let (masked, noise) = agreed;
            Noised::new(masked, noise, of.base.gate.layout.len())
        }
    }
}

/// The agreement on noise of a federation, in the numbers of the mathematics; `None` where there is none.
///
/// # Errors
/// The numbers give no noise that can be drawn.
pub(crate) fn agreed_noise(of: SumBasis<'_>) -> Result<Option<Noised>, String> {
    match of.config.member.epoch.protocol.privacy.mode() {
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => Ok(None),
        RoundMode::Noised(masked, noise) => noised_sum(of, (masked, noise)).map(Some),
    }
}

/// Checks the model that a federation begins with.
///
/// # Errors
/// A number of it is not finite, or too large for what is added up.
pub(crate) fn check_start(privacy: &Privacy, start: Option<&Params>) -> Result<(), String> {
    match privacy.mode() {
        RoundMode::Clear | RoundMode::Named | RoundMode::Noised(..) => Ok(()),
        RoundMode::Masked(_) => start.map_or(Ok(()), models::check_start),
    }
}

/// Checks that a silo can take part in the rounds of its federation.
///
/// # Errors
/// Reason for which it cannot.
pub(crate) fn check_summand(of: SumBasis<'_>) -> Result<(), String> {
    match of.config.member.epoch.protocol.privacy.mode() {
        RoundMode::Clear | RoundMode::Named => Ok(()),
        RoundMode::Masked(_) | RoundMode::Noised(..) => summand(of)?.check(of),
    }
}

/// Returns true if the authors of a sum that told nothing may disclose their secrets: with noise a disclosure
/// would publish a vector with the noise of one silo alone.
pub(crate) fn may_disclose(privacy: &Privacy) -> bool {
    match privacy.mode() {
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => true,
        RoundMode::Noised(..) => false,
    }
}
