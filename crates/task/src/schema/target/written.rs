//! The column to predict as files and agreements write it: one table, whose keys depend on what is predicted.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::super::{Censored, ColumnNames};
use super::{ClassValues, TargetColumn};
use crate::data::Rule;

/// What is predicted.
///
/// - A number: `name`, and `unit` and `range` where they are known.
/// - Classes: `classes` with all their values, and `positive`, the class whose probability a model of
///   two classes gives.
/// - Two classes of a number: `rule`, such as `"> 0"`, holds for the positive class.
/// - Several numbers in one unit: a list as `name`.
/// - The pixels of a mask, each 0 or 1: a list as `name`, and `mask = true`.
/// - A time to an event: `event` and `time` in place of `name`, and `entry` where rows are not observed from the
///   beginning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenTarget {
    /// The column's name; or a list of columns, for several numbers or a mask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<ColumnNames>,
    /// The column that says whether the event was observed: 1, or 0 where observation ended without it (censored).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    /// The column of the time at which the event happened or observation ended: a number above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// The column of the time from which a row is observed (left truncation), on the same scale and before `time`;
    /// by default all rows are observed from the beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<String>,
    /// Times at which survival is predicted, in ascending order, such as `[365, 1826]`. The last one is the time
    /// up to which `integrated-brier` is measured, and that of `calibration-at-time`; by default each institution
    /// takes its last event time at which a tenth of its training rows are at risk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at: Vec<f64>,
    /// The unit of a number, for reports; by default `units of NAME`. In the files it may stand before or
    /// behind each number. Of a time to an event that of its times; by default the name of that column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Smallest and largest number that it may hold; by default any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<[f64; 2]>,
    /// How a number is read that could not be measured, such as `<0.5` or `>100`: as the `"limit"`, or as
    /// `"half"` of a lower one. By default a file with such a value is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    censored: Option<Censored>,
    /// The classes: for each its value, or `{ name, values }` where several values mean one class.
    /// Any other value is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<ClassValues>>,
    /// The positive one of two classes; by default the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    positive: Option<String>,
    /// The numbers of the positive class: `>`, `>=`, `<` or `<=` and a number. The others are of
    /// the other class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Rule>,
    /// True if the columns are the pixels of a mask, row by row; false by default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    mask: bool,
}

impl TryFrom<WrittenTarget> for TargetColumn {
    type Error = String;

    fn try_from(written: WrittenTarget) -> Result<Self, String> {
        let WrittenTarget {
            name,
            event,
            time,
            entry,
            at,
            unit,
            range,
            censored,
            classes,
            positive,
            rule,
            mask,
        } = written;
        let columns = match (name, event, time) {
            (Some(name), None, None) if entry.is_none() && at.is_empty() => Self {
                name,
                ..Self::number("", None)
            },
            (None, Some(event), Some(time)) => Self {
                at,
                ..Self::survival(&event, &time, entry.as_deref())
            },
            (None, None, None) if entry.is_none() && at.is_empty() => {
                return Err(
                    "`target` needs the `name` of a column, or the columns of an `event` and its `time`".into(),
                );
            }
            (Some(_), _, _) => {
                return Err(
                    "`name` does not go with `event`, `time`, `entry` and `at`, which are of a time to an event: \
                     write `event` and `time` in its place"
                        .into(),
                );
            }
            (None, _, _) => {
                return Err(
                    "a time to an event needs both columns: `event`, which is 1 or 0 (censored), and `time`".into(),
                );
            }
        };
        Ok(Self {
            unit,
            range,
            censored,
            classes,
            positive,
            rule,
            mask,
            ..columns
        })
    }
}

impl From<TargetColumn> for WrittenTarget {
    fn from(column: TargetColumn) -> Self {
        let TargetColumn {
            name,
            unit,
            range,
            censored,
            classes,
            positive,
            rule,
            mask,
            survival,
            at,
        } = column;
        let of_event = |place: usize| {
            let name = name.iter().nth(place).filter(|_| survival);
            name.map(str::to_owned)
        };
        Self {
            event: of_event(0),
            time: of_event(1),
            entry: of_event(2),
            name: Some(name).filter(|_| !survival),
            at,
            unit,
            range,
            censored,
            classes,
            positive,
            rule,
            mask,
        }
    }
}

impl JsonSchema for TargetColumn {
    fn schema_name() -> Cow<'static, str> {
        "TargetColumn".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WrittenTarget::json_schema(generator)
    }
}
