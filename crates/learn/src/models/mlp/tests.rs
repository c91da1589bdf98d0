#![allow(clippy::unwrap_used)]
use burn_core::tensor::activation::log_softmax;
use burn_core::tensor::{Int, Tensor, TensorData};

use super::*;
use crate::device::tests::every;
use crate::models::tests::{params, rows};
use crate::models::{Loss, RegressionLoss};

/// Mean loss and gradients by burn's autodiff.
fn by_autodiff(model: &Mlp, start: &Params, data: &Rows, loss: Loss) -> (f64, Vec<LayerTensors>) {
    let device = model.device.tensors().clone().autodiff();
    let layers: Vec<LayerTensors> = model
        .load(start)
        .into_iter()
        .map(|layer| LayerTensors {
            weight: layer.weight.autodiff().require_grad(),
            bias: layer.bias.autodiff().require_grad(),
        })
        .collect();
    let input = matrix(data.all().to_vec(), data.len(), data.width(), &device);
    let (_, output) = forward(&layers, input);
    let value = match loss {
        Loss::Softmax => {
            let classes: Vec<i32> = data.targets().iter().map(|&class| class as i32).collect();
            let classes =
                Tensor::<2, Int>::from_data(TensorData::new(classes, [data.len(), 1]), &device);
            log_softmax(output, 1).gather(1, classes).mean().neg()
        }
        Loss::Regression(kind) => {
            let targets = matrix(data.targets().to_vec(), data.len(), 1, &device);
            match kind {
                RegressionLoss::Absolute => (output - targets).abs().mean(),
                RegressionLoss::Squared => (output - targets).square().mean(),
            }
        }
        Loss::Logistic | Loss::Dice { .. } | Loss::Cox => {
            unreachable!("perceptrons have one output per class or number")
        }
    };
    let gradients = value.backward();
    let by_layer = layers.iter().map(|layer| LayerTensors {
        weight: layer.weight.grad(&gradients).unwrap(),
        bias: layer.bias.grad(&gradients).unwrap(),
    });
    let by_layer = by_layer.collect();
    (f64::from(floats(value)[0]), by_layer)
}

#[test]
fn gradients_by_hand_equal_autodiff() {
    every().iter().for_each(by_hand_equals_autodiff);
}

fn by_hand_equals_autodiff(device: &Device) {
    for (hidden, outputs, loss) in [
        (&[7usize, 5][..], 3, Loss::Softmax),
        (&[], 3, Loss::Softmax),
        (&[6], 1, Loss::Regression(RegressionLoss::Squared)),
        (&[6], 1, Loss::Regression(RegressionLoss::Absolute)),
    ] {
        let data = rows(17, 4, outputs.max(2));
        let model = Mlp {
            device: device.clone(),
            ..Mlp::new(4, hidden, outputs)
        };
        let start = params(&model, 5);
        let input = matrix(data.all().to_vec(), 17, 4, device.tensors());
        let (value, hand) = backward(&model.load(&start), input, data.targets(), loss);
        let (expected, auto) = by_autodiff(&model, &start, &data, loss);
        assert!((value - expected).abs() < 1e-5, "{value} {expected}");
        assert_eq!(hand.len(), auto.len());
        for (hand, auto) in hand.into_iter().zip(auto) {
            let pairs = [
                (floats(hand.weight), floats(auto.weight)),
                (floats(hand.bias), floats(auto.bias)),
            ];
            for (hand, auto) in pairs {
                assert_eq!(hand.len(), auto.len());
                assert!(auto.iter().any(|slope| slope.abs() > 1e-4));
                for (hand, auto) in hand.iter().zip(auto) {
                    assert!((hand - auto).abs() < 1e-6, "{loss:?}: {hand} {auto}");
                }
            }
        }
    }
}

/// Cost of a step by hand and by autodiff, on 64-128-10 with 32 rows:
/// `cargo test --release -p learn --lib -- --ignored --nocapture step_costs`.
#[test]
#[ignore = "a measurement, not a test"]
fn step_costs() {
    let (data, model) = (rows(32, 64, 10), Mlp::new(64, &[128], 10));
    let start = params(&model, 5);
    let sgd = Optimiser::Sgd {
        rate: 1e-3,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    let mut fit = model.fit(&start, Loss::Softmax, &sgd, None, 1);
    let batch: Vec<u32> = (0..32).collect();
    let time = |name: &str, steps: u32, step: &mut dyn FnMut()| {
        let started = std::time::Instant::now();
        (0..steps).for_each(|_| step());
        eprintln!(
            "{name}: {:.1} µs",
            started.elapsed().as_secs_f64() * 1e6 / f64::from(steps)
        );
    };
    time("perceptron, by hand, with SGD", 2000, &mut || {
        fit.step(&data, &batch);
    });
    time("perceptron, autodiff, gradients only", 2000, &mut || {
        by_autodiff(&model, &start, &data, Loss::Softmax);
    });
    let (data, batch) = (rows(16, 13, 2), (0..16).collect::<Vec<_>>());
    let line = crate::models::Linear { features: 13 };
    let mut fit = line.fit(&params(&line, 5), Loss::Logistic, &sgd, None, 1);
    time(
        "logistic, 13 features, 16 rows, plain loops, with SGD",
        100_000,
        &mut || {
            fit.step(&data, &batch);
        },
    );
    let (wide, start) = (Mlp::new(13, &[], 2), params(&Mlp::new(13, &[], 2), 5));
    let mut fit = wide.fit(&start, Loss::Softmax, &sgd, None, 1);
    time(
        "the same as a softmax on burn, by hand, with SGD",
        20_000,
        &mut || {
            fit.step(&data, &batch);
        },
    );
}
