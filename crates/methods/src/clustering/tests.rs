//! FeSEM, IFCA and FLSC: chosen models and the resulting means.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::ifca::{flsc, flsc_start, ifca};
use super::*;
use crate::matrix::Matrix;
use crate::params::{Layout, MeanError, Params, Role, TensorSpec, squared_distance, weighted_mean};

fn model(values: &[f32]) -> Params {
    let spec = TensorSpec::new("w", [values.len()], Role::Weight);
    Params::from_values(&Layout::new(vec![spec]).unwrap(), values)
}

fn alone(assignment: &[u32]) -> impl Iterator<Item = &[u32]> {
    assignment.iter().map(std::slice::from_ref)
}

fn losses() -> Matrix {
    Matrix::from_rows(&[
        [0.3, 0.1, 0.2],
        [0.5, 0.5, 0.9],
        [0.0, 0.4, -0.0],
        [0.7, 0.6, 0.1],
    ])
    .unwrap()
}

#[test]
fn clients_choose_the_first_of_the_best() {
    assert_eq!(ifca(&losses()).unwrap(), [1, 0, 0, 2]);
    assert_eq!(
        flsc(&losses(), 2).unwrap(),
        [[1, 2], [0, 1], [0, 2], [2, 1]]
    );
    assert_eq!(flsc(&losses(), 3).unwrap()[3], [2, 1, 0]);
    assert_eq!(fesem::assign(&losses()).unwrap(), [1, 0, 0, 2]);
}

#[test]
fn the_models_that_were_chosen_follow_their_clients() {
    let trained = [[1.0], [3.0], [7.0], [5.0]].map(|values| model(&values));
    let weighted: Vec<_> = trained.iter().zip([1.0, 3.0, 1.0, 2.0]).collect();
    let before = [[10.0], [20.0], [30.0], [40.0]].map(|values| model(&values));
    let chosen = flsc(&losses(), 2).unwrap();
    let members = groups::members(chosen.iter().map(Vec::as_slice), 4).unwrap();
    assert_eq!(members, [vec![1, 2], vec![0, 1, 3], vec![0, 2, 3], vec![]]);
    let after = groups::means(&weighted, &members, &before).unwrap();
    let values: Vec<f32> = after.iter().map(|model| model.values()[0]).collect();
    // Nobody chose the last: it stays.
    assert_eq!(values, [16.0 / 4.0, 20.0 / 6.0, 18.0 / 4.0, 40.0]);
    assert_eq!(flsc_start(&chosen[3], &before).unwrap(), model(&[25.0]));
}

/// FeSEM alternates both steps until nothing changes, and what it minimises falls.
#[test]
fn both_steps_of_fesem_lower_the_distances() {
    let trained: Vec<Params> = [
        [0.0, 0.1],
        [5.0, 5.0],
        [0.2, 0.0],
        [5.5, 4.0],
        [0.1, 0.4],
        [4.0, 5.0],
    ]
    .iter()
    .map(|values| model(values))
    .collect();
    let weighted: Vec<_> = trained.iter().map(|model| (model, 1.0)).collect();
    let mut centres = vec![model(&[0.0, 0.0]), model(&[1.0, 0.0]), model(&[900.0, 0.0])];
    let distances = |centres: &[Params]| {
        Matrix::from_fn(6, 3, |client, centre| {
            squared_distance(&trained[client], &centres[centre]).unwrap()
        })
    };
    let cost = |distances: &Matrix, assignment: &[u32]| -> f64 {
        assignment
            .iter()
            .enumerate()
            .map(|(client, &own)| distances[(client, own as usize)])
            .sum()
    };
    let mut last = f64::INFINITY;
    let mut assignment = Vec::new();
    for _ in 0..4 {
        let at = distances(&centres);
        assignment = fesem::assign(&at).unwrap();
        assert!(cost(&at, &assignment) <= last);
        let members = groups::members(alone(&assignment), 3).unwrap();
        centres = groups::means(&weighted, &members, &centres).unwrap();
        last = cost(&distances(&centres), &assignment);
    }
    assert_eq!(assignment, [0, 1, 0, 1, 0, 1]);
    assert_eq!(centres[2], model(&[900.0, 0.0]));
}

