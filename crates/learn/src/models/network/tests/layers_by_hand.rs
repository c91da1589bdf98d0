//! Layers against what they give by hand.

use super::*;
use task::model::LayerConfig;
use task::model::MaxPoolConfig;
use task::model::NormConfig;

/// Returns what these layers make of one row, on every device: the head passes every value through.
fn through(layers: Vec<LayerConfig>, image: [usize; 3], values: &[f32], row: &[f32]) -> Vec<f64> {
    // Outputs are as many as a probing network's head has inputs.
    let config = listed(layers, Some(image));
    let probe = network(&config, LastLayer::Dense(1)).tensors();
    let outputs = probe[probe.len() - 2].shape[1];
    let network = network(&config, LastLayer::Dense(outputs));
    let tensors = network.tensors();
    let layout = Layout::new(tensors.clone()).unwrap();
    let mut rest = values;
    let model = Params::build(&layout, |into| {
        for tensor in &tensors[..tensors.len() - 2] {
            let (own, after) = rest.split_at(tensor.len());
            let range = layout.range(layout.position(&tensor.name).unwrap());
            into[range].copy_from_slice(own);
            rest = after;
        }
        let weight = &tensors[tensors.len() - 2].name;
        let start = layout.range(layout.position(weight).unwrap()).start;
        (0..outputs).for_each(|at| into[start + at * (outputs + 1)] = 1.0);
    });
    assert!(rest.is_empty(), "values for all tensors");
    let data = Rows::new(row.len(), row.to_vec(), vec![0.0]);
    let mut all = on_every_device(&network).into_iter();
    let first = all.next().expect("the processor is a device");
    let expected = first.outputs(&model, &data);
    for other in all {
        for (got, expected) in other.outputs(&model, &data).iter().zip(&expected) {
            let close = (got - expected).abs() < 1e-4;
            assert!(close, "{}: {got} {expected}", other.device.name());
        }
    }
    expected
}

/// 1 to 9, negative.
const NINE: [f32; 9] = [-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0, -9.0];

#[test]
fn poolings_at_the_edges() {
    let pool = |padding, ceil, stride, size| {
        let layer = LayerConfig::MaxPool(MaxPoolConfig {
            size,
            stride,
            padding,
            ceil,
        });
        through(vec![layer], [1, 3, 3], &[], &NINE)
    };
    assert_eq!(pool(0, false, None, 2), [-1.0]);
    // Cut-off windows count, as in TensorFlow; padding is never the largest.
    assert_eq!(pool(0, true, None, 2), [-1.0, -3.0, -7.0, -9.0]);
    assert_eq!(pool(1, false, None, 2), [-1.0, -2.0, -4.0, -5.0]);
    assert_eq!(pool(1, false, Some(2), 3), [-1.0, -2.0, -4.0, -5.0]);
    assert_eq!(pool(0, false, Some(1), 2), [-1.0, -2.0, -4.0, -5.0]);
}

#[test]
fn convolutions_are_sums_over_windows() {
    let row: Vec<f32> = (1..=9).map(|value| value as f32).collect();
    // All ones, bias 10: the sum of the neighbours and oneself.
    let mut values = vec![1.0; 9];
    values.push(10.0);
    let same = through(vec![LayerConfig::conv(1, 3)], [1, 3, 3], &values, &row);
    assert_eq!(same, [22.0, 31.0, 26.0, 37.0, 55.0, 43.0, 34.0, 49.0, 38.0]);
    // Not flipped: the weight at the upper left meets the pixel at the upper left.
    let mut corner = vec![0.0; 9];
    corner[0] = 1.0;
    let strided = through(vec![LayerConfig::bare(1, 3, 2)], [1, 3, 3], &corner, &row);
    assert_eq!(strided, [0.0, 0.0, 0.0, 5.0]);
    // Weights are outputs × inputs × window: out 0 is channel 0, out 1 is twice channel 1.
    let mixed = through(
        vec![LayerConfig::bare(2, 1, 1)],
        [2, 1, 2],
        &[1.0, 0.0, 0.0, 2.0],
        &[1.0, 2.0, 3.0, 4.0],
    );
    assert_eq!(mixed, [1.0, 2.0, 6.0, 8.0]);
}

