//! Refusals of a site by a rule of disclosure.

use std::fmt;

use crate::SiteRefusal;

/// The rule that a question breaks at a site, and what to do. No figure of the rows is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A kind of question that is not allowed.
    #[error(
        "does not answer questions of kind \"{0}\" (rule kinds): ask its administrator to allow it"
    )]
    Kind(String),
    /// A column that never leaves.
    #[error("forbids the column \"{0}\" in questions (rule forbidden-columns): ask without it")]
    Column(String),
    /// A cut that is not agreed.
    #[error("allows only agreed cuts of \"{0}\" in filters (rule cuts): use one of them")]
    Cut(String),
    /// Few rows could be singled out.
    #[error(
        "would single out fewer than {0} rows, alone or together with what it answered before (rule pieces): use the \
         filter, groups and columns of an earlier question, or coarser ones"
    )]
    Pieces(u64),
    /// Rows that came or went since an earlier answer.
    #[error(
        "has fewer than {0} new, changed or removed rows since an earlier answer (rule pieces): ask again when there \
         are more, or read the stored answer"
    )]
    Changed(u64),
    /// One site has nearly all rows, or the rest has few.
    #[error(
        "has nearly all the {0}, or the others together have too few (rule dominance): ask more sites, or a wider \
         filter"
    )]
    Dominance(&'static str),
    /// Small counts of one site that all would see.
    #[error(
        "has too few {0} of its own for a vector that all members see (rule clear): ask in mode \"secure-aggregation\""
    )]
    Clear(String),
    /// Too many numbers.
    #[error(
        "would have opened more numbers over the life of its source than a part of the unknowns behind them (rule \
         numbers): ask for fewer columns, trees or rounds, or read stored answers"
    )]
    Numbers,
    /// Too few sites for functions of a whole site.
    #[error(
        "needs {0} sites or more for sums of the sites' own estimates (rule numbers): with fewer they can be \
         computed from the sums; ask in mode \"clear\" where all agree"
    )]
    Sites(u64),
    /// A method whose sums reveal single sites.
    #[error(
        "does not open the sums of REML in mode \"secure-aggregation\" (rule numbers): they reveal single sites; ask without `reml`"
    )]
    Reml,
}

/// The rule by which a site refuses, as everybody learns it: no figure, no name of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalRule {
    /// The kind is not allowed.
    Kinds,
    /// A column that no question may read.
    ForbiddenColumns,
    /// A cut of a filter that is not agreed.
    Cuts,
    /// Few rows would be singled out, or few came or went.
    Pieces,
    /// One site has nearly all rows or events.
    Dominance,
    /// Too small counts of one site that all would see.
    Clear,
    /// Too many numbers for what they are made of.
    Numbers,
    /// The site lacks a column, or its values are of another type.
    Columns,
    /// Rows that the method does not allow, or a fit of the site's own that fails.
    Rows,
    /// Numbers that the sum cannot hold.
    Reach,
}

impl RefusalRule {
    /// All rules. Their places are their numbers in messages: further ones come last.
    pub const ALL: [Self; 10] = [
        Self::Kinds,
        Self::ForbiddenColumns,
        Self::Cuts,
        Self::Pieces,
        Self::Dominance,
        Self::Clear,
        Self::Numbers,
        Self::Columns,
        Self::Rows,
        Self::Reach,
    ];

    /// The rule behind a refusal.
    pub fn of(why: &SiteRefusal) -> Self {
        match why {
            SiteRefusal::Column(_) | SiteRefusal::Words(_) => Self::Columns,
            SiteRefusal::Rows(_) | SiteRefusal::Fit(_) | SiteRefusal::Length { .. } => Self::Rows,
            SiteRefusal::Reach { .. } => Self::Reach,
            SiteRefusal::Rule(broken) => match broken {
                Broken::Kind(_) => Self::Kinds,
                Broken::Column(_) => Self::ForbiddenColumns,
                Broken::Cut(_) => Self::Cuts,
                Broken::Pieces(_) | Broken::Changed(_) => Self::Pieces,
                Broken::Dominance(_) => Self::Dominance,
                Broken::Clear(_) => Self::Clear,
                Broken::Numbers | Broken::Sites(_) | Broken::Reml => Self::Numbers,
            },
        }
    }

    /// Its number.
    pub fn number(self) -> usize {
        let place = Self::ALL.iter().position(|rule| *rule == self);
        place.unwrap_or_default()
    }
}

impl fmt::Display for RefusalRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kinds => "rule kinds: it does not answer this kind of question",
            Self::ForbiddenColumns => "rule forbidden-columns: ask for other columns",
            Self::Cuts => "rule cuts: use agreed cuts in filters",
            Self::Pieces => {
                "rule pieces: the answer would single out few rows, alone or with earlier answers; use the filter, \
                 groups and columns of an earlier question, or coarser ones"
            }
            Self::Dominance => {
                "rule dominance: one site has nearly all rows or events; ask more sites, or use a wider filter"
            }
            Self::Clear => "rule clear: its own counts are too small for all to see",
            Self::Numbers => {
                "rule numbers: more would be opened than a part of the unknowns behind it; ask for fewer columns or \
                 rounds"
            }
            Self::Columns => "it lacks a column, or the column has other values than the question needs",
            Self::Rows => "its rows do not allow the method",
            Self::Reach => "its numbers are beyond what the sum can hold; ask with a larger `exponent`",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_numbers_and_name_no_column() {
        let column = SiteRefusal::Column("weight".to_owned());
        let cut = SiteRefusal::Rule(Broken::Cut("age".to_owned()));
        assert_eq!(RefusalRule::of(&column).number(), 7);
        assert_eq!(RefusalRule::of(&cut).number(), 2);
        for rule in RefusalRule::ALL {
            assert_eq!(RefusalRule::ALL[rule.number()], rule);
        }
        let said = [&column, &cut].map(|why| RefusalRule::of(why).to_string());
        assert!(!said.concat().contains("weight") && !said.concat().contains("age"));
    }
}
