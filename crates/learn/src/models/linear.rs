//! The linear family, for linear, logistic and Cox regression: one output, linear in the features.

use std::sync::Arc;

use methods::learner::{GradientModifier, Optimiser, OptimiserState};
use methods::robust::LinearModel;
use methods::{Params, Role, TensorSpec};

use super::{Loss, Model, ModelFit, NamedValues};
use crate::data::Rows;
use crate::device::Device;
use crate::onnx::{Attribute, OnnxGraph, Value};

/// `weight·x + bias`, with `weight` `[1, features]` and `bias` `[1]`. The initial model is
/// zero; with a convex loss the start does not matter. The bias of a Cox model stays 0.
pub(crate) struct Linear {
    pub(crate) features: usize,
}

impl Linear {
    /// The weights without the bias.
    pub(crate) fn slope(&self, model: &Params) -> Vec<f64> {
        let mut line = load(model);
        line.truncate(self.features);
        line
    }

    /// The numbers of a model given by its tensors.
    pub(crate) fn model_of(&self, model: &Params) -> LinearModel {
        let mut weights = load(model);
        let intercept = weights.split_off(self.features);
        LinearModel {
            weights,
            intercept: intercept[0],
        }
    }

    /// The tensors of a model given by its numbers.
    pub(crate) fn tensors_of(&self, model: &LinearModel) -> NamedValues {
        let line: Vec<f64> = [&model.weights[..], &[model.intercept]].concat();
        named(&line)
    }
}

impl Model for Linear {
    fn tensors(&self) -> Vec<TensorSpec> {
        vec![
            TensorSpec::new("weight", [1, self.features], Role::Weight),
            TensorSpec::new("bias", [1], Role::Bias),
        ]
    }

    fn initial(&self, _seed: u64) -> NamedValues {
        Vec::new()
    }

    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64> {
        let line = load(model);
        (0..rows.len())
            .map(|row| output(&line, rows.features(row)))
            .collect()
    }

    fn graph(&self, graph: &mut OnnxGraph, model: &Params, features: &Value) -> Value {
        let known = "the learner checked the layout";
        let weight = model.tensor("weight").expect(known);
        let weight = graph.floats("weight", &[1, self.features], weight);
        let bias = graph.floats("bias", &[1], model.tensor("bias").expect(known));
        let inputs = [features, &weight, &bias];
        graph.node("Gemm", &inputs, &[("transB", Attribute::Int(1))])
    }

    fn linear(&self) -> Option<&Linear> {
        Some(self)
    }

    fn output_layer(&self) -> Option<String> {
        Some(String::new())
    }

    fn on(&self, _device: &Device) -> Arc<dyn Model> {
        Arc::new(Self {
            features: self.features,
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
        let line = load(start);
        // Weights first, the bias last and not decayed.
        let mut decayed = vec![true; self.features];
        decayed.push(false);
        let mut optimiser = OptimiserState::new(optimiser, decayed);
        if let Some(modifier) = modifier {
            optimiser = optimiser.modified(modifier, &[("weight", self.features), ("bias", 1)]);
        }
        Box::new(LinearFit {
            gradient: vec![0.0; line.len()],
            line,
            loss,
            optimiser,
        })
    }
}

/// A step costs less than a microsecond, so weights and sums are kept in `f64`.
struct LinearFit {
    line: Vec<f64>,
    gradient: Vec<f64>,
    loss: Loss,
    optimiser: OptimiserState,
}

impl LinearFit {
    /// Adds up the gradient of rows that have a loss together, and gives the loss.
    fn joined(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        let numbers = || batch.iter().map(|&row| row as usize);
        let outputs: Vec<f64> = numbers()
            .map(|row| output(&self.line, rows.features(row)))
            .collect();
        let targets: Vec<f32> = numbers()
            .flat_map(|row| rows.target(row))
            .copied()
            .collect();
        let mut slopes = vec![0.0; outputs.len()];
        let loss = self.loss.mean(&outputs, &targets, &mut slopes);
        // Scores that differ by a constant are one model: the bias, whose slope is 0 but for rounding, stays.
        let (_, weights) = split_last_mut(&mut self.gradient);
        for (row, slope) in numbers().zip(slopes) {
            for (sum, &value) in weights.iter_mut().zip(rows.features(row)) {
                *sum += slope * f64::from(value);
            }
        }
        loss
    }
}

impl ModelFit for LinearFit {
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        self.gradient.fill(0.0);
        if self.loss.joins_rows() {
            let loss = self.joined(rows, batch);
            self.optimiser.step(&mut self.line, &self.gradient);
            return loss;
        }
        let mut total = 0.0;
        let mut slope = [0.0];
        for &row in batch {
            let x = rows.features(row as usize);
            let at = output(&self.line, x);
            total += self.loss.row(&[at], rows.target(row as usize), &mut slope);
            let (bias, weights) = split_last_mut(&mut self.gradient);
            for (sum, &value) in weights.iter_mut().zip(x) {
                *sum += slope[0] * f64::from(value);
            }
            *bias += slope[0];
        }
        let count = batch.len() as f64;
        self.gradient.iter_mut().for_each(|sum| *sum /= count);
        self.optimiser.step(&mut self.line, &self.gradient);
        total / count
    }

    fn finish(self: Box<Self>) -> NamedValues {
        named(&self.line)
    }
}

/// The tensors of weights, then bias.
fn named(line: &[f64]) -> NamedValues {
    let mut weight: Vec<f32> = line.iter().map(|&value| value as f32).collect();
    let bias = weight.split_off(weight.len() - 1);
    vec![("weight".into(), weight), ("bias".into(), bias)]
}

/// Weights, then bias.
fn load(model: &Params) -> Vec<f64> {
    ["weight", "bias"]
        .iter()
        .flat_map(|name| model.tensor(name).expect("the learner checked the layout"))
        .map(|&value| f64::from(value))
        .collect()
}

fn output(line: &[f64], x: &[f32]) -> f64 {
    let start = line[line.len() - 1];
    line.iter().zip(x).fold(start, |sum, (weight, &value)| {
        sum + weight * f64::from(value)
    })
}

fn split_last_mut(line: &mut [f64]) -> (&mut f64, &mut [f64]) {
    line.split_last_mut().expect("a line has at least a bias")
}
