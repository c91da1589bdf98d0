//! Local learning: models, training and evaluation at one silo.
//!
//! [`TaskStudy`] makes the learners of a [`task::TaskConfig`]: every silo gets a [`methods::Learner`], the
//! interface through which strategies train and evaluate models.
//!
//! - Models: linear and logistic regression, multi-layer perceptrons, and networks of layers
//!   ([`task::model::NetworkConfig`]), those of papers by name and any other as a list.
//! - Learners: [`TableLearner`] trains any of these models on a silo's rows; [`ConstantLearner`] has
//!   null training, to measure the cost of everything else; [`stand_in`] is one without rows.
//! - [`Device`]: where models are trained, by [`DeviceName`].
//! - [`external`]: learners in other programs, such as PyTorch.
//! - [`export`]: models taken out of a federation: predictions for rows, safetensors files with a
//!   model card, ONNX.
//!
//! Everything random follows from seeds, and the same arguments give the same bits, regardless of
//! other work in the process, on one device. No other crate names burn, the tensor framework.
//!
//! ```
//! use learn::TaskStudy;
//! use methods::{Params, Split};
//! use task::TaskConfig;
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

mod device;
pub mod export;
pub mod external;
mod learners;
mod models;
mod of_task;
mod onnx;
mod study;

pub use device::{Device, DeviceChoice, DeviceError, DeviceName, ListedDevice, devices};
pub use learners::{ConstantLearner, TableLearner};
pub use of_task::{TaskStudy, layout, stand_in};
pub use study::{FarColumn, PoolRows, RowCounts, Study, StudySilo, far_columns, study_of};

pub(crate) use task::{data, file, machine_memory, metrics, propose, random, schema};

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
