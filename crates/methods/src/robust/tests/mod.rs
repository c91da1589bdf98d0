#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::matrix::Matrix;

mod theorems;
mod worst_case;

pub(super) fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

const THETA: [f64; 2] = [1.0, 0.5];
const MARGINS: [f64; 3] = [2.0, -1.5, 3.5];
const MEAN_LOG_LOSS: f64 = 0.6193639024327818;

#[test]
fn logistic_gives_the_known_answers() {
    let infinite = f64::INFINITY;
    let root = 1.118033988749895;
    // Radius, label cost, norm, loss, λ*: by the dual, a grid over λ and the primal linear program.
    let rows = [
        (0.1, 1.0, Norm::L2, 0.9693639024327818, 3.5),
        (0.5, 1.0, Norm::L2, 2.1193639024327817, 2.0),
        (0.1, 0.5, Norm::L2, 1.319363902432782, 7.0),
        (0.2, 0.25, Norm::L2, 2.489965035391112, root),
        (1.0, 0.5, Norm::L2, 3.198053228266045, root),
        (0.1, infinite, Norm::L2, 0.7311673013077713, root),
        (0.3, 1.0, Norm::L1, 1.6693639024327818, 3.5),
        (0.3, 1.0, Norm::Linf, 1.669363902432782, 3.5),
        (0.3, 3.0, Norm::L2, 0.9693639024327818, 1.1666666666666667),
    ];
    for (radius, label_cost, norm, loss, lambda) in rows {
        let cost = TransportCost { norm, label_cost };
        let robust = logistic(&MARGINS, &THETA, radius, cost).unwrap();
        assert!(
            close(robust.loss, loss, 1e-12),
            "{robust:?} at {radius}, {cost:?}"
        );
        assert!(
            close(robust.lambda, lambda, 1e-12),
            "{robust:?} at {radius}, {cost:?}"
        );
        assert!(close(robust.empirical, MEAN_LOG_LOSS, 1e-12));
    }
}

#[test]
fn linear_gives_the_known_answers() {
    let residuals = [-0.5, 2.0, -1.0, 0.5];
    let rows = [
        (0.0, Norm::L2, 1.0),
        (0.1, Norm::L2, 1.187082869338697),
        (0.3, Norm::L2, 1.5612486080160912),
        (0.1, Norm::L1, 1.15),
        (0.1, Norm::Linf, 1.3),
    ];
    for (radius, norm, loss) in rows {
        let robust = linear(&residuals, &[1.5, -0.5], radius, norm).unwrap();
        assert!(close(robust.loss, loss, 1e-12), "{robust:?}");
        assert_eq!(robust.empirical, 1.0);
    }
}

#[test]
fn unusable_input_is_refused() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let norm = Norm::L2;
    assert_eq!(linear(&[], &[1.0], 0.1, norm), Err(RobustError::Empty));
    assert_eq!(
        linear(&[nan], &[1.0], 0.1, norm),
        Err(RobustError::NotFinite)
    );
    assert_eq!(
        linear(&[1.0], &[infinite], 0.1, norm),
        Err(RobustError::NotFinite)
    );
    assert_eq!(
        linear(&[1.0], &[1.0], -0.1, norm),
        Err(RobustError::Radius(-0.1))
    );
    assert_eq!(
        linear(&[1.0], &[1.0], infinite, norm),
        Err(RobustError::Radius(infinite))
    );
    let labels = |label_cost: f64| {
        let cost = TransportCost { norm, label_cost };
        logistic(&[1.0], &[1.0], 0.1, cost)
    };
    assert_eq!(labels(0.0), Err(RobustError::LabelCost(0.0)));
    assert_eq!(labels(-infinite), Err(RobustError::LabelCost(-infinite)));
    assert!(labels(nan).is_err());
    assert!(labels(infinite).is_ok());
}

#[test]
fn huge_margins_stay_finite() {
    let robust = logistic(&[1e300, -1e300], &[0.0], 0.5, TransportCost::default()).unwrap();
    assert!(robust.loss.is_finite() && robust.empirical == 5e299);
}

pub(super) const NORMS: [Norm; 3] = [Norm::L1, Norm::L2, Norm::Linf];

pub(super) fn norm() -> impl Strategy<Value = Norm> {
    prop::sample::select(NORMS.to_vec())
}

/// From literal features and targets.
pub(super) fn rows<R: AsRef<[f64]>>(features: &[R], targets: &[f64]) -> Samples {
    Samples::new(Matrix::from_rows(features).unwrap(), targets.to_vec()).unwrap()
}

/// 1 to 12 rows of `features`, with targets up to 3 in size.
pub(super) fn any_rows(features: usize) -> impl Strategy<Value = Samples> {
    let row = (prop::collection::vec(-2.0..2.0f64, features), -3.0..3.0f64);
    prop::collection::vec(row, 1..=12).prop_map(|each| {
        let (features, targets): (Vec<_>, Vec<_>) = each.into_iter().unzip();
        rows(&features, &targets)
    })
}

