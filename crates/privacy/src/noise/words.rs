//! Sources of random words.

use std::fmt;

use chacha20::rand_core::SeedableRng;
use chacha20::rand_core::block::Generator;
use chacha20::variants::Legacy;
use chacha20::{ChaChaCore, R20};
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Words that ChaCha20 makes at a time.
const BUFFER: usize = 64;

/// A source of random words: each of the 2⁶⁴ values equally likely, independent of all others.
pub trait Words {
    /// The next word.
    fn word(&mut self) -> u64;
}

impl<W: Words + ?Sized> Words for &mut W {
    fn word(&mut self) -> u64 {
        (**self).word()
    }
}

/// 32 random bytes that noise follows from. They are overwritten when they are dropped.
///
/// In real use they come from the system's generator, and are used for one vector only. In simulations
/// they follow from the seed of the simulation.
#[derive(Clone)]
pub struct Seed(Zeroizing<[u8; 32]>);

impl Seed {
    /// From these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl ZeroizeOnDrop for Seed {}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(secret)")
    }
}

/// The stream of ChaCha20 (RFC 8439, nonce 0) for one seed, as little-endian words of 64 bits.
pub(super) struct Stream {
    generator: ChaChaCore<R20, Legacy>,
    buffer: Zeroizing<[u32; BUFFER]>,
    used: usize,
}

impl Stream {
    pub(super) fn new(seed: &Seed) -> Self {
        Self {
            generator: ChaChaCore::from_seed(*seed.0),
            buffer: Zeroizing::new([0; BUFFER]),
            used: BUFFER,
        }
    }
}

impl ZeroizeOnDrop for Stream {}

impl Words for Stream {
    #[inline]
    fn word(&mut self) -> u64 {
        if self.used == BUFFER {
            self.generator.generate(&mut self.buffer);
            self.used = 0;
        }
        let [low, high] = [0, 1].map(|at| u64::from(self.buffer[self.used + at]));
        self.used += 2;
        high << 32 | low
    }
}
