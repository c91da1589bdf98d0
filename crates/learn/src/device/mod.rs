//! Devices on which models are trained: the processor, or a GPU.
//!
//! The devices that a program can use are decided when it is built, by cargo features (`docs/devices.md`);
//! which of them it uses, when it runs, by a [`DeviceName`] in the scenario of a simulation or in an
//! institution's `node.toml`. The device is a matter of who trains: the members do not agree on one,
//! and no hash depends on it. Initial weights, the order of rows and everything else random are drawn
//! on the processor, so that they are the same on all devices; what a device computes may differ from
//! another's in the last bits.
//!
//! Linear and logistic models are computed in plain loops on the processor whatever the device, which
//! is faster than any device by far (see [`models`](crate::models)).

mod list;
mod memory;
mod name;
mod slots;

use std::num::NonZero;
use std::sync::LazyLock;

use burn_core::tensor::Device as Tensors;
use serde::{Deserialize, Serialize};

pub use list::{ListedDevice, devices};
pub use name::DeviceName;

pub(crate) use slots::DeviceSlot;

/// Reason for which a device cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No device has that name.
    #[error(
        "there is no device {0:?}: write {names}; `rota devices` lists those of this machine",
        names = name::NAMES
    )]
    Unknown(String),
    /// The program was built without it.
    #[error("{name} is not in this program: build with --features {feature} (docs/devices.md)")]
    NotBuilt {
        /// The device.
        name: DeviceName,
        /// The cargo feature that it needs.
        feature: &'static str,
    },
    /// The machine does not have it.
    #[error("{name} is not on this machine: {why}")]
    Absent {
        /// The device.
        name: DeviceName,
        /// Driver or device that was looked for and not found.
        why: String,
    },
}

/// The choice of a device, as configurations hold it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceChoice {
    /// The device.
    pub name: DeviceName,
    /// Number of silos of the process that compute on it at a time. By default one for every core of a
    /// processor, and one on a GPU.
    pub slots: Option<NonZero<u16>>,
}

impl DeviceChoice {
    /// Returns whether the device can be used.
    ///
    /// # Errors
    /// [`DeviceError`]: it is not in this program, or not on this machine.
    pub fn check(self) -> Result<(), DeviceError> {
        list::available(self.name)
    }

    /// Opens the device.
    ///
    /// # Errors
    /// [`DeviceError`]: it is not in this program, or not on this machine.
    pub fn open(self) -> Result<Device, DeviceError> {
        self.check()?;
        memory::keep_what_is_freed();
        Ok(Device {
            name: self.name,
            slots: self
                .slots
                .map_or_else(|| default_slots(self.name), NonZero::<usize>::from),
            tensors: list::tensors(self.name),
        })
    }
}

/// A device that can be used.
#[derive(Debug, Clone)]
pub struct Device {
    name: DeviceName,
    slots: NonZero<usize>,
    tensors: Tensors,
}

impl Device {
    /// The processor, by burn: the device of everything for which none was chosen.
    pub fn cpu() -> Self {
        Self {
            name: DeviceName::Cpu,
            slots: default_slots(DeviceName::Cpu),
            tensors: Tensors::flex(),
        }
    }

    /// Name of the device.
    pub fn name(&self) -> DeviceName {
        self.name
    }

    /// Silos that compute on it at a time, at most.
    pub fn slots(&self) -> usize {
        self.slots.get()
    }

    /// The device as burn knows it.
    pub(crate) fn tensors(&self) -> &Tensors {
        &self.tensors
    }

    /// Waits for a free slot, and holds it. What computes on the device holds one.
    pub(crate) fn slot(&self) -> DeviceSlot {
        let slot = DeviceSlot::take(self.name, self.slots);
        // LibTorch would otherwise start a thread for every core in every silo.
        #[cfg(feature = "tch")]
        if self.name == DeviceName::TchCpu {
            let threads = (cores().get() / self.slots).max(1);
            tch::set_num_threads(i32::try_from(threads).unwrap_or(i32::MAX));
        }
        slot
    }
}

/// Silos that compute on a device at a time where nobody says how many.
fn default_slots(name: DeviceName) -> NonZero<usize> {
    if name.is_processor() {
        cores()
    } else {
        NonZero::<usize>::MIN
    }
}

fn cores() -> NonZero<usize> {
    // The system reads files to find out.
    static CORES: LazyLock<NonZero<usize>> =
        LazyLock::new(|| std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN));
    *CORES
}

#[cfg(test)]
pub(crate) mod tests;