#[test]
fn up_convolutions_double_the_sides() {
    let up = through(
        vec![LayerConfig::UpConv(1)],
        [1, 1, 2],
        &[1.0, 2.0, 3.0, 4.0, 0.5],
        &[1.0, 10.0],
    );
    assert_eq!(up, [1.5, 2.5, 10.5, 20.5, 3.5, 4.5, 30.5, 40.5]);
}

#[test]
fn residuals_add_and_skips_append() {
    let row = [1.0, -2.0, 3.0, 4.0];
    let plain = LayerConfig::Residual(vec![LayerConfig::Relu]);
    assert_eq!(
        through(vec![plain], [1, 2, 2], &[], &row),
        [2.0, -2.0, 6.0, 8.0]
    );
    // Around a convolution to two channels: the way of its own doubles, the norm halves (variance
    // 4, up to its ε).
    let wider = LayerConfig::Residual(vec![LayerConfig::bare(2, 1, 1)]);
    let values = [10.0, 20.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 4.0, 4.0];
    let got = through(vec![wider], [1, 1, 2], &values, &[1.0, 3.0]);
    for (got, expected) in got.into_iter().zip([11.0, 33.0, 21.0, 63.0]) {
        assert!((got - expected).abs() < 1e-4, "{got} {expected}");
    }
    let skip = LayerConfig::Skip(vec![LayerConfig::Relu]);
    let expected = [1.0, -2.0, 3.0, 4.0, 1.0, 0.0, 3.0, 4.0];
    assert_eq!(through(vec![skip], [1, 2, 2], &[], &row), expected);
    let mean = through(vec![LayerConfig::AveragePool], [2, 1, 2], &[], &row);
    assert_eq!(mean, [-0.5, 3.5]);
}

#[test]
fn group_norms_are_by_row_and_group() {
    let config = NetworkConfig {
        norm: NormConfig::Group(2),
        ..listed(vec![LayerConfig::Norm], Some([4, 1, 1]))
    };
    let network = network(&config, LastLayer::Dense(4));
    let layout = Layout::new(network.tensors()).unwrap();
    let model = Params::build(&layout, |into| {
        let mut put = |name: &str, values: &[f32]| {
            into[layout.range(layout.position(name).unwrap())].copy_from_slice(values);
        };
        put("layer00.norm.weight", &[1.0, 1.0, 3.0, 3.0]);
        put("layer00.norm.bias", &[0.0, 0.0, 1.0, 1.0]);
        let mut identity = [0.0; 16];
        (0..4).for_each(|at| identity[5 * at] = 1.0);
        put("layer01.dense.weight", &identity);
    });
    let data = Rows::new(
        4,
        vec![1.0, 5.0, 20.0, 10.0, 7.0, 7.0, 0.0, 2.0],
        vec![0.0; 2],
    );
    let expected = [-1.0, 1.0, 4.0, -2.0, 0.0, 0.0, -2.0, 4.0];
    let all = on_every_device(&network);
    let outputs = |network: &NetworkModel| network.outputs(&model, &data);
    for (got, expected) in all
        .iter()
        .flat_map(|on| outputs(on).into_iter().zip(expected))
    {
        assert!((got - expected).abs() < 1e-4, "{got} {expected}");
    }
}

/// A norm of two features, and its start.
fn norm() -> (NetworkModel, Params) {
    let network = NetworkModel::new(
        &listed(vec![LayerConfig::Norm], None),
        2,
        LastLayer::Dense(2),
    )
    .unwrap();
    let start = params(&network, 3);
    (network, start)
}

#[test]
fn batch_norms_carry_running_statistics() {
    let (network, start) = norm();
    for network in on_every_device(&network) {
        statistics(&network, &start);
    }
}

fn statistics(network: &NetworkModel, start: &Params) {
    // Means 2 and 20, unbiased variances 1 and 100.
    let data = Rows::new(
        2,
        vec![1.0, 10.0, 2.0, 20.0, 3.0, 30.0],
        vec![0.0, 1.0, 0.0],
    );
    let (_, after) = trained(network, start, &data, Loss::Softmax, &PLAIN, 1, 1);
    let close = |name: &str, expected: [f32; 2]| {
        for (got, expected) in after.tensor(name).unwrap().iter().zip(expected) {
            assert!((got - expected).abs() < 1e-5, "{name}: {got} {expected}");
        }
    };
    close("layer00.norm.mean", [0.2, 2.0]);
    close("layer00.norm.variance", [1.0, 0.9 + 10.0]);
}

