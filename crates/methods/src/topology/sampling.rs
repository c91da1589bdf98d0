//! Who trains in a round, drawn by the weights λ, and how what they return is weighted.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::simplex::contains;

/// How the clients of a round are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Independent draws by λ, as in DRFA (Deng et al. 2020). A client drawn twice trains once and
    /// counts twice, so the mean is right on average: `E[Σ shares·θ] = Σ λ_k·θ_k`.
    #[default]
    WithReplacement,
    /// Draws by λ among those not yet drawn, all with equal shares: nobody counts twice, but the
    /// heavy count for less than λ says. Fewer are drawn if fewer have any weight.
    WithoutReplacement,
    /// Everybody, with λ as shares: exact, at the highest cost.
    Full,
}

/// Why nobody can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// Weights that are no distribution.
    #[error("clients can only be drawn by weights that are at least 0 and sum to 1")]
    Lambda,
    /// No draws.
    #[error("a round needs at least one draw")]
    NoDraws,
}

/// The clients of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Who trains, ascending, nobody twice.
    pub clients: Vec<usize>,
    /// The weight of what each of them returns in the mean; they sum to 1. λ is in them already
    /// and must not be multiplied in again.
    pub shares: Vec<f64>,
}

impl Sampling {
    /// The clients of one round; a function of `lambda` and `seed`. Nobody without weight is
    /// drawn.
    ///
    /// * `lambda`: a point of the simplex.
    /// * `draws`: `m`; see [`half`] for the usual number. Without meaning for
    ///   [`Full`](Self::Full).
    ///
    /// # Errors
    /// [`SamplingError`]: weights that are no distribution, no draws.
    pub fn draw(self, lambda: &[f64], draws: usize, seed: u64) -> Result<Sample, SamplingError> {
        if !contains(lambda) {
            return Err(SamplingError::Lambda);
        }
        if self == Self::Full {
            return Ok(Sample {
                clients: (0..lambda.len()).collect(),
                shares: lambda.to_vec(),
            });
        }
        if draws == 0 {
            return Err(SamplingError::NoDraws);
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut times = vec![0u32; lambda.len()];
        let mut wheel = Wheel::new(lambda);
        let mut left = lambda.to_vec();
        for _ in 0..draws {
            let Some(client) = wheel.turn(&mut random) else {
                break;
            };
            times[client] += 1;
            if self == Self::WithoutReplacement {
                left[client] = 0.0;
                wheel = Wheel::new(&left);
            }
        }
        let drawn = f64::from(times.iter().sum::<u32>());
        let drawn_once = times.iter().enumerate().filter(|(_, times)| **times > 0);
        let (clients, shares) = drawn_once
            .map(|(client, &times)| (client, f64::from(times) / drawn))
            .unzip();
        Ok(Sample { clients, shares })
    }
}

/// Weights, added up.
struct Wheel {
    ends: Vec<f64>,
}

impl Wheel {
    fn new(weights: &[f64]) -> Self {
        let ends = weights.iter().scan(0.0, |end, weight| {
            *end += weight;
            Some(*end)
        });
        Self {
            ends: ends.collect(),
        }
    }

    /// The first client whose end lies beyond a uniform number below the sum: the inverse of the
    /// distribution function. One without weight ends where the one before it does, so it is never
    /// the first. `None` if nobody has weight.
    fn turn(&self, random: &mut ChaCha8Rng) -> Option<usize> {
        let total = self.ends.last().copied().filter(|total| *total > 0.0)?;
        // 53 random bits are a multiple of 2⁻⁵³ below 1, exactly.
        let part = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let beyond = part * total;
        self.ends.iter().position(|end| *end > beyond)
    }
}

/// `⌈K/2⌉`: draws of a round where nothing else is said. A guess: the paper has no number.
pub fn half(clients: usize) -> usize {
    clients.div_ceil(2)
}

/// Why sampled losses are not losses of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampledLossError {
    /// Nobody was asked.
    #[error("nobody told a loss")]
    Empty,
    /// A client that is not there.
    #[error("client {client} told a loss, but there are {clients} clients, counted from 0")]
    Unknown {
        /// The client.
        client: usize,
        /// Clients at hand.
        clients: usize,
    },
    /// A client that comes twice.
    #[error("client {client} told its loss twice")]
    Twice {
        /// The client.
        client: usize,
    },
}

/// Losses of all `clients` from those of a uniformly drawn part `U` of them: `(K/|U|)·f_k` for
/// `k ∈ U`, else 0; on average the losses themselves (DRFA, Deng et al. 2020).
///
/// * `told`: clients of `U` with their losses.
///
/// # Errors
/// [`SampledLossError`]: nobody, a client that is not there, or one that comes twice.
pub fn sampled_losses(clients: usize, told: &[(usize, f64)]) -> Result<Vec<f64>, SampledLossError> {
    if told.is_empty() {
        return Err(SampledLossError::Empty);
    }
    let scale = clients as f64 / told.len() as f64;
    let mut losses: Vec<Option<f64>> = vec![None; clients];
    for &(client, loss) in told {
        let place = losses
            .get_mut(client)
            .ok_or(SampledLossError::Unknown { client, clients })?;
        if place.replace(scale * loss).is_some() {
            return Err(SampledLossError::Twice { client });
        }
    }
    Ok(losses.into_iter().map(Option::unwrap_or_default).collect())
}

#[cfg(test)]
mod tests;
