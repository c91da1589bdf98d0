#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::matrix::Matrix;

fn close(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12)
}

fn sums_to_one(weights: &[f64]) -> bool {
    weights.iter().all(|weight| *weight >= 0.0) && (weights.iter().sum::<f64>() - 1.0).abs() < 1e-9
}

#[test]
fn maxfl_gives_the_known_weights() {
    let (losses, required) = ([0.5, 1.0, 2.0], [0.6; 3]);
    let known = [
        0.249_376_040_192_891_97,
        0.240_260_745_741_529_14,
        0.158_684_897_495_614_68,
    ];
    assert!(close(&maxfl(&losses, &required).unwrap(), &known));
    let known = [
        0.151_290_881_324_790_2,
        0.145_760_835_495_146_96,
        0.096_270_587_889_982_2,
    ];
    assert!(close(
        &maxfl_steps(&losses, &required, 1.0, 1.0).unwrap(),
        &known
    ));
    let half = maxfl_steps(&losses, &required, 0.5, 1.0).unwrap();
    assert!(close(&half, &known.map(|known| known / 2.0)));
}

#[test]
fn maxfl_joins_compares_losses_with_squared_distances() {
    let joins = maxfl_joins(&[0.5, 0.5, 0.5], &[0.6, 0.5, 0.4]).unwrap();
    assert_eq!(joins, [true, false, false]);
}

#[test]
fn fedfa_gives_the_known_weights() {
    let known = [
        0.048_224_284_348_310_99,
        0.317_258_571_883_896_33,
        0.634_517_143_767_792_7,
    ];
    assert!(close(
        &fedfa_by_accuracy(&[0.9, 0.5, 0.25]).unwrap(),
        &known
    ));
    // An accuracy of 0 counts as 1e-7: log₂ 10⁷ = 23.25 against 1.
    let zero = fedfa_by_accuracy(&[0.0, 0.5]).unwrap();
    assert!((zero[0] - 23.253_496_664_211_536 / 24.253_496_664_211_536).abs() < 1e-12);
    assert_eq!(fedfa_by_accuracy(&[1.0, 1.0]).unwrap(), [0.5, 0.5]);
    assert_eq!(fedfa_by_accuracy(&[1.0, 0.5]).unwrap(), [0.0, 1.0]);
}

#[test]
fn fedfa_mixes_both_kinds_of_information() {
    // Accuracies in the ratio 1:3 carry 2 and 0.415 bits; of shares 1/4 and 3/4 of the rounds the
    // complements carry 0.415 and 2.
    let (bits, both) = (0.415_037_499_278_843_9, 2.415_037_499_278_844);
    let (more, less) = (2.0 / both, bits / both);
    let by = |alpha| fedfa(&[0.2, 0.6], &[1, 3], alpha).unwrap();
    assert!(close(&by(1.0), &[more, less]));
    assert!(close(&by(0.0), &[less, more]));
    assert!(close(&by(0.5), &[0.5, 0.5]));
    assert!(sums_to_one(
        &fedfa(&[0.0, 0.0, 1.0], &[5, 0, 0], 0.3).unwrap()
    ));
    assert_eq!(fedfa(&[0.7], &[4], 0.5).unwrap(), [1.0]);
}

#[test]
fn pfedgraph_prefers_models_like_its_own() {
    let cosines =
        Matrix::from_rows(&[[1.0, 0.95, -1.0], [0.95, 1.0, 0.0], [-1.0, 0.0, 1.0]]).unwrap();
    let weights = PFedGraph::default()
        .weights(&cosines, &[1.0, 1.0, 2.0])
        .unwrap();
    // Client 0: ¼ + 1/1.6 for itself and, being alike, for client 1; client 2 at ½ − 1/1.6 < 0.
    assert!(close(weights.row(0), &[0.5, 0.5, 0.0]));
    // Client 1: .875, .875, .5, each less .4166….
    assert!(close(
        weights.row(1),
        &[
            0.458_333_333_333_333_3,
            0.458_333_333_333_333_3,
            0.083_333_333_333_333_3
        ]
    ));
    // The prior alone decides if similarity counts nothing.
    let prior = PFedGraph {
        alpha: 1e9,
        alike: 0.9,
    }
    .weights(&cosines, &[1.0, 1.0, 2.0])
    .unwrap();
    assert!(
        prior
            .row(0)
            .iter()
            .zip([0.25, 0.25, 0.5])
            .all(|(a, b)| (a - b).abs() < 1e-8)
    );
}

