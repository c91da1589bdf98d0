//! Days of the calendar, how files write them, and what is agreed about a column of them.

#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::part::DatePart;
use crate::data::{calendar, day_text, days_of, is_leap};

/// A day, as the days since the first of January 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Day(i64);

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let day = DateForm::YearMonthDay.read(text);
        let day = day.filter(|day| day.to_string() == text);
        day.ok_or_else(|| format!("{text:?} is no day: write one as 2024-05-31"))
    }
}

impl TryFrom<String> for Day {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Day> for String {
    fn from(day: Day) -> Self {
        day.to_string()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&day_text(self.0))
    }
}

impl JsonSchema for Day {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Day".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$" })
    }
}

impl Day {
    /// The number of days from another one to this one.
    pub fn days_since(self, other: Self) -> f64 {
        (self.0 - other.0) as f64
    }

    /// The day so many days later.
    pub(super) fn plus(self, days: f64) -> Self {
        Self(self.0.saturating_add(days.round() as i64))
    }

    /// Its place in the calendar.
    pub(super) fn calendar(self) -> CalendarDay {
        let (year, month, _) = calendar(self.0);
        let first = days_of(year, 1, 1).unwrap_or(self.0);
        CalendarDay {
            year,
            month: (month - 1) as usize,
            // The first of January 1970 was a Thursday.
            weekday: (self.0 + 3).rem_euclid(7) as usize,
            day: self.0 - first,
            days: 365 + i64::from(is_leap(year)),
        }
    }
}

/// The place of a day in the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CalendarDay {
    pub(super) year: i64,
    /// From 0 for January to 11.
    pub(super) month: usize,
    /// From 0 for Monday to 6.
    pub(super) weekday: usize,
    /// Days of its year before it, from 0.
    pub(super) day: i64,
    /// Days of its year: 365 or 366.
    pub(super) days: i64,
}

/// The first and the last day of years with four digits.
const FIRST: i64 = -719_162;
const LAST: i64 = 2_932_896;

/// The agreement on the days of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Days {
    /// The day that counts as 0.
    pub since: Day,
    /// The last day that the column may hold, and `since` the first; `None`: any.
    pub until: Option<Day>,
    /// The features that a date becomes, in this order.
    pub parts: Vec<DatePart>,
}

impl Days {
    /// Dates from any time that become the days since this one.
    pub fn since(since: Day) -> Self {
        Self {
            since,
            until: None,
            parts: DatePart::by_default(),
        }
    }

    /// The number of a day.
    pub fn number(&self, day: Day) -> f64 {
        day.days_since(self.since)
    }

    /// The day of a number.
    pub fn day(&self, number: f64) -> Day {
        let day = self.since.plus(number);
        // Those of years with four digits.
        Day(day.0.clamp(FIRST, LAST))
    }

    /// Smallest and largest number that the column may hold; `None`: any.
    pub fn range(&self) -> Option<[f64; 2]> {
        self.until.map(|until| [0.0, self.number(until)])
    }
}

/// A form in which files write dates. A time of day behind the date is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DateForm {
    /// As 2024-05-31.
    #[serde(rename = "YYYY-MM-DD")]
    YearMonthDay,
    /// As 2024/05/31.
    #[serde(rename = "YYYY/MM/DD")]
    YearSlash,
    /// As 20240531.
    #[serde(rename = "YYYYMMDD")]
    Compact,
    /// As 31.05.2024.
    #[serde(rename = "DD.MM.YYYY")]
    DayDot,
    /// As 31-05-2024.
    #[serde(rename = "DD-MM-YYYY")]
    DayDash,
    /// As 31/05/2024.
    #[serde(rename = "DD/MM/YYYY")]
    DaySlash,
    /// As 05/31/2024.
    #[serde(rename = "MM/DD/YYYY")]
    MonthSlash,
}

impl DateForm {
    /// Those that are read without being named: no text is a date in two of them.
    const PLAIN: [Self; 4] = [
        Self::YearMonthDay,
        Self::YearSlash,
        Self::Compact,
        Self::DayDot,
    ];

    /// All of them.
    const ALL: [Self; 7] = [
        Self::YearMonthDay,
        Self::YearSlash,
        Self::Compact,
        Self::DayDot,
        Self::DayDash,
        Self::DaySlash,
        Self::MonthSlash,
    ];

