#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;

/// Products of updates.
fn gram(updates: &[[f64; 2]]) -> Matrix {
    Matrix::from_fn(updates.len(), updates.len(), |i, j| {
        updates[i][0] * updates[j][0] + updates[i][1] * updates[j][1]
    })
}

/// Two pairs of updates that point in different directions.
const FOUR: [[f64; 2]; 4] = [[1.0, 0.1], [0.9, -0.2], [-0.2, 1.0], [0.1, 0.8]];

#[test]
fn four_clients_have_the_known_norms_cosines_and_parts() {
    let gram = gram(&FOUR);
    let norms = norms(&gram, &[0, 1, 2, 3]);
    assert!((norms.mean - 0.618_970_920_156_997_4).abs() < 1e-12);
    assert!((norms.largest - 1.019_803_902_718_557).abs() < 1e-12);
    let known = [
        [
            1.0,
            0.949_757_042_162_905_7,
            -0.097_571_424_031_370_59,
            0.222_154_512_829_357_94,
        ],
        [
            0.949_757_042_162_905_7,
            1.0,
            -0.404_163_848_320_941_15,
            -0.094_174_191_159_483_75,
        ],
        [
            -0.097_571_424_031_370_59,
            -0.404_163_848_320_941_15,
            1.0,
            0.948_683_298_050_513_7,
        ],
        [
            0.222_154_512_829_357_94,
            -0.094_174_191_159_483_75,
            0.948_683_298_050_513_7,
            1.0,
        ],
    ];
    let cosines = cosines(&gram, &[0, 1, 2, 3]);
    for (cosine, known) in cosines.values().iter().zip(known.iter().flatten()) {
        assert!((cosine - known).abs() < 1e-12);
    }
    for linkage in [Linkage::Single, Linkage::Complete] {
        let parts = bipartition(&cosines, linkage).unwrap();
        assert_eq!(parts.assignment, [0, 0, 1, 1]);
        assert!((parts.cross - 0.222_154_512_829_357_94).abs() < 1e-12);
    }
}

#[test]
fn a_cluster_is_split_only_when_all_conditions_hold() {
    let cfl = CflRule::default();
    let settled = Norms {
        mean: 0.39,
        largest: 1.61,
    };
    assert!(cfl.splits(settled, 3, 21));
    assert!(!cfl.splits(
        Norms {
            mean: 0.4,
            ..settled
        },
        3,
        21
    ));
    assert!(!cfl.splits(
        Norms {
            largest: 1.6,
            ..settled
        },
        3,
        21
    ));
    assert!(!cfl.splits(settled, 2, 21));
    assert!(!cfl.splits(settled, 3, 20));
    // One client has no parts, whatever the options.
    assert!(
        !CflRule {
            larger_than: 0,
            ..cfl
        }
        .splits(settled, 1, 21)
    );
}

#[test]
fn every_cluster_is_split_on_its_own() {
    // Two clusters of four whose updates cancel, and one of one.
    let mut updates = Vec::new();
    for size in [2.0, 3.0] {
        updates.extend([[size, 0.1], [-size, 0.0], [size, -0.1], [-size, 0.0]]);
    }
    updates.push([0.0, 9.0]);
    let gram = gram(&updates);
    let together = [0, 0, 0, 0, 1, 1, 1, 1, 2];
    let cfl = CflRule::default();
    assert_eq!(cfl.refine(&gram, &together, 20).unwrap(), together);
    assert_eq!(
        cfl.refine(&gram, &together, 21).unwrap(),
        [0, 1, 0, 1, 2, 3, 2, 3, 4]
    );
    // Clusters that need not be numbered in order, and only one of which is large enough.
    let larger = CflRule {
        larger_than: 3,
        ..cfl
    };
    assert_eq!(
        larger
            .refine(&gram, &[7, 7, 7, 5, 1, 1, 1, 1, 2], 21)
            .unwrap(),
        [0, 0, 0, 1, 2, 3, 2, 3, 4]
    );
    // Updates that agree are not split.
    let agreeing = Matrix::from_fn(4, 4, |_, _| 9.0);
    assert_eq!(cfl.refine(&agreeing, &[0; 4], 99).unwrap(), [0; 4]);
}

#[test]
fn a_zero_update_has_cosine_zero() {
    let cosines = cosines(&gram(&[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), &[0, 1, 2]);
    let rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 1.0]];
    assert_eq!(cosines, Matrix::from_rows(&rows).unwrap());
}

/// Joining by the least alike makes even parts, across which a pair may be more alike than need
/// be.
#[test]
fn complete_linkage_does_not_always_minimise() {
    let star = [
        [1.0, 0.9, 0.7, 0.0],
        [0.9, 1.0, 0.0, 0.0],
        [0.7, 0.0, 1.0, 0.5],
        [0.0, 0.0, 0.5, 1.0],
    ];
    let star = Matrix::from_rows(&star).unwrap();
    let complete = bipartition(&star, Linkage::Complete).unwrap();
    assert_eq!(
        (complete.assignment, complete.cross),
        (vec![0, 0, 1, 1], 0.7)
    );
    let single = bipartition(&star, Linkage::Single).unwrap();
    assert_eq!((single.assignment, single.cross), (vec![0, 0, 0, 1], 0.5));
}

