//! The discrete Gaussian distribution, drawn exactly, with integers only.
//!
//! Canonne, Kamath & Steinke, *The Discrete Gaussian for Differential Privacy*, NeurIPS 2020
//! (arXiv:2004.00010): algorithm 1 (a coin that shows heads with probability e^−γ), 2 (the discrete
//! Laplace distribution) and 3 (the discrete Gaussian from it). Numbers with a floating point would give
//! slightly other probabilities, which can betray what the noise should hide (Mironov 2012).

use super::words::Words;

/// The largest σ.
pub const MOST_SIGMA: u64 = 1 << 31;

/// σ is no σ that can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("noise with standard deviation {0}: it must be an integer between 1 and {MOST_SIGMA}")]
pub struct GaussianError(pub u64);

/// The distribution on the integers in which k has a probability proportional to exp(−k²/(2σ²)).
///
/// Its variance is at most σ², and for σ ≥ 3 equal to it but for 10⁻³⁰.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaussian {
    sigma: u64,
}

impl Gaussian {
    /// With this σ.
    ///
    /// # Errors
    ///
    /// If σ is zero or larger than [`MOST_SIGMA`].
    pub fn new(sigma: u64) -> Result<Self, GaussianError> {
        if sigma == 0 || sigma > MOST_SIGMA {
            return Err(GaussianError(sigma));
        }
        Ok(Self { sigma })
    }

    /// σ.
    pub fn sigma(self) -> u64 {
        self.sigma
    }

    /// One number. How many words it takes, and so how long, depends on the words.
    pub fn draw(self, words: &mut impl Words) -> i64 {
        // Algorithm 3 has a Laplace distribution of scale t = ⌊σ⌋ + 1, and accepts y with probability
        // exp(−(|y| − σ²/t)²/(2σ²)). The proof holds for every t. With t = σ the fraction is
        // (|y| − σ)²/(2σ²), which needs no larger integers.
        let twice = 2 * self.sigma * self.sigma;
        loop {
            let (size, negative) = laplace(self.sigma, words);
            let beyond = u128::from(size.abs_diff(self.sigma)).pow(2);
            let (whole, rest) = divide(beyond, twice);
            if ones(whole, words) && below_one(rest, twice, words) {
                let size = size as i64;
                return if negative { -size } else { size };
            }
        }
    }
}

/// Quotient and remainder; most often in 64 bits, which is faster.
fn divide(number: u128, by: u64) -> (u128, u64) {
    match u64::try_from(number) {
        Ok(number) => (u128::from(number / by), number % by),
        Err(_) => (
            number / u128::from(by),
            (number % u128::from(by)) as u64, // below `by`
        ),
    }
}

/// Algorithm 2 for the integer scale t: size and sign of a number y with probability proportional to
/// exp(−|y|/t).
fn laplace(scale: u64, words: &mut impl Words) -> (u64, bool) {
    loop {
        let low = uniform(scale, words);
        if !below_one(low, scale, words) {
            continue;
        }
        let mut high = 0_u64;
        while below_one(1, 1, words) {
            high += 1;
        }
        // Too large for 62 bits less often than once in exp(2^30) draws.
        let size = high.saturating_mul(scale).saturating_add(low).min(1 << 62);
        let negative = words.word() >> 63 == 1;
        // Zero would be drawn twice as often.
        if size != 0 || !negative {
            return (size, negative);
        }
    }
}

/// True with probability exp(−count).
fn ones(count: u128, words: &mut impl Words) -> bool {
    (0..count).all(|_| below_one(1, 1, words))
}

/// Algorithm 1 for γ = `number`/`of` between 0 and 1: true with probability exp(−γ).
///
/// The k-th coin shows heads with probability γ/k. The number of the first coin that shows tails is odd
/// with probability exp(−γ), by the exponential series.
fn below_one(number: u64, of: u64, words: &mut impl Words) -> bool {
    let mut k = 1;
    loop {
        let heads = (number == of || uniform(of, words) < number) && uniform(k, words) == 0;
        if !heads {
            return k % 2 == 1;
        }
        k += 1;
    }
}

/// An integer from 0 to `below` − 1, all equally likely (Lemire 2019, algorithm 5).
#[inline]
fn uniform(below: u64, words: &mut impl Words) -> u64 {
    if below == 1 {
        return 0;
    }
    let mut product = u128::from(words.word()) * u128::from(below);
    if (product as u64) < below {
        // 2^64 mod `below` words are too many: without them every result has as many words as others.
        let surplus = below.wrapping_neg() % below;
        while (product as u64) < surplus {
            product = u128::from(words.word()) * u128::from(below);
        }
    }
    (product >> 64) as u64
}

#[cfg(test)]
pub(super) mod parts {
    //! For the tests of the parts.
    use super::Words;

    pub(in crate::noise) fn uniform(below: u64, words: &mut impl Words) -> u64 {
        super::uniform(below, words)
    }

    pub(in crate::noise) fn exp(number: u64, of: u64, words: &mut impl Words) -> bool {
        super::below_one(number, of, words)
    }

    pub(in crate::noise) fn laplace(scale: u64, words: &mut impl Words) -> i64 {
        let (size, negative) = super::laplace(scale, words);
        if negative {
            -(size as i64)
        } else {
            size as i64
        }
    }
}
