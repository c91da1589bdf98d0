//! Checks models received from other members before anything is computed from them.

use std::sync::Arc;

use bytes::Bytes;

use super::encoding::EncodingError;
use super::math::sum_of_squares;
use super::{Encoding, LargestAbs, Layout, Params, Role};

/// Reasons to refuse received bytes as a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GateError {
    /// Another size than the layout's document has.
    #[error("the model has {got} bytes instead of {expected}: its names or shapes are wrong")]
    Size {
        /// Size of the canonical document.
        expected: usize,
        /// Size offered.
        got: usize,
    },
    /// The header is not the canonical one.
    #[error("the model's header is not the canonical one for {0}")]
    Header(String),
    /// Not what the agreed encoding writes.
    #[error(transparent)]
    Encoding(#[from] EncodingError),
    /// A value that is NaN or infinite.
    #[error("tensor {tensor:?} holds a value that is not finite")]
    NotFinite {
        /// The tensor.
        tensor: String,
    },
    /// A norm above the agreed bound.
    #[error("the model's norm {norm:.3e} is above the bound {bound:.3e}")]
    Norm {
        /// ℓ2 norm over weights and biases.
        norm: f64,
        /// The agreed bound.
        bound: f64,
    },
}

/// The conditions that a received model must satisfy.
#[derive(Debug, Clone)]
pub struct Gate {
    /// The layout it must have.
    pub layout: Arc<Layout>,
    /// Largest ℓ2 norm over weights and biases (buffers need only be finite); `f64::INFINITY` for
    /// no bound.
    pub norm: f64,
}

impl Gate {
    /// Checks received bytes and wraps them as a model. Copies only if they are misaligned.
    ///
    /// # Errors
    /// [`GateError`]: size, header, a value that is not finite, norm.
    pub fn admit(&self, document: Bytes) -> Result<Params, GateError> {
        self.admit_read(document, None)
    }

    /// Admits bytes whose largest absolute value may be known. Where it shows that all are finite and
    /// the norm is within the bound, the values are not looked at again.
    fn admit_read(
        &self,
        document: Bytes,
        largest: Option<LargestAbs>,
    ) -> Result<Params, GateError> {
        let expected = self.layout.document_len();
        if document.len() != expected {
            return Err(GateError::Size {
                expected,
                got: document.len(),
            });
        }
        let head = self.layout.header();
        if &document[..head.len()] != head {
            return Err(GateError::Header(self.layout.describe()));
        }
        let model = match bytemuck::try_cast_slice::<u8, f32>(&document) {
            Ok(_) => Params::from_document(self.layout.clone(), document),
            Err(_) => Params::build(&self.layout, |into| {
                bytemuck::cast_slice_mut::<f32, u8>(into).copy_from_slice(&document[head.len()..]);
            }),
        };
        match largest {
            Some(largest) if self.passes(largest) => Ok(model.known_finite()),
            _ => self.pass(model),
        }
    }

    /// Admits a model in another encoding than `f32`, as its difference to one of `references`, which
    /// are the agreed models. `largest` is of these very bytes, where a [`Reading`](super::Reading)
    /// gave it; it spares a document in `f32` another look at its values.
    ///
    /// # Errors
    /// [`GateError`]: as for [`admit`](Self::admit), and bytes that the encoding does not write.
    pub fn admit_encoded(
        &self,
        encoding: Encoding,
        document: Bytes,
        references: &[Params],
        largest: Option<LargestAbs>,
    ) -> Result<Params, GateError> {
        if encoding.is_exact() {
            return self.admit_read(document, largest);
        }
        self.pass(encoding.decode(&self.layout, &document, references)?)
    }

    /// Returns whether a model of this layout with such a largest absolute value passes for certain.
    fn passes(&self, largest: LargestAbs) -> bool {
        let norm = largest.norm_at_most(self.layout.len());
        norm.is_finite() && norm <= self.norm
    }

    /// A model whose values are finite and within the norm.
    fn pass(&self, model: Params) -> Result<Params, GateError> {
        let mut squares = 0f64;
        for (index, tensor) in self.layout.tensors().iter().enumerate() {
            let sum = sum_of_squares(&model.values()[self.layout.range(index)]);
            if !sum.is_finite() {
                return Err(GateError::NotFinite {
                    tensor: tensor.name.clone(),
                });
            }
            if tensor.role != Role::Buffer {
                squares += sum;
            }
        }
        let norm = squares.sqrt();
        // Also refuses if the bound is NaN.
        if norm
            .partial_cmp(&self.norm)
            .is_none_or(|order| order.is_gt())
        {
            return Err(GateError::Norm {
                norm,
                bound: self.norm,
            });
        }
        Ok(model.known_finite())
    }
}

#[cfg(test)]
mod tests;
