//! Whole vectors: masking a model, adding the vectors of a sum, and judging what comes out.
//!
//! A vector has the d coordinates of the model and then [`CHECKS`] check coordinates. Its bytes are its
//! words, little-endian, and nothing else.

use std::ops::Range;

use super::mask::Mask;
use super::numbers::{CHECKS, EncodeError, Fixed, Reach};
use super::seeds::{Seeds, UnmaskError};
use super::stream::{MOST_BYTES, StreamError};
use super::sum::SumAuthors;
use super::words::{Width, Word};

/// Words that are handled at a time: what is read and written of them stays in the cache, and no second
/// vector in memory.
pub const BLOCK: usize = 1 << 14;

/// Reason for which vectors of a size are refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("vectors of {coordinates} coordinates, masks have room for {MOST_BYTES} bytes")]
pub struct ShapeError {
    /// Coordinates of the model.
    pub coordinates: usize,
}

/// Common shape of all vectors of a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    coordinates: usize,
    reach: Reach,
}

/// Reason for which a sum is void: some author deviated. It is left out of the outcome and named there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Void {
    /// A check coordinate is not zero.
    #[error("check coordinate {0} of the sum is not zero: the masks of an author do not cancel")]
    Check(usize),
    /// A coordinate that honest inputs cannot give.
    #[error("coordinate {at} of the sum is {value}, honest inputs reach {reach} at most")]
    BeyondReach {
        /// The coordinate.
        at: u64,
        /// Value of the coordinate.
        value: i64,
        /// The largest absolute value.
        reach: u64,
    },
}

impl Shape {
    /// Vectors for a model with so many coordinates.
    ///
    /// # Errors
    ///
    /// If they are longer than the streams.
    pub fn new(coordinates: usize, reach: Reach) -> Result<Self, ShapeError> {
        let words = (coordinates as u64).checked_add(CHECKS as u64);
        let bytes = words.and_then(|words| words.checked_mul(reach.width().bytes()));
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err(ShapeError { coordinates });
        }
        Ok(Self { coordinates, reach })
    }

    /// Coordinates of the model.
    pub fn coordinates(self) -> usize {
        self.coordinates
    }

    /// Words of a vector: the coordinates and the checks.
    pub fn words(self) -> usize {
        self.coordinates + CHECKS
    }

    /// Bits of a word.
    pub fn width(self) -> Width {
        self.reach.width()
    }

    /// Bytes of a vector.
    pub fn bytes(self) -> usize {
        self.words() * self.width().bytes() as usize
    }

    /// Returns what is wrong with the words of an opened sum from word `at` on, if anything is.
    pub fn judge<W: Word>(self, at: u64, words: &[W]) -> Option<Void> {
        let judged = words.iter().zip(at..).map(|(word, at)| {
            let value = word.signed();
            let check = at.checked_sub(self.coordinates as u64);
            match check {
                Some(check) => (value != 0).then_some(Void::Check(check as usize)),
                None => (!self.reach.holds(value)).then_some(Void::BeyondReach {
                    at,
                    value,
                    reach: self.reach.most(),
                }),
            }
        });
        judged.flatten().next()
    }
}

/// Reason for which a model cannot be masked.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum VectorError {
    /// Words of another width.
    #[error("words of {found}, the vectors of this sum have words of {expected}")]
    Width {
        /// Asked for.
        found: Width,
        /// Fixed by the reach.
        expected: Width,
    },
    /// A model of another size.
    #[error("a model of {found} coordinates, expected {expected}")]
    Coordinates {
        /// Coordinates that came.
        found: usize,
        /// Coordinates of the vectors.
        expected: usize,
    },
    /// Numbers that cannot be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Words beyond the end of the streams.
    #[error(transparent)]
    Stream(#[from] StreamError),
}

/// A masked vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedBytes {
    /// The bytes that are sent.
    pub bytes: Vec<u8>,
    /// Number of coordinates that were clipped.
    pub clipped: u64,
}

impl Mask {
    /// The masked vector of a model: `weight` times its difference to `start`, the checks, the mask.
    ///
    /// # Errors
    ///
    /// If `W` is not the shape's width, the models have another size, or a number is not finite.
    pub fn vector<W: Word>(
        &self,
        shape: Shape,
        fixed: Fixed,
        weight: u64,
        start: &[f32],
        model: &[f32],
    ) -> Result<MaskedBytes, VectorError> {
        let expected = shape.coordinates;
        let other = [start, model]
            .into_iter()
            .find(|part| part.len() != expected);
        if let Some(other) = other {
            let found = other.len();
            return Err(VectorError::Coordinates { found, expected });
        }
        let mut clipped = 0;
        let bytes = self.blocks::<W>(shape, |of, words| {
            let at = of.start;
            let encoded = fixed.encode(weight, &start[of.clone()], &model[of], words);
            clipped += encoded.map_err(|error| error.beginning_at(at))?;
            Ok(())
        })?;
        Ok(MaskedBytes { bytes, clipped })
    }

    /// The bytes of the masked vector of integers, such as those of clipped units with their noise: the
    /// integers, the checks, the mask.
    ///
    /// # Errors
    ///
    /// If `W` is not the shape's width, or there are more or fewer integers than coordinates.
    pub fn integers<W: Word>(
        &self,
        shape: Shape,
        integers: &[i64],
    ) -> Result<Vec<u8>, VectorError> {
        let (found, expected) = (integers.len(), shape.coordinates);
        if found != expected {
            return Err(VectorError::Coordinates { found, expected });
        }
        self.blocks::<W>(shape, |of, words| {
            for (word, integer) in words.iter_mut().zip(&integers[of]) {
                *word = W::wrap(*integer);
            }
            Ok(())
        })
    }

