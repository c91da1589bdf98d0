//! Gradients of every network, made small, against differences of its training loss.

use super::*;
use task::model::Architecture;
use task::model::LayerConfig;
use task::model::NormConfig;

/// Lengths of steps along a direction, in turn: rounding weighs less in long steps, and ReLUs and
/// poolings change sides less in short ones.
const STEPS: [f32; 4] = [1.0 / 128.0, 1.0 / 512.0, 1.0 / 2048.0, 1.0 / 8192.0];

/// Compares, tensor by tensor: along the tensor's own gradient, and along the axes of its steepest
/// and of one more value. Some step has to give the slope up to 2 % of the length of the
/// tensor's gradient, and 3e-4 absolutely (outputs are `f32`: a difference is known to some `1e-7 /
/// step`), forwards, backwards or over both: where a ReLU changes sides close by on one side, the
/// other has the slope still. Dropout leaves the same out every time, because the seed is the same;
/// batch statistics move along.
fn assert_gradients(name: &str, network: &NetworkModel, data: &Rows, loss: Loss) {
    let start = params(network, 7);
    let value = |at: &Params| trained(network, at, data, loss, &PLAIN, 1, 3).0;
    let (here, moved) = trained(network, &start, data, loss, &PLAIN, 1, 3);
    let layout = start.layout();
    let slopes = start.values().iter().zip(moved.values());
    let slopes: Vec<f64> = slopes.map(|(a, b)| f64::from(*a) - f64::from(*b)).collect();
    let mut seen = 0;
    for (index, tensor) in layout.tensors().iter().enumerate() {
        if tensor.role == Role::Buffer {
            continue;
        }
        let range = layout.range(index);
        let own = &slopes[range.clone()];
        let norm = own.iter().map(|slope| slope * slope).sum::<f64>().sqrt();
        let steepest = (0..own.len()).max_by(|&a, &b| own[a].abs().total_cmp(&own[b].abs()));
        let steepest = steepest.unwrap();
        let axis = |at: usize| {
            let mut direction = vec![0.0; own.len()];
            direction[at] = 1.0;
            direction
        };
        let mut directions = vec![axis(steepest), axis(own.len() / 2)];
        if norm > 1e-3 {
            directions.push(own.iter().map(|slope| slope / norm).collect());
            seen += 1;
        }
        for direction in directions {
            let along = |step: f32| {
                let mut values = start.values().to_vec();
                for (value, direction) in values[range.clone()].iter_mut().zip(&direction) {
                    *value += step * *direction as f32;
                }
                value(&Params::from_values(layout, &values))
            };
            let slope: f64 = own.iter().zip(&direction).map(|(a, b)| a * b).sum();
            let mut differences = Vec::new();
            let agrees = STEPS.iter().any(|&step| {
                let (ahead, behind) = (along(step), along(-step));
                let step = f64::from(step);
                let found = [
                    (ahead - behind) / (2.0 * step),
                    (ahead - here) / step,
                    (here - behind) / step,
                ];
                differences.extend(found);
                let close = |found: &f64| (slope - found).abs() < 0.02 * norm + 3e-4;
                found.iter().any(close)
            });
            assert!(
                agrees,
                "{name}, {}: {slope} of {norm}, but {differences:?}",
                tensor.name
            );
        }
    }
    // Biases right before a norm have no gradient; all else should.
    assert!(
        2 * seen > layout.trained().tensors().len(),
        "{name}: {seen}"
    );
}

fn check(
    architecture: Architecture,
    width: f64,
    image: [usize; 3],
    norm: NormConfig,
    (head, loss): (LastLayer, Loss),
) {
    let config = NetworkConfig {
        image: Some(image),
        width,
        norm,
        ..named(architecture)
    };
    compare(
        &format!("{architecture:?} with {norm:?}"),
        &config,
        (head, loss),
    );
}

fn compare(name: &str, config: &NetworkConfig, (head, loss): (LastLayer, Loss)) {
    let network = network(config, head);
    let features = network.input.iter().product();
    let data = match loss {
        Loss::Softmax => rows(6, features, 1, |value| (3.0 * value).floor()),
        Loss::Dice { pixels } => rows(2, features, pixels, f64::round),
        _ => rows(4, features, 6, |value| 2.0 * value - 1.0),
    };
    for network in on_every_device(&network) {
        let name = format!("{name} on {}", network.device.name());
        assert_gradients(&name, &network, &data, loss);
    }
}

const CLASSES: (LastLayer, Loss) = (LastLayer::Dense(3), Loss::Softmax);
const BATCH: NormConfig = NormConfig::Batch;

#[test]
fn of_the_cnn_of_fedavg() {
    check(Architecture::FedavgCnn, 0.1, [2, 8, 8], BATCH, CLASSES);
}

#[test]
fn of_the_networks_of_leaf() {
    use Architecture::*;
    for (architecture, side) in [
        (LeafCeleba, 18),
        (LeafCelebaPadded, 18),
        (LeafFemnist, 7),
        (LeafFemnistPadded, 8),
    ] {
        let image = [2, side, side];
        let width = if side == 18 { 0.13 } else { 0.05 };
        check(architecture, width, image, BATCH, CLASSES);
    }
    check(
        LeafCeleba,
        0.125,
        [2, 18, 18],
        NormConfig::Group(2),
        CLASSES,
    );
}

#[test]
fn of_the_networks_of_hcct() {
    use Architecture::*;
    check(HcctDigits, 0.03, [1, 8, 8], BATCH, CLASSES);
    check(HcctCifar, 0.15, [3, 8, 8], BATCH, CLASSES);
    check(HcctFmnist, 0.5, [1, 4, 4], BATCH, CLASSES);
}

#[test]
fn of_the_regression_on_six_outputs() {
    let squared = Loss::Regression(RegressionLoss::Squared);
    let absolute = Loss::Regression(RegressionLoss::Absolute);
    for loss in [squared, absolute] {
        let six = (LastLayer::Dense(6), loss);
        check(Architecture::Tpt48, 0.05, [6, 1, 1], BATCH, six);
    }
}

#[test]
fn of_residual_networks() {
    use Architecture::*;
    let groups = NormConfig::Group(2);
    check(Resnet18, 0.05, [1, 32, 32], BATCH, CLASSES);
    check(Resnet18Small, 0.05, [1, 12, 12], BATCH, CLASSES);
    check(Resnet18Small, 0.0625, [1, 12, 12], groups, CLASSES);
}

/// All sixteen blocks on top of each other, of one or two channels each, bend too much for a
/// difference: the first of every stage stand for the rest.
#[test]
fn of_bottlenecks() {
    let design = named(Architecture::Resnet50Small).design();
    let (stem, blocks) = design.layers.split_at(3);
    let blocks: Vec<&[LayerConfig]> = blocks.chunks(2).collect();
    let first = [0, 3, 7, 13, 16].map(|at| blocks[at]).concat();
    let config = NetworkConfig {
        width: 0.05,
        start: Some(design.start),
        ..listed([stem, &first].concat(), Some([1, 12, 12]))
    };
    compare("first blocks of ResNet-50", &config, CLASSES);
}

#[test]
fn of_the_unet() {
    let mask = (LastLayer::Pixels(1024), Loss::Dice { pixels: 1024 });
    check(Architecture::Unet, 0.04, [1, 32, 32], BATCH, mask);
    let groups = NormConfig::Group(2);
    let mask = (LastLayer::Pixels(256), Loss::Dice { pixels: 256 });
    check(Architecture::Unet, 0.03125, [1, 16, 16], groups, mask);
}
