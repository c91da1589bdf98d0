//! A feature column as files and agreements write it: one table, whose keys depend on its `type`.

#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::censored::Censored;
use super::column::{ColumnNames, ColumnType, FeatureColumns, Levels, MissingRule, Quantity};
use super::day::{Day, Days};
use super::part::DatePart;

/// What the cells of a column hold.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ColumnType")]
enum WrittenType {
    /// Any finite number.
    #[default]
    Number,
    /// A whole number.
    Integer,
    /// A day, as the number of days since `since`, or as `parts` of it.
    Date,
    /// One of the `levels`.
    Category,
}

/// One feature column, or several with the same description.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    /// The column's name, or a list of names of columns with the same description.
    name: ColumnNames,
    /// What its cells hold: `"number"` (the default), `"integer"`, `"date"` or `"category"`.
    #[serde(default, rename = "type")]
    kind: WrittenType,
    /// The unit of its numbers, as text; in the files it may stand before or behind each number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Smallest and largest number that it may hold; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// How a value is read that could not be measured, such as `<0.5` or `>100`: as the `"limit"`, or as
    /// `"half"` of a lower one. By default a file with such a value is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    censored: Option<Censored>,
    /// The day of a date that counts as 0, such as "2020-01-01".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Day>,
    /// The last day that a date may be, and `since` the first; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<Day>,
    /// The features that a date becomes, in this order: its `"days"` since `since` (the default), its `"year"`, both
    /// numbers; its `"month"`, its `"weekday"`, both as levels like those of a category; and its `"day-of-year"`, as
    /// sine and cosine of 2π × days since the first of January / days of the year, for seasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<DatePart>>,
    /// All values of a category, in order. The first is the one that the others are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<String>>,
    /// True if values outside `levels` count as one more level, `other`, instead of being refused;
    /// false by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    other: bool,
    /// What becomes of a missing value: `"refuse"` the file (the default), `"drop"` the row,
    /// `"mean"`, `"median"` or `"indicator"` (mean, and a column that says that it was missing), or
    /// `"middle"` of the agreed range or `"middle-indicator"`, which look at no row.
    #[serde(default)]
    missing: MissingRule,
}

impl TryFrom<Written> for FeatureColumns {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written {
            name,
            kind,
            unit,
            range,
            censored,
            since,
            until,
            parts,
            levels,
            other,
            missing,
        } = written;
        let first = name.iter().next().unwrap_or_default().to_owned();
        let wrong = |text: &str| Err(format!("the column {first:?}: {text}"));
        let quantity = Quantity {
            unit,
            range,
            censored,
        };
        let (numbers, dates, category) = match kind {
            WrittenType::Number | WrittenType::Integer => (true, false, false),
            WrittenType::Date => (false, true, false),
            WrittenType::Category => (false, false, true),
        };
        if category && levels.is_none() {
            return wrong("a category needs `levels`");
        }
        if parts.as_ref().is_some_and(Vec::is_empty) {
            return wrong("`parts` is empty: name at least one, such as \"days\"");
        }
        for (there, fits, what) in [
            (
                levels.is_some(),
                category,
                "`levels` go with `type = \"category\"`",
            ),
            (other, category, "`other` goes with `type = \"category\"`"),
            (
                quantity.range.is_some() || quantity.unit.is_some(),
                numbers,
                "`range` and `unit` go with numbers",
            ),
            (
                quantity.censored.is_some(),
                numbers,
                "`censored` goes with numbers",
            ),
            (
                since.is_some() || until.is_some() || parts.is_some(),
                dates,
                "`since`, `until` and `parts` go with `type = \"date\"`",
            ),
        ] {
            if there && !fits {
                return wrong(what);
            }
        }
        let kind = match kind {
            WrittenType::Number => ColumnType::Number(quantity),
            WrittenType::Integer => ColumnType::Integer(quantity),
            WrittenType::Date => match since {
                Some(since) => ColumnType::Date(Days {
                    since,
                    until,
                    parts: parts.unwrap_or_else(DatePart::by_default),
                }),
                None => return wrong("a date needs `since`, the day that counts as 0"),
            },
            WrittenType::Category => ColumnType::Category(Levels {
                listed: levels.unwrap_or_default(),
                other,
            }),
        };
        Ok(Self {
            name,
            kind,
            missing,
        })
    }
}

impl From<FeatureColumns> for Written {
    fn from(columns: FeatureColumns) -> Self {
        let FeatureColumns {
            name,
            kind,
            missing,
        } = columns;
        let mut own = Self {
            name,
            kind: WrittenType::Number,
            unit: None,
            range: None,
            censored: None,
            since: None,
            until: None,
            parts: None,
            levels: None,
            other: false,
            missing,
        };
        let quantity = match kind {
            ColumnType::Number(quantity) => quantity,
            ColumnType::Integer(quantity) => {
                own.kind = WrittenType::Integer;
                quantity
            }
            ColumnType::Date(Days {
                since,
                until,
                parts,
            }) => {
                own.kind = WrittenType::Date;
                (own.since, own.until) = (Some(since), until);
                // The default is not written, so that an agreement that names none keeps its id.
                own.parts = Some(parts).filter(|parts| *parts != DatePart::by_default());
                return own;
            }
            ColumnType::Category(Levels { listed, other }) => {
                own.kind = WrittenType::Category;
                (own.levels, own.other) = (Some(listed), other);
                return own;
            }
        };
        Self {
            unit: quantity.unit,
            range: quantity.range,
            censored: quantity.censored,
            ..own
        }
    }
}

impl<'de> Deserialize<'de> for FeatureColumns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?
            .try_into()
            .map_err(D::Error::custom)
    }
}

impl Serialize for FeatureColumns {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Written::from(self.clone()).serialize(serializer)
    }
}

impl JsonSchema for FeatureColumns {
    fn schema_name() -> Cow<'static, str> {
        "FeatureColumns".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}
