//! Origins of the records of a table.

/// Word for a record of a sheet.
pub(super) const ROW: &str = "row";

/// Origin of records.
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
