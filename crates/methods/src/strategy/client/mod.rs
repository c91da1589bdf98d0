//! Methods that differ in what a silo does with its own data.

pub(crate) mod ditto;
pub(crate) mod fedcg;
pub(crate) mod fedprox;
pub(crate) mod fedrep;
pub(crate) mod fedsr;
pub(crate) mod robust_local;
pub(crate) mod scaffold;
