//! The stochastic perceptron, whose last hidden layer gives a distribution (FedSR, Nguyen et al.
//! 2022).

use burn_core::tensor::activation::{log_softmax, relu, softmax, softplus};
use burn_core::tensor::{Device as Tensors, Int, Tensor, TensorData};
use methods::learner::{Optimiser, OptimiserState, Stochastic};
use methods::{Params, Role, TensorSpec};
use rand_chacha::ChaCha8Rng;

use super::{ModelFit, NamedValues};
use crate::data::Rows;
use crate::device::{Device, DeviceSlot};
use crate::random::{normal, stream, uniform};

/// C, by which representations are scaled before they are compared with those of their class.
const SCALE: &str = "alignment.scale";
/// Assumed distribution of the representations of a class at a silo: mean and spread, each classes × z. Spreads
/// are kept before the softplus.
const MEAN: &str = "class.mean";
const SPREAD: &str = "class.spread";

/// Below the root in the length of a representation, which has no slope at 0.
const TINY: f32 = 1e-12;

/// Dense layers with ReLU between them. The last hidden one has two outputs for each of its `z`
/// units: μ, and σ before the softplus; the output layer sees `z ~ N(μ, σ²)` as it is.
#[derive(Clone)]
pub(crate) struct Encoder {
    /// Features, hidden widths, classes.
    widths: Vec<usize>,
    options: Stochastic,
    /// All that is trained, weights first.
    slots: Vec<TensorSpec>,
    device: Device,
}

impl Encoder {
    /// Returns whether there is a hidden layer between the features and the classes.
    pub(crate) fn suits(widths: &[usize]) -> bool {
        widths.len() >= 3
    }

    /// With these widths from the features to the classes.
    ///
    /// # Panics
    /// If they do not [suit](Self::suits).
    pub(crate) fn new(widths: &[usize], options: Stochastic, device: &Device) -> Self {
        assert!(Self::suits(widths), "a hidden layer is needed");
        let (z, classes) = (widths[widths.len() - 2], widths[widths.len() - 1]);
        let mut encoder = Self {
            widths: widths.to_vec(),
            options,
            slots: Vec::new(),
            device: device.clone(),
        };
        let layers = encoder.layers();
        let weights = layers.iter().map(|&(layer, ins, outs)| {
            TensorSpec::new(format!("layer{layer}.weight"), [outs, ins], Role::Weight)
        });
        let biases = layers.iter().map(|&(layer, _, outs)| {
            TensorSpec::new(format!("layer{layer}.bias"), [outs], Role::Bias)
        });
        encoder.slots = weights.chain(biases).collect();
        let scale = TensorSpec::new(SCALE, [1], Role::Bias);
        let classes = [MEAN, SPREAD].map(|name| TensorSpec::new(name, [classes, z], Role::Bias));
        encoder.slots.push(scale);
        encoder.slots.extend(classes);
        encoder
    }

    /// Number, inputs and outputs of every layer.
    fn layers(&self) -> Vec<(usize, usize, usize)> {
        let last = self.widths.len() - 2;
        let layers = self.widths.windows(2).enumerate();
        layers
            .map(|(layer, pair)| {
                let twice = if layer + 1 == last { 2 } else { 1 };
                (layer, pair[0], pair[1] * twice)
            })
            .collect()
    }

    /// Units of a representation.
    fn z(&self) -> usize {
        self.widths[self.widths.len() - 2]
    }

    fn classes(&self) -> usize {
        self.widths[self.widths.len() - 1]
    }

    /// The tensors that silos share, in the order of depth, and those that stay with each.
    pub(crate) fn tensors(&self) -> (Vec<TensorSpec>, Vec<TensorSpec>) {
        let own = |slot: &TensorSpec| [MEAN, SPREAD].contains(&slot.name.as_str());
        let (mut shared, own): (Vec<_>, Vec<_>) =
            self.slots.iter().cloned().partition(|slot| !own(slot));
        // C scales representations, which come before the outputs: their layer is the last.
        shared.sort_by_key(|slot| slot.name != SCALE);
        (shared, own)
    }

