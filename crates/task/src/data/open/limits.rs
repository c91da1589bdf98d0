//! Limits on the size of a file of rows.

use std::path::Path;

use crate::data::DataError;
use crate::file;

/// Remedy for a file that is too large.
pub(super) const SPLIT: &str = ": leave out the columns that are not needed, or split it into several files of one \
                     silo, which may have up to that size each";

/// A size in words.
pub(super) fn most(limit: u64) -> String {
    match limit >> 20 {
        0 => format!("{limit} bytes"),
        mebibytes => format!("{mebibytes} MiB"),
    }
}

/// A file with more in it than may be held.
pub(in crate::data) fn too_large(path: &Path) -> DataError {
    DataError::File {
        path: path.to_owned(),
        reason: format!(
            "there is more in it than in a file of {}, the most that such a file may have",
            most(file::DATA)
        ),
        hint: SPLIT.into(),
    }
}