#[test]
fn evaluation_uses_the_running_statistics() {
    let (network, start) = norm();
    let model = |mean: f32, variance: f32| {
        let layout = start.layout();
        Params::build(layout, |into| {
            let mut put = |name: &str, values: &[f32]| {
                into[layout.range(layout.position(name).unwrap())].copy_from_slice(values);
            };
            put("layer00.norm.weight", &[1.0, 2.0]);
            put("layer00.norm.mean", &[mean; 2]);
            put("layer00.norm.variance", &[variance; 2]);
            put("layer01.dense.weight", &[1.0, 0.0, 0.0, 1.0]);
        })
    };
    let data = Rows::new(2, vec![5.0, 1.0], vec![0.0]);
    for network in on_every_device(&network) {
        let got = network.outputs(&model(3.0, 4.0), &data);
        assert!(
            (got[0] - 1.0).abs() < 1e-5 && (got[1] + 2.0).abs() < 1e-5,
            "{got:?}"
        );
        let wild = network.outputs(&model(3.0, -4.0), &data);
        assert!(wild.iter().all(|value| value.is_finite()), "{wild:?}");
    }
}

#[test]
fn a_batch_of_one_row_is_no_number_less() {
    let config = NetworkConfig {
        width: 0.1,
        image: Some([1, 8, 8]),
        ..named(Architecture::HcctDigits)
    };
    let network = network(&config, LastLayer::Dense(3));
    on_every_device(&network).iter().for_each(one_row);
}

fn one_row(network: &NetworkModel) {
    let start = params(network, 3);
    let data = rows(1, 64, 1, |_| 1.0);
    let (value, after) = trained(network, &start, &data, Loss::Softmax, &PLAIN, 3, 1);
    assert!(value.is_finite());
    assert!(after.values().iter().all(|value| value.is_finite()));
    // Dense layers see one value per channel, which has no spread; images have many.
    for tensor in start.layout().tensors() {
        if tensor.name.ends_with("variance") {
            let dense = ["layer07.norm.variance", "layer09.norm.variance"];
            let same = start.tensor(&tensor.name) == after.tensor(&tensor.name);
            assert_eq!(
                same,
                dense.contains(&tensor.name.as_str()),
                "{}",
                tensor.name
            );
        }
    }
}

#[test]
fn dropout_is_off_in_evaluation_and_keeps_the_mean_in_training() {
    let with = |rate| {
        let layers = vec![LayerConfig::Dropout(rate)];
        NetworkModel::new(&listed(layers, None), 4000, LastLayer::Dense(1)).unwrap()
    };
    // Weights 1/4000 and rows of ones: the output is the mean of what is left.
    let layout = Layout::new(with(0.5).tensors()).unwrap();
    let model = Params::build(&layout, |into| {
        into[layout.range(layout.position("layer00.dense.weight").unwrap())].fill(1.0 / 4000.0);
    });
    let data = Rows::new(4000, vec![1.0; 4000], vec![0.0]);
    let squared = Loss::Regression(RegressionLoss::Squared);
    for rate in [0.0, 0.25, 0.5] {
        let network = with(rate);
        assert!((network.outputs(&model, &data)[0] - 1.0).abs() < 1e-5);
        let (value, after) = trained(&network, &model, &data, squared, &PLAIN, 1, 9);
        assert!((value.sqrt() - 1.0).abs() < 0.06, "{rate}: {value}");
        assert_eq!(rate == 0.0, (value - 1.0).abs() < 1e-5);
        // What was left out has no gradient.
        let weights = after.tensor("layer00.dense.weight").unwrap();
        let still = weights.iter().filter(|&&weight| weight == 1.0 / 4000.0);
        let share = still.count() as f64 / 4000.0;
        assert!((share - rate).abs() < 0.03, "{rate}: {share}");
    }
}
