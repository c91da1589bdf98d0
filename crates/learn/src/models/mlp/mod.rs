//! The multi-layer perceptron, on burn, with gradients written out.

use std::sync::Arc;

use burn_core::tensor::Tensor;
use burn_core::tensor::activation::relu;
use methods::learner::{GradientModifier, Optimiser};
use methods::{Matrix, Params, Role, TensorSpec};

use super::burn_optimiser::{
    BurnOptimiser, OptimiserMemory, TensorModification, floats, host, matrix, tensor,
};
use super::{Loss, Model, ModelFit, NamedValues};
use crate::data::Rows;
use crate::device::{Device, DeviceSlot};
use crate::onnx::{Attribute, OnnxGraph, Value};
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
            device: Device::cpu(),
        }
    }

    /// Number, inputs and outputs of every layer.
    fn dense(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        self.widths
            .windows(2)
            .enumerate()
            .map(|(layer, pair)| (layer, pair[0], pair[1]))
    }

    fn load(&self, model: &Params) -> Vec<LayerTensors> {
        let known = "the learner checked the layout";
        let device = self.device.tensors();
        self.dense()
            .map(|(layer, ins, outs)| LayerTensors {
                weight: tensor(model, &weight_name(layer), [outs, ins], device).expect(known),
                bias: tensor(model, &bias_name(layer), [outs], device).expect(known),
            })
            .collect()
    }

    /// The part of `modifier` that concerns every layer.
    fn modifications(
        &self,
        modifier: &GradientModifier<'_>,
    ) -> Vec<(TensorModification<2>, TensorModification<1>)> {
        let device = self.device.tensors();
        self.dense()
            .map(|(layer, ins, outs)| {
                (
                    TensorModification::new(modifier, &weight_name(layer), [outs, ins], device),
                    TensorModification::new(modifier, &bias_name(layer), [outs], device),
                )
            })
            .collect()
    }
}

impl Model for Mlp {
    fn tensors(&self) -> Vec<TensorSpec> {
        self.dense()
            .flat_map(|(layer, ins, outs)| {
                [
                    TensorSpec::new(weight_name(layer), [outs, ins], Role::Weight),
                    TensorSpec::new(bias_name(layer), [outs], Role::Bias),
                ]
            })
            .collect()
    }

    fn initial(&self, seed: u64) -> NamedValues {
        let mut rng = stream(seed, "initial weights");
        let mut named = NamedValues::new();
        for (layer, ins, outs) in self.dense() {
            let bound = 1.0 / (ins as f64).sqrt();
            for (name, len) in [(weight_name(layer), ins * outs), (bias_name(layer), outs)] {
                let values = (0..len).map(|_| ((2.0 * uniform(&mut rng) - 1.0) * bound) as f32);
                named.push((name, values.collect()));
            }
        }
        named
    }

    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64> {
        /// Rows at once: memory stays small on large data, and small layers stay on one thread.
        const BLOCK: usize = 512;
        let _slot = self.device.slot();
        let layers = self.load(model);
        let mut outputs = Vec::with_capacity(rows.len() * self.widths[self.widths.len() - 1]);
        for block in rows.all().chunks(BLOCK * rows.width().max(1)) {
            let count = block.len() / rows.width();
            let input = matrix(block.to_vec(), count, rows.width(), self.device.tensors());
            let (_, output) = forward(&layers, input);
            outputs.extend(host(output));
        }
        outputs
    }

    fn graph(&self, graph: &mut OnnxGraph, model: &Params, features: &Value) -> Value {
        let mut value = features.clone();
        for (layer, ins, outs) in self.dense() {
            if layer > 0 {
                value = graph.node("Relu", &[&value], &[]);
            }
            let mut tensor = |name: String, shape: &[usize]| {
                let values = model.tensor(&name).expect("the learner checked the layout");
                graph.floats(&name, shape, values)
            };
            let weight = tensor(weight_name(layer), &[outs, ins]);
            let bias = tensor(bias_name(layer), &[outs]);
            let inputs = [&value, &weight, &bias];
            value = graph.node("Gemm", &inputs, &[("transB", Attribute::Int(1))]);
        }
        value
    }