/// The rows with the signs of their targets for labels.
pub(super) fn labels_of(rows: &Samples) -> Samples {
    let features: Vec<_> = rows.iter().map(|(x, _)| x.to_vec()).collect();
    let labels: Vec<f64> = rows.targets().iter().map(|y| y.signum()).collect();
    self::rows(&features, &labels)
}

pub(super) fn any_model(features: usize) -> impl Strategy<Value = LinearModel> {
    let weights = prop::collection::vec(-2.0..2.0f64, features);
    (weights, -1.0..1.0f64).prop_map(|(weights, intercept)| LinearModel { weights, intercept })
}

#[test]
fn invalid_samples_are_refused() {
    let features = |values: &[[f64; 2]]| Matrix::from_rows(values).unwrap();
    let error = Samples::new(features(&[]), vec![]).unwrap_err();
    assert_eq!(
        error,
        SamplesError::Empty {
            rows: 0,
            features: 0
        }
    );
    let error = Samples::new(Matrix::zeros(2, 0), vec![1.0; 2]).unwrap_err();
    assert_eq!(
        error,
        SamplesError::Empty {
            rows: 2,
            features: 0
        }
    );
    let error = Samples::new(features(&[[1.0, 2.0]]), vec![]).unwrap_err();
    assert_eq!(
        error,
        SamplesError::Targets {
            rows: 1,
            targets: 0
        }
    );
    for (feature, target) in [(f64::NAN, 0.0), (1.0, f64::INFINITY)] {
        let error = Samples::new(features(&[[1.0, 2.0], [feature, 0.0]]), vec![0.0, target]);
        assert_eq!(error, Err(SamplesError::NotFinite { row: 1 }));
    }
}

#[test]
fn labels_zero_one_and_minus_one_one_become_signs() {
    let three = Matrix::from_rows(&[[1.0], [2.0], [3.0]]).unwrap();
    for labels in [[0.0, 1.0, 0.0], [-1.0, 1.0, -1.0]] {
        let rows = Samples::labelled(three.clone(), &labels).unwrap();
        assert_eq!(rows.targets(), [-1.0, 1.0, -1.0]);
    }
    for labels in [[0.0, 1.0, -1.0], [-1.0, 1.0, 2.0]] {
        let error = Samples::labelled(three.clone(), &labels).unwrap_err();
        assert!(matches!(error, SamplesError::Label { .. }), "{error}");
    }
}

#[test]
fn one_model_on_rows_gives_the_known_answers() {
    let theta = |weights: [f64; 2]| LinearModel {
        weights: weights.to_vec(),
        intercept: 0.0,
    };
    let data = rows(
        &[[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, -1.0]],
        &[1.0, 1.0, 0.0, 4.0],
    );
    let cost = TransportCost::default();
    let robust = robust_loss(&data, &theta([1.5, -0.5]), 0.3, RowLoss::Absolute, cost).unwrap();
    assert!(close(robust.loss, 1.5612486080160912, 1e-12));

    let data = rows(&[[1.0, 2.0], [2.0, -1.0], [3.0, 1.0]], &[1.0, -1.0, 1.0]);
    let loss = RowLoss::Logistic;
    let robust = robust_loss(&data, &theta(THETA), 0.5, loss, cost).unwrap();
    assert!(close(robust.loss, 2.1193639024327817, 1e-12));
    assert_eq!(robust, logistic(&MARGINS, &THETA, 0.5, cost).unwrap());

    let numbers = rows(&[[1.0, 2.0]], &[0.5]);
    let error = robust_loss(&numbers, &theta(THETA), 0.5, loss, cost).unwrap_err();
    assert_eq!(error, RobustError::Label { row: 0, label: 0.5 });
    let short = LinearModel {
        weights: vec![1.0],
        intercept: 0.0,
    };
    let error = robust_loss(&data, &short, 0.5, loss, cost).unwrap_err();
    assert_eq!(
        error,
        RobustError::Weights {
            weights: 1,
            features: 2
        }
    );
    let error = robust_loss(&data, &theta(THETA), -0.1, loss, cost).unwrap_err();
    assert_eq!(error, RobustError::Radius(-0.1));
    let free = TransportCost {
        label_cost: 0.0,
        ..cost
    };
    for loss in [RowLoss::Absolute, RowLoss::Logistic] {
        let error = robust_loss(&data, &theta(THETA), 0.5, loss, free).unwrap_err();
        assert_eq!(error, RobustError::LabelCost(0.0));
    }
    let huge = theta([1e308, 1e308]);
    let error = robust_loss(&data, &huge, 0.5, loss, cost).unwrap_err();
    assert_eq!(error, RobustError::NotFinite);
}

