#![allow(clippy::unwrap_used)]

use rayon::ThreadPoolBuilder;

use super::*;
use crate::robust::synthetic::{Hospitals, Targets};
use crate::robust::tests::{close, rows};
use crate::robust::{Norm, RowLoss, TransportCost};

const ABSOLUTE: FitConfig = FitConfig {
    loss: RowLoss::Absolute,
    cost: TransportCost {
        norm: Norm::L2,
        label_cost: 1.0,
    },
    ridge: 0.0,
    intercept: false,
};

fn search(radii: Vec<f64>) -> RadiusSearch {
    RadiusSearch {
        radii,
        folds: 5,
        seed: 3,
        one_standard_error: false,
    }
}

fn hospital(rows: usize, targets: Targets) -> Samples {
    let hospitals = Hospitals {
        hospitals: 1,
        coalitions: 1,
        features: 5,
        rows: (rows, rows),
        targets,
        ..Hospitals::default()
    };
    hospitals.draw(11).unwrap().remove(0).rows
}

#[test]
fn scores_are_means_by_size_with_their_standard_errors() {
    let score = score(0.1, &[1.0, 2.0, 6.0], &[2.0, 1.0, 1.0]);
    // (2·1 + 2 + 6)/4; deviations −1.5, −0.5, 3.5: (2·2.25 + 0.25 + 12.25)/4 / 2.
    assert_eq!(score.loss, 2.5);
    assert!(close(
        score.standard_error * score.standard_error,
        17.0 / 8.0,
        1e-12
    ));
}

#[test]
fn the_choice_is_the_least_loss_or_the_largest_radius_near_it() {
    let scores = [
        (0.1, 2.0),
        (0.2, 1.0),
        (0.3, 1.0 + 1e-9),
        (0.4, 1.3),
        (0.5, 1.6),
    ]
    .map(|(radius, loss)| RadiusScore {
        radius,
        loss,
        standard_error: 0.4,
    });
    assert_eq!(choice(&scores, false), 0.2);
    assert_eq!(choice(&scores, true), 0.4);
    let same = scores.map(|score| RadiusScore { loss: 0.0, ..score });
    assert_eq!(choice(&same, false), 0.1);
    assert_eq!(choice(&same, true), 0.5);
}

#[test]
fn scores_are_what_fits_lose_out_of_their_fold() {
    let data = hospital(12, Targets::Numbers { noise: 1.0 });
    let search = search(vec![0.0, 0.3]);
    let chosen = choose_radius(&data, &ABSOLUTE, &search).unwrap();
    for score in &chosen.scores {
        let splits = Folds::new(&data, RowLoss::Absolute, 5, 3)
            .unwrap()
            .splits(&data);
        let mut sum = 0.0;
        for (seen, unseen) in &splits {
            let model = fit(seen, score.radius, &ABSOLUTE).unwrap().model;
            sum += unseen
                .iter()
                .map(|(x, y)| (y - model.output(x)).abs())
                .sum::<f64>();
        }
        assert!(close(score.loss, sum / 12.0, 1e-12));
    }
}

/// Noise that drowns the features asks for a large radius, targets without noise for none.
#[test]
fn the_radius_follows_the_noise() {
    let grid = [-3.0, -2.5, -2.0, -1.5, -1.0, -0.5, 0.0].map(|power| libm::pow(10.0, power));
    let radius = |noise: f64, one_standard_error: bool| {
        let search = RadiusSearch {
            one_standard_error,
            ..search(grid.to_vec())
        };
        choose_radius(
            &hospital(30, Targets::Numbers { noise }),
            &ABSOLUTE,
            &search,
        )
        .unwrap()
        .radius
    };
    assert_eq!(radius(0.0, false), grid[0]);
    assert!(radius(20.0, false) > 0.1);
    assert!(radius(20.0, true) >= radius(20.0, false));
}

#[test]
fn threads_do_not_change_a_bit() {
    let data = hospital(15, Targets::Labels { threshold: 0.5 });
    let config = FitConfig {
        loss: RowLoss::Logistic,
        ..ABSOLUTE
    };
    let search = search(vec![0.01, 0.03, 0.1, 0.3]);
    let [one, many] = [1, 4].map(|threads| {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| choose_radius(&data, &config, &search).unwrap())
    });
    assert_eq!(one, many);
}

#[test]
fn unusable_input_is_refused() {
    let data = rows(&[[1.0], [2.0], [-1.0]], &[1.0, 1.0, -1.0]);
    for radii in [
        vec![],
        vec![0.2, 0.1],
        vec![0.1, 0.1],
        vec![-0.1],
        vec![f64::NAN],
    ] {
        let error = choose_radius(&data, &ABSOLUTE, &search(radii)).unwrap_err();
        assert_eq!(error, RadiusError::Radii);
    }
    let error = choose_radius(&data, &ABSOLUTE, &search(vec![0.1])).unwrap_err();
    assert_eq!(error, RadiusError::Folds(FoldsError { folds: 5, rows: 3 }));

    let config = FitConfig {
        loss: RowLoss::Logistic,
        ..ABSOLUTE
    };
    let search = RadiusSearch {
        folds: 3,
        ..search(vec![0.0, 0.1])
    };
    let error = choose_radius(&data, &config, &search).unwrap_err();
    let expected = RadiusError::Fit {
        radius: 0.0,
        fold: 0,
        error: FitError::Separable,
    };
    assert_eq!(error, expected);
}

#[test]
fn few_rows_get_the_large_radius() {
    let radii = TwoRadii {
        threshold: 150,
        small: 0.05,
        large: 0.2,
    };
    assert_eq!([149, 150].map(|rows| radii.radius(rows)), [0.2, 0.05]);
}
