//! From the vector of one unit to integers.

use super::Sensitivity;

/// Partial sums of squares. Their number is part of what makes a unit's integers the same everywhere.
const LANES: usize = 8;

/// Norms between which C must lie, so that neither C/L nor L/C leaves the range of `f64`.
const NORMS: (f64, f64) = (1e-100, 1e100);

/// The norm is not one to clip to.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("vectors clipped to norm {0}: the norm must be between 1e-100 and 1e100")]
pub struct ClipError(pub f64);

/// A vector has another number of coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a unit of {unit} coordinates and a sum of {sum}, for vectors of {expected}: they must be as many"
)]
pub struct LengthError {
    /// Coordinates of the unit.
    pub unit: usize,
    /// Coordinates of the sum, or of the place for the integers.
    pub sum: usize,
    /// Agreed coordinates.
    pub expected: u64,
}

/// Treatment of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// The vector was rounded.
    Whole,
    /// The vector was made shorter, then rounded.
    Clipped,
    /// The vector counts as zero: a number was not finite, or the integers were longer than Δ.
    Zero,
}

/// Clips, divides and rounds the vector of one unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    norm: f64,
    sensitivity: Sensitivity,
}

impl Clip {
    /// To `norm`, C in the formulas.
    ///
    /// # Errors
    ///
    /// If `norm` is not between 10⁻¹⁰⁰ and 10¹⁰⁰.
    pub fn new(norm: f64, sensitivity: Sensitivity) -> Result<Self, ClipError> {
        if !(NORMS.0..=NORMS.1).contains(&norm) {
            return Err(ClipError(norm));
        }
        Ok(Self { norm, sensitivity })
    }

    /// L and Δ.
    pub fn sensitivity(self) -> Sensitivity {
        self.sensitivity
    }

    /// C/L: a sum of integers times this is the sum of the clipped vectors, but for rounding and noise.
    pub fn step(self) -> f64 {
        self.norm / self.sensitivity.steps()
    }

    /// Adds the integers of one unit to `sum`, and says what became of it.
    ///
    /// # Errors
    ///
    /// If the lengths are not the agreed one.
    ///
    /// # Panics
    ///
    /// In builds with overflow checks, if a coordinate of `sum` leaves the range of `i64`: that takes
    /// more than 2⁴⁰ units.
    pub fn add<T: Copy + Into<f64>>(
        self,
        unit: &[T],
        sum: &mut [i64],
    ) -> Result<Unit, LengthError> {
        self.unit(unit, sum, |sum, integer| *sum += integer)
    }

    /// Writes the integers of one unit.
    ///
    /// # Errors
    ///
    /// If the lengths are not the agreed one.
    pub fn integers<T: Copy + Into<f64>>(
        self,
        unit: &[T],
        integers: &mut [i64],
    ) -> Result<Unit, LengthError> {
        self.unit(unit, integers, |place, integer| *place = integer)
    }

    /// Clips one unit, and uses its integers.
    fn unit<T: Copy + Into<f64>>(
        self,
        unit: &[T],
        places: &mut [i64],
        with: impl Fn(&mut i64, i64),
    ) -> Result<Unit, LengthError> {
        let expected = self.sensitivity.dimension();
        if unit.len() != places.len() || unit.len() as u64 != expected {
            return Err(LengthError {
                unit: unit.len(),
                sum: places.len(),
                expected,
            });
        }
        let length = norm(unit);
        let factor = self.sensitivity.steps() / length.max(self.norm);
        let became = if length > self.norm {
            Unit::Clipped
        } else {
            Unit::Whole
        };
        let finite = length.is_finite();
        if finite && self.round(unit, factor, places, &with) {
            return Ok(became);
        }
        places.iter_mut().for_each(|place| with(place, 0));
        Ok(Unit::Zero)
    }

    /// Uses the integers of a unit times a factor, and says whether they have at most norm Δ; if not,
    /// they are not used. Every number is rounded twice, so that no memory for the integers is needed:
    /// first for their norm, then for use.
    ///
    /// With the right factor they are never longer, but for an error of the computed norm.
    pub(super) fn round<T: Copy + Into<f64>>(
        self,
        unit: &[T],
        factor: f64,
        places: &mut [i64],
        with: impl Fn(&mut i64, i64),
    ) -> bool {
        let fits = self.fits(unit, factor);
        if fits {
            for (place, number) in places.iter_mut().zip(unit) {
                with(place, rounded((*number).into(), factor) as i64);
            }
        }
        fits
    }

    /// Returns whether the integers have at most norm Δ.
    fn fits<T: Copy + Into<f64>>(self, unit: &[T], factor: f64) -> bool {
        // Beyond 2^40 a coordinate alone is longer than Δ; below it no sum of squares overflows.
        let mut squares = 0_u128;
        for number in unit {
            let integer = rounded((*number).into(), factor).abs();
            let possible = integer <= (1_u64 << 40) as f64; // not NaN either
            if !possible {
                return false;
            }
            squares += u128::from(integer as u64).pow(2);
        }
        self.sensitivity.holds(squares)
    }
}

/// One coordinate in steps, rounded; ties go to the even integer.
fn rounded(number: f64, factor: f64) -> f64 {
    (number * factor).round_ties_even()
}

/// The Euclidean norm, with the same bits for the same numbers always: coordinate i belongs to partial sum
/// i mod 8, and the partial sums are added in order. Compilers do not reorder additions of `f64`, and do
/// not fuse them with multiplications.
pub(super) fn norm<T: Copy + Into<f64>>(unit: &[T]) -> f64 {
    let mut lanes = [0.0_f64; LANES];
    for numbers in unit.chunks(LANES) {
        for (lane, number) in lanes.iter_mut().zip(numbers) {
            let number: f64 = (*number).into();
            *lane += number * number;
        }
    }
    lanes.iter().sum::<f64>().sqrt()
}
