//! Layout of a vector of a round, and its integers.

use privacy::masks::Fixed;
use serde::{Deserialize, Serialize};

use crate::SiteRefusal;

/// Largest absolute value of an encoded number, that of [`Fixed::QUESTION`].
const BOUND: f64 = 4_194_304.0;
/// Bits after the point of an encoded number.
const BITS: u32 = 30;

/// One block of a vector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SumBlock {
    /// Its name.
    pub name: String,
    /// Number of numbers.
    pub len: usize,
    /// Meaning of the numbers, as text.
    pub unit: String,
    /// Exponent e: v·2^−e is encoded. 30 for counts, which are encoded as themselves.
    pub exponent: i32,
}

/// The blocks of a vector, in order.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SumLayout {
    /// The blocks.
    pub blocks: Vec<SumBlock>,
}

impl SumLayout {
    /// Adds a block of whole numbers.
    #[must_use]
    pub fn counts(self, name: &str, len: usize, unit: &str) -> Self {
        self.block(name, len, unit, 30)
    }

    /// Adds a block of real numbers up to ± 2²² in steps of 2⁻³⁰.
    #[must_use]
    pub fn reals(self, name: &str, len: usize, unit: &str) -> Self {
        self.block(name, len, unit, 0)
    }

    /// Adds a block of whole multiples of 2^−`bits`, up to ±2^(52−`bits`), which are encoded without rounding.
    #[must_use]
    pub fn steps(self, name: &str, len: usize, unit: &str, bits: i32) -> Self {
        self.block(name, len, unit, BITS.cast_signed() - bits)
    }

    fn block(mut self, name: &str, len: usize, unit: &str, exponent: i32) -> Self {
        if len > 0 {
            self.blocks.push(SumBlock {
                name: name.to_owned(),
                len,
                unit: unit.to_owned(),
                exponent,
            });
        }
        self
    }

    /// The layout with real numbers in coarser steps that reach as much further: by 2^`exponent`.
    #[must_use]
    pub fn coarser(mut self, exponent: i32) -> Self {
        let reals = self.blocks.iter_mut().filter(|block| block.exponent == 0);
        reals.for_each(|block| block.exponent = exponent);
        self
    }

    /// Numbers in all.
    pub fn len(&self) -> usize {
        self.blocks.iter().map(|block| block.len).sum()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A site's vector as integers modulo 2⁶⁴, which are then masked. Nothing is clipped.
    ///
    /// # Errors
    /// If a number is beyond ± 2²²·2^e or not finite, or there are more or fewer numbers than the layout has.
    pub fn encode(&self, numbers: &[f64]) -> Result<Vec<u64>, SiteRefusal> {
        if numbers.len() != self.len() {
            return Err(SiteRefusal::Length {
                found: numbers.len(),
                expected: self.len(),
            });
        }
        let mut words = Vec::with_capacity(numbers.len());
        let mut numbers = numbers.iter();
        for block in &self.blocks {
            for number in numbers.by_ref().take(block.len) {
                let scaled = number / power(block.exponent);
                if !scaled.is_finite() || scaled.abs() > BOUND {
                    return Err(SiteRefusal::Reach {
                        block: block.name.clone(),
                        most: BOUND * power(block.exponent),
                    });
                }
                words.push(Fixed::QUESTION.integer(scaled).0 as u64);
            }
        }
        Ok(words)
    }

    /// Numbers with their names.
    pub(crate) fn opened(&self, numbers: Vec<f64>) -> DecodedSum {
        DecodedSum {
            layout: self.clone(),
            numbers,
        }
    }

    /// The numbers of a sum of vectors.
    ///
    /// # Panics
    /// If there are more or fewer words than the layout has numbers.
    pub fn decode(&self, words: &[u64]) -> DecodedSum {
        assert_eq!(words.len(), self.len(), "words of a sum");
        let mut numbers = Vec::with_capacity(words.len());
        let mut words = words.iter();
        for block in &self.blocks {
            let step = power(block.exponent - BITS.cast_signed());
            let taken = words.by_ref().take(block.len);
            numbers.extend(taken.map(|word| word.cast_signed() as f64 * step));
        }
        DecodedSum {
            layout: self.clone(),
            numbers,
        }
    }
}

/// 2^exponent by repeated products, exact.
pub(crate) fn power(exponent: i32) -> f64 {
    let factor = if exponent < 0 { 0.5 } else { 2.0 };
    (0..exponent.unsigned_abs()).fold(1.0, |product, _| product * factor)
}

/// The sum of a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DecodedSum {
    /// Layout of the numbers.
    pub layout: SumLayout,
    /// The numbers.
    pub numbers: Vec<f64>,
}

