//! The multi-layer perceptron, on burn.

use burn::optim::{Adam, AdamConfig, Optimizer, Sgd, SgdConfig};
use burn::optim::{decay::WeightDecayConfig, momentum::MomentumConfig};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor, TensorData};
use methods::learner::Optimiser;
use methods::{Params, Role, TensorSpec};

use super::rule::ADAM;
use super::{Fit, Loss, Model, Named};
use crate::data::Rows;
use crate::random::{stream, uniform};

/// Dense layers with ReLU between them: `layerN.weight` `(out, in)` and `layerN.bias` `(out)`.
/// Starts from weights and biases uniform in `±1/√in`.
pub(crate) struct Mlp {
    /// Features, hidden widths, outputs.
    widths: Vec<usize>,
    device: Device,
}

impl Mlp {
    pub(crate) fn new(features: usize, hidden: &[usize], outputs: usize) -> Self {
        let mut widths = vec![features];
        widths.extend(hidden);
        widths.push(outputs);
        Self {
            widths,
            device: Device::flex(),
        }
    }

    fn layers(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.widths
            .windows(2)
            .enumerate()
            .map(|(layer, pair)| (layer, pair[0], pair[1]))
    }

    fn load(&self, model: &Params) -> Vec<Layer> {
        let tensor = |name: String| {
            model
                .tensor(&name)
                .expect("the learner checked the layout")
                .to_vec()
        };
        self.layers()
            .map(|(layer, ins, outs)| Layer {
                weight: matrix(
                    tensor(format!("layer{layer}.weight")),
                    outs,
                    ins,
                    &self.device,
                ),
                bias: Tensor::from_data(
                    TensorData::new(tensor(format!("layer{layer}.bias")), [outs]),
                    &self.device,
                ),
            })
            .collect()
    }
}

impl Model for Mlp {
    fn tensors(&self) -> Vec<TensorSpec> {
        self.layers()
            .flat_map(|(layer, ins, outs)| {
                [
                    TensorSpec::new(format!("layer{layer}.weight"), [outs, ins], Role::Weight),
                    TensorSpec::new(format!("layer{layer}.bias"), [outs], Role::Bias),
                ]
            })
            .collect()
    }

    fn initial(&self, seed: u64) -> Named {
        let mut rng = stream(seed, "initial weights");
        let mut named = Named::new();
        for (layer, ins, outs) in self.layers() {
            let bound = 1.0 / (ins as f64).sqrt();
            for (part, len) in [("weight", ins * outs), ("bias", outs)] {
                let values = (0..len).map(|_| ((2.0 * uniform(&mut rng) - 1.0) * bound) as f32);
                named.push((format!("layer{layer}.{part}"), values.collect()));
            }
        }
        named
    }

    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64> {
        /// Rows at once: memory stays small on large data, and small layers stay on one thread.
        const BLOCK: usize = 512;
        let layers = self.load(model);
        let mut outputs = Vec::with_capacity(rows.len() * self.widths[self.widths.len() - 1]);
        for block in rows.all().chunks(BLOCK * rows.width().max(1)) {
            let count = block.len() / rows.width();
            let input = matrix(block.to_vec(), count, rows.width(), &self.device);
            let (_, output) = forward(&layers, input);
            outputs.extend(host(output));
        }
        outputs
    }

    fn fit(&self, start: &Params, loss: Loss, optimiser: &Optimiser) -> Box<dyn Fit> {
        let layers = self.load(start);
        let device = self.device.clone();
        match *optimiser {
            Optimiser::Sgd {
                rate,
                momentum,
                weight_decay,
            } => {
                let rule = |decay: f64| -> Sgd {
                    SgdConfig::new()
                        .with_momentum((momentum > 0.0).then_some(MomentumConfig {
                            momentum,
                            dampening: 0.0,
                            nesterov: false,
                        }))
                        .with_weight_decay(penalty(decay))
                        .build()
                };
                let rules = (rule(weight_decay), rule(0.0));
                Box::new(MlpFit::new(layers, device, loss, rate, rules))
            }
            Optimiser::Adam { rate, weight_decay } => {
                let rule = |decay: f64| -> Adam {
                    AdamConfig::new()
                        .with_beta_1(ADAM.0 as f32)
                        .with_beta_2(ADAM.1 as f32)
                        .with_epsilon(ADAM.2 as f32)
                        .with_weight_decay(penalty(decay))
                        .build()
                };
                let rules = (rule(weight_decay), rule(0.0));
                Box::new(MlpFit::new(layers, device, loss, rate, rules))
            }
        }
    }
}

fn penalty(decay: f64) -> Option<WeightDecayConfig> {
    (decay > 0.0).then(|| WeightDecayConfig::new(decay as f32))
}

/// A dense layer: `weight` (out, in), `bias` (out).
#[derive(Clone)]
struct Layer {
    weight: Tensor<2>,
    bias: Tensor<1>,
}