    /// As it is written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::YearMonthDay => "YYYY-MM-DD",
            Self::YearSlash => "YYYY/MM/DD",
            Self::Compact => "YYYYMMDD",
            Self::DayDot => "DD.MM.YYYY",
            Self::DayDash => "DD-MM-YYYY",
            Self::DaySlash => "DD/MM/YYYY",
            Self::MonthSlash => "MM/DD/YYYY",
        }
    }

    /// The day of a text; `None` where it is none in this form.
    fn read(self, text: &str) -> Option<Day> {
        let date = text.split(['T', ' ']).next().unwrap_or_default();
        let (mark, [year, month, day]) = match self {
            Self::YearMonthDay => ('-', [0, 1, 2]),
            Self::YearSlash => ('/', [0, 1, 2]),
            Self::DayDot => ('.', [2, 1, 0]),
            Self::DayDash => ('-', [2, 1, 0]),
            Self::DaySlash => ('/', [2, 1, 0]),
            Self::MonthSlash => ('/', [2, 0, 1]),
            Self::Compact => {
                let digits = (date.len() == 8).then(|| Some((date.get(..4)?, date.get(4..)?)));
                let (year, rest) = digits??;
                return days([year, rest.get(..2)?, rest.get(2..)?]);
            }
        };
        let parts: Vec<&str> = date.split(mark).collect();
        let [_, _, _] = parts[..] else {
            return None;
        };
        days([parts[year], parts[month], parts[day]])
    }

    /// The day of a text in this form, where one is named, or else in one that needs no name.
    pub fn day(named: Option<Self>, text: &str) -> Option<Day> {
        let mut forms = named.into_iter().chain(Self::PLAIN);
        forms.find_map(|form| form.read(text))
    }

    /// The forms in which all of these texts are dates.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<Self> {
        let all = |form: &Self| texts.clone().all(|text| form.read(text).is_some());
        Self::ALL.into_iter().filter(all).collect()
    }
}

impl FromStr for DateForm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|form| form.name() == text);
        named.ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|form| form.name()).collect();
            format!(
                "{text:?} is no form of dates: choose one of {}",
                all.join(", ")
            )
        })
    }
}

/// The day of a year of four digits, and of a month and a day of one or two.
fn days([year, month, day]: [&str; 3]) -> Option<Day> {
    let number = |text: &str, most: usize| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        (digits && (1..=most).contains(&text.len())).then(|| text.parse::<i64>().ok())?
    };
    let year = Some(year).filter(|year| year.len() == 4)?;
    days_of(number(year, 4)?, number(month, 2)?, number(day, 2)?).map(Day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_date_is_read_in_its_form_and_no_plain_one_means_two() {
        let day: Day = "2024-05-31".parse().unwrap();
        for text in [
            "2024-05-31",
            "2024/5/31",
            "20240531",
            "31.05.2024",
            "31.5.2024 12:30",
        ] {
            assert_eq!(DateForm::day(None, text), Some(day), "{text}");
        }
        for text in [
            "31/05/2024",
            "05/31/2024",
            "31-05-2024",
            "31.05.24",
            "2024-13-01",
            "",
            "x",
        ] {
            assert_eq!(DateForm::day(None, text), None, "{text}");
        }
        for (form, text) in [
            (DateForm::DaySlash, "31/05/2024"),
            (DateForm::MonthSlash, "05/31/2024"),
            (DateForm::DayDash, "31-05-2024"),
            (DateForm::DaySlash, "2024-05-31"),
        ] {
            assert_eq!(DateForm::day(Some(form), text), Some(day), "{text}");
            assert_eq!(form.name().parse(), Ok(form));
        }
        assert_eq!(
            DateForm::day(Some(DateForm::MonthSlash), "31/05/2024"),
            None
        );
    }

    #[test]
    fn the_forms_of_a_column_are_those_of_all_of_its_texts() {
        let both = DateForm::of(["01/02/2024", "03/04/2024"].into_iter());
        assert_eq!(both, [DateForm::DaySlash, DateForm::MonthSlash]);
        let one = DateForm::of(["01/02/2024", "31/04/2024", "30/04/2024"].into_iter());
        assert!(one.is_empty());
        let one = DateForm::of(["01/02/2024", "30/04/2024"].into_iter());
        assert_eq!(one, [DateForm::DaySlash]);
    }

    #[test]
    fn numbers_are_days_since_the_named_one_and_back() {
        let days = Days {
            until: Some("2024-12-31".parse().unwrap()),
            ..Days::since("2020-01-01".parse().unwrap())
        };
        assert_eq!(days.range(), Some([0.0, 1826.0]));
        assert_eq!(days.number("2019-12-31".parse().unwrap()), -1.0);
        assert_eq!(days.day(366.0).to_string(), "2021-01-01");
        assert!(days.check().is_ok());
    }

    #[test]
    fn a_day_has_its_place_in_year_month_and_week() {
        // Year, month and weekday from 0, days of the year before it, days of the year.
        for (text, place) in [
            ("1970-01-01", (1970, 0, 3, 0, 365)),
            ("1969-12-31", (1969, 11, 2, 364, 365)),
            ("2000-02-29", (2000, 1, 1, 59, 366)),
            ("2024-12-31", (2024, 11, 1, 365, 366)),
            ("1900-03-01", (1900, 2, 3, 59, 365)),
            ("0001-01-01", (1, 0, 0, 0, 365)),
        ] {
            let found = text.parse::<Day>().unwrap().calendar();
            let found = (
                found.year,
                found.month,
                found.weekday,
                found.day,
                found.days,
            );
            assert_eq!(found, place, "{text}");
        }
    }
}
