//! Methods that differ in what a silo does with its own data.

pub(crate) mod apfl;
pub(crate) mod ditto;
pub(crate) mod fedala;
pub(crate) mod fedcg;
pub(crate) mod feddyn;
pub(crate) mod fedprox;
pub(crate) mod fedrep;
pub(crate) mod fedsr;
mod personal_model;
pub(crate) mod pfedme;
pub(crate) mod robust_local;
pub(crate) mod scaffold;
