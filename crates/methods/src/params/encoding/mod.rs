//! Encodings in which contributed models travel: exact, or smaller and rounded.
//!
//! A rounded model is sent as its difference to a *reference*, the agreed model that its silo
//! started from, because a difference of one round is small and smooth where weights are not. The
//! document begins with eight letters and the hash of the reference, so that its meaning depends on
//! nothing but the agreed models. Then come the tensors that are never rounded, as `f32` in file
//! order: buffers, and tensors that the reference does not have, such as counts and sums that a
//! strategy adds. Then the differences of all others, in file order:
//!
//! * `bf16`: the upper half of the `f32`, two bytes a value;
//! * `int8`: for every tensor its step as `f32`, then whole steps of −127 … 127, one byte a value;
//! * `topk`: the largest differences of the whole model, each its position (`u32`, ascending) and
//!   its value (`f32`); all others are zero.
//!
//! Everything is little-endian, and the size follows from layout and encoding. What rounding leaves
//! out is not lost: a silo adds it to what it sends next ([`Encoding::send`], error feedback).
//! Everybody, its author too, computes with the model that was sent.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::{Layout, Params, Role};
use crate::Digest;

/// Letters and hash before the values.
const HEAD: usize = 8 + size_of::<Digest>();

/// Encoding of contributed models.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// Every value as it is: four bytes.
    #[default]
    F32,
    /// Differences to the model of the last round with eight significant bits: two bytes.
    Bf16,
    /// Differences in 255 steps for every tensor: one byte.
    Int8,
    /// This part of the differences, the largest ones: eight bytes each. Above 0, at most 0.5.
    TopK(#[schemars(extend("exclusiveMinimum" = 0, "maximum" = 0.5))] f64),
}

/// Reason for which bytes are not what an encoding writes, or a model cannot be encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Another size than layout and encoding give.
    #[error(
        "the encoded model has {got} bytes instead of {expected}: its names or shapes are wrong"
    )]
    Size {
        /// The size of this encoding.
        expected: usize,
        /// The size found.
        got: usize,
    },
    /// Bytes that this encoding does not write.
    #[error("the encoded model has {0}")]
    Malformed(&'static str),
    /// A value of the model is not finite, or too far from the model of the last round.
    #[error("the difference to the model of the last round is not finite")]
    NotFinite,
}

/// A model as it was sent, and what rounding left out.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The bytes that travel.
    pub document: Bytes,
    /// The model that receivers read from them.
    pub model: Params,
    /// Remainder to be added to the next model; `None` where the encoding is exact.
    pub rest: Option<Params>,
}

impl Encoding {
    /// Returns whether the encoding rounds nothing.
    pub fn is_exact(&self) -> bool {
        *self == Self::F32
    }

    /// Returns whether its numbers can be used.
    pub fn is_valid(&self) -> bool {
        match self {
            Self::TopK(part) => *part > 0.0 && *part <= 0.5,
            Self::F32 | Self::Bf16 | Self::Int8 => true,
        }
    }

    fn letters(self) -> [u8; 8] {
        *match self {
            Self::F32 => b"rota-f32",
            Self::Bf16 => b"rotabf16",
            Self::Int8 => b"rotaint8",
            Self::TopK(_) => b"rotatopk",
        }
    }

    /// Size in bytes of a model of `layout`, sent as its difference to one of `reference`.
    pub fn len(&self, layout: &Layout, reference: &Layout) -> usize {
        if self.is_exact() {
            return layout.document_len();
        }
        let rounded = Rounded::new(layout, reference);
        let values = rounded.len();
        let exact = layout.len() - values;
        let coded = match self {
            Self::F32 => 4 * values,
            Self::Bf16 => 2 * values,
            Self::Int8 => 4 * rounded.tensors.len() + values,
            Self::TopK(part) => 8 * kept(*part, values),
        };
        HEAD + 4 * exact + coded
    }

