//! Feature columns: type, unit, range or levels, and the rule for missing values.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt;

use serde::{Deserialize, Serialize};

use super::censored::Censored;
use super::day::Days;

/// The name of a column, or the names of several columns with the same description.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "the name of a column or a list of names is needed"
)]
pub enum ColumnNames {
    /// One column.
    One(String),
    /// Several, in this order.
    Several(Vec<String>),
}

impl ColumnNames {
    /// The names, in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let names = match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        };
        names.iter().map(String::as_str)
    }

    /// One more, described like the others.
    fn push(&mut self, name: String) {
        match self {
            Self::One(first) => *self = Self::Several(vec![std::mem::take(first), name]),
            Self::Several(names) => names.push(name),
        }
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}

impl From<&str> for ColumnNames {
    fn from(name: &str) -> Self {
        Self::One(name.into())
    }
}

/// Content of the cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnType {
    /// Any finite number.
    Number(Quantity),
    /// A whole number.
    Integer(Quantity),
    /// A day, which becomes the number of days since a named one, or parts of the calendar.
    Date(Days),
    /// A value out of a list.
    Category(Levels),
}

/// Agreed properties of the numbers of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Quantity {
    /// Unit of the numbers, as text.
    pub unit: Option<String>,
    /// Smallest and largest number that the column may hold; `None`: any.
    pub range: Option<[f64; 2]>,
    /// Treatment of a bound such as `<0.5`; `None`: it is refused.
    pub censored: Option<Censored>,
}

/// The values of a category.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// All values, in order. The first is the one that the others are compared with.
    pub listed: Vec<String>,
    /// True if values that are not listed count as one more level instead of being refused.
    pub other: bool,
}

impl Levels {
    /// The levels, last the one that stands for all others where there is one.
    pub fn all(&self) -> Vec<String> {
        let mut other = OTHER.to_owned();
        // A real level may have that name.
        while self.listed.contains(&other) {
            other = format!("any {other}");
        }
        let listed = self.listed.iter().cloned();
        listed.chain(self.other.then_some(other)).collect()
    }
}

/// Way of reading the cells of a column. Whatever depends on it matches every way by name, so that the compiler
/// finds all places that a further one concerns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReadCells<'a> {
    /// As numbers of which this is agreed, whole ones only or any.
    Numbers {
        /// Their agreed properties.
        agreed: &'a Quantity,
        /// True if they have to be whole.
        whole: bool,
    },
    /// As days of which this is agreed.
    Days(&'a Days),
    /// As one of these levels.
    Levels(&'a Levels),
}

impl ColumnType {
    /// Returns how its cells are read.
    pub fn cells(&self) -> ReadCells<'_> {
        match self {
            Self::Number(agreed) => ReadCells::Numbers {
                agreed,
                whole: false,
            },
            Self::Integer(agreed) => ReadCells::Numbers {
                agreed,
                whole: true,
            },
            Self::Date(days) => ReadCells::Days(days),
            Self::Category(levels) => ReadCells::Levels(levels),
        }
    }
}

/// In words, such as `a whole number in years, 18 to 110` or `one of a, b, or another`.
impl fmt::Display for ColumnType {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantity {
            unit,
            range,
            censored,
        } = match self {
            Self::Category(Levels { listed, other }) => {
                let other = if *other { ", or another" } else { "" };
                return write!(text, "one of {}{other}", listed.join(", "));
            }
            Self::Date(days) => return write!(text, "{days}"),
            Self::Number(quantity) => {
                text.write_str("a number")?;
                quantity
            }
            Self::Integer(quantity) => {
                text.write_str("a whole number")?;
                quantity
            }
        };
        if let Some(unit) = unit {
            write!(text, " in {unit}")?;
        }
        if let Some([low, high]) = range {
            write!(text, ", {low} to {high}")?;
        }
        match censored {
            Some(rule) => write!(text, ", {rule}"),
            None => Ok(()),
        }
    }
}

/// What becomes of a missing value in a column.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum MissingRule {
    /// The file is refused.
    #[default]
    Refuse,
    /// The row is left out.
    Drop,
    /// The mean of the silo's training rows takes its place; of a category, the share of each level.
    Mean,
    /// The median of the silo's training rows takes its place.
    Median,
    /// The mean takes its place, and one more column says with 0 or 1 that it was missing.
    Indicator,
    /// The middle of the agreed range takes its place; of a category, half of each level. It looks at no
    /// row, so that rounds with noise can use it.
    Middle,
    /// The middle takes its place, and one more column says with 0 or 1 that it was missing.
    MiddleIndicator,
}

impl MissingRule {
    /// Returns whether one more column says that a value was missing.
    pub fn marks(self) -> bool {
        matches!(self, Self::Indicator | Self::MiddleIndicator)
    }

