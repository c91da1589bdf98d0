//! How alike models are: what of them is compared, Gram matrices, similarities.
//!
//! The way from models to a graph of clients (Ma et al. 2024, Topology-aware Federated Learning,
//! section 3.2): an [`Embedding`] says what of a model counts and gives [`Vectors`], views that copy
//! nothing; a [`Metric`] makes a similarity matrix of them; [`min_max`] brings it to `[0, 1]`,
//! where a threshold means something.
//!
//! Every function gives the same bits whatever the number of threads. Those ending in `_f64`
//! compute in `f64` throughout, without fused operations: the same bits on every machine. The
//! others use matrix products that differ in the last bits between processors: what rests on them
//! is for a lead to decide and for members to check with a tolerance.
//!
//! ```
//! use methods::similarity::{Metric, Vectors, min_max};
//!
//! let models = [[1.0f32, 0.0, 2.0], [1.0, 1.0, 2.0], [0.0, 1.0, 1.0], [-1.0, 2.0, 0.0]];
//! let similarity = Metric::Dot.similarity(&Vectors::new(&models)?)?;
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
pub use metric::Metric;
pub use normalise::{NormaliseError, min_max};
pub use sketch::Sketch;
pub use vectors::{CompareError, Vectors, VectorsError};
