//! Known results, and every rule compared with its definition.

use proptest::prelude::*;

use super::*;

#[test]
fn means_of_locally_trained_models() {
    let mean = |values: [f32; 2], weights: [f64; 2]| {
        let models = models(&values.map(|value| [value]));
        let mean =
            Aggregation::Mean.combine(&weighted(&models, &weights), ReferenceModels::default());
        mean.unwrap().values()[0]
    };
    // FedAvg, equally weighted and by 30 and 10 rows; FedProx with μ = 1.
    assert!((mean([0.729, 1.657], [1.0, 1.0]) - 1.193).abs() < 1e-6);
    assert!((mean([0.729, 1.657], [30.0, 10.0]) - 0.961).abs() < 1e-6);
    assert!((mean([0.756, 1.588], [1.0, 1.0]) - 1.172).abs() < 1e-6);
}

#[test]
fn medians_of_a_few() {
    let four = models(&[[1.0, -1.0], [2.0, 8.0], [9.0, 3.0], [4.0, 0.0]]);
    assert_eq!(
        combine(&Aggregation::CoordinateMedian, &four[..3]).values(),
        [2.0, 3.0]
    );
    assert_eq!(
        combine(&Aggregation::CoordinateMedian, &four).values(),
        [3.0, 1.5]
    );
    // Of the values 1, 2, 4, 9 with weights 1, 3, 1, 1: half of the weight is below 3.
    let by = |weights: [f64; 4]| {
        let with = weighted(&four, &weights);
        let median = Aggregation::CoordinateMedian.combine(&with, ReferenceModels::default());
        median.unwrap().values().to_vec()
    };
    assert_eq!(by([1.0, 3.0, 1.0, 1.0]), [2.0, 5.5]);
    // The same weights in another unit, which does not represent them exactly.
    assert_eq!(by([0.1, 0.3, 0.1, 0.1]), [2.0, 5.5]);
    assert_eq!(by([1.0, 2.0, 1.0, 0.0]), [2.0, 5.5]);
    assert_eq!(by([1.0, 0.0, 5.0, 1.0]), [9.0, 3.0]);
}

#[test]
fn a_trimmed_mean_of_a_few() {
    let five = models(&[[1.0], [100.0], [2.0], [-50.0], [6.0]]);
    assert_eq!(
        combine(&Aggregation::TrimmedMean { share: 0.2 }, &five).values(),
        [3.0]
    );
    assert_eq!(
        combine(&Aggregation::TrimmedMean { share: 0.4 }, &five).values(),
        [2.0]
    );
    assert_eq!(
        combine(&Aggregation::TrimmedMean { share: 0.19 }, &five).values(),
        [11.8]
    );
    let with = weighted(&five, &[1.0, 7.0, 3.0, 7.0, 4.0]);
    let rule = Aggregation::TrimmedMean { share: 0.2 };
    let mean = rule.combine(&with, ReferenceModels::default()).unwrap();
    assert_eq!(mean.values(), [(1.0 + 6.0 + 24.0) / 8.0]);
    // 0.29 is stored as less than it says.
    assert_eq!(trimmed::left_out_at_each_end(0.29, 100), 29);
}

#[test]
fn geometric_medians_of_triangles_are_fermat_points() {
    let rule = Aggregation::GeometricMedian {
        smoothing: 1e-6,
        tolerance: 1e-6,
        iterations: 1000,
    };
    let near = |rows: &[[f32; 2]], expected: [f32; 2]| {
        let median = combine(&rule, &models(rows));
        assert!(
            distance(median.values(), &expected) < 1e-4,
            "{:?}",
            median.values()
        );
    };
    // All angles below 120°: the sides are seen under 120° each.
    let top = 3f32.sqrt() / 2.0;
    near(&[[0.0, 0.0], [1.0, 0.0], [0.5, top]], [0.5, top / 3.0]);
    // An angle above 120°: that corner.
    near(&[[0.0, 0.0], [5.0, 0.5], [-5.0, 0.5]], [0.0, 0.0]);
    // A convex quadrilateral: where the diagonals cross.
    near(
        &[[0.0, 0.0], [4.0, 0.0], [3.0, 2.0], [0.0, 1.0]],
        [12.0 / 11.0, 8.0 / 11.0],
    );
    // The coordinate median is a model here, but not the geometric median: that is (t, t) with
    // 2(4t + 18) = √2·√(2t² + 18t + 101).
    let (a, b, t) = ([1.0, -10.0], [-10.0, 1.0], -3.079_904);
    near(&[[0.0, 0.0], a, a, b, b], [t, t]);
}

