#![allow(clippy::unwrap_used)]

use super::super::certainty_costs_one_row_more_of_each;
use super::*;
use crate::robust::synthetic::{Hospitals, Targets};

fn rows(targets: Targets) -> Samples {
    let config = Hospitals {
        hospitals: 1,
        coalitions: 1,
        features: 4,
        rows: (60, 60),
        targets,
        ..Hospitals::default()
    };
    config.draw(3).unwrap().swap_remove(0).rows
}

const ALL: [(PlainLoss, Targets); 3] = [
    (PlainLoss::Absolute, Targets::Numbers { noise: 0.5 }),
    (PlainLoss::Squared, Targets::Numbers { noise: 0.5 }),
    (PlainLoss::Logistic, Targets::Labels { threshold: 0.4 }),
];

fn zero() -> LinearModel {
    LinearModel {
        weights: vec![0.0; 4],
        intercept: 0.0,
    }
}

fn some() -> LinearModel {
    LinearModel {
        weights: vec![1.0, -2.0, 0.5, 3.0],
        intercept: 0.7,
    }
}

#[test]
fn no_model_nearby_has_a_smaller_objective() {
    for (loss, targets) in ALL {
        let rows = rows(targets);
        for centre in [zero(), some()] {
            for ridge in [1e-4, 0.1, 10.0] {
                let objective = |model: &LinearModel| {
                    let each = model.weights.iter().zip(&centre.weights);
                    let squares: f64 = each.map(|(a, b)| (a - b) * (a - b)).sum();
                    loss.mean(&rows, model) + ridge / 2.0 * squares
                };
                let fitted = ridge_fit(&rows, loss, &centre, ridge).unwrap();
                let least = objective(&fitted);
                for at in 0..5 {
                    for step in [1e-2, -1e-2] {
                        let mut other = fitted.clone();
                        match other.weights.get_mut(at) {
                            Some(weight) => *weight += step,
                            None => other.intercept += step,
                        }
                        assert!(objective(&other) > least - 1e-8, "{loss:?} {ridge} {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_strong_ridge_stays_at_the_centre_and_a_weak_one_forgets_it() {
    for (loss, targets) in ALL {
        let rows = rows(targets);
        let strong = ridge_fit(&rows, loss, &some(), 1e6).unwrap();
        for (a, b) in strong.weights.iter().zip(&some().weights) {
            assert!((a - b).abs() < 1e-4, "{loss:?} {a} {b}");
        }
        if loss != PlainLoss::Logistic {
            let near = ridge_fit(&rows, loss, &some(), 1e-7).unwrap();
            let far = ridge_fit(&rows, loss, &zero(), 1e-7).unwrap();
            for (a, b) in near.weights.iter().zip(&far.weights) {
                assert!((a - b).abs() < 1e-3, "{loss:?} {a} {b}");
            }
        }
    }
}

#[test]
fn fits_exist_for_one_label_and_for_more_columns_than_rows() {
    let wide = Matrix::from_fn(3, 6, |row, column| ((row * 5 + column * 3) % 7) as f64);
    let zero = LinearModel {
        weights: vec![0.0; 6],
        intercept: 0.0,
    };
    let same = Samples::new(wide.clone(), vec![1.0; 3]).unwrap();
    // Laplace's rule: four of five are of the class.
    for ridge in [0.0, 0.1, 10.0] {
        let fitted = ridge_fit(&same, PlainLoss::Logistic, &zero, ridge).unwrap();
        assert_eq!(fitted.weights, [0.0; 6]);
        assert!(
            (fitted.intercept - libm::log(4.0)).abs() < 1e-12,
            "{fitted:?}"
        );
    }
    // From a model that already says so, less is added.
    let knows = LinearModel {
        weights: vec![0.0; 6],
        intercept: 2.0,
    };
    let fitted = ridge_fit(&same, PlainLoss::Logistic, &knows, 0.1).unwrap();
    assert!(
        (fitted.intercept - libm::log(4.0)).abs() < 1e-12,
        "{fitted:?}"
    );
    let numbers = Samples::new(wide, vec![1.0, -2.0, 5.0]).unwrap();
    for loss in [PlainLoss::Absolute, PlainLoss::Squared] {
        ridge_fit(&numbers, loss, &zero, 1e-4).unwrap();
    }
    let singular = ridge_fit(&numbers, PlainLoss::Squared, &zero, 0.0);
    assert!(matches!(singular, Err(FitError::NotSolved { .. })));
    let invalid = ridge_fit(&numbers, PlainLoss::Squared, &zero, -1.0);
    assert_eq!(invalid, Err(FitError::Ridge(-1.0)));
    let narrow = ridge_fit(&numbers, PlainLoss::Squared, &some(), 1.0);
    assert!(matches!(narrow, Err(FitError::Input(_))));
}

#[test]
fn cross_validation_ridges_are_weak_for_signal_strong_for_noise() {
    let grid = RidgeGrid {
        folds: 5,
        grid: vec![1e-4, 1e-2, 1.0, 100.0],
    };
    for (loss, targets) in ALL {
        let rows = rows(targets);
        let chosen = choose_ridge(&rows, loss, &zero(), &grid).unwrap();
        assert!(chosen <= 1e-2, "{loss:?}: {chosen}");
    }
    let signal = rows(Targets::Numbers { noise: 0.5 });
    let noise = (0..60).map(|row| f64::from((row * 7_919) % 13) - 6.0);
    let noise = signal.with_targets(noise.collect()).unwrap();
    let chosen = choose_ridge(&noise, PlainLoss::Squared, &zero(), &grid).unwrap();
    assert!(chosen > 0.1, "{chosen}");
    let one = noise.select(&[0]);
    assert_eq!(
        choose_ridge(&one, PlainLoss::Squared, &zero(), &grid),
        Ok(100.0)
    );
}

#[test]
fn strengths_count_by_their_likelihood() {
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-12, "{found}");
    let grid = [0.01, 1.0];
    for loss in [PlainLoss::Absolute, PlainLoss::Squared, PlainLoss::Logistic] {
        // As likely as each other: the mean of the logarithms. Much more likely: that one alone.
        near(plausible(&grid, &[0.5, 0.5], 40.0, loss), 0.1);
        near(plausible(&grid, &[0.5, 50.0], 1e4, loss), 0.01);
        near(
            plausible(&[0.0, 0.01, 1.0], &[0.5, 9.0, 9.0], 1e4, loss),
            0.001,
        );
    }
    // Weights 1 and e^−1.
    let expected = |weight: f64| libm::exp(libm::log(0.01) / (1.0 + weight));
    near(
        plausible(&grid, &[0.5, 0.6], 10.0, PlainLoss::Logistic),
        expected(libm::exp(-1.0)),
    );
    // Twice the loss has a quarter of the weight with eight rows of squares, and of four of absolute errors.
    near(
        plausible(&grid, &[2.0, 4.0], 8.0, PlainLoss::Squared),
        expected(0.25),
    );
    near(
        plausible(&grid, &[2.0, 4.0], 4.0, PlainLoss::Absolute),
        expected(0.25),
    );
    // Of three that are as likely, the weakest has a tenth of the weight, but with classes.
    let grid = [0.001, 0.01, 1.0];
    let found = plausible(&grid, &[1.0; 3], 9.0, PlainLoss::Squared);
    let mean = (0.1 * libm::log(0.001) + libm::log(0.01)) / 2.1;
    near(found, libm::exp(mean));
    let found = plausible(&grid, &[1.0; 3], 9.0, PlainLoss::Logistic);
    near(found, libm::exp(libm::log(1e-5) / 3.0));
}

#[test]
fn certainty_costs_what_one_row_more_of_each_class_would() {
    // Seven rows of one class, and a model that is as sure of it as this.
    let rows = Samples::new(Matrix::zeros(7, 4), vec![1.0; 7]).unwrap();
    let mean = |sure: f64| {
        let intercept = libm::log(sure / (1.0 - sure));
        let model = LinearModel {
            intercept,
            ..zero()
        };
        held_out(&rows, PlainLoss::Logistic, &model, 7.0) / 7.0
    };
    certainty_costs_one_row_more_of_each(mean);
    // Numbers have no classes.
    let squares = held_out(&rows, PlainLoss::Squared, &zero(), 7.0);
    assert_eq!(squares, 7.0);
}

#[test]
fn few_rows_have_a_stronger_ridge_than_many() {
    let grid = Ridge::default();
    let strength = |count: usize| {
        let rows = rows(Targets::Labels { threshold: 0.4 });
        let few = rows.select(&(0..count).collect::<Vec<_>>());
        grid.strength(&few, PlainLoss::Logistic, &zero()).unwrap()
    };
    assert!(
        strength(8) > strength(60),
        "{} {}",
        strength(8),
        strength(60)
    );
}

#[test]
fn rules_are_read_and_impossible_ones_are_not_valid() {
    let read = |text| serde_json::from_str::<Ridge>(text).unwrap();
    assert_eq!(read("0.5"), Ridge::Fixed(0.5));
    let grid = read(r#"{ "folds": 5, "grid": [0.1, 1] }"#);
    assert!(grid.is_valid() && Ridge::default().is_valid());
    let wrong = [
        "-1",
        r#"{ "folds": 1, "grid": [0.1] }"#,
        r#"{ "folds": 5, "grid": [] }"#,
        r#"{ "folds": 5, "grid": [1, 0.1] }"#,
        r#"{ "folds": 5, "grid": [-1, 0.1] }"#,
    ];
    for text in wrong {
        assert!(!read(text).is_valid(), "{text}");
    }
}
