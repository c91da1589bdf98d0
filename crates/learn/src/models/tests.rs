#![allow(clippy::unwrap_used)]
use methods::params::Gate;
use methods::{GradientModifier, Layout};
use task::model::ConvConfig;
use task::model::LayerConfig;
use task::model::LayersConfig;
use task::model::NetworkConfig;

use super::*;
use crate::device::tests::every;
use crate::random::{stream, uniform};

/// Random rows: features in ±1, classes below `classes`.
pub(super) fn rows(count: usize, width: usize, classes: usize) -> Rows {
    let mut rng = stream(11, "test rows");
    let features = (0..count * width)
        .map(|_| (2.0 * uniform(&mut rng) - 1.0) as f32)
        .collect();
    let targets = (0..count).map(|_| (uniform(&mut rng) * classes as f64).floor() as f32);
    Rows::new(width, features, targets.collect())
}

/// Random rows that suit a loss; for times to an event some with the same time, and some that enter late.
fn rows_for(loss: Loss, classes: usize) -> Rows {
    let plain = rows(9, 4, classes);
    if loss != Loss::Cox {
        return plain;
    }
    let targets = (0..9u8).flat_map(|row| {
        let (event, entry) = (u8::from(row % 3 < 2), row % 2);
        [event, 2 + row % 4, entry].map(f32::from)
    });
    Rows::wide(4, 3, plain.all().to_vec(), targets.collect())
}

/// A model's initial values; where these are zero, random ones.
pub(super) fn params(model: &dyn Model, seed: u64) -> Params {
    let layout = Layout::new(model.tensors()).unwrap();
    let mut rng = stream(seed, "test weights");
    let named = model.initial(seed);
    Params::build(&layout, |into| {
        into.iter_mut()
            .for_each(|value| *value = (uniform(&mut rng) - 0.5) as f32);
        for (name, values) in named {
            into[layout.range(layout.position(&name).unwrap())].copy_from_slice(&values);
        }
    })
}

fn mean_loss(model: &dyn Model, at: &Params, data: &Rows, loss: Loss) -> f64 {
    let outputs = model.outputs(at, data);
    loss.mean(&outputs, data.targets(), &mut vec![0.0; outputs.len()])
}

