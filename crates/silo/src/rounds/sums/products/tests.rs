//! The numbers of units, and the model of their sum.
#![allow(clippy::unwrap_used)]

use methods::learner::{Learner, SquaresRow};
use methods::{LearnError, TensorSpec};
use protocol::parameters::Real;

use super::*;
use crate::testing::learner;

/// Two persons with two rows each.
const ROWS: [([f32; 2], f64); 4] = [
    ([0.5, -0.5], 0.25),
    ([0.25, 0.75], -0.5),
    ([-1.0, 0.5], 1.0),
    ([0.0, 1.0], 0.5),
];

/// The rows of two persons, for a linear model.
struct FourRows;

impl LeastSquares for FourRows {
    fn unit_rows(
        &self,
        unit: UnitRows,
        with: &mut dyn FnMut(&[SquaresRow<'_>]),
    ) -> Result<(), LearnError> {
        let rows: Vec<_> = ROWS
            .iter()
            .map(|(row, target)| (&row[..], *target))
            .collect();
        let size = if unit == UnitRows::One { 1 } else { 2 };
        rows.chunks(size).for_each(with);
        Ok(())
    }
}

impl UnitGradients for FourRows {
    fn unit_gradients(
        &self,
        _: &Params,
        _: UnitRows,
        _: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, LearnError> {
        Err(LearnError::Failed("these rows have none".into()))
    }

    fn least_squares(&self) -> Option<&dyn LeastSquares> {
        Some(self)
    }
}

fn release(ridge: Option<f64>) -> Release {
    Release::Once {
        rows_norm: Real::new(2.0),
        targets_within: Real::new(1.0),
        ridge: ridge.map(Real::new),
    }
}

fn layout() -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new("weight", [1, 2], Role::Weight),
        TensorSpec::new("bias", [1], Role::Bias),
    ])
    .unwrap()
}

/// The weights, then the intercept, wherever they lie.
fn line(model: &Params) -> Vec<f32> {
    let of = |name| model.tensor(name).unwrap();
    [of("weight"), of("bias")].concat()
}

/// The sum of the units' numbers, clipped and rounded.
fn sum(once: &SolvedOnce, unit: UnitRows) -> (Vec<i64>, f64, usize) {
    let clip = once.products.clip();
    let (mut sum, mut units) = (vec![0; once.numbers()], 0);
    let given = once.units(&FourRows, unit, &mut |numbers| {
        clip.add(numbers, &mut sum).unwrap();
        units += 1;
    });
    given.unwrap();
    (sum, clip.step(), units)
}

#[test]
fn all_solve_the_same_model_with_the_agreed_ridge_or_one_that_follows_from_the_noise() {
    let layout = layout();
    let with = SolvedOnce::new(release(Some(0.25)), 3).unwrap();
    assert_eq!(with.numbers(), 9);
    let (rows, step, units) = sum(&with, UnitRows::One);
    assert_eq!(units, 4);
    let model = with.solved(&layout, (&rows, 4), step, 100.0).unwrap();
    let solved = with.products.solve(&rows, step, 4, 0.25);
    let solved: Vec<_> = solved.into_iter().map(|value| value as f32).collect();
    assert_eq!(line(&model), solved);
    let without = SolvedOnce::new(release(None), 3).unwrap();
    let loud = without.solved(&layout, (&rows, 4), step, 100.0).unwrap();
    // 100 · √6 / 4
    let expected = without
        .products
        .solve(&rows, step, 4, 100.0 * 6_f64.sqrt() / 4.0);
    for (found, expected) in line(&loud).iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-6);
    }
    assert_ne!(loud, model);
}

#[test]
fn the_rows_of_a_person_are_added_before_they_are_clipped() {
    let once = SolvedOnce::new(release(None), 3).unwrap();
    let (_, _, persons) = sum(&once, UnitRows::Group);
    assert_eq!(persons, 2);
    let mut first = None;
    let mut keep = |numbers: &[f64]| {
        first.get_or_insert_with(|| numbers.to_vec());
    };
    once.units(&FourRows, UnitRows::Group, &mut keep).unwrap();
    let mut expected = vec![0.0; 9];
    for (row, target) in &ROWS[..2] {
        once.products.add(row, *target, &mut expected);
    }
    assert_eq!(first, Some(expected));
}

#[test]
fn other_models_and_too_many_features_are_refused_at_the_start_with_what_to_choose() {
    assert_eq!(check(&FourRows, &layout()), Ok(()));
    let quadratic = learner(0.0);
    let quadratic: &dyn Learner = &quadratic;
    let why = check(quadratic.units().unwrap(), &layout()).unwrap_err();
    assert!(why.contains("choose a linear model"), "{why}");
    let two = Layout::new(vec![TensorSpec::new("weight", [1, 2], Role::Weight)]).unwrap();
    let why = check(&FourRows, &two).unwrap_err();
    assert!(why.contains("weights and an intercept"), "{why}");
    let why = SolvedOnce::new(release(None), 1_000).err().unwrap();
    assert!(
        why.contains("999 features") && why.contains("choose `mechanism = \"gradients\"`"),
        "{why}"
    );
}

#[test]
fn a_model_that_is_not_finite_is_refused() {
    let once = SolvedOnce::new(release(Some(1e-100)), 3).unwrap();
    // No rows, and targets that say much: nothing but the ridge holds the model.
    let sum = [0, 0, 0, 0, 0, 0, 1 << 40, 0, 0];
    let why = once.solved(&layout(), (&sum, 1), 1.0, 0.0).unwrap_err();
    assert!(why.contains("not finite"), "{why}");
}