#[test]
fn on_a_line_the_geometric_median_is_the_median() {
    let five = models(&[[3.0], [-1.0], [10.0], [4.0], [1e30]]);
    let median = combine(&named("geometric-median"), &five).values()[0];
    assert!((median - 4.0).abs() < 1e-4, "{median}");
}

/// Two models that are nearest to each other have equal scores; a model may be as near to one as
/// to another.
#[test]
fn ties_are_broken_by_values_and_not_by_order() {
    let krum = Aggregation::Krum { byzantine: 0 };
    let mixing = mixed(1, Aggregation::CoordinateMedian);
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let pair = models(&order.map(|row| [[1.0, 3.0], [1.0, 2.0], [5.0, 0.0]][row]));
        assert_eq!(combine(&krum, &pair).values(), [1.0, 2.0]);
        // The one in the middle goes with the smaller.
        let line = models(&order.map(|row| [[-1.0], [0.0], [1.0]][row]));
        assert_eq!(combine(&mixing, &line).values(), [-0.5]);
    }
}

#[test]
fn clipping_moves_by_the_radius_and_is_the_mean_if_it_is_large() {
    let three = models(&[[1.0, 0.0], [4.0, 3.0], [-2.0, 6.0]]);
    let clipping = |radius, iterations| Aggregation::CentredClipping {
        radius: Some(radius),
        iterations,
        start: ClippingStart::Start,
    };
    let start = model(&[1.0, -1.0]);
    let from_start = |rule: Aggregation| {
        let references = ReferenceModels {
            start: Some(&start),
            trusted: None,
        };
        rule.combine(&equally(&three), references).unwrap()
    };
    assert_eq!(from_start(clipping(100.0, 1)).values(), [1.0, 3.0]);
    // Updates (0, 1), (3, 4), (−3, 7) of lengths 1, 5, √58, cut to 2.
    let (b, c) = (2.0 / 5.0, 2.0 / 58f64.sqrt());
    let expected = [
        1.0 + (3.0 * b - 3.0 * c) / 3.0,
        -1.0 + (1.0 + 4.0 * b + 7.0 * c) / 3.0,
    ];
    let clipped = from_start(clipping(2.0, 1));
    assert!(distance(clipped.values(), &expected.map(|value| value as f32)) < 1e-6);
    let thrice = from_start(clipping(0.5, 3));
    assert!(distance(thrice.values(), start.values()) <= 1.5);
}

#[test]
fn trust_is_the_cosine_with_the_trusted_update() {
    let (start, trusted) = (model(&[1.0, 1.0]), model(&[1.0, 3.0]));
    let references = ReferenceModels {
        start: Some(&start),
        trusted: Some(&trusted),
    };
    let combined = |rows: &[[f32; 2]], weights: &[f64]| {
        let models = models(rows);
        let combined = Aggregation::TrustWeighted.combine(&weighted(&models, weights), references);
        combined.unwrap().values().to_vec()
    };
    // Alike, at a right angle, opposite: only the first counts, scaled to the trusted length.
    let rows = [[1.0, 11.0], [7.0, 1.0], [1.0, -4.0]];
    assert_eq!(combined(&rows, &[1.0, 1.0, 1.0]), [1.0, 3.0]);
    // Nobody is trusted: nothing moves.
    assert_eq!(combined(&rows[1..], &[1.0, 1.0]), start.values());
    assert_eq!(combined(&[[1.0, 1.0]], &[1.0]), start.values());
    // Cosines 1 and 0.6, weights 1 and 3: shares 1/2.8 and 1.8/2.8 of (0, 2) and (1.6, 1.2).
    let both = combined(&[[1.0, 2.0], [5.0, 4.0]], &[1.0, 3.0]);
    let expected = [1.0 + 1.6 * 1.8 / 2.8, 1.0 + (2.0 + 1.2 * 1.8) / 2.8];
    assert!(
        distance(&both, &expected.map(|value: f64| value as f32)) < 1e-6,
        "{both:?}"
    );
}

