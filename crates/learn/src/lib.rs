//! What is learned: models, data sets, local training and evaluation.
//!
//! [`TaskConfig`] is what a scenario or a charter writes down; [`TaskConfig::study`] reads the data
//! and gives every silo its [`methods::Learner`]. Data come from CSV files or are built in; models
//! are linear, logistic, multi-layer perceptrons, or networks of layers ([`NetworkConfig`]): those
//! of papers by name, and any other as a list. Everything random follows from seeds, and the
//! same arguments give the same bits, whatever else runs in the process.
//!
//! burn is named in this crate only.

pub mod data;
pub mod file;
mod learners;
mod metrics;
mod models;
mod random;
mod task;

pub use data::DataError;
pub use learners::{ConstantLearner, RobustConfig, TableLearner};
pub use metrics::{Metric, MetricName};
pub use models::{
    Architecture, ConvConfig, LayerConfig, LayersConfig, MaxPoolConfig, NetworkConfig, NormConfig,
    RegressionLoss, Start,
};
pub use task::{ModelConfig, Pool, RowCounts, Silo, Source, Study, TableTask, TaskConfig};
