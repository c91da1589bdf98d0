//! Streams of mask words: ChaCha20 (RFC 8439) with nonce 0, from counter 0.
//!
//! The words of a stream are added to a slice, or subtracted from it, in place and a buffer of 256
//! bytes at a time, so a mask is never in memory as a whole. A stream can begin at any word. A vector
//! can therefore be masked chunk by chunk, in any order and by several threads.

use std::fmt;

use chacha20::rand_core::SeedableRng;
use chacha20::rand_core::block::Generator;
use chacha20::variants::Legacy;
use chacha20::{ChaChaCore, R20};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::words::{Sign, Word};

/// With a 64-bit counter and nonce 0. As long as the counter stays below 2³² its blocks are those of
/// RFC 8439 with nonce 0; [`MOST_BYTES`] keeps it there.
type ChaCha20 = ChaChaCore<R20, Legacy>;

/// Bytes of a stream: RFC 8439 has a counter of 32 bits for blocks of 64 bytes.
pub const MOST_BYTES: u64 = 1 << 38;

/// Words of 32 bits that the generator makes at a time, and the blocks of RFC 8439 in them.
const BUFFER: usize = 64;
const BLOCKS: u64 = 4;

/// Words that all streams are applied to before the next words are: they stay in the nearest cache.
const TILE: usize = 2048;

/// A slice lies beyond the end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{words} words from word {at} on go beyond the {MOST_BYTES} bytes that ChaCha20 gives for one \
     key: the vector must be shorter"
)]
pub struct StreamError {
    /// The first word's place in the vector.
    pub at: u64,
    /// Number of words from there on.
    pub words: usize,
}

/// The key of a stream. It is overwritten when it is dropped.
#[derive(Clone)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub(crate) struct StreamKey(pub(crate) Zeroizing<[u8; 32]>);

impl ZeroizeOnDrop for StreamKey {}

impl fmt::Debug for StreamKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StreamKey(secret)")
    }
}

/// Adds each stream to `words`, or subtracts it; `words` are those of a vector from word `at` on.
pub(crate) fn apply<'a, W: Word>(
    streams: impl Iterator<Item = (&'a StreamKey, Sign)>,
    at: u64,
    words: &mut [W],
) -> Result<(), StreamError> {
    let end = at.checked_add(words.len() as u64);
    let end = end.and_then(|end| end.checked_mul(W::WIDTH.bytes()));
    if end.is_none_or(|end| end > MOST_BYTES) {
        let words = words.len();
        return Err(StreamError { at, words });
    }
    let mut generators: Vec<_> = streams
        .map(|(key, sign)| (ChaCha20::from_seed(*key.0), sign))
        .collect();
    let mut buffer = Zeroizing::new([0; BUFFER]);
    for (tile, words) in words.chunks_mut(TILE).enumerate() {
        let at = at + (tile * TILE) as u64;
        for (generator, sign) in &mut generators {
            run(generator, *sign, at, words, &mut buffer);
        }
    }
    buffer.zeroize();
    Ok(())
}

/// One stream on one tile.
fn run<W: Word>(
    generator: &mut ChaCha20,
    sign: Sign,
    at: u64,
    mut words: &mut [W],
    buffer: &mut [u32; BUFFER],
) {
    let per_buffer = BUFFER / W::HALVES;
    generator.set_block_pos(at / per_buffer as u64 * BLOCKS);
    let mut skipped = (at % per_buffer as u64) as usize;
    while !words.is_empty() {
        generator.generate(buffer);
        let count = words.len().min(per_buffer - skipped);
        let (now, later) = words.split_at_mut(count);
        W::mix(now, &buffer[skipped * W::HALVES..], sign);
        (words, skipped) = (later, 0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::masks::testing::{self, hex};

    /// Appendix A.1 of RFC 8439, vectors 1 to 4, those with nonce 0: key, counter, block.
    const RFC_8439: [(&str, u64, &str); 4] = [
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            0,
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
             da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (
            "0000000000000000000000000000000000000000000000000000000000000000",
            1,
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
             29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
        ),
        (
            "0000000000000000000000000000000000000000000000000000000000000001",
            1,
            "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a\
             8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
        ),
        (
            "00ff000000000000000000000000000000000000000000000000000000000000",
            2,
            "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca\
             13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
        ),
    ];

    fn key(bytes: [u8; 32]) -> StreamKey {
        StreamKey(Zeroizing::new(bytes))
    }

    fn stream<W: Word>(bytes: [u8; 32], at: u64, count: usize) -> Vec<W> {
        let mut words = vec![W::default(); count];
        apply([(&key(bytes), Sign::Plus)].into_iter(), at, &mut words).unwrap();
        words
    }

    #[test]
    fn streams_are_those_of_rfc_8439() {
        for (digits, counter, block) in RFC_8439 {
            let bytes: [u8; 32] = hex(digits).try_into().unwrap();
            let mut narrow = Vec::new();
            u32::write(&stream(bytes, counter * 16, 16), &mut narrow);
            assert_eq!(narrow, hex(block));
            let mut wide = Vec::new();
            u64::write(&stream(bytes, counter * 8, 8), &mut wide);
            assert_eq!(wide, hex(block));
        }
    }

    #[test]
    fn the_last_words_of_a_stream_are_those_of_the_last_counter() {
        let words = MOST_BYTES / 4;
        let last: Vec<u32> = stream([5; 32], words - 16, 16);
        assert_eq!(last, testing::chacha20(&[5; 32], u32::MAX));
        let mut beyond = [0_u32; 2];
        let error = apply([].into_iter(), words - 1, &mut beyond).unwrap_err();
        assert_eq!(
            error,
            StreamError {
                at: words - 1,
                words: 2
            }
        );
        assert!(apply::<u64>([].into_iter(), u64::MAX, &mut [0]).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn streams_are_those_of_a_slow_implementation(
            bytes: [u8; 32], at in 0_u64..10_000, count in 0_usize..5_000,
        ) {
            let narrow: Vec<u32> = stream(bytes, at, count);
            prop_assert_eq!(narrow, testing::words32(&bytes, at, count));
            let wide: Vec<u64> = stream(bytes, at, count);
            prop_assert_eq!(wide, testing::words64(&bytes, at, count));
        }

        #[test]
        fn chunks_of_any_size_are_masked_like_the_whole(
            bytes: [u8; 32], other: [u8; 32], cuts in proptest::collection::vec(0_usize..6_000, 0..6),
        ) {
            let keys = [key(bytes), key(other)];
            let streams = || keys.iter().zip([Sign::Plus, Sign::Minus]);
            let mut whole: Vec<u64> = (0..6_000).collect();
            let mut parts = whole.clone();
            apply(streams(), 3, &mut whole).unwrap();
            let mut cuts = cuts;
            cuts.extend([0, parts.len()]);
            cuts.sort_unstable();
            for pair in cuts.windows(2).rev() {
                apply(streams(), 3 + pair[0] as u64, &mut parts[pair[0]..pair[1]]).unwrap();
            }
            prop_assert_eq!(&whole, &parts);
            let back = keys.iter().zip([Sign::Minus, Sign::Plus]);
            apply(back, 3, &mut whole).unwrap();
            prop_assert_eq!(whole, (0..6_000).collect::<Vec<u64>>());
        }
    }
}