#[test]
fn a_superquantile_is_the_mean_of_the_tail() {
    let losses = [3.0, 1.0, 4.0, 2.0];
    let by = |theta| superquantile(&losses, &[1.0; 4], theta).unwrap();
    assert!(close(&by(0.0), &[0.25; 4]));
    assert!(close(&by(0.5), &[0.5, 0.0, 0.5, 0.0]));
    // A tail of 0.4: all of the worst, .15 of .25 of the next.
    assert!(close(&by(0.6), &[0.375, 0.0, 0.625, 0.0]));
    assert!(close(&by(0.999), &[0.0, 0.0, 1.0, 0.0]));
    let ties = superquantile(&[5.0, 5.0, 1.0, 5.0], &[1.0, 2.0, 2.0, 0.0], 0.7).unwrap();
    assert!(close(&ties, &[1.0 / 3.0, 2.0 / 3.0, 0.0, 0.0]));
}

#[test]
fn invalid_input_is_refused() {
    let range = |result: Result<Vec<f64>, WeightsError>, name: &str| {
        let error = result.unwrap_err();
        assert!(
            matches!(error, WeightsError::Range { what, .. } if what == name),
            "{error}"
        );
    };
    assert_eq!(maxfl(&[], &[]), Err(WeightsError::Empty));
    let mismatch = WeightsError::Mismatch {
        what: "required losses",
        expected: 2,
        got: 1,
    };
    assert_eq!(maxfl(&[1.0, 2.0], &[1.0]), Err(mismatch));
    range(maxfl(&[f64::NAN], &[1.0]), "losses");
    range(maxfl_steps(&[1.0], &[1.0], 0.0, 1.0), "rate");
    range(maxfl_steps(&[1.0], &[1.0], 1.0, f64::INFINITY), "epsilon");
    assert!(maxfl_joins(&[1.0], &[-1.0]).is_err());
    range(fedfa_by_accuracy(&[1.1]), "accuracies");
    range(fedfa(&[0.5], &[1], 1.5), "alpha");
    let never = WeightsError::AllZero {
        what: "participations",
    };
    assert_eq!(fedfa(&[0.5, 0.5], &[0, 0], 0.5), Err(never));
    range(superquantile(&[1.0], &[1.0], 1.0), "theta");
    range(superquantile(&[1.0], &[-1.0], 0.5), "prior");
    assert_eq!(
        superquantile(&[1.0], &[0.0], 0.5),
        Err(WeightsError::AllZero { what: "prior" })
    );
    let wide = Matrix::zeros(1, 2);
    assert!(matches!(
        PFedGraph::default().weights(&wide, &[1.0]),
        Err(WeightsError::Mismatch {
            what: "cosines",
            ..
        })
    ));
    assert_eq!(
        PFedGraph::default().weights(&Matrix::zeros(0, 0), &[]),
        Err(WeightsError::Empty)
    );
    let one = Matrix::from_fn(1, 1, |_, _| 1.0);
    assert!(
        PFedGraph {
            alpha: 0.0,
            alike: 0.9
        }
        .weights(&one, &[1.0])
        .is_err()
    );
    assert!(
        PFedGraph {
            alpha: 1.0,
            alike: 2.0
        }
        .weights(&one, &[1.0])
        .is_err()
    );
    assert!(
        PFedGraph::default()
            .weights(&Matrix::from_fn(1, 1, |_, _| 3.0), &[1.0])
            .is_err()
    );
}

fn losses() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    (1..9usize).prop_flat_map(|clients| {
        let loss = prop_oneof![0.0..5.0f64, Just(1.0)];
        (
            prop::collection::vec(loss, clients),
            prop::collection::vec(0.1..5.0f64, clients),
        )
    })
}

