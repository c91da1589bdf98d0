//! Bounds by the noise of federations.

use lab::compare::{ComparisonRow, VariantTable};
use lab::summary::NO_BOUND;

use super::cells::TextTable;

/// ε, with what holds if all others collude, and δ of every strategy with noise; `None`
/// without one.
pub(super) fn table(variant: &VariantTable) -> Option<TextTable> {
    let bound = |value: Option<f64>| value.map_or_else(|| NO_BOUND.into(), above);
    let cells = |row: &ComparisonRow| {
        let noise = row.noise.as_ref()?;
        Some(vec![
            row.label.clone(),
            bound(noise.epsilon),
            bound(noise.epsilon_alone),
            format!("{:e}", noise.delta),
        ])
    };
    let rows: Vec<_> = variant.strategies.iter().filter_map(cells).collect();
    let columns = ["", "epsilon", "epsilon_alone", "delta"];
    (!rows.is_empty()).then(|| TextTable {
        title: "privacy loss of all rounds together".into(),
        note: "epsilon: if no more members collude than agreed. epsilon_alone: if all others do. Settings with \
               noise are not tuned on rows, and the result is that of the last round."
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        ..TextTable::default()
    })
}

/// The number, never below what it is, with four decimals.
pub(super) fn above(value: f64) -> String {
    let shown = (value * 1e4).ceil() / 1e4;
    format!("{shown:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_never_shown_below_what_it_is() {
        assert_eq!(above(0.99981), "0.9999");
        assert_eq!(above(1.46511), "1.4652");
        assert_eq!(above(2.0), "2.0000");
    }
}
