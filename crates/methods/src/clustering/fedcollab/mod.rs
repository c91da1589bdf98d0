//! FedCollab (Bao et al. 2023): coalitions from the clients' amounts of data and the divergences
//! between their distributions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::ClusteringError;
use super::error::{finite, sized};
use crate::coalitions::canonical;
use crate::matrix::Matrix;

/// Smallest relative improvement that counts: smaller ones are rounding and could cycle.
const STEP: f64 = 1e-12;

/// Options of FedCollab: its error bound and the length of its search.
///
/// Client `k` of coalition `𝒞` has the bound `C·√(Σ_i α_i²/(β_i m)) + Σ_i α_i d_ki` over the
/// members `i`, with shares `β_i` of all `m` samples and `α_i = β_i / Σ_{j ∈ 𝒞} β_j`: more data
/// make the first term smaller (it is `C/√m_𝒞` with `m_𝒞` samples in the coalition), divergent
/// members make the second larger. FedCollab minimises the mean over the clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FedCollabBound {
    /// C ≥ 0: the weight of the first term, a lack of data. Default 1; the paper tunes it (8 and 10 in the
    /// authors' files).
    pub c: f64,
    /// Number of descents, at least 1, each with another order of clients: the first in the given
    /// order, the others shuffled. The best result counts. Default 100, as in the authors' code.
    pub orders: u32,
}

impl Default for FedCollabBound {
    fn default() -> Self {
        Self {
            c: 1.0,
            orders: 100,
        }
    }
}

/// A grouping of the clients and its error.
#[derive(Debug, Clone, PartialEq)]
pub struct Collaboration {
    /// Coalition of every client; coalitions are numbered in the order of their first client.
    pub assignment: Vec<u32>,
    /// Mean of the clients' error bounds.
    pub error: f64,
}

impl FedCollabBound {
    /// Starts with every client alone and moves one client at a time to the coalition (or an empty
    /// one) that lowers the mean error most, until no move lowers it. A function of its arguments.
    ///
    /// * `samples`: training rows of every client, at least 1.
    /// * `divergences`: `n × n`, `d_ki ≥ 0`, how far client `i`'s distribution is from that of client
    ///   `k`; usually 0 on the diagonal.
    /// * `seed`: seed of the shuffled orders.
    ///
    /// # Errors
    /// [`ClusteringError`]: an option out of its range, no client, a client without samples, a
    /// matrix that is not `n × n`, a divergence that is below 0 or not finite.
    pub fn solve(
        &self,
        samples: &[u64],
        divergences: &Matrix,
        seed: u64,
    ) -> Result<Collaboration, ClusteringError> {
        let problem = self.problem(samples, divergences)?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut order: Vec<usize> = (0..samples.len()).collect();
        let mut best = problem.descend(&order);
        for _ in 1..self.orders {
            for last in (1..order.len()).rev() {
                // The remainder's bias is below 2⁻⁵⁰ and does not matter to a heuristic.
                order.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
            }
            let found = problem.descend(&order);
            if found.error < best.error * (1.0 - STEP) {
                best = found;
            }
        }
        Ok(best)
    }

    /// The mean of the clients' error bounds under a given grouping.
    ///
    /// # Errors
    /// As [`solve`](Self::solve), and an assignment of another length.
    pub fn error(
        &self,
        samples: &[u64],
        divergences: &Matrix,
        assignment: &[u32],
    ) -> Result<f64, ClusteringError> {
        let problem = self.problem(samples, divergences)?;
        sized("the assignment", samples.len(), assignment.len())?;
        Ok(problem.error(&canonical(assignment)))
    }

