//! Features of a column by its type.

#![deny(clippy::wildcard_enum_match_arm)]

use super::column::{ColumnType, ReadCells};
use super::feature::{ColumnFeature, EncodedCells, FeatureValues, middle_of};

impl ColumnType {
    /// Features that a column of this name and type becomes, in order.
    pub fn features(&self, name: &str) -> Vec<ColumnFeature> {
        let of = |values| ColumnFeature {
            name: name.to_owned(),
            values,
        };
        match self.cells() {
            ReadCells::Numbers { agreed, .. } => vec![of(FeatureValues::Number {
                range: agreed.range,
            })],
            ReadCells::Levels(agreed) => vec![of(FeatureValues::Levels(agreed.all()))],
            ReadCells::Days(agreed) => agreed.features(name),
        }
    }

    /// Numbers that take the place of a missing value by agreement alone: the middle of the range, or half of each
    /// level; NaN without a range.
    pub(super) fn middle(&self) -> EncodedCells {
        let mut cells = EncodedCells::default();
        for feature in self.features("") {
            match feature.values {
                FeatureValues::Number { range } => cells.number(range.map(middle_of)),
                FeatureValues::Levels(levels) => cells.share(levels.len(), 0.5),
            }
        }
        cells
    }
}
