#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::similarity::gram_f64;

fn gram_of(points: &[Vec<f64>]) -> Matrix {
    gram_f64(&Vectors::new(points).unwrap()).unwrap()
}

/// Inertia from the points themselves.
fn inertia(points: &[Vec<f64>], labels: &[u32]) -> f64 {
    let clusters = labels.iter().max().unwrap() + 1;
    (0..clusters)
        .map(|cluster| {
            let members: Vec<_> = points
                .iter()
                .zip(labels)
                .filter(|(_, label)| **label == cluster)
                .collect();
            (0..points[0].len())
                .map(|column| {
                    let values = members.iter().map(|(point, _)| point[column]);
                    let mean = values.clone().sum::<f64>() / members.len() as f64;
                    values
                        .map(|value| (value - mean) * (value - mean))
                        .sum::<f64>()
                })
                .sum::<f64>()
        })
        .sum()
}

/// The least inertia over all groupings into `clusters` clusters, by trying every one.
fn optimum(points: &[Vec<f64>], clusters: u32) -> f64 {
    fn extend(points: &[Vec<f64>], clusters: u32, labels: &mut Vec<u32>, best: &mut f64) {
        let used = labels.iter().max().map_or(0, |&label| label + 1);
        if labels.len() == points.len() {
            if used == clusters {
                *best = best.min(inertia(points, labels));
            }
            return;
        }
        for label in 0..clusters.min(used + 1) {
            labels.push(label);
            extend(points, clusters, labels, best);
            labels.pop();
        }
    }
    let mut best = f64::INFINITY;
    extend(points, clusters, &mut Vec::new(), &mut best);
    best
}

/// Points around `(10·g, ±10·g)` for group `g = i mod groups`.
fn grouped(n: usize, groups: usize, noise: &[f64]) -> Vec<Vec<f64>> {
    (0..n)
        .map(|i| {
            let group = (i % groups) as f64;
            let side = if i % 2 == 0 { 1.0 } else { -1.0 };
            let centre = [
                10.0 * group,
                10.0 * group * if groups.is_multiple_of(2) { side } else { 1.0 },
            ];
            vec![centre[0] + noise[2 * i], centre[1] + noise[2 * i + 1]]
        })
        .collect()
}

#[test]
fn known_groups_are_found() {
    let noise: Vec<_> = (0..60)
        .map(|i| f64::from(i * 37 % 11) / 11.0 - 0.5)
        .collect();
    let points = grouped(30, 3, &noise);
    let found = KMeans::new(3, 1).fit(&gram_of(&points)).unwrap();
    let expected: Vec<u32> = (0..30).map(|i| i % 3).collect();
    assert_eq!(found.labels, expected);
    assert!((found.inertia - inertia(&points, &expected)).abs() < 1e-9);
    assert!(found.iterations <= 300);
}

#[test]
fn one_cluster_and_all_alone() {
    let points = grouped(6, 3, &[0.25; 12]);
    let gram = gram_of(&points);
    let one = KMeans::new(1, 1).fit(&gram).unwrap();
    assert_eq!(one.labels, [0; 6]);
    assert!((one.inertia - inertia(&points, &[0; 6])).abs() < 1e-9);
    let noise: Vec<_> = (0..12).map(f64::from).collect();
    let alone = KMeans::new(6, 1)
        .fit(&gram_of(&grouped(6, 3, &noise)))
        .unwrap();
    assert_eq!(alone.labels, [0, 1, 2, 3, 4, 5]);
    assert!(alone.inertia < 1e-9);
}

#[test]
fn equal_points_fill_all_clusters() {
    let points = vec![vec![1.0, 2.0]; 5];
    for clusters in 1..=5 {
        let found = KMeans::new(clusters, 3).fit(&gram_of(&points)).unwrap();
        let used = found.labels.iter().max().unwrap() + 1;
        assert_eq!(used as usize, clusters);
        assert_eq!(found.inertia, 0.0);
    }
}

#[test]
fn an_empty_cluster_gets_the_farthest_point() {
    let mut labels = vec![0, 0, 0, 2, 2];
    let mut squares = vec![1.0, 4.0, 3.0, 2.0, 9.0];
    fill(&mut labels, 4, &mut squares);
    // 9 of cluster 2 first; then its other member is alone, so 4 of cluster 0.
    assert_eq!(labels, [0, 3, 0, 2, 1]);
    assert_eq!(squares, [1.0, 0.0, 3.0, 2.0, 0.0]);
}

#[test]
fn a_cluster_that_loses_all_points_gets_another() {
    // From these labels, the mean of cluster 1 (at 0) lies between those of 0 and 2, which are
    // nearer to both of its points.
    let points: Vec<_> = [-10.0, 10.0, -9.0, -9.5, 9.0, 9.5]
        .map(|x| vec![x])
        .to_vec();
    let labels = vec![1, 1, 0, 0, 2, 2];
    let gram = gram_of(&points);
    let squares = Squares::new(&gram, &labels, 3);
    let next = squares.nearest(&labels);
    assert_eq!(next, [1, 2, 0, 0, 2, 2]);
    let found = descend(&gram, 3, labels, 300);
    assert!((found.inertia - inertia(&points, &found.labels)).abs() < 1e-9);
    assert!(found.iterations > 0);
}

