#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::*;
use crate::robust::tests::close;
use crate::robust::{TransportCost, linear, logistic as linear_logistic};

const NORMS: [Norm; 3] = [Norm::L1, Norm::L2, Norm::Linf];

/// Numbers from −1 to 1.
struct Draw(ChaCha8Rng);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    fn one(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn many(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.one()).collect()
    }

    fn matrix(&mut self, rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |_, _| self.one())
    }
}

fn length(norm: Norm, vector: &[f64]) -> f64 {
    let sizes = vector.iter().map(|value| value.abs());
    match norm {
        Norm::L1 => sizes.sum(),
        Norm::L2 => vector.iter().map(|value| value * value).sum::<f64>().sqrt(),
        Norm::Linf => sizes.fold(0.0, f64::max),
    }
}

fn apply(matrix: &Matrix, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| matrix.row(row).iter().zip(x).map(|(w, x)| w * x).sum();
    (0..matrix.rows()).map(row).collect()
}

/// ReLU between layers, no biases.
fn outputs(layers: &[Matrix], x: &[f64]) -> Vec<f64> {
    let mut value = x.to_vec();
    for (at, layer) in layers.iter().enumerate() {
        if at > 0 {
            value.iter_mut().for_each(|value| *value = value.max(0.0));
        }
        value = apply(layer, &value);
    }
    value
}

fn entropy(outputs: &[f64], label: usize) -> f64 {
    let sum: f64 = outputs.iter().map(|o| libm::exp(o - outputs[label])).sum();
    libm::log(sum)
}

#[test]
fn spectral_norms_are_bounded_tightly_from_above() {
    let diagonal = Matrix::from_fn(3, 5, |a, b| if a == b { [0.5, -3.0, 2.0][a] } else { 0.0 });
    let turned = Matrix::from_rows(&[[0.6, -0.8], [0.8, 0.6]]).unwrap();
    let ones = Matrix::from_fn(4, 9, |_, _| 1.0);
    let same = Matrix::from_fn(40, 40, |a, b| f64::from(a == b));
    for (matrix, value) in [(diagonal, 3.0), (turned, 1.0), (ones, 6.0), (same, 1.0)] {
        let bound = spectral(&matrix);
        assert!(
            bound >= value && bound <= value * (1.0 + 1e-8),
            "{bound} {value}"
        );
    }
    assert_eq!(spectral(&Matrix::zeros(3, 4)), 0.0);
    let tiny = Matrix::from_fn(2, 2, |_, _| 1e-45);
    assert!(close(spectral(&tiny) * 1e45, 2.0, 1e-8));
    let mut draw = Draw::new(1);
    for (rows, columns) in [(1, 7), (7, 3), (16, 16), (30, 64)] {
        let matrix = draw.matrix(rows, columns);
        let across = Matrix::from_fn(columns, rows, |a, b| matrix[(b, a)]);
        // From below, from a vector.
        let mut vector = draw.many(columns);
        let mut value = 0.0;
        for _ in 0..5000 {
            let image = apply(&matrix, &vector);
            value = length(Norm::L2, &image) / length(Norm::L2, &vector);
            vector = apply(&across, &image);
            let size = length(Norm::L2, &vector);
            vector.iter_mut().for_each(|value| *value /= size);
        }
        let bound = spectral(&matrix);
        assert!(
            bound >= value && bound <= value * (1.0 + 1e-8),
            "{bound} {value}"
        );
    }
}

#[test]
fn one_linear_layer_gives_the_exact_losses() {
    let theta = [1.5, -0.5, 0.25];
    let layers = [Matrix::from_rows(&[theta]).unwrap()];
    // Two classes: the difference of the outputs is the linear model's.
    let halves = [theta.map(|w| 0.3 - w / 2.0), theta.map(|w| 0.3 + w / 2.0)];
    let classes = [Matrix::from_rows(&halves).unwrap()];
    let values = [2.0, -1.5, 3.5, 0.5];
    for norm in NORMS {
        let one = slope(&layers, norm).unwrap();
        let two = slope_between(&classes, norm).unwrap();
        for radius in [0.0, 0.1, 0.7, 3.0] {
            let bound = absolute(&values, one, radius, norm).unwrap();
            let exact = linear(&values, &theta, radius, norm).unwrap();
            assert!(close(bound.loss, exact.loss, 1e-12) && bound.empirical == exact.empirical);
            for label_cost in [0.2, 1.0, f64::INFINITY] {
                let cost = TransportCost { norm, label_cost };
                let exact = linear_logistic(&values, &theta, radius, cost).unwrap();
                assert_eq!(logistic(&values, one, radius, label_cost).unwrap(), exact);
                // Rows of class 1, whose margin is the difference of the outputs.
                let outputs: Vec<f64> = values.iter().flat_map(|m| [1.0 - m, 1.0]).collect();
                let bound = cross_entropy(&outputs, &[1; 4], two, radius, label_cost).unwrap();
                assert!(close(bound.loss, exact.loss, 1e-12), "{bound:?} {exact:?}");
                assert!(close(bound.lambda, exact.lambda, 1e-12));
            }
        }
    }
}

