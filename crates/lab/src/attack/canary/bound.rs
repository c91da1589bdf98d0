//! A lower bound on ε from one run: Steinke, Nasr & Jagielski, *Privacy auditing with one (1) training run*,
//! NeurIPS 2023, theorem 5.2 with the procedure of their appendix D.
//!
//! Of m canaries each is put in by a fair coin. An auditor guesses the coins of r of them, a number that is fixed
//! before, and is right v times. Under (ε, δ)-differential privacy the number of right guesses is hardly larger
//! than that of r coins that each show heads with probability q = 1/(1 + e^−ε):
//!
//! ```text
//! P[at least v right] ≤ β + 2·m·δ·α
//! β = P[Bin(r, q) ≥ v]        α = max over i ≤ v of P[v > Bin(r, q) ≥ v − i]/i
//! ```
//!
//! Every ε for which that is at most 5 % is refuted with 95 % confidence. The bound is the largest of them.

/// The largest ε that is looked at.
const MOST_EPSILON: f64 = 40.0;

/// The probability that a bound is above the truth.
pub const LEVEL: f64 = 0.05;

/// Guesses of an auditor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoinGuesses {
    /// m: canaries, in or out.
    pub canaries: usize,
    /// r: guesses; of the other canaries the auditor says nothing.
    pub guesses: usize,
    /// v: right guesses.
    pub right: usize,
}

impl CoinGuesses {
    /// The largest ε that is refuted at the [`LEVEL`]; 0 if none is.
    pub fn lower_bound(self, delta: f64) -> f64 {
        let refuted = |epsilon| self.p_value(epsilon, delta) <= LEVEL;
        if !refuted(0.0) {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, MOST_EPSILON);
        if refuted(high) {
            return high;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if refuted(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The largest probability of so many right guesses, or more, under (ε, δ).
    fn p_value(self, epsilon: f64, delta: f64) -> f64 {
        let right = self.right.min(self.guesses);
        let probabilities = binomial(self.guesses, 1.0 / (1.0 + (-epsilon).exp()));
        let beta: f64 = probabilities[right..].iter().sum();
        let (mut alpha, mut below) = (0.0_f64, 0.0);
        for i in 1..=right {
            below += probabilities[right - i];
            alpha = alpha.max(below / i as f64);
        }
        (beta + 2.0 * self.canaries as f64 * delta * alpha).min(1.0)
    }
}

/// The probabilities of 0 to `count` heads of coins that show heads with probability `q`, between 0 and 1.
fn binomial(count: usize, q: f64) -> Vec<f64> {
    let mut logs = vec![0.0; count + 1];
    for n in 1..=count {
        logs[n] = logs[n - 1] + (n as f64).ln();
    }
    // ln(1 − q) would lose its digits where q is near 1.
    let (heads, tails) = (q.ln(), (-q).ln_1p());
    let each = (0..=count).map(|k| {
        let ways = logs[count] - logs[k] - logs[count - k];
        let odds = k as f64 * heads
            + if k == count {
                0.0
            } else {
                (count - k) as f64 * tails
            };
        (ways + odds).exp()
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulations::random::Random;

    fn bound(canaries: usize, guesses: usize, right: usize, delta: f64) -> f64 {
        let of = CoinGuesses {
            canaries,
            guesses,
            right,
        };
        of.lower_bound(delta)
    }

    /// If all guesses are right and δ = 0, q^r = 0.05.
    #[test]
    fn all_guesses_right_give_the_root_of_the_level() {
        for guesses in [5, 14, 100, 1000] {
            let q = LEVEL.powf(1.0 / guesses as f64);
            let expected = (q / (1.0 - q)).ln().max(0.0);
            let found = bound(guesses, guesses, guesses, 0.0);
            assert!(
                (found - expected).abs() < 1e-6,
                "{guesses}: {found} {expected}"
            );
        }
        // Half of them right, and none at all, refute nothing.
        assert_eq!(bound(100, 100, 50, 0.0), 0.0);
        assert_eq!(bound(100, 0, 0, 0.0), 0.0);
    }

    /// One guess, right: β = q and α = 1 − q, so that with m = 1 the value is q + 2·δ·(1 − q).
    #[test]
    fn delta_counts_twice_for_every_canary() {
        let one = CoinGuesses {
            canaries: 1,
            guesses: 1,
            right: 1,
        };
        let q = 1.0 / (1.0 + (-1.0_f64).exp());
        let expected = q + 2.0 * 0.01 * (1.0 - q);
        assert!((one.p_value(1.0, 0.01) - expected).abs() < 1e-12);
        // Two of three right: β = 3q²(1−q) + q³; α = max((P1)/1, (P1 + P0)/2).
        let two = CoinGuesses {
            canaries: 10,
            guesses: 3,
            right: 2,
        };
        let (p0, p1) = ((1.0 - q).powi(3), 3.0 * q * (1.0 - q).powi(2));
        let beta = 1.0 - p0 - p1;
        let expected = beta + 2.0 * 10.0 * 1e-3 * p1.max(f64::midpoint(p0, p1));
        assert!((two.p_value(1.0, 1e-3) - expected).abs() < 1e-12);
        assert!(bound(100, 100, 90, 1e-3) < bound(100, 100, 90, 0.0));
    }

    /// Coins that are told with probability q are (ε, 0)-private exactly: in one of twenty audits the bound may be
    /// above ε.
    #[test]
    fn the_bound_is_rarely_above_the_truth_and_not_far_below_it() {
        let mut random = Random::new(9, "audits");
        for epsilon in [0.5_f64, 1.0, 2.0] {
            let q = 1.0 / (1.0 + (-epsilon).exp());
            let (mut above, mut sum) = (0, 0.0);
            for _ in 0..400 {
                let right = (0..300).filter(|_| random.chance(q)).count();
                let found = bound(300, 300, right, 0.0);
                above += u32::from(found > epsilon);
                sum += found;
            }
            assert!((4..=32).contains(&above), "{epsilon}: {above} of 400");
            assert!(
                sum / 400.0 > 0.6 * epsilon - 0.05,
                "{epsilon}: {}",
                sum / 400.0
            );
        }
    }
}
