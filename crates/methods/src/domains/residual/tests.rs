#![allow(clippy::unwrap_used)]

use super::*;

/// The outputs of both branches at z = (1, 2), and of the shared layer.
fn two() -> ([f64; 3], Matrix) {
    let layers = [
        [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]],
        [[0.0, 0.0], [2.0, 0.0], [1.0, 0.0]],
    ];
    let shared = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    let at = |layer: [[f64; 2]; 3]| layer.map(|row| row[0] + 2.0 * row[1]);
    (at(shared), Matrix::from_rows(&layers.map(at)).unwrap())
}

#[test]
fn two_domains_give_the_known_outputs() {
    let (shared, branches) = two();
    for (weights, known) in [
        ([0.0, 1.0], [1.0, 2.6, 3.3]),
        ([0.25, 0.75], [1.225, 2.45, 3.375]),
    ] {
        let output = residual(&shared, &branches, &weights, 0.3).unwrap();
        assert!(
            output.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-12),
            "{output:?}"
        );
    }
    assert_eq!(
        residual(&shared, &branches, &[0.5, 0.5], 0.0).unwrap(),
        shared
    );
}

#[test]
fn gradients_go_to_the_branches_by_weight() {
    let (_, branches) = two();
    let gradient = residual_gradient(&[1.0, -1.0, 2.0], &branches, &[0.25, 0.75], 2.0).unwrap();
    let expected = [[0.5, -0.5, 1.0], [1.5, -1.5, 3.0]];
    assert_eq!(gradient.branches, Matrix::from_rows(&expected).unwrap());
    // Σ w_d·f_d = (0.75, 1.5, 1.25)
    assert_eq!(gradient.lambda, 0.75 - 1.5 + 2.5);
}

#[test]
fn unusable_input_is_refused() {
    let (shared, branches) = two();
    let sizes = ResidualError::Sizes {
        branches: 2,
        outputs: 3,
        weights: 1,
        agnostic: 3,
    };
    assert_eq!(residual(&shared, &branches, &[1.0], 1.0), Err(sizes));
    let sizes = ResidualError::Sizes {
        branches: 2,
        outputs: 3,
        weights: 2,
        agnostic: 2,
    };
    assert_eq!(
        residual(&shared[1..], &branches, &[0.5, 0.5], 1.0),
        Err(sizes)
    );
    for weights in [[0.5, 0.6], [1.5, -0.5], [f64::NAN, 1.0]] {
        assert_eq!(
            residual(&shared, &branches, &weights, 1.0),
            Err(ResidualError::Weights)
        );
    }
    let error = Err(ResidualError::NotFinite);
    assert_eq!(
        residual(&shared, &branches, &[0.5, 0.5], f64::INFINITY),
        error
    );
    assert_eq!(
        residual(&[1.0, f64::NAN, 0.0], &branches, &[0.5, 0.5], 1.0),
        error
    );
}
