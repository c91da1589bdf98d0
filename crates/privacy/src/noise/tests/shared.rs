//! σ of one silo, and what is left of the noise of all.

use num_bigint::BigUint;
use proptest::prelude::*;

use super::*;
use crate::sensitivity::{MOST_COORDINATES, Sensitivity};

fn authors(fewest: u16, colluders: u16) -> Authors {
    Authors::new(fewest, colluders).unwrap()
}

/// Returns whether (a−c)·σ² ≥ (z·Δ)², in integers: Δ² has 400 bits after the point, rounded up or down, and both
/// must say the same.
fn enough(sigma: u64, z: Multiplier, sensitivity: Sensitivity, unknown: u16) -> bool {
    let dimension = BigUint::from(sensitivity.dimension());
    let one = BigUint::from(1_u32) << 400_u32;
    let below = (&dimension * &one * &one).sqrt();
    let decide = |root: BigUint| {
        // 2Δ = 2·max(2^10, 50·√d) + √d
        let twice = (&one * 2048_u32).max(&root * 100_u32) + root;
        let z = BigUint::from((z.value() * (1_u64 << 20) as f64) as u64);
        let needed = (z * twice).pow(2);
        let there = BigUint::from(sigma).pow(2) * unknown * 4_u32;
        (there << 40_u32) * &one * &one >= needed
    };
    let exact = &below * &below == &dimension * &one * &one;
    let up = if exact { below.clone() } else { &below + 1_u32 };
    let both = [below, up].map(decide);
    assert_eq!(both[0], both[1]);
    both[0]
}

