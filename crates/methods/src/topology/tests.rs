#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

fn matrix<const N: usize>(rows: [[f64; N]; N]) -> Matrix {
    Matrix::from_rows(&rows).unwrap()
}

#[track_caller]
fn assert_close(found: &[f64], known: &[f64]) {
    let apart = found.iter().zip(known).map(|(a, b)| (a - b).abs());
    assert!(
        found.len() == known.len() && apart.fold(0.0, f64::max) < 1e-12,
        "{found:?} instead of {known:?}"
    );
}

fn path() -> Matrix {
    matrix([
        [0.0, 0.9, 0.3, 0.1, 0.05],
        [0.9, 0.0, 0.8, 0.2, 0.1],
        [0.3, 0.8, 0.0, 0.7, 0.35],
        [0.1, 0.2, 0.7, 0.0, 0.6],
        [0.05, 0.1, 0.35, 0.6, 0.0],
    ])
}

#[test]
fn a_path_of_five() {
    let topology = Topology::learn(&path(), &TopologyOptions::default()).unwrap();
    let known = matrix([
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 1.0, 0.0, 1.0],
        [0.0, 0.0, 0.0, 1.0, 0.0],
    ]);
    assert_eq!(adjacency(&topology.graph), known);
    let similarities: Vec<f64> = topology.graph.edge_weights().copied().collect();
    assert_eq!(similarities, [0.9, 0.8, 0.7, 0.6]);
    assert_close(&topology.centrality, &[0.0, 0.5, 2.0 / 3.0, 0.5, 0.0]);
    let prior = [
        0.1380228609502245,
        0.22756122669152126,
        0.2688318247165084,
        0.22756122669152126,
        0.1380228609502245,
    ];
    assert_close(&topology.prior, &prior);
    assert_eq!(topology.components, [0; 5]);
    assert!(topology.isolated.is_empty());

    let raw = TopologyOptions {
        scale: Scale::Raw,
        ..TopologyOptions::default()
    };
    let prior = [
        0.010333864010783306,
        0.20756120714778833,
        0.5642098576828567,
        0.20756120714778833,
        0.010333864010783306,
    ];
    assert_close(&Topology::learn(&path(), &raw).unwrap().prior, &prior);
}