    /// Returns whether the middle of what is agreed takes the place of a missing value.
    pub fn is_middle(self) -> bool {
        matches!(self, Self::Middle | Self::MiddleIndicator)
    }

    /// Returns whether what takes the place of a missing value follows from rows.
    pub fn looks_at_rows(self) -> bool {
        matches!(self, Self::Mean | Self::Median | Self::Indicator)
    }
}

/// One feature column, or several with the same description.
#[derive(Debug, Clone, PartialEq)]
pub struct FeatureColumns {
    /// The column's name, or the names of columns with the same description.
    pub name: ColumnNames,
    /// Content of its cells.
    pub kind: ColumnType,
    /// Treatment of a missing value.
    pub missing: MissingRule,
}

/// The columns in shorter form: adjacent number columns with the same description become one entry with
/// several names.
pub fn merged(columns: impl IntoIterator<Item = FeatureColumns>) -> Vec<FeatureColumns> {
    let mut merged: Vec<FeatureColumns> = Vec::new();
    for column in columns {
        let same = merged.last_mut().filter(|last| last.describes_as(&column));
        match (same, column.kind.cells()) {
            (Some(last), ReadCells::Numbers { .. } | ReadCells::Days(_)) => column
                .name
                .iter()
                .for_each(|name| last.name.push(name.into())),
            (Some(_), ReadCells::Levels(_)) | (None, _) => merged.push(column),
        }
    }
    merged
}

/// Name of the level that stands for all values that are not listed; `any other` where that is a level.
const OTHER: &str = "other";
/// Most characters of a level: longer texts are no names of anything.
pub const LEVEL: usize = 64;

impl FeatureColumns {
    /// Number columns, without missing values.
    pub fn numbers(name: ColumnNames) -> Self {
        Self {
            name,
            kind: ColumnType::Number(Quantity::default()),
            missing: MissingRule::Refuse,
        }
    }

    /// A category column, without missing values and other levels.
    pub fn category(name: &str, listed: Vec<String>) -> Self {
        let other = false;
        Self {
            kind: ColumnType::Category(Levels { listed, other }),
            ..Self::numbers(name.into())
        }
    }

    /// Returns whether the other differs in its names only.
    fn describes_as(&self, other: &Self) -> bool {
        (&self.kind, self.missing) == (&other.kind, other.missing)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let name = self.name.iter().next().ok_or("a `feature` has no name")?;
        let wrong = match &self.kind {
            ColumnType::Number(Quantity { range: None, .. })
            | ColumnType::Integer(Quantity { range: None, .. })
                if self.missing.is_middle() =>
            {
                Err("`missing = \"middle\"` is the middle of its `range`, which it lacks".into())
            }
            ColumnType::Number(quantity) | ColumnType::Integer(quantity) => quantity.check(),
            ColumnType::Date(days) if self.missing.is_middle() && !days.has_ranges() => Err(
                "`missing = \"middle\"` is the middle from `since` to `until`, which it lacks"
                    .into(),
            ),
            ColumnType::Date(days)
                if self.missing == MissingRule::Median && !days.has_medians() =>
            {
                Err(
                    "`missing = \"median\"` goes with \"days\" and \"year\" of `parts` alone: the others have no \
                     order"
                        .into(),
                )
            }
            ColumnType::Date(days) => days.check(),
            ColumnType::Category(_) if self.missing == MissingRule::Median => {
                Err("`missing = \"median\"` goes with numbers".into())
            }
            ColumnType::Category(levels) => levels.check(),
        };
        wrong.map_err(|text| format!("the column {name:?}: {text}"))
    }
}

impl Quantity {
    fn check(&self) -> Result<(), String> {
        match self.range {
            Some([low, high]) if !(low.is_finite() && high.is_finite() && low < high) => {
                Err("`range` needs two numbers, the smaller one first".into())
            }
            Some(_) | None => Ok(()),
        }
    }
}

impl Levels {
    fn check(&self) -> Result<(), String> {
        let mut levels = self.all();
        if levels.len() < 2 {
            return Err("a category needs at least two levels".into());
        }
        let long = |level: &&String| level.chars().count() > LEVEL;
        if let Some(level) = levels.iter().find(long) {
            let start: String = level.chars().take(24).collect();
            return Err(format!(
                "a level has {} characters, and {LEVEL} are the most ({start:?}…): is it a row, or free \
                 text? Leave the column out, or the level to `other`",
                level.chars().count()
            ));
        }
        if let Some(level) = levels.iter().find(|level| level.contains(char::is_control)) {
            return Err(format!(
                "the level {level:?} goes over several lines or has control characters: is a quotation \
                 mark never closed in the file that it is from?"
            ));
        }
        levels.sort_unstable();
        match levels.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(format!("the level {:?} is there twice", twice[0])),
            None => Ok(()),
        }
    }
}
