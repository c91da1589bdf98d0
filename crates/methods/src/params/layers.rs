//! Layers of a model: groups of tensors with a common name prefix.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Layout, Role};

/// One layer: its trained tensors (weight and bias), without buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// The common prefix of its tensors' names, up to the last dot: `layer0` of
    /// `layer0.weight`; empty if there is no dot.
    pub name: String,
    /// Positions of its tensors in the layout, ascending.
    pub tensors: Vec<usize>,
    /// Positions of its values among all values: one range per tensor.
    pub ranges: Vec<Range<usize>>,
}

impl Layer {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// Returns whether the layer holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of the layer among all values of a model, tensor after tensor.
    ///
    /// # Panics
    /// If `values` are those of another layout with fewer values.
    pub fn values<'a>(&'a self, values: &'a [f32]) -> impl Iterator<Item = &'a [f32]> {
        self.ranges.iter().map(|range| &values[range.clone()])
    }
}

/// The layers of a layout in the natural order of their names, in which `layer2` is before
/// `layer10`. Buffers belong to no layer.
///
/// That need not be the order in which a model applies them, which is [`layers_by_depth`].
pub fn layers(layout: &Layout) -> Vec<Layer> {
    let mut layers: BTreeMap<&str, Layer> = BTreeMap::new();
    let tensors = layout.tensors().iter().enumerate();
    for (position, tensor) in tensors.filter(|(_, tensor)| tensor.role != Role::Buffer) {
        let name = tensor.name.rsplit_once('.').map_or("", |(layer, _)| layer);
        let layer = layers.entry(name).or_insert_with(|| Layer {
            name: name.into(),
            tensors: Vec::new(),
            ranges: Vec::new(),
        });
        layer.tensors.push(position);
        layer.ranges.push(layout.range(position));
    }
    let mut layers: Vec<Layer> = layers.into_values().collect();
    layers.sort_by(|a, b| natural(&a.name).cmp(&natural(&b.name)));
    layers
}

/// The layers of a layout from the input of the model to its output, each at the place of its first
/// tensor. `None` where there are several and the layout [does not know](Layout::depth) their order.
pub fn layers_by_depth(layout: &Layout) -> Option<Vec<Layer>> {
    let mut layers = layers(layout);
    if layers.len() > 1 {
        let depth = layout.depth()?;
        let place = |layer: &Layer| layer.tensors.iter().map(|&at| depth[at]).min();
        layers.sort_by_key(place);
    }
    Some(layers)
}

/// A piece of text and the number that follows it, as its length and digits, so that it may have any
/// size.
type Piece<'a> = (&'a str, usize, &'a str);

/// A name as pieces that compare in natural order.
///
/// The crate `natord` (last release 2015) is not used: it compares numbers with leading zeros as
/// decimal fractions, so that `layer02` comes before `layer1`, and it ignores blanks, so that
/// different names can be equal. Members must agree on the order of layers.
fn natural(name: &str) -> Vec<Piece<'_>> {
    let digits = |text: &str| text.find(|c: char| c.is_ascii_digit());
    let mut pieces = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let (text, from) = rest.split_at(digits(rest).unwrap_or(rest.len()));
        let end = from
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(from.len());
        let (number, behind) = from.split_at(end);
        let number = number.trim_start_matches('0');
        pieces.push((text, number.len(), number));
        rest = behind;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TensorSpec;

    fn layout(tensors: &[(&str, usize, Role)]) -> std::sync::Arc<Layout> {
        let spec = |(name, len, role): &(&str, usize, Role)| TensorSpec::new(*name, [*len], *role);
        Layout::new(tensors.iter().map(spec).collect()).unwrap()
    }

    #[test]
    fn a_weight_and_its_bias_are_one_layer_in_natural_order() {
        let mut tensors = Vec::new();
        let names: Vec<_> = (0..12)
            .map(|n| [format!("layer{n}.weight"), format!("layer{n}.bias")])
            .collect();
        for [weight, bias] in &names {
            tensors.push((weight.as_str(), 3, Role::Weight));
            tensors.push((bias.as_str(), 2, Role::Bias));
        }
        tensors.push(("scale.mean", 4, Role::Buffer));
        let layout = layout(&tensors);
        let found = layers(&layout);
        let expected: Vec<_> = (0..12).map(|n| format!("layer{n}")).collect();
        assert_eq!(
            found.iter().map(|layer| &layer.name).collect::<Vec<_>>(),
            expected.iter().collect::<Vec<_>>()
        );
        for layer in &found {
            assert_eq!(layer.len(), 5);
            for (&tensor, range) in layer.tensors.iter().zip(&layer.ranges) {
                assert!(
                    layout.tensors()[tensor]
                        .name
                        .starts_with(&format!("{}.", layer.name))
                );
                assert_eq!(*range, layout.range(tensor));
            }
        }
        let values: Vec<f32> = (0..layout.len()).map(|at| at as f32).collect();
        // In the file: layer0.bias, layer0.weight, layer1.bias, …
        let first: Vec<_> = found[0].values(&values).collect();
        assert_eq!(first, [&[0.0, 1.0][..], &[2.0, 3.0, 4.0]]);
    }

    #[test]
    fn depth_is_the_order_of_the_program_and_not_that_of_names() {
        let order = |names: &[&str]| {
            let specs = names.iter().flat_map(|name| {
                ["weight", "bias"]
                    .map(|part| TensorSpec::new(format!("{name}.{part}"), [2], Role::Weight))
            });
            let layout = Layout::by_depth(specs.collect()).unwrap();
            let layers = layers_by_depth(&layout).unwrap();
            layers
                .into_iter()
                .map(|layer| layer.name)
                .collect::<Vec<_>>()
        };
        // As torchvision names the layers of ResNet, AlexNet and DenseNet.
        for names in [
            &["conv1", "bn1", "layer1.0.conv1", "layer4.1.conv2", "fc"][..],
            &["features.0", "features.10", "classifier.1", "classifier.6"],
            &["features.conv0", "features.norm5", "classifier"],
        ] {
            assert_eq!(order(names), names);
        }
        let unknown = layout(&[
            ("classifier.weight", 2, Role::Weight),
            ("features.weight", 2, Role::Weight),
        ]);
        assert_eq!(layers_by_depth(&unknown), None);
        // A single layer is the last one, in any order.
        let one = layout(&[("fc.weight", 2, Role::Weight), ("fc.bias", 2, Role::Bias)]);
        assert_eq!(layers_by_depth(&one).map(|layers| layers.len()), Some(1));
    }

    #[test]
    fn names_without_a_dot_form_one_layer() {
        let layout = layout(&[("weight", 3, Role::Weight), ("bias", 1, Role::Bias)]);
        let found = layers(&layout);
        assert_eq!(
            (found.len(), found[0].name.as_str(), found[0].len()),
            (1, "", 4)
        );
        assert_eq!(layers(&Layout::new(Vec::new()).unwrap()), []);
    }

    #[test]
    fn numbers_in_names_compare_as_numbers() {
        let mut names = [
            "b2.c10",
            "b10",
            "b2.c9",
            "a",
            "b02.c1",
            "b",
            "",
            "b99999999999999999999999",
        ];
        names.sort_by_key(|name| natural(name));
        assert_eq!(
            names,
            [
                "",
                "a",
                "b",
                "b02.c1",
                "b2.c9",
                "b2.c10",
                "b10",
                "b99999999999999999999999"
            ]
        );
    }
}
