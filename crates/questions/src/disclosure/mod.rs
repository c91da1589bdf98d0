//! Checks before anything is opened, so that sums do not tell of single rows.
//!
//! * [`AnswerRules`]: what one institution allows at all.
//! * [`AnswerRecord`]: what a source of rows has answered so far. A site checks a new question against it: whether the
//!   questions together single out few rows (*pieces*), whether one site or the rest is too small (*dominance*), and
//!   whether more numbers are opened than a part of what they are made of (*numbers*).
//! * [`suppression`]: small cells of printed tables, and further cells from which they could be computed.
//!
//! Limits of opened counts are checked by all members, before the next round. Where the sums of several groups of sites are
//! opened, all of this holds for each of them.

mod gates;
mod pieces;
mod record;
pub mod suppression;

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod attacks_by_losses;
#[cfg(test)]
mod attacks_by_trees;
#[cfg(test)]
mod attacks_in_groups;

use serde::{Deserialize, Serialize};

pub use crate::broken::Broken;
pub(crate) use gates::gates;
pub use record::{AnswerRecord, Answered, OpenedBefore};

/// Rules of one institution for answers. The default allows every kind and column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct AnswerRules {
    /// Kinds of questions that are answered; none for all.
    pub kinds: Option<Vec<String>>,
    /// Columns that no question may read.
    pub forbidden_columns: Vec<String>,
    /// The cuts of filters on numbers by column; a column that is not named may be cut anywhere.
    pub cuts: std::collections::BTreeMap<String, Vec<f64>>,
    /// The smallest cell m of this institution; the question's own is used where it is larger.
    pub smallest_cell: u64,
    /// The largest part of all rows, and of all events, that may be this site's.
    pub largest_share: f64,
    /// Numbers opened over the life of the source may be the unknowns of the others by this.
    pub unknowns_per_number: f64,
}

impl Default for AnswerRules {
    fn default() -> Self {
        Self {
            kinds: None,
            forbidden_columns: Vec::new(),
            cuts: std::collections::BTreeMap::new(),
            smallest_cell: 5,
            largest_share: 0.9,
            unknowns_per_number: 3.0,
        }
    }
}