    /// Values to start from: layers as those of a perceptron; C = 1; for every class mean 0 and
    /// spread softplus(1).
    pub(crate) fn initial(&self, seed: u64) -> NamedValues {
        let mut rng = stream(seed, "initial weights");
        let mut named = NamedValues::new();
        for (layer, ins, outs) in self.layers() {
            let bound = 1.0 / (ins as f64).sqrt();
            for (part, len) in [("weight", ins * outs), ("bias", outs)] {
                let values = (0..len).map(|_| ((2.0 * uniform(&mut rng) - 1.0) * bound) as f32);
                named.push((format!("layer{layer}.{part}"), values.collect()));
            }
        }
        let classes = self.classes() * self.z();
        named.push((SCALE.into(), vec![1.0]));
        named.push((MEAN.into(), vec![0.0; classes]));
        named.push((SPREAD.into(), vec![1.0; classes]));
        named
    }

    /// Begins a training; noise is drawn by `seed`.
    pub(crate) fn fit(
        &self,
        start: &Params,
        personal: &Params,
        optimiser: &Optimiser,
        seed: u64,
    ) -> Box<dyn ModelFit> {
        let values: Vec<f64> = self
            .slots
            .iter()
            .flat_map(|slot| {
                let found = start.tensor(&slot.name).or(personal.tensor(&slot.name));
                found.expect("the learner checked the layouts")
            })
            .map(|&value| value.into())
            .collect();
        let slots = self.slots.iter();
        let decayed = slots.flat_map(|slot| vec![slot.role == Role::Weight; slot.len()]);
        Box::new(EncoderFit {
            optimiser: OptimiserState::new(optimiser, decayed.collect()),
            values,
            rng: stream(seed, "representations"),
            _slot: self.device.slot(),
            encoder: self.clone(),
        })
    }

    /// The logarithm of every class's probability, rows × classes: the mean over representations
    /// that are drawn, always the same ones.
    pub(crate) fn outputs(&self, model: &Params, rows: &Rows) -> Vec<f64> {
        let _slot = self.device.slot();
        let device = self.device.tensors().clone();
        let mut values = Vec::new();
        for slot in &self.slots {
            // What belongs to the classes has no part in the outputs.
            match model.tensor(&slot.name) {
                Some(known) => values.extend(known.iter().map(|&value| f64::from(value))),
                None => values.resize(values.len() + slot.len(), 0.0),
            }
        }
        let leaves = self.leaves(&values, &device);
        let input = matrix(rows.all().to_vec(), [rows.len(), rows.width()], &device);
        let (mean, deviation) = self.encode(&leaves, input);
        let mut rng = stream(0, "drawn representations");
        let mut sums = vec![0.0; rows.len() * self.classes()];
        for _ in 0..self.options.draws {
            let noise = self.noise(&mut rng, rows.len(), &device);
            let drawn = mean.clone() + deviation.clone() * noise;
            let probabilities = softmax(self.decode(&leaves, drawn), 1);
            for (sum, value) in sums.iter_mut().zip(floats(probabilities)) {
                *sum += f64::from(value);
            }
        }
        let draws = f64::from(self.options.draws);
        sums.iter()
            .map(|sum| (sum / draws).max(f64::MIN_POSITIVE).ln())
            .collect()
    }

