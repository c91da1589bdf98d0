//! One model of all rows, the reference: what scikit-learn finds on the same rows.

use methods::learner::Optimiser;
use methods::serving::{Alone, model_of_all_rows};

use super::*;

const FEATURES: [[f32; 2]; 8] = [
    [-2.0, 1.0],
    [-1.0, 0.0],
    [0.0, 2.0],
    [1.0, -1.0],
    [2.0, 1.0],
    [3.0, 0.0],
    [-1.0, -2.0],
    [1.0, 2.0],
];
const NUMBERS: [f32; 8] = [1.0, 3.0, 2.0, 5.0, 4.0, 7.0, -1.0, 2.5];
/// The slope of least squares by the first column alone.
const SLOPE: f64 = 1.191824;
const CLASSES: [f32; 8] = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 0.0];

/// A silo with some of the rows, as they are.
fn silo(kind: LearnerKind, targets: &[f32], places: std::ops::Range<usize>) -> TableLearner {
    let classes = matches!(kind, LearnerKind::Logistic);
    let mut one = learner(kind, &table(20, 1, classes), Standardise::None);
    let features = FEATURES[places.clone()].concat();
    one.train = Arc::new(Rows::new(2, features, targets[places].to_vec()));
    one
}

/// The model of the rows of two silos, trained for one round of one epoch with so small a rate that steps
/// lead nowhere.
fn model(kind: LearnerKind, targets: &[f32], weight_decay: f64) -> Vec<f32> {
    let silos = [0..3, 3..8].map(|places| silo(kind, targets, places));
    let pooled = TableLearner::pooled(&[&silos[0], &silos[1]]);
    let Task::Train(training) = task(1, 8, 1e-6) else {
        panic!("a task that trains");
    };
    let alone = Alone {
        start: pooled.initial(0),
        initial: 0,
        task: Task::Train(Training {
            optimiser: Optimiser::Sgd {
                rate: 1e-6,
                momentum: 0.0,
                weight_decay,
            },
            ..training
        }),
        seed: 1,
        rounds: 1..=1,
    };
    let mut shown = 0;
    let model = model_of_all_rows(&pooled, &alone, |_| shown += 1).unwrap();
    assert_eq!(shown, 1);
    line(&model)
}

/// The weights, then the bias.
fn line(model: &Params) -> Vec<f32> {
    let tensors = ["weight", "bias"].map(|name| model.tensor(name).unwrap());
    tensors.concat()
}

fn is(found: &[f32], expected: [f64; 3]) {
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (f64::from(*found) - expected).abs() < 2e-5,
            "{found:?} {expected}"
        );
    }
}

#[test]
fn a_linear_model_of_all_rows_equals_that_of_scikit_learn() {
    // LinearRegression(); Ridge(alpha=0.4), whose sum of squares is eight times our mean.
    let squared = |decay| model(LearnerKind::Squared, &NUMBERS, decay);
    is(&squared(0.0), [1.192_148_76, -0.003_443_53, 2.491_735_54]);
    is(&squared(0.1), [1.168_330_94, -0.000_218_60, 2.499_457_87]);
    // QuantileRegressor(quantile=0.5, alpha=0).
    let absolute = model(LearnerKind::Absolute, &NUMBERS, 0.0);
    is(&absolute, [0.857_142_86, -0.714_285_71, 3.428_571_43]);
    // LogisticRegression(C=inf), and with C = 1 / (8 · 0.1).
    let logistic = |decay| model(LearnerKind::Logistic, &CLASSES, decay);
    is(&logistic(0.0), [0.607_866_85, -0.249_146_04, -0.125_100_68]);
    is(&logistic(0.1), [0.485_885_08, -0.180_039_31, -0.109_542_05]);
}

#[test]
fn separable_labels_and_equal_columns_have_a_model_of_all_rows() {
    let apart = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0];
    let found = model(LearnerKind::Logistic, &apart, 0.0);
    assert!(
        found[0] > 0.1 && found.iter().all(|value| value.abs() < 20.0),
        "{found:?}"
    );
    let one = |place: usize| {
        let mut one = silo(LearnerKind::Squared, &NUMBERS, 0..8);
        let rows = FEATURES.map(|row| [row[0], row[place]]).concat();
        one.train = Arc::new(Rows::new(2, rows, NUMBERS.to_vec()));
        let alone = Alone {
            start: one.initial(0),
            initial: 0,
            task: task(1, 8, 1e-6),
            seed: 1,
            rounds: 1..=1,
        };
        model_of_all_rows(&one, &alone, |_| ()).unwrap()
    };
    // The two equal columns share the weight that one of them has alone.
    let values = line(&one(0));
    let both = f64::from(values[0]) + f64::from(values[1]);
    assert!(
        (both - SLOPE).abs() < 1e-4 && (values[0] - values[1]).abs() < 1e-3,
        "{values:?}"
    );
}

#[test]
fn other_models_of_all_rows_are_trained_in_steps() {
    let one = learner(LearnerKind::Mlp, &table(60, 2, true), Standardise::Silo);
    let alone = Alone {
        start: one.initial(3),
        initial: 3,
        task: task(2, 8, 0.01),
        seed: 1,
        rounds: 1..=4,
    };
    let mut shown = Vec::new();
    let model = model_of_all_rows(&one, &alone, |model| shown.push(model.clone())).unwrap();
    assert_eq!((shown.len(), shown.last()), (4, Some(&model)));
    assert_eq!(model, alone.train(&one).unwrap().0);
}
