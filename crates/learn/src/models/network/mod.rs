//! Networks of layers: a list of layers, interpreted on burn with autodiff.
//!
//! A network is a list of [`LayerConfig`]s and a head that follows from the target: a dense layer
//! with one output per class or number, or a 1×1 convolution with one output per pixel of a mask.
//! Images lie in the columns of a row as channels × height × width, row-major.
//!
//! Tensors are called `layer00.conv.weight`, `layer00.conv.bias`, `layer01.norm.weight` and so on.
//! Layers with tensors are numbered in order of depth, within a residual block first the layers
//! around which the input goes and then those of the input's own way, and numbers have as many
//! digits as the largest: names in alphabetical order are in order of depth, and the last layer is the
//! head. Scale and shift of a norm
//! layer are its `weight` and `bias`; its running statistics are the buffers `mean` and
//! `variance`. Neither biases nor norm layers are decayed.

mod error;
mod fit;
mod forward;
mod graph;
mod joint;
mod kernels;
mod op;
mod plan;

use std::sync::Arc;

use burn_core::tensor::{Tensor, TensorData};
use methods::learner::{GradientModifier, Optimiser, RowsOfModel};
use methods::{Params, TensorSpec};

use task::model::{LayersConfig, NetworkConfig};

pub(crate) use op::LastLayer;

use self::error::NetworkError;
use self::fit::NetworkFit;
use self::forward::{ForwardRows, Pass};
use self::op::{Op, RowInput, TensorFill};
use self::plan::{NetworkPlan, Style};
use super::burn_optimiser::{floats, tensor};
use super::{Loss, Mlp, Model, ModelFit, NamedValues};
use crate::data::Rows;
use crate::device::Device;
use crate::onnx::{OnnxGraph, Value};
use crate::random::{stream, uniform};

/// Values of a layer's output at once in evaluation, so that memory stays small on large data.
const AT_ONCE: usize = 1 << 22;
/// Rows at once in evaluation, at most: small layers stay on one thread.
const ROWS: usize = 512;

/// A list of layers as a model.
#[derive(Clone)]
pub(crate) struct NetworkModel {
    config: Arc<NetworkConfig>,
    plan: Arc<NetworkPlan>,
    /// Channels, height and width of a row; its columns, 1 and 1 where it is no image.
    input: [usize; 3],
    device: Device,
}

impl NetworkModel {
    /// The network for rows of this many features.
    ///
    /// # Errors
    /// [`NetworkError`]: an image of another size, layers that do not fit together.
    pub(crate) fn new(
        config: &NetworkConfig,
        features: usize,
        head: LastLayer,
    ) -> Result<Self, NetworkError> {
        let design = config.design();
        let image = config.image.or(design.image);
        let input = image.map_or(RowInput::Values(features), RowInput::Image);
        let [channels, height, width] = input.shape();
        let values = channels
            .checked_mul(height)
            .and_then(|values| values.checked_mul(width));
        if values != Some(features) {
            return Err(NetworkError::Image {
                features,
                channels,
                height,
                width,
            });
        }
        let style = Style {
            norm: config.norm,
            start: config.start.unwrap_or(design.start),
            width: config.width,
        };
        Ok(Self {
            config: Arc::new(config.clone()),
            plan: Arc::new(NetworkPlan::new(&design.layers, style, input, head)?),
            input: input.shape(),
            device: Device::cpu(),
        })
    }

    fn load(&self, model: &Params) -> Vec<Tensor<1>> {
        let slots = self.plan.tensors.iter();
        slots
            .map(|slot| {
                tensor(
                    model,
                    &slot.spec.name,
                    [slot.spec.len()],
                    self.device.tensors(),
                )
                .expect("the learner checked the layout")
            })
            .collect()
    }

    /// Rows as images on the device.
    fn images(&self, values: Vec<f32>) -> Tensor<4> {
        let [channels, height, width] = self.input;
        let rows = values.len() / (channels * height * width);
        let data = TensorData::new(values, [rows, channels, height, width]);
        Tensor::from_data(data, self.device.tensors())
    }
}

impl Model for NetworkModel {
    fn tensors(&self) -> Vec<TensorSpec> {
        let slots = self.plan.tensors.iter();
        slots.map(|slot| slot.spec.clone()).collect()
    }

    fn initial(&self, seed: u64) -> NamedValues {
        let mut rng = stream(seed, "initial weights");
        let values = self.plan.tensors.iter().map(|slot| {
            let values = (0..slot.spec.len()).map(|_| match slot.fill {
                TensorFill::Uniform(bound) => ((2.0 * uniform(&mut rng) - 1.0) * bound) as f32,
                TensorFill::Constant(value) => value,
            });
            (slot.spec.name.clone(), values.collect())
        });
        values.collect()
    }

    fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64> {
        let _slot = self.device.slot();
        let tensors = self.load(model);
        let block = (AT_ONCE / self.plan.widest.max(1)).clamp(1, ROWS);
        let mut outputs = Vec::with_capacity(rows.len() * self.plan.outputs);
        for block in rows.all().chunks(block * rows.width()) {
            let parts = [ForwardRows {
                rows: block.len() / rows.width(),
                tensors: &tensors,
            }];
            let mut pass = Pass {
                parts: &parts,
                training: None,
            };
            let output = pass.all(&self.plan.ops, self.images(block.to_vec()));
            outputs.extend(floats(output).into_iter().map(f64::from));
        }
        outputs
    }

    fn graph(&self, graph: &mut OnnxGraph, model: &Params, features: &Value) -> Value {
        graph::add(&self.plan, self.input, graph, model, features)
    }

    /// Of images, FedCG's classifier of domains: convolutions of 3×3 to 32 and 64 channels and the mean
    /// of every channel, as wide as this network is. Of other rows, the same layers with another head. A
    /// perceptron where that head would be too large.
    fn classifier(&self, features: usize, classes: usize, hidden: &[usize]) -> Arc<dyn Model> {
        let [channels, height, width] = self.input;
        let config = match height * width {
            1 => NetworkConfig::clone(&self.config),
            _ => NetworkConfig {
                image: Some([channels, height, width]),
                width: self.config.width,
                ..NetworkConfig::new(LayersConfig::Listed(task::model::domains()))
            },
        };
        match Self::new(&config, features, LastLayer::Dense(classes)) {
            Ok(network) => Arc::new(network),
            Err(_) => Arc::new(Mlp::new(features, hidden, classes)),
        }
    }

    fn output_layer(&self) -> Option<String> {
        let last = self.plan.tensors.last()?;
        let (layer, _) = last.spec.name.rsplit_once('.')?;
        Some(layer.to_owned())
    }

    fn on(&self, device: &Device) -> Arc<dyn Model> {
        Arc::new(Self {
            device: device.clone(),
            ..self.clone()
        })
    }

    fn fit(
        &self,
        start: &Params,
        loss: Loss,
        optimiser: &Optimiser,
        modifier: Option<&GradientModifier<'_>>,
        seed: u64,
    ) -> Box<dyn ModelFit> {
        Box::new(NetworkFit::new(
            self.clone(),
            start,
            loss,
            optimiser,
            modifier,
            seed,
        ))
    }

    fn joint_step(
        &self,
        parts: &[RowsOfModel<'_>],
        rows: &Rows,
        loss: Loss,
        rate: f64,
        seed: u64,
    ) -> Option<(Vec<NamedValues>, f64)> {
        let normalises = self.plan.ops.iter().any(Op::normalises_batches);
        normalises.then(|| self.step_jointly(parts, rows, loss, rate, seed))
    }
}

#[cfg(test)]
mod tests;