    fn layers(&self, model: &Params) -> Option<Vec<Matrix>> {
        let weights = |(layer, ins, outs): (usize, usize, usize)| {
            let values = model.tensor(&weight_name(layer))?;
            let at = |row: usize, column: usize| f64::from(values[row * ins + column]);
            Some(Matrix::from_fn(outs, ins, at))
        };
        self.dense().map(weights).collect()
    }

    fn output_layer(&self) -> Option<String> {
        Some(format!("layer{}", self.widths.len() - 2))
    }

    fn widths(&self) -> Option<&[usize]> {
        Some(&self.widths)
    }

    fn on(&self, device: &Device) -> Arc<dyn Model> {
        Arc::new(Self {
            widths: self.widths.clone(),
            device: device.clone(),
        })
    }

    fn fit(
        &self,
        start: &Params,
        loss: Loss,
        optimiser: &Optimiser,
        modifier: Option<&GradientModifier<'_>>,
        _seed: u64,
    ) -> Box<dyn ModelFit> {
        let slot = self.device.slot();
        let layers = self.load(start);
        Box::new(MlpFit {
            memory: layers
                .iter()
                .map(|_| (OptimiserMemory::Empty, OptimiserMemory::Empty))
                .collect(),
            layers,
            modifications: modifier.map_or(Vec::new(), |modifier| self.modifications(modifier)),
            device: self.device.clone(),
            loss,
            optimiser: BurnOptimiser::new(optimiser),
            _slot: slot,
        })
    }
}

fn weight_name(layer: usize) -> String {
    format!("layer{layer}.weight")
}

fn bias_name(layer: usize) -> String {
    format!("layer{layer}.bias")
}

/// A dense layer: `weight` (out, in), `bias` (out).
#[derive(Clone)]
struct LayerTensors {
    weight: Tensor<2>,
    bias: Tensor<1>,
}

/// A training under way; biases are never decayed.
struct MlpFit {
    layers: Vec<LayerTensors>,
    /// One for every layer, or none.
    modifications: Vec<(TensorModification<2>, TensorModification<1>)>,
    /// One for every layer.
    memory: Vec<(OptimiserMemory<2>, OptimiserMemory<1>)>,
    device: Device,
    loss: Loss,
    optimiser: BurnOptimiser,
    _slot: DeviceSlot,
}

impl ModelFit for MlpFit {
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        let rows = rows.pick(batch);
        let device = self.device.tensors();
        let input = matrix(rows.all().to_vec(), rows.len(), rows.width(), device);
        let (loss, gradients) = backward(&self.layers, input, rows.targets(), self.loss);
        let each = self.layers.iter_mut().zip(&mut self.memory).zip(gradients);
        for (index, ((layer, memory), gradient)) in each.enumerate() {
            let (mut weight, mut bias) = (Some(gradient.weight), Some(gradient.bias));
            if let Some((first, second)) = self.modifications.get(index) {
                weight = weight.and_then(|gradient| first.change(&layer.weight, gradient));
                bias = bias.and_then(|gradient| second.change(&layer.bias, gradient));
            }
            if let Some(gradient) = weight {
                let tensor = &mut layer.weight;
                self.optimiser.step(true, tensor, gradient, &mut memory.0);
            }
            if let Some(gradient) = bias {
                let tensor = &mut layer.bias;
                self.optimiser.step(false, tensor, gradient, &mut memory.1);
            }
        }
        loss
    }

    fn finish(self: Box<Self>) -> NamedValues {
        let mut named = NamedValues::new();
        for (index, layer) in self.layers.into_iter().enumerate() {
            named.push((weight_name(index), floats(layer.weight)));
            named.push((bias_name(index), floats(layer.bias)));
        }
        named
    }
}

/// The inputs of every layer, and the outputs: rows × k.
fn forward(layers: &[LayerTensors], input: Tensor<2>) -> (Vec<Tensor<2>>, Tensor<2>) {
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
fn backward(
    layers: &[LayerTensors],
    input: Tensor<2>,
    targets: &[f32],
    loss: Loss,
) -> (f64, Vec<LayerTensors>) {
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
        gradients.push(LayerTensors { weight, bias });
        if index > 0 {
            let dead = input.lower_equal_scalar(0.0);
            slope = slope.matmul(layer.weight.clone()).mask_fill(dead, 0.0);
        }
    }
    gradients.reverse();
    (value, gradients)
}

#[cfg(test)]
mod tests;
