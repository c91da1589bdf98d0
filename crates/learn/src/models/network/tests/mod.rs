#![allow(clippy::unwrap_used)]
use methods::params::layers;
use methods::{Layout, Role};
use task::model::Architecture;
use task::model::ConvConfig;
use task::model::LayerConfig;
use task::model::LayersConfig;
use task::model::NormConfig;
use task::model::StartWeights;

use super::*;
use crate::device::tests::every;
use crate::models::tests::params;
use crate::models::{Loss, RegressionLoss};

mod classifier;
mod gradients;
mod joint;
mod layers_by_hand;

const PLAIN: Optimiser = Optimiser::Sgd {
    rate: 1.0,
    momentum: 0.0,
    weight_decay: 0.0,
};

fn named(architecture: Architecture) -> NetworkConfig {
    NetworkConfig::new(LayersConfig::Named(architecture))
}

fn listed(layers: Vec<LayerConfig>, image: Option<[usize; 3]>) -> NetworkConfig {
    NetworkConfig {
        image,
        ..NetworkConfig::new(LayersConfig::Listed(layers))
    }
}

/// A network for as many features as its image has values.
fn network(config: &NetworkConfig, head: LastLayer) -> NetworkModel {
    let image = config.image.or(config.design().image).unwrap();
    NetworkModel::new(config, image.iter().product(), head).unwrap()
}

/// Copies of `network` on every device.
fn on_every_device(network: &NetworkModel) -> Vec<NetworkModel> {
    let on = |device| NetworkModel {
        device,
        ..network.clone()
    };
    every().into_iter().map(on).collect()
}

/// Random rows: features in ±1, and `targets` of them `per_row`.
fn rows(count: usize, width: usize, per_row: usize, target: impl Fn(f64) -> f64) -> Rows {
    let mut rng = stream(5, "network test rows");
    let features = (0..count * width)
        .map(|_| (2.0 * uniform(&mut rng) - 1.0) as f32)
        .collect();
    let targets = (0..count * per_row).map(|_| target(uniform(&mut rng)) as f32);
    Rows::wide(width, per_row, features, targets.collect())
}

/// The tensors after these steps, each on all rows, and the loss before the last.
fn trained(
    network: &NetworkModel,
    start: &Params,
    data: &Rows,
    loss: Loss,
    optimiser: &Optimiser,
    steps: usize,
    seed: u64,
) -> (f64, Params) {
    let mut fit = network.fit(start, loss, optimiser, None, seed);
    let all: Vec<u32> = (0..data.len() as u32).collect();
    let mut value = f64::NAN;
    (0..steps).for_each(|_| value = fit.step(data, &all));
    let named = fit.finish();
    let layout = start.layout();
    let params = Params::build(layout, |into| {
        for (name, values) in named {
            into[layout.range(layout.position(&name).unwrap())].copy_from_slice(&values);
        }
    });
    (value, params)
}

/// Trained values, and buffers.
fn sizes(network: &NetworkModel) -> (usize, usize) {
    let count = |buffers: bool| {
        let tensors = network.tensors().into_iter();
        let counted = tensors.filter(|tensor| (tensor.role == Role::Buffer) == buffers);
        counted.map(|tensor| tensor.len()).sum()
    };
    (count(false), count(true))
}

