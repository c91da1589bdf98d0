//! Operations of networks with kernels of our own choice, where burn's are slow in training.
//!
//! burn offers them on every backend as compositions of other operations. Here they are extensions of
//! burn's backends for the processor and LibTorch, each with its own way back. What that gains:
//! `docs/devices.md`. Other devices keep burn's way.

// burn's developers have deprecated LibTorch: docs/decisions/0013-libtorch.md.
#![cfg_attr(feature = "tch", allow(deprecated))]

mod convolution;
mod norm;
mod pooling;
#[cfg(feature = "tch")]
mod recorded;
#[cfg(feature = "tch")]
mod rectifier;

#[cfg(not(feature = "tch"))]
pub(super) use burn_core::tensor::activation::relu as rectify;
pub(super) use convolution::convolve;
pub(super) use norm::normalise;
pub(super) use pooling::{PoolWindows, pool};
#[cfg(feature = "tch")]
pub(super) use rectifier::rectify;

use burn_core::backend::DispatchDevice;
use burn_core::tensor::Device;

/// Returns whether the device has kernels of its own here.
fn has_kernels(device: Device) -> bool {
    match device.inner().as_dispatch() {
        DispatchDevice::Flex(_) => true,
        #[cfg(feature = "tch")]
        DispatchDevice::LibTorch(_) => true,
        #[allow(unreachable_patterns)]
        _ => false,
    }
}