#[test]
fn a_step_adds_updates_times_their_coefficients() {
    let start = model(&[1.0, -2.0]);
    let (a, b) = (model(&[3.0, 0.0]), model(&[0.0, -6.0]));
    let moved = step(&start, &[(&a, 0.5), (&b, 2.0)]).unwrap();
    assert_eq!(moved.values(), [1.0 + 1.0 - 2.0, -2.0 + 1.0 - 8.0]);
    assert_eq!(step(&start, &[]).unwrap(), start);
    assert_eq!(
        step(&start, &[(&model(&[1.0]), 1.0)]),
        Err(AggregationError::Layout)
    );
    for (model, coefficient) in [(&a, f64::NAN), (&a, 1e39), (&model(&[f32::NAN, 0.0]), 0.0)] {
        assert_eq!(
            step(&start, &[(model, coefficient)]),
            Err(AggregationError::Diverged)
        );
    }
}

/// Models of equal length with weights from 1 to 9.
fn some() -> impl Strategy<Value = (Vec<Vec<f32>>, Vec<f64>)> {
    (1..24usize, 1..80usize).prop_flat_map(|(count, len)| {
        let value = prop_oneof![
            -1e3f32..1e3,
            Just(0.0),
            Just(-0.0),
            Just(1.0),
            -1e30f32..1e30
        ];
        (
            prop::collection::vec(prop::collection::vec(value, len), count),
            prop::collection::vec((1..10u8).prop_map(f64::from), count),
        )
    })
}

/// One place of all models, in ascending order, with the weights.
fn sorted_at(rows: &[Vec<f32>], weights: &[f64], place: usize) -> Vec<(f32, f64)> {
    let mut column: Vec<_> = rows
        .iter()
        .map(|row| row[place])
        .zip(weights.iter().copied())
        .collect();
    column.sort_by(|a, b| a.0.total_cmp(&b.0));
    column
}

