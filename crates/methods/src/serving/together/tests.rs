#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn of(candidate: Candidate, advantage: f64, error: f64) -> Measured {
    Measured {
        candidate,
        loss: 1.0 - advantage,
        advantage,
        error,
        together: Advantage {
            mean: advantage,
            error,
        },
        parts: 1_000_000,
        seen: 0.0,
    }
}

/// A silo that measured this advantage of its coalition's model.
fn silo(advantage: f64, error: f64) -> Vec<Measured> {
    vec![
        of(Candidate::Local, 0.0, 0.0),
        of(Candidate::Coalition, advantage, error),
    ]
}

fn together(silos: &[(f64, f64)]) -> (Together, Vec<Vec<Measured>>) {
    let silos: Vec<_> = silos.iter().map(|&(a, s)| silo(a, s)).collect();
    (Together::sums(silos.iter().map(|one| &one[..])), silos)
}

/// Returns what every silo serves.
fn choices(silos: &[(f64, f64)]) -> Vec<Candidate> {
    let (together, silos) = together(silos);
    silos.iter().map(|one| together.choose(one)).collect()
}

/// The shrunken advantage of a silo's coalition's model and its standard error.
fn shrunken(together: &Together, silo: &[Measured]) -> (f64, f64) {
    let one = &together.shrunken(silo)[1];
    (one.advantage, one.error)
}

fn near(found: (f64, f64), expected: (f64, f64)) {
    let apart = (found.0 - expected.0).abs() + (found.1 - expected.1).abs();
    assert!(apart < 1e-12, "{found:?}, expected {expected:?}");
}

#[test]
fn advantages_are_shrunken_as_calculated_by_hand() {
    let (together, silos) = together(&[(0.0, 1.0), (3.0, 1.0), (6.0, 2.0)]);
    let sums = together.0[&Candidate::Coalition];
    assert_eq!(
        (sums.silos, sums.advantages, sums.squares, sums.variances),
        (3.0, 9.0, 45.0, 6.0)
    );
    // m = 3; of the variance (45 − 27)/2 = 9 are 6/3 = 2 what silos cannot tell; τ² = 7, var(m) = 9/3.
    let all = sums.population().unwrap();
    assert_eq!((all.mean, all.between, all.of_mean), (3.0, 7.0, 3.0));
    // One with s² = 1 counts as (1 + 2)/2 and is shrunken by 1.5/8.5, one with s² = 4 as 3, by 3/10.
    let first = (21.0_f64 / 17.0 + 27.0 / 289.0).sqrt();
    near(shrunken(&together, &silos[0]), (9.0 / 17.0, first));
    let unsure = (2.1_f64 + 0.27).sqrt();
    near(shrunken(&together, &silo(-1.0, 2.0)), (0.2, unsure));
    // Losses follow; the local model, with which all are compared, stays.
    let all = together.shrunken(&silos[0]);
    assert!((all[1].loss - (1.0 - 9.0 / 17.0)).abs() < 1e-12);
    assert_eq!(all[0], silos[0][0]);
}

#[test]
fn silos_that_differ_by_luck_alone_serve_alike() {
    // None is sure alone but the fourth; together they are.
    let silos = [
        (0.02, 0.03),
        (0.01, 0.03),
        (-0.01, 0.03),
        (0.04, 0.03),
        (0.015, 0.03),
    ];
    let (together, each) = together(&silos);
    assert_eq!(
        together.0[&Candidate::Coalition]
            .population()
            .unwrap()
            .between,
        0.0
    );
    for one in &each {
        near(shrunken(&together, one), (0.015, 0.03 / 5.0_f64.sqrt()));
    }
    assert_eq!(choices(&silos), [Candidate::Coalition; 5]);
    // Nor is anybody better off alone where nobody gains on average.
    let none = silos.map(|(advantage, error)| (advantage - 0.015, error));
    assert_eq!(choices(&none), [Candidate::Local; 5]);
}

