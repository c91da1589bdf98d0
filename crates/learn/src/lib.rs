//! Local learning: data sets, model families, training and evaluation at one silo.
//!
//! A [`TaskConfig`], as a scenario or a charter holds it, names the data and the model.
//! [`TaskConfig::study`] reads the data, partitions them into silos and gives every silo a
//! [`methods::Learner`], the interface through which strategies train and evaluate models.
//!
//! - [`schema`]: what the rows of all institutions have in common.
//! - [`data`]: rows from files ([`data::RowsConfig`]) or built in ([`data::diabetes_silos`],
//!   [`data::heart`]), split into training, validation and test rows, completed and standardised.
//! - [`propose`](mod@propose): proposes a schema for files that nobody has described yet.
//! - Models: linear and logistic regression, multi-layer perceptrons, and networks of layers
//!   ([`NetworkConfig`]), those of papers by name ([`Architecture`]) and any other as a list.
//! - Learners: [`TableLearner`] trains any of these models on a silo's rows; [`ConstantLearner`] has
//!   null training, to measure the cost of everything else.
//! - [`Device`]: where models are trained, by [`DeviceName`].
//! - [`Metric`]: the metrics that reports compare.
//! - [`external`]: learners in other programs, such as PyTorch.
//! - [`export`]: models taken out of a federation: predictions for rows, safetensors files with a
//!   model card, ONNX.
//! - [`file`](mod@file): reads configurations and data with a bound on their size.
//!
//! Everything random follows from seeds, and the same arguments give the same bits, regardless of
//! other work in the process, on one device. No other crate names burn, the tensor framework.
//!
//! ```
//! use learn::TaskConfig;
//! use methods::{Params, Split};
//!
//! let task: TaskConfig = toml::from_str(
//!     "[table]\ndata = 'diabetes'\nmodel = { linear = { loss = 'absolute' } }",
//! )?;
//! let study = task.study(Some(4), None, 7)?;
//! let silo = &study.silos[0];
//! let model = silo.learner.initial(7);
//! let metrics = silo.learner.evaluate(&model, &Params::empty(), Split::Test)?;
//! assert_eq!(metrics.samples as usize, silo.rows.test);
//! assert!(metrics.values[study.metric.name.key()] > 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// The name by which burn's macros call it.
extern crate burn_core as burn;

pub mod data;
mod device;
pub mod export;
pub mod external;
pub mod file;
mod learners;
mod metrics;
mod models;
mod onnx;
pub mod propose;
mod random;
pub mod schema;
pub mod survey;
mod task;

pub use data::DataError;
pub use device::{Device, DeviceChoice, DeviceError, DeviceName, Listed, devices};
pub use learners::{ConstantLearner, TableLearner};
pub use metrics::{BalancedAccuracy, CalibrationError, Metric, MetricName, RocArea};
pub use models::{
    Architecture, ConvConfig, LayerConfig, LayersConfig, MaxPoolConfig, NetworkConfig, NormConfig,
    RegressionLoss, Start,
};
pub use task::{
    FarColumn, ModelConfig, Pool, RowCounts, Silo, Source, Study, TableTask, TaskConfig,
    far_columns,
};

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
