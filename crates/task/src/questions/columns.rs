//! The columns of rows, one number for each row, wherever the rows come from. One is made at a time.

use std::collections::BTreeMap;

use crate::data::{DataSet, Table, Target};
use crate::schema::{ColumnFeature, FeatureColumns, FeatureValues, ReadCells, Schema};

/// Most numbers to predict that are looked at.
const TARGETS: usize = 4;

/// One column of all rows.
#[derive(Debug, Clone)]
pub(crate) struct RowColumn {
    /// For each row a number, or the place of its level; NaN where there is none.
    pub(crate) values: Vec<f64>,
    /// Kind of values.
    pub(crate) kind: RowValues,
}

/// Kind of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowValues {
    /// Numbers.
    Numbers,
    /// Places of texts that look like codes.
    Codes,
    /// Places of other texts.
    Texts,
}

impl RowColumn {
    /// A column of texts, empty where there is none.
    pub(crate) fn of_texts(cells: &[&str]) -> Self {
        let mut places: BTreeMap<&str, f64> = cells
            .iter()
            .filter(|cell| !cell.is_empty())
            .map(|cell| (*cell, 0.0))
            .collect();
        let codes = places.keys().filter(|text| is_code(text)).count();
        let kind = match 10 * codes >= 9 * places.len() {
            true => RowValues::Codes,
            false => RowValues::Texts,
        };
        for (at, place) in places.values_mut().enumerate() {
            *place = at as f64;
        }
        let place = |cell: &&str| places.get(cell).copied().unwrap_or(f64::NAN);
        Self {
            values: cells.iter().map(place).collect(),
            kind,
        }
    }

    /// The different numbers, ascending, each with its rows.
    pub(super) fn counted(&self) -> Vec<(f64, usize)> {
        let there = self.values.iter().filter(|value| !value.is_nan());
        let mut values: Vec<f64> = there.copied().collect();
        values.sort_unstable_by(f64::total_cmp);
        let runs = values.chunk_by(|a, b| a == b);
        runs.map(|equal| (equal[0], equal.len())).collect()
    }
}

/// Makes the column at a place.
type MakeColumn<'a> = Box<dyn Fn(usize) -> RowColumn + 'a>;

/// The columns of rows, and what is predicted.
pub(crate) struct RowColumns<'a> {
    /// The names of the columns that may be learned from, in order.
    pub(crate) names: Vec<String>,
    /// Makes one of them.
    pub(crate) column: MakeColumn<'a>,
    /// Targets, to compare rows by.
    pub(crate) targets: Vec<(String, RowColumn)>,
    /// The silo of every row.
    pub(crate) silos: Vec<u32>,
    /// Whose every row is within its silo; empty where nobody knows.
    pub(crate) groups: Vec<u32>,
}

impl<'a> RowColumns<'a> {
    /// The rows of a data set, in its order; `None` without a schema, and of pixels.
    pub(super) fn of(data: &'a DataSet) -> Option<Self> {
        let schema = data.schema.as_ref()?;
        let tables: Vec<&Table> = data.silos.iter().map(|(_, table)| table).collect();
        let first = *tables.iter().find(|table| !table.is_empty())?;
        if matches!(data.target, Target::Mask { .. }) {
            return None;
        }
        let every = |of: &dyn Fn(&Table, usize) -> f64| -> Vec<f64> {
            let rows = tables.iter();
            rows.flat_map(|table| (0..table.len()).map(|row| of(table, row)))
                .collect()
        };
        let outputs = match data.target {
            // A row has an entry, too, where no column says it.
            Target::Survival { .. } => schema.target.name.count(),
            _ => first.targets(0).len(),
        };
        let targets = (0..outputs.min(TARGETS)).map(|at| {
            let name = schema.target.name.iter().nth(at);
            let column = RowColumn {
                values: every(&|table, row| table.targets(row)[at]),
                kind: match (&data.target, at) {
                    (Target::Classes(_), _) | (Target::Survival { .. }, 0) => RowValues::Texts,
                    _ => RowValues::Numbers,
                },
            };
            (name.unwrap_or("the target").to_owned(), column)
        });
        let silos = (0..).zip(&tables);
        let silos = silos.flat_map(|(silo, table)| vec![silo; table.len()]);
        let grouped = tables.iter().all(|table| table.groups.len() == table.len());
        let groups = tables.iter().filter(|_| grouped);
        let (names, places): (Vec<_>, Vec<_>) = places(first, schema).into_iter().unzip();
        Some(Self {
            names,
            targets: targets.collect(),
            silos: silos.collect(),
            groups: groups.flat_map(|table| table.groups.clone()).collect(),
            column: Box::new(move |at| {
                let places: &EncodedPlaces = &places[at];
                let rows = tables.iter();
                let rows = rows.flat_map(|table| (0..table.len()).map(|row| table.row(row)));
                RowColumn {
                    values: rows.map(|row| places.value(row)).collect(),
                    kind: places.kind,
                }
            }),
        })
    }
}

