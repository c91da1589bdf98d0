//! Names of devices, as configurations write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::DeviceError;

/// The name of a device: `cpu`, `tch-cpu` or `tch-cuda:0` (and other numbers). Every
/// program knows all names, whether or not it can use the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceName {
    /// The processor, by burn's own kernels in Rust. In every program.
    #[default]
    Cpu,
    /// The processor, by LibTorch.
    TchCpu,
    /// The CUDA device of this number, by LibTorch.
    TchCuda(u16),
}

/// Examples of device names, human-readable.
pub(super) const NAMES: &str = "cpu, tch-cpu or tch-cuda:0 (or another number)";

impl DeviceName {
    /// Returns what computes, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Self::Cpu => "the processor, by burn",
            Self::TchCpu => "the processor, by LibTorch",
            Self::TchCuda(_) => "a CUDA device, by LibTorch",
        }
    }

    /// Returns whether this device is the processor, whose cores trainings share.
    pub(super) fn is_processor(self) -> bool {
        match self {
            Self::Cpu | Self::TchCpu => true,
            Self::TchCuda(_) => false,
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::TchCpu => f.write_str("tch-cpu"),
            Self::TchCuda(number) => write!(f, "tch-cuda:{number}"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown(text.to_owned());
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "tch-cpu" => Ok(Self::TchCpu),
            Some(("tch-cuda", number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => {
                number.parse().map(Self::TchCuda).map_err(|_| unknown())
            }
            _ => Err(unknown()),
        }
    }
}

impl Serialize for DeviceName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl schemars::JsonSchema for DeviceName {
    fn schema_name() -> Cow<'static, str> {
        "DeviceName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "pattern": "^(cpu|tch-cpu|tch-cuda:[0-9]+)$",
        })
    }
}
