#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::{Layout, Role, TensorSpec};

fn layout(sizes: [usize; 2]) -> Arc<Layout> {
    let [first, second] = sizes;
    Layout::new(vec![
        TensorSpec::new("layer1.weight", [first - 1], Role::Weight),
        TensorSpec::new("layer1.bias", [1], Role::Bias),
        TensorSpec::new("layer2.weight", [second - 1], Role::Weight),
        TensorSpec::new("layer2.bias", [1], Role::Bias),
        TensorSpec::new("scale.mean", [2], Role::Buffer),
    ])
    .unwrap()
}

/// In the order of the file: both layers, then the buffer.
fn gradients(layers: &[(&[f32], &[f32])]) -> Vec<Params> {
    let layout = layout([layers[0].0.len(), layers[0].1.len()]);
    let values = |(first, second): &(&[f32], &[f32])| [first, second, &[100.0, -3.0][..]].concat();
    layers
        .iter()
        .map(|one| Params::from_values(&layout, &values(one)))
        .collect()
}

fn three() -> Vec<Params> {
    gradients(&[
        (&[1.0, 1.2, 0.8], &[0.5, -0.1]),
        (&[0.9, 1.1, 1.0], &[0.1, 0.6]),
        (&[1.1, 1.0, 0.9], &[1.0, 0.2]),
    ])
}

#[test]
fn three_clients_give_the_known_spreads() {
    for (statistic, known) in [
        (
            LayerStatistic::BetweenClients,
            [0.00662251655629139, 0.642622950819672],
        ),
        (
            LayerStatistic::VarianceOverMean,
            [0.013333333333333329, 0.34275362318840585],
        ),
    ] {
        let found = spreads(&three(), statistic).unwrap();
        for (spread, known) in found.iter().zip(known) {
            // The known answers are for values that `f32` rounds.
            assert!((spread.value / known - 1.0).abs() < 1e-6, "{spread:?}");
        }
        assert_eq!(choose_layer(&three(), statistic).unwrap().name, "layer2");
    }
}

#[test]
fn scale_and_sign_do_not_change_the_spread_between_clients() {
    let values = spreads(&three(), LayerStatistic::BetweenClients).unwrap();
    let scaled: Vec<Params> = three()
        .iter()
        .map(|one| {
            let scaled: Vec<f32> = one.values().iter().map(|value| -8.0 * value).collect();
            Params::from_values(one.layout(), &scaled)
        })
        .collect();
    assert_eq!(
        spreads(&scaled, LayerStatistic::BetweenClients).unwrap(),
        values
    );
}

#[test]
fn a_mean_of_zero_makes_no_nan() {
    let apart = gradients(&[(&[1.0, 1.0], &[2.0, -2.0]), (&[1.0, 1.0], &[-2.0, 2.0])]);
    let all_zero = gradients(&[(&[0.0, 0.0], &[0.0, 0.0]), (&[0.0, 0.0], &[0.0, 0.0])]);
    for statistic in [
        LayerStatistic::BetweenClients,
        LayerStatistic::VarianceOverMean,
    ] {
        let values = |of: &[Params]| -> Vec<f64> {
            spreads(of, statistic)
                .unwrap()
                .iter()
                .map(|spread| spread.value)
                .collect()
        };
        assert_eq!(values(&apart), [0.0, f64::INFINITY]);
        assert_eq!(values(&all_zero), [0.0, 0.0]);
        assert_eq!(choose_layer(&all_zero, statistic).unwrap().name, "layer1");
    }
}

#[test]
fn spreads_are_the_same_bits_for_any_number_of_threads() {
    let many = |client: usize, len: usize| -> Vec<f32> {
        (0..len)
            .map(|at| ((client * 7919 + at * 104_729) % 1009) as f32 / 1009.0)
            .collect()
    };
    let rows: Vec<_> = (0..7)
        .map(|client| (many(client, 20_011), many(client + 9, 9_001)))
        .collect();
    let views: Vec<_> = rows
        .iter()
        .map(|(first, second)| (&first[..], &second[..]))
        .collect();
    let gradients = gradients(&views);
    let bits = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| {
            [
                LayerStatistic::BetweenClients,
                LayerStatistic::VarianceOverMean,
            ]
            .map(|statistic| spreads(&gradients, statistic).unwrap())
        })
    };
    assert_eq!(bits(1), bits(4));
    // And blocks lose nothing: the same from one plain sum over a layer.
    let [between, _] = bits(1);
    let (mut apart, mut square) = (0.0, 0.0);
    for at in 0..20_011 {
        let column = || views.iter().map(|view| f64::from(view.0[at]));
        let mean = column().sum::<f64>() / 7.0;
        apart += column()
            .map(|value| (value - mean) * (value - mean))
            .sum::<f64>()
            / 7.0;
        square += mean * mean;
    }
    assert!((between[0].value / (apart / square) - 1.0).abs() < 1e-12);
}

#[test]
fn unusable_gradients_are_refused() {
    let choose =
        |gradients: &[Params]| choose_layer(gradients, LayerStatistic::default()).unwrap_err();
    assert_eq!(choose(&[]), SpreadError::Empty);
    let mut mixed = three();
    mixed.push(Params::empty());
    assert_eq!(choose(&mixed), SpreadError::Layout);
    assert_eq!(choose(&[Params::empty()]), SpreadError::NoLayer);
    for bad in [f32::NAN, f32::INFINITY] {
        let one = gradients(&[(&[1.0, 1.0], &[1.0, bad])]);
        for statistic in [
            LayerStatistic::BetweenClients,
            LayerStatistic::VarianceOverMean,
        ] {
            let error = spreads(&one, statistic).unwrap_err();
            assert_eq!(
                error,
                SpreadError::NotFinite {
                    layer: "layer2".into()
                }
            );
        }
    }
}
