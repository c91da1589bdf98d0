//! Similarities of models: Gram matrices, distances, metrics, embeddings.
//!
//! From models to similarities (Ma et al. 2024, Topology-aware Federated Learning, section 3.2): an
//! [`Embedding`] selects the values of a model that are compared and returns [`Vectors`], views
//! without copies; a [`SimilarityMetric`] computes a similarity matrix from them; [`min_max`] normalises it to
//! `[0, 1]`, so that one threshold suits all metrics.
//!
//! No result depends on the number of threads. Functions ending in `_f64` compute in `f64`
//! throughout, without fused operations: the same bits on every machine. The others use matrix
//! products whose last bits differ between processors; a lead may decide by them, and members check
//! such decisions with a tolerance.
//!
//! ```
//! use methods::similarity::{SimilarityMetric, Vectors, min_max};
//!
//! let models = [[1.0f32, 0.0, 2.0], [1.0, 1.0, 2.0], [0.0, 1.0, 1.0], [-1.0, 2.0, 0.0]];
//! let similarity = SimilarityMetric::Dot.similarity(&Vectors::new(&models)?)?;
//! assert_eq!(similarity.row(0), [5.0, 5.0, 2.0, -1.0]);
//! assert_eq!(min_max(&similarity)?.row(0), [0.0, 1.0, 0.5, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod blocks;
mod distance;
mod embedding;
mod gram;
mod metric;
mod normalise;
mod pairs;
mod sketch;
mod vectors;

pub use distance::{squared_distances, squared_distances_f64};
pub use embedding::{Embedding, EmbeddingError, Part};
pub use gram::{gram, gram_f64};
pub use metric::SimilarityMetric;
pub use normalise::{NormaliseError, min_max};
pub use sketch::Sketch;
pub use vectors::{CompareError, Vectors, VectorsError};
