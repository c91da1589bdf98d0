//! Models taken out of a federation, to be used where there is none.
//!
//! A [`Card`] says what a model is: what it was trained for and by whom, which columns it takes, how
//! they are scaled, and how good it is. [`safetensors()`] writes a model with its card
//! into one file, [`read`] reads it back, and [`onnx()`] writes it as a graph that other
//! programs run. A [`Predictor`] predicts rows of a file.
//!
//! Every one of them takes rows as they are after categories became columns of 0 and 1 (see
//! [`schema`](crate::schema)): missing values are filled and numbers scaled inside, and what comes
//! out is in the target's own units, or probabilities.
//!
//! Boosted trees, which a question answers, are written by [`onnx_of_trees`] and [`xgboost_of_trees`].

mod card;
mod error;
mod file;
mod fit;
mod markdown;
mod onnx;
mod outside;
mod predictor;
mod rows;
mod tensors;
mod threshold;
mod trees;

pub use card::{Card, CardColumn, CardParts, CardTask, Coalition, HeldOut, Origin, Output};
pub use error::ExportError;
pub use file::{read, safetensors, start_model, tensors_of};
pub use markdown::markdown;
pub use onnx::onnx;
pub use outside::OutsideRows;
pub use predictor::Predictor;
pub use rows::{BadRows, Predicted, RowsToPredict};
pub use threshold::{Rates, Threshold};
pub use trees::{onnx_of_trees, xgboost_of_trees};

#[cfg(test)]
mod tests;
