//! Times of the day.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// A time of the day in UTC from one minute to another, which may lie on the next day: "22:00-06:00".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Hours {
    from: u16,
    to: u16,
}

impl Hours {
    /// Returns whether a minute of the day is in it. The last one is not.
    pub(super) fn has(self, minute: u16) -> bool {
        if self.from < self.to {
            (self.from..self.to).contains(&minute)
        } else {
            minute >= self.from || minute < self.to
        }
    }
}

/// `HH:MM` as minutes of the day; 24:00 is its end.
fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let number = |digits: &str| -> Option<u16> {
        let two = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        two.then(|| digits.parse().ok()).flatten()
    };
    let (hour, minute) = (number(hour)?, number(minute)?);
    (minute < 60 && hour * 60 + minute <= DAY).then_some(hour * 60 + minute)
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ends = text.split_once('-');
        let ends = ends.and_then(|(from, to)| Some((minute(from.trim())?, minute(to.trim())?)));
        match ends {
            Some((from, to)) if from != to && from < DAY => Ok(Self { from, to }),
            _ => Err(format!(
                "expected a time of the day in UTC such as \"22:00-06:00\", found {text:?}"
            )),
        }
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl TryFrom<String> for Hours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Hours> for String {
    fn from(hours: Hours) -> Self {
        hours.to_string()
    }
}

impl JsonSchema for Hours {
    fn schema_name() -> Cow<'static, str> {
        "Hours".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time of the day in UTC, such as \"22:00-06:00\".",
            "type": "string",
            "pattern": "^[0-9]{2}:[0-9]{2} *- *[0-9]{2}:[0-9]{2}$"
        })
    }
}
