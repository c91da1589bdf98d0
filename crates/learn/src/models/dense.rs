//! Gradients of dense layers, row by row, in plain loops.
//!
//! A bound for one row needs that the row has the same gradient wherever it stands. Libraries of tensors add
//! in an order that can depend on the batch and on the number of threads. Here the numbers of a row are
//! computed from this row alone, one after the other.

use std::ops::Range;

use methods::{Layout, Params};

use super::{Loss, Model};

/// Dense layers with ReLU between them, as numbers; none before the first and after the last.
pub(crate) struct DenseLayers {
    layers: Vec<DenseLayer>,
    values: Vec<f64>,
    /// The inputs of every layer, then the outputs, of the row at hand.
    activations: Vec<Vec<f64>>,
}

/// Positions of a layer in a model: the weights (out, in), then the biases (out).
struct DenseLayer {
    weight: Range<usize>,
    bias: Range<usize>,
    ins: usize,
    outs: usize,
}

impl DenseLayers {
    /// Those of a model; `None` for a family that has others.
    pub(crate) fn of(family: &dyn Model, model: &Params) -> Option<Self> {
        let layout = model.layout();
        let layers = if let Some(linear) = family.linear() {
            vec![layer(layout, "weight", "bias", (linear.features, 1))?]
        } else {
            let widths = family.widths()?.windows(2).enumerate();
            let named = widths.map(|(at, pair)| {
                let (weight, bias) = (format!("layer{at}.weight"), format!("layer{at}.bias"));
                layer(layout, &weight, &bias, (pair[0], pair[1]))
            });
            named.collect::<Option<_>>()?
        };
        let first = layers.first()?.ins;
        let sizes = std::iter::once(first).chain(layers.iter().map(|layer| layer.outs));
        Some(Self {
            activations: sizes.map(|size| vec![0.0; size]).collect(),
            values: model
                .values()
                .iter()
                .map(|value| f64::from(*value))
                .collect(),
            layers,
        })
    }

    /// Adds the gradient of one row's loss to `gradient`, in the order of the model's values, and returns
    /// the loss.
    pub(crate) fn add(
        &mut self,
        features: &[f32],
        target: &[f32],
        loss: Loss,
        gradient: &mut [f64],
    ) -> f64 {
        self.forward(features);
        let outputs = &self.activations[self.layers.len()];
        let mut slopes = vec![0.0; outputs.len()];
        let value = loss.mean(outputs, target, &mut slopes);
        for (at, layer) in self.layers.iter().enumerate().rev() {
            let inputs = &self.activations[at];
            let weights = &self.values[layer.weight.clone()];
            let rows = gradient[layer.weight.clone()].chunks_exact_mut(layer.ins);
            for (row, slope) in rows.zip(&slopes) {
                for (sum, input) in row.iter_mut().zip(inputs) {
                    *sum += slope * input;
                }
            }
            for (sum, slope) in gradient[layer.bias.clone()].iter_mut().zip(&slopes) {
                *sum += slope;
            }
            if at > 0 {
                slopes = layer.back(weights, &slopes, inputs);
            }
        }
        value
    }

    fn forward(&mut self, features: &[f32]) {
        let first = self.activations[0].iter_mut();
        first
            .zip(features)
            .for_each(|(input, feature)| *input = f64::from(*feature));
        let last = self.layers.len() - 1;
        for (at, layer) in self.layers.iter().enumerate() {
            let (before, after) = self.activations.split_at_mut(at + 1);
            let weights = self.values[layer.weight.clone()].chunks_exact(layer.ins);
            let biases = &self.values[layer.bias.clone()];
            let outputs = after[0].iter_mut();
            for ((output, weights), bias) in outputs.zip(weights).zip(biases) {
                let products = weights.iter().zip(&before[at]);
                let sum = products.fold(*bias, |sum, (weight, input)| sum + weight * input);
                *output = if at < last { sum.max(0.0) } else { sum };
            }
        }
    }
}

impl DenseLayer {
    /// The slopes of the layer's inputs, which are zero where ReLU was.
    fn back(&self, weights: &[f64], slopes: &[f64], inputs: &[f64]) -> Vec<f64> {
        let mut before = vec![0.0; self.ins];
        for (weights, slope) in weights.chunks_exact(self.ins).zip(slopes) {
            for (sum, weight) in before.iter_mut().zip(weights) {
                *sum += slope * weight;
            }
        }
        for (slope, input) in before.iter_mut().zip(inputs) {
            if *input <= 0.0 {
                *slope = 0.0;
            }
        }
        before
    }
}

fn layer(
    layout: &Layout,
    weight: &str,
    bias: &str,
    (ins, outs): (usize, usize),
) -> Option<DenseLayer> {
    let place = |name: &str| Some(layout.range(layout.position(name)?));
    Some(DenseLayer {
        weight: place(weight)?,
        bias: place(bias)?,
        ins,
        outs,
    })
}
