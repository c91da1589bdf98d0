//! The graph convolution of FedCG (eq. (5)) and its gradients.

use serde::{Deserialize, Serialize};

use super::product::{product, product_of_transposed, product_with_transposed};
use crate::Matrix;

/// Activation `σ`, applied to every entry of a product.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `max(x, 0)`, as in the paper's final model: all generated parameters are at least 0, and
    /// an entry at or below 0 has no gradient.
    #[default]
    Relu,
    /// `x`.
    Identity,
}

/// Propagation at a bottleneck. The paper only says that `W` is a bottleneck.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Passes {
    /// Two layers: `V̂ = σ(A·σ(A·V·W₁)·W₂)`.
    #[default]
    Two,
    /// One layer whose `W` is a product: `V̂ = σ(A·V·W₁·W₂)`.
    One,
}

/// `W`: the projection that mixes the values of a domain; its gradient has the same shape.
#[derive(Debug, Clone, PartialEq)]
pub enum Projection {
    /// No `W`.
    None,
    /// `W`, values × values.
    Full(Matrix),
    /// A `W` of lower rank (in the paper, a sixteenth of the values).
    Bottleneck {
        /// `W₁`, values × fewer.
        down: Matrix,
        /// `W₂`, fewer × values.
        up: Matrix,
        /// Number of propagations along `A`.
        passes: Passes,
    },
}

/// The graph convolution of one layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Propagation {
    /// `σ`.
    pub activation: Activation,
    /// `W`.
    pub projection: Projection,
}

/// Errors of a graph convolution: matrices that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PropagationError {
    /// A shape that does not fit the other matrices.
    #[error("{what} is {rows} × {columns}, but must be {expected_rows} × {expected_columns}")]
    Shape {
        /// Name of the matrix.
        what: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        columns: usize,
        /// Rows that the matrix should have.
        expected_rows: usize,
        /// Columns that the matrix should have.
        expected_columns: usize,
    },
    /// A value that is NaN or infinite.
    #[error("{0} holds a value that is not finite")]
    NotFinite(&'static str),
}

/// Gradients of a loss with respect to `V` and `W`.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    /// `∂L/∂V`, domains × values. Where `A` connects domains, a loss in one changes the parameters
    /// of the others.
    pub parameters: Matrix,
    /// `∂L/∂W`, of the shape of `W`.
    pub projection: Projection,
}

/// One step of the convolution, `x → σ(A·x·W)`; each part is optional.
struct PropagationStep<'a> {
    propagates: bool,
    weight: Option<&'a Matrix>,
    activation: Activation,
}

/// Intermediate values of a step that the backward pass needs.
struct Trace {
    /// The step's input after `A`.
    gathered: Matrix,
    /// Before the activation.
    raw: Matrix,
}

impl Propagation {
    /// `V̂` (domains × values) of `adjacency` (`A`, domains × domains) and `parameters` (`V`,
    /// domains × values).
    ///
    /// # Errors
    /// [`PropagationError`] if shapes do not fit or a value is not finite.
    pub fn forward(
        &self,
        adjacency: &Matrix,
        parameters: &Matrix,
    ) -> Result<Matrix, PropagationError> {
        self.validate(adjacency, parameters)?;
        Ok(self.run(adjacency, parameters).0)
    }

    /// The gradients of a loss from `upstream`, its gradient with respect to `V̂` (domains ×
    /// values). `A` is a constant: the server sends it.
    ///
    /// # Errors
    /// [`PropagationError`] if shapes do not fit or a value is not finite.
    pub fn backward(
        &self,
        adjacency: &Matrix,
        parameters: &Matrix,
        upstream: &Matrix,
    ) -> Result<Gradients, PropagationError> {
        self.validate(adjacency, parameters)?;
        let (domains, values) = (parameters.rows(), parameters.columns());
        expect("the upstream gradient", upstream, (domains, values))?;
        let (_, traces) = self.run(adjacency, parameters);
        let mut gradient = upstream.clone();
        let mut weights = Vec::new();
        for (step, trace) in self.steps().iter().zip(traces).rev() {
            if step.activation == Activation::Relu {
                for (value, &raw) in gradient.values_mut().iter_mut().zip(trace.raw.values()) {
                    if raw <= 0.0 {
                        *value = 0.0;
                    }
                }
            }
            if let Some(weight) = step.weight {
                weights.push(product_of_transposed(&trace.gathered, &gradient));
                gradient = product_with_transposed(&gradient, weight);
            }
            if step.propagates {
                gradient = product_of_transposed(adjacency, &gradient);
            }
        }
        // Gradients of the weights were pushed from the last step to the first.
        let projection = match (&self.projection, weights.pop(), weights.pop()) {
            (Projection::Full(_), Some(weight), None) => Projection::Full(weight),
            (&Projection::Bottleneck { passes, .. }, Some(down), Some(up)) => {
                Projection::Bottleneck { down, up, passes }
            }
            _ => Projection::None,
        };
        Ok(Gradients {
            parameters: gradient,
            projection,
        })
    }

    fn steps(&self) -> Vec<PropagationStep<'_>> {
        let step = |propagates, weight, activation| PropagationStep {
            propagates,
            weight,
            activation,
        };
        let last = self.activation;
        match &self.projection {
            Projection::None => vec![step(true, None, last)],
            Projection::Full(weight) => vec![step(true, Some(weight), last)],
            Projection::Bottleneck { down, up, passes } => match passes {
                Passes::Two => vec![step(true, Some(down), last), step(true, Some(up), last)],
                Passes::One => vec![
                    step(true, Some(down), Activation::Identity),
                    step(false, Some(up), last),
                ],
            },
        }
    }

    fn run(&self, adjacency: &Matrix, parameters: &Matrix) -> (Matrix, Vec<Trace>) {
        let mut value = parameters.clone();
        let mut traces = Vec::new();
        for step in self.steps() {
            let gathered = if step.propagates {
                product(adjacency, &value)
            } else {
                value
            };
            let raw = match step.weight {
                Some(weight) => product(&gathered, weight),
                None => gathered.clone(),
            };
            value = raw.clone();
            if step.activation == Activation::Relu {
                value.values_mut().iter_mut().for_each(|x| *x = x.max(0.0));
            }
            traces.push(Trace { gathered, raw });
        }
        (value, traces)
    }

    fn validate(&self, adjacency: &Matrix, parameters: &Matrix) -> Result<(), PropagationError> {
        let (domains, values) = (parameters.rows(), parameters.columns());
        expect("the parameters' matrix V", parameters, (domains, values))?;
        expect("the adjacency A", adjacency, (domains, domains))?;
        match &self.projection {
            Projection::None => Ok(()),
            Projection::Full(weight) => expect("the projection W", weight, (values, values)),
            Projection::Bottleneck { down, up, .. } => {
                expect("the projection W₁", down, (values, down.columns()))?;
                expect("the projection W₂", up, (down.columns(), values))
            }
        }
    }
}

/// Refuses a matrix of another shape or with a value that is not finite.
fn expect(
    what: &'static str,
    matrix: &Matrix,
    (expected_rows, expected_columns): (usize, usize),
) -> Result<(), PropagationError> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    if (rows, columns) != (expected_rows, expected_columns) {
        return Err(PropagationError::Shape {
            what,
            rows,
            columns,
            expected_rows,
            expected_columns,
        });
    }
    if matrix.values().iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(PropagationError::NotFinite(what))
    }
}

#[cfg(test)]
mod tests;