/// Position of the models by distance from one of them, ties by values.
fn by_distance(rows: &[Vec<f32>], own: usize) -> Vec<(f64, usize)> {
    let square = |other: &Vec<f32>| {
        let squares = rows[own]
            .iter()
            .zip(other)
            .map(|(a, b)| (f64::from(*a) - f64::from(*b)) * (f64::from(*a) - f64::from(*b)));
        squares.sum::<f64>()
    };
    let mut all: Vec<_> = rows.iter().map(square).zip(0..).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

proptest! {
    #[test]
    fn the_coordinate_median_is_the_middle_of_the_sorted_values((rows, weights) in some()) {
        let all = models(&rows);
        let median = combine(&Aggregation::CoordinateMedian, &all);
        let rule = Aggregation::CoordinateMedian;
        let by_weight = rule.combine(&weighted(&all, &weights), ReferenceModels::default()).unwrap();
        for place in 0..rows[0].len() {
            let column = sorted_at(&rows, &weights, place);
            let middle = |a: f32, b: f32| ((f64::from(a) + f64::from(b)) / 2.0) as f32;
            let count = column.len();
            let expected = middle(column[(count - 1) / 2].0, column[count / 2].0);
            prop_assert_eq!(median.values()[place].to_bits(), expected.to_bits());
            // As many copies of every value as its weight says.
            let copies = |&(value, weight): &(f32, f64)| vec![value; weight as usize];
            let copies: Vec<f32> = column.iter().flat_map(copies).collect();
            let expected = middle(copies[(copies.len() - 1) / 2], copies[copies.len() / 2]);
            prop_assert_eq!(by_weight.values()[place].to_bits(), expected.to_bits());
        }
    }

    #[test]
    fn the_trimmed_mean_is_the_mean_of_the_middle(
        (rows, weights) in some(),
        share in 0.0..0.499f64,
    ) {
        let all = models(&rows);
        let rule = Aggregation::TrimmedMean { share };
        let plain = combine(&rule, &all);
        let by_weight = rule.combine(&weighted(&all, &weights), ReferenceModels::default()).unwrap();
        let cut = (share * rows.len() as f64 + 1e-9) as usize;
        for place in 0..rows[0].len() {
            let column = sorted_at(&rows, &weights, place);
            let kept = &column[cut..rows.len() - cut];
            let sum = kept.iter().map(|pair| f64::from(pair.0)).reduce(|a, b| a + b).unwrap();
            let expected = (sum / kept.len() as f64) as f32;
            prop_assert_eq!(plain.values()[place].to_bits(), expected.to_bits());
            // Equal values may carry their weights in another order: nearly.
            let size: f64 = kept.iter().map(|pair| pair.1 * f64::from(pair.0.abs())).sum();
            let sum: f64 = kept.iter().map(|pair| pair.1 * f64::from(pair.0)).sum();
            let total: f64 = kept.iter().map(|pair| pair.1).sum();
            let difference = f64::from(by_weight.values()[place]) - sum / total;
            prop_assert!(difference.abs() <= 1e-6 * (size / total), "{} {}", difference, size);
        }
    }

    #[test]
    fn krum_is_the_model_with_the_nearest_neighbours(
        (rows, _) in some(),
        byzantine in 0..5usize,
    ) {
        prop_assume!(rows.len() >= 2 * byzantine + 3);
        let all = models(&rows);
        let near = rows.len() - byzantine - 2;
        let scores: Vec<f64> = (0..rows.len())
            .map(|own| by_distance(&rows, own)[1..=near].iter().map(|(square, _)| square).sum())
            .collect();
        let chosen = combine(&Aggregation::Krum { byzantine }, &all);
        let position = all.iter().position(|model| *model == chosen).unwrap();
        let least = scores.iter().copied().fold(f64::INFINITY, f64::min);
        prop_assert!(scores[position] <= least * (1.0 + 1e-12));
        // One selected is Krum; all of them, in the end, the mean of those that are left.
        let multi = |select| Aggregation::MultiKrum { byzantine, select };
        prop_assert_eq!(combine(&multi(Some(1)), &all), chosen);
        prop_assert_eq!(combine(&multi(Some(100)), &all), combine(&multi(None), &all));
        if byzantine == 0 {
            prop_assert_eq!(combine(&multi(None), &all), combine(&Aggregation::Mean, &all));
        }
    }

    #[test]
    fn mixing_takes_means_of_the_nearest(
        rows in prop::collection::vec(prop::collection::vec(-1e3f32..1e3, 5), 3..12),
        byzantine in 0..5usize,
    ) {
        prop_assume!(rows.len() > 2 * byzantine);
        let all = models(&rows);
        // The median of the mixed models, from the definition of mixing.
        let neighbours: Vec<Params> = (0..rows.len())
            .map(|own| {
                let near = &by_distance(&rows, own)[..rows.len() - byzantine];
                let mut near: Vec<usize> = near.iter().map(|pair| pair.1).collect();
                near.sort_unstable();
                let own: Vec<Params> = near.iter().map(|&near| all[near].clone()).collect();
                combine(&Aggregation::Mean, &own)
            })
            .collect();
        let expected = combine(&Aggregation::CoordinateMedian, &neighbours);
        prop_assert_eq!(combine(&mixed(byzantine, Aggregation::CoordinateMedian), &all), expected);
    }

    /// The sum of distances is convex: a point that is better than its neighbourhood is the best.
    #[test]
    fn no_point_near_a_geometric_median_is_better(
        rows in prop::collection::vec(prop::collection::vec(-1e3f32..1e3, 3), 3..12),
        weights in prop::collection::vec((1..10u8).prop_map(f64::from), 12),
        direction in prop::collection::vec(-1.0f32..1.0, 3),
    ) {
        let all = models(&rows);
        let weights = &weights[..rows.len()];
        let rule = Aggregation::GeometricMedian {
            smoothing: 1e-6,
            tolerance: 1e-6,
            iterations: 1000,
        };
        let median = rule.combine(&weighted(&all, weights), ReferenceModels::default()).unwrap();
        let sum = |point: &[f32]| -> f64 {
            rows.iter().zip(weights).map(|(row, weight)| weight * distance(row, point)).sum()
        };
        for size in [1e3, 10.0, 1.0] {
            let beside = median.values().iter().zip(&direction);
            let beside: Vec<f32> = beside.map(|(value, way)| value + way * size).collect();
            prop_assert!(sum(median.values()) <= sum(&beside) * (1.0 + 1e-5));
        }
    }
}
