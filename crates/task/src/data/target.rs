//! Targets of prediction.

/// The kind of target.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// A number, in some unit.
    Number {
        /// The unit in words, for reports.
        unit: String,
    },
    /// A class of at least two, by index.
    Classes(Vec<String>),
    /// Several numbers, all in one unit and on one scale.
    Numbers {
        /// The unit in words, for reports.
        unit: String,
        /// Count of numbers, at least 1.
        count: usize,
    },
    /// For every pixel of an image whether it belongs to an object, 1 or 0.
    Mask {
        /// Number of pixels, at least 1.
        pixels: usize,
    },
    /// A time to an event, or to the end of observation: three numbers a row, see
    /// [`survival`](crate::survival).
    Survival {
        /// The unit of times in words, for reports.
        unit: String,
        /// Times at which survival is predicted, in ascending order; none if nothing is agreed.
        at: Vec<f64>,
    },
}
