//! Spans of time in TOML files.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A span of time: numbers with units, such as `"250ms"`, `"1.5s"`, `"2m"` or `"1h 30m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// The longest span that a file may ask for: about four months.
const LONGEST: Duration = Duration::from_secs(10_000_000);

impl Span {
    /// A span in milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }
}

impl schemars::JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let number = r"[0-9]+(\.[0-9]+)?";
        let unit = "(ms|s|m|h|[a-zµ]+)";
        schemars::json_schema!({
            "type": "string",
            "pattern": format!(r"^\s*({number}\s*{unit}\s*)+$"),
            "x-type": "span of time, such as `\"5s\"`",
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match humantime::parse_duration(&text) {
            Ok(span) if span <= LONGEST => Ok(Self(span)),
            Ok(_) => Err(format!(
                "{text:?} is longer than the {} seconds allowed",
                LONGEST.as_secs()
            )),
            Err(_) => Err(format!(
                "{text:?} is not a span of time: write a number and ms, s, m or h, such as \"30s\""
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn span(text: &str) -> Result<Span, String> {
        Span::try_from(text.to_owned())
    }

    #[test]
    fn spans_are_read_in_the_units_that_people_write() {
        for (text, millis) in [
            ("250ms", 250),
            ("0ms", 0),
            ("1.5s", 1500),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1h 30m", 5_400_000),
        ] {
            assert_eq!(span(text), Ok(Span::millis(millis)), "{text}");
            let written = Span::millis(millis).to_string();
            assert_eq!(span(&written), Ok(Span::millis(millis)), "{written}");
        }
    }

    #[test]
    fn invalid_spans_are_refused_with_an_example() {
        for text in ["", "5", "5 parsecs", "-1s", "s", "inf s"] {
            let error = span(text).unwrap_err();
            assert!(error.ends_with("such as \"30s\""), "{text}: {error}");
        }
        assert!(span("1year").unwrap_err().contains("longer than"));
    }
}