    /// The perceptron, of the same widths, that predicts from the mean representation of a row alone.
    ///
    /// Its last hidden layer has ReLU, and representations have not. So each unit of it is shifted by
    /// more than `rows` need to stay above 0, and the shift is taken off again in the outputs: rows whose
    /// representation is several times as long as that of any of these are cut off.
    pub(crate) fn perceptron(&self, model: &Params, rows: &Rows) -> NamedValues {
        let tensor = |layer: usize, part: &str| -> Vec<f32> {
            let found = model.tensor(&format!("layer{layer}.{part}"));
            found.expect("the learner checked the layouts").to_vec()
        };
        let (last, z) = (self.widths.len() - 2, self.z());
        let shifts = self.mean_lengths(model, rows);
        let mut named = NamedValues::new();
        for layer in 0..=last {
            let (mut weight, mut bias) = (tensor(layer, "weight"), tensor(layer, "bias"));
            if layer + 1 == last {
                // The first half of its units are μ, the others σ.
                weight.truncate(z * self.widths[layer]);
                bias.truncate(z);
                bias.iter_mut()
                    .zip(&shifts)
                    .for_each(|(b, shift)| *b += shift);
            } else if layer == last {
                for (bias, weights) in bias.iter_mut().zip(weight.chunks(z)) {
                    let shift = weights.iter().zip(&shifts).map(|(w, s)| f64::from(w * s));
                    *bias = (f64::from(*bias) - shift.sum::<f64>()) as f32;
                }
            }
            named.push((format!("layer{layer}.weight"), weight));
            named.push((format!("layer{layer}.bias"), bias));
        }
        named
    }

    /// Four times the largest absolute value of every unit of the mean representation over these rows, at
    /// least 1.
    fn mean_lengths(&self, model: &Params, rows: &Rows) -> Vec<f32> {
        let _slot = self.device.slot();
        let device = self.device.tensors().clone();
        let mut values = Vec::new();
        for slot in &self.slots {
            match model.tensor(&slot.name) {
                Some(known) => values.extend(known.iter().map(|&value| f64::from(value))),
                None => values.resize(values.len() + slot.len(), 0.0),
            }
        }
        let leaves = self.leaves(&values, &device);
        let mut longest = vec![0.25f32; self.z()];
        if !rows.is_empty() {
            let input = matrix(rows.all().to_vec(), [rows.len(), rows.width()], &device);
            let (mean, _) = self.encode(&leaves, input);
            for row in floats(mean).chunks(self.z()) {
                for (longest, value) in longest.iter_mut().zip(row) {
                    *longest = longest.max(value.abs());
                }
            }
        }
        longest.into_iter().map(|longest| 4.0 * longest).collect()
    }

    /// All that is trained, tensor by tensor.
    fn leaves(&self, values: &[f64], device: &Tensors) -> Vec<Tensor<1>> {
        let mut rest = values;
        let each = self.slots.iter().map(|slot| {
            let (own, after) = rest.split_at(slot.len());
            rest = after;
            let own: Vec<f32> = own.iter().map(|&value| value as f32).collect();
            Tensor::from_data(TensorData::new(own, [slot.len()]), device)
        });
        each.collect()
    }

    fn dense(&self, leaves: &[Tensor<1>], layer: usize, input: Tensor<2>) -> Tensor<2> {
        let (_, ins, outs) = self.layers()[layer];
        let weight = leaves[layer].clone().reshape([outs, ins]);
        let bias = leaves[self.widths.len() - 1 + layer]
            .clone()
            .reshape([1, outs]);
        input.matmul(weight.transpose()) + bias
    }

    /// μ and σ of every row.
    fn encode(&self, leaves: &[Tensor<1>], input: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
        let mut value = input;
        for layer in 0..self.widths.len() - 2 {
            if layer > 0 {
                value = relu(value);
            }
            value = self.dense(leaves, layer, value);
        }
        let z = self.z();
        (
            value.clone().narrow(1, 0, z),
            softplus(value.narrow(1, z, z), 1.0),
        )
    }

    fn decode(&self, leaves: &[Tensor<1>], drawn: Tensor<2>) -> Tensor<2> {
        self.dense(leaves, self.widths.len() - 2, drawn)
    }

    fn noise(&self, rng: &mut ChaCha8Rng, rows: usize, device: &Tensors) -> Tensor<2> {
        let drawn = (0..rows * self.z()).map(|_| normal(rng) as f32);
        matrix(drawn.collect(), [rows, self.z()], device)
    }

