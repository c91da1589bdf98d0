//! Rounds with noise without masks and messages, for simulations and for those who study what sums tell: the
//! integers of all silos, with their noise, are added as they are. Masks would cancel in the sum, so it is the
//! one that members open, and its outcome is that of secure-aggregation rounds.

use privacy::noise::Seed;
use protocol::MemberIndex;
use protocol::privacy::{Sum, threshold};

use super::combine::{OpenedOf, settle};
use super::shape;
use crate::config::SiloConfig;
use crate::outcome::{Settled, SumNote};
use crate::rounds::RoundBase;
use crate::rounds::sums::{Noised, SecretIntegers, SumBasis, Summand, agreed_noise};
use crate::secrets::{RoundSecrets, SeededSecrets};

/// The noise of one silo over its rounds.
pub struct NoiseDraws(SeededSecrets);

impl NoiseDraws {
    /// The noise of a silo that starts with these random bytes, as [`spawn`](crate::spawn) draws it.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(SeededSecrets::new(seed))
    }
}

/// Summand of a silo in the sum of a round.
#[derive(Debug, Clone)]
pub struct NoisedShare {
    integers: SecretIntegers,
    /// Mean loss of the rows before the step.
    pub loss: f64,
    /// Training rows.
    pub samples: u64,
}

impl NoisedShare {
    /// Adds what the silo sends to a sum, which may be empty.
    pub fn add_to(&self, sum: &mut Vec<i64>) {
        sum.resize(self.integers.all().len(), 0);
        let pairs = sum.iter_mut().zip(self.integers.all());
        pairs.for_each(|(sum, own)| *sum = sum.saturating_add(*own));
    }
}

/// Returns what the silo adds to the sum of the next round; `None` where no noise is agreed on.
///
/// # Errors
/// Reason for which the silo has nothing to contribute.
pub fn noised_share(
    config: &SiloConfig,
    base: &RoundBase,
    draws: &mut NoiseDraws,
) -> Result<Option<NoisedShare>, String> {
    let of = SumBasis { config, base };
    let Some(noised) = agreed_noise(of)? else {
        return Ok(None);
    };
    // A silo draws the secret behind its masks first.
    draws.0.mask()?;
    let vector = noised.vector(of, &draws.0.noise()?)?;
    Ok(Some(NoisedShare {
        integers: vector.integers,
        loss: vector.loss,
        samples: vector.samples,
    }))
}

/// Summand of a silo in the sum of a round, in two parts. Nobody but the silo itself knows them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisedPart {
    /// The clipped and rounded numbers of its units, added up and saturated at what the units that it declared
    /// can add up to.
    pub units: Vec<i64>,
    /// Its noise.
    pub noise: Vec<i64>,
}

/// Returns what the silo of `config` adds to the sum of the next round, with the noise that follows from `seed`.
///
/// # Errors
/// No noise is agreed on, or the learner of the silo has no numbers of single units.
pub fn noised_part(
    config: &SiloConfig,
    base: &RoundBase,
    seed: [u8; 32],
) -> Result<NoisedPart, String> {
    let of = SumBasis { config, base };
    let noised = agreed(of)?;
    let seed = Seed::new(seed);
    let units = noised.vector(of, &seed)?;
    let mut units = units.integers.all().to_vec();
    let mut noise = vec![0; units.len()];
    noised.add_noise(&seed, &mut noise);
    for (sum, noise) in units.iter_mut().zip(&noise) {
        *sum = sum.wrapping_sub(*noise);
    }
    Ok(NoisedPart { units, noise })
}

/// Gives `with` what every single unit of the silo adds to the sum of the next round, in the order of its
/// training rows. Their sum, saturated, is [`NoisedPart::units`].
///
/// # Errors
/// No noise is agreed on, or the learner of the silo has no numbers of single units.
pub fn unit_vectors(
    config: &SiloConfig,
    base: &RoundBase,
    with: &mut dyn FnMut(&[i64]),
) -> Result<(), String> {
    let of = SumBasis { config, base };
    agreed(of)?.single_units(of, with)
}

