//! Feature columns: type, unit, range or levels, and the rule for missing values.

use serde::{Deserialize, Serialize};

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

    /// How many there are.
    pub fn count(&self) -> usize {
        self.iter().count()
    }
}

impl From<&str> for ColumnNames {
    fn from(name: &str) -> Self {
        Self::One(name.into())
    }
}

/// What the cells of a column hold.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnType {
    /// Any finite number.
    #[default]
    Number,
    /// A whole number.
    Integer,
    /// One of the `levels`.
    Category,
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
}

/// One feature column, or several with the same description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureColumns {
    /// The column's name, or a list of names of columns with the same description.
    pub name: ColumnNames,
    /// What its cells hold: `"number"` (the default), `"integer"` or `"category"`.
    #[serde(default, rename = "type")]
    pub kind: ColumnType,
    /// The unit of its numbers, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Smallest and largest number that it may hold; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// All values of a category, in order. The first is the one that the others are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<String>>,
    /// Whether values outside `levels` count as one more level, `other`, instead of being refused;
    /// false by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub other: bool,
    /// What becomes of a missing value: `"refuse"` the file (the default), `"drop"` the row,
    /// `"mean"`, `"median"` or `"indicator"` (mean, and a column that says that it was missing).
    #[serde(default)]
    pub missing: MissingRule,
}

/// The same columns; adjacent number columns with the same description become one entry with several
/// names.
pub(crate) fn merged(columns: impl IntoIterator<Item = FeatureColumns>) -> Vec<FeatureColumns> {
    let mut merged: Vec<FeatureColumns> = Vec::new();
    for column in columns {
        let same = merged.last_mut().filter(|last| last.describes_as(&column));
        match same.filter(|last| last.levels.is_none()) {
            Some(last) => column
                .name
                .iter()
                .for_each(|name| last.name.push(name.into())),
            None => merged.push(column),
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
            kind: ColumnType::Number,
            unit: None,
            range: None,
            levels: None,
            other: false,
            missing: MissingRule::Refuse,
        }
    }

    /// A category column, without missing values.
    pub fn category(name: &str, levels: Vec<String>) -> Self {
        Self {
            kind: ColumnType::Category,
            levels: Some(levels),
            ..Self::numbers(name.into())
        }
    }

    /// Whether the other differs in its names only.
    fn describes_as(&self, other: &Self) -> bool {
        let Self {
            name: _,
            kind,
            unit,
            range,
            levels,
            other: others,
            missing,
        } = self;
        (kind, unit, range) == (&other.kind, &other.unit, &other.range)
            && (levels, others, missing) == (&other.levels, &other.other, &other.missing)
    }

    /// The levels, last the one that stands for all others where there is one; none for numbers.
    pub fn all_levels(&self) -> Vec<String> {
        let listed = self.levels.iter().flatten();
        let mut other = OTHER.to_owned();
        // A real level may have that name.
        while listed.clone().any(|level| *level == other) {
            other = format!("any {other}");
        }
        listed.cloned().chain(self.other.then_some(other)).collect()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let name = self.name.iter().next().ok_or("a `feature` has no name")?;
        let of = |text: &str| Err(format!("the column {name:?}: {text}"));
        let category = self.kind == ColumnType::Category;
        match &self.levels {
            None if category => return of("a category needs `levels`"),
            Some(_) if !category => return of("`levels` go with `type = \"category\"`"),
            _ => {}
        }
        let mut levels = self.all_levels();
        if category && levels.len() < 2 {
            return of("a category needs at least two levels");
        }
        let long = |level: &&String| level.chars().count() > LEVEL;
        if let Some(level) = levels.iter().find(long) {
            let start: String = level.chars().take(24).collect();
            return of(&format!(
                "a level has {} characters, and {LEVEL} are the most ({start:?}…): is it a row, or free \
                 text? Leave the column out, or the level to `other`",
                level.chars().count()
            ));
        }
        if let Some(level) = levels.iter().find(|level| level.contains(char::is_control)) {
            return of(&format!(
                "the level {level:?} goes over several lines or has control characters: is a quotation \
                 mark never closed in the file that it is from?"
            ));
        }
        levels.sort_unstable();
        if let Some(twice) = levels.windows(2).find(|pair| pair[0] == pair[1]) {
            return of(&format!("the level {:?} is there twice", twice[0]));
        }
        if self.other && !category {
            return of("`other` goes with `type = \"category\"`");
        }
        if category && (self.range.is_some() || self.unit.is_some()) {
            return of("`range` and `unit` go with numbers");
        }
        if category && self.missing == MissingRule::Median {
            return of("`missing = \"median\"` goes with numbers");
        }
        match self.range {
            Some([low, high]) if !(low.is_finite() && high.is_finite() && low < high) => {
                of("`range` needs two numbers, the smaller one first")
            }
            _ => Ok(()),
        }
    }
}
