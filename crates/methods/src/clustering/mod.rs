//! Clusterings of clients by the baselines: k-means, CFL, FeSEM, IFCA, FLSC, FedCollab.
//!
//! The functions take small matrices (losses, distances, cosines; clients are rows) and, where
//! cluster models are averaged, models. A clustering is a list with the cluster of every client. Ties
//! go to the first.

pub mod cfl;
mod error;
pub mod fedcollab;
pub mod fesem;
pub mod groups;
pub mod ifca;
pub mod kmeans;

pub use cfl::CflRule;
pub use error::ClusteringError;
pub use fedcollab::FedCollabBound;

#[cfg(test)]
mod tests;
