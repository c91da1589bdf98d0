//! Count, mean and spread of numbers, without the loss of digits that a plain sum has.

use super::DataError;

/// Count, mean and spread of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub count: u64,
    /// Sum of the values.
    pub sum: f64,
    /// Mean of the values.
    pub mean: f64,
    /// Sum of squared deviations from the mean.
    pub squares: f64,
}

/// Ratio of deviation and mean below which a plain sum loses digits of the spread.
const NARROW: f64 = 1e-6;
/// Ratio below which the deviation is the rounding error of a constant.
const ROUNDING: f64 = 1e-14;

/// Steps of rounding that are too coarse, in deviations, and the size of numbers from which on that is no
/// noise around a constant.
const STEPS: f64 = 0.25;
const LARGE: f64 = 1e3;

impl Moments {
    /// Computed in two passes, to avoid cancellation; around the first value where the mean has more digits
    /// than the spread.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let (count, sum) = values
            .clone()
            .fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
        let mean = if count == 0 { 0.0 } else { sum / count as f64 };
        let each = values.clone();
        let squares = each
            .map(|value| (value - mean) * (value - mean))
            .sum::<f64>();
        let first = values.clone().next().unwrap_or_default();
        let narrow = (squares / count.max(1) as f64).sqrt();
        if first == 0.0 || narrow > NARROW * mean.abs() {
            return Self {
                count,
                sum,
                mean,
                squares,
            };
        }
        let from_first = || values.clone().map(|value| value - first);
        let apart = from_first().sum::<f64>() / count as f64;
        let mean = first + apart;
        Self {
            count,
            sum: mean * count as f64,
            mean,
            squares: from_first().map(|own| (own - apart).powi(2)).sum(),
        }
    }

    /// Refuses numbers whose spread is lost in single precision, where nothing scales them before they
    /// are rounded to it.
    pub(super) fn must_fit(&self, silo: &str, what: &str, largest: f64) -> Result<(), DataError> {
        let deviation = (self.squares / self.count.max(1) as f64).sqrt();
        let step = largest * f64::from(f32::EPSILON);
        if self.deviation() != deviation || step <= STEPS * deviation || largest < LARGE {
            return Ok(());
        }
        Err(DataError::Config(format!(
            "silo {silo:?}: {what} holds numbers of size {largest:.2e} with a deviation of \
             {deviation:.2e}, and without scaling they are rounded to steps of up to {step:.2e}: use \
             `standardise = \"federation\"` or `\"silo\"`, or subtract a common number from it in the file"
        )))
    }

    /// `√(squares / count)`; 1 for a column that is constant but for rounding.
    pub fn deviation(&self) -> f64 {
        let deviation = (self.squares / self.count.max(1) as f64).sqrt();
        if deviation <= ROUNDING * self.mean.abs() {
            1.0
        } else {
            effective(deviation)
        }
    }
}

/// The largest size of these numbers.
pub(super) fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most, value| most.max(value.abs()))
}

/// The deviation to divide by: 1 where there is none.
pub fn effective(deviation: f64) -> f64 {
    if deviation > 0.0 { deviation } else { 1.0 }
}