    /// Encodes `model`, together with what the last sending left out, as its difference to
    /// `reference`.
    ///
    /// # Errors
    /// [`EncodingError::NotFinite`]: a difference is not finite.
    pub fn send(
        &self,
        model: &Params,
        rest: Option<&Params>,
        reference: &Params,
    ) -> Result<Sent, EncodingError> {
        if self.is_exact() {
            return Ok(Sent {
                document: model.document(),
                model: model.clone(),
                rest: None,
            });
        }
        let layout = model.layout();
        let rounded = Rounded::new(layout, reference.layout());
        let rest = rest.filter(|rest| rest.layout() == layout);
        let target = Params::build(layout, |into| {
            into.copy_from_slice(model.values());
            if let Some(rest) = rest {
                for at in rounded.places() {
                    into[at] += rest.values()[at];
                }
            }
        });
        let document = Bytes::from(self.encode(&rounded, &target, reference));
        let read = self.decode(layout, &document, std::slice::from_ref(reference))?;
        let rest = Params::build(layout, |into| {
            for at in rounded.places() {
                into[at] = target.values()[at] - read.values()[at];
            }
        });
        let finite = |params: &Params| params.values().iter().all(|value| value.is_finite());
        if !finite(&rest) || !finite(&read) {
            return Err(EncodingError::NotFinite);
        }
        Ok(Sent {
            document,
            model: read,
            rest: Some(rest),
        })
    }

    fn encode(self, rounded: &Rounded, target: &Params, reference: &Params) -> Vec<u8> {
        let mut bytes = self.letters().to_vec();
        bytes.extend(reference.hash());
        let values = target.values();
        for at in rounded.exact() {
            bytes.extend(values[at].to_le_bytes());
        }
        let difference = |(at, old): (usize, usize)| {
            (f64::from(values[at]) - f64::from(reference.values()[old])) as f32
        };
        match self {
            Self::F32 => unreachable!("an exact model is its own document"),
            Self::Bf16 => {
                let each = rounded.pairs().map(difference);
                bytes.extend(each.flat_map(|value| upper_half(value).to_le_bytes()));
            }
            Self::Int8 => {
                for tensor in &rounded.tensors {
                    let of: Vec<f32> = tensor.pairs().map(difference).collect();
                    let largest = of.iter().fold(0f32, |most, value| most.max(value.abs()));
                    let step = largest / 127.0;
                    bytes.extend(step.to_le_bytes());
                    let steps = |value: &f32| {
                        if step > 0.0 {
                            (f64::from(*value) / f64::from(step)).round() as i8
                        } else {
                            0
                        }
                    };
                    bytes.extend(of.iter().map(|value| steps(value).clamp(-127, 127) as u8));
                }
            }
            Self::TopK(part) => {
                let of: Vec<f32> = rounded.pairs().map(difference).collect();
                let kept = kept(part, of.len());
                let mut order: Vec<u32> = (0..of.len() as u32).collect();
                let size = |at: &u32| of[*at as usize].abs();
                // The largest first, and of equals the first.
                let larger = |a: &u32, b: &u32| size(b).total_cmp(&size(a)).then(a.cmp(b));
                if kept < order.len() {
                    order.select_nth_unstable_by(kept, larger);
                    order.truncate(kept);
                }
                order.sort_unstable();
                for at in order {
                    bytes.extend(at.to_le_bytes());
                    bytes.extend(of[at as usize].to_le_bytes());
                }
            }
        }
        bytes
    }

