#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::robust::Norm;
use crate::robust::synthetic::{Hospitals, Targets};
use crate::robust::tests::{NORMS, any_rows, close, labels_of, norm, rows};

const PLAIN: FitConfig = FitConfig {
    loss: RowLoss::Absolute,
    cost: TransportCost {
        norm: Norm::L2,
        label_cost: 1.0,
    },
    ridge: 0.0,
    intercept: false,
};

fn logistic(label_cost: f64) -> FitConfig {
    FitConfig {
        loss: RowLoss::Logistic,
        cost: TransportCost {
            label_cost,
            ..PLAIN.cost
        },
        ..PLAIN
    }
}

fn with_norm(norm: Norm, config: FitConfig) -> FitConfig {
    FitConfig {
        cost: TransportCost {
            norm,
            ..config.cost
        },
        ..config
    }
}

#[test]
fn one_feature_gives_the_known_fits() {
    let data = rows(&[[1.0], [2.0], [4.0]], &[1.1, 1.9, 4.8]);
    let known = [
        (0.0, 1.2, 0.2),
        (0.1, 1.2, 0.35620499351813306),
        (0.5, 1.1, 0.9766367706992586),
        (2.0, 0.95, 3.1419561781600778),
        (4.0, 0.7181848568591088, 5.848931448269655),
    ];
    for (radius, weight, objective) in known {
        let fit = fit(&data, radius, &PLAIN).unwrap();
        assert!(close(fit.objective, objective, 1e-8), "{fit:?} at {radius}");
        assert!(
            close(fit.model.weights[0], weight, 1e-4),
            "{fit:?} at {radius}"
        );
        assert!(
            fit.converged && close(fit.objective, fit.bound, 1e-7),
            "{fit:?}"
        );
    }
}

#[test]
fn two_features_give_the_known_fits() {
    let data = rows(
        &[[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, -1.0]],
        &[1.0, 1.0, 0.0, 4.0],
    );
    let known = [
        (Norm::L1, 0.1, 1.1),
        (Norm::L1, 0.5, 1.5),
        (Norm::Linf, 0.1, 1.2),
        (Norm::Linf, 0.5, 2.0),
    ];
    for (norm, radius, objective) in known {
        let fit = fit(&data, radius, &with_norm(norm, PLAIN)).unwrap();
        assert!(close(fit.objective, objective, 1e-8), "{fit:?} at {radius}");
    }
}

/// `objective` at any model, by the exact losses.
fn objective(rows: &Samples, model: &LinearModel, radius: f64, config: &FitConfig) -> f64 {
    let squares: f64 = model.weights.iter().map(|weight| weight * weight).sum();
    let robust = robust_loss(rows, model, radius, config.loss, config.cost).unwrap();
    robust.loss + config.ridge / 2.0 * squares
}

