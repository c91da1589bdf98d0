//! Named `f32` tensors in a fixed order, as one canonical safetensors document.

mod gate;
mod layers;
mod layout;
mod math;
mod values;

pub use gate::{Gate, GateError};
pub use layers::{Layer, layers};
pub use layout::{Layout, LayoutError, Role, TensorSpec};
pub use math::{MeanError, squared_distance, weighted_mean};
pub use values::Params;
