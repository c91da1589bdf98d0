#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::*;
use crate::robust::robust_loss;
use crate::robust::tests::{NORMS, any_model, any_rows, labels_of, norm, rows};

fn model(weights: &[f64], intercept: f64) -> LinearModel {
    LinearModel {
        weights: weights.to_vec(),
        intercept,
    }
}

prop_compose! {
    fn federation()(
        rows in prop::collection::vec(any_rows(3), 1..=7),
        models in prop::collection::vec(any_model(3), 1..=5),
        radii in prop::collection::vec(0.0..1.0f64, 7),
    ) -> (Vec<Rows>, Vec<LinearModel>, Vec<f64>) {
        (rows, models, radii)
    }
}

fn silos<'a>(rows: &'a [Rows], radii: &[f64]) -> Vec<Silo<'a>> {
    let each = rows.iter().zip(radii);
    each.map(|(rows, &radius)| Silo { rows, radius }).collect()
}

proptest! {
    #[test]
    fn every_entry_is_the_loss_of_its_pair(
        (rows, models, radii) in federation(),
        label_cost in prop_oneof![0.1..3.0f64, Just(f64::INFINITY)],
        norm in norm(),
    ) {
        let labelled: Vec<Rows> = rows.iter().map(labels_of).collect();
        for (loss, rows) in [(Loss::Absolute, &rows), (Loss::Logistic { label_cost }, &labelled)] {
            let silos = silos(rows, &radii);
            let losses = transfer(&silos, &models, loss, norm).unwrap();
            for (i, silo) in silos.iter().enumerate() {
                for (j, model) in models.iter().enumerate() {
                    let pair = robust_loss(silo.rows, model, silo.radius, loss, norm).unwrap();
                    prop_assert_eq!(losses[(i, j)].to_bits(), pair.loss.to_bits());
                }
            }
        }
    }

    /// Whose model it is does not matter: with the models in another order, the columns are.
    #[test]
    fn shuffled_models_shuffle_the_columns((rows, models, radii) in federation(), norm in norm()) {
        let silos = silos(&rows, &radii);
        let losses = transfer(&silos, &models, Loss::Absolute, norm).unwrap();
        let turned: Vec<LinearModel> = models.iter().rev().cloned().collect();
        let again = transfer(&silos, &turned, Loss::Absolute, norm).unwrap();
        for i in 0..silos.len() {
            let back: Vec<f64> = again.row(i).iter().rev().copied().collect();
            prop_assert_eq!(losses.row(i), &back[..]);
        }
    }

    #[test]
    fn threads_do_not_change_a_bit((rows, models, radii) in federation()) {
        let labelled: Vec<Rows> = rows.iter().map(labels_of).collect();
        let silos = silos(&labelled, &radii);
        let loss = Loss::Logistic { label_cost: 0.7 };
        for norm in NORMS {
            let [one, many] = [1, 5].map(|threads| {
                let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| transfer(&silos, &models, loss, norm).unwrap())
            });
            prop_assert_eq!(one, many);
        }
    }
}

#[test]
fn the_row_says_whose_data_and_radius_and_the_column_whose_model() {
    let data = [rows(&[[1.0]], &[1.0]), rows(&[[2.0]], &[1.0])];
    let models = [model(&[0.0], 0.0), model(&[3.0], 0.0)];
    let silos = silos(&data, &[0.0, 0.5]);
    let losses = transfer(&silos, &models, Loss::Absolute, Norm::Linf).unwrap();
    // |1 − 0|, |1 − 3|; |1 − 0| + ½·(0 + 1), |1 − 6| + ½·(3 + 1).
    assert_eq!(losses.values(), [1.0, 2.0, 1.5, 7.0]);
}

#[test]
fn the_intercept_is_outside_the_norm() {
    let data = [rows(&[[1.0]], &[4.0])];
    let models = [model(&[2.0], 1.0)];
    let losses = transfer(&silos(&data, &[0.5]), &models, Loss::Absolute, Norm::L1).unwrap();
    assert_eq!(losses.values(), [1.0 + 0.5 * 2.0]);
}

#[test]
fn nobody_and_nothing_give_empty_losses() {
    let data = [rows(&[[1.0]], &[4.0])];
    let none = transfer(&silos(&data, &[0.5]), &[], Loss::Absolute, Norm::L1).unwrap();
    assert_eq!((none.rows(), none.columns()), (1, 0));
    let none = transfer(&[], &[model(&[1.0], 0.0)], Loss::Absolute, Norm::L1).unwrap();
    assert_eq!((none.rows(), none.columns()), (0, 1));
}

#[test]
fn unusable_input_is_named() {
    let data = [
        rows(&[[1.0, 2.0]], &[1.0]),
        rows(&[[1.0, 2.0], [3.0, 4.0]], &[1.0, 0.0]),
        rows(&[[1.0]], &[1.0]),
    ];
    let good = model(&[1.0, 1.0], 0.0);
    let logistic = Loss::Logistic { label_cost: 1.0 };
    let attempt = |silos: &[Silo<'_>], models: &[LinearModel], loss| {
        transfer(silos, models, loss, Norm::L2).unwrap_err()
    };
    let silo = |silo: usize, error: RobustError| TransferError::Silo { silo, error };

    let two = silos(&data[..2], &[0.1, 0.1]);
    let error = attempt(&two, std::slice::from_ref(&good), logistic);
    assert_eq!(error, silo(1, RobustError::Label { row: 1, label: 0.0 }));
    let error = attempt(
        &two[..1],
        std::slice::from_ref(&good),
        Loss::Logistic { label_cost: 0.0 },
    );
    assert_eq!(error, silo(0, RobustError::LabelCost(0.0)));

    let error = attempt(
        &silos(&data, &[0.1; 3]),
        std::slice::from_ref(&good),
        Loss::Absolute,
    );
    let weights = RobustError::Weights {
        weights: 2,
        features: 1,
    };
    assert_eq!(error, silo(2, weights));
    let error = attempt(
        &silos(&data, &[0.1, -0.1]),
        std::slice::from_ref(&good),
        Loss::Absolute,
    );
    assert_eq!(error, silo(1, RobustError::Radius(-0.1)));

    let models = [good.clone(), model(&[1.0], 0.0)];
    let error = attempt(&two, &models, Loss::Absolute);
    let weights = RobustError::Weights {
        weights: 1,
        features: 2,
    };
    assert_eq!(
        error,
        TransferError::Model {
            model: 1,
            error: weights
        }
    );
    let models = [good.clone(), model(&[1.0, 1.0], f64::NAN)];
    let error = attempt(&two, &models, Loss::Absolute);
    assert_eq!(
        error,
        TransferError::Model {
            model: 1,
            error: RobustError::NotFinite
        }
    );

    let models = [good, model(&[1e308, 1e308], 0.0)];
    let error = attempt(&two, &models, Loss::Absolute);
    assert_eq!(error, TransferError::Overflow { silo: 0, model: 1 });
}