/// Returns whether σ is the smallest one that is enough.
fn smallest(z: Multiplier, sensitivity: Sensitivity, authors: Authors) -> bool {
    let sigma = authors.gaussian(z, sensitivity).unwrap().sigma();
    let enough = |sigma| enough(sigma, z, sensitivity, authors.unknown());
    enough(sigma) && (sigma == 1 || !enough(sigma - 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn sigma_is_the_smallest_that_is_enough(exponent in -6.9..10.0_f64, dimension in 1_u64..3_000_000, unknown in 1_u16..201, colluders in 0_u16..200) {
        let z = Multiplier::new(exponent.exp2()).unwrap();
        let sensitivity = Sensitivity::new(dimension).unwrap();
        prop_assert!(smallest(z, sensitivity, authors(unknown + colluders, colluders)));
    }

    #[test]
    fn sigma_is_the_smallest_that_is_enough_for_short_vectors(exponent in -6.9..10.0_f64, dimension in 1_u64..500, unknown in 1_u16..9) {
        let z = Multiplier::new(exponent.exp2()).unwrap();
        let sensitivity = Sensitivity::new(dimension).unwrap();
        prop_assert!(smallest(z, sensitivity, authors(unknown + 3, 3)));
    }

    #[test]
    fn more_authors_need_no_more_noise_each(exponent in -6.9..10.0_f64, dimension in 1_u64..5000, unknown in 1_u16..200) {
        let z = Multiplier::new(exponent.exp2()).unwrap();
        let sensitivity = Sensitivity::new(dimension).unwrap();
        let sigma = |unknown| authors(unknown, 0).gaussian(z, sensitivity).unwrap().sigma();
        prop_assert!(sigma(unknown + 1) <= sigma(unknown));
    }
}

#[test]
fn sigma_is_exact_where_nothing_has_to_be_rounded() {
    // Δ = 1024 + 2/2 for d = 4, and 50.5·25 for d = 625.
    for (dimension, delta) in [(4, 1025.0), (16, 1026.0), (625, 1262.5), (10_000, 5050.0)] {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        for unknown in [1_u16, 4, 9, 25] {
            for z in [1.0, 2.0, 6.0, 20.0, 30.0] {
                let exact: f64 = z * delta / f64::from(unknown).sqrt();
                let z = Multiplier::new(z).unwrap();
                let sigma = authors(unknown, 0)
                    .gaussian(z, sensitivity)
                    .unwrap()
                    .sigma();
                assert_eq!(sigma as f64, exact.ceil(), "{dimension} {unknown} {exact}");
            }
        }
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    let most = Multiplier::new(1_048_575.0).unwrap();
    for dimension in [1, 419, 420, MOST_COORDINATES] {
        let sensitivity = Sensitivity::new(dimension).unwrap();
        let needed = most.value() * sensitivity.value() / 200_f64.sqrt();
        match authors(200, 0).gaussian(most, sensitivity) {
            Ok(gaussian) => assert!((gaussian.sigma() as f64 - needed).abs() < 1.5),
            Err(SigmaError { sigma }) => assert!((sigma as f64 - needed).abs() < 1e-9 * needed),
        }
        let possible = most.value() * sensitivity.value() <= MOST_SIGMA as f64;
        let alone = authors(1, 0).gaussian(most, sensitivity);
        assert_eq!(alone.is_ok(), possible, "{dimension}");
    }
}

/// The variance of `sums` sums of so many silos' noise, divided by (z·Δ)².
fn variance(silos: u16, gaussian: Gaussian, needed: f64, sums: usize) -> f64 {
    let mut total = vec![0_i64; sums];
    for silo in 0..silos {
        noise(1000 + u64::from(silo)).add(gaussian, &mut total);
    }
    let squares: f64 = total.iter().map(|sum| (*sum as f64).powi(2)).sum();
    squares / sums as f64 / (needed * needed)
}

#[test]
fn noise_without_the_colluders_has_the_promised_variance() {
    // n, a, c; then a sum of all n authors without c of them has more, a sum of a just enough.
    let sums = 10_000;
    let spread = 3.29 * (2.0 / sums as f64).sqrt();
    for (members, fewest, colluders) in [(4, 3, 1), (4, 4, 1), (10, 7, 3), (10, 10, 3)] {
        let sensitivity = Sensitivity::new(14).unwrap();
        let z = Multiplier::new(20.0).unwrap();
        let agreed = authors(fewest, colluders);
        let gaussian = agreed.gaussian(z, sensitivity).unwrap();
        let needed = z.value() * sensitivity.value();
        let within = |silos: u16, times: f64| {
            let measured = variance(silos, gaussian, needed, sums);
            (measured / times - 1.0).abs() < spread
        };
        assert!(within(fewest - colluders, 1.0), "{members}");
        let all = members - colluders;
        assert!(within(all, f64::from(all) / f64::from(agreed.unknown())));
        // One silo that adds nothing is noticed, as are a sum of fewer authors, and one more colluder.
        assert!(!within(fewest - colluders - 1, 1.0), "{members}");
    }
}

#[test]
fn multipliers_are_rounded_up() {
    let z = |value| Multiplier::new(value).unwrap().value();
    assert_eq!((z(1.0), z(20.0), z(0.5)), (1.0, 20.0, 0.5));
    let unit = 2_f64.powi(-20);
    assert_eq!(z(1.0 + unit / 1e3), 1.0 + unit);
    assert!(z(0.3) >= 0.3 && z(0.3) < 0.3 + unit);
    let next = Multiplier::new(1.0).unwrap().next().unwrap();
    assert_eq!(next.value(), 1.0 + unit);
    assert!(Multiplier::new(1_048_575.0).unwrap().next().is_err());
    assert_eq!(format!("{:.1}", Multiplier::new(20.0).unwrap()), "20.0");
}

#[test]
fn numbers_out_of_range_are_refused_with_a_sentence() {
    for bad in [0.0, -1.0, 0.007, 1_048_576.0, f64::NAN, f64::INFINITY] {
        let error = Multiplier::new(bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a noise multiplier of {bad}: it must be between")));
    }
    for (fewest, colluders) in [(0, 0), (1, 1), (3, 7)] {
        let error = Authors::new(fewest, colluders).unwrap_err().to_string();
        assert!(error.contains("there must be more authors than colluders"));
    }
    let sensitivity = Sensitivity::new(1_000_000).unwrap();
    let z = Multiplier::new(100_000.0).unwrap();
    let error = authors(2, 1).gaussian(z, sensitivity).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("would need a standard deviation of 5050000000")
    );
}
