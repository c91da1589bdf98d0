//! Names, shapes and roles of a model's tensors, and their canonical safetensors header.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The role of a tensor. Not stored in files: it follows from the model that the federation agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Trained, subject to weight decay, counted in norms and similarities.
    Weight,
    /// Trained, without weight decay, not counted in the norms of robust losses.
    Bias,
    /// Stored and averaged with the model, but neither trained nor counted in norms: scalings, running
    /// statistics.
    Buffer,
}

/// One tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Name of the tensor, as in the file.
    pub name: String,
    /// Dimensions of the tensor; `[]` is a single number.
    pub shape: Vec<usize>,
    /// Role of the tensor.
    pub role: Role,
}

impl TensorSpec {
    /// A tensor from its parts.
    pub fn new(name: impl Into<String>, shape: impl Into<Vec<usize>>, role: Role) -> Self {
        Self {
            name: name.into(),
            shape: shape.into(),
            role,
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns whether the tensor holds no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The tensors of a model in file order, with the safetensors header.
///
/// The canonical header is what the `safetensors` crate writes for these tensors: it orders
/// tensors of equal type by name, so a layout is kept in ascending order of names. In which order the
/// model applies them is known only where whoever made the layout [said so](Self::by_depth). As roles,
/// that is not stored in files: it follows from the model that the federation agreed on.
#[derive(Debug, Clone)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
    offsets: Vec<usize>,
    header: Vec<u8>,
    /// The place of every tensor between input and output, where that is known.
    depth: Option<Vec<usize>>,
    /// `true` if the layer of a tensor normalises, by the tensor's name, where that was stated.
    norms: BTreeMap<String, bool>,
}

/// Two layouts are equal if they have the same tensors, whether or not their order of depth is known:
/// models of equal layouts can be averaged and compared.
impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.tensors == other.tensors
    }
}

impl Eq for Layout {}

/// Errors of creating a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Two tensors share a name.
    #[error("two tensors are named {0:?}")]
    Duplicate(String),
    /// The shapes overflow the address space, or safetensors refuses them.
    #[error("the tensors cannot be laid out: {0}")]
    Unwritable(String),
}

/// The key of a safetensors header that cannot name a tensor.
const RESERVED: &str = "__metadata__";

impl Layout {
    /// Sorts `tensors` by name and computes the header. The order of depth stays unknown: options that
    /// ask for the last layer are refused for a model of several layers.
    ///
    /// # Errors
    /// [`LayoutError`] on equal names, or shapes that cannot be written.
    pub fn new(tensors: Vec<TensorSpec>) -> Result<Arc<Self>, LayoutError> {
        Self::sorted(tensors, false)
    }

    /// As [`new`](Self::new), of tensors that come in the order of depth, from input to output, as
    /// PyTorch's `state_dict` has them.
    ///
    /// # Errors
    /// Those of [`new`](Self::new).
    pub fn by_depth(tensors: Vec<TensorSpec>) -> Result<Arc<Self>, LayoutError> {
        Self::sorted(tensors, true)
    }

