//! Methods that make one model for all members.

pub(crate) mod afl;
pub(crate) mod client_sampling;
pub(crate) mod drfa;
pub(crate) mod fedavg;
pub(crate) mod fedfa;
pub(crate) mod fednova;
pub(crate) mod fedopt;
pub(crate) mod hierarchical;
pub(crate) mod maxfl;
pub(crate) mod maxfl_joins;
pub(crate) mod members;
pub(crate) mod minimax;
pub(crate) mod momentum;
pub(crate) mod self_weighted;
pub(crate) mod superquantile;
pub(crate) mod tfl;
pub(crate) mod topology_prior;
