#![allow(clippy::unwrap_used)]

use super::*;
use crate::topology::{sampled_losses, uniform};

mod properties;

const PRIOR: [f64; 5] = [
    0.1380228609502245,
    0.22756122669152126,
    0.2688318247165084,
    0.22756122669152126,
    0.1380228609502245,
];
const LOSSES: [f64; 5] = [0.9, 0.5, 0.4, 0.7, 1.2];
const DIVERGENCES: [Divergence; 3] = [Divergence::L2, Divergence::Kl, Divergence::ChiSquared];

fn distance(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter()
        .zip(b)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max)
}

/// Eq. (7) to the letter under any divergence: `P_Δ(λ + η·(v − q·∂D/∂λ))`.
fn literal_step(ascent: &Ascent, lambda: &[f64], prior: &[f64], losses: &[f64]) -> Vec<f64> {
    let slopes = ascent.divergence.gradient(lambda, prior);
    let moved: Vec<f64> = lambda
        .iter()
        .zip(losses.iter().zip(slopes))
        .map(|(lambda, (loss, slope))| lambda + ascent.rate * (loss - ascent.q * slope))
        .collect();
    project(&moved).unwrap()
}

/// λ after many steps for losses that stay.
fn climbed(ascent: &Ascent, prior: &[f64], losses: &[f64], steps: usize) -> Vec<f64> {
    (0..steps).fold(uniform(prior.len()), |lambda, _| {
        ascent.step(&lambda, prior, losses).unwrap()
    })
}

/// `p·exp(v/q)`, scaled to sum to 1.
fn tilted(prior: &[f64], losses: &[f64], q: f64) -> Vec<f64> {
    let raw: Vec<f64> = prior
        .iter()
        .zip(losses)
        .map(|(p, v)| p * libm::exp(v / q))
        .collect();
    let total: f64 = raw.iter().sum();
    raw.iter().map(|value| value / total).collect()
}

/// The limit under χ²: `p_k·max(0, 1 + (v_k − ν)/(2q))`, where ν is found by halving. From
/// `v_k − 2q(λ_k − p_k)/p_k = ν` wherever there is weight.
fn chi_squared_limit(prior: &[f64], losses: &[f64], q: f64) -> Vec<f64> {
    let at = |cut: f64| -> Vec<f64> {
        let weight = |(p, v): (&f64, &f64)| p * (1.0 + (v - cut) / (2.0 * q)).max(0.0);
        prior.iter().zip(losses).map(weight).collect()
    };
    let (mut low, mut high) = (-1e3, 1e3);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if at(middle).iter().sum::<f64>() > 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    at(low)
}

#[test]
fn three_known_steps_under_l2() {
    let ascent = Ascent::default();
    let known = [
        [
            0.21538022860950223,
            0.17627561226691524,
            0.16668831824716507,
            0.1962756122669152,
            0.24538022860950226,
        ],
        [
            0.23060665493290944,
            0.15278846841116128,
            0.13370975331185847,
            0.19258846841116123,
            0.29030665493290947,
        ],
        [
            0.24568081699308258,
            0.12953619599396488,
            0.10106097402590496,
            0.18893819599396483,
            0.33478381699308263,
        ],
    ];
    let mut lambda = uniform(5);
    for known in known {
        assert!(distance(&literal_step(&ascent, &lambda, &PRIOR, &LOSSES), &known) < 1e-12);
        lambda = ascent.step(&lambda, &PRIOR, &LOSSES).unwrap();
        assert!(distance(&lambda, &known) < 1e-12, "{lambda:?}");
    }
}

