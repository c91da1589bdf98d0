//! Features of a column of dates: days, and parts of the calendar.

#![deny(clippy::wildcard_enum_match_arm)]

use std::f64::consts::TAU;
use std::fmt;

use super::day::{Day, Days};
use super::feature::{ColumnFeature, EncodedCells, FeatureValues, middle_of};
use super::part::{DatePart, MONTHS, WEEKDAYS};

impl Days {
    /// Features that a column of this name becomes, in order.
    pub(super) fn features(&self, name: &str) -> Vec<ColumnFeature> {
        let number = |part: &str, range| ColumnFeature {
            name: format!("{name}{part}"),
            values: FeatureValues::Number { range },
        };
        let levels = |part: DatePart, levels: &[&str]| ColumnFeature {
            name: format!("{name} {}", part.name()),
            values: FeatureValues::Levels(levels.iter().map(|&level| level.to_owned()).collect()),
        };
        let circle = Some([-1.0, 1.0]);
        let of = |part: &DatePart| match part {
            DatePart::Days => vec![number("", self.range())],
            DatePart::Year => vec![number(" year", self.years())],
            DatePart::Month => vec![levels(*part, &MONTHS)],
            DatePart::Weekday => vec![levels(*part, &WEEKDAYS)],
            DatePart::DayOfYear => vec![
                number(" day-of-year sine", circle),
                number(" day-of-year cosine", circle),
            ],
        };
        self.parts.iter().flat_map(of).collect()
    }

    /// Adds the features of a day, by its number; missing ones for `None`.
    pub(super) fn encode(&self, number: Option<f64>, cells: &mut EncodedCells) {
        let place = || number.map(|number| self.since.plus(number).calendar());
        for part in &self.parts {
            match part {
                DatePart::Days => cells.number(number),
                DatePart::Year => cells.number(place().map(|place| place.year as f64)),
                DatePart::Month => cells.level(MONTHS.len(), place().map(|place| place.month)),
                DatePart::Weekday => {
                    cells.level(WEEKDAYS.len(), place().map(|place| place.weekday))
                }
                DatePart::DayOfYear => {
                    let angle = place().map(|place| TAU * place.day as f64 / place.days as f64);
                    // The same bits on every machine.
                    cells.number(angle.map(libm::sin));
                    cells.number(angle.map(libm::cos));
                }
            }
        }
    }

    /// Adds what counts where a file has no such column, and returns it in a phrase: the middle of the agreed days, or
    /// NaN, an average, where none are agreed; and no season, month or day of the week more than another.
    pub(super) fn stand_in(&self, cells: &mut EncodedCells) -> String {
        for part in &self.parts {
            match part {
                DatePart::Days => cells.number(self.range().map(middle_of)),
                DatePart::Year => cells.number(self.years().map(middle_of)),
                DatePart::Month => cells.share(MONTHS.len(), 1.0 / MONTHS.len() as f64),
                DatePart::Weekday => cells.share(WEEKDAYS.len(), 1.0 / WEEKDAYS.len() as f64),
                DatePart::DayOfYear => {
                    cells.number(Some(0.0));
                    cells.number(Some(0.0));
                }
            }
        }
        let (ordered, others): (Vec<DatePart>, Vec<DatePart>) = self
            .parts
            .iter()
            .copied()
            .partition(|part| part.is_ordered());
        let middle = match self.range().map(middle_of) {
            Some(middle) => format!("{}, the middle of the agreed days", self.day(middle)),
            None => "average".to_owned(),
        };
        let names: Vec<&str> = others.iter().map(|part| part.name()).collect();
        let none = format!("no {} in particular", names.join(" or "));
        match (ordered.is_empty(), others.is_empty()) {
            (_, true) => middle,
            (true, false) => none,
            (false, false) => format!("{middle}, and as {none}"),
        }
    }

    /// The first and the last year of the agreed days.
    fn years(&self) -> Option<[f64; 2]> {
        let [first, last] = [Some(self.since), self.until].map(|day| day.map(Day::calendar));
        Some([first?.year as f64, last?.year as f64])
    }

    /// Returns whether every number that it becomes has a range.
    pub fn has_ranges(&self) -> bool {
        self.until.is_some() || self.parts.iter().all(|part| !part.is_ordered())
    }

