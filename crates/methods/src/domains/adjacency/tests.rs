#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn rows<R: AsRef<[f64]>>(rows: &[R]) -> Matrix {
    Matrix::from_rows(rows).unwrap()
}

fn near(a: &Matrix, b: &Matrix, tolerance: f64) -> bool {
    (a.rows(), a.columns()) == (b.rows(), b.columns())
        && a.values()
            .iter()
            .zip(b.values())
            .all(|(a, b)| (a - b).abs() <= tolerance)
}

#[test]
fn three_domains_give_the_known_shares() {
    let parameters = rows(&[[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]]);
    let known = rows(&[
        [0.5, 0.22222222222222224, 0.2777777777777778],
        [0.1875, 0.5, 0.3125],
        [0.2142857142857143, 0.28571428571428575, 0.5],
    ]);
    assert!(near(
        &by_parameters(&parameters, BETA).unwrap(),
        &known,
        1e-12
    ));
}

#[test]
fn degenerate_domains_give_the_known_shares() {
    // Two alike at distance 0, the third 1 from both.
    let alike = by_parameters(&rows(&[[2.0], [2.0], [3.0]]), BETA).unwrap();
    let known = rows(&[
        [0.5, 0.4999999999995, 4.999999999995e-13],
        [0.4999999999995, 0.5, 4.999999999995e-13],
        [0.25, 0.25, 0.5],
    ]);
    assert!(near(&alike, &known, 1e-15));
    let two = by_parameters(&rows(&[[1.0, 0.0], [0.0, 7.0]]), BETA).unwrap();
    assert_eq!(two, rows(&[[0.5, 0.5], [0.5, 0.5]]));
    assert_eq!(
        by_parameters(&rows(&[[1.0, 2.0]]), BETA).unwrap(),
        rows(&[[1.0]])
    );
}

#[test]
fn uniform_and_identity_adjacency_have_the_known_entries() {
    let third = 0.4 / 2.0;
    assert!(near(
        &uniform(3, 0.6).unwrap(),
        &rows(&[
            [0.6, third, third],
            [third, 0.6, third],
            [third, third, 0.6]
        ]),
        1e-15
    ));
    assert_eq!(identity(2), rows(&[[1.0, 0.0], [0.0, 1.0]]));
}

#[test]
fn domains_that_differ_in_fewer_attributes_are_nearer() {
    // Distances from 00: 1 to 01, 1 to 10, 2 to 11.
    let made = by_attributes(4, 0.5).unwrap();
    let expected = [0.5, 0.2, 0.2, 0.1];
    assert!(
        made.row(0)
            .iter()
            .zip(expected)
            .all(|(a, b)| (a - b).abs() < 1e-15)
    );
    assert_eq!(made[(3, 1)], made[(0, 1)]);
    assert_eq!(by_attributes(1, 0.5).unwrap(), rows(&[[1.0]]));
}

#[test]
fn unusable_input_is_refused() {
    assert_eq!(uniform(0, BETA), Err(AdjacencyError::Empty));
    for beta in [-0.1, 1.1, f64::INFINITY] {
        assert_eq!(uniform(2, beta), Err(AdjacencyError::Beta(beta)));
    }
    assert!(matches!(uniform(1, f64::NAN), Err(AdjacencyError::Beta(_))));
    let flat = AdjacencyError::NotSquare {
        rows: 1,
        columns: 2,
    };
    assert_eq!(by_distances(&Matrix::zeros(1, 2), BETA), Err(flat));
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        let error = AdjacencyError::Distance { row: 0, column: 1 };
        assert_eq!(
            by_distances(&rows(&[[0.0, bad], [1.0, 0.0]]), BETA),
            Err(error)
        );
    }
    let error = AdjacencyError::Distance { row: 0, column: 1 };
    assert_eq!(by_parameters(&rows(&[[0.0], [f64::NAN]]), BETA), Err(error));
}

fn parameters() -> impl Strategy<Value = Matrix> {
    (1..=6usize, 1..=4usize)
        .prop_flat_map(|(domains, values)| {
            prop::collection::vec(prop::collection::vec(-10.0..10.0f64, values), domains)
        })
        .prop_map(|values| rows(&values))
}

proptest! {
    #[test]
    fn rows_are_shares(parameters in parameters(), beta in 0.0..=1.0f64) {
        let shares = by_parameters(&parameters, beta).unwrap();
        for i in 0..shares.rows() {
            prop_assert!((shares.row(i).iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(shares.row(i).iter().all(|share| (0.0..=1.0).contains(share)));
            prop_assert!(shares.rows() == 1 || shares[(i, i)] == beta);
        }
    }

    #[test]
    fn scale_does_not_matter(parameters in parameters(), scale in 1e-4..1e9f64) {
        let mut scaled = parameters.clone();
        scaled.values_mut().iter_mut().for_each(|value| *value *= scale);
        let (a, b) = (by_parameters(&parameters, BETA), by_parameters(&scaled, BETA));
        prop_assert!(near(&a.unwrap(), &b.unwrap(), 1e-9));
    }

    #[test]
    fn beta_one_gives_the_identity(parameters in parameters()) {
        prop_assert_eq!(by_parameters(&parameters, 1.0).unwrap(), identity(parameters.rows()));
    }
}
