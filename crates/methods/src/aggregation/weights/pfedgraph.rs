//! pFedGraph: for every client its own mean, of the models like its own.

use serde::{Deserialize, Serialize};

use super::{WeightsError, check, shares};
use crate::matrix::Matrix;
use crate::topology::project;

/// pFedGraph's collaboration graph (Ye et al. 2023).
///
/// Row `i` of the weights solves `min_w Σ_j w_j d_ij + α Σ_j (w_j − p_j)²` over the simplex, with
/// `d_ij = −cos(Δ_i, Δ_j)`. Up to a constant that is `α‖w − (p − d_i/2α)‖²`, so the solution is
/// the projection of `p − d_i/2α` onto the simplex.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PFedGraph {
    /// α > 0: how much the prior counts against similarity. Default 0.8.
    pub alpha: f64,
    /// Cosines above this count as 1. Default 0.9; at 1, none do.
    pub alike: f64,
}

impl Default for PFedGraph {
    fn default() -> Self {
        Self {
            alpha: 0.8,
            alike: 0.9,
        }
    }
}

impl PFedGraph {
    /// A row of weights for every client, each summing to 1.
    ///
    /// * `cosines`: of all clients' updates, `n × n`, in `[−1, 1]` up to rounding; a product of
    ///   zero updates is 0.
    /// * `prior`: `p`, by training rows; at least 0, scaled here to sum to 1.
    ///
    /// # Errors
    /// [`WeightsError`]: no client, a matrix that is not `n × n`, a number out of its range, a
    /// prior of zeros.
    pub fn weights(&self, cosines: &Matrix, prior: &[f64]) -> Result<Matrix, WeightsError> {
        let clients = cosines.rows();
        let positive = |alpha: f64| alpha.is_finite() && alpha > 0.0;
        check("alpha", &[self.alpha], 1, "finite and above 0", positive)?;
        let cosine = |value: f64| value.abs() <= 1.0 + 1e-6;
        check("alike", &[self.alike], 1, "from -1 to 1", cosine)?;
        check(
            "cosines",
            cosines.values(),
            clients * clients,
            "from -1 to 1",
            cosine,
        )?;
        let prior = shares("prior", prior, clients)?;
        let mut weights = Matrix::zeros(clients, clients);
        for client in 0..clients {
            let wanted: Vec<f64> = cosines
                .row(client)
                .iter()
                .zip(&prior)
                .map(|(&cosine, prior)| {
                    let cosine = if cosine > self.alike { 1.0 } else { cosine };
                    prior + cosine / (2.0 * self.alpha)
                })
                .collect();
            let nearest = project(&wanted).expect("cosines and priors are finite");
            weights.row_mut(client).copy_from_slice(&nearest);
        }
        Ok(weights)
    }
}
