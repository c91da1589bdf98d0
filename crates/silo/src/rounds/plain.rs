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
