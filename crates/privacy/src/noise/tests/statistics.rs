//! Chi-square tests, and exact probabilities to test with.

/// The normal quantile of 99.9 % (one-sided).
const QUANTILE: f64 = 3.090_232;

/// The value that chi-square with so many degrees of freedom exceeds once in a thousand times (Wilson &
/// Hilferty 1931).
pub(super) fn chi_square_most(freedom: usize) -> f64 {
    let part = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - part + QUANTILE * part.sqrt()).powi(3)
}

/// Chi-square of counts against expected ones. Cells that expect fewer than ten are added to the next.
pub(super) fn chi_square(counts: &[u64], expected: &[f64]) -> (f64, usize) {
    assert_eq!(counts.len(), expected.len());
    let (mut cells, mut open) = (Vec::new(), (0.0, 0.0));
    for (count, expected) in counts.iter().zip(expected) {
        open = (open.0 + *count as f64, open.1 + expected);
        if open.1 >= 10.0 {
            cells.push(std::mem::take(&mut open));
        }
    }
    // What is left at the end belongs to the last cell.
    let last = cells.last_mut().unwrap();
    *last = (last.0 + open.0, last.1 + open.1);
    let sum = cells
        .iter()
        .map(|(count, expected)| (count - expected).powi(2) / expected)
        .sum();
    (sum, cells.len() - 1)
}

/// Returns whether counts fit expected ones.
pub(super) fn fits(counts: &[u64], expected: &[f64]) -> bool {
    let (sum, freedom) = chi_square(counts, expected);
    sum <= chi_square_most(freedom)
}

/// Returns whether two samples of the same size have the same distribution.
pub(super) fn alike(left: &[u64], right: &[u64]) -> bool {
    let both = left.iter().zip(right);
    let cells = both.filter(|(left, right)| *left + *right >= 20);
    let (mut sum, mut freedom) = (0.0, 0);
    for (left, right) in cells {
        sum += left.abs_diff(*right).pow(2) as f64 / (left + right) as f64;
        freedom += 1;
    }
    sum <= chi_square_most(freedom - 1)
}

/// The probabilities of −12σ to 12σ. Beyond lie 10⁻³².
pub(super) struct ExactProbabilities {
    pub(super) reach: i64,
    pub(super) masses: Vec<f64>,
}

impl ExactProbabilities {
    pub(super) fn new(sigma: u64) -> Self {
        let reach = 12 * sigma as i64;
        let two = 2.0 * (sigma as f64).powi(2);
        let mass = |k: i64| (-(k as f64).powi(2) / two).exp();
        let mut masses: Vec<_> = (-reach..=reach).map(mass).collect();
        // From the tails to the middle, so that small ones are not lost.
        let side: f64 = masses[..reach as usize].iter().sum();
        let sum = 2.0 * side + 1.0;
        masses.iter_mut().for_each(|mass| *mass /= sum);
        Self { reach, masses }
    }

    /// The mean of f(k).
    pub(super) fn mean(&self, f: impl Fn(f64) -> f64) -> f64 {
        let all = (-self.reach..).zip(&self.masses);
        all.map(|(k, mass)| f(k as f64) * mass).sum()
    }

    /// Expected counts of `draws` in bins of `width` integers.
    pub(super) fn bins(&self, width: usize, draws: u64) -> Vec<f64> {
        let bins = self.masses.chunks(width);
        bins.map(|masses| masses.iter().sum::<f64>() * draws as f64)
            .collect()
    }

    /// Counts of these numbers in the same bins.
    pub(super) fn count(&self, width: usize, numbers: &[i64]) -> Vec<u64> {
        let mut counts = vec![0; self.masses.len().div_ceil(width)];
        for number in numbers {
            counts[(number + self.reach) as usize / width] += 1;
        }
        counts
    }
}