#[test]
fn invalid_options_are_refused() {
    let two = Matrix::zeros(2, 3);
    assert_eq!(slope(&[], Norm::L2), Err(LayersError::Empty));
    let (layer, ins, outs) = (1, 3, 2);
    let error = LayersError::Chain { layer, ins, outs };
    assert_eq!(slope(&[two.clone(), two.clone()], Norm::L1), Err(error));
    let mut bad = Matrix::zeros(1, 2);
    bad.row_mut(0)[1] = f64::NAN;
    let error = LayersError::NotFinite { layer: 1 };
    assert_eq!(slope_between(&[two, bad], Norm::L2), Err(error));
    assert_eq!(absolute(&[], 1.0, 0.1, Norm::L2), Err(RobustError::Empty));
    assert_eq!(
        logistic(&[1.0], f64::INFINITY, 0.1, 1.0),
        Err(RobustError::NotFinite)
    );
    assert_eq!(
        cross_entropy(&[0.0, 1.0], &[0], 1.0, 0.1, 0.0),
        Err(RobustError::LabelCost(0.0))
    );
    assert_eq!(
        cross_entropy(&[], &[], 1.0, 0.1, 1.0),
        Err(RobustError::Empty)
    );
}

proptest! {
    #[test]
    fn no_output_changes_faster_than_the_slope(
        seed in any::<u64>(), hidden in 1..6usize, classes in 1..4usize,
    ) {
        let mut draw = Draw::new(seed);
        let layers = [
            draw.matrix(hidden, 3), draw.matrix(hidden, hidden), draw.matrix(classes, hidden),
        ];
        for norm in NORMS {
            let (each, between) =
                (slope(&layers, norm).unwrap(), slope_between(&layers, norm).unwrap());
            if norm == Norm::L2 {
                let all = operator_norm(&layers[2], norm);
                let hidden = chain(&layers, norm).unwrap().1;
                prop_assert!(between <= 2f64.sqrt() * all * hidden * (1.0 + 1e-12));
            }
            for _ in 0..20 {
                let (x, move_by) = (draw.many(3), draw.many(3));
                let there: Vec<f64> = x.iter().zip(&move_by).map(|(x, d)| x + d).collect();
                let (here, there) = (outputs(&layers, &x), outputs(&layers, &there));
                let far = length(norm, &move_by);
                for c in 0..classes {
                    prop_assert!((here[c] - there[c]).abs() <= each * far + 1e-12);
                    for z in 0..classes {
                        let change = (here[c] - here[z]) - (there[c] - there[z]);
                        prop_assert!(change.abs() <= between * far + 1e-12);
                    }
                }
            }
        }
    }

    #[test]
    fn no_adversary_reaches_the_bound(
        seed in any::<u64>(), rows in 1..6usize, radius in 0.0..1.0f64, cost in 0.2..2.0f64,
    ) {
        let mut draw = Draw::new(seed);
        let layers = [draw.matrix(5, 2), draw.matrix(3, 5)];
        let single = [layers[0].clone(), draw.matrix(1, 5)];
        let data: Vec<Vec<f64>> = (0..rows).map(|_| draw.many(2)).collect();
        let labels: Vec<usize> = (0..rows).map(|row| row % 3).collect();
        let targets = draw.many(rows);
        for norm in NORMS {
            let all: Vec<f64> = data.iter().flat_map(|x| outputs(&layers, x)).collect();
            let between = slope_between(&layers, norm).unwrap();
            let worst = cross_entropy(&all, &labels, between, radius, cost).unwrap().loss;
            let steep = slope(&single, norm).unwrap();
            let signs: Vec<f64> = targets.iter().map(|y| y.signum()).collect();
            let raw: Vec<f64> = data.iter().map(|x| outputs(&single, x)[0]).collect();
            let residuals: Vec<f64> = targets.iter().zip(&raw).map(|(y, f)| y - f).collect();
            let margins: Vec<f64> = signs.iter().zip(&raw).map(|(y, f)| y * f).collect();
            let worst_absolute = absolute(&residuals, steep, radius, norm).unwrap().loss;
            let worst_logistic = logistic(&margins, steep, radius, cost).unwrap().loss;
            for _ in 0..30 {
                // Some labels change as long as that can be paid for; what is left moves rows, one
                // of them or all, the best of a few directions.
                let mut left = radius * rows as f64;
                let (mut changed, mut flipped) = (labels.clone(), signs.clone());
                for row in 0..rows {
                    if draw.one() > 0.0 && left >= cost {
                        left -= cost;
                        changed[row] = (labels[row] + 1 + usize::from(draw.one() > 0.0)) % 3;
                        flipped[row] = -signs[row];
                    }
                }
                let only = (draw.one() > 0.0).then_some(seed as usize % rows);
                let each = if only.is_some() { left } else { left / rows as f64 };
                let whole = if only.is_some() { radius * rows as f64 } else { radius };
                let (mut by_class, mut by_sign, mut by_number) = (0.0, 0.0, 0.0);
                for row in 0..rows {
                    let moves = only.is_none_or(|only| only == row);
                    let mut best = [f64::NEG_INFINITY; 3];
                    for _ in 0..10 {
                        let way = draw.many(2);
                        let size = length(norm, &way).max(1e-9);
                        let at = |far: f64| -> Vec<f64> {
                            let far = if moves { far / size } else { 0.0 };
                            data[row].iter().zip(&way).map(|(x, d)| x + far * d).collect()
                        };
                        let x = at(each);
                        let margin = flipped[row] * outputs(&single, &x)[0];
                        // The target moves with the features: half the way each is within any norm.
                        let shift = if moves { whole / 2.0 * draw.one() } else { 0.0 };
                        let miss = targets[row] + shift - outputs(&single, &at(whole / 2.0))[0];
                        let got = [
                            entropy(&outputs(&layers, &x), changed[row]),
                            log_loss(margin),
                            miss.abs(),
                        ];
                        for (best, got) in best.iter_mut().zip(got) {
                            *best = best.max(got);
                        }
                    }
                    by_class += best[0] / rows as f64;
                    by_sign += best[1] / rows as f64;
                    by_number += best[2] / rows as f64;
                }
                prop_assert!(by_class <= worst + 1e-9, "{by_class} {worst}");
                prop_assert!(by_sign <= worst_logistic + 1e-9, "{by_sign} {worst_logistic}");
                prop_assert!(by_number <= worst_absolute + 1e-9, "{by_number} {worst_absolute}");
            }
        }
    }

    #[test]
    fn the_bound_is_increasing_and_concave_in_the_radius(
        outputs in prop::collection::vec(-4.0..4.0f64, 3..=24), slope in 0.0..3.0f64,
        radii in prop::array::uniform2(0.0..3.0f64), cost in 0.1..3.0f64,
    ) {
        let rows = outputs.len() / 3;
        let labels: Vec<usize> = (0..rows).map(|row| row % 3).collect();
        let at = |radius: f64| {
            cross_entropy(&outputs[..3 * rows], &labels, slope, radius, cost).unwrap()
        };
        let (low, high) = (radii[0].min(radii[1]), radii[0].max(radii[1]));
        let (a, middle, b) = (at(low).loss, at((low + high) / 2.0).loss, at(high).loss);
        prop_assert!(a <= middle + 1e-12 && middle <= b + 1e-12);
        prop_assert!(middle >= (a + b) / 2.0 - 1e-12);
        let plain = at(0.0);
        prop_assert!(close(plain.loss, plain.empirical, 1e-15));
        let entropies = outputs[..3 * rows].chunks(3).zip(&labels);
        let mean = entropies.map(|(o, &z)| entropy(o, z)).sum::<f64>() / rows as f64;
        prop_assert!(close(plain.empirical, mean, 1e-12));
    }
}
