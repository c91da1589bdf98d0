//! Parts of a date that a model may learn from.

#![deny(clippy::wildcard_enum_match_arm)]

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of a date that a model learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DatePart {
    /// The number of days since `since`.
    Days,
    /// The year, as a number.
    Year,
    /// The month, as a level.
    Month,
    /// The day of the week, as a level.
    Weekday,
    /// The place in the year, as sine and cosine of an angle, so that December is close to January.
    DayOfYear,
}

/// Levels of a month; the others are compared with the first.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Levels of a day of the week; the others are compared with the first.
pub(super) const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

impl DatePart {
    /// Parts of a column that names none: days alone.
    pub(super) fn by_default() -> Vec<Self> {
        vec![Self::Days]
    }

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Days => "days",
            Self::Year => "year",
            Self::Month => "month",
            Self::Weekday => "weekday",
            Self::DayOfYear => "day-of-year",
        }
    }

    /// Returns whether it is a number that follows the days, so that it needs their range and has a median.
    pub(super) fn is_ordered(self) -> bool {
        match self {
            Self::Days | Self::Year => true,
            Self::Month | Self::Weekday | Self::DayOfYear => false,
        }
    }
}
