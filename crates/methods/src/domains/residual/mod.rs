//! A layer's output with its domain branches (FedCG, eq. (4)), and its gradients.
//!
//! The learners of this workspace fold the branches into the layer and do not call these functions:
//! they are the reference for learners, and for experiments, that run the branches separately.

use crate::Matrix;

/// Errors of a layer with branches.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ResidualError {
    /// The number of branches and weights, or of outputs, differ.
    #[error(
        "{branches} branches of {outputs} outputs do not go with {weights} weights and {agnostic} outputs of the shared layer"
    )]
    Sizes {
        /// Rows of the branches' outputs.
        branches: usize,
        /// Columns of the branches' outputs.
        outputs: usize,
        /// Weights of domains.
        weights: usize,
        /// Outputs of the layer that all domains share, or gradients of the sum.
        agnostic: usize,
    },
    /// Weights that are negative or do not sum to 1.
    #[error("the weights of the domains must be at least 0 and sum to 1")]
    Weights,
    /// A value that is NaN or infinite.
    #[error("the outputs of a layer and lambda must be finite")]
    NotFinite,
}

/// Gradients of a loss with respect to the inputs of [`residual`]. The gradient with respect to the
/// shared layer's output is the upstream gradient itself.
#[derive(Debug, Clone, PartialEq)]
pub struct ResidualGradient {
    /// With respect to the branches' outputs: `λ·w_d·∂L/∂z`, domains × outputs.
    pub branches: Matrix,
    /// With respect to `λ`: `⟨∂L/∂z, Σ_d w_d·f_d⟩`.
    pub lambda: f64,
}

/// `f_a + λ·Σ_d w_d·f_d`, before the layer's activation: `agnostic` is the output of the layer that
/// all domains share, row `d` of `branches` (domains × outputs) that of branch `d`. In training
/// `weights` is 1 for the domain that the teacher predicts; in evaluation it holds the student's
/// predicted probabilities.
///
/// # Errors
/// [`ResidualError`] if sizes differ, the weights are negative or do not sum to 1 (up to 10⁻⁶), or a value is
/// not finite.
pub fn residual(
    agnostic: &[f64],
    branches: &Matrix,
    weights: &[f64],
    lambda: f64,
) -> Result<Vec<f64>, ResidualError> {
    validate(agnostic, branches, weights, lambda)?;
    let mixed = mix(branches, weights);
    let outputs = agnostic.iter().zip(mixed);
    Ok(outputs.map(|(own, mixed)| own + lambda * mixed).collect())
}

/// The gradients, from `upstream`, the gradient with respect to the output of [`residual`].
///
/// # Errors
/// As [`residual`].
pub fn residual_gradient(
    upstream: &[f64],
    branches: &Matrix,
    weights: &[f64],
    lambda: f64,
) -> Result<ResidualGradient, ResidualError> {
    validate(upstream, branches, weights, lambda)?;
    let mixed = mix(branches, weights);
    Ok(ResidualGradient {
        branches: Matrix::from_fn(branches.rows(), branches.columns(), |domain, output| {
            lambda * weights[domain] * upstream[output]
        }),
        lambda: upstream
            .iter()
            .zip(mixed)
            .map(|(up, mixed)| up * mixed)
            .sum(),
    })
}

/// `Σ_d w_d·f_d`.
fn mix(branches: &Matrix, weights: &[f64]) -> Vec<f64> {
    let mut mixed = vec![0.0; branches.columns()];
    for (domain, weight) in weights.iter().enumerate() {
        for (sum, output) in mixed.iter_mut().zip(branches.row(domain)) {
            *sum += weight * output;
        }
    }
    mixed
}

fn validate(
    outputs: &[f64],
    branches: &Matrix,
    weights: &[f64],
    lambda: f64,
) -> Result<(), ResidualError> {
    if branches.rows() != weights.len() || branches.columns() != outputs.len() {
        return Err(ResidualError::Sizes {
            branches: branches.rows(),
            outputs: branches.columns(),
            weights: weights.len(),
            agnostic: outputs.len(),
        });
    }
    let total: f64 = weights.iter().sum();
    if weights.iter().any(|&weight| weight < 0.0) || (total - 1.0).abs() > 1e-6 || total.is_nan() {
        return Err(ResidualError::Weights);
    }
    let values = outputs.iter().chain(branches.values()).chain([&lambda]);
    if values.into_iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(ResidualError::NotFinite)
    }
}

#[cfg(test)]
mod tests;