#[test]
fn three_known_steps_of_equation_7_under_kl() {
    let ascent = Ascent {
        divergence: Divergence::Kl,
        ..Ascent::default()
    };
    let known = [
        [
            0.21266666666666667,
            0.17766666666666667,
            0.16933333333333334,
            0.19766666666666666,
            0.2426666666666667,
        ],
        [
            0.22463562370445248,
            0.15643379229624194,
            0.1402475253954489,
            0.1953670625479231,
            0.2833159960559335,
        ],
        [
            0.23582142285246183,
            0.1362380591565207,
            0.11281069860279623,
            0.19294885647706017,
            0.3221809629111611,
        ],
    ];
    let mut lambda = uniform(5);
    for known in known {
        lambda = literal_step(&ascent, &lambda, &PRIOR, &LOSSES);
        assert!(distance(&lambda, &known) < 1e-12, "{lambda:?}");
    }
}

#[test]
fn known_first_gradients() {
    let gradient = |divergence: Divergence| -> Vec<f64> {
        let slopes = divergence.gradient(&uniform(5), &PRIOR);
        LOSSES
            .iter()
            .zip(slopes)
            .map(|(loss, slope)| loss - 0.1 * slope)
            .collect()
    };
    let l2 = [
        0.8938022860950224,
        0.5027561226691522,
        0.40688318247165084,
        0.7027561226691521,
        1.1938022860950224,
    ];
    assert!(distance(&gradient(Divergence::L2), &l2) < 1e-12);
    let kl = [
        0.7629101963948819,
        0.4129101963948819,
        0.3295768630615486,
        0.6129101963948819,
        1.062910196394882,
    ];
    assert!(distance(&gradient(Divergence::Kl), &kl) < 1e-12);
}

#[test]
fn l2_converges_to_the_projection_of_prior_plus_losses_over_q() {
    let one = [
        0.27015387808623426,
        0.0,
        0.0,
        0.159692243827531,
        0.5701538780862343,
    ];
    for (q, known) in [(1.0, one), (0.1, [0.0, 0.0, 0.0, 0.0, 1.0])] {
        let ascent = Ascent {
            q,
            ..Ascent::default()
        };
        assert!(distance(&climbed(&ascent, &PRIOR, &LOSSES, 3000), &known) < 1e-12);
        let moved: Vec<f64> = PRIOR.iter().zip(LOSSES).map(|(p, v)| p + v / q).collect();
        assert!(distance(&project(&moved).unwrap(), &known) < 1e-12);
    }
}

#[test]
fn kl_converges_to_the_tilted_prior() {
    for (q, rate) in [(1.0, 0.1), (0.5, 0.4), (10.0, 0.1), (3.0, 5.0)] {
        let divergence = Divergence::Kl;
        let ascent = Ascent {
            divergence,
            q,
            rate,
            floor: 0.0,
        };
        let found = climbed(&ascent, &PRIOR, &LOSSES, 600);
        assert!(
            distance(&found, &tilted(&PRIOR, &LOSSES, q)) < 1e-12,
            "q {q}: {found:?}"
        );
    }
}

#[test]
fn chi_squared_converges_to_the_linearly_tilted_prior() {
    let mean: f64 = PRIOR.iter().zip(LOSSES).map(|(p, v)| p * v).sum();
    for (q, rate) in [(1.0, 0.1), (0.5, 3.0), (10.0, 0.1)] {
        let divergence = Divergence::ChiSquared;
        let ascent = Ascent {
            divergence,
            q,
            rate,
            floor: 0.0,
        };
        let known: Vec<f64> = PRIOR
            .iter()
            .zip(LOSSES)
            .map(|(p, v)| p * (1.0 + (v - mean) / (2.0 * q)))
            .collect();
        let found = climbed(&ascent, &PRIOR, &LOSSES, 2000);
        assert!(distance(&found, &known) < 1e-12, "q {q}: {found:?}");
    }
    // Where that would be negative, clients get weight 0.
    let ascent = Ascent {
        divergence: Divergence::ChiSquared,
        ..Ascent::default()
    };
    let found = climbed(&ascent, &PRIOR, &LOSSES, 5000);
    assert!(found.contains(&0.0));
    assert!(
        distance(&found, &chi_squared_limit(&PRIOR, &LOSSES, 0.1)) < 1e-9,
        "{found:?}"
    );
}

