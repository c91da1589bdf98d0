//! Methods that differ in what is computed from the contributions of a round.

pub(crate) mod groups;
pub(crate) mod means;
pub(crate) mod one_model;
