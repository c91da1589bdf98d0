//! Gradients of single rows and persons: right, and the same bits wherever a row stands.

use std::collections::BTreeSet;

use methods::learner::{SquaresRow, UnitGradients, UnitRows};

use super::*;

/// The gradients of all units.
fn gradients(learner: &dyn Learner, model: &Params, unit: UnitRows) -> Vec<Vec<f64>> {
    let mut all = Vec::new();
    let units = learner.units().unwrap();
    let with = &mut |gradient: &[f64]| all.push(gradient.to_vec());
    units.unit_gradients(model, unit, with).unwrap();
    all
}

fn bits(gradient: &[f64]) -> Vec<u64> {
    gradient.iter().map(|number| number.to_bits()).collect()
}

/// A model that is not zero.
fn start(learner: &TableLearner) -> Params {
    let initial = learner.initial(3);
    Params::build(&learner.layout, |values| {
        for (at, (value, initial)) in values.iter_mut().zip(initial.values()).enumerate() {
            *value = initial + (at as f32 * 0.7).sin() / 8.0;
        }
    })
}

const KINDS: [LearnerKind; 6] = [
    LearnerKind::Absolute,
    LearnerKind::Squared,
    LearnerKind::Logistic,
    LearnerKind::Mlp,
    LearnerKind::Numbers,
    LearnerKind::Wide,
];

/// One step of all rows is along the mean of the rows' gradients. The perceptron's step is computed by burn,
/// and its own tests compare that with autodiff.
#[test]
fn the_mean_of_the_gradients_is_the_step_of_a_full_batch() {
    for kind in KINDS {
        let classes = !matches!(
            kind,
            LearnerKind::Absolute | LearnerKind::Squared | LearnerKind::Numbers
        );
        // Standardised once, so that a step of rate 1 is small beside the weights.
        let learner = learner(kind, &table(90, 1, classes), Standardise::Silo);
        let model = start(&learner);
        let optimiser = Optimiser::Sgd {
            rate: 1.0,
            momentum: 0.0,
            weight_decay: 0.0,
        };
        let step = Task::Train(Training {
            epochs: 1,
            batch: 0,
            optimiser,
            decay: None,
        });
        let trained = run(&learner, &model, &step, 1).shared;
        let all = gradients(&learner, &model, UnitRows::One);
        assert_eq!(all.len() as u64, learner.samples());
        for (at, (before, after)) in model.values().iter().zip(trained.values()).enumerate() {
            let sum: f64 = all.iter().map(|gradient| gradient[at]).sum();
            let (mean, step) = (sum / all.len() as f64, f64::from(before - after));
            assert!((mean - step).abs() < 1e-5, "{at}: {mean} {step}");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_any_batch_place_and_thread_count() {
    for kind in KINDS {
        let learner = learner(kind, &table(60, 2, true), Standardise::None);
        let model = start(&learner);
        let whole = gradients(&learner, &model, UnitRows::One);
        let rows = whole.len() as u32;
        let mut orders: Vec<Vec<u32>> = (0..rows).map(|row| vec![row]).collect();
        orders.push((0..rows).rev().collect());
        orders.push((0..rows).step_by(3).collect());
        for order in orders {
            let part = learner.only(Split::Train, &order).unwrap();
            let found = gradients(&*part, &model, UnitRows::One);
            for (row, found) in order.iter().zip(&found) {
                assert_eq!(bits(found), bits(&whole[*row as usize]));
            }
        }
        std::thread::scope(|scope| {
            let of = || gradients(&learner, &model, UnitRows::One);
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(of)).collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), whole);
            }
        });
    }
}

#[test]
fn a_person_has_the_same_bits_in_any_row_order_and_company() {
    let mut visits = table(90, 4, true);
    visits.groups = (0..90).map(|row| row % 18).collect();
    let learner = learner(LearnerKind::Mlp, &visits, Standardise::None);
    let model = start(&learner);
    let of = |learner: &dyn Learner| {
        let all = gradients(learner, &model, UnitRows::Group);
        let all: BTreeSet<_> = all.iter().map(|gradient| bits(gradient)).collect();
        all
    };
    let whole = of(&learner);
    let groups = learner.train.groups();
    let persons: BTreeSet<_> = groups.iter().copied().collect();
    assert_eq!(whole.len(), persons.len());
    let (first, rest) = {
        let mut persons = persons.iter().copied();
        (persons.next().unwrap(), persons.collect::<BTreeSet<_>>())
    };
    // All rows but the first person's, last row first.
    let rows = (0..groups.len() as u32).rev();
    let others: Vec<_> = rows.filter(|row| groups[*row as usize] != first).collect();
    let part = learner.only(Split::Train, &others).unwrap();
    let found = of(&*part);
    assert_eq!(found.len(), rest.len());
    assert!(found.is_subset(&whole));
    // Rows without persons have none.
    let single = super::learner(LearnerKind::Mlp, &table(60, 2, true), Standardise::None);
    let error = single.unit_gradients(&start(&single), UnitRows::Group, &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("name no person"));
}

#[test]
fn a_common_scale_and_masks_have_no_gradients_of_single_rows() {
    let learner = learner(
        LearnerKind::Logistic,
        &table(60, 2, true),
        Standardise::Federation,
    );
    let missing = MissingCapability(Capability::UnitGradients);
    assert_eq!(learner_units(&learner), Some(missing));
}

fn learner_units(learner: &dyn Learner) -> Option<MissingCapability> {
    learner.units().err()
}

/// The rows of all units, for least squares.
fn squares(learner: &dyn Learner, unit: UnitRows) -> Vec<Vec<(Vec<f32>, f64)>> {
    let mut all = Vec::new();
    let units = learner.units().unwrap().least_squares().unwrap();
    let with = &mut |rows: &[SquaresRow<'_>]| {
        let owned = rows.iter().map(|(row, target)| (row.to_vec(), *target));
        all.push(owned.collect());
    };
    units.unit_rows(unit, with).unwrap();
    all
}

#[test]
fn least_squares_has_rows_of_linear_models_and_classes_as_two() {
    let numbers = learner(
        LearnerKind::Squared,
        &table(60, 2, false),
        Standardise::None,
    );
    let rows = squares(&numbers, UnitRows::One);
    assert_eq!(rows.len(), numbers.train.len());
    for (at, unit) in rows.iter().enumerate() {
        let target = f64::from(numbers.train.target(at)[0]);
        assert_eq!(*unit, [(numbers.train.features(at).to_vec(), target)]);
    }
    let mut visits = table(90, 4, true);
    visits.groups = (0..90).map(|row| row % 18).collect();
    let classes = learner(LearnerKind::Logistic, &visits, Standardise::None);
    let persons = squares(&classes, UnitRows::Group);
    assert!(persons.len() < classes.train.len());
    let all: Vec<_> = persons.concat();
    assert_eq!(all.len(), classes.train.len());
    let of_two = |sign: f64| {
        all.iter()
            .filter(|(_, target)| *target == sign * 2.0)
            .count()
    };
    let ones = (0..all.len()).filter(|at| classes.train.target(*at) == [1.0]);
    assert_eq!((of_two(1.0), of_two(-1.0)), {
        let ones = ones.count();
        (ones, all.len() - ones)
    });
    for (kind, classes) in [(LearnerKind::Absolute, false), (LearnerKind::Mlp, true)] {
        let other = learner(kind, &table(60, 2, classes), Standardise::None);
        assert!(other.least_squares().is_none());
    }
}
