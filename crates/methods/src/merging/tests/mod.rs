#![allow(clippy::unwrap_used)]

mod exhaustive;
mod known;
mod properties;
mod reference;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::Matrix;

/// The inner products of vectors, summed in order.
fn gram<V: AsRef<[f64]>>(vectors: &[V]) -> Matrix {
    let vector = |at: usize| vectors[at].as_ref();
    Matrix::from_fn(vectors.len(), vectors.len(), |i, j| {
        vector(i).iter().zip(vector(j)).map(|(a, b)| a * b).sum()
    })
}

fn utility<V: AsRef<[f64]>>(gradients: &[V], samples: &[u64], alpha: &Alpha) -> Utility {
    Utility::new(&gram(gradients), samples, alpha).unwrap()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

/// Uniform in [−1, 1).
fn signed(random: &mut ChaCha8Rng) -> f64 {
    f64::from(random.next_u32()) / f64::from(1u32 << 31) - 1.0
}

/// Clients in `groups` directions, with noise, and sample counts between 50 and 150.
fn planted(clients: usize, groups: usize, noise: f64, seed: u64) -> (Vec<Vec<f64>>, Vec<u64>) {
    const LENGTH: usize = 30;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut vector =
        |scale: f64| -> Vec<f64> { (0..LENGTH).map(|_| scale * signed(&mut random)).collect() };
    let centres: Vec<_> = (0..groups).map(|_| vector(1.0)).collect();
    let client = |k: usize| -> Vec<f64> {
        let noise = vector(noise);
        noise
            .iter()
            .zip(&centres[k % groups])
            .map(|(a, b)| a + b)
            .collect()
    };
    let gradients = (0..clients).map(client).collect();
    let samples = (0..clients).map(|_| 50 + u64::from(random.next_u32() % 101));
    (gradients, samples.collect())
}
