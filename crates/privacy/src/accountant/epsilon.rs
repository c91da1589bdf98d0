//! ε and δ as they are shown.

use std::fmt;

/// Digits of a shown ε. With five, rounding up adds at most one part in ten thousand.
const DIGITS: i32 = 5;

/// Range of δ.
const RANGE: (f64, f64) = (1e-30, 0.1);

/// A number that cannot be δ.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error(
    "a delta of {0}: it must be between 1e-30 and 0.1, and should be far below one part in the number \
     of units"
)]
pub struct DeltaError(pub f64);

/// δ: but for about this probability, ε holds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Delta(f64);

impl Delta {
    /// This number.
    ///
    /// # Errors
    ///
    /// If it is not between 10⁻³⁰ and 0.1.
    pub fn new(delta: f64) -> Result<Self, DeltaError> {
        if !(RANGE.0..=RANGE.1).contains(&delta) {
            return Err(DeltaError(delta));
        }
        Ok(Self(delta))
    }

    /// The number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// ε: with or without one unit, what is published is as likely up to a factor e^ε.
///
/// It is shown with five digits, or with as many places as a format asks for (`{:.2}`), and always rounded
/// up: what is shown is never below what holds.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Epsilon(f64);

impl Epsilon {
    pub(super) fn new(epsilon: f64) -> Self {
        Self(epsilon)
    }

    /// The number, not rounded; infinite without a bound.
    pub fn value(self) -> f64 {
        self.0
    }

    /// Returns whether there is any bound.
    pub fn is_bound(self) -> bool {
        self.0.is_finite()
    }
}

impl fmt::Display for Epsilon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_bound() {
            return f.pad("no bound");
        }
        let places = f.precision().unwrap_or_else(|| {
            // Rounding up can have carried into another digit: 0.999999 is shown as 1.0000.
            let shown = rounded_up(self.0, places(self.0));
            places(shown.parse().unwrap_or(self.0))
        });
        f.write_str(&rounded_up(self.0, places))
    }
}

/// Places after the point of a number with five digits; of one below 10⁻⁴ as of that.
fn places(number: f64) -> usize {
    let exponent = libm::floor(libm::log10(number.max(1e-4))) as i32;
    (DIGITS - 1 - exponent).max(0) as usize
}

/// The smallest decimal number with so many places that is not below `number`, which is not negative.
fn rounded_up(number: f64, places: usize) -> String {
    let nearest = format!("{number:.places$}");
    let below = nearest.parse::<f64>().is_ok_and(|shown| shown < number);
    if below { increased(&nearest) } else { nearest }
}

/// A decimal number plus one in its last place.
fn increased(decimal: &str) -> String {
    let mut digits: Vec<u8> = decimal.bytes().collect();
    for digit in digits.iter_mut().rev().filter(|digit| **digit != b'.') {
        if *digit < b'9' {
            *digit += 1;
            return String::from_utf8_lossy(&digits).into_owned();
        }
        *digit = b'0';
    }
    format!("1{}", String::from_utf8_lossy(&digits))
}
