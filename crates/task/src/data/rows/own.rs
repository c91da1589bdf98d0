//! The files of one institution.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{RowsConfig, RowsFile, is_default};
use crate::data::Format;
use crate::questions::RowAnswers;
use crate::schema::LocalNames;

/// One file of an institution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "the path of a file is needed, or { path = \"...\", format = { ... } }"
)]
pub enum OwnFile {
    /// Where it is.
    Path(PathBuf),
    /// Where it is, and how its cells are written.
    Written(WrittenFile),
}

/// One file with its own way of writing cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenFile {
    /// Where it is.
    pub path: PathBuf,
    /// How its cells are written.
    pub format: Format,
}

impl OwnFile {
    /// A file, with its own format if it has one.
    pub fn new(path: PathBuf, format: Option<Format>) -> Self {
        match format {
            None => Self::Path(path),
            Some(format) => Self::Written(WrittenFile { path, format }),
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        match self {
            Self::Path(path) => path,
            Self::Written(file) => &file.path,
        }
    }

    /// Returns how its cells are written, if that was said of it alone.
    pub fn format(&self) -> Option<&Format> {
        match self {
            Self::Path(_) => None,
            Self::Written(file) => Some(&file.format),
        }
    }
}

impl<T: Into<PathBuf>> From<T> for OwnFile {
    fn from(path: T) -> Self {
        Self::Path(path.into())
    }
}

/// The files of one institution, which are read by the agreed schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OwnRows {
    /// The files, at least one, relative to this TOML file: CSV, Parquet, .xlsx or .ods, compressed with gzip or
    /// not. Each is a path, or `{ path = "...", format = { ... } }` where one is written otherwise than
    /// the others.
    pub files: Vec<OwnFile>,
    /// How the cells are written, in all files that have no `format` of their own.
    #[serde(default)]
    pub format: Format,
    /// Names that columns and codes have in these files.
    #[serde(default, skip_serializing_if = "is_default")]
    pub names: LocalNames,
    /// What a person has answered about these rows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub answers: RowAnswers,
}

impl OwnRows {
    /// As the files of one silo, under `folder`.
    pub fn of_silo(&self, silo: &str, folder: &Path) -> RowsConfig {
        let file = |own: &OwnFile| RowsFile {
            path: folder.join(own.path()),
            silo: Some(silo.into()),
            part: None,
            names: self.names.clone(),
            format: own.format().cloned(),
        };
        RowsConfig {
            files: self.files.iter().map(file).collect(),
            silo_column: None,
            silo_rows: 0,
            pretend_silos: None,
            ignore: Vec::new(),
            format: self.format.clone(),
            columns: None,
            answers: self.answers.clone(),
        }
    }
}
