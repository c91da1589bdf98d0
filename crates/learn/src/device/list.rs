//! The devices of this program and this machine.

use burn_core::tensor::Device as Tensors;
use serde::Serialize;

use super::{DeviceError, DeviceName, default_slots};

/// A device, and whether it can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ListedDevice {
    /// Name of the device, as configurations write it.
    pub name: DeviceName,
    /// Processor or backend that computes, in a few words.
    pub about: &'static str,
    /// True if the device can be used.
    pub available: bool,
    /// Reason for which it cannot be used, and what would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Silos of one process that compute on it at a time, by default.
    pub slots: usize,
}

impl ListedDevice {
    fn new(name: DeviceName) -> Self {
        let why_not = available(name).err().map(|error| error.to_string());
        Self {
            name,
            about: name.about(),
            available: why_not.is_none(),
            why_not,
            slots: default_slots(name).get(),
        }
    }
}

/// All devices: those that this program can use on this machine, and the others with the reason.
pub fn devices() -> Vec<ListedDevice> {
    let mut names = vec![DeviceName::Cpu, DeviceName::TchCpu];
    names.extend((0..cuda_devices().max(1)).map(DeviceName::TchCuda));
    names.into_iter().map(ListedDevice::new).collect()
}

/// Returns whether this program can use the device on this machine.
///
/// # Errors
/// [`DeviceError`]: it is not built in, or not there.
pub(super) fn available(name: DeviceName) -> Result<(), DeviceError> {
    let absent = |why: String| Err(DeviceError::Absent { name, why });
    match name {
        DeviceName::Cpu => Ok(()),
        DeviceName::TchCpu if cfg!(feature = "tch") => Ok(()),
        DeviceName::TchCuda(number) if cfg!(feature = "tch") => match cuda_devices() {
            0 => absent(
                "LibTorch finds no CUDA device; it must be LibTorch's CUDA build, and the driver must \
                 be installed (docs/devices.md)"
                    .into(),
            ),
            count if number < count => Ok(()),
            count => absent(format!(
                "LibTorch finds {count} CUDA device(s), numbered from 0"
            )),
        },
        DeviceName::TchCpu | DeviceName::TchCuda(_) => {
            let feature = "tch";
            Err(DeviceError::NotBuilt { name, feature })
        }
    }
}

/// The device as burn knows it.
///
/// # Panics
/// If it cannot be used, which [`available`] says.
pub(super) fn tensors(name: DeviceName) -> Tensors {
    match name {
        DeviceName::Cpu => Tensors::flex(),
        // Deprecated since burn 0.22: docs/decisions/0013-libtorch.md.
        #[cfg(feature = "tch")]
        #[expect(deprecated, reason = "docs/decisions/0013-libtorch.md")]
        DeviceName::TchCpu => Tensors::libtorch(),
        #[cfg(feature = "tch")]
        #[expect(deprecated, reason = "docs/decisions/0013-libtorch.md")]
        DeviceName::TchCuda(number) => Tensors::libtorch_cuda(usize::from(number)),
        #[cfg(not(feature = "tch"))]
        DeviceName::TchCpu | DeviceName::TchCuda(_) => {
            unreachable!("{name} is not built in, which was asked before")
        }
    }
}

#[cfg(feature = "tch")]
fn cuda_devices() -> u16 {
    u16::try_from(tch::Cuda::device_count()).unwrap_or(0)
}

#[cfg(not(feature = "tch"))]
fn cuda_devices() -> u16 {
    0
}