#[test]
fn what_a_silo_measures_clearly_no_other_outweighs() {
    let mut silos = vec![(0.02, 0.01); 30];
    // Below 3.16 standard errors one of 31 is by chance more often than once in twenty times.
    silos.push((-0.033, 0.01));
    let all = choices(&silos);
    assert_eq!(all[30], Candidate::Local);
    assert_eq!(all[..30], [Candidate::Coalition; 30]);
    // One that may be harmed, and may be as well off as the others, is told apart from luck by nobody.
    silos[30].0 = -0.015;
    let (all, _) = together(&silos);
    assert!(all.0[&Candidate::Coalition].population().unwrap().between < 1e-6);
    assert_eq!(choices(&silos)[30], Candidate::Coalition);
    // The same among silos that lose.
    let turned: Vec<_> = silos.iter().map(|&(a, s)| (-0.5 * a, s)).collect();
    assert_eq!(choices(&turned), [Candidate::Local; 31]);
    let mut turned = turned;
    turned[30].0 = 0.033;
    assert_eq!(choices(&turned)[30], Candidate::Coalition);
}

#[test]
fn silos_that_are_unlike_choose_nearly_alone() {
    let silos = [(1.0, 0.1), (-1.0, 0.1), (2.0, 0.1), (-2.0, 0.1)];
    let (together, each) = together(&silos);
    for (one, (advantage, error)) in each.iter().zip(silos) {
        let (shrunken, of) = shrunken(&together, one);
        assert!((shrunken - advantage).abs() < 0.01 && (of - error).abs() < 0.001);
        assert_eq!(together.choose(one), choose(one));
    }
}

#[test]
fn a_silo_without_others_chooses_alone() {
    for (advantage, expected) in [(0.2, Candidate::Coalition), (0.05, Candidate::Local)] {
        let (together, silos) = together(&[(advantage, 0.1)]);
        assert_eq!(together.shrunken(&silos[0]), silos[0]);
        assert_eq!(together.choose(&silos[0]), expected);
    }
    // So does one with a candidate that no other has.
    let (together, _) = together(&[(-1.0, 0.1), (-1.0, 0.1)]);
    let own = [
        of(Candidate::Local, 0.0, 0.0),
        of(Candidate::Robust, 0.2, 0.1),
    ];
    assert_eq!(together.choose(&own), Candidate::Robust);
}

#[test]
fn a_silo_that_knows_nothing_serves_what_is_best_on_average() {
    let mut silos = vec![(0.05, 0.01), (0.06, 0.01), (0.07, 0.01), (0.04, 0.01)];
    let (together, _) = together(&silos);
    let unsure = silo(-3.0, 1e6);
    let (advantage, _) = shrunken(&together, &unsure);
    assert!((advantage - 0.055).abs() < 1e-6);
    assert_eq!(together.choose(&unsure), Candidate::Coalition);
    // In the sums it makes others unsure but those that are sure alone, and itself.
    silos[3] = (0.015, 0.01);
    silos.push((-3.0, 1e6));
    let [sure @ .., fourth, last] = &choices(&silos)[..] else {
        panic!("five silos");
    };
    assert_eq!(sure, [Candidate::Coalition; 3]);
    assert_eq!([*fourth, *last], [Candidate::Local; 2]);
}

#[test]
fn what_is_not_finite_is_in_no_sum() {
    let silos = [(0.05, 0.1), (0.06, 0.1)];
    let (known, each) = together(&silos);
    let (with, _) = together(&[
        silos[0],
        (f64::NAN, 0.1),
        (0.1, f64::INFINITY),
        (1e200, 0.1),
        silos[1],
        (0.1, f64::NAN),
    ]);
    let of_coalition = |all: &Together| all.0[&Candidate::Coalition];
    assert_eq!(of_coalition(&known), of_coalition(&with));
    // Nor does the silo itself serve it.
    for (advantage, error) in [(f64::NAN, 0.1), (0.1, f64::NAN), (0.1, f64::INFINITY)] {
        assert_eq!(known.choose(&silo(advantage, error)), Candidate::Local);
    }
    assert_eq!(known.choose(&[]), Candidate::Local);
    assert_eq!(known.choose(&each[0][..1]), Candidate::Local);
}

