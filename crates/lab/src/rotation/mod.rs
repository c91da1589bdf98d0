//! The laboratory of rotating leads: the same federation, faults and seeds under several rotations,
//! in virtual time.
//!
//! [`rotation`] runs a [`RotationExperiment`] and gives a [`Laboratory`], the document that tables, pages and
//! JSON are made from. Everything that is random follows from a seed, and every policy gets the same
//! seeds: the same rows, first model, latencies and faults. So policies can be compared seed by seed.
//!
//! Runs elsewhere, such as of real processes, become the same document: a [`RotationRun`] each, put together by
//! [`laboratory`], with a [`Deployment`].

mod experiment;
mod measure;
mod plan;
mod result;
mod summarise;
mod takeover;
#[cfg(test)]
mod tests;
mod timeline;

pub use crate::summary::StoppedMember;
pub use experiment::{LabOptions, LabProgress, RotationExperiment, rotation};
pub use plan::{policies, usual_faults, words};
pub use result::{Deployment, Laboratory, MetricPoint, PolicyResult, RotationRun, SeenAuthors};
pub use summarise::{Findings, laboratory, metric_of};
pub use takeover::{MemberEvent, TakeOver, take_overs};
pub use timeline::{TimelineView, timeline};

/// The built-in scenario that is used where none is named.
pub const SCENARIO: &str = "rotation";
