//! The rules behind refusals, as all members learn them.

use std::fmt;

use crate::SiteRefusal;
use crate::broken::Broken;

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