#[test]
fn all_silos_decide_by_losses_that_are_hardly_smoothed() {
    // With one row more of each class a model that is sure, and right, looks worse than it is at every silo.
    let sure = |alone: f64, mean: f64| {
        let mut measured = silo(alone, 0.05);
        let error = 0.05;
        measured[1].together = Advantage { mean, error };
        measured
    };
    let silos = [sure(-0.1, 0.08), sure(-0.12, 0.02), sure(-0.09, 0.07)];
    let together = Together::sums(silos.iter().map(|one| &one[..]));
    for one in &silos {
        assert_eq!(choose(one), Candidate::Local);
        assert_eq!(together.choose(one), Candidate::Coalition);
        let found = &together.shrunken(one)[1];
        assert!(found.advantage > 0.0 && (found.loss + found.advantage - 1.0).abs() < 1e-12);
    }
    // One that is clearly worse off keeps its own.
    let worse = sure(0.1, -0.9);
    assert_eq!(together.choose(&worse), Candidate::Local);
    assert_eq!(choose(&worse), Candidate::Coalition);
}

#[test]
fn the_candidate_with_the_largest_shrunken_advantage_is_served() {
    // Tuned models look better at the first silo, and are worse on average.
    let silo = |common: f64, tuned: f64| {
        vec![
            of(Candidate::Local, 0.0, 0.0),
            of(Candidate::Coalition, common, 0.05),
            of(Candidate::FineTuned, tuned, 0.05),
        ]
    };
    let silos = [
        silo(0.05, 0.08),
        silo(0.06, 0.01),
        silo(0.05, 0.0),
        silo(0.07, 0.02),
    ];
    assert_eq!(choose(&silos[0]), Candidate::FineTuned);
    let together = Together::sums(silos.iter().map(|one| &one[..]));
    for one in &silos {
        assert_eq!(together.choose(one), Candidate::Coalition);
    }
}

proptest! {
    #[test]
    fn the_order_of_silos_does_not_matter(
        silos in prop::collection::vec((-100..100_i32, 1..100_i32), 2..12),
        seed in any::<prop::sample::Index>(),
    ) {
        // Numbers whose sums and squares are exact, so that nothing but the order changes.
        let silos: Vec<(f64, f64)> = silos
            .iter()
            .map(|&(advantage, error)| (f64::from(advantage) / 64.0, f64::from(error) / 64.0))
            .collect();
        let mut turned = silos.clone();
        let by = seed.index(silos.len());
        turned.rotate_left(by);
        turned.swap(0, silos.len() - 1);
        let mut expected = choices(&silos);
        expected.rotate_left(by);
        expected.swap(0, silos.len() - 1);
        prop_assert_eq!(choices(&turned), expected);
    }

    #[test]
    fn a_shrunken_advantage_lies_between_its_own_and_the_mean(
        silos in prop::collection::vec((-1.0..1.0_f64, 0.01..1.0_f64), 2..12),
    ) {
        let (together, each) = together(&silos);
        let mean = together.0[&Candidate::Coalition].population().unwrap().mean;
        for (one, (own, error)) in each.iter().zip(silos) {
            let (advantage, of) = shrunken(&together, one);
            prop_assert!(advantage >= own.min(mean) - 1e-12 && advantage <= own.max(mean) + 1e-12);
            let clear = two_sided(own.abs() / error, 999_999) * each.len() as f64 <= CLEAR;
            prop_assert!(of > 0.0 && (!clear || advantage == own));
        }
    }
}