prop_compose! {
    /// Rows, a radius above 0, and a fit that exists there.
    fn problem()(
        rows in any_rows(3),
        radius in prop_oneof![0.001..0.1f64, 0.1..2.0f64],
        label_cost in prop_oneof![2 => Just(None), 3 => (0.05..4.0f64).prop_map(Some), 1 => Just(Some(1e9))],
        norm in norm(),
        ridge in prop_oneof![Just(0.0), 0.01..1.0f64],
        intercept in any::<bool>(),
    ) -> (Samples, f64, FitConfig) {
        let (rows, config) = match label_cost {
            None => (rows, PLAIN),
            Some(label_cost) => (labels_of(&rows), logistic(label_cost)),
        };
        (rows, radius, FitConfig { ridge, intercept, ..with_norm(norm, config) })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_model_nearby_or_far_is_better(
        (rows, radius, config) in problem(),
        steps in prop::collection::vec([-1.0..1.0f64, -1.0..1.0, -1.0..1.0, -1.0..1.0], 32),
    ) {
        let fit = fit(&rows, radius, &config).unwrap();
        prop_assert!(fit.bound <= fit.objective + 1e-6, "{fit:?}");
        prop_assert_eq!(fit.objective, objective(&rows, &fit.model, radius, &config));
        for (nth, step) in steps.iter().enumerate() {
            let length = [1e-4, 1e-2, 0.3, 3.0][nth % 4];
            let weights = fit.model.weights.iter().zip(step);
            let other = LinearModel {
                weights: weights.map(|(weight, step)| weight + length * step).collect(),
                intercept: fit.model.intercept + if config.intercept { length * step[3] } else { 0.0 },
            };
            let value = objective(&rows, &other, radius, &config);
            prop_assert!(fit.objective <= value + 1e-6, "{fit:?} {other:?} {value}");
        }
    }

    #[test]
    fn more_radius_never_costs_less((rows, radius, config) in problem()) {
        let values = [1.0, 1.5, 4.0].map(|times| fit(&rows, times * radius, &config).unwrap().objective);
        prop_assert!(values[0] <= values[1] + 1e-6 && values[1] <= values[2] + 1e-6, "{values:?}");
    }

    #[test]
    fn the_same_fit_twice_is_the_same_bits((rows, radius, config) in problem()) {
        prop_assert_eq!(fit(&rows, radius, &config), fit(&rows, radius, &config));
    }

    /// Half the mass may change its label at every point, which makes labels worthless.
    #[test]
    fn cheap_labels_leave_nothing_to_learn(
        rows in any_rows(3),
        label_cost in 0.05..4.0f64,
        times in 0.5..5.0f64,
        norm in norm(),
    ) {
        let config = with_norm(norm, logistic(label_cost));
        let fit = fit(&labels_of(&rows), times * label_cost, &config).unwrap();
        prop_assert!(close(fit.objective, std::f64::consts::LN_2, 1e-7), "{fit:?}");
        prop_assert!(fit.model.weights.iter().all(|weight| weight.abs() < 1e-4), "{fit:?}");
    }

    #[test]
    fn targets_in_another_unit_scale_the_fit(rows in any_rows(2), intercept in any::<bool>()) {
        let (features, targets): (Vec<_>, Vec<_>) =
            rows.iter().map(|(x, y)| (x.to_vec(), 1e6 * y)).unzip();
        let large = self::rows(&features, &targets);
        let config = FitConfig { intercept, ..PLAIN };
        let small = fit(&rows, 0.0, &config).unwrap().objective;
        let large = fit(&large, 0.0, &config).unwrap().objective;
        prop_assert!((small - large / 1e6).abs() < 1e-7);
    }

    /// Integers in two dimensions: a boundary that separates lies along a row or across one, so
    /// trying these finds it exactly.
    #[test]
    fn separability_is_found_exactly(
        data in prop::collection::vec(([-3i32..=3, -3..=3], any::<bool>()), 1..10),
        intercept in any::<bool>(),
    ) {
        let features: Vec<Vec<f64>> = data
            .iter()
            .map(|([a, b], _)| if intercept { vec![f64::from(*a)] } else { vec![f64::from(*a), f64::from(*b)] })
            .collect();
        let labels: Vec<f64> = data.iter().map(|(_, up)| if *up { 1.0 } else { -1.0 }).collect();
        let signed: Vec<[i32; 2]> = data
            .iter()
            .map(|([a, b], up)| {
                let sign = if *up { 1 } else { -1 };
                if intercept { [sign * a, sign] } else { [sign * a, sign * b] }
            })
            .collect();
        let candidates = signed.iter().flat_map(|&[a, b]| [[a, b], [-a, -b], [-b, a], [b, -a]]);
        let expected = candidates.into_iter().any(|w| {
            let mut margins = signed.iter().map(|z| w[0] * z[0] + w[1] * z[1]);
            let positive = margins.clone().any(|margin| margin > 0);
            positive && margins.all(|margin| margin >= 0)
        });
        let rows = rows(&features, &labels);
        prop_assert_eq!(separable(&rows, intercept).unwrap(), expected);
        let config = FitConfig { intercept, ..logistic(1.0) };
        match fit(&rows, 0.0, &config) {
            Ok(_) => prop_assert!(!expected),
            Err(error) => prop_assert!(
                expected && matches!(error, FitError::Separable | FitError::OneLabel), "{error}"
            ),
        }
    }
}

/// Logistic regression with ridge by Newton's method.
fn newton(rows: &Samples, ridge: f64) -> [f64; 2] {
    let mut theta = [0.0, 0.0];
    for _ in 0..50 {
        let (mut gradient, mut curve) = ([ridge * theta[0], ridge * theta[1]], [ridge, 0.0, ridge]);
        let n = rows.len() as f64;
        for (x, y) in rows.iter() {
            let margin = y * (theta[0] * x[0] + theta[1] * x[1]);
            let wrong = 1.0 / (1.0 + libm::exp(margin));
            let weight = wrong * (1.0 - wrong) / n;
            gradient = [0, 1].map(|at| gradient[at] - y * wrong * x[at] / n);
            curve[0] += weight * x[0] * x[0];
            curve[1] += weight * x[0] * x[1];
            curve[2] += weight * x[1] * x[1];
        }
        let determinant = curve[0] * curve[2] - curve[1] * curve[1];
        theta[0] -= (curve[2] * gradient[0] - curve[1] * gradient[1]) / determinant;
        theta[1] -= (curve[0] * gradient[1] - curve[1] * gradient[0]) / determinant;
    }
    theta
}

#[test]
fn logistic_fits_at_radius_zero_equal_newtons_method() {
    let data = rows(
        &[
            [1.0, 0.5],
            [-0.3, 1.2],
            [0.4, -1.1],
            [-1.0, -0.2],
            [0.3, 0.8],
            [0.9, -0.4],
        ],
        &[1.0, -1.0, 1.0, -1.0, 1.0, -1.0],
    );
    for ridge in [0.05, 0.5] {
        let expected = newton(&data, ridge);
        for label_cost in [1.0, f64::INFINITY] {
            let config = FitConfig {
                ridge,
                ..logistic(label_cost)
            };
            let fit = fit(&data, 0.0, &config).unwrap();
            for (weight, expected) in fit.model.weights.iter().zip(expected) {
                assert!((weight - expected).abs() < 1e-4, "{fit:?} {expected:?}");
            }
            let model = LinearModel {
                weights: expected.to_vec(),
                intercept: 0.0,
            };
            assert!(close(
                fit.objective,
                objective(&data, &model, 0.0, &config),
                1e-8
            ));
        }
    }
}

/// With certain labels, weights are 0 from the radius on at which no direction gains: the norm of
/// `mean y x / 2`.
#[test]
fn certain_labels_and_a_large_radius_leave_nothing_to_learn() {
    let data = rows(&[[1.0, 2.0], [3.0, -1.0]], &[1.0, -1.0]);
    // mean y x / 2 = (−0.5, 0.75).
    for (norm, enough) in NORMS.into_iter().zip([1.25, 0.9013878188659973, 0.75]) {
        let config = with_norm(norm, logistic(f64::INFINITY));
        let value = |radius: f64| fit(&data, radius, &config).unwrap().objective;
        assert!(close(value(enough * 1.001), std::f64::consts::LN_2, 1e-8));
        assert!(value(enough * 0.9) < std::f64::consts::LN_2 - 1e-4);
    }
}

#[test]
fn fits_that_do_not_exist_are_refused() {
    let apart = rows(&[[1.0], [2.0], [-1.0]], &[1.0, 1.0, -1.0]);
    let config = logistic(1.0);
    assert_eq!(fit(&apart, 0.0, &config), Err(FitError::Separable));
    assert!(fit(&apart, 0.01, &config).is_ok());
    assert!(fit(&apart, 0.01, &logistic(f64::INFINITY)).is_ok());
    assert!(
        fit(
            &apart,
            0.0,
            &FitConfig {
                ridge: 0.01,
                ..config
            }
        )
        .is_ok()
    );

    let one = rows(&[[1.0], [2.0]], &[1.0, 1.0]);
    let with = |label_cost: f64, ridge: f64| FitConfig {
        intercept: true,
        ridge,
        ..logistic(label_cost)
    };
    assert_eq!(fit(&one, 0.0, &with(1.0, 1.0)), Err(FitError::OneLabel));
    assert_eq!(
        fit(&one, 0.1, &with(f64::INFINITY, 1.0)),
        Err(FitError::OneLabel)
    );
    assert!(fit(&one, 0.1, &with(1.0, 0.0)).is_ok());
    assert!(fit(&one, 0.1, &logistic(f64::INFINITY)).is_ok());
}

#[test]
fn unusable_input_is_refused() {
    let data = rows(&[[1.0], [2.0]], &[1.0, 0.5]);
    let error = |radius: f64, config: &FitConfig| fit(&data, radius, config).unwrap_err();
    let label = RobustError::Label { row: 1, label: 0.5 };
    assert_eq!(error(0.1, &logistic(1.0)), FitError::Input(label));
    assert_eq!(
        error(0.1, &logistic(0.0)),
        FitError::Input(RobustError::LabelCost(0.0))
    );
    assert_eq!(
        error(-0.1, &PLAIN),
        FitError::Input(RobustError::Radius(-0.1))
    );
    let ridge = |ridge: f64| FitConfig { ridge, ..PLAIN };
    assert_eq!(error(0.1, &ridge(-1.0)), FitError::Ridge(-1.0));
    assert!(matches!(error(0.1, &ridge(f64::NAN)), FitError::Ridge(_)));
}

/// Fewer rows than features, equal rows, rows of zeros: nothing tells some weights apart.
#[test]
fn flat_minima_are_solved() {
    let few = rows(&[[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]], &[1.0, -2.0]);
    let equal = rows(&[[1.0, 1.0]; 4], &[1.0, 2.0, 3.0, 10.0]);
    let zeros = rows(&[[0.0, 0.0]; 3], &[1.0, -1.0, 5.0]);
    for (data, intercept, least) in [
        (&few, false, 0.0),
        (&equal, false, 2.5),
        (&zeros, true, 2.0),
        (&zeros, false, 7.0 / 3.0),
    ] {
        let fit = fit(data, 0.0, &FitConfig { intercept, ..PLAIN }).unwrap();
        assert!((fit.objective - least).abs() < 1e-7, "{fit:?}");
    }
    let overlap = rows(&[[0.0, 1.0], [0.0, 1.0]], &[1.0, -1.0]);
    let fit = fit(&overlap, 0.0, &logistic(1.0)).unwrap();
    assert!(
        close(fit.objective, std::f64::consts::LN_2, 1e-9),
        "{fit:?}"
    );
}

/// The size of the synthetic hospitals, with every norm, loss and label cost.
#[test]
fn silos_of_the_usual_size_are_solved() {
    for (features, count, targets) in [
        (10, 150, Targets::Numbers { noise: 0.5 }),
        (10, 150, Targets::Labels { threshold: 0.5 }),
        (6, 7, Targets::Labels { threshold: 0.6 }),
    ] {
        let hospitals = Hospitals {
            hospitals: 2,
            coalitions: 1,
            features,
            rows: (count, count),
            targets,
            ..Hospitals::default()
        };
        for hospital in hospitals.draw(5).unwrap() {
            for norm in NORMS {
                let configs = match targets {
                    Targets::Numbers { .. } => vec![PLAIN],
                    Targets::Labels { .. } => [0.25, 1.0, f64::INFINITY].map(logistic).to_vec(),
                };
                for config in configs {
                    for radius in [0.01, 0.1, 1e3] {
                        let config = FitConfig {
                            intercept: true,
                            ..with_norm(norm, config)
                        };
                        let fit = fit(&hospital.rows, radius, &config).unwrap();
                        assert!(close(fit.objective, fit.bound, 1e-6), "{fit:?}");
                    }
                }
            }
        }
    }
}
