//! Masked sums: the sum of all vectors is opened, and no single one.

mod dleq;
mod group;
mod kdf;
mod keys;
mod mask;
mod numbers;
mod opening;
mod polynomial;
mod ready;
mod seeds;
mod stream;
mod sum;
mod transcript;
mod vector;
mod words;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use dleq::{BatchError, MOST_CONTEXT, MOST_PAIRS};
pub use group::{ENCODED, EncodingError, Point};
pub use keys::{Keys, KeysError, PublicKeys, Secret};
pub use mask::{Mask, MaskError};
pub use numbers::{CHECKS, EncodeError, Fixed, FixedError, Reach, ReachError};
pub use opening::{BlockHash, Opening, OpeningError, UnlockError};
pub use ready::{Listed, MOST_MEMBERS, OwnKeysError, Ready, ReadyError, Root};
pub use seeds::{Seeds, SeedsError, UnmaskError};
pub use stream::{MOST_BYTES, StreamError};
pub use sum::{Sum, SumError};
pub use transcript::{DealError, Transcript, TranscriptError, Transcripts, TranscriptsError};
pub use vector::{CombineError, Masked, Opened, Shape, ShapeError, VectorError, Void};
pub use words::{Width, Word};
