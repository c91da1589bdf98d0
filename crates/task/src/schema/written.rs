//! A feature column as files and agreements write it: one table, whose keys depend on its `type`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::censored::Censored;
use super::column::{ColumnNames, ColumnType, FeatureColumns, Levels, MissingRule, Quantity};

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
    /// One of the `levels`.
    Category,
}

/// One feature column, or several with the same description.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    /// The column's name, or a list of names of columns with the same description.
    name: ColumnNames,
    /// What its cells hold: `"number"` (the default), `"integer"` or `"category"`.
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
    /// All values of a category, in order. The first is the one that the others are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<Vec<String>>,
    /// Whether values outside `levels` count as one more level, `other`, instead of being refused;
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
            levels,
            other,
            missing,
        } = written;
        let first = name.iter().next().unwrap_or_default().to_owned();
        let wrong = |text: &str| Err(format!("the column {first:?}: {text}"));
        let category = kind == WrittenType::Category;
        let kind = match (kind, levels) {
            (WrittenType::Category, None) => return wrong("a category needs `levels`"),
            (_, Some(_)) if !category => return wrong("`levels` go with `type = \"category\"`"),
            _ if other && !category => return wrong("`other` goes with `type = \"category\"`"),
            _ if category && (range.is_some() || unit.is_some()) => {
                return wrong("`range` and `unit` go with numbers");
            }
            _ if category && censored.is_some() => {
                return wrong("`censored` goes with numbers");
            }
            (_, Some(listed)) => ColumnType::Category(Levels { listed, other }),
            (kind, None) => {
                let quantity = Quantity {
                    unit,
                    range,
                    censored,
                };
                match kind {
                    WrittenType::Integer => ColumnType::Integer(quantity),
                    _ => ColumnType::Number(quantity),
                }
            }
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