#[test]
fn weights_converge_to_a_strong_prior() {
    let mut lambda = vec![0.0; 5];
    lambda[3] = 1.0;
    for divergence in DIVERGENCES {
        let pinned = Ascent {
            divergence,
            q: f64::INFINITY,
            ..Ascent::default()
        };
        assert_eq!(pinned.step(&lambda, &PRIOR, &LOSSES).unwrap(), PRIOR);
        for rate in [1e-6, 0.1, 1e50] {
            let strong = Ascent {
                q: 1e6,
                rate,
                ..pinned
            };
            let steps = if rate < 0.1 { 60 } else { 3 };
            let found = climbed(&strong, &PRIOR, &LOSSES, steps);
            assert!(
                distance(&found, &PRIOR) < 1e-5,
                "{divergence:?} {rate}: {found:?}"
            );
        }
        let extreme = Ascent {
            q: f64::MAX,
            rate: 1e100,
            ..pinned
        };
        assert!(distance(&extreme.step(&lambda, &PRIOR, &LOSSES).unwrap(), &PRIOR) < 1e-12);
    }
    // One step with a rate of 1/q is enough where steps are exact.
    for divergence in [Divergence::L2, Divergence::Kl] {
        let strong = Ascent {
            divergence,
            q: 1e6,
            rate: 1e-6,
            floor: 0.0,
        };
        assert!(distance(&strong.step(&lambda, &PRIOR, &LOSSES).unwrap(), &PRIOR) < 1e-5);
    }
}

#[test]
fn q_zero_is_the_step_of_drfa() {
    let lambda = [0.3, 0.1, 0.2, 0.25, 0.15];
    let moved: Vec<f64> = lambda
        .iter()
        .zip(LOSSES)
        .map(|(l, v)| l + 0.1 * v)
        .collect();
    let drfa = project(&moved).unwrap();
    for divergence in [Divergence::L2, Divergence::ChiSquared] {
        let ascent = Ascent {
            divergence,
            q: 0.0,
            ..Ascent::default()
        };
        assert!(distance(&ascent.step(&lambda, &PRIOR, &LOSSES).unwrap(), &drfa) < 1e-12);
        assert!(distance(&literal_step(&ascent, &lambda, &PRIOR, &LOSSES), &drfa) < 1e-12);
    }
    let losses = sampled_losses(3, &[(0, 1.0), (2, 0.5)]).unwrap();
    let ascent = Ascent {
        q: 0.0,
        rate: 0.5,
        ..Ascent::default()
    };
    let found = ascent.step(&[0.5, 0.3, 0.2], &uniform(3), &losses).unwrap();
    assert!(distance(&found, &[0.8375, 0.0, 0.1625]) < 1e-12);
    // Its counterpart on a logarithmic scale.
    let ascent = Ascent {
        divergence: Divergence::Kl,
        q: 0.0,
        ..Ascent::default()
    };
    let found = ascent.step(&lambda, &PRIOR, &LOSSES).unwrap();
    assert!(distance(&found, &tilted(&lambda, &LOSSES, 10.0)) < 1e-12);
}

#[test]
fn a_rate_of_zero_changes_nothing_and_kl_raises_zero_weights() {
    let lambda = [0.0, 0.5, 0.25, 0.25, 0.0];
    for divergence in DIVERGENCES {
        let ascent = Ascent {
            divergence,
            rate: 0.0,
            ..Ascent::default()
        };
        assert!(distance(&ascent.step(&lambda, &PRIOR, &LOSSES).unwrap(), &lambda) < 1e-11);
    }
    let ascent = Ascent {
        divergence: Divergence::Kl,
        q: 1.0,
        rate: 1.0,
        floor: 0.0,
    };
    let found = ascent.step(&lambda, &PRIOR, &LOSSES).unwrap();
    assert!(distance(&found, &tilted(&PRIOR, &LOSSES, 1.0)) < 1e-12);
}

