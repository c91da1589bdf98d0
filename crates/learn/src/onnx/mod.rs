//! Writes ONNX files: a graph of operators of opset 17 and its constants, as protocol buffers.
//!
//! [`OnnxGraph`] builds a graph node by node. It knows nothing of models: those say themselves what they
//! compute (`Model::graph`).

mod graph;
mod proto;

pub(crate) use graph::{Attribute, OnnxGraph, Value};

/// Version of the operators.
pub(crate) const OPSET: i64 = 17;
