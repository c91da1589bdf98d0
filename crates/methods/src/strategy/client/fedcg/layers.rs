//! The layers of a model that have branches.

use serde::{Deserialize, Serialize};

use crate::params::{Layer, Layout, Role, layers, layers_by_depth};
use crate::strategy::EquipError;
use crate::strategy::wrappers::personal_layers::{is_norm, quoted, without_norms};

/// Layers that have branches: a kind of layers, or their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "\"last-convolution\", \"all-convolutions\", \"last\", \"all\" or a list of names of \
                 layers is needed"
)]
pub enum Branches {
    /// Those of a kind.
    Kind(LayerKind),
    /// Those of these names.
    Named(Vec<String>),
}

/// A kind of layers, by their place in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// The last convolution in the order of depth: the paper's "last".
    LastConvolution,
    /// All convolutions, and the normalisation layers that follow them: the paper's "all".
    AllConvolutions,
    /// The last layer in the order of depth that is not a normalisation layer: the one that makes the
    /// outputs.
    Last,
    /// Every layer.
    All,
}

/// The layers that have branches, in the order of [`layers`]. Without a wish the last convolution, as in
/// the paper, or the last layer of a model without convolutions.
///
/// # Errors
/// [`EquipError`]: no such layer, or an order of depth that is needed and not known.
pub(super) fn branched(model: &Layout, asked: Option<&Branches>) -> Result<Vec<Layer>, EquipError> {
    let all = layers(model);
    let convolutions: Vec<&Layer> = all
        .iter()
        .filter(|own| is_convolution(model, own))
        .collect();
    let kind = match asked {
        Some(Branches::Named(names)) => return named(model, all, names),
        Some(Branches::Kind(kind)) => *kind,
        None if convolutions.is_empty() => LayerKind::Last,
        None => LayerKind::LastConvolution,
    };
    let chosen: Vec<Layer> = match kind {
        LayerKind::All => all.clone(),
        LayerKind::Last => without_norms(model, "last")?.pop().into_iter().collect(),
        LayerKind::LastConvolution if convolutions.len() == 1 => {
            convolutions.into_iter().cloned().collect()
        }
        LayerKind::LastConvolution => {
            let by_depth = without_norms(model, "last-convolution")?;
            let last = by_depth.into_iter().rfind(|own| is_convolution(model, own));
            last.into_iter().collect()
        }
        LayerKind::AllConvolutions => {
            let by_depth = layers_by_depth(model).ok_or_else(|| EquipError::Depth {
                asked: "all-convolutions".into(),
                layers: quoted(all.iter().map(|layer| layer.name.as_str())),
            })?;
            with_norms(model, by_depth)
        }
    };
    if chosen.is_empty() {
        let what = match kind {
            LayerKind::LastConvolution | LayerKind::AllConvolutions => "convolutions",
            LayerKind::Last | LayerKind::All => "layers",
        };
        return Err(EquipError::Unsupported(format!(
            "fedcg was asked to add branches to {what}, and the model has none"
        )));
    }
    Ok(all
        .into_iter()
        .filter(|layer| chosen.contains(layer))
        .collect())
}

/// The layers of these names.
fn named(model: &Layout, all: Vec<Layer>, names: &[String]) -> Result<Vec<Layer>, EquipError> {
    let known = |name: &&String| all.iter().any(|layer| layer.name == **name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        return Err(EquipError::Nothing {
            option: "layers",
            name: name.clone(),
            has: model.describe(),
        });
    }
    Ok(all
        .into_iter()
        .filter(|layer| names.contains(&layer.name))
        .collect())
}

/// The convolutions of these layers, which come in the order of depth, and the normalisation layers
/// directly behind them.
fn with_norms(model: &Layout, by_depth: Vec<Layer>) -> Vec<Layer> {
    let mut behind = false;
    let mut chosen = Vec::new();
    for layer in by_depth {
        behind = is_convolution(model, &layer) || behind && is_norm(model, &layer.name);
        if behind {
            chosen.push(layer);
        }
    }
    chosen
}

/// Returns whether a layer is a convolution over two dimensions or more: its weight has those of the window
/// beside inputs and outputs.
fn is_convolution(model: &Layout, layer: &Layer) -> bool {
    let mut tensors = layer.tensors.iter().map(|&at| &model.tensors()[at]);
    tensors.any(|tensor| tensor.role == Role::Weight && tensor.shape.len() >= 4)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::TensorSpec;

    /// A convolutional network with the names of torchvision; its classifier comes first by name.
    fn network(known: bool) -> std::sync::Arc<Layout> {
        let weight = |name: &str, shape: &[usize]| {
            TensorSpec::new(format!("{name}.weight"), shape, Role::Weight)
        };
        let tensors = vec![
            weight("features.0", &[8, 3, 3, 3]),
            weight("features.1", &[8]),
            TensorSpec::new("features.1.running_var", [8], Role::Buffer),
            weight("features.10", &[16, 8, 3, 3]),
            weight("features.11", &[16]),
            TensorSpec::new("features.11.running_var", [16], Role::Buffer),
            weight("classifier.1", &[10, 16]),
        ];
        if known {
            Layout::by_depth(tensors)
        } else {
            Layout::new(tensors)
        }
        .unwrap()
    }

    fn chosen(known: bool, asked: Option<&str>) -> Result<Vec<String>, EquipError> {
        let asked = asked.map(|json| serde_json::from_str::<Branches>(json).unwrap());
        let layers = branched(&network(known), asked.as_ref())?;
        Ok(layers.into_iter().map(|layer| layer.name).collect())
    }

    #[test]
    fn the_papers_layers_are_convolutions_and_their_norms() {
        let of = |asked| chosen(true, asked).unwrap();
        assert_eq!(of(None), ["features.10"], "the paper's last");
        assert_eq!(of(Some("\"last-convolution\"")), ["features.10"]);
        assert_eq!(
            of(Some("\"all-convolutions\"")),
            ["features.0", "features.1", "features.10", "features.11"],
            "the dense output is never replaced"
        );
        assert_eq!(of(Some("\"last\"")), ["classifier.1"]);
        assert_eq!(of(Some("\"all\"")).len(), 5);
        assert_eq!(
            of(Some("[\"classifier.1\", \"features.0\"]")),
            ["classifier.1", "features.0"]
        );
    }

    #[test]
    fn without_an_order_of_depth_layers_are_named() {
        for asked in [None, Some("\"all-convolutions\""), Some("\"last\"")] {
            let error = chosen(false, asked).unwrap_err().to_string();
            assert!(error.contains("name it instead"), "{error}");
        }
        assert_eq!(
            chosen(false, Some("[\"features.10\"]")).unwrap(),
            ["features.10"]
        );
        let error = chosen(true, Some("[\"fc\"]")).unwrap_err().to_string();
        assert!(error.contains("no tensor or layer \"fc\""), "{error}");
    }

    #[test]
    fn without_convolutions_a_model_branches_in_its_output_layer() {
        let dense = |name: &str| TensorSpec::new(format!("{name}.weight"), [4, 4], Role::Weight);
        let model = Layout::by_depth(vec![dense("layer0"), dense("layer1")]).unwrap();
        let of = |asked: &Branches| branched(&model, Some(asked));
        let default = branched(&model, None).unwrap();
        assert_eq!(default, of(&Branches::Kind(LayerKind::Last)).unwrap());
        assert_eq!(default[0].name, "layer1");
        let error = of(&Branches::Kind(LayerKind::LastConvolution)).unwrap_err();
        assert!(error.to_string().contains("the model has none"), "{error}");
    }
}
