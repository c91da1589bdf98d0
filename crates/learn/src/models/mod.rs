//! Model families: linear, logistic, multi-layer perceptron, and networks of layers.
//!
//! A family says which tensors it has, computes outputs, and opens a [`Fit`] that takes steps. How
//! it does so is its own affair, and was decided by measurement (`step_costs` in `mlp/tests.rs`;
//! release build, one core). A step of a logistic model with 13 features on 16 rows takes 0.5 µs
//! in plain loops and 5 µs as calls on burn tensors without autodiff: linear and logistic models
//! use plain loops. A step of a 64-128-10 perceptron on 32 rows takes 38 µs on burn with gradients
//! written out, nearly all of it matrix products, and 77 µs for autodiff's gradients alone: the
//! perceptron runs on burn, with gradients written out (a test keeps them equal to autodiff's).
//! Everything else, convolutional networks first of all, is a list of layers that [`Network`]
//! interprets on burn with autodiff; it keeps its weights on the device between steps.

mod descent;
mod linear;
mod loss;
mod mlp;
mod network;
mod rule;
mod stochastic;

use std::sync::Arc;

pub use loss::RegressionLoss;
use methods::learner::Optimiser;
use methods::robust::LinearModel;
use methods::{Matrix, Params, Pull, TensorSpec};
pub use network::{
    Architecture, ConvConfig, LayerConfig, LayersConfig, MaxPoolConfig, NetworkConfig, NormConfig,
    Start,
};

pub(crate) use linear::Linear;
pub(crate) use loss::Loss;
pub(crate) use mlp::Mlp;
pub(crate) use network::{Head, Network};
pub(crate) use rule::Rule;
pub(crate) use stochastic::Encoder;

use crate::data::Rows;

/// Values by tensor name.
pub(crate) type Named = Vec<(String, Vec<f32>)>;

/// A model family: what stands between named tensors and data.
pub(crate) trait Model: Send + Sync {
    /// The tensors that are trained, and buffers where the family keeps any.
    fn tensors(&self) -> Vec<TensorSpec>;

    /// Values to start from: a function of the seed alone. Tensors left out are zero.
    fn initial(&self, seed: u64) -> Named;

    /// Outputs for all rows, rows × k, row-major.
    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64>;

    /// The weights without the bias, where the only output is linear in the features.
    fn slope(&self, _model: &Params) -> Option<Vec<f64>> {
        None
    }

    /// The tensors of a linear model, where the family has no other.
    fn of_linear(&self, _model: &LinearModel) -> Option<Named> {
        None
    }

    /// The weights of the layers, first to last, each outputs × inputs, where between them there
    /// is nothing of a slope above 1 (see [`methods::robust::network`]).
    fn layers(&self, _model: &Params) -> Option<Vec<Matrix>> {
        None
    }

    /// Name of the layer that makes the outputs, if these are linear in its tensors.
    fn output_layer(&self) -> Option<String> {
        None
    }

    /// A family that sorts rows of so many features into `classes`: a perceptron with these hidden
    /// widths, unless the rows are something that another family suits better.
    fn classifier(&self, features: usize, classes: usize, hidden: &[usize]) -> Arc<dyn Model> {
        Arc::new(Mlp::new(features, hidden, classes))
    }

    /// Widths of the dense layers that the family consists of, from the features to the outputs,
    /// if that is all it is.
    fn widths(&self) -> Option<&[usize]> {
        None
    }

    /// Begins a training from the values in `start`, with the gradient changed by `pull`. What is
    /// drawn in it follows from `seed`.
    fn fit(
        &self,
        start: &Params,
        loss: Loss,
        optimiser: &Optimiser,
        pull: Option<&Pull<'_>>,
        seed: u64,
    ) -> Box<dyn Fit>;
}

/// A training under way.
pub(crate) trait Fit {
    /// One step on the rows numbered `batch`; their mean loss before it.
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64;

    /// The trained tensors, and the buffers.
    fn finish(self: Box<Self>) -> Named;
}

#[cfg(test)]
mod tests;
