//! Selects the values of a model that are compared.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Sketch, Vectors, VectorsError};
use crate::params::{Layout, Params, Role, layers, layers_by_depth};

/// The values of a model that are compared (Ma et al. 2024, section 3.2: all weights or, as well, the last
/// layers only). The default: all weights as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Embedding {
    /// Part of the model that is compared.
    pub part: Part,
    /// `true` to compare updates (differences from the model that training started from) instead of
    /// weights, which the common start dominates.
    pub update: bool,
    /// Random projection to a fixed size, whose results are compared instead of the values.
    pub sketch: Option<Sketch>,
}

/// A part of a model. Buffers, such as the statistics of a normalisation, never belong to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// All weights and biases.
    #[default]
    All,
    /// The weights and biases of this many last layers, in the order of depth.
    Last(usize),
    /// The tensors or [`layers`] of these names.
    Named(Vec<String>),
}

/// Errors of an embedding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbeddingError {
    /// There is no model.
    #[error(transparent)]
    Vectors(#[from] VectorsError),
    /// A model of another layout than the first.
    #[error(
        "model {model} has {got}, the first has {expected}: only models of one shape can be compared"
    )]
    Layout {
        /// Position of the model, or of the one whose start it is.
        model: usize,
        /// Tensors of the model.
        got: String,
        /// Tensors of the first.
        expected: String,
    },
    /// Updates are compared, but the number of starts differs from that of models.
    #[error(
        "there are {models} models and {starts} starts: an update needs the start of its model"
    )]
    Starts {
        /// Number of models.
        models: usize,
        /// Number of starts.
        starts: usize,
    },
    /// No tensor or layer of that name that is trained.
    #[error("the model has no layer or trained tensor {name:?}; its layers are {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The layers there are.
        known: String,
    },
    /// The last layers are asked for, and the order of depth is not known.
    #[error(
        "which layers are the last is not known, because the learner does not say them in the order of \
         depth: name them, `part = {{ named = [...] }}`; they are {known}"
    )]
    Depth {
        /// The layers there are.
        known: String,
    },
    /// More layers asked for than there are, or none.
    #[error("the last {asked} layers cannot be compared: ask for 1 to {}; they are {known}", .layers)]
    Last {
        /// Layers asked for.
        asked: usize,
        /// Number of layers.
        layers: usize,
        /// The layers there are.
        known: String,
    },
    /// The part has no values.
    #[error("there is nothing to compare: the chosen part of the model holds no trained values")]
    Nothing,
}

impl Embedding {
    /// The rows to compare, one for every model, in order. They are views of the models, except
    /// for sketches.
    ///
    /// `starts`: the model that the training of each of `models` started from; only read for updates.
    ///
    /// # Errors
    /// [`EmbeddingError`] if the models do not fit each other or the embedding.
    pub fn rows<'a>(
        &self,
        models: &[&'a Params],
        starts: &[&'a Params],
    ) -> Result<Vectors<'a>, EmbeddingError> {
        let first = models.first().ok_or(VectorsError::Empty)?;
        let starts = if self.update { starts } else { &[] };
        if self.update && starts.len() != models.len() {
            let (models, starts) = (models.len(), starts.len());
            return Err(EmbeddingError::Starts { models, starts });
        }
        let numbered = models.iter().enumerate().chain(starts.iter().enumerate());
        for (model, params) in numbered {
            if params.layout() != first.layout() {
                return Err(EmbeddingError::Layout {
                    model,
                    got: params.layout().describe(),
                    expected: first.layout().describe(),
                });
            }
        }
        let ranges = self.part.ranges(first.layout())?;
        let values = models
            .iter()
            .map(|model| Cow::Borrowed(model.values()))
            .collect();
        let starts = starts.iter().map(|start| start.values()).collect();
        let rows = Vectors::select(values, starts, ranges);
        Ok(match &self.sketch {
            None => rows,
            Some(sketch) => sketch.of(&rows),
        })
    }
}

impl Part {
    /// The ranges of the part's values among all values, ascending.
    fn ranges(&self, layout: &Layout) -> Result<Vec<Range<usize>>, EmbeddingError> {
        let layers = layers(layout);
        let known = || {
            let names: Vec<_> = layers
                .iter()
                .map(|layer| format!("{:?}", layer.name))
                .collect();
            names.join(", ")
        };
        let mut tensors: Vec<usize> = match self {
            Self::All => layers
                .iter()
                .flat_map(|layer| layer.tensors.clone())
                .collect(),
            &Self::Last(asked) => {
                let before = layers.len().checked_sub(asked).filter(|_| asked > 0);
                let before = before.ok_or_else(|| EmbeddingError::Last {
                    asked,
                    layers: layers.len(),
                    known: known(),
                })?;
                let by_depth = layers_by_depth(layout);
                let by_depth = by_depth.ok_or_else(|| EmbeddingError::Depth { known: known() })?;
                by_depth[before..]
                    .iter()
                    .flat_map(|layer| layer.tensors.clone())
                    .collect()
            }
            Self::Named(names) => {
                let mut tensors = Vec::new();
                for name in names {
                    let layer = layers.iter().find(|layer| layer.name == *name);
                    let tensor = layout
                        .position(name)
                        .filter(|&tensor| layout.tensors()[tensor].role != Role::Buffer);
                    if layer.is_none() && tensor.is_none() {
                        let (name, known) = (name.clone(), known());
                        return Err(EmbeddingError::Unknown { name, known });
                    }
                    tensors.extend(layer.into_iter().flat_map(|layer| layer.tensors.clone()));
                    tensors.extend(tensor);
                }
                tensors
            }
        };
        tensors.sort_unstable();
        tensors.dedup();
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for range in tensors.into_iter().map(|tensor| layout.range(tensor)) {
            match ranges.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => ranges.push(range),
            }
        }
        if ranges.iter().all(Range::is_empty) {
            return Err(EmbeddingError::Nothing);
        }
        Ok(ranges)
    }
}

#[cfg(test)]
mod tests;
