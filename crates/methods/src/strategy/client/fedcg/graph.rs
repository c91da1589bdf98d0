//! The branches of all domains as one graph convolution makes them, layer by layer.

use crate::Matrix;
use crate::domains::{Projection, Propagation, PropagationError};

/// All branches and what connects them, in `f64` as they are trained.
#[derive(Clone)]
pub(super) struct BranchGraph {
    /// `A`, domains × domains: one for all layers, or one for each.
    pub(super) adjacency: Vec<Matrix>,
    /// By layer with branches.
    pub(super) layers: Vec<Convolution>,
}

/// The branches of one layer.
#[derive(Clone)]
pub(super) struct Convolution {
    /// λ.
    pub(super) lambda: f64,
    /// V, domains × values of the layer.
    pub(super) parameters: Matrix,
    /// σ and W.
    pub(super) propagation: Propagation,
}

impl BranchGraph {
    /// V̂ of every layer.
    pub(super) fn generate(&self) -> Result<Vec<Matrix>, PropagationError> {
        let generate = |(at, layer): (usize, &Convolution)| {
            let propagation = &layer.propagation;
            propagation.forward(self.of(at), &layer.parameters)
        };
        self.layers.iter().enumerate().map(generate).collect()
    }

    /// `A` of a layer.
    fn of(&self, layer: usize) -> &Matrix {
        &self.adjacency[layer.min(self.adjacency.len() - 1)]
    }

    /// Gradients with respect to [`Convolution::trained`], from those with respect to the values
    /// that a layer has in every domain (domains × values), which are `θ + λ·V̂`.
    pub(super) fn gradients(
        &self,
        layer: usize,
        generated: &Matrix,
        upstream: &Matrix,
    ) -> Result<Vec<Vec<f64>>, PropagationError> {
        let convolution = &self.layers[layer];
        let products = upstream.values().iter().zip(generated.values());
        let lambda: f64 = products.map(|(up, made)| up * made).sum();
        let mut made = upstream.clone();
        for value in made.values_mut() {
            *value *= convolution.lambda;
        }
        let propagation = &convolution.propagation;
        let below = propagation.backward(self.of(layer), &convolution.parameters, &made)?;
        let mut gradients = vec![below.parameters.values().to_vec()];
        let weights = matrices(&below.projection).into_iter();
        gradients.extend(weights.map(|weight| weight.values().to_vec()));
        gradients.push(vec![lambda]);
        Ok(gradients)
    }
}

impl Convolution {
    /// Returns what W is made of.
    pub(super) fn weights(&self) -> Vec<&Matrix> {
        matrices(&self.propagation.projection)
    }

    /// All that is trained: V, what W is made of, λ.
    pub(super) fn trained(&mut self) -> Vec<&mut [f64]> {
        let mut all = vec![self.parameters.values_mut()];
        match &mut self.propagation.projection {
            Projection::None => (),
            Projection::Full(weight) => all.push(weight.values_mut()),
            Projection::Bottleneck { down, up, .. } => {
                all.extend([down.values_mut(), up.values_mut()]);
            }
        }
        all.push(std::slice::from_mut(&mut self.lambda));
        all
    }
}

fn matrices(projection: &Projection) -> Vec<&Matrix> {
    match projection {
        Projection::None => Vec::new(),
        Projection::Full(weight) => vec![weight],
        Projection::Bottleneck { down, up, .. } => vec![down, up],
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::domains::Activation;

    #[test]
    fn gradients_are_the_known_ones_times_lambda() {
        let matrix = |rows: &[[f64; 2]]| Matrix::from_rows(rows).unwrap();
        let parameters = matrix(&[[0.0, 0.0], [3.0, 4.0], [0.0, 4.0]]);
        let weight = matrix(&[[1.0, -1.0], [0.5, 2.0]]);
        let graph = BranchGraph {
            adjacency: vec![crate::domains::adjacency::by_parameters(&parameters, 0.5).unwrap()],
            layers: vec![Convolution {
                lambda: 0.3,
                parameters,
                propagation: Propagation {
                    activation: Activation::Relu,
                    projection: Projection::Full(weight),
                },
            }],
        };
        let upstream = matrix(&[[1.0, 2.0], [-1.0, 0.5], [0.3, -0.7]]);
        let made = graph.generate().unwrap().remove(0);
        let known = [
            [1.6666666666666667, 3.333333333333333],
            [3.125, 5.0],
            [2.428571428571429, 5.428571428571429],
        ];
        let near = |got: &[f64], known: &[f64]| {
            assert_eq!(got.len(), known.len());
            for (got, known) in got.iter().zip(known) {
                assert!((got - known).abs() < 1e-12, "{got} {known}");
            }
        };
        near(made.values(), known.as_flattened());
        let [parameters, weight, lambda] = &graph.gradients(0, &made, &upstream).unwrap()[..]
        else {
            panic!("V, W and λ");
        };
        let scaled = |known: &[[f64; 2]]| -> Vec<f64> {
            known
                .as_flattened()
                .iter()
                .map(|value| 0.3 * value)
                .collect()
        };
        near(
            parameters,
            &scaled(&[
                [-0.5669642857142857, 2.075892857142857],
                [-0.6865079365079365, 0.8928571428571428],
                [-0.24652777777777782, 0.7812500000000001],
            ]),
        );
        near(
            weight,
            &scaled(&[
                [-0.5761904761904761, 1.4833333333333334],
                [-0.30714285714285705, 3.425],
            ]),
        );
        let products = upstream.values().iter().zip(known.as_flattened());
        near(lambda, &[products.map(|(a, b)| a * b).sum()]);
    }
}
