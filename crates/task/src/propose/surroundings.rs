//! Counts what stands around the numbers of a column.

use std::collections::BTreeMap;

use crate::data::Format;

/// Counts of the texts around numbers.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct AroundNumbers {
    /// Cells with each unit, and the first of them.
    pub(super) units: BTreeMap<String, (usize, String)>,
    /// Cells that are bounds, and the first of them.
    pub(super) bounds: Option<(usize, String)>,
    /// Cells with a unit, with a bound or with both.
    pub(super) cells: usize,
    /// The different numbers among them.
    pub(super) numbers: Vec<f64>,
}

impl AroundNumbers {
    /// Counts `times` cells that hold this text, which is no plain number.
    pub(super) fn add(&mut self, format: &Format, text: &str, times: usize) {
        let Some(found) = format.around(text) else {
            return;
        };
        self.cells += times;
        self.numbers.push(found.value);
        let first = || (0, text.to_owned());
        if found.bound.is_some() {
            self.bounds.get_or_insert_with(first).0 += times;
        }
        if let Some(unit) = found.unit {
            self.units.entry(unit).or_insert_with(first).0 += times;
        }
    }
}