#[test]
fn full_networks_have_as_many_weights_as_in_their_papers() {
    use Architecture::*;
    let expect = |architecture, image, head, trained, buffers| {
        let config = NetworkConfig {
            image,
            ..named(architecture)
        };
        let got = sizes(&network(&config, head));
        assert_eq!(got, (trained, buffers), "{architecture:?}");
    };
    let ten = LastLayer::Dense(10);
    // McMahan et al. 2017 state the first number.
    expect(FedavgCnn, Some([1, 28, 28]), ten, 1_663_370, 0);
    expect(FedavgCnn, None, ten, 2_156_490, 0);
    // 896 + 3·9248 for convolutions, 4·64 for norms, 6·6·32·2 + 2 or 7·7·32·2 + 2 at the end.
    expect(LeafCeleba, None, LastLayer::Dense(2), 31_202, 256);
    expect(LeafCelebaPadded, None, LastLayer::Dense(2), 32_034, 256);
    // 832 + 51,264 + (3136·2048 + 2048) + (2048·62 + 62), with either padding.
    expect(LeafFemnist, None, LastLayer::Dense(62), 6_603_710, 0);
    expect(LeafFemnistPadded, None, LastLayer::Dense(62), 6_603_710, 0);
    // 4864 + 102,464 + 204,928; 6272·2048 + 2048; 2048·512 + 512; 5130; norms 2·(64 + 64 + 128 + 2048 + 512).
    expect(HcctDigits, None, ten, 14_219_210, 5632);
    // 448 + 4640 + 18,496 + 73,856; 2048·500 + 500; 5010.
    expect(HcctCifar, None, ten, 1_126_950, 0);
    expect(HcctFmnist, Some([1, 28, 28]), ten, 50_890, 0);
    // 6·512 + 512; 6·(512² + 512); 512·6 + 6.
    expect(Tpt48, Some([6, 1, 1]), LastLayer::Dense(6), 1_582_598, 0);
    // torchvision's 11,689,512 and 25,557,032 are for 1000 classes; a 3×3 stem has 7680 fewer.
    expect(Resnet18, None, ten, 11_181_642, 9600);
    expect(Resnet18, None, LastLayer::Dense(1000), 11_689_512, 9600);
    expect(Resnet18Small, None, ten, 11_173_962, 9600);
    expect(Resnet50, None, ten, 23_528_522, 53_120);
    expect(Resnet50, None, LastLayer::Dense(1000), 25_557_032, 53_120);
    expect(Resnet50Small, None, ten, 23_520_842, 53_120);
    // Down 18,847,168 (with norms), up 2,786,240 and 9,404,160, and 65 at the end.
    expect(
        Unet,
        Some([3, 64, 64]),
        LastLayer::Pixels(64 * 64),
        31_037_633,
        11_776,
    );
}

#[test]
fn group_norms_have_no_buffers() {
    let config = NetworkConfig {
        norm: NormConfig::Group(32),
        ..named(Architecture::Resnet18)
    };
    let got = sizes(&network(&config, LastLayer::Dense(10)));
    assert_eq!(got, (11_181_642, 0));
}

#[test]
fn names_in_alphabetical_order_are_in_order_of_depth() {
    for architecture in Architecture::ALL {
        let image = match architecture {
            Architecture::HcctFmnist => Some([1, 28, 28]),
            Architecture::Tpt48 => Some([6, 1, 1]),
            Architecture::Unet => Some([1, 32, 32]),
            _ => None,
        };
        let config = NetworkConfig {
            image,
            width: 0.1,
            ..named(architecture)
        };
        let head = match architecture {
            Architecture::Unet => LastLayer::Pixels(1024),
            _ => LastLayer::Dense(3),
        };
        let tensors = network(&config, head).tensors();
        let layer = |tensor: &TensorSpec| tensor.name.rsplit_once('.').unwrap().0.to_owned();
        let mut depth: Vec<String> = tensors.iter().map(layer).collect();
        depth.dedup();
        let layout = Layout::new(tensors).unwrap();
        let names: Vec<String> = layers(&layout).into_iter().map(|l| l.name).collect();
        assert_eq!(names, depth, "{architecture:?}");
        let head = if head == LastLayer::Dense(3) {
            "dense"
        } else {
            "conv"
        };
        assert!(names.last().unwrap().ends_with(head), "{names:?}");
        for tensor in layout.tensors() {
            let norm = tensor.name.contains("norm");
            let part = tensor.name.rsplit('.').next().unwrap();
            let role = match part {
                "weight" => Role::Weight,
                "bias" => Role::Bias,
                _ => Role::Buffer,
            };
            assert_eq!(tensor.role, role, "{}", tensor.name);
            assert!(norm || role != Role::Buffer, "{}", tensor.name);
        }
    }
}

#[test]
fn names_state_kind_and_depth() {
    let block = LayerConfig::Residual(vec![LayerConfig::bare(4, 3, 2), LayerConfig::Norm]);
    let config = listed(
        vec![LayerConfig::conv(2, 3), block, LayerConfig::Relu],
        Some([1, 6, 6]),
    );
    let tensors = network(&config, LastLayer::Dense(3)).tensors();
    let names: Vec<&str> = tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    let expected = [
        "layer00.conv.weight",
        "layer00.conv.bias",
        "layer01.conv.weight",
        "layer02.norm.weight",
        "layer02.norm.bias",
        "layer02.norm.mean",
        "layer02.norm.variance",
        "layer03.conv.weight",
        "layer04.norm.weight",
        "layer04.norm.bias",
        "layer04.norm.mean",
        "layer04.norm.variance",
        "layer05.dense.weight",
        "layer05.dense.bias",
    ];
    assert_eq!(names, expected);
    assert_eq!(tensors[7].shape, [4, 2, 1, 1]);
    assert_eq!(tensors[12].shape, [3, 4 * 3 * 3]);
}

