//! Mathematics of FedCG (Caldarola et al. 2021): a graph convolution over the parameters of domains.
//!
//! A network of FedCG has, in some layers, a residual branch for every domain. The parameters of
//! the branches of a layer are the rows of a matrix `V`, one row of `q` values per domain. The
//! network does not use them directly but after a graph convolution, `V̂ = σ(A·V·W)` (eq. (5)), so
//! that a domain with few samples learns from its neighbours. Row `d` of `V̂`, reshaped, is the layer
//! of branch `d`, and the layer's output is `f_a(z) + λ·Σ_d w_d·f_d(z)` (eq. (4)).
//!
//! * [`adjacency`]: `A`, the similarity of domains (eq. (6)). The server computes it from the
//!   averaged parameters; clients treat it as a constant.
//! * [`Propagation`]: forward and backward pass of eq. (5).
//! * [`residual()`] and [`residual_gradient`]: forward and backward pass of eq. (4), the reference for
//!   learners that train the branches by automatic differentiation.
//!
//! Products are plain `f64` loops in a fixed order: the same bits on every machine.

pub mod adjacency;
mod product;
mod propagation;
mod residual;

pub use propagation::{Activation, Gradients, Passes, Projection, Propagation, PropagationError};
pub use residual::{ResidualError, ResidualGradient, residual, residual_gradient};
