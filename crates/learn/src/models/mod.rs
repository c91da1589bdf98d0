//! Model families: linear, logistic, multi-layer perceptron, and networks of layers.
//!
//! A family names its tensors, computes outputs, and opens a [`ModelFit`] that takes steps. On what it
//! computes was decided by measurement (`step_costs` in `mlp/tests.rs`;
//! release build, one core). A step of a logistic model with 13 features on 16 rows takes 0.5 µs
//! in plain loops and 5 µs as calls on burn tensors without autodiff: linear and logistic models
//! use plain loops. A step of a 64-128-10 perceptron on 32 rows takes 38 µs on burn with gradients
//! written out, nearly all of it matrix products, and 77 µs for autodiff's gradients alone: the
//! perceptron runs on burn, with gradients written out (a test keeps them equal to autodiff's).
//! Everything else, convolutional networks first of all, is a list of layers that [`NetworkModel`]
//! interprets on burn with autodiff; it keeps its weights on the device between steps.

mod burn_optimiser;
mod dense;
mod linear;
mod mlp;
mod network;
mod stochastic;

use std::sync::Arc;

use methods::learner::{GradientModifier, Optimiser, RowsOfModel};
use methods::{Matrix, Params, TensorSpec};

pub(crate) use dense::DenseLayers;
pub(crate) use linear::Linear;
pub(crate) use mlp::Mlp;
pub(crate) use network::{LastLayer, NetworkModel};
pub(crate) use stochastic::Encoder;
pub(crate) use task::loss::{Loss, RegressionLoss};

use crate::data::Rows;
use crate::device::Device;
use crate::onnx::{OnnxGraph, Value};

/// Values by tensor name.
pub(crate) type NamedValues = Vec<(String, Vec<f32>)>;

/// A model family: what stands between named tensors and data.
pub(crate) trait Model: Send + Sync {
    /// The tensors that are trained, and buffers where the family keeps any.
    fn tensors(&self) -> Vec<TensorSpec>;

    /// Values to start from: a function of the seed alone. Tensors left out are zero.
    fn initial(&self, seed: u64) -> NamedValues;

    /// Outputs for all rows, rows × k, row-major.
    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64>;

    /// Adds the outputs for `features`, rows × features, to a graph: the same numbers as
    /// [`outputs`](Self::outputs), rows × k.
    fn graph(&self, graph: &mut OnnxGraph, model: &Params, features: &Value) -> Value;

    /// Linear models, where the family consists of these.
    fn linear(&self) -> Option<&Linear> {
        None
    }

    /// The weights of the layers, first to last, each outputs × inputs, where nothing between them
    /// has a slope above 1 (see [`methods::robust::network`]).
    fn layers(&self, _model: &Params) -> Option<Vec<Matrix>> {
        None
    }

    /// Name of the layer that makes the outputs, if these are linear in its tensors.
    fn output_layer(&self) -> Option<String> {
        None
    }

    /// A family that classifies rows of this number of features: a perceptron with these hidden widths,
    /// unless another family suits the rows better.
    fn classifier(&self, features: usize, classes: usize, hidden: &[usize]) -> Arc<dyn Model> {
        Arc::new(Mlp::new(features, hidden, classes))
    }

    /// Widths of the dense layers, from the features to the outputs, where the family consists of
    /// dense layers alone.
    fn widths(&self) -> Option<&[usize]> {
        None
    }

    /// This model, computed on `device` where the family computes on devices at all.
    fn on(&self, device: &Device) -> Arc<dyn Model>;

    /// Begins a training from the values in `start`, with the gradient changed by `modifier`.
    /// All its randomness follows from `seed`.
    fn fit(
        &self,
        start: &Params,
        loss: Loss,
        optimiser: &Optimiser,
        modifier: Option<&GradientModifier<'_>>,
        seed: u64,
    ) -> Box<dyn ModelFit>;

    /// A step of plain descent of these parts of `rows` together, as
    /// [`RowAccess::joint_step`](methods::learner::RowAccess::joint_step) explains it. `None` where
    /// the rows of a step do not influence each other.
    fn joint_step(
        &self,
        _parts: &[RowsOfModel<'_>],
        _rows: &Rows,
        _loss: Loss,
        _rate: f64,
        _seed: u64,
    ) -> Option<(Vec<NamedValues>, f64)> {
        None
    }
}

/// A training under way.
pub(crate) trait ModelFit {
    /// One step on the rows numbered `batch`; their mean loss before it.
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64;

    /// The trained tensors, and the buffers.
    fn finish(self: Box<Self>) -> NamedValues;
}

#[cfg(test)]
mod tests;