/// The outcome of the next round, in which the members opened this sum of these authors, ascending.
///
/// # Errors
/// No noise is agreed on, or it cannot be drawn.
pub fn noised_outcome(
    config: &SiloConfig,
    base: &RoundBase,
    authors: &[MemberIndex],
    sum: &[i64],
) -> Result<Settled, String> {
    let all = of_all(authors.iter().copied());
    let of = SumBasis { config, base };
    let noised = agreed(of)?;
    let told = (noised.weight(of, &all), authors);
    let model = noised.model_of(of, sum, told).map(|model| vec![model]);
    let notes = vec![SumNote {
        group: 0,
        void: None,
    }];
    let of = OpenedOf {
        authors: authors.to_vec(),
        vectors: Vec::new(),
        sums: std::slice::from_ref(&all),
    };
    Ok(settle(config, base, &of, notes, Some(model)))
}

fn agreed(of: SumBasis<'_>) -> Result<Noised, String> {
    agreed_noise(of)?.ok_or_else(|| "the federation agreed on no noise".into())
}

/// Bytes of what each of these authors would send to every other member of its masked vector: the vector and
/// its transcript.
///
/// # Errors
/// The sum could be larger than words can be.
pub fn vector_bytes(
    config: &SiloConfig,
    base: &RoundBase,
    authors: impl Iterator<Item = MemberIndex>,
) -> Result<u64, String> {
    let sum = of_all(authors);
    let ready = sum.authors.len();
    let transcript = 32 * (ready + threshold(&config.member.epoch.roster, ready) + 1);
    Ok((shape(config, base, &sum)?.bytes() + transcript) as u64)
}

/// The sum of all authors, each with the same weight.
fn of_all(authors: impl Iterator<Item = MemberIndex>) -> Sum {
    Sum {
        authors: authors.map(|by| (by, 1)).collect(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use protocol::privacy::Privacy;

    use super::*;
    use crate::outcome::genesis;
    use crate::rounds::sums::noise;
    use crate::testing::{config, epoch_declaring, learner};

    fn silo(me: u16) -> SiloConfig {
        let epoch = epoch_declaring(4, 9, Some(50), |protocol| {
            protocol.privacy = Privacy::Masked(noise(20.0));
        });
        let mut config = config(&epoch, me);
        config.learner = Arc::new(learner(f64::from(me)).with_samples(50));
        config
    }

    fn base(config: &SiloConfig) -> RoundBase {
        let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
        RoundBase::new(config, &genesis)
    }

    #[test]
    fn a_silos_parts_are_those_of_its_vector_and_its_units_add_up() {
        let config = silo(2);
        let base = base(&config);
        let part = noised_part(&config, &base, [3; 32]).unwrap();
        let of = SumBasis {
            config: &config,
            base: &base,
        };
        let vector = agreed(of).unwrap().vector(of, &Seed::new([3; 32]));
        let vector = vector.unwrap();
        let both = part.units.iter().zip(&part.noise);
        let both: Vec<_> = both.map(|(units, noise)| units + noise).collect();
        assert_eq!(both, vector.integers.all());
        assert_ne!(part.noise, [0]);
        let (mut units, mut sum) = (0, vec![0; part.units.len()]);
        unit_vectors(&config, &base, &mut |unit| {
            units += 1;
            sum.iter_mut().zip(unit).for_each(|(sum, one)| *sum += one);
        })
        .unwrap();
        assert_eq!((units, sum), (50, part.units));
    }

    #[test]
    fn the_outcome_of_a_sum_is_one_step_on_the_rows_of_its_authors() {
        let config = silo(0);
        let base = base(&config);
        let authors: Vec<_> = (0..4).map(MemberIndex).collect();
        // All 200 rows of a mean gradient of -1.5, in steps of 1/128; half of it is taken.
        let settled = noised_outcome(&config, &base, &authors, &[-3 * 64 * 200]).unwrap();
        assert_eq!(settled.state.models[0].values(), [0.75]);
        assert_eq!(settled.document.round, 1);
        // Three of them have 150 rows.
        let settled = noised_outcome(&config, &base, &authors[1..], &[-3 * 64 * 150]).unwrap();
        assert_eq!(settled.state.models[0].values(), [0.75]);
    }
}