#[test]
fn start_weights_have_the_bounds_of_their_rule() {
    let layers = vec![LayerConfig::conv(16, 5), LayerConfig::Norm];
    for (start, conv, dense, bias) in [
        (
            StartWeights::Uniform,
            1.0 / 75f64.sqrt(),
            1.0 / 1024f64.sqrt(),
            true,
        ),
        (
            StartWeights::Kaiming,
            (6.0 / 400f64).sqrt(),
            1.0 / 1024f64.sqrt(),
            true,
        ),
        (
            StartWeights::Glorot,
            (6.0 / 475f64).sqrt(),
            (6.0 / (1024.0 + 10.0f64)).sqrt(),
            false,
        ),
    ] {
        let config = NetworkConfig {
            start: Some(start),
            ..listed(layers.clone(), Some([3, 8, 8]))
        };
        let network = network(&config, LastLayer::Dense(10));
        let values = network.initial(3);
        assert_eq!(values, network.initial(3));
        assert_ne!(values, network.initial(4));
        let most = |name: &str| {
            let (_, values) = values.iter().find(|(other, _)| other == name).unwrap();
            values.iter().fold(0f32, |most, v| most.max(v.abs())) as f64
        };
        for (name, bound) in [
            ("layer00.conv.weight", conv),
            ("layer02.dense.weight", dense),
        ] {
            let most = most(name);
            assert!(most <= bound && most > 0.97 * bound, "{start:?}: {most}");
        }
        assert_eq!(most("layer00.conv.bias") > 0.0, bias);
        assert_eq!(
            (most("layer01.norm.weight"), most("layer01.norm.bias")),
            (1.0, 0.0)
        );
        assert_eq!(
            (most("layer01.norm.mean"), most("layer01.norm.variance")),
            (0.0, 1.0)
        );
    }
}

#[test]
fn the_same_arguments_give_the_same_bits() {
    let config = NetworkConfig {
        width: 0.25,
        image: Some([3, 16, 16]),
        ..named(Architecture::HcctCifar)
    };
    let network = network(&config, LastLayer::Dense(10));
    on_every_device(&network).iter().for_each(same_bits);
}

fn same_bits(network: &NetworkModel) {
    let start = params(network, 3);
    let data = rows(20, 3 * 256, 1, |value| (10.0 * value).floor());
    let adam = Optimiser::Adam {
        rate: 1e-3,
        weight_decay: 1e-4,
    };
    let run = |seed| trained(network, &start, &data, Loss::Softmax, &adam, 3, seed);
    let (first, second) = (run(1), run(1));
    assert_eq!(first.0.to_bits(), second.0.to_bits());
    assert_eq!(first.1, second.1);
    // What dropout leaves out is the only thing that is drawn.
    assert_ne!(first.1, run(2).1);
    assert_eq!(
        network.outputs(&first.1, &data),
        network.outputs(&first.1, &data)
    );
}

#[test]
fn only_weights_of_convolutions_and_dense_layers_are_decayed() {
    let config = NetworkConfig {
        width: 0.1,
        image: Some([1, 12, 12]),
        ..named(Architecture::LeafCeleba)
    };
    let network = network(&config, LastLayer::Dense(2));
    let start = params(&network, 3);
    let data = rows(6, 144, 1, |value| (2.0 * value).floor());
    let step = |weight_decay| {
        let sgd = Optimiser::Sgd {
            rate: 0.5,
            momentum: 0.0,
            weight_decay,
        };
        trained(&network, &start, &data, Loss::Softmax, &sgd, 1, 1).1
    };
    let (plain, decayed) = (step(0.0), step(0.25));
    for (index, tensor) in start.layout().tensors().iter().enumerate() {
        let weight = tensor.name.ends_with("weight") && !tensor.name.contains("norm");
        for at in start.layout().range(index) {
            let (plain, decayed) = (plain.values()[at], decayed.values()[at]);
            if weight {
                let expected = plain - 0.125 * start.values()[at];
                assert!((decayed - expected).abs() < 1e-6, "{}", tensor.name);
            } else {
                assert_eq!(plain, decayed, "{}", tensor.name);
            }
        }
    }
}

