//! Methods that make several models and assign members to them.

pub(crate) mod cfl;
pub(crate) mod cs_rcfl;
pub(crate) mod cs_rcfl_auto;
pub(crate) mod cs_rcfl_options;
pub(crate) mod custom;
pub(crate) mod fedcollab;
pub(crate) mod fesem;
pub(crate) mod flsc;
pub(crate) mod hcct;
pub(crate) mod ifca;
pub(crate) mod local;
pub(crate) mod multi_model;
pub(crate) mod pfedgraph;
mod starts;