impl DecodedSum {
    /// The numbers of a block; none where the layout has no such block.
    pub fn block(&self, name: &str) -> &[f64] {
        let mut at = 0;
        for block in &self.layout.blocks {
            if block.name == name {
                return &self.numbers[at..at + block.len];
            }
            at += block.len;
        }
        &[]
    }

    /// The step in which the numbers of a block are encoded; 0 where the layout has no such block.
    pub(crate) fn step(&self, name: &str) -> f64 {
        let mut blocks = self.layout.blocks.iter();
        let block = blocks.find(|block| block.name == name);
        block.map_or(0.0, |block| power(block.exponent - BITS.cast_signed()))
    }

    /// The only number of a block; 0 where the layout has no such block.
    pub fn one(&self, name: &str) -> f64 {
        self.block(name).first().copied().unwrap_or_default()
    }
}

/// Adds a site's words to those of others, modulo 2⁶⁴.
pub fn add_words(sum: &mut [u64], words: &[u64]) {
    let pairs = sum.iter_mut().zip(words);
    pairs.for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn layout() -> SumLayout {
        SumLayout::default()
            .counts("n", 1, "rows")
            .reals("sums", 2, "")
    }

    #[test]
    fn counts_are_exact_and_reals_are_rounded_to_a_step() {
        let count = 3_999_999_999.0;
        let words = layout().encode(&[count, 0.1, -0.3]).unwrap();
        assert_eq!(words[0], 3_999_999_999);
        let mut sum = words.clone();
        add_words(&mut sum, &words);
        let opened = layout().decode(&sum);
        assert_eq!(opened.one("n"), 2.0 * count);
        assert!((opened.block("sums")[1] + 0.6).abs() < 2e-9);
        assert_eq!(opened.block("other"), [0.0; 0]);
    }

    #[test]
    fn multiples_of_a_step_are_encoded_without_rounding() {
        let layout = SumLayout::default().steps("gradients", 2, "", 40);
        let step = power(-40);
        let words = layout.encode(&[3.0 * step, -4096.0]).unwrap();
        assert_eq!(words, [3, (-(1i64 << 52)).cast_unsigned()]);
        assert_eq!(layout.decode(&words).numbers, [3.0 * step, -4096.0]);
        assert!(layout.encode(&[4096.1, 0.0]).is_err());
    }

    #[test]
    fn the_grid_of_the_masks_is_that_of_the_layout() {
        assert_eq!(Fixed::new(BOUND, BITS), Ok(Fixed::QUESTION));
    }

    #[test]
    fn nothing_beyond_reach_is_clipped() {
        assert!(layout().encode(&[1.0, BOUND, 0.0]).is_ok());
        for wrong in [BOUND + 1.0, -BOUND - 1.0, f64::NAN, f64::INFINITY] {
            let found = layout().encode(&[1.0, 0.0, wrong]);
            assert!(matches!(found, Err(SiteRefusal::Reach { .. })), "{wrong}");
        }
        assert!(
            layout()
                .coarser(4)
                .encode(&[1.0, 16.0 * BOUND, 0.0])
                .is_ok()
        );
        assert!(layout().encode(&[1.0]).is_err());
    }
}
