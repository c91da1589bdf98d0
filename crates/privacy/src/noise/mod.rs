//! Noise that hides one unit in a sum, shared by the silos.
//!
//! # The idea
//!
//! Two data sets that differ by one unit give two sums that differ by at most Δ
//! ([`sensitivity`](crate::sensitivity)). If a random number with a standard deviation of z·Δ is added to
//! every coordinate, nobody can tell the two apart well; how well, the [`accountant`](crate::accountant)
//! says. z is the [`Multiplier`].
//!
//! **The silos share the noise.** Each adds a part before it masks its vector, and only the sum is opened.
//! Variances of independent parts add up, so with a authors each needs a standard deviation of z·Δ/√a
//! only. But c authors could tell each other their parts and take them off. So every silo adds
//!
//! ```text
//! σ = ⌈z·Δ/√(a−c)⌉
//! ```
//!
//! and what is left of the noise of a or more authors without c of them is enough: (a−c)·σ² ≥ (z·Δ)²,
//! decided in integers ([`Authors::gaussian`]). a is the agreed fewest number of authors of a sum.
//!
//! **The noise consists of integers,** as masks add integers: the discrete [`Gaussian`] distribution, drawn
//! exactly.
//!
//! **Noise has a generator of its own.** [`Noise`] is made of a [`Seed`] and takes no other generator, so
//! it neither takes from that of the training nor gives to it. It counts what was drawn.
//!
//! ```
//! use privacy::noise::{Authors, Multiplier, Noise, Seed};
//! use privacy::sensitivity::Sensitivity;
//!
//! let sensitivity = Sensitivity::new(14)?;
//! let authors = Authors::new(3, 1)?; // at least three, of which one may tell others its noise
//! let gaussian = authors.gaussian(Multiplier::new(20.0)?, sensitivity)?;
//! assert_eq!(gaussian.sigma(), 14_509); // 20 · 1025.87 / √2
//!
//! // In real use the seed is drawn from the system's generator, and used once.
//! let mut noise = Noise::new(&Seed::new([7; 32]));
//! let mut sum = [0_i64; 14];
//! noise.add(gaussian, &mut sum);
//! assert_eq!(noise.drawn(), 14);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A draw takes longer for some numbers than for others. Who can measure the time of single draws on the
//! machine learns something of the noise; over the network only the time of whole rounds is seen.
//!
//! # What it costs
//!
//! `cargo run --release -p privacy --example draws`, one core: 0.10 to 0.13 µs a draw, for σ from 1 to 2³¹ (AMD
//! EPYC, Rust 1.95, while other builds ran).

mod authors;
mod gaussian;
mod multiplier;
mod words;

pub use authors::{Authors, AuthorsError, SigmaError};
pub use gaussian::{Gaussian, GaussianError, MOST_SIGMA};
pub use multiplier::{Multiplier, MultiplierError};
pub use words::{Seed, Words};

use words::Stream;

/// A generator of noise: ChaCha20 from a seed of its own, and how often it was drawn from.
pub struct Noise {
    stream: Stream,
    drawn: u64,
}

impl Noise {
    /// From a seed. The same seed gives the same noise.
    pub fn new(seed: &Seed) -> Self {
        Self {
            stream: Stream::new(seed),
            drawn: 0,
        }
    }

    /// Adds one number to each coordinate. Coordinates wrap around, as those of masks do.
    pub fn add(&mut self, gaussian: Gaussian, coordinates: &mut [i64]) {
        for coordinate in coordinates {
            *coordinate = coordinate.wrapping_add(self.draw(gaussian));
        }
    }

    /// One number.
    pub fn draw(&mut self, gaussian: Gaussian) -> i64 {
        self.drawn += 1;
        gaussian.draw(&mut self.stream)
    }

    /// Returns the number of numbers that were drawn so far.
    pub fn drawn(&self) -> u64 {
        self.drawn
    }
}

impl zeroize::ZeroizeOnDrop for Noise {}

impl std::fmt::Debug for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Noise({} drawn)", self.drawn)
    }
}

#[cfg(test)]
mod tests;