    /// The loss of these rows: cross-entropy, `length·mean ‖z‖₂` and `distance` times the mean
    /// divergence of `N(Cμ, (Cσ)²)` from the distribution of the row's class.
    fn loss(
        &self,
        leaves: &[Tensor<1>],
        input: Tensor<2>,
        labels: &[i32],
        noise: Tensor<2>,
    ) -> Tensor<1> {
        let device = input.device();
        let (mean, deviation) = self.encode(leaves, input);
        let drawn = mean.clone() + deviation.clone() * noise;
        let logits = self.decode(leaves, drawn.clone());
        let rows = labels.len();
        let labels = TensorData::new(labels.to_vec(), [rows]);
        let labels = Tensor::<1, Int>::from_data(labels, &device);
        let chosen = log_softmax(logits, 1).gather(1, labels.clone().reshape([rows, 1]));
        let length = drawn.square().sum_dim(1).add_scalar(TINY).sqrt().mean();
        let [.., scale, class_mean, spread] = leaves else {
            unreachable!("C and the classes are the last that is trained");
        };
        let by_class = [self.classes(), self.z()];
        let class_mean = class_mean
            .clone()
            .reshape(by_class)
            .select(0, labels.clone());
        let spread = softplus(spread.clone().reshape(by_class), 1.0).select(0, labels);
        let scale = scale.clone().reshape([1, 1]);
        let distance = divergence(
            mean * scale.clone(),
            deviation * scale.abs(),
            class_mean,
            spread,
        );
        chosen.mean().neg()
            + length.mul_scalar(self.options.length)
            + distance.mean().mul_scalar(self.options.distance)
    }
}

/// `Σ_d log r_σ − log σ + (σ² + (μ − r_μ)²)/(2 r_σ²) − ½`, rows × 1: the divergence of
/// `N(μ, σ²)` from `N(r_μ, r_σ²)`.
fn divergence(
    mean: Tensor<2>,
    deviation: Tensor<2>,
    class_mean: Tensor<2>,
    spread: Tensor<2>,
) -> Tensor<2> {
    let off = (mean - class_mean).square() + deviation.clone().square();
    let each = spread.clone().log() - deviation.log() + off / spread.square().mul_scalar(2.0);
    each.sub_scalar(0.5).sum_dim(1)
}

/// A training under way. Values are kept on the host in `f64`; gradients are autodiff's.
struct EncoderFit {
    encoder: Encoder,
    values: Vec<f64>,
    optimiser: OptimiserState,
    rng: ChaCha8Rng,
    _slot: DeviceSlot,
}

impl ModelFit for EncoderFit {
    fn step(&mut self, rows: &Rows, batch: &[u32]) -> f64 {
        let device = self.encoder.device.tensors().clone().autodiff();
        let picked = rows.pick(batch);
        let labels: Vec<i32> = picked.targets().iter().map(|&label| label as i32).collect();
        let input = matrix(picked.all().to_vec(), [batch.len(), rows.width()], &device);
        let noise = self.encoder.noise(&mut self.rng, batch.len(), &device);
        let leaves = self.encoder.leaves(&self.values, &device).into_iter();
        let leaves: Vec<_> = leaves.map(Tensor::require_grad).collect();
        let loss = self.encoder.loss(&leaves, input, &labels, noise);
        let slopes = loss.backward();
        let mut gradient = Vec::with_capacity(self.values.len());
        for leaf in &leaves {
            let values = match leaf.grad(&slopes) {
                Some(slope) => floats(slope),
                None => vec![0.0; leaf.dims()[0]],
            };
            gradient.extend(values.into_iter().map(f64::from));
        }
        self.optimiser.step(&mut self.values, &gradient);
        floats(loss)[0].into()
    }

    fn finish(self: Box<Self>) -> NamedValues {
        let mut rest = self.values.as_slice();
        let each = self.encoder.slots.iter().map(|slot| {
            let (own, after) = rest.split_at(slot.len());
            rest = after;
            let own = own.iter().map(|&value| value as f32).collect();
            (slot.name.clone(), own)
        });
        each.collect()
    }
}

fn matrix(values: Vec<f32>, shape: [usize; 2], device: &Tensors) -> Tensor<2> {
    Tensor::from_data(TensorData::new(values, shape), device)
}

fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    let values = tensor.into_data().try_into_vec::<f32>();
    values.expect("the device computes in f32")
}

#[cfg(test)]
mod tests;
