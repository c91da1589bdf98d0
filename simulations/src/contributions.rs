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
    /// How their authors were merged into groups, where the strategy does that.
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
    /// Puts the entries of a manifest, with the row of losses that the author of each measured, in the order
    /// of their authors.
    pub(crate) fn new(round: u64, entries: Vec<(MemberIndex, Bytes, Option<Vec<f64>>)>) -> Self {
        let (mut models, mut rows) = (Vec::new(), Vec::new());
        for (author, document, row) in entries {
            models.push((author, document));
            rows.push((author, row));
        }
        models.sort_by_key(|(author, _)| *author);
        Self {
            round,
            models,
            losses: CrossLosses::new(round, rows).map(|losses| losses.rows),
            merges: None,
        }
    }
}

/// What groups were formed by in a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupingBasis {
    /// The last cross-evaluation.
    pub losses: Option<CrossLosses>,
    /// The merges of every round that had some, with the round.
    pub merges: Vec<(u64, AuthorMerges)>,
}

/// The losses of a cross-evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct CrossLosses {
    /// The round.
    pub round: u64,
    /// Those who evaluated and were evaluated, ascending.
    pub authors: Vec<MemberIndex>,
    /// Rows and columns in the order of `authors`: the row is whose data, the column whose model.
    pub rows: Vec<Vec<f64>>,
}

impl CrossLosses {
    /// The rows of a manifest in the order of their authors; `None` where an author has no row, or nobody
    /// is there.
    pub(crate) fn new(round: u64, mut rows: Vec<(MemberIndex, Option<Vec<f64>>)>) -> Option<Self> {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&at| rows[at].0);
        let authors = order.iter().map(|&at| rows[at].0).collect();
        let losses = order.iter().map(|&at| {
            let row = rows[at].1.take()?;
            order
                .iter()
                .map(|&column| row.get(column).copied())
                .collect()
        });
        let losses: Option<Vec<Vec<f64>>> = losses.collect();
        Some(Self {
            round,
            authors,
            rows: losses.filter(|rows| !rows.is_empty())?,
        })
    }
}

impl GroupingBasis {
    /// Adds what a round has; its losses take the place of earlier ones, which are more numbers.
    pub(crate) fn note(
        &mut self,
        round: u64,
        losses: Option<CrossLosses>,
        merges: Option<AuthorMerges>,
    ) {
        self.losses = losses.or(self.losses.take());
        self.merges.extend(merges.map(|merges| (round, merges)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_stand_in_the_order_of_their_authors() {
        let [a, b, c] = [4, 1, 2].map(MemberIndex);
        let row = |own: [f64; 3]| Some(own.to_vec());
        let rows = vec![
            (a, row([0.0, 1.0, 2.0])),
            (b, row([3.0, 4.0, 5.0])),
            (c, row([6.0, 7.0, 8.0])),
        ];
        let losses = CrossLosses::new(3, rows.clone());
        let expected = CrossLosses {
            round: 3,
            authors: vec![b, c, a],
            rows: vec![
                vec![4.0, 5.0, 3.0],
                vec![7.0, 8.0, 6.0],
                vec![1.0, 2.0, 0.0],
            ],
        };
        assert_eq!(losses, Some(expected.clone()));
        let mut basis = GroupingBasis::default();
        basis.note(3, losses, None);
        // A round without losses leaves those of an earlier one.
        basis.note(4, None, None);
        assert_eq!(basis.losses, Some(expected));
        let mut missing = rows;
        missing[1].1 = None;
        assert_eq!(CrossLosses::new(3, missing), None);
        assert_eq!(CrossLosses::new(3, Vec::new()), None);
    }
}
