//! The values of a model: a shared byte buffer, read through a layout.

use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;

use super::{Layout, Reading};
use crate::Digest;

#[cfg(target_endian = "big")]
compile_error!("safetensors documents are little-endian and are read in place");

/// Size in bytes from which a model is hashed on all cores.
const PARALLEL: usize = 16 << 20;

static EMPTY: LazyLock<Params> = LazyLock::new(|| {
    let layout = Layout::new(Vec::new()).expect("a layout without tensors has no duplicate names");
    Params::zeros(&layout)
});

/// The parameters of a model: a canonical safetensors document (header, then values). Cloning shares
/// the memory.
#[derive(Clone)]
pub struct Params {
    layout: Arc<Layout>,
    document: Bytes,
    reading: Arc<OnceLock<Reading>>,
    /// True if every value is known to be finite.
    finite: bool,
}

impl std::fmt::Debug for Params {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Params({})", self.layout.describe())
    }
}

impl PartialEq for Params {
    /// Returns whether names, shapes and bits are equal.
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

impl Params {
    /// No tensors: the personal state of a silo that has none.
    pub fn empty() -> Self {
        EMPTY.clone()
    }

    /// All zeros.
    pub fn zeros(layout: &Arc<Layout>) -> Self {
        Self::build(layout, |_| ())
    }

    /// A model whose values `fill` writes, in file order, into a zeroed slice of length `layout.len()`.
    pub fn build(layout: &Arc<Layout>, fill: impl FnOnce(&mut [f32])) -> Self {
        // Header and values share one buffer of f32, so that values are aligned; the header is a
        // multiple of eight bytes.
        let head = layout.header().len() / 4;
        let mut buffer = vec![0f32; head + layout.len()];
        bytemuck::cast_slice_mut::<f32, u8>(&mut buffer[..head]).copy_from_slice(layout.header());
        fill(&mut buffer[head..]);
        Self::from_document(layout.clone(), Bytes::from_owner(FloatOwner(buffer)))
    }

    /// A model of the same layout whose values are those of this one, each after `change`.
    pub fn map(&self, change: impl Fn(f32) -> f32) -> Self {
        // Every value is written once: no zeros before it.
        let header = self.layout.header();
        let mut buffer = Vec::with_capacity(self.document.len() / 4);
        buffer.extend_from_slice(bytemuck::cast_slice(&self.document[..header.len()]));
        buffer.extend(self.values().iter().map(|value| change(*value)));
        Self::from_document(self.layout.clone(), Bytes::from_owner(FloatOwner(buffer)))
    }

    /// From values in file order.
    ///
    /// # Panics
    /// If `values` does not have `layout.len()` values.
    pub fn from_values(layout: &Arc<Layout>, values: &[f32]) -> Self {
        Self::build(layout, |into| into.copy_from_slice(values))
    }

    /// A model of `layout` that takes every tensor from the first of `parts` that has a tensor of that
    /// name and length; `None` if a tensor is in none of them.
    pub fn gather(layout: &Arc<Layout>, parts: &[&Self]) -> Option<Self> {
        let find = |(index, tensor): (usize, &super::TensorSpec)| {
            let len = layout.range(index).len();
            let mut named = parts.iter().filter_map(|part| part.tensor(&tensor.name));
            named.find(|values| values.len() == len)
        };
        let found: Option<Vec<&[f32]>> = layout.tensors().iter().enumerate().map(find).collect();
        Some(Self::from_values(layout, &found?.concat()))
    }

    /// Wraps a document that is known to be canonical for `layout` and aligned. Bytes from other
    /// members must pass [`Gate`](super::Gate).
    pub(super) fn from_document(layout: Arc<Layout>, document: Bytes) -> Self {
        debug_assert_eq!(document.len(), layout.document_len());
        Self {
            layout,
            document,
            reading: Arc::new(OnceLock::new()),
            finite: false,
        }
    }

    /// This model, of which every value was found to be finite.
    pub(super) fn known_finite(self) -> Self {
        Self {
            finite: true,
            ..self
        }
    }

    /// Returns whether every value is known to be finite, because the model has passed a
    /// [`Gate`](super::Gate). If not, they may still be finite: nobody has looked.
    pub(crate) fn is_known_finite(&self) -> bool {
        self.finite
    }

    /// This model read from another copy of its document, for example one in a file that is mapped into
    /// memory. Unchanged if `document` has another length or alignment than a document of this layout;
    /// that its bytes are the same is up to the caller.
    #[must_use]
    pub fn read_from(&self, document: Bytes) -> Self {
        let fits = document.len() == self.document.len()
            && bytemuck::try_cast_slice::<u8, f32>(&document).is_ok();
        if !fits {
            return self.clone();
        }
        Self {
            document,
            ..self.clone()
        }
    }

    /// Names, shapes and roles.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }

    /// All values in file order.
    pub fn values(&self) -> &[f32] {
        bytemuck::cast_slice(&self.document[self.layout.header().len()..])
    }

    /// The values of the tensor of that name, row-major; `None` if there is none.
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        let index = self.layout.position(name)?;
        Some(&self.values()[self.layout.range(index)])
    }

    /// The canonical safetensors document. Cheap: shares the memory.
    pub fn document(&self) -> Bytes {
        self.document.clone()
    }

    /// BLAKE3 of the canonical document; computed once.
    pub fn hash(&self) -> Digest {
        self.reading().hash
    }

    /// Returns what one pass over the document finds; it is made once. The largest value of a document that all
    /// cores hash is left out.
    pub fn reading(&self) -> Reading {
        *self.reading.get_or_init(|| match self.document.len() {
            0..PARALLEL => Reading::of(&self.document),
            _ => {
                let mut hasher = blake3::Hasher::new();
                hasher.update_rayon(&self.document);
                Reading {
                    hash: *hasher.finalize().as_bytes(),
                    largest: None,
                }
            }
        })
    }
}

/// A buffer of floats, viewed as bytes.
struct FloatOwner(Vec<f32>);

impl AsRef<[u8]> for FloatOwner {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}
