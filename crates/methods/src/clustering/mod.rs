//! Who belongs together, by the baselines: k-means, CFL, FeSEM, IFCA, FLSC, FedCollab.

pub mod kmeans;
