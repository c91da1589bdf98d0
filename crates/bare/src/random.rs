//! The randomness of a simulation: seeded streams, one per purpose.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded stream of random choices.
#[derive(Debug, Clone)]
pub struct Random(ChaCha8Rng);

impl Random {
    /// The stream of `seed` for `purpose`, independent of the streams of other purposes. Renaming a
    /// purpose changes what every seed stands for.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher
            .update(&seed.to_le_bytes())
            .update(purpose.as_bytes());
        Self(ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()))
    }

    /// 32 bytes.
    pub fn bytes(&mut self) -> [u8; 32] {
        let mut bytes = [0; 32];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// Uniform below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.0.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Puts all into a random order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.below(last + 1));
        }
    }

    /// Uniform in `[0, 1)`, with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The words behind the choices, for functions that draw from any generator.
    pub fn words(&mut self) -> &mut impl Rng {
        &mut self.0
    }

    /// True with probability `p`. Draws a number even if `p` is 0 or 1, so that runs that differ
    /// only in a probability draw the same numbers.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Uniform between two durations.
    pub fn span(&mut self, least: Duration, most: Duration) -> Duration {
        least + most.saturating_sub(least).mul_f64(self.uniform())
    }
}
