//! Upper bounds of the robust losses of neural networks.
//!
//! A network of dense layers, with activations of slope at most 1 (such as ReLU) between them, has a
//! Lipschitz constant `r` of at most the product of its layers' operator norms (Szegedy et al. 2014).
//! For the losses of CS-RCFL (Konti et al. 2024, eqs. (12)–(15)) a function with Lipschitz constant
//! `r` is bounded like a linear model of slope `r`: in the dual of the Wasserstein ball, with any
//! λ ≥ `r` moving features does not pay, so only labels can change. The result is an upper bound of
//! the worst case. It is exact for a single linear layer; with more layers it is as loose as the
//! product of norms.
//!
//! The extension to cross-entropy over classes is our own: for a row of class `z` the loss has the
//! gradient `Σ_c p_c (o_c − o_z)′` in the features, a mean of gradients of output differences. So its
//! slope is at most the largest slope of such a difference, which is at most `√2` times the ℓ2
//! operator norm of all outputs together. Changing the label of a row gains at most
//! `max_c (o_z − o_c)`.

use super::cost::validate_label_cost;
use super::logistic::{flips, log_loss};
use super::{Norm, RobustError, RobustLoss, validate};
use crate::matrix::Matrix;

/// Errors of computing the slope of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LayersError {
    /// No layers.
    #[error("a network has at least one layer")]
    Empty,
    /// A weight that is NaN or infinite.
    #[error("layer {layer} holds a weight that is not finite")]
    NotFinite {
        /// Number of the layer, from 0.
        layer: usize,
    },
    /// A layer whose inputs do not match the outputs of the layer before.
    #[error("layer {layer} takes {ins} inputs, the layer before it has {outs} outputs")]
    Chain {
        /// Number of the layer, from 0.
        layer: usize,
        /// Columns of the layer's matrix.
        ins: usize,
        /// Rows of the matrix before.
        outs: usize,
    },
}

/// An upper bound of the Lipschitz constant of every output of a network:
/// `|o(x) − o(x′)| / ‖x − x′‖`.
///
/// * `layers`: the weights of the dense layers, first to last, each outputs × inputs; activations
///   between them have slopes of at most 1.
///
/// # Errors
/// [`LayersError`]: no layers, layers that do not fit each other, weights that are not finite.
pub fn slope(layers: &[Matrix], norm: Norm) -> Result<f64, LayersError> {
    let (last, before) = chain(layers, norm)?;
    let rows = (0..last.rows()).map(|row| norm.dual(last.row(row).iter().copied()));
    Ok(before * rows.fold(0.0, f64::max))
}

/// As [`slope`], for the difference of any two outputs; 0 with one output.
///
/// # Errors
/// As [`slope`].
pub fn slope_between(layers: &[Matrix], norm: Norm) -> Result<f64, LayersError> {
    let (last, before) = chain(layers, norm)?;
    let mut most = 0f64;
    for one in 0..last.rows() {
        for other in 0..one {
            let pairs = last.row(one).iter().zip(last.row(other));
            most = most.max(norm.dual(pairs.map(|(a, b)| a - b)));
        }
    }
    Ok(before * most)
}

/// An upper bound of `sup E|y − f(x)|` over the ball of `radius`, where features and target may
/// both move: `mean |r| + radius · ‖(slope, 1)‖*`.
///
/// * `residuals`: `y − f(x)` of every row.
/// * `slope`: of `f`, at least 0, see [`slope`].
///
/// # Errors
/// [`RobustError`]: no rows, a number that is not finite, a negative radius.
pub fn absolute(
    residuals: &[f64],
    slope: f64,
    radius: f64,
    norm: Norm,
) -> Result<RobustLoss, RobustError> {
    validate(residuals, &[slope], radius)?;
    let slope = norm.dual([slope, 1.0]);
    Ok(super::linear::of_residuals(residuals, slope, radius))
}

/// An upper bound of `sup E log(1 + exp(−y f(x)))` over the ball of `radius`, where changing a
/// label costs `label_cost`, see [`logistic`](super::logistic()).
///
/// * `margins`: `y f(x)`, labels `y` ±1, of every row.
/// * `slope`: of `f`, at least 0, see [`slope`].
///
/// # Errors
/// [`RobustError`]: no rows, a number that is not finite, a negative radius, a label cost of 0 or
/// less.
pub fn logistic(
    margins: &[f64],
    slope: f64,
    radius: f64,
    label_cost: f64,
) -> Result<RobustLoss, RobustError> {
    validate(margins, &[slope], radius)?;
    validate_label_cost(label_cost)?;
    let losses = margins.iter().map(|&margin| log_loss(margin));
    let empirical = losses.sum::<f64>() / margins.len() as f64;
    let mut gains = margins.to_vec();
    Ok(with_flips(empirical, &mut gains, slope, radius, label_cost))
}

