//! Rounds with noise for simulations without messages: the integers of all silos, with their noise, are added
//! as they are. Masks would cancel in the sum, so its outcome is that of masked rounds.

use protocol::MemberIndex;
use protocol::privacy::{Sum, threshold};

use super::combine::{OpenedOf, settle};
use super::{MaskSecrets, noised, shape};
use crate::config::SiloConfig;
use crate::outcome::{Settled, SumNote};
use crate::rounds::RoundBase;
use crate::rounds::noised::declared;

/// The noise of one silo over its rounds.
pub struct NoiseDraws(MaskSecrets);

impl NoiseDraws {
    /// The noise of a silo that starts with these random bytes, as [`spawn`](crate::spawn) draws it.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self(MaskSecrets::new(seed))
    }
}

/// What a silo adds to the sum of a round.
#[derive(Debug, Clone)]
pub struct NoisedShare {
    integers: Vec<i64>,
    /// Mean loss of the rows before the step.
    pub loss: f64,
    /// Training rows.
    pub samples: u64,
}

/// The silo's gradients with noise for the next round; `None` where no noise is agreed on.
///
/// # Errors
/// Why the silo has nothing to contribute.
pub fn noised_share(
    config: &SiloConfig,
    base: &RoundBase,
    draws: &mut NoiseDraws,
) -> Result<Option<NoisedShare>, String> {
    let Some(noised) = noised(config, base)? else {
        return Ok(None);
    };
    // A silo draws the secret behind its masks first.
    draws.0.draw();
    let vector = noised.vector(config, base, &draws.0.draw_noise())?;
    Ok(Some(NoisedShare {
        integers: vector.integers,
        loss: vector.loss,
        samples: vector.samples,
    }))
}

/// The outcome of a round of these authors, ascending.
///
/// # Errors
/// The agreed noise cannot be drawn.
pub fn noised_outcome(
    config: &SiloConfig,
    base: &RoundBase,
    shares: &[(MemberIndex, NoisedShare)],
) -> Result<Settled, String> {
    let sum = of_all(shares.iter().map(|(by, _)| *by));
    let noised = noised(config, base)?.ok_or("no noise is agreed on")?;
    let mut total = vec![0_i64; noised.numbers()];
    for (_, share) in shares {
        let pairs = total.iter_mut().zip(&share.integers);
        pairs.for_each(|(total, own)| *total = total.saturating_add(*own));
    }
    let told = (declared(config, &sum), shares.len());
    let model = noised.model(config, base, &total, told);
    let notes = vec![SumNote {
        group: 0,
        void: None,
    }];
    let of = OpenedOf {
        authors: shares.iter().map(|(by, _)| *by).collect(),
        vectors: Vec::new(),
        sums: std::slice::from_ref(&sum),
    };
    Ok(settle(config, base, &of, notes, Some(model)))
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