    /// The bytes of a vector, block by block: `encode` writes the coordinates of a range, and after the
    /// last come the checks.
    fn blocks<W: Word>(
        &self,
        shape: Shape,
        mut encode: impl FnMut(Range<usize>, &mut [W]) -> Result<(), EncodeError>,
    ) -> Result<Vec<u8>, VectorError> {
        check_width::<W>(shape)?;
        let mut bytes = Vec::with_capacity(shape.bytes());
        let mut block = vec![W::default(); BLOCK.min(shape.words())];
        for at in (0..shape.words()).step_by(BLOCK) {
            let words = &mut block[..BLOCK.min(shape.words() - at)];
            words.fill(W::default());
            let end = (at + words.len()).min(shape.coordinates);
            let of = at.min(end)..end;
            encode(of.clone(), &mut words[..of.len()])?;
            self.apply(at as u64, words)?;
            W::write(words, &mut bytes);
        }
        Ok(bytes)
    }
}

fn check_width<W: Word>(shape: Shape) -> Result<(), VectorError> {
    let (found, expected) = (W::WIDTH, shape.width());
    if found != expected {
        return Err(VectorError::Width { found, expected });
    }
    Ok(())
}

/// Reason for which vectors cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum CombineError {
    /// Words of another width.
    #[error("words of {found}, the vectors of this sum have words of {expected}")]
    Width {
        /// Asked for.
        found: Width,
        /// Fixed by the reach.
        expected: Width,
    },
    /// Not one vector for each author.
    #[error("{found} vectors for {expected} authors: the sum needs the vector of each")]
    Vectors {
        /// Vectors that came.
        found: usize,
        /// Authors of the sum.
        expected: usize,
    },
    /// A vector of another size.
    #[error("the vector of author {author} has {found} bytes, expected {expected}")]
    Length {
        /// Author of the vector.
        author: u16,
        /// Bytes of the vector.
        found: usize,
        /// Bytes of every vector.
        expected: usize,
    },
    /// A part that is not within the vectors.
    #[error("{words} words from word {at} on are not all in vectors of {expected} words")]
    Chunk {
        /// The word at which the part begins.
        at: usize,
        /// Words of the part.
        words: usize,
        /// Words of every vector.
        expected: usize,
    },
    /// The streams cannot be taken off.
    #[error(transparent)]
    Unmask(#[from] UnmaskError),
}

/// An opened sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSum<W> {
    /// The sum of the weighted inputs, then the checks.
    pub words: Vec<W>,
    /// Reason for which the sum is void, if it is.
    pub void: Option<Void>,
}

impl Seeds {
    /// Adds the masked vectors of a sum's authors, given as bytes in the order of the authors, and takes
    /// their own streams off.
    ///
    /// # Errors
    ///
    /// If `W` is not the shape's width, or there is not one vector of the right size for each author.
    pub fn combine<W: Word>(
        &self,
        shape: Shape,
        sum: &SumAuthors,
        vectors: &[&[u8]],
    ) -> Result<OpenedSum<W>, CombineError> {
        check_vectors::<W>(shape, sum, vectors, shape.bytes())?;
        let mut words = vec![W::default(); shape.words()];
        let mut void = None;
        for (block, words) in words.chunks_mut(BLOCK).enumerate() {
            let at = block * BLOCK;
            let bytes = at * W::WIDTH.bytes() as usize;
            let parts = vectors
                .iter()
                .map(|vector| &vector[bytes..bytes + size_of_val(words)]);
            let parts: Vec<_> = parts.collect();
            void = void.or(self.combine_chunk(shape, sum, at, &parts, words)?);
        }
        Ok(OpenedSum { words, void })
    }

    /// Adds a part of the vectors, so that vectors larger than memory can be added: `vectors` are the
    /// bytes of each author from word `at` on, and `words` gets their opened sum. What is wrong with it
    /// comes back; a sum is void if any of its parts is.
    ///
    /// # Errors
    ///
    /// If `W` is not the shape's width, the words are not those of a vector, or there is not one part of
    /// the same size for each author.
    pub fn combine_chunk<W: Word>(
        &self,
        shape: Shape,
        sum: &SumAuthors,
        at: usize,
        vectors: &[&[u8]],
        words: &mut [W],
    ) -> Result<Option<Void>, CombineError> {
        check_vectors::<W>(shape, sum, vectors, size_of_val(words))?;
        let end = at.checked_add(words.len());
        if end.is_none_or(|end| end > shape.words()) {
            let (words, expected) = (words.len(), shape.words());
            return Err(CombineError::Chunk {
                at,
                words,
                expected,
            });
        }
        words.fill(W::default());
        for vector in vectors {
            W::add_bytes(words, vector);
        }
        self.unmask(sum, at as u64, words)?;
        Ok(shape.judge(at as u64, words))
    }
}

/// One vector of the right width and size for each author of a sum.
fn check_vectors<W: Word>(
    shape: Shape,
    sum: &SumAuthors,
    vectors: &[&[u8]],
    bytes: usize,
) -> Result<(), CombineError> {
    let (found, expected) = (W::WIDTH, shape.width());
    if found != expected {
        return Err(CombineError::Width { found, expected });
    }
    let (found, expected) = (vectors.len(), sum.authors().len());
    if found != expected {
        return Err(CombineError::Vectors { found, expected });
    }
    let mut sizes = sum.authors().iter().zip(vectors);
    match sizes.find(|(_, vector)| vector.len() != bytes) {
        None => Ok(()),
        Some((author, vector)) => Err(CombineError::Length {
            author: *author,
            found: vector.len(),
            expected: bytes,
        }),
    }
}