#[test]
fn frozen_tensors_keep_their_values() {
    let config = listed(vec![LayerConfig::Dense(4), LayerConfig::Norm], None);
    let network = NetworkModel::new(&config, 3, LastLayer::Dense(2)).unwrap();
    let start = params(&network, 3);
    let data = rows(5, 3, 1, |value| (2.0 * value).floor());
    let frozen = start.layout().trained();
    let modifier = GradientModifier {
        mu: 1.0,
        anchor: &start,
        shift: None,
        frozen: Some(&frozen),
    };
    let mut fit = network.fit(&start, Loss::Softmax, &PLAIN, Some(&modifier), 1);
    assert!(fit.step(&data, &[0, 1, 2, 3, 4]).is_finite());
    for (name, values) in fit.finish() {
        let before = start.tensor(&name).unwrap();
        // Running statistics are of what passes through, whether or not weights move.
        let buffer = name.ends_with("mean") || name.ends_with("variance");
        assert_eq!(values != before, buffer, "{name}");
    }
}

/// Returns the reason for which there is no network of these layers.
fn refusal(
    layers: Vec<LayerConfig>,
    image: Option<[usize; 3]>,
    features: usize,
    head: LastLayer,
) -> String {
    let config = listed(layers, image);
    let network = NetworkModel::new(&config, features, head);
    network.err().unwrap().to_string()
}

#[test]
fn layers_that_do_not_fit_are_refused_with_the_reason() {
    let one = LastLayer::Dense(1);
    assert_eq!(
        refusal(vec![], Some([3, 32, 32]), 100, one),
        "the rows have 100 features, but an image of 3×32×32 has 3072 values: set `image` to what the columns hold, as [channels, height, width]"
    );
    assert_eq!(
        refusal(
            vec![LayerConfig::Dense(4), LayerConfig::conv(4, 3)],
            Some([1, 4, 4]),
            16,
            one
        ),
        "a conv layer needs an image: set `image = [channels, height, width]` to what the columns hold"
    );
    assert_eq!(
        refusal(vec![LayerConfig::pool(2); 3], Some([1, 4, 4]), 16, one),
        "a max-pool layer has windows of 2×2, but the image is 1×1 there: use larger images or fewer poolings"
    );
    let bare = LayerConfig::Conv(ConvConfig {
        channels: 2,
        kernel: 9,
        stride: 1,
        padding: Some(0),
        bias: true,
    });
    let cases = [
        (vec![LayerConfig::UpConv(2)], None, "needs an image"),
        (vec![LayerConfig::pool(2)], None, "needs an image"),
        (vec![LayerConfig::Dense(0)], None, "must be from 1 to"),
        (vec![LayerConfig::Dropout(1.0)], None, "below 1, not 1"),
        (
            vec![bare],
            Some([1, 4, 4]),
            "windows of 9×9, but the image is 4×4",
        ),
        (
            vec![LayerConfig::Dense(1 << 20), LayerConfig::Dense(1 << 20)],
            None,
            "4294967296 weights",
        ),
        (
            vec![LayerConfig::Skip(vec![LayerConfig::pool(2)])],
            Some([1, 4, 4]),
            "a skip layer goes from an image of 4×4 to one of 2×2",
        ),
        (
            vec![LayerConfig::Residual(vec![LayerConfig::UpConv(1)])],
            Some([1, 4, 4]),
            "a residual layer goes from an image of 4×4 to one of 8×8",
        ),
    ];
    for (layers, image, expected) in cases {
        let error = refusal(layers, image, 16, one);
        assert!(error.contains(expected), "{error}");
    }
    let narrow = LastLayer::Pixels(9);
    assert_eq!(
        refusal(vec![], Some([1, 4, 4]), 16, narrow),
        "the network ends in an image of 4×4, but the mask has 9 pixels"
    );
}

#[test]
fn unfit_groups_and_widths_are_refused_with_the_reason() {
    let one = LastLayer::Dense(1);
    let groups = NetworkConfig {
        norm: NormConfig::Group(3),
        ..listed(vec![LayerConfig::Norm], Some([4, 2, 2]))
    };
    let error = NetworkModel::new(&groups, 16, one).err().unwrap();
    assert_eq!(
        error.to_string(),
        "4 channels cannot be divided into 3 groups of one size: choose another number in `norm`"
    );
    let wide = NetworkConfig {
        width: 0.0,
        ..listed(vec![], None)
    };
    let error = NetworkModel::new(&wide, 16, one).err().unwrap();
    assert_eq!(
        error.to_string(),
        "`width` must be above 0 and at most 1024, not 0"
    );
}