    fn problem<'a>(
        &self,
        samples: &[u64],
        divergences: &'a Matrix,
    ) -> Result<FedCollabProblem<'a>, ClusteringError> {
        let option = |option, allowed, got: f64, valid: bool| {
            valid.then_some(()).ok_or(ClusteringError::Option {
                option,
                allowed,
                got,
            })
        };
        let valid = self.c.is_finite() && self.c >= 0.0;
        option("c", "finite and at least 0", self.c, valid)?;
        option("orders", "at least 1", self.orders.into(), self.orders > 0)?;
        finite("divergences", divergences)?;
        for got in [divergences.rows(), divergences.columns()] {
            sized("the matrix of divergences", samples.len(), got)?;
        }
        let least = samples.iter().min().map_or(0.0, |&least| least as f64);
        option("samples", "at least 1", least, least >= 1.0)?;
        let least = divergences.values().iter().copied().fold(0.0, f64::min);
        option("divergences", "at least 0", least, least >= 0.0)?;
        Ok(FedCollabProblem {
            c: self.c,
            samples: samples.iter().map(|&samples| samples as f64).collect(),
            divergences,
        })
    }
}

struct FedCollabProblem<'a> {
    c: f64,
    samples: Vec<f64>,
    divergences: &'a Matrix,
}

impl FedCollabProblem<'_> {
    /// Descends from singletons to a grouping that no move of one client improves.
    fn descend(&self, order: &[usize]) -> Collaboration {
        let clients = order.len();
        let mut coalitions: Vec<Vec<usize>> = (0..clients).map(|client| vec![client]).collect();
        let mut bounds: Vec<f64> = coalitions
            .iter()
            .map(|members| self.bounds(members))
            .collect();
        let mut of: Vec<usize> = (0..clients).collect();
        loop {
            let mut moved = false;
            for &client in order {
                let from = of[client];
                let left: Vec<usize> = without(&coalitions[from], client);
                let gone = self.bounds(&left);
                let mut best = (0.0, from, 0.0);
                for to in (0..clients).filter(|&to| to != from) {
                    let joined = self.bounds(&with(&coalitions[to], client));
                    let (before, after) = (bounds[from] + bounds[to], gone + joined);
                    let change = after - before;
                    if change < best.0 && change < -STEP * before {
                        best = (change, to, joined);
                    }
                }
                let (_, to, joined) = best;
                if to != from {
                    coalitions[to] = with(&coalitions[to], client);
                    coalitions[from] = left;
                    (bounds[to], bounds[from]) = (joined, gone);
                    of[client] = to;
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        let assignment: Vec<u32> = of.iter().map(|&coalition| coalition as u32).collect();
        let assignment = canonical(&assignment);
        Collaboration {
            error: self.error(&assignment),
            assignment,
        }
    }

    /// The mean error bound of a grouping in canonical numbers.
    fn error(&self, assignment: &[u32]) -> f64 {
        let coalitions = assignment.iter().max().map_or(0, |last| last + 1);
        let sum: f64 = (0..coalitions)
            .map(|coalition| {
                let members = (0..assignment.len()).filter(|&i| assignment[i] == coalition);
                self.bounds(&members.collect::<Vec<_>>())
            })
            .sum();
        sum / assignment.len() as f64
    }

    /// Sum of the error bounds of the members of one coalition.
    fn bounds(&self, members: &[usize]) -> f64 {
        let samples: f64 = members.iter().map(|&i| self.samples[i]).sum();
        let few = self.c / samples.sqrt();
        let bound = |&client: &usize| {
            let row = self.divergences.row(client);
            let other: f64 = members.iter().map(|&i| self.samples[i] * row[i]).sum();
            few + other / samples
        };
        members.iter().map(bound).sum()
    }
}

/// Inserts a client into ascending members.
fn with(members: &[usize], client: usize) -> Vec<usize> {
    let at = members.partition_point(|&member| member < client);
    [&members[..at], &[client], &members[at..]].concat()
}

/// The members without one client.
fn without(members: &[usize], client: usize) -> Vec<usize> {
    members
        .iter()
        .copied()
        .filter(|&member| member != client)
        .collect()
}

#[cfg(test)]
mod tests;
