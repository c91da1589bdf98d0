#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::convert::Infallible;

use super::*;
use crate::coalitions::CoalitionProgram;
use crate::robust::synthetic::{Hospitals, Targets};
use crate::robust::tests::score_table;
use crate::robust::tests::{close, rows};
use crate::robust::{FitConfig, Norm, fit};
use crate::strategy::Scores;

fn line(noise: &[f64]) -> Samples {
    let features: Vec<[f64; 1]> = (0..noise.len()).map(|row| [row as f64]).collect();
    let targets: Vec<f64> = noise
        .iter()
        .enumerate()
        .map(|(row, noise)| row as f64 + noise)
        .collect();
    rows(&features, &targets)
}

const HOW: CrossFit = CrossFit {
    radius: 0.5,
    loss: RowLoss::Absolute,
    cost: TransportCost {
        norm: Norm::Linf,
        label_cost: 1.0,
    },
    folds: 3,
    seed: 7,
};

fn constant(weight: f64) -> LinearModel {
    LinearModel {
        weights: vec![weight],
        intercept: 0.0,
    }
}

#[test]
fn a_model_that_does_not_learn_has_its_in_sample_loss() {
    let data = line(&[0.3, -0.1, 0.4, 1.0, -2.0, 0.0, 0.7]);
    let loss = cross_fit(&data, &HOW, |_| Ok::<_, Infallible>(constant(2.0))).unwrap();
    let whole = robust_loss(&data, &constant(2.0), 0.5, HOW.loss, HOW.cost).unwrap();
    assert!(close(loss, whole.loss, 1e-12), "{loss} {whole:?}");
}

#[test]
fn no_fit_sees_the_rows_it_is_scored_on() {
    let data = line(&[0.0; 7]);
    let seen = RefCell::new(Vec::new());
    cross_fit(&data, &HOW, |rows| {
        seen.borrow_mut().push(rows.targets().to_vec());
        Ok::<_, Infallible>(constant(0.0))
    })
    .unwrap();
    let seen = seen.into_inner();
    assert_eq!(seen.len(), 3);
    for target in data.targets() {
        let missing = seen.iter().filter(|targets| !targets.contains(target));
        assert_eq!(missing.count(), 1, "every row is left out once");
    }
}

#[test]
fn out_of_fold_losses_are_above_in_sample_ones() {
    let data = line(&[0.9, -0.8, 0.4, 1.0, -2.0, 0.5, 0.7, -1.5]);
    let config = FitConfig {
        loss: RowLoss::Absolute,
        cost: TransportCost::default(),
        ridge: 0.0,
        intercept: true,
    };
    let how = CrossFit {
        radius: 0.0,
        folds: 4,
        ..HOW
    };
    let out = cross_fit(&data, &how, |rows| {
        fit(rows, 0.0, &config).map(|fit| fit.model)
    })
    .unwrap();
    let own = fit(&data, 0.0, &config).unwrap().objective;
    assert!(out > own + 0.1, "{out} {own}");
}

/// Hospitals of one true model with few rows: in sample single silos are best, cross-fitted they
/// are better together.
#[test]
fn merging_can_win_only_over_out_of_fold_losses() {
    let hospitals = Hospitals {
        hospitals: 6,
        coalitions: 1,
        features: 4,
        rows: (10, 14),
        scale: 1.0,
        targets: Targets::Numbers { noise: 1.0 },
    };
    let drawn = hospitals.draw(5).unwrap();
    let config = FitConfig {
        loss: RowLoss::Absolute,
        cost: TransportCost::default(),
        ridge: 0.0,
        intercept: false,
    };
    let own = |rows: &Samples| fit(rows, 0.0, &config).map(|fit| fit.model);
    let models: Vec<LinearModel> = drawn
        .iter()
        .map(|hospital| own(&hospital.rows).unwrap())
        .collect();
    let silos: Vec<(&Samples, f64)> = drawn.iter().map(|hospital| (&hospital.rows, 0.0)).collect();
    let mut losses = score_table(&silos, &models, RowLoss::Absolute, TransportCost::default());
    let value = |losses: &crate::Matrix, coalitions: usize| {
        let rows: Vec<Vec<f64>> = (0..6).map(|row| losses.row(row).to_vec()).collect();
        let program =
            CoalitionProgram::new(&Scores::from_rows(&rows).unwrap(), coalitions).unwrap();
        program.solve(1).objective
    };
    assert!((1..6).all(|coalitions| value(&losses, coalitions) > value(&losses, 6)));

    let how = CrossFit {
        radius: 0.0,
        cost: TransportCost::default(),
        folds: 5,
        ..HOW
    };
    for (at, &(rows, _)) in silos.iter().enumerate() {
        losses[(at, at)] = cross_fit(rows, &how, own).unwrap();
    }
    assert!((1..6).any(|coalitions| value(&losses, coalitions) < value(&losses, 6)));
}

#[test]
fn errors_name_the_fold() {
    let data = line(&[0.0; 4]);
    let how = CrossFit { folds: 5, ..HOW };
    let error = cross_fit(&data, &how, |_| Ok::<_, Infallible>(constant(1.0))).unwrap_err();
    assert_eq!(
        error,
        CrossFitError::Folds(FoldsError { folds: 5, rows: 4 })
    );

    let mut calls = 0;
    let error = cross_fit(&data, &HOW, |_| {
        calls += 1;
        if calls == 2 {
            Err("tired")
        } else {
            Ok(constant(1.0))
        }
    });
    assert_eq!(
        error,
        Err(CrossFitError::Fit {
            fold: 1,
            error: "tired"
        })
    );

    let error = cross_fit(&data, &HOW, |_| Ok::<_, Infallible>(constant(f64::NAN))).unwrap_err();
    assert_eq!(
        error,
        CrossFitError::Score {
            fold: 0,
            error: RobustError::NotFinite
        }
    );
}
