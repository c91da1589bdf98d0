//! Planted sites of many shapes: what each is served, against the best of other ways.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::super::folds::{OwnFoldLosses, fit_alone};
use super::*;
use crate::random::{normal, uniform};
use crate::robust::LinearModel;
use crate::robust::ridge::ridge_fit;

/// A drawn federation: the coefficients of every site, and its rows.
struct Planted {
    own: Vec<Vec<f64>>,
    sites: Vec<Samples>,
    tests: Vec<Samples>,
}

/// The least and the most of what is drawn.
#[derive(Debug, Clone, Copy)]
struct Extent {
    sites: (usize, usize),
    /// Rows of a site.
    rows: (usize, usize),
}

/// The ranges of most draws.
const USUAL: Extent = Extent {
    sites: (4, 40),
    rows: (10, 200),
};

/// The ends of what a federation may be: many sites of few rows, many of all sizes, few sites of many rows.
const ENDS: [Extent; 3] = [
    Extent {
        sites: (140, 140),
        rows: (10, 10),
    },
    Extent {
        sites: (140, 140),
        rows: (10, 500),
    },
    Extent {
        sites: (4, 4),
        rows: (500, 500),
    },
];

/// So many sites and rows, 1 to 6 columns; strengths none, small, large or very large, of the intercept, of all
/// coefficients, or of some.
fn planted(family: Family, extent: Extent, seed: u64) -> Planted {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let between = |random: &mut ChaCha8Rng, low: usize, high: usize| {
        low + (uniform(random) * (high - low + 1) as f64) as usize
    };
    let (least, most) = extent.sites;
    let (sites, columns) = (
        between(&mut random, least, most),
        between(&mut random, 1, 6),
    );
    let scale = [0.0, 0.02, 0.2, 2.0][between(&mut random, 0, 3)];
    let which = between(&mut random, 0, 2);
    let strengths: Vec<f64> = (0..=columns)
        .map(|at| match which {
            0 if at > 0 => 0.0,
            2 if uniform(&mut random) < 0.5 => 0.0,
            _ => scale,
        })
        .collect();
    let mean: Vec<f64> = strengths
        .iter()
        .map(|_| 0.7 * normal(&mut random))
        .collect();
    let draw = |random: &mut ChaCha8Rng, own: &[f64], rows: usize| {
        let row = |random: &mut ChaCha8Rng| {
            let x: Vec<f64> = (0..columns).map(|_| normal(random)).collect();
            let output = own[0] + own[1..].iter().zip(&x).map(|(b, x)| b * x).sum::<f64>();
            let target = match family {
                Family::Gaussian => output + normal(random),
                Family::Binomial if uniform(random) < 1.0 / (1.0 + libm::exp(-output)) => 1.0,
                Family::Binomial => -1.0,
            };
            (x, target)
        };
        let drawn: Vec<_> = (0..rows).map(|_| row(random)).collect();
        let (features, targets): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
        samples(&features, targets)
    };
    let mut all = Planted {
        own: Vec::new(),
        sites: Vec::new(),
        tests: Vec::new(),
    };
    for _ in 0..sites {
        let own = mean.iter().zip(&strengths);
        let own: Vec<f64> = own
            .map(|(mean, t)| mean + t.sqrt() * normal(&mut random))
            .collect();
        let rows = between(&mut random, extent.rows.0, extent.rows.1);
        all.sites.push(draw(&mut random, &own, rows));
        all.tests.push(draw(&mut random, &own, 600));
        all.own.push(own);
    }
    all
}

impl Planted {
    /// The expected loss on new rows: exact for numbers, on drawn rows for classes.
    fn loss(&self, family: Family, site: usize, model: &LinearModel) -> f64 {
        if family == Family::Binomial {
            return family.loss().mean(&self.tests[site], model);
        }
        let own = &self.own[site];
        let found = [&[model.intercept], &model.weights[..]].concat();
        let apart = own.iter().zip(&found).map(|(a, b)| (a - b) * (a - b));
        1.0 + apart.sum::<f64>()
    }

    /// The loss at every site of a model for each.
    fn losses(&self, family: Family, model: impl Fn(usize) -> LinearModel) -> Vec<f64> {
        let sites = 0..self.sites.len();
        sites
            .map(|site| self.loss(family, site, &model(site)))
            .collect()
    }