    fn sorted(tensors: Vec<TensorSpec>, by_depth: bool) -> Result<Arc<Self>, LayoutError> {
        if tensors.iter().any(|tensor| tensor.name == RESERVED) {
            return Err(LayoutError::Unwritable(format!(
                "the name {RESERVED:?} is reserved"
            )));
        }
        let mut placed: Vec<(usize, TensorSpec)> = tensors.into_iter().enumerate().collect();
        placed.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let (places, tensors): (Vec<_>, Vec<_>) = placed.into_iter().unzip();
        if let Some(pair) = tensors.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(LayoutError::Duplicate(pair[0].name.clone()));
        }
        let mut offsets = Vec::with_capacity(tensors.len() + 1);
        let mut end = 0usize;
        offsets.push(0);
        for tensor in &tensors {
            end = tensor
                .shape
                .iter()
                .try_fold(1usize, |product, &side| product.checked_mul(side))
                .and_then(|len| end.checked_add(len))
                .filter(|&len| len <= usize::MAX / 8)
                .ok_or_else(|| {
                    LayoutError::Unwritable(format!("{:?} is too large", tensor.name))
                })?;
            offsets.push(end);
        }
        let header = header(&tensors, &offsets).map_err(LayoutError::Unwritable)?;
        Ok(Arc::new(Self {
            tensors,
            offsets,
            header,
            depth: by_depth.then_some(places),
            norms: BTreeMap::new(),
        }))
    }

    /// This layout, of which is said by the names of tensors whether their layers normalise. Where nothing is
    /// said, names tell.
    pub fn with_norms(self: Arc<Self>, norms: BTreeMap<String, bool>) -> Arc<Self> {
        if norms.is_empty() {
            return self;
        }
        let mut layout = Arc::unwrap_or_clone(self);
        layout.norms = norms;
        Arc::new(layout)
    }

    /// Returns whether the layer of the tensor of that name normalises; `None` where nobody said it.
    pub fn norm(&self, tensor: &str) -> Option<bool> {
        self.norms.get(tensor).copied()
    }

    /// Returns what is said of all tensors.
    pub(super) fn norms(&self) -> &BTreeMap<String, bool> {
        &self.norms
    }

    /// The tensors, in file order.
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// The place of every tensor, in file order, between the input of the model and its output; `None`
    /// where that is not known.
    pub fn depth(&self) -> Option<&[usize]> {
        self.depth.as_deref()
    }

    /// Number of values over all tensors.
    pub fn len(&self) -> usize {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Returns whether there is no value at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Positions of the values of tensor `index` among all values.
    pub fn range(&self, index: usize) -> Range<usize> {
        self.offsets[index]..self.offsets[index + 1]
    }

    /// Position of the tensor of that name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.tensors
            .binary_search_by(|t| t.name.as_str().cmp(name))
            .ok()
    }

    /// The canonical header: eight bytes of length, then padded JSON; a multiple of eight bytes.
    pub fn header(&self) -> &[u8] {
        &self.header
    }

    /// Size of a canonical document of this layout, in bytes.
    pub fn document_len(&self) -> usize {
        self.header.len() + 4 * self.len()
    }

    /// The tensors for which `keep` holds, which is asked in file order. The order of depth is that of
    /// this layout.
    pub fn select(&self, mut keep: impl FnMut(&&TensorSpec) -> bool) -> Arc<Self> {
        let mut kept: Vec<usize> = Vec::new();
        for (at, tensor) in self.tensors.iter().enumerate() {
            if keep(&tensor) {
                kept.push(at);
            }
        }
        if let Some(depth) = &self.depth {
            kept.sort_by_key(|&at| depth[at]);
        }
        let kept = kept.into_iter().map(|at| self.tensors[at].clone());
        Self::sorted(kept.collect(), self.depth.is_some())
            .expect("a part of a layout is one")
            .with_norms(self.norms.clone())
    }

    /// Tensors of the layout from input to output where that is known, otherwise in file order.
    pub(super) fn by_depth_if_known(&self) -> Vec<&TensorSpec> {
        let mut placed: Vec<_> = self.tensors.iter().enumerate().collect();
        if let Some(depth) = &self.depth {
            placed.sort_by_key(|&(at, _)| depth[at]);
        }
        placed.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The tensors that are trained: all but buffers.
    pub fn trained(&self) -> Arc<Self> {
        self.select(|tensor| tensor.role != Role::Buffer)
    }

    /// Places of the values of all trained tensors, in file order.
    pub fn trained_ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let tensors = self.tensors.iter().enumerate();
        let trained = tensors.filter(|(_, tensor)| tensor.role != Role::Buffer);
        trained.map(|(at, _)| self.range(at))
    }

    /// In words, for error messages: `bias [1], weight [1, 10]`.
    pub fn describe(&self) -> String {
        let parts: Vec<_> = self
            .tensors
            .iter()
            .map(|t| format!("{} {:?}", t.name, t.shape))
            .collect();
        if parts.is_empty() {
            "no tensors".into()
        } else {
            parts.join(", ")
        }
    }
}

