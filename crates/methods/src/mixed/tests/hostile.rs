//! Sums that no honest site has: the step stays finite and bounded, and most are known for what they are.

use proptest::prelude::*;

use super::*;

const SHAPE: SumsShape = SumsShape {
    width: 3,
    varying: Varying::Slopes,
    whole: true,
    noise: true,
};

fn is_sound(progress: &MixedProgress) -> bool {
    let numbers = progress.mean.iter().chain(&progress.strengths);
    let mut numbers = numbers.chain([&progress.noise, &progress.precision]);
    numbers.all(|number| number.is_finite())
        && progress.strengths.iter().all(|&strength| strength >= 0.0)
        && progress.noise > 0.0
        && progress.precision > 0.0
}

proptest! {
    #[test]
    fn any_finite_numbers_give_a_bounded_step(
        numbers in prop::collection::vec(prop_oneof![
            -1e30..1e30f64, -10.0..10.0f64, Just(0.0), Just(-1e300), Just(1e300),
        ], SHAPE.len()),
        rows in 0.0..1e6f64,
        again in 1..4usize,
    ) {
        let sums = SiteSums::read(SHAPE, &numbers).unwrap();
        let mut at = MixedProgress::start(Varying::Slopes, 3, &MixedSettings::default());
        for _ in 0..again {
            let next = at.step(&sums, 2.0, rows, &MixedSettings::default());
            prop_assert!(is_sound(&next), "{next:?}");
            for (before, after) in at.mean.iter().zip(&next.mean) {
                prop_assert!((before - after).abs() <= 2.0 + 1e-9);
            }
            at = next;
        }
    }
}

#[test]
fn what_no_site_can_have_is_known() {
    let rows = samples(
        &[vec![1.0, 0.5], vec![-1.0, 2.0], vec![0.3, 0.1]],
        vec![1.0, 0.0, 2.0],
    );
    let at = MixedProgress::start(Varying::Slopes, 3, &MixedSettings::default());
    let mode = mode(&rows, Family::Gaussian, at.prior()).unwrap();
    let honest = SiteSums::of(SHAPE, at.prior(), &mode, None);
    assert!(honest.is_plausible(0.0));
    let with = |place: usize, value: f64| {
        let mut numbers = honest.numbers().to_vec();
        numbers[place] = value;
        SiteSums::read(SHAPE, &numbers)
    };
    // In order: log likelihood, 3 scores, 6 entries of W, 3 squares, 3 explained, 3 of the noise.
    for (place, value) in [
        (1, 1e31),
        (4, -1.0),
        (5, 1e6),
        (9, -0.5),
        (10, -1.0),
        (13, -1.0),
        (16, -1.0),
        (17, -1.0),
    ] {
        let forged = with(place, value).unwrap();
        assert!(!forged.is_plausible(0.0), "{value} at {place}");
    }
    assert_eq!(with(2, f64::NAN), None);
    assert_eq!(with(2, f64::INFINITY), None);
    assert_eq!(SiteSums::read(SHAPE, &honest.numbers()[1..]), None);
}

#[test]
fn rows_of_other_columns_are_refused() {
    let rows = samples(&[vec![1.0], vec![2.0]], vec![0.0, 1.0]);
    let at = MixedProgress::start(Varying::Slopes, 3, &MixedSettings::default());
    let refused = mode(&rows, Family::Gaussian, at.prior()).map(drop);
    let expected = MixedError::Width {
        known: 3,
        needed: 2,
    };
    assert_eq!(refused, Err(expected));
}

#[test]
fn fold_losses_that_no_site_can_have_are_refused() {
    use super::folds::OwnFoldLosses;
    let of = |numbers: &[f64], sites| OwnFoldLosses::of_sum(numbers, sites, 0.0).is_some();
    let read = |numbers: &[f64]| of(numbers, 1.0);
    assert!(read(&[1.0, 0.5, 0.75, 0.0625]));
    assert!(read(&[0.0, 0.0, 0.0, 0.0]));
    assert!(!read(&[1.0, 0.5, 0.75, 0.5]));
    assert!(!read(&[2.0, 0.5, 0.75, 0.0625]));
    assert!(!read(&[0.0, 0.5, 0.75, 0.0625]));
    assert!(!read(&[1.0, f64::NAN, 0.75, 0.0625]));
    assert!(!read(&[1.0, 0.5, 0.75]));
    // Differences of .25 and −.25, and of .125 twice: of two sites these sums of squares are possible.
    assert!(of(&[2.0, 1.0, 1.0, 0.125], 2.0));
    assert!(of(&[2.0, 1.0, 1.25, 0.03125], 2.0));
    assert!(!of(&[2.0, 1.0, 1.25, 0.03], 2.0));
    assert!(!of(&[3.0, 1.0, 1.25, 0.03125], 2.0));
    assert!(!of(&[1.5, 1.0, 1.25, 0.125], 2.0));
    assert!(of(&[0.0, 0.0, 0.0, 0.0], 2.0));
}
