//! Writes ONNX files: a graph of operators of opset 17 and its constants, as protocol buffers.
//!
//! [`OnnxGraph`] builds a graph node by node. It knows nothing of models: those say themselves what they
//! compute (`Model::graph`).

mod graph;
mod proto;

pub(crate) use graph::{Attribute, OnnxGraph, Value};

/// Version of the operators.
pub(crate) const OPSET: i64 = 17;
/// Domain of the operators of classical models, such as trees.
pub(crate) const TREES: &str = "ai.onnx.ml";
/// Version of these operators.
pub(crate) const TREES_OPSET: i64 = 3;
