//! Reading of the numbers of a column that do not stand alone in their cells.

#![deny(clippy::wildcard_enum_match_arm)]

use super::{Censored, DateForm, Day, LocalNames, ReadCells, Schema};
use crate::data::Format;

/// Texts that may stand around the numbers of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasuredColumn<'a> {
    /// Texts before or behind a number that are left out.
    pub units: Vec<&'a str>,
    /// Treatment of a bound.
    pub censored: Option<Censored>,
    /// Of dates: the day that counts as 0, and their form where that is named.
    pub dates: Option<(Day, Option<DateForm>)>,
}

impl Schema {
    /// Returns how the numbers of a column are read, by its agreed name: what is agreed of it, and what a file says
    /// of it by itself.
    pub fn measured<'a>(&'a self, column: &str, local: &'a LocalNames) -> MeasuredColumn<'a> {
        let feature = self.columns().find(|(name, _)| *name == column);
        let quantity = feature.and_then(|(_, feature)| match feature.kind.cells() {
            ReadCells::Numbers { agreed, .. } => Some(agreed),
            ReadCells::Days(_) | ReadCells::Levels(_) => None,
        });
        let days = feature.and_then(|(_, feature)| match feature.kind.cells() {
            ReadCells::Days(days) => Some(days.since),
            ReadCells::Numbers { .. } | ReadCells::Levels(_) => None,
        });
        let target = Some(&self.target).filter(|_| feature.is_none());
        let target = target.filter(|target| target.name.iter().any(|name| name == column));
        let unit = match (quantity, target) {
            (Some(quantity), _) => quantity.unit.as_deref(),
            (None, target) => target.and_then(|target| target.unit.as_deref()),
        };
        let own = local.units.get(column).map(String::as_str);
        MeasuredColumn {
            dates: days.map(|since| (since, local.dates.get(column).copied())),
            units: unit.into_iter().chain(own).collect(),
            censored: match quantity {
                Some(quantity) => quantity.censored,
                None => target.and_then(|target| target.censored),
            },
        }
    }
}

impl MeasuredColumn<'_> {
    /// The number of a cell; `None` where it is none, has another unit, or is a bound for which there is no
    /// rule.
    pub fn number(&self, format: &Format, text: &str) -> Option<f64> {
        if let Some((since, form)) = self.dates {
            return DateForm::day(form, text).map(|day| day.days_since(since));
        }
        if let Some(number) = format.number(text) {
            return Some(number);
        }
        if self.units.is_empty() && self.censored.is_none() {
            return None;
        }
        match format.with_units(text, self.units.iter().copied())? {
            (number, None) => Some(number),
            (limit, Some(bound)) => Some(self.censored?.number(limit, bound)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreed_and_local_units_are_left_out_and_bounds_are_computed() {
        let schema: Schema = toml::from_str(
            "[target]\nname = \"dose\"\nunit = \"g\"\n\
             [[feature]]\nname = \"lab\"\nunit = \"mg\"\ncensored = \"half\"\n\
             [[feature]]\nname = \"other\"\n",
        )
        .expect("a schema");
        let mut local = LocalNames::default();
        local.units.insert("lab".into(), "MG".into());
        let read = |column: &str, text: &str| {
            let measured = schema.measured(column, &local);
            measured.number(&Format::default(), text)
        };
        for (column, text, expected) in [
            ("lab", "2.55", Some(2.55)),
            ("lab", "2.55 mg", Some(2.55)),
            ("lab", "2.55MG", Some(2.55)),
            ("lab", "<0.5 mg", Some(0.25)),
            ("lab", ">100", Some(100.0)),
            ("lab", "2.55 g", None),
            ("lab", "many", None),
            ("other", "2.55MG", None),
            ("other", "<0.5", None),
            ("dose", "2 g", Some(2.0)),
            ("dose", "<2", None),
        ] {
            assert_eq!(read(column, text), expected, "{column} {text}");
        }
    }
}