proptest! {
    /// Weights are largest where loss and requirement are equal, and vanish far away on either side.
    #[test]
    fn maxfl_weights_peak_where_loss_and_requirement_meet(
        required in -5.0..5.0f64,
        gaps in prop::collection::vec(-700.0..700.0f64, 1..9),
    ) {
        let losses: Vec<f64> = gaps.iter().map(|gap| required + gap).collect();
        let slopes = maxfl(&losses, &vec![required; gaps.len()]).unwrap();
        let peak = maxfl(&[required], &[required]).unwrap()[0];
        prop_assert_eq!(peak, 0.25);
        for (slope, gap) in slopes.iter().zip(&gaps) {
            prop_assert!((0.0..=peak).contains(slope));
            let sigmoid = 1.0 / (1.0 + libm::exp(-gap));
            prop_assert!((slope - sigmoid * (1.0 - sigmoid)).abs() < 1e-12);
        }
        let steps = maxfl_steps(&losses, &vec![required; gaps.len()], 1.0, 1e-3).unwrap();
        prop_assert!(steps.iter().sum::<f64>() < 1.0);
    }

    /// Nothing on the simplex is better: the objective is convex, so moving a little weight from
    /// any client to any other must not pay.
    #[test]
    fn pfedgraph_solves_its_program(
        entries in prop::collection::vec(-1.0..1.0f64, 36),
        prior in prop::collection::vec(0.1..1.0f64, 6),
        alpha in 0.05..3.0f64,
    ) {
        let entry = |i: usize, j: usize| entries[6 * i.min(j) + i.max(j)];
        let cosines = Matrix::from_fn(6, 6, |i, j| if i == j { 1.0 } else { entry(i, j) });
        let graph = PFedGraph { alpha, alike: 0.9 };
        let weights = graph.weights(&cosines, &prior).unwrap();
        let total: f64 = prior.iter().sum();
        for client in 0..6 {
            let row = weights.row(client);
            prop_assert!(sums_to_one(row));
            let objective = |row: &[f64]| -> f64 {
                (0..6)
                    .map(|j| {
                        let cosine = cosines[(client, j)];
                        let cosine = if cosine > 0.9 { 1.0 } else { cosine };
                        let off = row[j] - prior[j] / total;
                        -cosine * row[j] + alpha * off * off
                    })
                    .sum()
            };
            for (from, to) in (0..36).map(|pair| (pair / 6, pair % 6)) {
                let mut other = row.to_vec();
                let moved = other[from].min(1e-3);
                other[from] -= moved;
                other[to] += moved;
                prop_assert!(objective(row) <= objective(&other) + 1e-12);
            }
        }
    }

    /// `max_w Σ w_k F_k` over the capped simplex, against all its corners: fill it in any order.
    #[test]
    fn superquantile_weights_are_the_worst_allowed(
        (losses, prior) in losses(),
        theta in 0.0..0.99f64,
    ) {
        let weights = superquantile(&losses, &prior, theta).unwrap();
        prop_assert!(sums_to_one(&weights));
        let total: f64 = prior.iter().sum();
        let caps: Vec<f64> = prior.iter().map(|prior| prior / total / (1.0 - theta)).collect();
        prop_assert!(weights.iter().zip(&caps).all(|(weight, cap)| *weight <= cap * (1.0 + 1e-9)));
        let value = |weights: &[f64]| weights.iter().zip(&losses).map(|(w, f)| w * f).sum::<f64>();
        for first in 0..losses.len() {
            for backwards in [false, true] {
                let mut left = 1.0;
                let mut corner = vec![0.0; losses.len()];
                for step in 0..losses.len() {
                    let step = if backwards { losses.len() - step } else { step };
                    let client = (first + step) % losses.len();
                    corner[client] = caps[client].min(left);
                    left -= corner[client];
                }
                prop_assert!(value(&corner) <= value(&weights) + 1e-9);
            }
        }
        // Equal clients weigh the same, whatever their order.
        for (a, b) in (0..losses.len()).zip(1..losses.len()) {
            if losses[a] == losses[b] {
                prop_assert!((weights[a] * prior[b] - weights[b] * prior[a]).abs() < 1e-9);
            }
        }
    }
}