#[test]
fn invalid_input_is_refused() {
    let gram = gram_of(&grouped(3, 3, &[0.0; 6]));
    for clusters in [0, 4] {
        let error = KMeansError::Clusters {
            clusters,
            points: 3,
        };
        assert_eq!(KMeans::new(clusters, 0).fit(&gram), Err(error));
    }
    let error = KMeansError::NotSquare {
        rows: 2,
        columns: 3,
    };
    assert_eq!(KMeans::new(1, 0).fit(&Matrix::zeros(2, 3)), Err(error));
    for bad in [f64::NAN, f64::NEG_INFINITY, 1e101] {
        let mut gram = gram.clone();
        gram[(2, 1)] = bad;
        let error = KMeansError::NotFinite { row: 2, column: 1 };
        assert_eq!(KMeans::new(1, 0).fit(&gram), Err(error));
    }
    let rows = [[0.0f32], [f32::NAN]];
    let error = CompareError::NotFinite { row: 1, column: 0 };
    let found = KMeans::new(1, 0).fit_rows_f64(&Vectors::new(&rows).unwrap());
    assert_eq!(found, Err(KMeansError::Points(error)));
}

#[test]
fn near_equal_models_far_away_are_told_apart() {
    // Three groups whose members differ in the last digits of their values only.
    let (n, d) = (60, 10_000);
    let models: Vec<Vec<f32>> = (0..n)
        .map(|row| {
            let ulps = [0.0, 3.0, -5.0][row % 3];
            (0..d)
                .map(|c| 100.0 + (c % 7) as f32 + 1e-5 * ulps * (c % 5) as f32)
                .collect()
        })
        .collect();
    let rows = Vectors::new(&models).unwrap();
    let expected: Vec<u32> = (0..n as u32).map(|row| row % 3).collect();
    for (starts, seed) in [(1, 1), (10, 2)] {
        let kmeans = KMeans {
            starts,
            ..KMeans::new(3, seed)
        };
        let found = kmeans.fit_rows_f64(&rows).unwrap();
        assert_eq!(found.labels, expected);
        assert_eq!(found.inertia, 0.0);
    }
}

proptest! {
    #[test]
    fn separated_points_are_clustered_optimally(
        groups in 2..5usize,
        noise in prop::collection::vec(-1f64..1.0, 16),
        seed in any::<u64>(),
    ) {
        let points = grouped(8, groups, &noise);
        let found = KMeans::new(groups, seed).fit(&gram_of(&points)).unwrap();
        let optimum = optimum(&points, groups as u32);
        prop_assert!((found.inertia - optimum).abs() < 1e-9, "{} {optimum}", found.inertia);
    }

    /// On points without any groups: never below the optimum, what it states is what the labels
    /// give, and no other start of Lloyd's iterations from its result gets lower.
    #[test]
    fn the_inertia_is_exact_and_a_local_optimum(
        values in prop::collection::vec(-1f64..1.0, 16),
        clusters in 1..5usize,
        seed in any::<u64>(),
    ) {
        let points: Vec<_> = values.chunks(2).map(<[f64]>::to_vec).collect();
        let gram = gram_of(&points);
        let found = KMeans::new(clusters, seed).fit(&gram).unwrap();
        prop_assert!((found.inertia - inertia(&points, &found.labels)).abs() < 1e-9);
        prop_assert!(found.inertia > optimum(&points, clusters as u32) - 1e-9);
        prop_assert_eq!(canonical(&found.labels), found.labels.clone());
        let again = descend(&gram, clusters, found.labels.clone(), 300);
        prop_assert!(again.inertia > found.inertia - 1e-9);
    }

    #[test]
    fn iterations_never_raise_the_inertia(
        values in prop::collection::vec(-1f64..1.0, 60),
        labels in prop::collection::vec(0..4u32, 26),
    ) {
        let points: Vec<_> = values.chunks(2).map(<[f64]>::to_vec).collect();
        // The first four make sure that no cluster is empty.
        let mut labels: Vec<u32> = (0..4).chain(labels).collect();
        let gram = gram_of(&points);
        let mut before = inertia(&points, &labels);
        for _ in 0..20 {
            labels = Squares::new(&gram, &labels, 4).nearest(&labels);
            let after = inertia(&points, &labels);
            prop_assert!(after <= before + 1e-12, "{after} {before}");
            before = after;
        }
    }

    /// Points in another order, or moved alike: the same groups.
    #[test]
    fn order_and_position_of_separated_points_do_not_matter(
        noise in prop::collection::vec(-1f64..1.0, 24),
        order in Just((0..12).collect::<Vec<usize>>()).prop_shuffle(),
        shift in -50f64..50.0,
    ) {
        let points = grouped(12, 3, &noise);
        let moved: Vec<Vec<f64>> =
            order.iter().map(|&i| points[i].iter().map(|value| value + shift).collect()).collect();
        let plain = KMeans::new(3, 5).fit(&gram_of(&points)).unwrap();
        let other = KMeans::new(3, 6).fit(&gram_of(&moved)).unwrap();
        let permuted: Vec<_> = order.iter().map(|&i| plain.labels[i]).collect();
        prop_assert_eq!(canonical(&permuted), other.labels);
        prop_assert!((plain.inertia - other.inertia).abs() < 1e-8);
    }
}
