//! What members contributed to the rounds of a run.

use bytes::Bytes;
use methods::merging::MergeTree;
use protocol::MemberIndex;

/// What members contributed to a round.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contributions {
    /// The round, from 1.
    pub round: u64,
    /// The authors, with their models as they were sent: safetensors documents.
    pub models: Vec<(MemberIndex, Bytes)>,
    /// Losses of a cross-evaluation: rows and columns in the order of `models`, the row is whose data, the
    /// column whose model.
    pub losses: Option<Vec<Vec<f64>>>,
    /// How their authors were merged into groups, where the strategy does that and the run has no messages
    /// (`mesh = "direct"`).
    pub merges: Option<AuthorMerges>,
}

/// Merges of authors, from each alone to one group.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorMerges {
    /// The total utility if every author stays alone.
    pub alone: f64,
    /// The merges in order: authors of the two groups, by which they are named, and what the merge adds to
    /// the total utility. Those that lower it were not made, unless a number of groups was asked for.
    pub merges: Vec<([MemberIndex; 2], f64)>,
}

impl AuthorMerges {
    /// Merges of entries as merges of their authors.
    pub(crate) fn new(tree: MergeTree, authors: &[MemberIndex]) -> Self {
        let merges = tree.merges.into_iter();
        Self {
            alone: tree.alone,
            merges: merges
                .map(|merge| (merge.groups.map(|at| authors[at]), merge.benefit))
                .collect(),
        }
    }
}

impl Contributions {
    /// Puts the entries of a sheet, with the row of losses that the author of each measured, in the order
    /// of their authors.
    pub(crate) fn new(
        round: u64,
        mut entries: Vec<(MemberIndex, Bytes, Option<Vec<f64>>)>,
    ) -> Self {
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&at| entries[at].0);
        let losses = order.iter().map(|&at| {
            let row = entries[at].2.take()?;
            Some(order.iter().map(|&column| row[column]).collect())
        });
        let losses: Option<Vec<_>> = losses.collect();
        let models = order
            .iter()
            .map(|&at| (entries[at].0, entries[at].1.clone()));
        Self {
            round,
            models: models.collect(),
            losses: losses.filter(|rows| !rows.is_empty()),
            merges: None,
        }
    }
}
