//! Reasons for which there is no answer.

use serde::{Deserialize, Serialize};

/// Reason for which a question cannot be asked as it is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// No agreed range of a column.
    #[error(
        "the range of column \"{0}\" is not agreed: add it to `[ranges]`, such as \"{0}\" = [0, 100]; rows beyond \
         it are counted and left out"
    )]
    Range(String),
    /// No agreed levels of a column.
    #[error(
        "the levels of column \"{0}\" are not agreed: add them to `[levels]`, such as \"{0}\" = [\"0\", \"1\"]"
    )]
    Levels(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

/// Reason for which a site does not answer. It names no figure of its rows.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SiteRefusal {
    /// A column that the site lacks.
    #[error("has no column \"{0}\": ask without this column, or without this site")]
    Column(String),
    /// Categories where numbers are needed.
    #[error(
        "has categories in column \"{0}\", where numbers are needed: name a level, such as \"{0} = LEVEL\""
    )]
    Words(String),
    /// A value that the method does not allow.
    #[error("has rows that the method does not allow: {0}")]
    Rows(String),
    /// A number beyond the reach of the integers.
    #[error(
        "has numbers of \"{block}\" beyond ±{most}, which the sum cannot hold, and nothing is clipped: ask with a \
         larger `exponent`"
    )]
    Reach {
        /// The block of the layout.
        block: String,
        /// Largest absolute value.
        most: f64,
    },
    /// A vector of another length.
    #[error("computed {found} numbers where {expected} are asked for")]
    Length {
        /// Numbers computed.
        found: usize,
        /// Numbers asked for.
        expected: usize,
    },
    /// A fit of the site's own that did not converge.
    #[error("cannot fit its own {0}: look for columns of very large values")]
    Fit(String),
    /// A rule of disclosure.
    #[error("{0}")]
    Rule(#[from] crate::broken::Broken),
}

/// Reason for which members end a question without an answer. All of them find the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum QuestionStopped {
    /// Too few rows, events or rows of a group.
    #[error("{what}: {found}, at least {needed} are needed: {remedy}")]
    TooFew {
        /// Name of what is counted.
        what: String,
        /// Number at hand; where that is fewer than a smallest cell, "too few to tell".
        found: String,
        /// Number that is needed.
        needed: u64,
        /// Remedy for the one who asks.
        remedy: String,
    },
    /// A column that has one value within every site.
    #[error(
        "column \"{0}\" tells nothing within sites: it has one value in each of them; leave it out"
    )]
    Constant(String),
    /// Columns that determine each other.
    #[error("columns {0} are collinear: leave one of them out")]
    Collinear(String),
    /// Infinite estimates.
    #[error(
        "not determined by the data: {0} separate the outcomes, their estimates are infinite; leave them out, or ask \
         with a `ridge`, which has estimates but no intervals"
    )]
    Separated(String),
    /// No end of the rounds.
    #[error("no convergence in {0} rounds: scale the columns, or leave some out")]
    NoConvergence(usize),
    /// Anything else that follows from the sums.
    #[error("{0}")]
    Other(String),
}