/// A plain step of rate 1 moves by minus the gradient.
fn gradient(
    model: &dyn Model,
    at: &Params,
    data: &Rows,
    loss: Loss,
    modifier: Option<&GradientModifier<'_>>,
) -> Vec<f64> {
    let plain = Optimiser::Sgd {
        rate: 1.0,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    let mut fit = model.fit(at, loss, &plain, modifier, 1);
    let all: Vec<u32> = (0..data.len() as u32).collect();
    let value = fit.step(data, &all);
    assert!((value - mean_loss(model, at, data, loss)).abs() < 1e-6);
    let mut slopes = vec![0.0; at.layout().len()];
    for (name, values) in fit.finish() {
        let range = at.layout().range(at.layout().position(&name).unwrap());
        for (index, value) in range.zip(values) {
            slopes[index] = f64::from(at.values()[index]) - f64::from(value);
        }
    }
    slopes
}

/// Families on every device, losses, and how many classes these need.
fn families(test: &mut dyn FnMut(&dyn Model, Loss, usize)) {
    let absolute = Loss::Regression(RegressionLoss::Absolute);
    let squared = Loss::Regression(RegressionLoss::Squared);
    let line = Linear { features: 4 };
    let images = NetworkConfig {
        image: Some([1, 2, 2]),
        ..NetworkConfig::new(LayersConfig::Listed(vec![
            LayerConfig::Conv(ConvConfig {
                channels: 3,
                kernel: 3,
                stride: 1,
                padding: None,
                bias: true,
            }),
            LayerConfig::Relu,
            LayerConfig::UpConv(2),
            LayerConfig::Dense(5),
            LayerConfig::Relu,
        ]))
    };
    let network = |outputs| NetworkModel::new(&images, 4, LastLayer::Dense(outputs)).unwrap();
    let cases: [(&dyn Model, Loss, usize); 11] = [
        (&line, absolute, 5),
        (&line, squared, 5),
        (&line, Loss::Logistic, 2),
        (&Mlp::new(4, &[6], 1), squared, 5),
        (&Mlp::new(4, &[6, 5], 3), Loss::Softmax, 3),
        (&Mlp::new(4, &[], 3), Loss::Softmax, 3),
        (&network(1), squared, 5),
        (&network(3), Loss::Softmax, 3),
        (&line, Loss::Cox, 1),
        (&Mlp::new(4, &[6], 1), Loss::Cox, 1),
        (&network(1), Loss::Cox, 1),
    ];
    for device in every() {
        for (model, loss, classes) in cases {
            test(&*model.on(&device), loss, classes);
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    families(&mut |model, loss, classes| {
        let (data, at) = (rows_for(loss, classes), params(model, 3));
        let slopes = gradient(model, &at, &data, loss, None);
        for (index, slope) in slopes.iter().enumerate() {
            let moved = |step: f32| {
                let mut values = at.values().to_vec();
                values[index] += step;
                mean_loss(
                    model,
                    &Params::from_values(at.layout(), &values),
                    &data,
                    loss,
                )
            };
            let step = 1.0 / 1024.0;
            let difference = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            assert!(
                (slope - difference).abs() < 2e-3,
                "{loss:?} {index}: {slope} {difference}"
            );
        }
    });
}

#[test]
fn a_modifier_changes_the_gradient_of_the_tensors_that_it_names() {
    families(&mut |model, loss, classes| {
        let (data, at) = (rows_for(loss, classes), params(model, 3));
        let plain = gradient(model, &at, &data, loss, None);
        let anchor = Params::build(at.layout(), |into| into.fill(0.25));
        // The shift is of weights only; the first tensor of the file stays.
        let weights = at.layout().select(|tensor| tensor.name.ends_with("weight"));
        let shift = Params::build(&weights, |into| into.fill(-0.5));
        let first = &at.layout().tensors()[0].name;
        let frozen = at.layout().select(|tensor| tensor.name == *first);
        let modifier = GradientModifier {
            mu: 3.0,
            anchor: &anchor,
            shift: Some(&shift),
            frozen: Some(&frozen),
        };
        let modified = gradient(model, &at, &data, loss, Some(&modifier));
        for (position, tensor) in at.layout().tensors().iter().enumerate() {
            for index in at.layout().range(position) {
                let shift = weights.position(&tensor.name).map_or(0.0, |_| -0.5);
                let towards = 3.0 * (f64::from(at.values()[index]) - 0.25);
                let expected = match position {
                    0 => 0.0,
                    _ => plain[index] + towards + shift,
                };
                let off = (modified[index] - expected).abs();
                assert!(
                    off < 1e-5,
                    "{loss:?} {}: {} {expected}",
                    tensor.name,
                    modified[index]
                );
            }
        }
    });
}

/// `weight` after each of three steps on one row with `x = 1`, target 0, from weight 1 and bias 0:
/// the gradient of the squared loss is 2·(weight + bias) for both.
fn weights(optimiser: &Optimiser, model: &dyn Model) -> Vec<(f64, f64)> {
    let layout = Layout::new(model.tensors()).unwrap();
    let start = Params::from_values(&layout, &[0.0, 1.0]);
    let data = Rows::new(1, vec![1.0], vec![0.0]);
    let path = (1..=3).map(|steps| {
        let squared = Loss::Regression(RegressionLoss::Squared);
        let mut fit = model.fit(&start, squared, optimiser, None, 1);
        (0..steps).for_each(|_| {
            fit.step(&data, &[0]);
        });
        let named = fit.finish();
        let value = |part: &str| {
            f64::from(
                named
                    .iter()
                    .find(|(name, _)| name.ends_with(part))
                    .unwrap()
                    .1[0],
            )
        };
        (value("weight"), value("bias"))
    });
    path.collect()
}

fn assert_path(optimiser: Optimiser, expected: [(f64, f64); 3]) {
    let nothing = NetworkConfig::new(LayersConfig::Listed(Vec::new()));
    let network = NetworkModel::new(&nothing, 1, LastLayer::Dense(1)).unwrap();
    let families = [
        &Linear { features: 1 } as &dyn Model,
        &Mlp::new(1, &[], 1),
        &network,
    ];
    let devices = every();
    let on = |model: &&dyn Model| -> Vec<_> { devices.iter().map(|at| model.on(at)).collect() };
    for model in families.iter().flat_map(on) {
        for (got, expected) in weights(&optimiser, &*model).into_iter().zip(expected) {
            let off = (got.0 - expected.0).abs().max((got.1 - expected.1).abs());
            // burn keeps its constants in f32.
            assert!(off < 1e-5, "{optimiser:?}: {got:?} {expected:?}");
        }
    }
}

#[test]
fn optimisers_take_the_steps_computed_by_hand() {
    // Gradient 2, then 2·(.8−.2) = 1.2, then 2·(.68−.32) = .72.
    let plain = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    assert_path(plain, [(0.8, -0.2), (0.68, -0.32), (0.608, -0.392)]);
    // Velocity 2, .5·2 + 1.2 = 2.2, .5·2.2 + 2·(.58−.42) = 1.42.
    let momentum = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.5,
        weight_decay: 0.0,
    };
    assert_path(momentum, [(0.8, -0.2), (0.58, -0.42), (0.438, -0.562)]);
    // On the weight only: gradient 2 + .5·1 = 2.5; 2·(.75−.2) = 1.1, + .5·.75 = 1.475;
    // 2·(.6025−.31) = .585, + .5·.6025 = .88625.
    let decay = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.0,
        weight_decay: 0.5,
    };
    assert_path(decay, [(0.75, -0.2), (0.6025, -0.31), (0.513875, -0.3685)]);
    // The first Adam step is the rate. Then gradient 1.6: moments .34 / .19 and .006556… / .001999;
    // then 2·(.8041…−.1958…) likewise.
    let adam = Optimiser::Adam {
        rate: 0.1,
        weight_decay: 0.0,
    };
    let step = |m: f64, v: f64, t: i32| {
        0.1 * (m / (1.0 - 0.9f64.powi(t))) / ((v / (1.0 - 0.999f64.powi(t))).sqrt() + 1e-8)
    };
    let second = step(0.9 * 0.2 + 0.1 * 1.6, 0.999 * 0.004 + 0.001 * 2.56, 2);
    let slope = 2.0 * (1.0 - 2.0 * (0.1 + second));
    let third = step(
        0.9 * 0.34 + 0.1 * slope,
        0.999 * 0.006_556 + 0.001 * slope * slope,
        3,
    );
    let at = |moved: f64| (1.0 - moved, -moved);
    assert_path(adam, [at(0.1), at(0.1 + second), at(0.1 + second + third)]);
}

#[test]
fn a_trained_model_survives_safetensors_on_every_device() {
    families(&mut |model, loss, classes| {
        let data = rows_for(loss, classes);
        let adam = Optimiser::Adam {
            rate: 1e-2,
            weight_decay: 1e-3,
        };
        let start = params(model, 3);
        let train = || {
            let mut fit = model.fit(&start, loss, &adam, None, 1);
            let losses = [&[0, 3, 5][..], &[1, 2], &[8]].map(|batch| fit.step(&data, batch));
            let named = fit.finish();
            let trained = Params::build(start.layout(), |into| {
                for (name, values) in named {
                    let at = start.layout().position(&name).unwrap();
                    into[start.layout().range(at)].copy_from_slice(&values);
                }
            });
            (losses.map(f64::to_bits), trained)
        };
        let (losses, trained) = train();
        assert_ne!(trained.values(), start.values());
        // The same again, to the bit.
        assert_eq!((losses, trained.clone()), train());
        let gate = Gate {
            layout: start.layout().clone(),
            norm: f64::INFINITY,
        };
        let read = gate.admit(trained.document()).unwrap();
        assert_eq!(read.values(), trained.values());
        assert_eq!(model.outputs(&read, &data), model.outputs(&trained, &data));
    });
}

#[test]
fn devices_differ_in_the_last_bits_at_most() {
    let mut results: Vec<Vec<f64>> = Vec::new();
    let mut at = 0;
    families(&mut |model, loss, classes| {
        let data = rows_for(loss, classes);
        let slopes = gradient(model, &params(model, 3), &data, loss, None);
        results.push(slopes);
        at += 1;
    });
    let devices = every().len();
    let cases = results.len() / devices;
    assert_eq!(at, cases * devices);
    for device in 1..devices {
        for case in 0..cases {
            let [first, other] = [&results[case], &results[device * cases + case]];
            for (first, other) in first.iter().zip(other) {
                assert!((first - other).abs() < 1e-5, "{case}: {first} {other}");
            }
        }
    }
}

#[test]
fn initial_weights_are_a_function_of_the_seed() {
    let model = Mlp::new(16, &[8], 2);
    assert_eq!(model.initial(1), model.initial(1));
    assert_ne!(model.initial(1), model.initial(2));
    let (name, first) = &model.initial(1)[0];
    assert_eq!((name.as_str(), first.len()), ("layer0.weight", 128));
    assert!(first.iter().all(|value| value.abs() <= 0.25));
    assert!(first.iter().any(|value| value.abs() > 0.2));
}

#[test]
fn losses_do_not_overflow() {
    let mut slope = [0.0; 2];
    assert_eq!(Loss::Logistic.row(&[1000.0], &[0.0], &mut slope), 1000.0);
    assert_eq!(slope[0], 1.0);
    assert_eq!(Loss::Logistic.row(&[1000.0], &[1.0], &mut slope), 0.0);
    assert_eq!(
        Loss::Softmax.row(&[1000.0, 0.0], &[1.0], &mut slope),
        1000.0
    );
    assert_eq!(slope, [1.0, -1.0]);
    let dice = Loss::Dice { pixels: 2 };
    // 1 − (2 + 1)/(1 + 1 + 1) = 0, and 1 − 1/(1 + 1 + 1).
    assert_eq!(dice.row(&[1000.0, -1000.0], &[1.0, 0.0], &mut slope), 0.0);
    let wrong = dice.row(&[-1000.0, 1000.0], &[1.0, 0.0], &mut slope);
    assert!((wrong - 2.0 / 3.0).abs() < 1e-12);
    assert_eq!(slope, [0.0, 0.0]);
}

#[test]
fn soft_dice_by_hand() {
    // p = 1/2, 3/4 and g = 1, 0: 1 − (1 + 1)/(1.25 + 1 + 1) = 5/13; another image has no object.
    let outputs = [0.0, 3f64.ln(), 0.0, 0.0];
    let targets = [1.0, 0.0, 0.0, 0.0];
    let mut slopes = [0.0; 4];
    let dice = Loss::Dice { pixels: 2 };
    let value = dice.mean(&outputs, &targets, &mut slopes);
    // The empty one: 1 − 1/(1 + 1) = 1/2.
    assert!((value - (5.0 / 13.0 + 0.5) / 2.0).abs() < 1e-12, "{value}");
    for index in 0..4 {
        let moved = |step: f64| {
            let mut outputs = outputs;
            outputs[index] += step;
            dice.mean(&outputs, &targets, &mut [0.0; 4])
        };
        let difference = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!((slopes[index] - difference).abs() < 1e-9, "{index}");
    }
}
