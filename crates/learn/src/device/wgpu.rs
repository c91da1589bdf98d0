//! The GPU that burn reaches over Vulkan, Metal or DirectX 12.

use std::sync::LazyLock;

use burn_core::tensor::wgpu::{WgpuInitError, wgpu::Backend};
use burn_core::tensor::{Device as Tensors, DeviceType};

/// The variable by which people choose among several GPUs; burn reads it.
const CHOICE: &str = "CUBECL_WGPU_DEFAULT_DEVICE";

/// Opens the device, once for the whole process.
///
/// burn opens it by itself at the first operation, but panics if that fails. A driver that is there is
/// no promise: the machine may have none of the devices that it drives.
///
/// # Errors
/// Why it cannot be opened, as the end of a sentence.
pub(super) fn open() -> Result<Tensors, String> {
    static OPENED: LazyLock<Result<Tensors, String>> = LazyLock::new(|| {
        let none = || Err("no driver for Vulkan, Metal or DirectX 12 offers a device".into());
        if Tensors::enumerate(DeviceType::Wgpu).is_empty() {
            return none();
        }
        match Tensors::wgpu_options().init_with_setup() {
            // Where nothing else is there burn takes OpenGL, even where a program on the processor
            // draws it.
            Ok((_, setup)) if setup.backend == Backend::Gl => none(),
            Ok((device, _)) => Ok(device),
            // Its text lists all that is known of all devices.
            Err(WgpuInitError::AdapterUnavailable { .. }) => Err(format!(
                "no driver offers a device of the kind and number that {CHOICE} names"
            )),
            Err(error) => Err(error.to_string()),
        }
    });
    OPENED.clone()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::process::Command;

    use super::*;

    /// Set in the process that a test starts, where nothing else asks for the device.
    const CHILD: &str = "ROTA_TEST_DEVICE_REFUSED";

    #[test]
    fn a_device_that_does_not_open_is_refused_with_one_line() {
        if std::env::var_os(CHILD).is_some() {
            let why = open().unwrap_err();
            assert!(!why.contains('\n'), "{why}");
            assert_eq!(open().unwrap_err(), why, "the same when asked again");
            return;
        }
        let mut cases = vec![(CHOICE, "the fast one"), (CHOICE, "VirtualGpu(999)")];
        // Without a driver for Vulkan, and perhaps with one for OpenGL, which does not count.
        if cfg!(target_os = "linux") {
            cases.push(("VK_DRIVER_FILES", "/nonexistent"));
        }
        for case in cases {
            let test = "device::wgpu::tests::a_device_that_does_not_open_is_refused_with_one_line";
            let child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", test])
                .envs([(CHILD, "1"), case])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&child.stdout);
            assert!(child.status.success(), "{case:?}: {said}");
            assert!(said.contains("1 passed"), "{case:?}: {said}");
        }
    }
}
