//! Uniform and normal numbers from a seeded generator, the same on every machine.

use rand_chacha::rand_core::Rng;

/// A uniform number from `[0, 1)`, with 53 random bits.
pub fn uniform(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A standard normal number (Box & Muller 1958).
pub fn normal(random: &mut impl Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - uniform(random))).sqrt();
    radius * libm::cos(std::f64::consts::TAU * uniform(random))
}
