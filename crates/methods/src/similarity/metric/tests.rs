#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::similarity::min_max;

/// Four models whose similarities are known (computed with NumPy).
const THETA: [[f64; 3]; 4] = [
    [1.0, 0.0, 2.0],
    [1.0, 1.0, 2.0],
    [0.0, 1.0, 1.0],
    [-1.0, 2.0, 0.0],
];

type ExpectedMatrix = [[f64; 4]; 4];

/// Of all metrics: raw and normalised similarities.
const KNOWN: [(SimilarityMetric, ExpectedMatrix, ExpectedMatrix); 4] = [
    (
        SimilarityMetric::L1,
        [
            [0.0, -1.0, -3.0, -6.0],
            [-1.0, 0.0, -2.0, -5.0],
            [-3.0, -2.0, 0.0, -3.0],
            [-6.0, -5.0, -3.0, 0.0],
        ],
        [
            [0.0, 1.0, 0.6, 0.0],
            [1.0, 0.0, 0.8, 0.2],
            [0.6, 0.8, 0.0, 0.6],
            [0.0, 0.2, 0.6, 0.0],
        ],
    ),
    (
        SimilarityMetric::L2,
        [
            [0.0, -1.0, -1.7320508075688772, -3.4641016151377544],
            [-1.0, 0.0, -std::f64::consts::SQRT_2, -3.0],
            [
                -1.7320508075688772,
                -std::f64::consts::SQRT_2,
                0.0,
                -1.7320508075688772,
            ],
            [-3.4641016151377544, -3.0, -1.7320508075688772, 0.0],
        ],
        [
            [0.0, 1.0, 0.7029137097789888, 0.0],
            [1.0, 0.0, 0.8319007788362094, 0.18834516088404454],
            [
                0.7029137097789888,
                0.8319007788362094,
                0.0,
                0.7029137097789888,
            ],
            [0.0, 0.18834516088404454, 0.7029137097789888, 0.0],
        ],
    ),
    (
        SimilarityMetric::Dot,
        [
            [5.0, 5.0, 2.0, -1.0],
            [5.0, 6.0, 3.0, 1.0],
            [2.0, 3.0, 2.0, 2.0],
            [-1.0, 1.0, 2.0, 5.0],
        ],
        [
            [0.0, 1.0, 0.5, 0.0],
            [1.0, 0.0, 0.6666666666666666, 0.3333333333333333],
            [0.5, 0.6666666666666666, 0.0, 0.5],
            [0.0, 0.3333333333333333, 0.5, 0.0],
        ],
    ),
    (
        SimilarityMetric::Cosine,
        [
            [1.0, 0.9128709291752769, 0.6324555320336759, -0.2],
            [
                0.9128709291752769,
                1.0,
                0.8660254037844387,
                0.18257418583505536,
            ],
            [
                0.6324555320336759,
                0.8660254037844387,
                1.0,
                0.6324555320336759,
            ],
            [-0.2, 0.18257418583505536, 0.6324555320336759, 1.0],
        ],
        [
            [0.0, 1.0, 0.7480252293503521, 0.0],
            [1.0, 0.0, 0.957905697630583, 0.3437722882370306],
            [
                0.7480252293503521,
                0.957905697630583,
                0.0,
                0.7480252293503521,
            ],
            [0.0, 0.3437722882370306, 0.7480252293503521, 0.0],
        ],
    ),
];

fn near(found: &Matrix, expected: &Matrix, tolerance: f64) -> bool {
    let values = found.values().iter().zip(expected.values());
    found.rows() == expected.rows() && values.into_iter().all(|(a, b)| (a - b).abs() <= tolerance)
}

#[test]
fn the_known_similarities() {
    let single = THETA.map(|row| row.map(|value| value as f32));
    let (single, double) = (
        Vectors::new(&single).unwrap(),
        Vectors::new(&THETA).unwrap(),
    );
    for (metric, raw, normalised) in KNOWN {
        let raw = Matrix::from_rows(&raw).unwrap();
        let normalised = Matrix::from_rows(&normalised).unwrap();
        let found = metric.similarity_f64(&double).unwrap();
        assert!(near(&found, &raw, 1e-12), "{metric:?}");
        assert!(
            near(&min_max(&found).unwrap(), &normalised, 1e-12),
            "{metric:?}"
        );
        assert!(
            near(&metric.similarity(&single).unwrap(), &raw, 1e-12),
            "{metric:?}"
        );
    }
}