    /// Reads a model of `layout` from bytes of another member. The result may hold values that are
    /// not finite.
    ///
    /// # Errors
    /// [`EncodingError`]: size, letters, a reference that is not among `references`, steps or positions
    /// that this encoding does not write.
    pub(super) fn decode(
        &self,
        layout: &std::sync::Arc<Layout>,
        document: &[u8],
        references: &[Params],
    ) -> Result<Params, EncodingError> {
        let malformed = EncodingError::Malformed;
        let first = references
            .first()
            .ok_or(malformed("no model to refer to"))?;
        let expected = self.len(layout, first.layout());
        if document.len() != expected {
            let got = document.len();
            return Err(EncodingError::Size { expected, got });
        }
        let (head, mut rest) = document.split_at(HEAD);
        if head[..8] != self.letters() {
            return Err(malformed("other letters at the beginning"));
        }
        let mut named = references.iter().filter(|model| model.hash() == head[8..]);
        let reference = named.next();
        let reference = reference.ok_or(malformed("a model that is none of the agreed ones"))?;
        let rounded = Rounded::new(layout, reference.layout());
        let mut take = |count: usize| {
            let (taken, others) = rest.split_at(count);
            rest = others;
            taken
        };
        let old = |at: usize| f64::from(reference.values()[at]);
        let mut failed = None;
        let model = Params::build(layout, |into| {
            for at in rounded.exact() {
                into[at] = float(take(4));
            }
            match self {
                Self::F32 => unreachable!("an exact model is its own document"),
                Self::Bf16 => {
                    for (at, of) in rounded.pairs() {
                        let bits = u32::from(u16::from_le_bytes(fixed(take(2)))) << 16;
                        into[at] = (old(of) + f64::from(f32::from_bits(bits))) as f32;
                    }
                }
                Self::Int8 => {
                    for tensor in &rounded.tensors {
                        let step = f64::from(float(take(4)));
                        if !(step >= 0.0 && step.is_finite()) {
                            failed = Some("a step that is below 0 or not finite");
                        }
                        for (at, of) in tensor.pairs() {
                            let steps = f64::from(take(1)[0] as i8);
                            into[at] = (old(of) + steps * step) as f32;
                        }
                    }
                }
                Self::TopK(part) => {
                    let pairs: Vec<(usize, usize)> = rounded.pairs().collect();
                    for &(at, of) in &pairs {
                        into[at] = reference.values()[of];
                    }
                    let mut next = 0;
                    for _ in 0..kept(*part, pairs.len()) {
                        let position = u32::from_le_bytes(fixed(take(4))) as usize;
                        let difference = f64::from(float(take(4)));
                        match pairs.get(position) {
                            Some(&(at, of)) if position >= next => {
                                into[at] = (old(of) + difference) as f32;
                                next = position + 1;
                            }
                            _ => failed = Some("positions that do not ascend, or are too large"),
                        }
                    }
                }
            }
        });
        match failed {
            Some(what) => Err(malformed(what)),
            None => Ok(model),
        }
    }
}

/// Number of the largest differences that are sent.
fn kept(part: f64, values: usize) -> usize {
    let kept = (part * values as f64).ceil() as usize;
    kept.clamp(values.min(1), values)
}

/// The nearest number whose lower half is zero, ties to even: its upper half.
fn upper_half(value: f32) -> u16 {
    let bits = value.to_bits();
    if value.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    let even = (bits >> 16) & 1;
    (bits.wrapping_add(0x7fff + even) >> 16) as u16
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as many bytes as were taken")
}

fn float(bytes: &[u8]) -> f32 {
    f32::from_le_bytes(fixed(bytes))
}

/// The tensors of a layout that are rounded: those that are trained and that the reference has.
struct Rounded {
    tensors: Vec<TensorMatch>,
    all: usize,
}

/// A tensor's places among the values of a model, and where they begin in the reference.
struct TensorMatch {
    at: std::ops::Range<usize>,
    of: usize,
}

impl TensorMatch {
    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.at.clone().zip(self.of..)
    }
}

impl Rounded {
    fn new(layout: &Layout, reference: &Layout) -> Self {
        let pair = |(index, tensor): (usize, &super::TensorSpec)| {
            let (at, other) = (layout.range(index), reference.position(&tensor.name)?);
            let of = reference.range(other);
            let rounded = tensor.role != Role::Buffer && of.len() == at.len();
            rounded.then_some(TensorMatch { at, of: of.start })
        };
        Self {
            tensors: layout
                .tensors()
                .iter()
                .enumerate()
                .filter_map(pair)
                .collect(),
            all: layout.len(),
        }
    }

    fn len(&self) -> usize {
        self.tensors.iter().map(|tensor| tensor.at.len()).sum()
    }

    fn pairs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.tensors.iter().flat_map(TensorMatch::pairs)
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.pairs().map(|(at, _)| at)
    }

    /// The places of all other tensors.
    fn exact(&self) -> impl Iterator<Item = usize> {
        let ends = self.tensors.iter().map(|tensor| tensor.at.end);
        let from = std::iter::once(0).chain(ends);
        let starts = self.tensors.iter().map(|tensor| tensor.at.start);
        let to = starts.chain(std::iter::once(self.all));
        from.zip(to).flat_map(|(from, to)| from..to)
    }
}

#[cfg(test)]
mod tests;
