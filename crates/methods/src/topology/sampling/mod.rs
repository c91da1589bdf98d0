//! Client sampling by the weights λ, and the weights of the sampled clients in the mean.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::simplex::contains;

/// Sampling of the clients that train in a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Independent draws by λ, as in DRFA (Deng et al. 2020). A client drawn twice trains once and
    /// counts twice, so the mean is unbiased: `E[Σ shares·θ] = Σ λ_k·θ_k`.
    #[default]
    WithReplacement,
    /// Draws by λ among the clients not drawn yet, all with equal shares. The mean is biased: clients
    /// with large weights count less than λ. Fewer are drawn if fewer have a positive weight.
    WithoutReplacement,
    /// All clients, with λ as shares: exact, at the highest cost.
    Full,
}

/// Errors of client sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// Weights that are no distribution.
    #[error("client sampling needs weights that are at least 0 and sum to 1")]
    Lambda,
    /// No draws.
    #[error("a round needs at least one draw")]
    NoDraws,
}

/// The sampled clients of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The clients that train, ascending, without duplicates.
    pub clients: Vec<usize>,
    /// The weight of each client's model in the mean; they sum to 1. They include λ already.
    pub shares: Vec<f64>,
}

impl Sampling {
    /// Samples the clients of one round; a function of `lambda` and `seed`. Clients of weight 0 are
    /// never drawn, except by [`Full`](Self::Full).
    ///
    /// * `lambda`: a point of the simplex.
    /// * `draws`: `m`; see [`half`] for the usual number. Ignored by
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

/// Cumulative weights.
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

    /// Draws a client by inverting the distribution function: the first whose cumulative weight exceeds
    /// a uniform number. A client of weight 0 is never the first. `None` if all weights are 0.
    fn turn(&self, random: &mut ChaCha8Rng) -> Option<usize> {
        let total = self.ends.last().copied().filter(|total| *total > 0.0)?;
        // 53 random bits are a multiple of 2⁻⁵³ below 1, exactly.
        let part = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let beyond = part * total;
        self.ends.iter().position(|end| *end > beyond)
    }
}

/// `⌈K/2⌉`: the default number of draws. A guess: the paper states none.
pub fn half(clients: usize) -> usize {
    clients.div_ceil(2)
}

/// Errors of estimating all losses from a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SampledLossError {
    /// No losses.
    #[error("no client reported a loss")]
    Empty,
    /// A client that does not exist.
    #[error("client {client} reported a loss, but there are {clients} clients, counted from 0")]
    Unknown {
        /// The client.
        client: usize,
        /// Number of clients.
        clients: usize,
    },
    /// Two losses of one client.
    #[error("client {client} reported two losses")]
    Twice {
        /// The client.
        client: usize,
    },
}

/// Unbiased estimate of the losses of all `clients` from those of a uniformly drawn subset `U`:
/// `(K/|U|)·f_k` for `k ∈ U`, otherwise 0 (DRFA, Deng et al. 2020).
///
/// * `reported`: the clients of `U` with their losses.
///
/// # Errors
/// [`SampledLossError`]: no losses, a client that does not exist, or two losses of one client.
pub fn sampled_losses(
    clients: usize,
    reported: &[(usize, f64)],
) -> Result<Vec<f64>, SampledLossError> {
    if reported.is_empty() {
        return Err(SampledLossError::Empty);
    }
    let scale = clients as f64 / reported.len() as f64;
    let mut losses: Vec<Option<f64>> = vec![None; clients];
    for &(client, loss) in reported {
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
