#![allow(clippy::unwrap_used)]

use super::*;
use crate::matrix::Matrix;
use crate::robust::Samples;

mod dense;
mod heart;
mod hostile;
mod planted;

/// Rows of a site: features without the intercept, and targets.
fn samples(features: &[Vec<f64>], targets: Vec<f64>) -> Samples {
    Samples::new(Matrix::from_rows(features).unwrap(), targets).unwrap()
}

/// Settings of a run of rounds.
#[derive(Clone, Copy)]
struct Run {
    family: Family,
    varying: Varying,
    settings: MixedSettings,
    /// True if W is sent whole in some rounds only.
    lean: bool,
    rounds: u64,
}

const EXACT: Run = Run {
    family: Family::Gaussian,
    varying: Varying::Intercept,
    settings: MixedSettings {
        precision: Some(1e-9),
        tolerance: 1e-9,
    },
    lean: false,
    rounds: 300,
};

/// The sum of one round, and the rows of all sites.
fn summed(sites: &[Samples], run: Run, progress: &MixedProgress, round: u64) -> (SiteSums, f64) {
    let shape = progress.shape(!run.lean || is_whole(round), run.family == Family::Gaussian);
    let inverse = progress.inverse();
    let each = sites.iter().map(|rows| {
        let mode = mode(rows, run.family, progress.prior()).unwrap();
        let sums = SiteSums::of(shape, progress.prior(), &mode, inverse.as_ref());
        assert!(sums.is_plausible(0.0), "{sums:?}");
        SiteSums::read(shape, sums.numbers()).unwrap()
    });
    let sum = each.reduce(|mut sum, one| {
        sum.add(&one);
        sum
    });
    let rows = sites.iter().map(Samples::len).sum::<usize>();
    (sum.unwrap(), rows as f64)
}

/// The rounds of a model, until it is done, and their number.
fn rounds(sites: &[Samples], run: Run) -> (MixedProgress, u64) {
    let width = sites[0].features() + 1;
    let mut progress = MixedProgress::start(run.varying, width, &run.settings);
    for round in 1..=run.rounds {
        let (sum, rows) = summed(sites, run, &progress, round);
        progress = progress.step(&sum, sites.len() as f64, rows, &run.settings);
        if progress.done {
            return (progress, round);
        }
    }
    (progress, run.rounds)
}

fn assert_near(found: f64, expected: f64, tolerance: f64) {
    let near = (found - expected).abs() <= tolerance;
    assert!(near, "{found} is not {expected} ± {tolerance}");
}
