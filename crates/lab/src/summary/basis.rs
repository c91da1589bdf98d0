//! What groups of silos were formed by: losses of each other's models, and merges.

use protocol::MemberIndex;
use serde::Serialize;
use simulations::{AuthorMerges, CrossLosses};

/// The losses of the last round in which silos measured each other's models.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloLosses {
    /// The round.
    pub round: u64,
    /// Names of rows and columns.
    pub silos: Vec<String>,
    /// The row is whose data, the column whose model.
    pub losses: Vec<Vec<f64>>,
}

/// Merges from every silo alone to one group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloMerges {
    /// The total utility if every silo stays alone.
    pub alone: f64,
    /// Those that lower the total utility were not made, unless a number of groups was asked for.
    pub merges: Vec<SiloMerge>,
}

/// Two groups, named by a silo of each, and what their merge adds to the total utility.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiloMerge {
    /// A silo of each group; the first names the merged group, too.
    pub groups: [String; 2],
    /// What the merge adds to the total utility.
    pub benefit: f64,
}

/// The merges of the last round that formed groups by merging.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LastMerges {
    /// The round.
    pub round: u64,
    /// The silos that were merged.
    pub silos: Vec<String>,
    /// How.
    #[serde(flatten)]
    pub tree: SiloMerges,
}

impl SiloLosses {
    pub(crate) fn new(of: &CrossLosses, name: impl Fn(MemberIndex) -> String) -> Self {
        Self {
            round: of.round,
            silos: of.authors.iter().map(|&author| name(author)).collect(),
            losses: of.rows.clone(),
        }
    }
}

impl SiloMerges {
    pub(crate) fn new(of: &AuthorMerges, name: impl Fn(MemberIndex) -> String) -> Self {
        let merges = of.merges.iter();
        Self {
            alone: of.alone,
            merges: merges
                .map(|&(groups, benefit)| SiloMerge {
                    groups: groups.map(&name),
                    benefit,
                })
                .collect(),
        }
    }
}

impl LastMerges {
    pub(crate) fn new(
        (round, of): &(u64, AuthorMerges),
        name: impl Fn(MemberIndex) -> String,
    ) -> Self {
        // The first merge that names a silo shows that it was there; n silos take n − 1 merges.
        let mut members: Vec<MemberIndex> =
            of.merges.iter().flat_map(|(groups, _)| *groups).collect();
        members.sort_unstable();
        members.dedup();
        Self {
            round: *round,
            silos: members.into_iter().map(&name).collect(),
            tree: SiloMerges::new(of, name),
        }
    }
}
