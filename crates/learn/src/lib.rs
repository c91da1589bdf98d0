//! What is learned: models, data sets, local training and evaluation.
//!
//! [`TaskConfig`] is what a scenario or a charter writes down; [`TaskConfig::study`] reads the data
//! and gives every silo its [`methods::Learner`]. Data come from CSV files or are built in; models
//! are linear, logistic, or multi-layer perceptrons. Everything random follows from seeds, and the
//! same arguments give the same bits, whatever else runs in the process.
//!
//! burn is named in this crate only.

pub mod data;
mod learners;
mod metrics;
mod models;
mod random;
mod task;

pub use data::DataError;
pub use learners::{ConstantLearner, RobustConfig, TableLearner};
pub use metrics::{Metric, MetricName};
pub use models::RegressionLoss;
pub use task::{ModelConfig, RowCounts, Silo, Source, Study, TableTask, TaskConfig};
