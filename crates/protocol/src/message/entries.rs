//! What participants contribute to a round, and the lists that its lead makes of that.

use serde::{Deserialize, Serialize};

use crate::codec;
use crate::hash::Hash;
use crate::roster::MemberIndex;

/// A trained model, by hash, with the fields that only the lead sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Hash of the plan that was carried out.
    pub plan: Hash,
    /// The entry as all members will see it, without its id.
    pub fields: EntryFields,
    /// Keeps anybody but the author and the leads that it sent this to from computing the entry's
    /// id.
    #[serde(with = "codec::bytes")]
    pub nonce: [u8; 32],
    /// Training metrics by name, ascending.
    pub metrics: Vec<(String, f64)>,
}

/// Most training metrics in a contribution.
pub const METRICS: usize = 64;
/// Longest name of a metric, in bytes.
pub const METRIC_NAME: usize = 128;

impl Contribution {
    /// Whether there are at most [`METRICS`] metrics, all finite, with names of at most
    /// [`METRIC_NAME`] bytes. What a member makes others keep must be bounded.
    pub fn has_sane_metrics(&self) -> bool {
        let sane = |(name, value): &(String, f64)| name.len() <= METRIC_NAME && value.is_finite();
        self.metrics.len() <= METRICS && self.metrics.iter().all(sane)
    }

    /// Whether the two have the same encoding. Unlike `==` this compares NaN bit by bit.
    pub fn same(&self, other: &Self) -> bool {
        codec::encode(self) == codec::encode(other)
    }

    /// The entry that this contribution becomes in a contribution list.
    pub fn entry(&self, federation: &Hash, round: u64) -> Entry {
        Entry::new(federation, round, &self.nonce, self.fields.clone())
    }
}

/// The part of a contribution that all members see.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryFields {
    /// Hash of the model's encoding.
    pub blob: Hash,
    /// Size of that encoding, in bytes.
    pub size: u64,
    /// The coalition whose model training started from, if there was one.
    pub coalition: Option<u32>,
    /// Number of training rows, if the plan asks for weights.
    pub weight: Option<u64>,
    /// The author, if the parameter set shows names.
    pub member: Option<MemberIndex>,
}

/// One contribution in a contribution list or a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Hash of federation, round, nonce and blob.
    pub id: Hash,
    /// The part of the contribution that all members see.
    pub fields: EntryFields,
}

impl Entry {
    /// The entry of a contribution with this nonce.
    pub fn new(federation: &Hash, round: u64, nonce: &[u8; 32], fields: EntryFields) -> Self {
        let (round, blob) = (round.to_le_bytes(), &fields.blob.0);
        let id = Hash::labelled("entry", &[&federation.0, &round, nonce, blob]);
        Self { id, fields }
    }
}

/// The entries of a round. The lead takes no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContributionList {
    /// Strictly ascending by id.
    pub entries: Vec<Entry>,
}

/// A member's losses of all entries. Self-reported: other members cannot verify them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberScores {
    /// Id of the member's own entry.
    pub entry: Hash,
    /// Hash of a model and its loss on the member's own data, strictly ascending by hash.
    pub losses: Vec<(Hash, f64)>,
}

impl MemberScores {
    /// The losses in the order of `entries`; none if one of them is not scored.
    pub fn row(&self, entries: &[Entry]) -> Option<Vec<f64>> {
        let loss = |entry: &Entry| {
            let at = self
                .losses
                .binary_search_by(|(blob, _)| blob.cmp(&entry.fields.blob))
                .ok()?;
            Some(self.losses[at].1)
        };
        entries.iter().map(loss).collect()
    }
}

/// The entries of a round and, if the plan cross-evaluates, their scores: what a decision rests on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundManifest {
    /// Strictly ascending by id.
    pub entries: Vec<Entry>,
    /// Losses: row i holds those on the data of the author of entry i, column j those of the model
    /// of entry j.
    pub scores: Option<Vec<Vec<f64>>>,
}

impl RoundManifest {
    /// The hash that inclusions are signatures over.
    pub fn root(&self) -> Hash {
        Hash::labelled("sheet", &[&codec::encode(self)])
    }

    /// The entry whose weight is more than half of that of all entries, and the weight of all; none if
    /// there is no such entry, or only one entry.
    pub fn heaviest(&self) -> Option<(&Entry, u128)> {
        let weight = |entry: &Entry| u128::from(entry.fields.weight.unwrap_or(0));
        let total = self.entries.iter().map(weight).sum();
        let heavy = self.entries.iter().find(|entry| 2 * weight(entry) > total);
        let heavy = heavy.filter(|_| self.entries.len() > 1)?;
        Some((heavy, total))
    }

    /// The position of the entry with this id.
    pub fn position(&self, entry: &Hash) -> Option<usize> {
        self.entries.binary_search_by(|e| e.id.cmp(entry)).ok()
    }
}