#[test]
fn a_network_is_written_as_a_name_or_as_layers() {
    let read = |text: &str| toml::from_str::<NetworkConfig>(text);
    let config = read("layers = 'resnet18-small'\nnorm = { group = 8 }").unwrap();
    let expected = NetworkConfig {
        norm: NormConfig::Group(8),
        ..named(Architecture::Resnet18Small)
    };
    assert_eq!(config, expected);
    let text = "image = [1, 8, 8]\nwidth = 0.5\nlayers = [\
        { conv = { channels = 4, kernel = 3 } }, 'norm', 'relu', { max-pool = { size = 2 } }, \
        { residual = [{ conv = { channels = 4, kernel = 3, bias = false } }] }, \
        { skip = [{ max-pool = { size = 2 } }, { up-conv = 4 }] }, \
        { dropout = 0.5 }, { dense = 6 }, 'relu']";
    let config = read(text).unwrap();
    let LayersConfig::Listed(layers) = &config.layers else {
        panic!("a list")
    };
    assert_eq!(layers[0], LayerConfig::conv(4, 3));
    assert_eq!(
        layers[4],
        LayerConfig::Residual(vec![LayerConfig::bare(4, 3, 1)])
    );
    assert_eq!(sizes(&network(&config, LastLayer::Dense(3))).1, 4);
    for config in [config, expected] {
        let text = toml::to_string(&config).unwrap();
        assert_eq!(read(&text).unwrap(), config, "{text}");
    }
    for architecture in Architecture::ALL {
        let text = toml::to_string(&named(architecture)).unwrap();
        assert_eq!(read(&text).unwrap(), named(architecture), "{text}");
    }
    let wrong = |text: &str| read(text).unwrap_err().message().to_owned();
    let unknown = wrong("layers = 'lenet'");
    assert!(
        unknown.contains("lenet") && unknown.contains("leaf-femnist"),
        "{unknown}"
    );
    let unknown = wrong("layers = ['tanh']");
    assert!(
        unknown.contains("tanh") && unknown.contains("relu"),
        "{unknown}"
    );
    let kind = wrong("layers = 3");
    assert!(
        kind.contains("the name of a network or a list of layers"),
        "{kind}"
    );
}

/// Cost of a training step of every network at its paper's batch size:
/// `cargo test --release -p learn --lib -- --ignored --nocapture network_step_costs`.
#[test]
#[ignore = "a measurement, not a test"]
fn network_step_costs() {
    use Architecture::*;
    let ten = LastLayer::Dense(10);
    let cases = [
        (FedavgCnn, None, ten, 64),
        (LeafCeleba, None, LastLayer::Dense(2), 5),
        (LeafFemnist, None, LastLayer::Dense(62), 10),
        (HcctDigits, None, ten, 64),
        (HcctCifar, None, ten, 64),
        (HcctFmnist, Some([1, 28, 28]), ten, 64),
        (Tpt48, Some([6, 1, 1]), LastLayer::Dense(6), 64),
        (Resnet18Small, None, LastLayer::Dense(7), 8),
        (Resnet18, None, LastLayer::Dense(7), 8),
        (Resnet50Small, None, LastLayer::Dense(10), 64),
        (Unet, Some([1, 64, 64]), LastLayer::Pixels(64 * 64), 4),
    ];
    for (architecture, image, head, batch) in cases {
        let config = NetworkConfig {
            image,
            ..named(architecture)
        };
        let network = network(&config, head);
        let width = network.input.iter().product();
        let (data, loss) = match head {
            LastLayer::Dense(6) => (
                rows(batch, width, 6, |value| value),
                Loss::Regression(RegressionLoss::Squared),
            ),
            LastLayer::Dense(classes) => (
                rows(batch, width, 1, |value| (value * classes as f64).floor()),
                Loss::Softmax,
            ),
            LastLayer::Pixels(pixels) => (
                rows(batch, width, pixels, f64::round),
                Loss::Dice { pixels },
            ),
        };
        let sgd = Optimiser::Sgd {
            rate: 1e-3,
            momentum: 0.9,
            weight_decay: 0.0,
        };
        let start = params(&network, 1);
        let mut fit = network.fit(&start, loss, &sgd, None, 1);
        let all: Vec<u32> = (0..batch as u32).collect();
        fit.step(&data, &all);
        let started = std::time::Instant::now();
        let mut steps = 0;
        while steps < 3 || started.elapsed().as_secs_f64() < 1.0 && steps < 1000 {
            fit.step(&data, &all);
            steps += 1;
        }
        let each = started.elapsed().as_secs_f64() / f64::from(steps);
        eprintln!("{architecture:?}, batch {batch}: {:.2} ms", each * 1e3);
    }
}
