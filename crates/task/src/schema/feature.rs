//! Features that a column becomes, each one number or one number per level.

#![deny(clippy::wildcard_enum_match_arm)]

/// A feature that a column becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnFeature {
    /// The column's name; of a part of a date also the part's, as `admitted year`.
    pub name: String,
    /// Its values.
    pub values: FeatureValues,
}

/// Values of a feature.
#[derive(Debug, Clone, PartialEq)]
pub enum FeatureValues {
    /// A number.
    Number {
        /// The smallest and the largest that are agreed on; `None`: any.
        range: Option<[f64; 2]>,
    },
    /// One of these levels, as one number of 0 or 1 for each but the first.
    Levels(Vec<String>),
}

/// Range of a number that says whether a row has a level.
pub(super) const SHARE: [f64; 2] = [0.0, 1.0];

impl ColumnFeature {
    /// Names of its numbers, in order: its own, or `name=level` for every level but the first.
    pub fn numbers(&self) -> Vec<String> {
        match &self.values {
            FeatureValues::Number { .. } => vec![self.name.clone()],
            FeatureValues::Levels(levels) => {
                let compared = levels.iter().skip(1);
                compared
                    .map(|level| format!("{}={level}", self.name))
                    .collect()
            }
        }
    }

    /// The smallest and the largest value of each of its numbers; `None`: any.
    pub fn range(&self) -> Option<[f64; 2]> {
        match &self.values {
            FeatureValues::Number { range } => *range,
            FeatureValues::Levels(_) => Some(SHARE),
        }
    }
}

/// The number halfway between two.
pub(super) fn middle_of([low, high]: [f64; 2]) -> f64 {
    f64::midpoint(low, high)
}

/// Encoded cells of one or several columns: in a row all plain numbers come first, then those of levels.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct EncodedCells {
    /// Plain numbers; NaN for a missing one.
    pub(super) numbers: Vec<f64>,
    /// Numbers of levels, one for each but the first of a feature.
    pub(super) levels: Vec<f64>,
}

impl EncodedCells {
    /// Adds a plain number; `None` for a missing one.
    pub(super) fn number(&mut self, number: Option<f64>) {
        self.numbers.push(number.unwrap_or(f64::NAN));
    }

    /// Adds a level by its place among so many; `None` for a missing one.
    pub(super) fn level(&mut self, count: usize, place: Option<usize>) {
        let number = |level| place.map_or(f64::NAN, |place| f64::from(level == place));
        self.levels.extend((1..count).map(number));
    }

    /// Adds the same share of so many levels.
    pub(super) fn share(&mut self, count: usize, share: f64) {
        self.levels.extend((1..count).map(|_| share));
    }

    /// Adds all of another one behind these.
    pub(super) fn extend(&mut self, other: &Self) {
        self.numbers.extend(&other.numbers);
        self.levels.extend(&other.levels);
    }
}