/// What an optimiser remembers of a layer's weight and bias.
type LayerState<O> = (
    Option<<O as Optimizer>::State<2>>,
    Option<<O as Optimizer>::State<1>>,
);

/// A training under way: burn's optimisers, one for weights and one for biases (never decayed).
struct MlpFit<O: Optimizer> {
    layers: Vec<Layer>,
    states: Vec<LayerState<O>>,
    device: Device,
    loss: Loss,
    rate: f64,
    weights: O,
    biases: O,
}

impl<O: Optimizer> MlpFit<O> {
    fn new(
        layers: Vec<Layer>,
        device: Device,
        loss: Loss,
        rate: f64,
        (weights, biases): (O, O),
    ) -> Self {
        let states = layers.iter().map(|_| (None, None)).collect();
        Self {
            layers,
            states,
            device,
            loss,
            rate,
            weights,
            biases,
        }
    }
}

impl<O: Optimizer> Fit for MlpFit<O> {
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        let mut input = Vec::with_capacity(batch.len() * rows.width());
        let mut targets = Vec::with_capacity(batch.len());
        for &row in batch {
            input.extend_from_slice(rows.features(row as usize));
            targets.push(rows.targets()[row as usize]);
        }
        let input = matrix(input, batch.len(), rows.width(), &self.device);
        let (loss, gradients) = backward(&self.layers, input, &targets, self.loss);
        let each = self.layers.iter_mut().zip(&mut self.states).zip(gradients);
        for ((layer, state), gradient) in each {
            advance(
                &self.weights,
                self.rate,
                &mut layer.weight,
                gradient.weight,
                &mut state.0,
            );
            advance(
                &self.biases,
                self.rate,
                &mut layer.bias,
                gradient.bias,
                &mut state.1,
            );
        }
        loss
    }

    fn finish(self: Box<Self>) -> Named {
        let mut named = Named::new();
        for (index, layer) in self.layers.into_iter().enumerate() {
            named.push((format!("layer{index}.weight"), floats(layer.weight)));
            named.push((format!("layer{index}.bias"), floats(layer.bias)));
        }
        named
    }
}

/// One step of burn's optimiser on one tensor.
fn advance<O: Optimizer, const D: usize>(
    rule: &O,
    rate: f64,
    tensor: &mut Tensor<D>,
    gradient: Tensor<D>,
    state: &mut Option<O::State<D>>,
) {
    // Handing over the only reference lets burn work in place.
    let value = std::mem::replace(tensor, Tensor::empty([0; D], &gradient.device()));
    let (value, next) = rule.step(rate, value, gradient, state.take());
    *tensor = value;
    *state = next;
}

/// The inputs of every layer, and the outputs: rows × k.
fn forward(layers: &[Layer], input: Tensor<2>) -> (Vec<Tensor<2>>, Tensor<2>) {
    let mut inputs = Vec::with_capacity(layers.len());
    let mut value = input;
    for (index, layer) in layers.iter().enumerate() {
        if index > 0 {
            value = relu(value);
        }
        inputs.push(value.clone());
        value =
            value.matmul(layer.weight.clone().transpose()) + layer.bias.clone().unsqueeze::<2>();
    }
    (inputs, value)
}

/// Mean loss, and its gradient by layer. The loss itself, rows × k numbers, is taken on the host.
fn backward(layers: &[Layer], input: Tensor<2>, targets: &[f32], loss: Loss) -> (f64, Vec<Layer>) {
    let device = input.device();
    let (inputs, output) = forward(layers, input);
    let [rows, width] = output.dims();
    let outputs = host(output);
    let mut slopes = vec![0.0; outputs.len()];
    let value = loss.mean(&outputs, targets, &mut slopes);
    let slopes = slopes.into_iter().map(|slope| slope as f32).collect();
    let mut slope = matrix(slopes, rows, width, &device);
    let mut gradients = Vec::with_capacity(layers.len());
    for (index, (layer, input)) in layers.iter().zip(inputs).enumerate().rev() {
        let weight = slope.clone().transpose().matmul(input.clone());
        let bias = slope.clone().sum_dim(0).squeeze_dim::<1>(0);
        gradients.push(Layer { weight, bias });
        if index > 0 {
            let dead = input.lower_equal_scalar(0.0);
            slope = slope.matmul(layer.weight.clone()).mask_fill(dead, 0.0);
        }
    }
    gradients.reverse();
    (value, gradients)
}

fn matrix(values: Vec<f32>, rows: usize, columns: usize, device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, [rows, columns]), device)
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .into_data()
        .try_into_vec::<f32>()
        .expect("the device computes in f32")
}

fn host(tensor: Tensor<2>) -> Vec<f64> {
    floats(tensor).into_iter().map(f64::from).collect()
}

#[cfg(test)]
mod tests;