/// An upper bound of the worst cross-entropy of a softmax over the ball of `radius`, where
/// changing a label into any other costs `label_cost`.
///
/// * `outputs`: rows × classes, row-major.
/// * `labels`: the class of every row.
/// * `slope`: of any difference of two outputs, at least 0, see [`slope_between`].
///
/// # Errors
/// [`RobustError`]: no rows, a number that is not finite, a negative radius, a label cost of 0 or
/// less.
///
/// # Panics
/// If there are not equally many outputs for every label, or a label is none of them.
pub fn cross_entropy(
    outputs: &[f64],
    labels: &[usize],
    slope: f64,
    radius: f64,
    label_cost: f64,
) -> Result<RobustLoss, RobustError> {
    validate(outputs, &[slope], radius)?;
    validate_label_cost(label_cost)?;
    let classes = outputs.len() / labels.len().max(1);
    assert_eq!(outputs.len(), classes * labels.len(), "outputs per row");
    let mut sum = 0.0;
    let mut gains = Vec::with_capacity(labels.len());
    for (output, &label) in outputs.chunks_exact(classes).zip(labels) {
        let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let low = output.iter().copied().fold(f64::INFINITY, f64::min);
        let others: f64 = output.iter().map(|value| libm::exp(value - top)).sum();
        sum += top - output[label] + libm::log(others);
        gains.push(output[label] - low);
    }
    let empirical = sum / labels.len() as f64;
    Ok(with_flips(empirical, &mut gains, slope, radius, label_cost))
}

/// An upper bound of the loss if changing the label of row `n` gains `gains[n]`.
fn with_flips(
    empirical: f64,
    gains: &mut [f64],
    slope: f64,
    radius: f64,
    label_cost: f64,
) -> RobustLoss {
    let (gain, lambda) = flips(gains, slope, radius, label_cost);
    RobustLoss {
        loss: empirical + slope * radius + gain,
        empirical,
        lambda,
    }
}

/// The last layer, and the product of the operator norms of the layers before it.
fn chain(layers: &[Matrix], norm: Norm) -> Result<(&Matrix, f64), LayersError> {
    let (last, hidden) = layers.split_last().ok_or(LayersError::Empty)?;
    for (layer, pair) in layers.windows(2).enumerate() {
        let (outs, ins) = (pair[0].rows(), pair[1].columns());
        if ins != outs {
            let layer = layer + 1;
            return Err(LayersError::Chain { layer, ins, outs });
        }
    }
    let finite = |layer: &Matrix| layer.values().iter().all(|weight| weight.is_finite());
    if let Some(layer) = layers.iter().position(|layer| !finite(layer)) {
        return Err(LayersError::NotFinite { layer });
    }
    let norms = hidden.iter().map(|layer| operator_norm(layer, norm));
    Ok((last, norms.product()))
}

/// The operator norm of a matrix, or an upper bound of it.
fn operator_norm(matrix: &Matrix, norm: Norm) -> f64 {
    match norm {
        Norm::L1 => {
            let mut sums = vec![0.0; matrix.columns()];
            for row in 0..matrix.rows() {
                for (sum, weight) in sums.iter_mut().zip(matrix.row(row)) {
                    *sum += weight.abs();
                }
            }
            sums.into_iter().fold(0.0, f64::max)
        }
        Norm::Linf => (0..matrix.rows())
            .map(|row| matrix.row(row).iter().map(|weight| weight.abs()).sum())
            .fold(0.0, f64::max),
        Norm::L2 => spectral(matrix),
    }
}

/// An upper bound of the largest singular value.
///
/// The Frobenius norm of a power of `G = WWᵀ` (or `WᵀW`, whichever is smaller) is at least that
/// power of the largest eigenvalue: `σ² ≤ ‖G^p‖^(1/p)`, and the two
/// converge as `p` doubles by squaring. Unlike power iteration on a vector it does not depend on the
/// start, and it is an upper bound wherever it stops.
fn spectral(matrix: &Matrix) -> f64 {
    /// Maximum number of squarings: the bound is then within `side^(2⁻³⁰)` of the value.
    const SQUARINGS: usize = 30;
    /// Relative change of the bound at which squaring stops.
    const ENOUGH: f64 = 1e-10;

    let (long, short) = (
        matrix.rows().max(matrix.columns()),
        matrix.rows().min(matrix.columns()),
    );
    // Transposed if necessary, so that the rows are the shorter side.
    let wide = if matrix.rows() == short {
        matrix.clone()
    } else {
        Matrix::from_fn(short, long, |row, column| matrix[(column, row)])
    };
    let mut gram = Matrix::from_fn(short, short, |a, b| {
        let pairs = wide.row(a).iter().zip(wide.row(b));
        pairs.map(|(a, b)| a * b).sum()
    });
    let (mut log, mut share) = (0.0, 1.0);
    for _ in 0..=SQUARINGS {
        let squares: f64 = gram.values().iter().map(|value| value * value).sum();
        let size = squares.sqrt();
        if size == 0.0 {
            return 0.0;
        }
        let change = share * libm::log(size);
        log += change;
        // The first term is the first bound itself, not a change of it.
        if share < 1.0 && change.abs() < ENOUGH {
            break;
        }
        gram.values_mut()
            .iter_mut()
            .for_each(|value| *value /= size);
        gram = squared(&gram);
        share /= 2.0;
    }
    // A margin for the rounding of the products.
    let rounding = 2.0 * f64::EPSILON * (long * short) as f64;
    libm::exp(log / 2.0) * (1.0 + rounding)
}

/// `A·A`, row by row, so that the inner loop runs along rows.
fn squared(matrix: &Matrix) -> Matrix {
    let mut product = Matrix::zeros(matrix.rows(), matrix.rows());
    for row in 0..matrix.rows() {
        for (middle, &factor) in matrix.row(row).iter().enumerate() {
            let from = matrix.row(middle);
            for (sum, value) in product.row_mut(row).iter_mut().zip(from) {
                *sum += factor * value;
            }
        }
    }
    product
}

#[cfg(test)]
mod tests;
