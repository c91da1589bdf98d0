//! The words of masked vectors: integers of 32 or 64 bits that wrap around.

use std::fmt;

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// Sign of a stream: added or subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// Added.
    Plus,
    /// Subtracted.
    Minus,
}

impl Sign {
    /// The other sign.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Plus => Self::Minus,
            Self::Minus => Self::Plus,
        }
    }
}

/// Number of bits of a word. The agreement fixes it for all rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// Words of 32 bits.
    Bits32,
    /// Words of 64 bits.
    Bits64,
}

impl Width {
    /// Bytes of a word.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bits", self.bytes() * 8)
    }
}

/// An integer modulo 2³² or 2⁶⁴: `u32` or `u64`. In bytes it is little-endian.
pub trait Word: Copy + Default + PartialEq + Eq + fmt::Debug + sealed::Sealed {
    /// The width of the word.
    const WIDTH: Width;

    /// Number of words of 32 bits that the word has.
    #[doc(hidden)]
    const HALVES: usize;

    /// A signed number, modulo 2³² or 2⁶⁴.
    fn wrap(number: i64) -> Self;

    /// The number with the least absolute value that this word stands for.
    fn signed(self) -> i64;

    /// The sum, modulo 2³² or 2⁶⁴.
    fn plus(self, other: Self) -> Self;

    /// The product with a weight, modulo 2³² or 2⁶⁴.
    fn times(self, weight: u64) -> Self;

    /// Adds the words in `bytes` to those in `words`. Both have the same number of words.
    #[doc(hidden)]
    fn add_bytes(words: &mut [Self], bytes: &[u8]);

    /// Adds or subtracts words of a stream.
    #[doc(hidden)]
    fn mix(words: &mut [Self], stream: &[u32], sign: Sign);

    /// Appends the bytes of `words` to `bytes`.
    fn write(words: &[Self], bytes: &mut Vec<u8>);
}

impl Word for u32 {
    const WIDTH: Width = Width::Bits32;
    const HALVES: usize = 1;

    fn wrap(number: i64) -> Self {
        number as Self
    }

    fn signed(self) -> i64 {
        i64::from(self as i32)
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn times(self, weight: u64) -> Self {
        self.wrapping_mul(weight as Self)
    }

    fn add_bytes(words: &mut [Self], bytes: &[u8]) {
        let (added, _) = bytes.as_chunks();
        for (word, bytes) in words.iter_mut().zip(added) {
            *word = word.wrapping_add(Self::from_le_bytes(*bytes));
        }
    }

    fn mix(words: &mut [Self], stream: &[u32], sign: Sign) {
        let pairs = words.iter_mut().zip(stream);
        match sign {
            Sign::Plus => pairs.for_each(|(word, key)| *word = word.wrapping_add(*key)),
            Sign::Minus => pairs.for_each(|(word, key)| *word = word.wrapping_sub(*key)),
        }
    }

    fn write(words: &[Self], bytes: &mut Vec<u8>) {
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}

impl Word for u64 {
    const WIDTH: Width = Width::Bits64;
    const HALVES: usize = 2;

    fn wrap(number: i64) -> Self {
        number as Self
    }

    fn signed(self) -> i64 {
        self as i64
    }

    fn plus(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    fn times(self, weight: u64) -> Self {
        self.wrapping_mul(weight)
    }

    fn add_bytes(words: &mut [Self], bytes: &[u8]) {
        let (added, _) = bytes.as_chunks();
        for (word, bytes) in words.iter_mut().zip(added) {
            *word = word.wrapping_add(Self::from_le_bytes(*bytes));
        }
    }

    fn mix(words: &mut [Self], stream: &[u32], sign: Sign) {
        let (keys, _) = stream.as_chunks();
        let key = |[low, high]: [u32; 2]| Self::from(low) | Self::from(high) << 32;
        let pairs = words.iter_mut().zip(keys);
        match sign {
            Sign::Plus => pairs.for_each(|(word, keys)| *word = word.wrapping_add(key(*keys))),
            Sign::Minus => pairs.for_each(|(word, keys)| *word = word.wrapping_sub(key(*keys))),
        }
    }

    fn write(words: &[Self], bytes: &mut Vec<u8>) {
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
}
