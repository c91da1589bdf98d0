//! FedCG (Caldarola et al. 2021), the server's side: domains whose layers learn from their
//! neighbours.
//!
//! A network of FedCG has, in some layers, a residual branch for every domain. The parameters of
//! the branches of a layer are the rows of a matrix `V`, one row of `q` values per domain. They are
//! not used as they are, but as a graph convolution makes them: `V̂ = σ(A·V·W)` (eq. (5)), so that a
//! domain with few samples is taught by its neighbours. Row `d` of `V̂`, reshaped, is the layer of
//! branch `d`, and the layer's output is `f_a(z) + λ·Σ_d w_d·f_d(z)` (eq. (4)).
//!
//! `A` says who is near whom ([`adjacency`], eq. (6)); the server computes it from the averaged
//! parameters and clients treat it as constant. `propagation` and `residual` are the forward and
//! backward pass of the rest: what a learner's automatic differentiation has to reproduce.
//!
//! Products are plain loops in `f64` in a fixed order: the same bits on every machine.

pub mod adjacency;
mod product;
mod propagation;
mod residual;

pub use propagation::{Activation, Gradients, Passes, Projection, Propagation, PropagationError};
pub use residual::{ResidualError, ResidualGradient, residual, residual_gradient};
