//! A network as configuration: one of the known ones by name, or a list of layers.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::architectures::{Architecture, Design};
use super::layer::{LayerConfig, NormConfig, StartWeights};
use crate::loss::RegressionLoss;

/// A network of layers. In TOML: `{ layers = "leaf-femnist" }`, or
/// `{ layers = [{ conv = { channels = 16, kernel = 3 } }, "relu", { max-pool = { size = 2 } }],
/// image = [1, 28, 28] }`. The last layer, which gives the outputs, follows from the target and is
/// not written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NetworkConfig {
    /// The name of a known network, or all layers but the last.
    pub layers: LayersConfig,
    /// What the columns of a row hold: channels, height and width of an image, row-major. By
    /// default what the named network is known for, or no image.
    #[serde(default)]
    pub image: Option<[usize; 3]>,
    /// `"batch"` (the default), or `{ group = 8 }`.
    #[serde(default)]
    pub norm: NormConfig,
    /// All channels and widths but those of input and output are multiplied with this and rounded,
    /// to at least 1; 1 by default.
    #[serde(default = "whole")]
    pub width: f64,
    /// `"uniform"`, `"kaiming"` or `"glorot"`; by default what the named network is known for, or
    /// `"uniform"`.
    #[serde(default)]
    pub start: Option<StartWeights>,
    /// For numbers only; `"squared"` by default.
    #[serde(default)]
    pub loss: Option<RegressionLoss>,
}

/// The layers of a network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum LayersConfig {
    /// The layers of a known network.
    Named(Architecture),
    /// The layers of a list.
    Listed(Vec<LayerConfig>),
}

impl NetworkConfig {
    /// A network of these layers, with everything else by default.
    pub fn new(layers: LayersConfig) -> Self {
        Self {
            layers,
            image: None,
            norm: NormConfig::default(),
            width: 1.0,
            start: None,
            loss: None,
        }
    }

    /// The layers that it names or lists.
    pub fn design(&self) -> Design {
        match &self.layers {
            LayersConfig::Named(architecture) => architecture.design(),
            LayersConfig::Listed(layers) => Design {
                layers: layers.clone(),
                image: None,
                start: StartWeights::default(),
            },
        }
    }
}

impl NetworkConfig {
    /// Returns whether it normalises over the batch, and so has running means and variances.
    pub fn has_running_statistics(&self) -> bool {
        self.norm == NormConfig::Batch && self.design().layers.iter().any(LayerConfig::normalises)
    }
}

impl schemars::JsonSchema for LayersConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Layers".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let named = generator.subschema_for::<Architecture>();
        let listed = generator.subschema_for::<Vec<LayerConfig>>();
        schemars::json_schema!({ "anyOf": [named, listed] })
    }
}

impl<'de> Deserialize<'de> for LayersConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Unlike serde's untagged enums, says what is wrong with the name or the layer.
        struct Layers;

        impl<'de> Visitor<'de> for Layers {
            type Value = LayersConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a network or a list of layers")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<LayersConfig, E> {
                let name = serde::de::value::StrDeserializer::<E>::new(name);
                Architecture::deserialize(name).map(LayersConfig::Named)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, layers: A) -> Result<LayersConfig, A::Error> {
                let layers = SeqAccessDeserializer::new(layers);
                Vec::deserialize(layers).map(LayersConfig::Listed)
            }
        }

        deserializer.deserialize_any(Layers)
    }
}

fn whole() -> f64 {
    1.0
}