#[test]
fn ties_go_to_the_first_pair() {
    let equal = Matrix::from_fn(5, 5, |_, _| 1.0);
    for linkage in [Linkage::Single, Linkage::Complete] {
        let parts = bipartition(&equal, linkage).unwrap();
        assert_eq!((parts.assignment, parts.cross), (vec![0, 0, 0, 0, 1], 1.0));
    }
    let two = bipartition(&Matrix::from_fn(2, 2, |_, _| -1.0), Linkage::Single).unwrap();
    assert_eq!((two.assignment, two.cross), (vec![0, 1], -1.0));
}

#[test]
fn invalid_similarities_are_refused() {
    let too_few = |got| ClusteringError::TooFew {
        what: "clients",
        needed: 2,
        got,
    };
    let single = |matrix: &Matrix| bipartition(matrix, Linkage::Single).unwrap_err();
    assert_eq!(single(&Matrix::zeros(1, 1)), too_few(1));
    assert!(matches!(
        single(&Matrix::zeros(0, 0)),
        ClusteringError::TooFew { got: 0, .. }
    ));
    assert!(matches!(
        single(&Matrix::zeros(2, 3)),
        ClusteringError::Mismatch {
            expected: 2,
            got: 3,
            ..
        }
    ));
    let mut bad = Matrix::zeros(3, 3);
    bad[(2, 1)] = f64::NAN;
    let not_finite = |what| ClusteringError::NotFinite {
        what,
        row: 2,
        column: 1,
    };
    assert_eq!(single(&bad), not_finite("similarities"));
    let cfl = CflRule::default();
    assert_eq!(cfl.refine(&bad, &[0; 3], 1), Err(not_finite("products")));
    assert!(matches!(
        cfl.refine(&Matrix::zeros(3, 3), &[0; 2], 1),
        Err(ClusteringError::Mismatch {
            expected: 3,
            got: 2,
            ..
        })
    ));
    for bad in [-0.1, f64::NAN, f64::INFINITY] {
        let error = CflRule {
            mean_below: bad,
            ..cfl
        }
        .validate()
        .unwrap_err();
        assert!(matches!(
            error,
            ClusteringError::Option {
                option: "mean-below",
                ..
            }
        ));
        let error = CflRule {
            largest_above: bad,
            ..cfl
        }
        .refine(&Matrix::zeros(1, 1), &[0], 1)
        .unwrap_err();
        assert!(matches!(
            error,
            ClusteringError::Option {
                option: "largest-above",
                ..
            }
        ));
    }
}

/// Symmetric similarities; few distinct ones, so that there are ties.
fn similarities() -> impl Strategy<Value = Matrix> {
    (2..9usize).prop_flat_map(|n| {
        let value = prop_oneof![-1.0..1.0f64, (-2..3i8).prop_map(|v| f64::from(v) / 2.0)];
        prop::collection::vec(value, n * n)
            .prop_map(move |values| Matrix::from_fn(n, n, |i, j| values[i.min(j) * n + i.max(j)]))
    })
}

/// The largest similarity across, by its definition.
fn cross(similarity: &Matrix, parts: impl Fn(usize) -> bool) -> f64 {
    let n = similarity.rows();
    let pairs = (0..n * n)
        .map(|at| (at / n, at % n))
        .filter(|&(i, j)| parts(i) != parts(j));
    pairs
        .map(|pair| similarity[pair])
        .fold(f64::NEG_INFINITY, f64::max)
}

proptest! {
    #[test]
    fn single_linkage_minimises_the_largest_similarity_across(similarity in similarities()) {
        let n = similarity.rows();
        let best = (1..(1u32 << n) - 1)
            .map(|set| cross(&similarity, |client| set >> client & 1 == 1))
            .fold(f64::INFINITY, f64::min);
        for linkage in [Linkage::Single, Linkage::Complete] {
            let found = bipartition(&similarity, linkage).unwrap();
            prop_assert!(found.assignment.contains(&1) && found.assignment[0] == 0);
            let second = |client: usize| found.assignment[client] == 1;
            prop_assert_eq!(found.cross, cross(&similarity, second));
            prop_assert!(found.cross >= best);
            if linkage == Linkage::Single {
                prop_assert_eq!(found.cross, best);
            }
        }
    }

    #[test]
    fn refining_never_joins_clients(
        updates in prop::collection::vec(prop::array::uniform2(-3.0..3.0f64), 1..9),
        labels in prop::collection::vec(0..3u32, 9),
        round in 0..40u64,
    ) {
        let before = &labels[..updates.len()];
        let after = CflRule::default().refine(&gram(&updates), before, round).unwrap();
        prop_assert_eq!(canonical(&after), after.clone());
        for i in 0..before.len() {
            for j in 0..i {
                prop_assert!(after[i] != after[j] || before[i] == before[j]);
            }
        }
    }
}
