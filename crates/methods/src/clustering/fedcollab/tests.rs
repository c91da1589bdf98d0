#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// The mean bound by its definition.
fn by_definition(c: f64, samples: &[u64], divergences: &Matrix, assignment: &[u32]) -> f64 {
    let m: f64 = samples.iter().map(|&samples| samples as f64).sum();
    let beta: Vec<f64> = samples.iter().map(|&samples| samples as f64 / m).collect();
    let clients = samples.len();
    let bound = |k: usize| {
        let members: Vec<usize> = (0..clients)
            .filter(|&i| assignment[i] == assignment[k])
            .collect();
        let together: f64 = members.iter().map(|&i| beta[i]).sum();
        let alpha = |i: usize| beta[i] / together;
        let few: f64 = members
            .iter()
            .map(|&i| alpha(i) * alpha(i) / beta[i])
            .sum::<f64>()
            / m;
        let other: f64 = members
            .iter()
            .map(|&i| alpha(i) * divergences[(k, i)])
            .sum();
        c * few.sqrt() + other
    };
    (0..clients).map(bound).sum::<f64>() / clients as f64
}

/// Every grouping of `n` clients, in canonical numbers.
fn groupings(n: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|head: Vec<u32>| {
                let next = head.iter().max().map_or(0, |last| last + 1);
                (0..=next).map(move |own| [head.as_slice(), &[own]].concat())
            })
            .collect();
    }
    all
}

fn collab(c: f64) -> FedCollabBound {
    FedCollabBound {
        c,
        ..FedCollabBound::default()
    }
}

#[test]
fn the_bound_is_that_of_the_paper() {
    let rows = [
        [0.0, 0.5, 1.0, 1.0],
        [0.5, 0.0, 1.0, 1.0],
        [1.0, 1.0, 0.0, 0.5],
        [1.0, 1.0, 0.5, 0.0],
    ];
    let divergences = Matrix::from_rows(&rows).unwrap();
    // Shares .2, .3, .15, .35 of 20 samples in pairs: 1/√10 each, and .3, .2, .35, .15 of
    // a divergence of one half... of their own pair.
    let samples = [4, 6, 3, 7];
    let error = collab(1.0)
        .error(&samples, &divergences, &[0, 0, 1, 1])
        .unwrap();
    let apart = 0.5 * (0.6 + 0.4 + 0.7 + 0.3) / 4.0;
    assert!((error - (1.0 / 10f64.sqrt() + apart)).abs() < 1e-12);
}

#[test]
fn similar_clients_merge_and_dissimilar_ones_do_not() {
    let divergences = Matrix::from_fn(6, 6, |i, j| if i % 2 == j % 2 { 0.0 } else { 1.0 });
    let found = collab(1.0).solve(&[10; 6], &divergences, 1).unwrap();
    assert_eq!(found.assignment, [0, 1, 0, 1, 0, 1]);
    assert!((found.error - 1.0 / 30f64.sqrt()).abs() < 1e-12);
    // With C = 0 no client joins another; with a huge C all join.
    let alone = collab(0.0).solve(
        &[10; 6],
        &Matrix::from_fn(6, 6, |i, j| f64::from(u8::from(i != j))),
        1,
    );
    assert_eq!(alone.unwrap().assignment, [0, 1, 2, 3, 4, 5]);
    assert_eq!(
        collab(1e9)
            .solve(&[10; 6], &divergences, 1)
            .unwrap()
            .assignment,
        [0; 6]
    );
    assert_eq!(
        collab(1.0)
            .solve(&[1], &Matrix::zeros(1, 1), 1)
            .unwrap()
            .assignment,
        [0]
    );
}

#[test]
fn invalid_input_is_refused() {
    let good = Matrix::zeros(2, 2);
    let solve = |collab: FedCollabBound, samples: &[u64], divergences: &Matrix| {
        collab.solve(samples, divergences, 0).unwrap_err()
    };
    let option = |error, name: &str| {
        assert!(
            matches!(error, ClusteringError::Option { option, .. } if option == name),
            "{error}"
        );
    };
    option(solve(collab(-1.0), &[1, 1], &good), "c");
    option(solve(collab(f64::NAN), &[1, 1], &good), "c");
    option(
        solve(FedCollabBound { c: 1.0, orders: 0 }, &[1, 1], &good),
        "orders",
    );
    option(solve(collab(1.0), &[1, 0], &good), "samples");
    option(
        solve(collab(1.0), &[1, 1], &Matrix::from_fn(2, 2, |_, _| -1.0)),
        "divergences",
    );
    assert!(matches!(
        solve(collab(1.0), &[], &Matrix::zeros(0, 0)),
        ClusteringError::TooFew { .. }
    ));
    assert!(matches!(
        solve(collab(1.0), &[1], &good),
        ClusteringError::Mismatch { .. }
    ));
    assert!(matches!(
        solve(collab(1.0), &[1, 1], &Matrix::zeros(2, 3)),
        ClusteringError::Mismatch { .. }
    ));
    let bad = Matrix::from_fn(2, 2, |_, _| f64::INFINITY);
    assert!(matches!(
        solve(collab(1.0), &[1, 1], &bad),
        ClusteringError::NotFinite { .. }
    ));
    assert!(matches!(
        collab(1.0).error(&[1, 1], &good, &[0]),
        Err(ClusteringError::Mismatch { .. })
    ));
}

/// Clients with samples, divergences and a weight of the lack of data.
fn problem() -> impl Strategy<Value = (Vec<u64>, Matrix, f64)> {
    (1..7usize).prop_flat_map(|n| {
        (
            prop::collection::vec(1..500u64, n),
            prop::collection::vec(0.0..1.0f64, n * n).prop_map(move |values| {
                Matrix::from_fn(n, n, |i, j| if i == j { 0.0 } else { values[i * n + j] })
            }),
            0.0..20.0f64,
        )
    })
}

proptest! {
    #[test]
    fn the_search_ends_in_a_local_optimum_not_below_the_global_one(
        (samples, divergences, c) in problem(),
    ) {
        let value = |assignment: &[u32]| by_definition(c, &samples, &divergences, assignment);
        let all = groupings(samples.len());
        let optimum = all.iter().map(|all| value(all)).fold(f64::INFINITY, f64::min);
        for orders in [1, 100] {
            let collab = FedCollabBound { c, orders };
            let found = collab.solve(&samples, &divergences, 7).unwrap();
            let error = value(&found.assignment);
            prop_assert!((found.error - error).abs() <= 1e-9 * (1.0 + error));
            let stated = collab.error(&samples, &divergences, &found.assignment);
            prop_assert_eq!(stated.unwrap(), found.error);
            prop_assert!(found.error >= optimum * (1.0 - 1e-9));
            let alone: Vec<u32> = (0..samples.len() as u32).collect();
            prop_assert!(found.error <= value(&alone) * (1.0 + 1e-9));
            prop_assert_eq!(canonical(&found.assignment), found.assignment.clone());
            // All single moves, to any coalition or to an empty one.
            for client in 0..samples.len() {
                for to in 0..=samples.len() as u32 {
                    let mut moved = found.assignment.clone();
                    moved[client] = to;
                    prop_assert!(value(&moved) >= found.error * (1.0 - 1e-9));
                }
            }
            prop_assert_eq!(collab.solve(&samples, &divergences, 7).unwrap(), found);
        }
    }
}
