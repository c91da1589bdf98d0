//! Refusals of a site by a rule of disclosure.

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
