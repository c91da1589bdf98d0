use super::*;
use crate::device::tests::every;
use crate::models::tests::rows;

fn options() -> Stochastic {
    Stochastic {
        length: 0.3,
        distance: 0.2,
        draws: 20,
    }
}

fn column(values: &[f32], device: &Device) -> Tensor<2> {
    matrix(values.to_vec(), [values.len(), 1], device.tensors())
}

#[test]
fn the_divergence_is_that_of_two_normal_distributions() {
    every().iter().for_each(divergence_by_integration);
}

fn divergence_by_integration(device: &Device) {
    let of = |mean, deviation, class_mean, spread| -> f64 {
        let [mean, deviation, class_mean, spread] =
            [mean, deviation, class_mean, spread].map(|value: f32| column(&[value], device));
        floats(divergence(mean, deviation, class_mean, spread))[0].into()
    };
    assert!(of(0.7, 1.3, 0.7, 1.3).abs() < 1e-6);
    // By integration over a fine grid.
    let (m, s, r, t) = (0.5f64, 0.8f64, -0.4f64, 1.7f64);
    let density = |x: f64, m: f64, s: f64| {
        (-(x - m) * (x - m) / (2.0 * s * s)).exp() / (s * std::f64::consts::TAU.sqrt())
    };
    let grid = (-200_000..200_000).map(|at| f64::from(at) * 1e-4);
    let each = grid.map(|x| {
        let (p, q) = (density(x, m, s), density(x, r, t));
        if p > 0.0 {
            p * (p / q).ln() * 1e-4
        } else {
            0.0
        }
    });
    let integral: f64 = each.sum();
    assert!(
        (of(0.5, 0.8, -0.4, 1.7) - integral).abs() < 1e-5,
        "{integral}"
    );
}

/// The loss in `f64` by plain loops, over one hidden layer.
fn by_hand(encoder: &Encoder, values: &[f64], data: &Rows, noise: &[f32]) -> f64 {
    let mut rest = values;
    let mut take = |slot: &TensorSpec| {
        let (own, after) = rest.split_at(slot.len());
        rest = after;
        own
    };
    let slots: Vec<&[f64]> = encoder.slots.iter().map(&mut take).collect();
    let [w0, w1, b0, b1, scale, class_mean, spread] = slots[..] else {
        panic!("one hidden layer");
    };
    let (z, classes) = (encoder.z(), encoder.classes());
    let softplus = |x: f64| x.exp().ln_1p();
    let mut total = 0.0;
    for row in 0..data.len() {
        let x = data.features(row);
        let unit = |out: usize| -> f64 {
            let weights = &w0[out * x.len()..][..x.len()];
            let sum: f64 = weights.iter().zip(x).map(|(w, &x)| w * f64::from(x)).sum();
            sum + b0[out]
        };
        let mean: Vec<f64> = (0..z).map(unit).collect();
        let deviation: Vec<f64> = (z..2 * z).map(|out| softplus(unit(out))).collect();
        let drawn: Vec<f64> = (0..z)
            .map(|d| mean[d] + deviation[d] * f64::from(noise[row * z + d]))
            .collect();
        let logits: Vec<f64> = (0..classes)
            .map(|class| {
                let weights = &w1[class * z..][..z];
                b1[class] + weights.iter().zip(&drawn).map(|(w, z)| w * z).sum::<f64>()
            })
            .collect();
        let label = data.targets()[row] as usize;
        total += logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[label];
        total += encoder.options.length * drawn.iter().map(|z| z * z).sum::<f64>().sqrt();
        let distance: f64 = (0..z)
            .map(|d| {
                let (m, s) = (scale[0] * mean[d], scale[0].abs() * deviation[d]);
                let (r, t) = (class_mean[label * z + d], softplus(spread[label * z + d]));
                (t / s).ln() + (s * s + (m - r) * (m - r)) / (2.0 * t * t) - 0.5
            })
            .sum();
        total += encoder.options.distance * distance;
    }
    total / data.len() as f64
}

#[test]
fn gradients_are_those_of_finite_differences() {
    every().iter().for_each(gradients_by_differences);
}

fn gradients_by_differences(device: &Device) {
    let (encoder, data) = (Encoder::new(&[4, 3, 3], options(), device), rows(11, 4, 3));
    let mut rng = stream(5, "values");
    let count = encoder.slots.iter().map(TensorSpec::len).sum();
    let values: Vec<f64> = (0..count).map(|_| uniform(&mut rng) * 1.6 - 0.7).collect();
    let device = device.tensors().clone().autodiff();
    let noise = floats(encoder.noise(&mut rng, data.len(), &device));
    let leaves = encoder.leaves(&values, &device).into_iter();
    let leaves: Vec<_> = leaves.map(Tensor::require_grad).collect();
    let labels: Vec<i32> = data.targets().iter().map(|&label| label as i32).collect();
    let input = matrix(data.all().to_vec(), [data.len(), 4], &device);
    let drawn = matrix(noise.clone(), [data.len(), 3], &device);
    let loss = encoder.loss(&leaves, input, &labels, drawn);
    let slopes = loss.backward();
    let expected = by_hand(&encoder, &values, &data, &noise);
    assert!((f64::from(floats(loss)[0]) - expected).abs() < 1e-5);
    let gradient: Vec<f32> = leaves
        .iter()
        .flat_map(|leaf| floats(leaf.grad(&slopes).unwrap()))
        .collect();
    for (at, &slope) in gradient.iter().enumerate() {
        let off = |by: f64| {
            let mut values = values.clone();
            values[at] += by;
            by_hand(&encoder, &values, &data, &noise)
        };
        let difference = (off(1e-5) - off(-1e-5)) / 2e-5;
        assert!(
            (f64::from(slope) - difference).abs() < 1e-4,
            "{at}: {slope} {difference}"
        );
    }
    assert!(gradient.iter().filter(|slope| slope.abs() > 1e-3).count() > count / 2);
}

#[test]
fn outputs_are_log_probabilities_and_always_the_same() {
    every().iter().for_each(outputs_of);
}

fn outputs_of(device: &Device) {
    let encoder = Encoder::new(&[4, 6, 5, 3], options(), device);
    let data = rows(9, 4, 3);
    let (shared, own) = encoder.tensors();
    assert!(own.iter().all(|tensor| tensor.name.starts_with("class.")));
    let layout = methods::Layout::new(shared).unwrap();
    let model = Params::build(&layout, |into| {
        for (name, values) in encoder.initial(3) {
            if let Some(at) = layout.position(&name) {
                into[layout.range(at)].copy_from_slice(&values);
            }
        }
    });
    let outputs = encoder.outputs(&model, &data);
    assert_eq!(outputs, encoder.outputs(&model, &data));
    for row in outputs.chunks(3) {
        assert!((row.iter().map(|log| log.exp()).sum::<f64>() - 1.0).abs() < 1e-6);
    }
    assert!(!Encoder::suits(&[4, 3]) && Encoder::suits(&[4, 3, 3]));
}
