//! The canonical encoding of everything that is signed, hashed or kept: a value has exactly one.
//!
//! The bytes are bincode's, which no other file names; `docs/decisions/` describes how to replace
//! it.

use serde::{Serialize, de::DeserializeOwned};

/// Most bytes that are decoded: 64 MiB.
pub const LIMIT: usize = 64 << 20;

/// Reason for which bytes are not the canonical encoding of a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// More bytes than allowed.
    #[error("expected at most {limit} bytes, found {got}")]
    TooLarge {
        /// Bytes offered.
        got: usize,
        /// Bytes allowed.
        limit: usize,
    },
    /// Not an encoding of this type.
    #[error("not an encoding of this type: {0}")]
    Malformed(String),
    /// An encoding of a value, and not the one that [`encode`] gives.
    #[error("not the canonical encoding: encoding the value again gives other bytes")]
    NotCanonical,
}

/// Nothing that is decoded may claim more than `MOST` bytes.
fn config<const MOST: usize>() -> impl bincode::config::Config {
    bincode::config::standard().with_limit::<MOST>()
}

/// Up to so many bytes may claim 16 times as many. A number claims its full size, at most eight times
/// what it is encoded in. A string claims the length that stands before it, and memory is reserved for
/// it before its bytes are there: a few bytes must not reserve megabytes.
const FEW: usize = 64 << 10;
const MORE: usize = 1 << 20;

/// The canonical bytes of `value`.
pub fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    // Most messages fit into this.
    let mut bytes = Vec::with_capacity(512);
    bincode::serde::encode_into_std_write(value, &mut bytes, config::<LIMIT>())
        .expect("the types of this crate hold nothing that cannot be encoded");
    bytes
}

/// The value that `bytes` canonically encode.
///
/// # Errors
/// [`CodecError`]: more than `limit` bytes, malformed, trailing bytes, or another encoding than
/// [`encode`] gives.
pub fn decode<T: Serialize + DeserializeOwned>(
    bytes: &[u8],
    limit: usize,
) -> Result<T, CodecError> {
    let limit = limit.min(LIMIT);
    if bytes.len() > limit {
        return Err(CodecError::TooLarge {
            got: bytes.len(),
            limit,
        });
    }
    let decoded = if bytes.len() <= FEW {
        bincode::serde::decode_from_slice::<T, _>(bytes, config::<{ 16 * FEW }>())
    } else if bytes.len() <= MORE {
        bincode::serde::decode_from_slice::<T, _>(bytes, config::<{ 16 * MORE }>())
    } else {
        bincode::serde::decode_from_slice::<T, _>(bytes, config::<LIMIT>())
    };
    let (value, read) = decoded.map_err(|error| CodecError::Malformed(error.to_string()))?;
    if read != bytes.len() || encode(&value) != bytes {
        return Err(CodecError::NotCanonical);
    }
    Ok(value)
}

/// For `#[serde(with = "protocol::codec::bytes")]`: encodes a byte array in one piece, where serde
/// would encode byte by byte.
pub mod bytes {
    use std::fmt;

    use serde::de::{Deserializer, Error, Visitor};
    use serde::ser::Serializer;

    /// Writes the bytes.
    ///
    /// # Errors
    /// The format's own.
    pub fn serialize<S: Serializer, const N: usize>(
        bytes: &[u8; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(bytes)
    }

    /// Reads exactly `N` bytes.
    ///
    /// # Errors
    /// The format's own, or another number of bytes.
    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[u8; N], D::Error> {
        struct Exactly<const N: usize>;

        impl<const N: usize> Visitor<'_> for Exactly<N> {
            type Value = [u8; N];

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{N} bytes")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<[u8; N], E> {
                bytes
                    .try_into()
                    .map_err(|_| E::invalid_length(bytes.len(), &self))
            }
        }

        deserializer.deserialize_bytes(Exactly::<N>)
    }
}

/// For `#[serde(with = "protocol::codec::shared")]`: encodes an `Arc<[T]>` as a sequence.
pub mod shared {
    use std::sync::Arc;

    use serde::de::{Deserialize, Deserializer};
    use serde::ser::{Serialize, Serializer};

    /// Writes its elements.
    ///
    /// # Errors
    /// The format's own.
    pub fn serialize<S: Serializer, T: Serialize>(
        slice: &Arc<[T]>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        slice[..].serialize(serializer)
    }

    /// Reads any number of them.
    ///
    /// # Errors
    /// The format's own.
    pub fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<Arc<[T]>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_encoding_of_the_same_number_is_refused() {
        assert_eq!(encode(&5u64), [5]);
        assert_eq!(decode::<u64>(&[5], 9), Ok(5));
        assert_eq!(
            decode::<u64>(&[251, 5, 0], 9),
            Err(CodecError::NotCanonical)
        );
        assert_eq!(decode::<u64>(&[5, 0], 9), Err(CodecError::NotCanonical));
    }

    #[test]
    fn size_is_checked_before_anything_is_allocated() {
        assert_eq!(
            decode::<Vec<u8>>(&[9; 10], 4),
            Err(CodecError::TooLarge { got: 10, limit: 4 })
        );
        // A length prefix of 2^60 bytes.
        let lie = [253, 0, 0, 0, 0, 0, 0, 0, 16];
        assert!(matches!(
            decode::<Vec<u8>>(&lie, 64),
            Err(CodecError::Malformed(_))
        ));
        // One of 2 MiB, of a string: more than a few bytes may claim.
        let lie = [252, 0, 0, 32, 0, b'a'];
        let Err(CodecError::Malformed(why)) = decode::<String>(&lie, 64) else {
            panic!("it was decoded");
        };
        assert!(why.contains("imit"), "{why}");
    }

    #[test]
    fn what_claims_most_for_its_bytes_is_decoded() {
        // A number claims 8 bytes and takes one.
        for count in [FEW - 3, FEW, MORE - 5, MORE] {
            let numbers = vec![7u64; count];
            let bytes = encode(&numbers);
            assert_eq!(decode::<Vec<u64>>(&bytes, LIMIT).as_ref(), Ok(&numbers));
        }
    }
}
