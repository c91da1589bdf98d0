//! Rounding, clipping, reach.

use proptest::prelude::*;

use super::*;

#[test]
fn ties_go_to_the_even_integer() {
    let half = 1.0 / f64::from(1 << 19);
    let rounded = |halves: f64| Fixed::MODEL.integer(halves * half);
    assert_eq!(rounded(1.0), (0, false));
    assert_eq!(rounded(3.0), (2, false));
    assert_eq!(rounded(5.0), (2, false));
    assert_eq!(rounded(-1.0), (0, false));
    assert_eq!(rounded(-3.0), (-2, false));
    assert_eq!(rounded(3.000_001), (2, false));
    assert_eq!(rounded(2.999_999), (1, false));
}

#[test]
fn numbers_beyond_the_bound_are_clipped_and_counted() {
    let start = [1.0, 0.0, 0.0, -7.0];
    let model = [9.0, 8.1, -1e30, 2.0];
    let mut words = [0_u32; 4];
    let clipped = Fixed::MODEL.encode(1, &start, &model, &mut words).unwrap();
    assert_eq!(clipped, 3);
    let most = 1 << 21;
    assert_eq!(words.map(Word::signed), [most, most, -most, most]);
    assert_eq!(Fixed::MODEL.most(), 1 << 21);
}

#[test]
fn weights_multiply_and_the_mean_divides_by_their_sum() {
    let mut words = [0_u64; 2];
    let start = [0.5, 0.5];
    Fixed::MODEL
        .encode(3, &start, &[1.0, 0.25], &mut words)
        .unwrap();
    let mut other = [0_u64; 2];
    Fixed::MODEL
        .encode(1, &start, &[0.5, 0.5], &mut other)
        .unwrap();
    let sums = [0, 1].map(|at| words[at].plus(other[at]).signed());
    assert_eq!(sums.map(|sum| Fixed::MODEL.mean(sum, 4)), [0.375, -0.1875]);
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut words = [0_u32; 2];
        let in_model = Fixed::MODEL.encode(1, &[0.0, 0.0], &[1.0, bad], &mut words);
        assert_eq!(in_model, Err(EncodeError::NotFinite(1)));
        let in_start = Fixed::MODEL.encode(1, &[bad, 0.0], &[1.0, 1.0], &mut words);
        assert_eq!(in_start, Err(EncodeError::NotFinite(0)));
        let start = Fixed::MODEL.check_start(&[0.0, bad]);
        assert_eq!(start, Err(EncodeError::NotFinite(1)));
    }
}

#[test]
fn a_start_model_beyond_the_bound_is_refused() {
    assert_eq!(Fixed::MODEL.check_start(&[8.0, -8.0]), Ok(()));
    let error = EncodeError::Start {
        at: 1,
        value: -8.5,
        bound: 8.0,
    };
    assert_eq!(Fixed::MODEL.check_start(&[0.0, -8.5]), Err(error));
}

#[test]
fn slices_of_other_lengths_are_refused() {
    let error = EncodeError::Lengths {
        start: 1,
        model: 2,
        words: 2,
    };
    let mut words = [0_u32; 2];
    assert_eq!(
        Fixed::MODEL.encode(1, &[0.0], &[0.0; 2], &mut words),
        Err(error)
    );
}

#[test]
fn words_have_32_bits_while_the_reach_is_below_two_to_the_31() {
    let reach = |weights: &[u64]| Reach::of(weights, Fixed::MODEL);
    assert_eq!(reach(&[1; 1023]).unwrap().width(), Width::Bits32);
    assert_eq!(reach(&[1; 1024]).unwrap().width(), Width::Bits64);
    assert_eq!(reach(&[1000, 23]).unwrap().most(), 1023 << 21);
    assert_eq!(Reach::new((1 << 31) - 1).unwrap().width(), Width::Bits32);
    assert_eq!(reach(&[3, 0, 1]), Err(ReachError::ZeroWeight(1)));
    assert_eq!(reach(&[1 << 42]), Err(ReachError::TooLarge));
    assert_eq!(reach(&[u64::MAX, 1]), Err(ReachError::TooLarge));
    assert!(reach(&[(1 << 42) - 1]).is_ok());
}

#[test]
fn the_least_word_is_beyond_every_reach() {
    let reach = Reach::new(i64::MAX as u64).unwrap();
    assert!(!reach.holds(i64::MIN) && reach.holds(i64::MAX) && reach.holds(-i64::MAX));
}

#[test]
fn agreed_ranges_have_exact_steps() {
    let fixed = Fixed::new(1e6, 20).unwrap();
    assert_eq!(fixed.integer(123_456.75), (129_453_785_088, false));
    for (bound, bits) in [
        (0.0, 18),
        (-1.0, 18),
        (1.5, 0),
        (8.0, 53),
        (1e15, 18),
        (f64::NAN, 3),
    ] {
        assert!(Fixed::new(bound, bits).is_err(), "{bound} {bits}");
    }
    assert_eq!(Fixed::new(8.0, 18), Ok(Fixed::MODEL));
}

proptest! {
    #[test]
    fn an_encoded_number_is_within_half_a_step(number in -8.0..8.0_f64) {
        let (integer, clipped) = Fixed::MODEL.integer(number);
        prop_assert!(!clipped && integer.unsigned_abs() <= 1 << 21);
        let back = Fixed::MODEL.mean(integer, 1);
        prop_assert!((back - number).abs() <= 0.5 / f64::from(1 << 18));
    }

    #[test]
    fn words_of_both_widths_hold_the_same_sum(numbers in proptest::collection::vec(-(1_i64 << 21)..=1 << 21, 1..50)) {
        let narrow = numbers.iter().fold(0_u32, |sum, number| sum.plus(u32::wrap(*number)));
        let wide = numbers.iter().fold(0_u64, |sum, number| sum.plus(u64::wrap(*number)));
        let sum: i64 = numbers.iter().sum();
        prop_assert_eq!((narrow.signed(), wide.signed()), (sum, sum));
    }
}