#[test]
fn a_zero_vector_has_similarity_zero() {
    let models = [[0.0f32, 0.0], [3.0, 4.0], [-6.0, -8.0]];
    let cosine = SimilarityMetric::Cosine
        .similarity(&Vectors::new(&models).unwrap())
        .unwrap();
    let expected = [[0.0, 0.0, 0.0], [0.0, 1.0, -1.0], [0.0, -1.0, 1.0]];
    assert_eq!(cosine, Matrix::from_rows(&expected).unwrap());
}

#[test]
fn every_metric_refuses_what_is_not_finite() {
    let models = [[0.0f32, 1.0], [f32::NAN, 1.0]];
    let rows = Vectors::new(&models).unwrap();
    for (metric, ..) in KNOWN {
        let error = Err(CompareError::NotFinite { row: 1, column: 0 });
        assert_eq!(metric.similarity(&rows), error);
        assert_eq!(metric.similarity_f64(&rows), error);
        let alone = Vectors::new(&models[1..]).unwrap();
        let error = Err(CompareError::NotFinite { row: 0, column: 0 });
        assert_eq!(metric.similarity(&alone), error);
    }
}

#[test]
fn long_rows_give_what_f64_gives() {
    let value = |at: usize| (at.wrapping_mul(2_654_435_761) % 100_003) as f32 / 5e4 - 1.0;
    let models: Vec<Vec<f32>> = (0..40)
        .map(|row| {
            (0..25_000)
                .map(|column| value(25_000 * row + column))
                .collect()
        })
        .collect();
    let rows = Vectors::new(&models).unwrap();
    for (metric, ..) in KNOWN {
        let exact = metric.similarity_f64(&rows).unwrap();
        let size = exact.values().iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let found = metric.similarity(&rows).unwrap();
        let differences = found
            .values()
            .iter()
            .zip(exact.values())
            .map(|(a, b)| (a - b).abs());
        let error = differences.fold(0.0, f64::max) / size;
        assert!(error < 3e-6, "{metric:?}: {error:e}");
    }
}

proptest! {
    /// Signs flipped, weights scaled up: cosines know directions only.
    #[test]
    fn cosine_ignores_positive_scales(
        values in prop::collection::vec(-10f64..10.0, 12),
        scales in prop::collection::vec(1e-3f64..1e3, 3),
    ) {
        let models: Vec<Vec<f64>> = values.chunks(4).map(<[f64]>::to_vec).collect();
        let scaled: Vec<Vec<f64>> = models
            .iter()
            .zip(&scales)
            .map(|(row, scale)| row.iter().map(|value| value * scale).collect())
            .collect();
        let plain = SimilarityMetric::Cosine.similarity_f64(&Vectors::new(&models).unwrap()).unwrap();
        let cosine = SimilarityMetric::Cosine.similarity_f64(&Vectors::new(&scaled).unwrap()).unwrap();
        prop_assert!(near(&cosine, &plain, 1e-12));
        prop_assert!(cosine.values().iter().all(|value| value.abs() <= 1.0));
        let twins = (0..3).flat_map(|i| (0..3).map(move |j| ((i, j), (j, i))));
        for (entry, twin) in twins {
            prop_assert_eq!(cosine[entry].to_bits(), cosine[twin].to_bits());
        }
    }

    /// The triangle inequality, and ℓ2 at most ℓ1.
    #[test]
    fn distances_are_distances(values in prop::collection::vec(-10f32..10.0, 15)) {
        let models: Vec<_> = values.chunks(5).collect();
        let rows = Vectors::new(&models).unwrap();
        let l1 = SimilarityMetric::L1.similarity(&rows).unwrap();
        let l2 = SimilarityMetric::L2.similarity(&rows).unwrap();
        for distance in [&l1, &l2] {
            prop_assert!(distance[(0, 1)] + distance[(1, 2)] <= distance[(0, 2)] + 1e-9);
            prop_assert!((0..3).all(|i| distance[(i, i)] == 0.0));
        }
        prop_assert!(l1.values().iter().zip(l2.values()).all(|(l1, l2)| *l1 <= l2 + 1e-9));
    }
}