#[test]
fn invalid_losses_are_refused() {
    let no_models = ClusteringError::TooFew {
        what: "clusters",
        needed: 1,
        got: 0,
    };
    assert_eq!(ifca(&Matrix::zeros(2, 0)), Err(no_models));
    assert!(matches!(
        fesem::assign(&Matrix::zeros(0, 2)),
        Err(ClusteringError::TooFew {
            what: "clients",
            ..
        })
    ));
    let mut bad = losses();
    bad[(3, 1)] = f64::NAN;
    let not_finite = |what| ClusteringError::NotFinite {
        what,
        row: 3,
        column: 1,
    };
    assert_eq!(ifca(&bad), Err(not_finite("losses")));
    assert_eq!(flsc(&bad, 1), Err(not_finite("losses")));
    assert_eq!(fesem::assign(&bad), Err(not_finite("distances")));
    for select in [0, 4] {
        assert!(matches!(
            flsc(&losses(), select),
            Err(ClusteringError::Option {
                option: "select",
                ..
            })
        ));
    }
    let beyond = ClusteringError::NoSuchCluster {
        client: 1,
        cluster: 3,
        clusters: 3,
    };
    assert_eq!(groups::members(alone(&[0, 3]), 3), Err(beyond));
    let (a, b) = (model(&[1.0]), model(&[1.0, 2.0]));
    assert!(matches!(
        groups::means(&[(&a, 1.0)], &[vec![0]], &[]),
        Err(ClusteringError::Mismatch {
            expected: 1,
            got: 0,
            ..
        })
    ));
    assert!(matches!(
        groups::means(&[(&a, 1.0)], &[vec![0, 1]], std::slice::from_ref(&a)),
        Err(ClusteringError::Mismatch {
            expected: 2,
            got: 1,
            ..
        })
    ));
    assert_eq!(
        groups::means(
            &[(&a, 1.0), (&b, 1.0)],
            &[vec![0, 1]],
            std::slice::from_ref(&a)
        ),
        Err(MeanError::Layout.into())
    );
    assert_eq!(
        flsc_start(&[], std::slice::from_ref(&a)),
        Err(MeanError::Empty.into())
    );
    assert!(flsc_start(&[1], std::slice::from_ref(&a)).is_err());
}

fn some_losses() -> impl Strategy<Value = Matrix> {
    (1..8usize, 1..6usize).prop_flat_map(|(clients, models)| {
        let loss = prop_oneof![0.0..1.0f64, (0..3u8).prop_map(f64::from)];
        prop::collection::vec(loss, clients * models)
            .prop_map(move |values| Matrix::from_fn(clients, models, |i, j| values[i * models + j]))
    })
}

proptest! {
    #[test]
    fn flsc_with_one_model_is_ifca(losses in some_losses()) {
        let one: Vec<u32> = flsc(&losses, 1).unwrap().concat();
        prop_assert_eq!(&one, &ifca(&losses).unwrap());
        for (client, &own) in one.iter().enumerate() {
            let row = losses.row(client);
            let least = row.iter().copied().fold(f64::INFINITY, f64::min);
            prop_assert_eq!(row.iter().position(|loss| *loss == least), Some(own as usize));
        }
    }

    #[test]
    fn flsc_leaves_only_worse_models(losses in some_losses(), select in 1..6usize) {
        prop_assume!(select <= losses.columns());
        for (client, chosen) in flsc(&losses, select).unwrap().iter().enumerate() {
            let row = losses.row(client);
            prop_assert!(chosen.is_sorted_by(|&a, &b| row[a as usize] <= row[b as usize]));
            let worst = chosen.iter().map(|&own| row[own as usize]).fold(0.0, f64::max);
            let others = (0..row.len() as u32).filter(|own| !chosen.contains(own));
            for other in others {
                prop_assert!(row[other as usize] >= worst);
            }
        }
    }

    /// With one model, IFCA is FedAvg with equal weights.
    #[test]
    fn one_model_is_the_mean_of_all(values in prop::collection::vec(-1e3f32..1e3, 1..9)) {
        let trained: Vec<Params> = values.iter().map(|&value| model(&[value])).collect();
        let weighted: Vec<_> = trained.iter().map(|model| (model, 1.0)).collect();
        let assignment = ifca(&Matrix::from_fn(values.len(), 1, |i, _| i as f64)).unwrap();
        let members = groups::members(alone(&assignment), 1).unwrap();
        let models = groups::means(&weighted, &members, &[model(&[0.0])]).unwrap();
        prop_assert_eq!(&models[0], &weighted_mean(&weighted).unwrap());
    }
}
