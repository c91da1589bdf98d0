//! A cheap lower bound of the coalition program that needs no grouping.

use super::CoalitionProgram;

/// A lower bound of the cost of every grouping into exactly `K` coalitions.
///
/// In a coalition of size `s`, entry `i` pays at least `g_i(s)`: its own cost and the `s − 1`
/// cheapest others, over `s`. Sizes satisfy `Σ_i 1/s_i = K`. Dropping all other
/// constraints and relaxing this one with a multiplier μ leaves `Σ_i min_s (g_i(s) + μ/s) − μK`, a
/// bound for every μ. It is concave in μ, so the best μ is found by bisection on its slope.
pub(super) fn lower_bound(program: &CoalitionProgram) -> f64 {
    let (n, coalitions) = (program.n, program.coalitions as f64);
    let largest = n + 1 - program.coalitions;
    let payments: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut others: Vec<f64> = (0..n)
                .filter(|&j| j != i)
                .map(|j| program.at(i, j))
                .collect();
            others.sort_unstable_by(f64::total_cmp);
            let mut sum = program.at(i, i);
            let mut payments = vec![sum];
            for (other, size) in others.iter().zip(2..=largest) {
                sum += other;
                payments.push(sum / size as f64);
            }
            payments
        })
        .collect();
    let at = |multiplier: f64| {
        let (mut value, mut slope) = (-multiplier * coalitions, -coalitions);
        for payments in &payments {
            let (least, share) = payments
                .iter()
                .zip(1u32..)
                .map(|(payment, size)| (payment, 1.0 / f64::from(size)))
                .map(|(payment, share)| (payment + multiplier * share, share))
                .fold((f64::INFINITY, 1.0), |a, b| if b.0 < a.0 { b } else { a });
            value += least;
            slope += share;
        }
        (value, slope)
    };
    // Beyond this range every entry chooses size 1, or the largest size.
    let reach = (n * n) as f64 * payments.iter().flatten().fold(0.0, |a: f64, b| a.max(*b));
    let (mut low, mut high) = (-reach, reach);
    let mut best: f64 = 0.0;
    for _ in 0..100 {
        let middle = low + (high - low) / 2.0;
        let (value, slope) = at(middle);
        // Upper bound of the rounding error.
        let rounding = 1e-12 * (value.abs() + middle.abs() * (n as f64 + coalitions));
        best = best.max(value - rounding);
        if slope > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    best
}
