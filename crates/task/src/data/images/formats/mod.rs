//! Readers of the file formats in which sets of pictures are handed around.

pub(super) mod cifar;
pub(super) mod folder;
pub(super) mod idx;
pub(super) mod leaf;
pub(super) mod npy;
pub(super) mod npz;
pub(super) mod picture;

use std::path::Path;

use crate::data::DataError;

/// Most rows that a set may have.
pub(super) const ROWS: usize = 10_000_000;
/// Most classes that labels may name by number.
pub(super) const CLASSES: usize = 10_000;

/// The error of a file that is not as expected.
pub(super) fn refused(path: &Path, reason: impl Into<String>) -> DataError {
    DataError::File {
        path: path.to_owned(),
        reason: reason.into(),
        hint: String::new(),
    }
}

/// Names of classes 0 to the largest of these labels.
///
/// # Errors
/// [`DataError::File`]: a label over the largest number of classes.
pub(super) fn numbered(path: &Path, labels: &[u32]) -> Result<Vec<String>, DataError> {
    let most = labels.iter().max().copied().unwrap_or(0) as usize;
    if most < CLASSES {
        Ok((0..=most).map(|class| class.to_string()).collect())
    } else {
        Err(refused(
            path,
            format!(
                "expected classes numbered from 0 to {}, found {most}",
                CLASSES - 1
            ),
        ))
    }
}

/// Refuses labels for another number of pictures.
///
/// # Errors
/// [`DataError::File`] with both numbers.
pub(super) fn same_count(path: &Path, pictures: usize, labels: usize) -> Result<(), DataError> {
    if pictures == labels && pictures > 0 {
        Ok(())
    } else {
        Err(refused(
            path,
            format!(
                "expected one label for every picture, found {pictures} pictures and {labels} labels"
            ),
        ))
    }
}