/// The header as the safetensors crate writes it.
fn header(tensors: &[TensorSpec], offsets: &[usize]) -> Result<Vec<u8>, String> {
    use safetensors::tensor::{Dtype, Metadata, TensorInfo};
    let infos = tensors
        .iter()
        .zip(offsets.windows(2))
        .map(|(tensor, span)| {
            let info = TensorInfo {
                dtype: Dtype::F32,
                shape: tensor.shape.clone(),
                data_offsets: (4 * span[0], 4 * span[1]),
            };
            (tensor.name.clone(), info)
        })
        .collect();
    let metadata = Metadata::new(None, infos).map_err(|e| e.to_string())?;
    let mut json = serde_json::to_vec(&metadata).map_err(|e| e.to_string())?;
    json.resize(json.len().next_multiple_of(8), b' ');
    let mut header = (json.len() as u64).to_le_bytes().to_vec();
    header.append(&mut json);
    Ok(header)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use safetensors::tensor::{Dtype, TensorView, serialize};

    use super::*;
    use crate::Params;

    /// The document that the safetensors crate writes for the same tensors.
    fn written(model: &Params) -> Vec<u8> {
        let views = model
            .layout()
            .tensors()
            .iter()
            .enumerate()
            .map(|(index, tensor)| {
                let values = &model.values()[model.layout().range(index)];
                let bytes = bytemuck::cast_slice(values);
                (
                    tensor.name.clone(),
                    TensorView::new(Dtype::F32, tensor.shape.clone(), bytes).unwrap(),
                )
            });
        // In another order, which must not matter.
        serialize(views.rev().collect::<Vec<_>>(), None).unwrap()
    }

    proptest! {
        #[test]
        fn a_document_equals_that_of_the_safetensors_crate(
            shapes in prop::collection::btree_map(
                "[a-z.\"\\\\é ]{0,6}",
                prop::collection::vec(0..4usize, 0..4),
                0..6,
            ),
        ) {
            let specs = shapes
                .iter()
                .map(|(name, shape)| TensorSpec::new(name, shape.clone(), Role::Weight))
                .collect();
            let layout = Layout::new(specs).unwrap();
            let model = Params::build(&layout, |values| {
                for (index, value) in values.iter_mut().enumerate() {
                    *value = index as f32 - 1.5;
                }
            });
            prop_assert_eq!(&model.document()[..], written(&model));
            prop_assert_eq!(model.document().len(), layout.document_len());
            prop_assert_eq!(layout.header().len() % 8, 0);
        }
    }

    #[test]
    fn scalars_and_empty_layouts_are_allowed() {
        assert_eq!(&Params::empty().document()[..], written(&Params::empty()));
        let layout = Layout::new(vec![TensorSpec::new("t", [], Role::Bias)]).unwrap();
        let model = Params::from_values(&layout, &[2.5]);
        assert_eq!(&model.document()[..], written(&model));
        assert_eq!(model.tensor("t"), Some([2.5].as_slice()));
        assert_eq!(model.tensor("u"), None);
    }

    #[test]
    fn a_part_of_a_layout_keeps_the_order_of_depth() {
        let spec = |name: &&str| TensorSpec::new(*name, [1], Role::Weight);
        let names = ["stem", "body", "count", "head"];
        let known = Layout::by_depth(names.iter().map(spec).collect()).unwrap();
        // In the file: body, count, head, stem.
        assert_eq!(known.depth(), Some(&[1, 2, 3, 0][..]));
        let part = known.select(|tensor| tensor.name != "count");
        assert_eq!(part.depth(), Some(&[1, 2, 0][..]));
        let unknown = Layout::new(names.iter().map(spec).collect()).unwrap();
        assert_eq!(unknown.depth(), None);
        assert_eq!(unknown.select(|_| true).depth(), None);
        assert_eq!(known, unknown, "the order of depth is no difference");
    }

    #[test]
    fn impossible_layouts_are_refused() {
        let spec = |name: &str, shape: &[usize]| TensorSpec::new(name, shape, Role::Weight);
        let twice = Layout::new(vec![spec("a", &[1]), spec("b", &[1]), spec("a", &[2])]);
        assert_eq!(twice.unwrap_err(), LayoutError::Duplicate("a".into()));
        for bad in [
            spec("a", &[usize::MAX, 2]),
            spec("a", &[usize::MAX / 4]),
            spec(RESERVED, &[1]),
        ] {
            assert!(matches!(
                Layout::new(vec![bad]),
                Err(LayoutError::Unwritable(_))
            ));
        }
    }
}
