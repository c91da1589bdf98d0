//! The noise against exact probabilities and other samplers.

mod parts;
mod reference;
mod sampler;
mod shared;
mod statistics;

use super::*;

/// A generator with a seed that follows from a number.
fn noise(seed: u64) -> Noise {
    Noise::new(&self::seed(seed))
}

fn seed(seed: u64) -> Seed {
    Seed::new(blake3::derive_key("rota noise tests", &seed.to_le_bytes()))
}

fn gaussian(sigma: u64) -> Gaussian {
    Gaussian::new(sigma).unwrap()
}