/// Places of a column among the encoded ones.
struct EncodedPlaces {
    kind: RowValues,
    /// The number.
    number: Option<usize>,
    /// The levels but the first.
    levels: Vec<usize>,
    /// The place of the level that stands for all others.
    other: Option<usize>,
}

impl EncodedPlaces {
    fn value(&self, row: &[f64]) -> f64 {
        if let Some(at) = self.number {
            return row[at];
        }
        if self.levels.iter().any(|&at| row[at].is_nan()) {
            return f64::NAN;
        }
        let own = self.levels.iter().position(|&at| row[at] == 1.0);
        let place = own.map_or(0, |own| own + 1);
        match Some(place) == self.other {
            true => f64::NAN,
            false => place as f64,
        }
    }
}

/// The columns of a schema, in order.
fn places(table: &Table, schema: &Schema) -> Vec<(String, EncodedPlaces)> {
    let own = table.columns.iter().enumerate();
    let own: BTreeMap<&str, usize> = own.map(|(at, name)| (name.as_str(), at)).collect();
    let column = |(name, column): (&str, &FeatureColumns)| {
        let feature = telling(name, column.kind.features(name));
        let numbers = feature.numbers();
        let mut places = numbers.iter().filter_map(|name| own.get(name.as_str()));
        let other = match column.kind.cells() {
            ReadCells::Levels(levels) => levels.other.then_some(levels.listed.len()),
            ReadCells::Numbers { .. } | ReadCells::Days(_) => None,
        };
        let places = match &feature.values {
            FeatureValues::Number { .. } => EncodedPlaces {
                kind: RowValues::Numbers,
                number: places.next().copied(),
                levels: Vec::new(),
                other,
            },
            FeatureValues::Levels(levels) => EncodedPlaces {
                kind: match levels[..other.unwrap_or(levels.len())]
                    .iter()
                    .all(|level| is_code(level))
                {
                    true => RowValues::Codes,
                    false => RowValues::Texts,
                },
                number: None,
                levels: places.copied().collect(),
                other,
            },
        };
        (name.to_owned(), places)
    };
    schema.columns().map(column).collect()
}

/// The feature of a column that tells its rows apart best: of the parts of a date the days, else the first.
fn telling(name: &str, features: Vec<ColumnFeature>) -> ColumnFeature {
    let at = features.iter().position(|feature| feature.name == name);
    let mut rest = features.into_iter().skip(at.unwrap_or_default());
    rest.next().expect("no column has an empty list of `parts`")
}

/// Returns true if a text looks like a code: digits, perhaps with letters, and none of the marks that numbers
/// and sentences have.
pub(crate) fn is_code(text: &str) -> bool {
    let mark = |letter: char| letter == '.' || letter == ',' || letter.is_whitespace();
    text.contains(|letter: char| letter.is_ascii_digit()) && !text.contains(mark)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_date_is_one_column_by_the_part_that_tells_most() {
        let places_of = |parts: &str| {
            let text = format!(
                "target = {{ name = \"y\" }}\n[[feature]]\nname = \"d\"\ntype = \"date\"\nsince = \"2020-01-01\"\n\
                 parts = {parts}\n[[feature]]\nname = \"x\"\n"
            );
            let schema: Schema = toml::from_str(&text).unwrap();
            schema.check().unwrap();
            let table = Table::encoded(&schema.encoded());
            let mut places = places(&table, &schema).into_iter();
            let (name, place) = places.next().unwrap();
            assert_eq!((name.as_str(), places.count()), ("d", 1));
            place
        };
        // Numbers come first, then levels.
        let place = places_of("[\"year\", \"days\"]");
        assert_eq!((place.kind, place.number), (RowValues::Numbers, Some(1)));
        let place = places_of("[\"weekday\", \"year\"]");
        assert_eq!((place.kind, place.number), (RowValues::Texts, None));
        assert_eq!(place.levels, [2, 3, 4, 5, 6, 7]);
        let mut tuesday = vec![0.0; 8];
        tuesday[2] = 1.0;
        assert_eq!(place.value(&tuesday), 1.0);
    }
}