/// The score table of CS-RCFL (Konti et al. 2024, eq. (10)): entry `(i, j)` is the robust loss of
/// model `j` on the rows of silo `i`, within that silo's radius.
pub(super) fn score_table(
    silos: &[(&Samples, f64)],
    models: &[LinearModel],
    loss: RowLoss,
    cost: TransportCost,
) -> Matrix {
    Matrix::from_fn(silos.len(), models.len(), |i, j| {
        let (rows, radius) = silos[i];
        robust_loss(rows, &models[j], radius, loss, cost)
            .unwrap()
            .loss
    })
}

#[test]
fn the_intercept_is_outside_the_norm() {
    let data = rows(&[[1.0]], &[4.0]);
    let model = LinearModel {
        weights: vec![2.0],
        intercept: 1.0,
    };
    let cost = TransportCost {
        norm: Norm::L1,
        ..TransportCost::default()
    };
    let robust = robust_loss(&data, &model, 0.5, RowLoss::Absolute, cost).unwrap();
    assert_eq!(robust.loss, 1.0 + 0.5 * 2.0);
}

prop_compose! {
    fn problem()(
        margins in prop::collection::vec(-5.0..5.0f64, 1..30),
        theta in prop::collection::vec(-2.0..2.0f64, 0..4),
        radius in 0.0..2.0f64,
        label_cost in 0.05..4.0f64,
        norm in norm(),
    ) -> (Vec<f64>, Vec<f64>, f64, TransportCost) {
        (margins, theta, radius, TransportCost { norm, label_cost })
    }
}

/// The dual's objective at one λ.
fn dual(margins: &[f64], radius: f64, cost: f64, lambda: f64) -> f64 {
    let hinge: f64 = margins
        .iter()
        .map(|margin| (margin - cost * lambda).max(0.0))
        .sum();
    lambda * radius + hinge / margins.len() as f64
}

proptest! {
    #[test]
    fn no_lambda_is_better_and_lambda_star_attains_the_loss(
        (margins, theta, radius, cost) in problem(),
    ) {
        let robust = logistic(&margins, &theta, radius, cost).unwrap();
        let slope = cost.norm.dual(theta.iter().copied());
        prop_assert!(robust.lambda >= slope);
        let attained = robust.empirical + dual(&margins, radius, cost.label_cost, robust.lambda);
        prop_assert!(close(robust.loss, attained, 1e-10), "{robust:?} {attained}");
        let top = margins.iter().fold(slope, |top, margin| top.max(margin / cost.label_cost)) + 1.0;
        for step in 0..=200 {
            let lambda = slope + (top - slope) * f64::from(step) / 200.0;
            let value = robust.empirical + dual(&margins, radius, cost.label_cost, lambda);
            prop_assert!(value >= robust.loss - 1e-10 * value.abs().max(1.0));
        }
    }

    #[test]
    fn loss_rises_with_the_radius_and_is_concave_in_it(
        (margins, theta, radius, cost) in problem(),
    ) {
        let at = |radius: f64| logistic(&margins, &theta, radius, cost).unwrap().loss;
        let line = |radius: f64| linear(&margins, &theta, radius, cost.norm).unwrap().loss;
        for loss in [&at as &dyn Fn(f64) -> f64, &line] {
            let (near, middle, far) = (loss(radius), loss(radius + 0.25), loss(radius + 0.5));
            prop_assert!(near <= middle + 1e-12 && middle <= far + 1e-12);
            prop_assert!(2.0 * middle >= near + far - 1e-10 * far.abs().max(1.0));
        }
    }

    #[test]
    fn radius_zero_is_the_plain_mean((margins, theta, _, cost) in problem()) {
        let robust = logistic(&margins, &theta, 0.0, cost).unwrap();
        prop_assert_eq!(robust.loss, robust.empirical);
        let robust = linear(&margins, &theta, 0.0, cost.norm).unwrap();
        prop_assert_eq!(robust.loss, robust.empirical);
    }

    #[test]
    fn a_label_that_cannot_change_costs_only_the_norm(
        (margins, theta, radius, cost) in problem(),
    ) {
        let at = |label_cost: f64| {
            let cost = TransportCost { label_cost, ..cost };
            logistic(&margins, &theta, radius, cost).unwrap()
        };
        let certain = at(f64::INFINITY);
        let slope = cost.norm.dual(theta.iter().copied());
        prop_assert!(close(certain.loss, certain.empirical + radius * slope, 1e-12));
        prop_assert!(close(certain.loss, at(1e12).loss, 1e-9));
    }

    #[test]
    fn loss_is_below_the_steepest_bound((margins, theta, radius, cost) in problem()) {
        let robust = logistic(&margins, &theta, radius, cost).unwrap();
        let steepest = margins
            .iter()
            .fold(cost.norm.dual(theta.iter().copied()), |top, margin| top.max(margin / cost.label_cost));
        prop_assert!(robust.loss <= robust.empirical + radius * steepest + 1e-10);
    }
}