    fn pooled(&self, family: Family) -> LinearModel {
        let rows = self.sites.iter().flat_map(Samples::iter);
        let (features, targets): (Vec<_>, Vec<_>) = rows.map(|(x, y)| (x.to_vec(), y)).unzip();
        let all = samples(&features, targets);
        let centre = LinearModel {
            weights: vec![0.0; all.features()],
            intercept: 0.0,
        };
        ridge_fit(&all, family.loss(), &centre, 1e-4).unwrap()
    }
}

fn mean(losses: &[f64]) -> f64 {
    losses.iter().sum::<f64>() / losses.len() as f64
}

/// By how many standard errors over sites the first losses are above the second.
fn above(losses: &[f64], others: &[f64]) -> f64 {
    let apart: Vec<f64> = losses.iter().zip(others).map(|(a, b)| a - b).collect();
    let (mean, count) = (self::mean(&apart), apart.len() as f64);
    let spread = apart.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>();
    mean / (spread / (count * (count - 1.0))).sqrt().max(1e-12)
}

/// Losses of the models that sites are served, alone, and by the best of all ways on average.
struct ServedLosses {
    served: Vec<f64>,
    alone: Vec<f64>,
    best: f64,
    says_alone: bool,
    varying: Varying,
}

fn compared(family: Family, all: &Planted) -> ServedLosses {
    let lean = Run {
        family,
        varying: Varying::Nothing,
        settings: MixedSettings::default(),
        lean: true,
        rounds: 60,
    };
    let shrunken = |prior: Prior<'_>| {
        let own = |site: usize| mode(&all.sites[site], family, prior);
        all.losses(family, |site| own(site).unwrap().model())
    };
    let mut models: Vec<MixedProgress> = Varying::ALL
        .iter()
        .map(|&varying| {
            let (model, rounds) = rounds(&all.sites, Run { varying, ..lean });
            assert!(model.done, "{varying:?} after {rounds} rounds");
            model
        })
        .collect();
    models.sort_by(|a, b| a.criterion().total_cmp(&b.criterion()));
    let chosen = &models[0];
    let averaged = AveragedEstimates::of(&models);
    let mut losses = OwnFoldLosses::default();
    for rows in &all.sites {
        losses.add(&OwnFoldLosses::of(rows, family, averaged.prior()).unwrap());
    }
    let alone = all.losses(family, |site| fit_alone(&all.sites[site], family).unwrap());
    let says_alone = losses.says_alone();
    let served = if says_alone {
        alone.clone()
    } else {
        shrunken(averaged.prior())
    };
    let exact = |varying| {
        let settings = MixedSettings {
            precision: None,
            tolerance: 1e-3,
        };
        let run = Run {
            varying,
            settings,
            lean: false,
            ..lean
        };
        shrunken(rounds(&all.sites, run).0.prior())
    };
    let pooled = all.pooled(family);
    let best = [
        alone.clone(),
        exact(Varying::Slopes),
        exact(Varying::Intercept),
        all.losses(family, |_| pooled.clone()),
    ];
    let best = best.iter().map(|losses| mean(losses));
    ServedLosses {
        best: best.fold(f64::INFINITY, f64::min),
        served,
        alone,
        says_alone,
        varying: chosen.varying,
    }
}

/// Nearly all within 1 % of the best way and never worse than alone. Of a handful of sites a variance is hardly
/// known, and a choice by chance costs a site of ten rows more.
fn assert_served_well(family: Family, seeds: std::ops::Range<u64>) {
    let (over, far) = served_well(family, USUAL, seeds);
    assert!(over < 0.004 && far < 0.1, "{over} {far}");
}

