//! Where the records of a table come from.

/// What a record of a sheet is called.
pub(super) const ROW: &str = "row";

/// Where records come from.
#[derive(Debug, Clone, Copy)]
pub(in crate::data) enum Origin<'a> {
    /// From a text, which begins so.
    Text(&'a str),
    /// From a sheet with cells of its own, whose records are rows.
    Sheet,
}

impl Origin<'_> {
    /// Returns what a record is called.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Self::Text(_) => "line",
            Self::Sheet => ROW,
        }
    }
}
