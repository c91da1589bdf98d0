//! Properties that must hold for all numbers.

use proptest::prelude::*;

use super::*;

/// From 10^low to 10^high, evenly in the exponent.
fn decades(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low..high).prop_map(|exponent| 10_f64.powf(exponent))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn epsilon_grows_with_the_rounds(noise in decades(-0.5, 3.0), rounds in 1_u64..2000, more in 1_u64..50) {
        let few = spent(&[(noise, rounds)], (5, 2)).bound(delta(1e-6));
        let many = spent(&[(noise, rounds + more)], (5, 2)).bound(delta(1e-6));
        prop_assert!(few.epsilon() < many.epsilon());
        prop_assert!(few.alone() < many.alone());
    }

    #[test]
    fn epsilon_falls_with_more_noise(noise in decades(-0.5, 3.0), more in decades(-4.0, 1.0), rounds in 1_u64..2000) {
        let little = spent(&[(noise, rounds)], (5, 2)).bound(delta(1e-6));
        let much = spent(&[(noise * (1.0 + more), rounds)], (5, 2)).bound(delta(1e-6));
        prop_assert!(much.epsilon() < little.epsilon());
        prop_assert!(much.alone() < little.alone());
    }

    #[test]
    fn epsilon_alone_is_never_below_epsilon(noise in decades(-0.5, 3.0), fewest in 1_u16..200, colluders in 0_u16..200) {
        prop_assume!(fewest > colluders);
        let bound = spent(&[(noise, 40)], (fewest, colluders)).bound(delta(1e-5));
        prop_assert!(bound.alone() >= bound.epsilon());
    }

    #[test]
    fn sums_cost_the_same_in_any_order_and_one_by_one(noises in prop::collection::vec(decades(0.0, 2.0), 1..20)) {
        let forward: Vec<_> = noises.iter().map(|noise| (*noise, 3)).collect();
        let backward: Vec<_> = noises.iter().rev().flat_map(|noise| [(*noise, 1); 3]).collect();
        let [forward, backward] = [forward, backward].map(|all| spent(&all, (7, 3)).mu());
        prop_assert!((forward / backward - 1.0).abs() < 1e-14);
    }

    #[test]
    fn shown_epsilons_are_between_the_truth_and_a_thousandth_more(noise in decades(-0.9, 2.5), rounds in 1_u64..200, nines in decades(-12.0, -3.0)) {
        let accountant = spent(&[(noise, rounds)], (3, 1));
        let exact = truth(accountant.mu(), nines);
        prop_assume!(exact > 1e-3);
        let epsilon = accountant.bound(delta(nines)).epsilon();
        prop_assert!(exact <= epsilon.value() && epsilon.value() <= 1.001 * exact);
        let shown: f64 = epsilon.to_string().parse().unwrap();
        prop_assert!(exact <= shown && shown <= 1.001 * exact, "{shown} {exact}");
    }

    #[test]
    fn numbers_are_rounded_up_at_every_place(number in decades(-4.0, 6.0), places in 0_usize..9) {
        let shown: f64 = format!("{:.places$}", Epsilon::new(number)).parse().unwrap();
        prop_assert!(number <= shown);
        prop_assert!(shown <= number + 10_f64.powi(-(places as i32)) * (1.0 + 1e-9));
    }

    #[test]
    fn z_from_epsilon_gives_that_epsilon_back(wanted in decades(-1.5, 1.7), rounds in 1_u64..1000, nines in decades(-12.0, -4.0)) {
        let found = multiplier(wanted, delta(nines), rounds);
        prop_assume!(found.is_ok());
        let found = found.unwrap();
        let authors = Authors::new(3, 1).unwrap();
        let mut accountant = Accountant::new();
        accountant.spend(found, authors, rounds);
        let epsilon = accountant.bound(delta(nines)).epsilon().value();
        // z is rounded up to a multiple of 2^-20.
        let allowed = 1.0 - 1e-9 - 2.5e-6 / found.value();
        prop_assert!(epsilon <= wanted && epsilon >= allowed * wanted, "{epsilon} {wanted}");
    }
}

#[test]
fn shown_digits_are_rounded_up() {
    let shown = |number: f64| Epsilon::new(number).to_string();
    assert_eq!(shown(1.0), "1.0000");
    assert_eq!(shown(1.000_001), "1.0001");
    assert_eq!(shown(0.999_991), "1.0000");
    assert_eq!(shown(9.999_91), "10.000");
    assert_eq!(shown(36.810_44), "36.811");
    assert_eq!(shown(123_456.1), "123457");
    assert_eq!(shown(0.0), "0.00000000");
    assert_eq!(shown(f64::INFINITY), "no bound");
    let two = |number: f64| format!("{:.2}", Epsilon::new(number));
    assert_eq!(two(0.5), "0.50");
    assert_eq!(two(0.729_95), "0.73");
    assert_eq!(two(1.067_3), "1.07");
    assert_eq!(two(2.941), "2.95");
    assert_eq!(two(99.999), "100.00");
}

#[test]
fn both_numbers_stand_side_by_side() {
    let bound = spent(&[(20.0, 100)], (3, 1)).bound(delta(1e-5));
    assert_eq!(
        bound.to_string(),
        "epsilon 1.9934 (2.9436 if all others collude), delta 1e-5"
    );
    assert_eq!(
        format!("{bound:.1}"),
        "epsilon 2.0 (3.0 if all others collude), delta 1e-5"
    );
}

#[test]
fn a_sum_without_noise_leaves_no_bound() {
    let mut accountant = spent(&[(20.0, 100)], (3, 1));
    accountant.spend_without_noise();
    accountant.spend(z(1000.0), Authors::new(3, 1).unwrap(), 1);
    let bound = accountant.bound(delta(1e-5));
    assert!(!bound.epsilon().is_bound() && !bound.alone().is_bound());
    assert!(bound.epsilon().value() > 1e300);
    assert_eq!(bound.epsilon().to_string(), "no bound");
    assert!((accountant.most_auc() - 1.0).abs() < 1e-15);
}

#[test]
fn nothing_published_costs_nothing() {
    let bound = Accountant::new().bound(delta(1e-9));
    assert_eq!((bound.epsilon().value(), bound.alone().value()), (0.0, 0.0));
    assert!((Accountant::new().most_auc() - 0.5).abs() < 1e-15);
}

#[test]
fn numbers_out_of_range_are_refused_with_a_sentence() {
    for bad in [0.0, -1e-5, 0.2, 1e-31, f64::NAN, f64::INFINITY] {
        let error = Delta::new(bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("a delta of {bad}: it must")));
    }
    for bad in [0.0, -1.0, 1e-4, 1001.0, f64::NAN] {
        let error = multiplier(bad, delta(1e-5), 1).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("an epsilon of {bad}: it must be between 0.001 and 1000")
        );
    }
    assert_eq!(multiplier(1.0, delta(1e-5), 0), Err(TargetError::Rounds(0)));
    let error = multiplier(0.001, delta(1e-5), 1 << 32).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("after 4294967296 rounds cannot be reached")
    );
}