/// Within 5 % of the best way and never worse than alone. Returns by how much it is above the best on average, and
/// the part of the draws in which that is more than 1 %.
fn served_well(family: Family, extent: Extent, seeds: std::ops::Range<u64>) -> (f64, f64) {
    let (mut over, mut far, count) = (0.0, 0.0, (seeds.end - seeds.start) as f64);
    for seed in seeds {
        let found = compared(family, &planted(family, extent, seed));
        let (served, alone, best) = (mean(&found.served), mean(&found.alone), found.best);
        let errors = above(&found.served, &found.alone);
        println!(
            "{seed}: served {served:.4}, alone {alone:.4} ({errors:.1}), best {best:.4}, {}",
            found.says_alone
        );
        assert!(
            served <= best * 1.05,
            "seed {seed}: {served} against {best}"
        );
        // Of sixty draws, one in twenty sets of them has one that is above 3 by chance.
        assert!(
            errors < 3.0,
            "seed {seed}: {errors} standard errors worse than alone"
        );
        far += f64::from(u8::from(served > best * 1.01)) / count;
        over += (served / best - 1.0) / count;
    }
    println!("{extent:?}: on average {over:.4} above the best, {far:.3} of them by more than 1 %");
    (over, far)
}

/// Four sites of a hundred rows and ten columns, whose classes are of other shares and otherwise alike.
fn four_shares(seed: u64) -> Planted {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let slopes: Vec<f64> = (0..10).map(|_| 0.5 * normal(&mut random)).collect();
    let mut all = Planted {
        own: Vec::new(),
        sites: Vec::new(),
        tests: Vec::new(),
    };
    for intercept in [-0.9, -0.3, 0.3, 0.9] {
        let own = [&[intercept], &slopes[..]].concat();
        let mut draw = |rows: usize| {
            let row = |random: &mut ChaCha8Rng| {
                let x: Vec<f64> = slopes.iter().map(|_| normal(random)).collect();
                let output = intercept + slopes.iter().zip(&x).map(|(b, x)| b * x).sum::<f64>();
                let ill = uniform(random) < 1.0 / (1.0 + libm::exp(-output));
                (x, if ill { 1.0 } else { -1.0 })
            };
            let drawn: Vec<_> = (0..rows).map(|_| row(&mut random)).collect();
            let (features, targets): (Vec<_>, Vec<_>) = drawn.into_iter().unzip();
            samples(&features, targets)
        };
        all.sites.push(draw(100));
        all.tests.push(draw(600));
        all.own.push(own);
    }
    all
}

/// The likelihood with the deviations integrated out has one model for all in some of these.
#[test]
fn four_sites_with_other_shares_of_classes_are_not_one() {
    let (mut over, seeds) = (0.0, 200..212);
    for seed in seeds.clone() {
        let found = compared(Family::Binomial, &four_shares(seed));
        let above = mean(&found.served) / found.best - 1.0;
        println!("{seed}: {:?}, {above:.4} above the best", found.varying);
        assert_ne!(found.varying, Varying::Nothing, "seed {seed}");
        assert!(above < 0.05, "seed {seed}: {above}");
        over += above / seeds.clone().count() as f64;
    }
    assert!(over < 0.01, "{over}");
}

#[test]
fn sites_with_numbers_are_served_as_well_as_by_the_best_way() {
    assert_served_well(Family::Gaussian, 0..40);
}

#[test]
fn sites_with_classes_are_served_as_well_as_by_the_best_way() {
    assert_served_well(Family::Binomial, 100..120);
}

#[test]
fn large_and_small_federations_are_served_well_too() {
    for (extent, seed) in ENDS.into_iter().zip([300, 310, 320]) {
        served_well(Family::Gaussian, extent, seed..seed + 2);
        served_well(Family::Binomial, extent, seed + 5..seed + 6);
    }
}

#[test]
fn alone_is_reported_where_and_only_where_fits_alone_are_better() {
    let losses = |pairs: &[(f64, f64)]| {
        let mut sum = OwnFoldLosses::default();
        for &(chosen, alone) in pairs {
            let apart = chosen - alone;
            sum.add(&OwnFoldLosses {
                sites: 1.0,
                chosen,
                alone,
                square: apart * apart,
            });
        }
        sum.says_alone()
    };
    // Differences .2, .1, .3: mean .2, standard error .058.
    assert!(losses(&[(1.0, 0.8), (1.0, 0.9), (1.0, 0.7)]));
    assert!(!losses(&[(0.8, 1.0), (0.9, 1.0), (0.7, 1.0)]));
    // Differences .2, −.2, .1: mean .033, standard error .12.
    assert!(!losses(&[(1.0, 0.8), (1.0, 1.2), (1.0, 0.9)]));
    assert!(!losses(&[(1.0, 0.5)]));
}
