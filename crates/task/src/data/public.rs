//! Folders of public files under the data folder.

use std::path::Path;

use super::{DataError, Format, RawFile, open};
use crate::file;

/// A folder of public files, and where they can be had.
pub(crate) struct PublicFolder {
    /// The source that reads them, for errors.
    pub source: &'static str,
    /// Name of the folder under the data folder.
    pub name: &'static str,
    /// Source of the files, with their SHA-256.
    pub hint: &'static str,
}

impl PublicFolder {
    /// A file of rows with a header, from this folder under `data`.
    ///
    /// # Errors
    /// [`DataError`], saying where the files can be had.
    pub(crate) fn table(&self, data: Option<&Path>, name: &str) -> Result<RawFile, DataError> {
        let path = self.folder(data)?.join(self.name).join(name);
        open(path, &Format::default()).map_err(|error| match error {
            DataError::File { path, reason, .. } => DataError::File {
                path,
                reason,
                hint: format!(". {}", self.hint),
            },
            other => other,
        })
    }

    /// The text of a file from this folder under `data`.
    ///
    /// # Errors
    /// [`DataError`], saying where the files can be had.
    pub(crate) fn text(&self, data: Option<&Path>, name: &str) -> Result<String, DataError> {
        let path = self.folder(data)?.join(self.name).join(name);
        file::read_text(&path, file::DATA).map_err(|error| DataError::File {
            path,
            reason: error.to_string(),
            hint: format!(". {}", self.hint),
        })
    }

    fn folder<'a>(&self, data: Option<&'a Path>) -> Result<&'a Path, DataError> {
        data.ok_or(DataError::NoFolder {
            source_name: self.source,
            hint: self.hint,
        })
    }
}

impl RawFile {
    /// The cells of these columns, row by row.
    ///
    /// # Errors
    /// [`DataError::NoColumn`].
    pub fn cells<const N: usize>(
        &self,
        columns: [&str; N],
    ) -> Result<impl Iterator<Item = [&str; N]>, DataError> {
        let mut places = [0; N];
        for (place, column) in places.iter_mut().zip(columns) {
            *place = self.place(column)?;
        }
        let cells = move |row| {
            let row: super::RawRow<'_> = row;
            places.map(|place| row.cells.get(place).unwrap_or_default())
        };
        Ok(self.rows.iter().map(cells))
    }
}
