//! Rounds with noise without masks and messages: what a silo adds to a sum, and the outcome that follows from
//! the sum. For those who study what sums tell; masks cancel in a sum, so it is the one that members open.

use methods::State;
use privacy::noise::Seed;
use protocol::MemberIndex;
use protocol::privacy::{Masked, Sum};

use super::RoundBase;
use super::masked::learn;
use super::noised::{Noised, declared};
use crate::config::SiloConfig;
use crate::outcome::{MaskedNote, Nothing, Settled, SumNote, unchanged};

/// What a silo adds to the sum of a round, in two parts. Nobody but the silo itself knows them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoisedPart {
    /// The clipped and rounded gradients of its units, added up.
    pub gradients: Vec<i64>,
    /// Its noise.
    pub noise: Vec<i64>,
}

/// What the silo of `config` adds to the sum of the next round, with the noise that follows from `seed`.
///
/// # Errors
/// No noise is agreed on, the silo has more rows than it declared, or its learner has no gradients of single
/// units.
pub fn noised_part(
    config: &SiloConfig,
    base: &RoundBase,
    seed: [u8; 32],
) -> Result<NoisedPart, String> {
    let noised = agreed(config, base)?;
    let seed = Seed::new(seed);
    let mut gradients = noised.vector(config, base, &seed)?.integers;
    let mut noise = vec![0; gradients.len()];
    noised.add_noise(&seed, &mut noise);
    for (sum, noise) in gradients.iter_mut().zip(&noise) {
        *sum = sum.wrapping_sub(*noise);
    }
    Ok(NoisedPart { gradients, noise })
}

/// Gives `with` what every single unit of the silo adds to the sum of the next round, in the order of its
/// training rows. Their sum is [`NoisedPart::gradients`].
///
/// # Errors
/// No noise is agreed on, or the learner of the silo has no gradients of single units.
pub fn unit_vectors(
    config: &SiloConfig,
    base: &RoundBase,
    with: &mut dyn FnMut(&[i64]),
) -> Result<(), String> {
    agreed(config, base)?.units(config, base, with)
}

/// The outcome of the next round, in which the members opened this sum of these authors.
///
/// # Errors
/// No noise is agreed on.
pub fn noised_outcome(
    config: &SiloConfig,
    base: &RoundBase,
    authors: &[MemberIndex],
    sum: &[i64],
) -> Result<Settled, String> {
    let noised = agreed(config, base)?;
    let weighed = authors.iter().map(|by| (*by, 1)).collect();
    let rows = declared(config, &Sum { authors: weighed });
    let learned = learn(config, base, noised.step(config, base, sum, rows));
    let (state, nothing) = match learned {
        Ok(Some(state)) => (state, None),
        Ok(None) | Err(_) => {
            let before = unchanged(base.next(), &base.state).state;
            (State::clone(&before), Some(Nothing::Refused))
        }
    };
    let mut note = MaskedNote {
        epoch: config.member.epoch.id,
        authors: authors.to_vec(),
        left_out: vec![false; authors.len()],
        void: base.void.clone(),
        sums: vec![SumNote {
            group: 0,
            void: None,
        }],
        nothing,
    };
    let masked = config.member.epoch.charter.privacy.masked();
    note.count(masked.map_or(0, Masked::most_sums));
    let assignment = vec![0; authors.len()];
    Ok(Settled::masked(
        base.next(),
        Vec::new(),
        assignment,
        state,
        note,
    ))
}

fn agreed(config: &SiloConfig, base: &RoundBase) -> Result<Noised, String> {
    let masked = config.member.epoch.charter.privacy.masked();
    let noised = Noised::of(masked, base.gate.layout.len())?;
    noised.ok_or_else(|| "the federation agreed on no noise".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use protocol::privacy::Privacy;

    use super::*;
    use crate::outcome::genesis;
    use crate::rounds::noised::tests::noise;
    use crate::testing::{config, epoch_declaring, learner};

    fn silo(me: u16) -> SiloConfig {
        let epoch = epoch_declaring(4, 9, Some(50), |charter| {
            charter.privacy = Privacy::Masked(noise(20.0));
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
    fn the_parts_of_a_silo_are_those_of_its_vector_and_its_units_add_up() {
        let config = silo(2);
        let base = base(&config);
        let part = noised_part(&config, &base, [3; 32]).unwrap();
        let noised = agreed(&config, &base).unwrap();
        let vector = noised.vector(&config, &base, &Seed::new([3; 32])).unwrap();
        let both = part.gradients.iter().zip(&part.noise);
        let both: Vec<_> = both.map(|(gradient, noise)| gradient + noise).collect();
        assert_eq!(both, vector.integers);
        assert_ne!(part.noise, [0]);
        let (mut units, mut sum) = (0, vec![0; part.gradients.len()]);
        unit_vectors(&config, &base, &mut |unit| {
            units += 1;
            sum.iter_mut().zip(unit).for_each(|(sum, one)| *sum += one);
        })
        .unwrap();
        assert_eq!((units, sum), (50, part.gradients));
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
