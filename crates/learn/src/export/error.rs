//! Errors of exporting or using a model.

use std::path::PathBuf;

use crate::data::DataError;

/// Reason for which a model cannot be exported or used.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The task has no table of rows.
    #[error("the task is a benchmark without a table of rows: a model of it predicts nothing")]
    NoTable,
    /// The task has no schema.
    #[error("the task has no schema, so nobody knows which columns the model takes")]
    NoSchema,
    /// The rows, or the model that the card describes.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Tensors of another model.
    #[error("expected the tensors {expected}, found {found}")]
    Layout {
        /// Tensors that the card describes.
        expected: String,
        /// Tensors that are there.
        found: String,
    },
    /// Another number of columns than the model takes.
    #[error("the model takes {expected} columns, and {found} are prepared")]
    Columns {
        /// Columns of the model.
        expected: usize,
        /// Columns of the preparation.
        found: usize,
    },
    /// Too large for ONNX.
    #[error(
        "the model has more than 2 GiB, the most that an ONNX file may have: export safetensors"
    )]
    TooLarge,
    /// A file that is no exported model.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Description of the fault, and of the remedy.
        why: String,
    },
}