#[test]
fn a_cycle_with_a_tail_and_an_isolated_client() {
    let similarity = matrix([
        [0.0, 0.9, 0.9, 0.1, 0.0, 0.2],
        [0.9, 0.0, 0.1, 0.8, 0.1, 0.1],
        [0.9, 0.1, 0.0, 0.8, 0.2, 0.0],
        [0.1, 0.8, 0.8, 0.0, 0.5, 0.3],
        [0.0, 0.1, 0.2, 0.5, 0.0, 0.4],
        [0.2, 0.1, 0.0, 0.3, 0.4, 0.0],
    ]);
    let options = TopologyOptions {
        epsilon: 0.5,
        ..TopologyOptions::default()
    };
    let topology = Topology::learn(&similarity, &options).unwrap();
    let known = matrix([
        [0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 1.0, 1.0, 0.0, 1.0, 0.0],
        [0.0, 0.0, 0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    ]);
    // The similarity of 3 and 4 equals the threshold.
    assert_eq!(adjacency(&topology.graph), known);
    assert_close(&topology.centrality, &[0.05, 0.1, 0.1, 0.35, 0.0, 0.0]);
    let prior = [
        0.15735988262676054,
        0.165427896334637,
        0.165427896334637,
        0.21241362352285878,
        0.14968535059055332,
        0.14968535059055332,
    ];
    assert_close(&topology.prior, &prior);
    assert_eq!(topology.components, [0, 0, 0, 0, 0, 1]);
    assert_eq!(topology.isolated, [5]);
}

#[test]
fn all_metrics_find_the_same_central_client() {
    let by_l1 = [0.0, 0.2, 0.6, 0.6, 0.8, 1.0];
    let by_l2 = [
        0.0,
        0.18834516088404454,
        0.7029137097789888,
        0.7029137097789888,
        0.8319007788362094,
        1.0,
    ];
    let by_dot = [0.0, 0.3333333333333333, 0.5, 0.5, 0.6666666666666666, 1.0];
    let by_cos = [
        0.0,
        0.3437722882370306,
        0.6324555320336759,
        0.7480252293503521,
        0.957905697630583,
        1.0,
    ];
    for [r03, r13, r02, r23, r12, r01] in [by_l1, by_l2, by_dot, by_cos] {
        let similarity = matrix([
            [0.0, r01, r02, r03],
            [r01, 0.0, r12, r13],
            [r02, r12, 0.0, r23],
            [r03, r13, r23, 0.0],
        ]);
        let topology = Topology::learn(&similarity, &TopologyOptions::default()).unwrap();
        let known = matrix([
            [0.0, 1.0, 1.0, 0.0],
            [1.0, 0.0, 1.0, 0.0],
            [1.0, 1.0, 0.0, 1.0],
            [0.0, 0.0, 1.0, 0.0],
        ]);
        assert_eq!(adjacency(&topology.graph), known);
        assert_close(&topology.centrality, &[0.0, 0.0, 2.0 / 3.0, 0.0]);
        let other = 0.2021127230571263;
        assert_close(&topology.prior, &[other, other, 0.39366183082862116, other]);
    }
}

#[test]
fn empty_complete_and_small_graphs_give_a_uniform_prior() {
    for clients in 1..8 {
        for similarity in [0.0, 1.0] {
            let similarity = Matrix::from_fn(clients, clients, |_, _| similarity);
            let topology = Topology::learn(&similarity, &TopologyOptions::default()).unwrap();
            assert_close(&topology.prior, &uniform(clients));
            let alone = topology.isolated.len();
            assert!(alone == 0 && clients > 1 || alone == clients);
        }
    }
    let pair = matrix([[0.0, 1.0], [1.0, 0.0]]);
    let topology = Topology::learn(&pair, &TopologyOptions::default()).unwrap();
    assert_eq!(topology.prior, [0.5, 0.5]);
}

/// Cosines of the rows, normalised by their least and largest off the diagonal.
fn normalised_cosines(models: &[[f64; 3]]) -> Matrix {
    let dot = |a: &[f64; 3], b: &[f64; 3]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let cosine = |a: usize, b: usize| {
        let (a, b) = (&models[a], &models[b]);
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let n = models.len();
    let pairs = (0..n).flat_map(|b| (0..b).map(move |a| (a, b)));
    let (least, most) = pairs.fold(
        (f64::INFINITY, f64::NEG_INFINITY),
        |(least, most), (a, b)| (least.min(cosine(a, b)), most.max(cosine(a, b))),
    );
    Matrix::from_fn(n, n, |a, b| {
        let (a, b) = (a.min(b), a.max(b));
        if a == b {
            0.0
        } else {
            (cosine(a, b) - least) / (most - least)
        }
    })
}

#[test]
fn a_flipped_model_is_isolated_and_has_the_smallest_prior() {
    let mut models = [
        [1.0, 0.2, 0.1],
        [0.9, 0.6, 0.0],
        [0.4, 1.0, 0.2],
        [0.1, 0.9, 0.6],
        [0.5, 0.6, 0.4],
    ];
    let honest =
        Topology::learn(&normalised_cosines(&models), &TopologyOptions::default()).unwrap();
    assert!(honest.isolated.is_empty());
    models[4] = models[4].map(|weight| -weight);
    for centrality in [
        Centrality::Degree,
        Centrality::Closeness,
        Centrality::Eigenvector,
    ] {
        let options = TopologyOptions {
            centrality,
            ..TopologyOptions::default()
        };
        let topology = Topology::learn(&normalised_cosines(&models), &options).unwrap();
        assert_eq!(topology.isolated, [4]);
        assert!(
            topology.prior[..4]
                .iter()
                .all(|prior| *prior > topology.prior[4])
        );
    }
}

#[test]
fn invalid_similarities_are_refused() {
    let learn = |similarity: &Matrix, epsilon: f64| {
        let options = TopologyOptions {
            epsilon,
            ..TopologyOptions::default()
        };
        Topology::learn(similarity, &options).unwrap_err()
    };
    assert_eq!(learn(&Matrix::zeros(0, 0), 0.4), GraphError::Empty);
    let flat = GraphError::NotSquare {
        rows: 2,
        columns: 3,
    };
    assert_eq!(learn(&Matrix::zeros(2, 3), 0.4), flat);
    for epsilon in [-0.1, 1.1, f64::NAN] {
        assert!(matches!(learn(&path(), epsilon), GraphError::Epsilon(_)));
    }
    for odd in [f64::NAN, f64::INFINITY, -0.1, 1.1] {
        let mut similarity = path();
        similarity[(1, 3)] = odd;
        let error = learn(&similarity, 0.4);
        assert!(
            matches!(
                error,
                GraphError::Similarity {
                    row: 1,
                    column: 3,
                    ..
                }
            ),
            "{error}"
        );
    }
    for odd in [f64::NAN, 0.25] {
        let mut similarity = path();
        similarity[(3, 1)] = odd;
        let error = GraphError::Asymmetric { row: 1, column: 3 };
        assert_eq!(learn(&similarity, 0.4), error);
    }
    // The diagonal is not read.
    let mut similarity = path();
    similarity[(2, 2)] = f64::NAN;
    assert!(Topology::learn(&similarity, &TopologyOptions::default()).is_ok());
}

#[test]
fn options_have_defaults_and_names() {
    let options: TopologyOptions = serde_json::from_str("{}").unwrap();
    assert_eq!(options, TopologyOptions::default());
    let text =
        r#"{"epsilon": 0.5, "centrality": "degree", "scale": "raw", "lengths": "reciprocal"}"#;
    let known = TopologyOptions {
        epsilon: 0.5,
        centrality: Centrality::Degree,
        scale: Scale::Raw,
        lengths: Lengths::Reciprocal,
    };
    assert_eq!(
        serde_json::from_str::<TopologyOptions>(text).unwrap(),
        known
    );
    assert!(serde_json::from_str::<TopologyOptions>(r#"{"eps": 0.5}"#).is_err());
}

proptest! {
    #[test]
    fn the_order_of_clients_does_not_matter(
        values in prop::collection::vec(0.0..1.0f64, 100),
        keys in prop::collection::vec(any::<u64>(), 10),
        clients in 1usize..=10,
    ) {
        let similarity = Matrix::from_fn(clients, clients, |a, b| values[a.min(b) * 10 + a.max(b)]);
        let mut order: Vec<usize> = (0..clients).collect();
        order.sort_by_key(|&client| keys[client]);
        let shuffled = Matrix::from_fn(clients, clients, |a, b| similarity[(order[a], order[b])]);
        let before = Topology::learn(&similarity, &TopologyOptions::default()).unwrap();
        let after = Topology::learn(&shuffled, &TopologyOptions::default()).unwrap();
        let (old, new) = (adjacency(&before.graph), adjacency(&after.graph));
        for (at, &client) in order.iter().enumerate() {
            prop_assert!((after.prior[at] - before.prior[client]).abs() < 1e-12);
            prop_assert_eq!(after.isolated.contains(&at), before.isolated.contains(&client));
            for (other_at, &other) in order.iter().enumerate() {
                prop_assert_eq!(new[(at, other_at)], old[(client, other)]);
                prop_assert_eq!(
                    after.components[at] == after.components[other_at],
                    before.components[client] == before.components[other]
                );
            }
        }
        let total: f64 = before.prior.iter().sum();
        prop_assert!((total - 1.0).abs() < 1e-12);
        // Numbered by first clients.
        let mut next = 0;
        for &component in &before.components {
            prop_assert!(component <= next);
            next = next.max(component + 1);
        }
    }
}