#[test]
fn weights_below_the_floor_are_raised_to_it() {
    let ascent = Ascent {
        floor: 0.001,
        ..Ascent::default()
    };
    let found = climbed(&ascent, &PRIOR, &LOSSES, 100);
    let known = [0.001, 0.001, 0.001, 0.001, 1.0].map(|weight: f64| weight / 1.004);
    assert!(distance(&found, &known) < 1e-12, "{found:?}");
    let pinned = Ascent {
        q: f64::INFINITY,
        floor: 0.15,
        ..Ascent::default()
    };
    let found = pinned.step(&PRIOR, &PRIOR, &LOSSES).unwrap();
    assert!((found.iter().sum::<f64>() - 1.0).abs() < 1e-12 && found[0] > PRIOR[0]);
}

#[test]
fn gradients_are_slopes_of_the_distance() {
    let lambda = [0.3, 0.1, 0.2, 0.25, 0.15];
    for divergence in DIVERGENCES {
        assert_eq!(divergence.value(&PRIOR, &PRIOR), 0.0);
        assert!(divergence.value(&lambda, &PRIOR) > 0.0);
        let slopes = divergence.gradient(&lambda, &PRIOR);
        for (client, slope) in slopes.iter().enumerate() {
            let moved = |by: f64| {
                let mut lambda = lambda;
                lambda[client] += by;
                divergence.value(&lambda, &PRIOR)
            };
            let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!((difference - slope).abs() < 1e-7, "{divergence:?}");
        }
    }
    let half = Divergence::L2.value(&[1.0, 0.0], &[0.0, 1.0]);
    let chi = Divergence::ChiSquared.value(&[0.75, 0.25], &[0.5, 0.5]);
    let kl = Divergence::Kl.value(&[1.0, 0.0], &[0.5, 0.5]);
    assert_eq!((half, chi), (1.0, 0.25));
    assert!((kl - libm::log(2.0)).abs() < 1e-15);
}

#[test]
fn invalid_steps_are_refused() {
    let ascent = Ascent::default();
    let error = |ascent: Ascent, lambda: &[f64], prior: &[f64], losses: &[f64]| {
        ascent.step(lambda, prior, losses).unwrap_err()
    };
    let half = [0.5, 0.5];
    for q in [-0.1, f64::NAN] {
        assert!(matches!(
            error(Ascent { q, ..ascent }, &half, &half, &half),
            AscentError::Q(_)
        ));
    }
    for rate in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(
            error(Ascent { rate, ..ascent }, &half, &half, &half),
            AscentError::Rate(_)
        ));
    }
    for floor in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(
            error(Ascent { floor, ..ascent }, &half, &half, &half),
            AscentError::Floor(_)
        ));
    }
    let lengths = AscentError::Lengths {
        lambda: 2,
        prior: 2,
        losses: 1,
    };
    assert_eq!(error(ascent, &half, &half, &[0.1]), lengths);
    for odd in [[0.5, 0.4], [1.5, -0.5], [f64::NAN, 0.5]] {
        assert_eq!(error(ascent, &odd, &half, &half), AscentError::Lambda);
        assert_eq!(error(ascent, &half, &odd, &half), AscentError::Prior);
    }
    assert_eq!(error(ascent, &[], &[], &[]), AscentError::Lambda);
    for odd in [f64::NAN, f64::INFINITY, -1e101] {
        assert_eq!(
            error(ascent, &half, &half, &[0.1, odd]),
            AscentError::Loss { client: 1 }
        );
    }
}

#[test]
fn options_have_defaults_and_names() {
    assert_eq!(
        serde_json::from_str::<Ascent>("{}").unwrap(),
        Ascent::default()
    );
    let text = r#"{"divergence": "chi-squared", "q": 1.0, "rate": 0.5, "floor": 0.001}"#;
    let known = Ascent {
        divergence: Divergence::ChiSquared,
        q: 1.0,
        rate: 0.5,
        floor: 0.001,
    };
    assert_eq!(serde_json::from_str::<Ascent>(text).unwrap(), known);
}