    /// Returns whether every feature that it becomes has a median.
    pub fn has_medians(&self) -> bool {
        self.parts.iter().all(|part| part.is_ordered())
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.until.is_some_and(|until| until <= self.since) {
            return Err("`until` has to be later than `since`".into());
        }
        for (at, part) in self.parts.iter().enumerate() {
            if self.parts[..at].contains(part) {
                return Err(format!("`parts` names {:?} twice", part.name()));
            }
        }
        match self.years() {
            Some([first, last]) if first == last && self.parts.contains(&DatePart::Year) => {
                Err(format!(
                    "all days from `since` to `until` are of {first}, so the year tells nothing: take \"year\" out of \
                     `parts`"
                ))
            }
            Some(_) | None => Ok(()),
        }
    }
}

/// In words, such as `a date, as days since 2020-01-01 and month, to 2024-12-31`.
impl fmt::Display for Days {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            since,
            until,
            parts,
        } = self;
        text.write_str("a date, as ")?;
        for (at, part) in parts.iter().enumerate() {
            text.write_str(match at {
                0 => "",
                _ if at + 1 == parts.len() => " and ",
                _ => ", ",
            })?;
            match part {
                DatePart::Days => write!(text, "days since {since}")?,
                DatePart::Year | DatePart::Month | DatePart::Weekday => {
                    text.write_str(part.name())?;
                }
                DatePart::DayOfYear => text.write_str("day of the year (sine and cosine)")?,
            }
        }
        match until {
            Some(until) if parts.contains(&DatePart::Days) => write!(text, ", to {until}"),
            Some(until) => write!(text, ", from {since} to {until}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::data::{Format, RawFile};
    use crate::schema::{FileLayout, LocalNames, ReadRow, Schema};

    const STAYS: &str = r#"
target = { name = "days" }

[[feature]]
name = "ward"
type = "category"
levels = ["a", "b"]

[[feature]]
name = "admitted"
type = "date"
since = "2020-01-01"
until = "2024-12-31"
parts = ["month", "days", "day-of-year", "weekday", "year"]
missing = "middle-indicator"

[[feature]]
name = "age"
"#;

    fn schema(text: &str) -> Schema {
        let schema: Schema = toml::from_str(text).unwrap();
        schema.check().unwrap();
        schema
    }

    /// Returns the numbers of the only row, and what was said of absent columns.
    fn read(schema: &Schema, names: &str, text: &str) -> (Vec<f64>, Vec<String>) {
        let names: LocalNames = toml::from_str(names).unwrap();
        let format = Format::default();
        let file = RawFile::of_text("a.csv".into(), text, &format).unwrap();
        let layout = FileLayout::new(schema, &names, &format, &file, true, &[]).unwrap();
        let row = file.rows.iter().next().unwrap();
        match layout.read(&row).unwrap() {
            ReadRow::Used(numbers, _) => (numbers, layout.absent().to_vec()),
            other @ (ReadRow::NoTarget | ReadRow::Incomplete(_) | ReadRow::Excluded(_)) => {
                panic!("{other:?}")
            }
        }
    }

    /// Numbers of a row by their names.
    fn named(schema: &Schema, numbers: &[f64]) -> Vec<(String, f64)> {
        let encoded = schema.encoded();
        assert_eq!(encoded.len(), numbers.len());
        let names = encoded.into_iter().map(|column| column.name);
        names.zip(numbers.iter().copied()).collect()
    }

    fn value(row: &[(String, f64)], name: &str) -> f64 {
        let found = row.iter().find(|(own, _)| own == name);
        found.unwrap_or_else(|| panic!("{name}: {row:?}")).1
    }

    #[test]
    fn parts_of_a_date_are_numbers_and_levels_as_they_are_named() {
        let schema = schema(STAYS);
        let encoded = schema.encoded();
        let names: Vec<&str> = encoded.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names.len(), 5 + 1 + 11 + 6 + 1);
        assert_eq!(
            names[..7],
            [
                "admitted",
                "admitted day-of-year sine",
                "admitted day-of-year cosine",
                "admitted year",
                "age",
                "ward=b",
                "admitted month=February",
            ]
        );
        assert_eq!(
            names[16..19],
            [
                "admitted month=December",
                "admitted weekday=Tuesday",
                "admitted weekday=Wednesday"
            ]
        );
        assert_eq!(names[23], "admitted is missing");
        let range = |name: &str| {
            let column = encoded.iter().find(|column| column.name == name);
            column.unwrap().range
        };
        assert_eq!(range("admitted"), Some([0.0, 1826.0]));
        assert_eq!(range("admitted year"), Some([2020.0, 2024.0]));
        assert_eq!(range("admitted day-of-year sine"), Some([-1.0, 1.0]));
        assert_eq!(range("admitted month=December"), Some([0.0, 1.0]));
        // The first number of each column: ward, admitted, age.
        assert_eq!(schema.first_numbers(), [5, 0, 4]);
    }

    #[test]
    fn a_day_is_encoded_by_its_place_in_the_calendar() {
        let schema = schema(STAYS);
        let (row, _) = read(
            &schema,
            "",
            "ward,admitted,age,days\nb,29.02.2024 08:15,60,1\n",
        );
        let row = named(&schema, &row);
        for (name, expected) in [
            ("admitted", 1520.0),
            ("admitted year", 2024.0),
            ("admitted month=February", 1.0),
            ("admitted weekday=Thursday", 1.0),
            ("age", 60.0),
            ("ward=b", 1.0),
            ("admitted is missing", 0.0),
        ] {
            assert_eq!(value(&row, name), expected, "{name}");
        }
        let levels = |part: &str| {
            let own = row.iter().filter(|(name, _)| name.starts_with(part));
            own.map(|(_, value)| value).sum::<f64>()
        };
        assert_eq!(levels("admitted month="), 1.0);
        assert_eq!(levels("admitted weekday="), 1.0);
        // 59 of 366 days are over.
        let sine = value(&row, "admitted day-of-year sine");
        let cosine = value(&row, "admitted day-of-year cosine");
        assert!((sine - 0.848_35).abs() < 1e-5, "{sine}");
        assert!((cosine - 0.529_43).abs() < 1e-5, "{cosine}");
    }

    #[test]
    fn the_last_day_of_a_year_lies_beside_the_first() {
        let place = |day: &str| {
            let schema = schema(&STAYS.replacen("\"month\", ", "", 1));
            let text = format!("ward,admitted,age,days\nb,{day},60,1\n");
            let row = named(&schema, &read(&schema, "", &text).0);
            [
                value(&row, "admitted day-of-year sine"),
                value(&row, "admitted day-of-year cosine"),
            ]
        };
        let apart = |one: [f64; 2], other: [f64; 2]| (one[0] - other[0]).hypot(one[1] - other[1]);
        let first = place("2021-01-01");
        assert_eq!(first, [0.0, 1.0]);
        assert!(apart(first, place("2020-12-31")) < 0.02);
        assert!(apart(first, place("2021-07-02")) > 1.99);
    }

    #[test]
    fn a_missing_date_is_the_middle_of_all_of_its_parts() {
        let agreed = schema(STAYS);
        let (row, _) = read(&agreed, "", "ward,admitted,age,days\na,NA,60,1\n");
        let middle = named(&agreed, &row);
        for (name, expected) in [
            ("admitted", 913.0),
            ("admitted year", 2022.0),
            ("admitted day-of-year cosine", 0.0),
            ("admitted month=May", 0.5),
            ("admitted weekday=Sunday", 0.5),
            ("admitted is missing", 1.0),
        ] {
            assert_eq!(value(&middle, name), expected, "{name}");
        }
        let mean = schema(&STAYS.replacen("middle-indicator", "mean", 1));
        let (row, _) = read(&mean, "", "ward,admitted,age,days\na,NA,60,1\n");
        assert_eq!(row.iter().filter(|number| number.is_nan()).count(), 4 + 17);
        // One cell is missing, whatever it becomes.
        let firsts = mean.first_numbers();
        let missing = firsts.into_iter().filter(|&at| row[at].is_nan());
        assert_eq!(missing.count(), 1);
    }

    #[test]
    fn a_file_without_the_dates_has_no_month_in_particular() {
        let text = STAYS.replacen("middle-indicator", "mean", 1);
        let text = text.replacen("\"day-of-year\", \"weekday\", \"year\"", "\"year\"", 1);
        let schema = schema(&text);
        let (row, said) = read(&schema, "absent = ['admitted']", "ward,age,days\nb,60,1\n");
        let row = named(&schema, &row);
        assert_eq!(value(&row, "admitted"), 913.0);
        assert_eq!(value(&row, "admitted year"), 2022.0);
        assert_eq!(value(&row, "admitted month=May"), 1.0 / 12.0);
        assert_eq!(
            said,
            [
                "it has no column \"admitted\": every row counts there as 2022-07-02, the middle of the agreed days, and \
                 as no month in particular"
            ]
        );
    }

    #[test]
    fn parts_are_written_as_read_unless_they_are_days_alone() {
        let all = schema(STAYS);
        let written = toml::to_string(&all).unwrap();
        assert_eq!(toml::from_str::<Schema>(&written).unwrap(), all);
        let said = all.columns().nth(1).unwrap().1.kind.to_string();
        assert_eq!(
            said,
            "a date, as month, days since 2020-01-01, day of the year (sine and cosine), weekday and year, to 2024-12-31"
        );
        let of = |parts: &str| {
            let (begin, rest) = STAYS.split_once("parts = ").unwrap();
            let (_, end) = rest.split_once('\n').unwrap();
            schema(&format!("{begin}{parts}\n{end}"))
        };
        let days = of("parts = ['days']");
        assert_eq!(days, of(""));
        assert!(!toml::to_string(&days).unwrap().contains("parts"));
        let said = of("parts = ['month']")
            .columns()
            .nth(1)
            .unwrap()
            .1
            .kind
            .to_string();
        assert_eq!(said, "a date, as month, from 2020-01-01 to 2024-12-31");
    }

    #[test]
    fn parts_that_say_nothing_or_stand_twice_are_refused() {
        for (from, to, expected) in [
            (
                "\"date\"\nsince = \"2020-01-01\"\nuntil = \"2024-12-31\"",
                "\"number\"",
                "`parts` go with `type = \"date\"`",
            ),
            ("\"month\"", "\"quarter\"", "unknown variant `quarter`"),
            (
                "[\"month\", \"days\", \"day-of-year\", \"weekday\", \"year\"]",
                "[]",
                "`parts` is empty",
            ),
        ] {
            assert!(STAYS.contains(from), "{from}");
            let found = toml::from_str::<Schema>(&STAYS.replacen(from, to, 1));
            let why = found.unwrap_err().to_string();
            assert!(why.contains(expected), "{why}");
        }
        for (from, to, expected) in [
            ("\"month\"", "\"year\"", "names \"year\" twice"),
            ("2024-12-31", "2020-12-31", "are of 2020"),
            (
                "middle-indicator",
                "median",
                "goes with \"days\" and \"year\"",
            ),
            (
                "until = \"2024-12-31\"",
                "",
                "the middle from `since` to `until`",
            ),
            (
                "\"age\"",
                "\"admitted year\"",
                "give one of them another name",
            ),
        ] {
            assert!(STAYS.contains(from), "{from}");
            let found: Schema = toml::from_str(&STAYS.replacen(from, to, 1)).unwrap();
            let why = found.check().unwrap_err().to_string();
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn seasons_need_no_last_day_to_have_ranges() {
        let season = STAYS.replacen("until = \"2024-12-31\"", "", 1).replacen(
            "[\"month\", \"days\", \"day-of-year\", \"weekday\", \"year\"]",
            "[\"month\", \"day-of-year\"]",
            1,
        );
        let schema = schema(&season);
        let encoded = schema.encoded();
        let ranged = |name: &str| {
            encoded
                .iter()
                .any(|own| own.name == name && own.range.is_some())
        };
        assert!(ranged("admitted day-of-year sine") && ranged("admitted month=May"));
        let (row, _) = read(&schema, "", "ward,admitted,age,days\na,,60,1\n");
        assert!(row.iter().all(|number| number.is_finite()), "{row:?}");
    }
}
