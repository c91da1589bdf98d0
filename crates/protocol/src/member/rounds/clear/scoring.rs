//! Contribution lists, and scoring their entries on this member's own data.

use std::collections::BTreeMap;

use crate::hash::Hash;
use crate::message::Entry;

/// This member's losses of the round's entries.
#[derive(Default)]
pub(in crate::member) struct Scoring {
    /// Measured losses, by the model's hash.
    pub(in crate::member) losses: BTreeMap<Hash, f64>,
    /// The entries of a contribution list whose scores the lead waits for.
    pub(in crate::member) requested: Option<Vec<Entry>>,
    /// A [`Request::Evaluate`](crate::work::Request::Evaluate) is not answered yet.
    pub(in crate::member) evaluating: bool,
}

impl Scoring {
    /// The losses of these entries in their order, if all were measured.
    pub(in crate::member) fn row(&self, entries: &[Entry]) -> Option<Vec<f64>> {
        entries
            .iter()
            .map(|entry| self.losses.get(&entry.fields.blob).copied())
            .collect()
    }
}
