//! Two other samplers: by inverting the cumulative distribution, and by the paper's own numbers.

use num_bigint::BigUint;

use super::statistics::{ExactProbabilities, alike, fits};
use super::*;

const DRAWS: u64 = 1_000_000;

/// By inversion: the first k whose cumulative probability exceeds a uniform number. Nothing of it comes from
/// the paper.
fn inverted(sigma: u64, seed: u64) -> Vec<i64> {
    let exact = ExactProbabilities::new(sigma);
    let mut sum = 0.0;
    let cumulative: Vec<_> = exact
        .masses
        .iter()
        .map(|mass| {
            sum += mass;
            sum
        })
        .collect();
    let mut stream = Stream::new(&self::seed(seed));
    (0..DRAWS)
        .map(|_| {
            let uniform = (stream.word() >> 11) as f64 / (1_u64 << 53) as f64;
            let at = cumulative.partition_point(|cumulative| *cumulative <= uniform);
            at as i64 - exact.reach
        })
        .collect()
}

/// The paper's algorithms 1 to 3 with t = ⌊σ⌋ + 1, in fractions of integers of any size, with uniform
/// numbers by plain rejection of too large ones. For σ that need not be integers: σ² is a fraction.
struct Paper {
    stream: Stream,
}

impl Paper {
    fn uniform(&mut self, below: &BigUint) -> BigUint {
        let bits = (below - 1_u32).bits();
        loop {
            let mut number = BigUint::ZERO;
            for _ in 0..bits {
                number = number * 2_u32 + (self.stream.word() & 1);
            }
            if number < *below {
                return number;
            }
        }
    }

    fn coin(&mut self, number: &BigUint, of: &BigUint) -> bool {
        self.uniform(of) < *number
    }

    /// Algorithm 1, also for γ above 1.
    fn exp(&mut self, number: &BigUint, of: &BigUint) -> bool {
        if number > of {
            let one = BigUint::from(1_u32);
            return self.exp(&one, &one) && self.exp(&(number - of), of);
        }
        let mut k = 1_u32;
        while self.coin(number, &(of * k)) {
            k += 1;
        }
        k % 2 == 1
    }

    fn laplace(&mut self, scale: u64) -> i64 {
        let (big, one) = (BigUint::from(scale), BigUint::from(1_u32));
        loop {
            let low = self.uniform(&big);
            if !self.exp(&low, &big) {
                continue;
            }
            let mut high = 0;
            while self.exp(&one, &one) {
                high += 1;
            }
            let size = i64::try_from(low).unwrap() + scale as i64 * high;
            match self.stream.word() & 1 {
                0 => return size,
                _ if size != 0 => return -size,
                _ => {}
            }
        }
    }

    fn gaussian(&mut self, sigma: u64) -> i64 {
        let scale = sigma + 1;
        loop {
            let number = self.laplace(scale);
            // (|y| − σ²/t)²/(2σ²) = (|y|·t − σ²)²/(2·σ²·t²)
            let off = (number.unsigned_abs() * scale).abs_diff(sigma * sigma);
            let of = BigUint::from(2 * sigma * sigma * scale * scale);
            if self.exp(&BigUint::from(off).pow(2), &of) {
                return number;
            }
        }
    }
}

#[test]
fn draws_are_like_those_of_an_inversion() {
    for sigma in [1, 2, 3, 10, 40] {
        let exact = ExactProbabilities::new(sigma);
        let mut noise = noise(100 + sigma);
        let ours: Vec<_> = (0..DRAWS).map(|_| noise.draw(gaussian(sigma))).collect();
        let theirs = exact.count(1, &inverted(sigma, 200 + sigma));
        assert!(fits(&theirs, &exact.bins(1, DRAWS)), "sigma {sigma}");
        assert!(alike(&exact.count(1, &ours), &theirs), "sigma {sigma}");
    }
}

#[test]
fn draws_are_like_those_of_the_papers_own_numbers() {
    let draws = 30_000;
    for sigma in [1, 3, 8] {
        let exact = ExactProbabilities::new(sigma);
        let mut noise = noise(300 + sigma);
        let stream = Stream::new(&seed(400 + sigma));
        let mut paper = Paper { stream };
        let ours: Vec<_> = (0..draws).map(|_| noise.draw(gaussian(sigma))).collect();
        let theirs: Vec<_> = (0..draws).map(|_| paper.gaussian(sigma)).collect();
        let [ours, theirs] = [ours, theirs].map(|all| exact.count(1, &all));
        assert!(fits(&theirs, &exact.bins(1, draws)), "sigma {sigma}");
        assert!(alike(&ours, &theirs), "sigma {sigma}");
    }
}

#[test]
fn two_distributions_with_other_sigmas_are_not_alike() {
    let exact = ExactProbabilities::new(40);
    let mut noise = noise(1);
    let mut counts = |sigma| {
        let all: Vec<_> = (0..DRAWS).map(|_| noise.draw(gaussian(sigma))).collect();
        exact.count(1, &all)
    };
    assert!(!alike(&counts(40), &counts(39)));
}
