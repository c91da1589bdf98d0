//! Model parameters: named `f32` tensors in a fixed order, stored as a canonical safetensors document.
//!
//! [`Params`] are the values, [`Layout`] names, shapes and roles; [`Gate`] checks models from other
//! members, which travel in an [`Encoding`]; [`weighted_mean`] and [`squared_distance`] compute with them.

mod attached;
mod encoding;
mod gate;
mod layers;
mod layout;
mod math;
mod reading;
mod values;

pub use attached::Attached;
pub use encoding::{Encoding, EncodingError, Sent};
pub use gate::{Gate, GateError};
pub use layers::{Layer, layers, layers_by_depth};
pub use layout::{Layout, LayoutError, Role, TensorSpec};
pub(crate) use math::mean_block;
pub use math::{MeanError, squared_distance, weighted_mean};
pub use reading::{LargestAbs, Reading};
pub use values::Params;
