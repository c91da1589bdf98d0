#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{Layout, TensorSpec};

fn layout(len: usize) -> Arc<Layout> {
    Layout::new(vec![TensorSpec::new("w", [len], Role::Weight)]).unwrap()
}

/// Values that differ in size and sign.
fn model(layout: &Arc<Layout>, seed: usize) -> Params {
    Params::build(layout, |values| {
        for (index, value) in values.iter_mut().enumerate() {
            let mixed = (index + 1)
                .wrapping_mul(2_654_435_761)
                .wrapping_add(seed * 97)
                % 100_003;
            *value = (mixed as f32 - 50_000.0) * 1.1f32.powi((mixed % 60) as i32 - 30);
        }
    })
}

/// The mean as it is defined, one value at a time.
fn by_definition(models: &[(&Params, f64)]) -> Vec<u32> {
    let total: f64 = models.iter().map(|(_, weight)| weight).sum();
    (0..models[0].0.values().len())
        .map(|index| {
            let terms = models
                .iter()
                .map(|(model, weight)| weight * f64::from(model.values()[index]));
            let sum = terms.reduce(|sum, term| sum + term).unwrap();
            ((sum / total) as f32).to_bits()
        })
        .collect()
}

fn bits(model: &Params) -> Vec<u32> {
    model.values().iter().map(|value| value.to_bits()).collect()
}

#[test]
fn mean_has_its_definitions_bits_at_every_size_and_thread_count() {
    // Below and above a block, and enough values for more than one thread.
    let mut sizes = vec![(0, 3), (BLOCK + 5, 6), (PARALLEL / 8 + 11, 8)];
    sizes.extend((2..10).map(|count| (63, count)));
    for (len, count) in sizes {
        let layout = layout(len);
        let models: Vec<_> = (0..count).map(|seed| model(&layout, seed)).collect();
        let weighted: Vec<_> = models
            .iter()
            .zip(1..)
            .map(|(m, w)| (m, f64::from(w) * 0.7))
            .collect();
        let expected = by_definition(&weighted);
        for threads in [1, 8] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let mean = pool.install(|| weighted_mean(&weighted)).unwrap();
            assert!(bits(&mean) == expected, "{len} values, {threads} threads");
        }
    }
}

#[test]
fn unusable_means_are_refused() {
    let (a, b) = (model(&layout(3), 1), model(&layout(4), 1));
    assert_eq!(weighted_mean(&[]), Err(MeanError::Empty));
    assert_eq!(
        weighted_mean(&[(&a, 1.0), (&b, 1.0)]),
        Err(MeanError::Layout)
    );
    for weights in [
        [0.0, 0.0],
        [2.0, -1.0],
        [f64::NAN, 1.0],
        [f64::INFINITY, 1.0],
    ] {
        assert_eq!(
            weighted_mean(&weights.map(|weight| (&a, weight))),
            Err(MeanError::Weights)
        );
    }
}

#[test]
fn distance_leaves_buffers_out() {
    let specs = [("a", Role::Weight), ("b", Role::Buffer), ("c", Role::Bias)];
    let specs = specs.map(|(name, role)| TensorSpec::new(name, [2], role));
    let layout = Layout::new(specs.to_vec()).unwrap();
    let one = Params::from_values(&layout, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let two = Params::from_values(&layout, &[2.0, 2.0, 9.0, 9.0, 5.0, 8.0]);
    assert_eq!(squared_distance(&one, &two), Some(5.0));
    assert_eq!(squared_distance(&one, &Params::empty()), None);
}

proptest! {
    /// Buffers that no member changed stay unchanged.
    #[test]
    fn equal_models_average_to_themselves(
        value in any::<f32>().prop_filter("finite", |value| value.is_finite()),
        rows in prop::collection::vec(1..1_000_000u32, 1..40),
    ) {
        let model = Params::from_values(&layout(3), &[value, -0.0, f32::MIN_POSITIVE / 8.0]);
        let exact: Vec<_> = rows.iter().map(|&rows| (&model, f64::from(rows))).collect();
        let equal: Vec<_> = rows.iter().map(|_| (&model, 1.0)).collect();
        for weighted in [exact, equal] {
            prop_assert_eq!(bits(&weighted_mean(&weighted).unwrap()), bits(&model));
        }
    }

    #[test]
    fn reductions_are_near_the_plain_sum(values in prop::collection::vec(-1e3f32..1e3, 0..200)) {
        let squares: f64 = values.iter().map(|&value| libm::pow(f64::from(value), 2.0)).sum();
        prop_assert!((sum_of_squares(&values) - squares).abs() <= 1e-12 * squares);
        let zeros = vec![0f32; values.len()];
        prop_assert_eq!(sum_of_squared_differences(&values, &zeros), sum_of_squares(&values));
    }
}
