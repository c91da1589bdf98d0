//! Facts that a person knows about the columns of a table that nobody has described yet.

use clap::{Args, Parser};

use task::propose::{RARE, Wishes};
use task::schema::{Censored, DateForm, Day, Filter};

use super::{NumberMarks, column_text};

/// Options about columns, of `rota init` and `rota federation new --table`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Columns of the tables")]
pub struct Columns {
    /// Column to predict; with --time that of the event [default: the last, or an event with its time]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub target: Option<String>,
    /// Positive value of the target; of an event the value that means that it happened [default: "yes", "1" and the
    /// like, or the rarer of two classes]
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub positive: Option<String>,
    /// Column of the time until the event, or until observation ended without it: survival analysis
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub time: Option<String>,
    /// With --time: column of the time from which a row is observed [default: all from the beginning]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub entry: Option<String>,
    /// Condition that a row must meet to be used, such as "days > 0" or "ward = general"; may be repeated
    #[arg(long, value_name = "CONDITION", value_parser = condition, allow_hyphen_values = true)]
    pub only: Vec<Filter>,
    /// Column that identifies the person or unit of a row, such as the patient, whose rows are all trained on
    /// or all tested on [default: what looks like one]
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub group: Option<String>,
    /// Column to leave out; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub drop: Vec<String>,
    /// Column of numbers that looks like codes; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub number: Vec<String>,
    /// Column of codes that looks like numbers, or of names that become levels; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub category: Vec<String>,
    /// Fewest rows of a listed level, at least 5; rarer levels are merged into `other` [default: 5]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(RARE as i64..))]
    pub rare: Option<u32>,
    /// Level that is listed however few rows have it, rare class that others may see, or number that looks as if it
    /// stood for a missing value and was measured; may be repeated
    #[arg(long, value_name = "COLUMN=VALUE", value_parser = level, allow_hyphen_values = true)]
    pub keep: Vec<(String, String)>,
    /// Text for a missing value, beside the usual ones, in all columns or in one; may be repeated
    #[arg(long, value_name = "[COLUMN=]TEXT", allow_hyphen_values = true)]
    pub missing_mark: Vec<String>,
    /// Column in which similar values, such as True and TRUE, are merged; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub same: Vec<String>,
    /// Column in which similar values stay different; may be repeated
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub different: Vec<String>,
    /// Text before or behind each number of a column, such as its unit, which is left out and agreed as the unit; may
    /// be repeated
    #[arg(long, value_name = "COLUMN=TEXT", value_parser = column_text, allow_hyphen_values = true)]
    pub unit: Vec<(String, String)>,
    /// Column of dates, and the day that counts as 0: a model learns from the days since; may be repeated
    #[arg(long, value_name = "COLUMN=DAY", value_parser = day, allow_hyphen_values = true)]
    pub date: Vec<(String, Day)>,
    /// Form in which the dates of a column are written, where it is not as 2024-05-31 or 31.05.2024, such as MM/DD/YYYY; may be
    /// repeated
    #[arg(long, value_name = "COLUMN=FORM", value_parser = super::date_form, allow_hyphen_values = true)]
    pub date_form: Vec<(String, DateForm)>,
    /// How values that could not be measured, such as <0.5, are read: as the limit, or as half of a lower one; may be
    /// repeated
    #[arg(long, value_name = "COLUMN=RULE", value_parser = censored, allow_hyphen_values = true)]
    pub censored: Vec<(String, Censored)>,
    /// What the files leave open.
    #[command(flatten)]
    pub marks: NumberMarks,
}

impl Columns {
    /// The options as wishes for a proposal.
    pub fn wishes(&self) -> Wishes {
        Wishes {
            target: self.target.clone(),
            positive: self.positive.clone(),
            time: self.time.clone(),
            entry: self.entry.clone(),
            only: self.only.clone(),
            group: self.group.clone(),
            drop: self.drop.clone(),
            numbers: self.number.clone(),
            categories: self.category.clone(),
            rare: self.rare.map(|rows| rows as usize),
            keep: self.keep.clone(),
            missing: self.missing_mark.clone(),
            marks: self.marks.clone().into(),
            same: self.same.clone(),
            units: self.unit.clone(),
            censored: self.censored.clone(),
            dates: self.date.clone(),
            date_forms: self.date_form.clone(),
            different: self.different.clone(),
            ..Wishes::default()
        }
    }
}

/// Options about columns in a line of their own.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct MoreColumns {
    #[command(flatten)]
    columns: Columns,
}

impl Columns {
    /// Adds the options of a line, such as an answer to a question that names them.
    ///
    /// # Errors
    /// The fault of the line, in a sentence.
    pub fn add(&mut self, line: &str) -> Result<(), String> {
        let words = shlex::split(line).ok_or("a quotation mark is not closed")?;
        let more = MoreColumns::try_parse_from(words).map_err(|error| {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.trim_start_matches("error: ").to_owned()
        })?;
        let more = more.columns;
        self.target = more.target.or(self.target.take());
        self.positive = more.positive.or(self.positive.take());
        self.time = more.time.or(self.time.take());
        self.entry = more.entry.or(self.entry.take());
        self.only.extend(more.only);
        self.group = more.group.or(self.group.take());
        self.rare = more.rare.or(self.rare);
        self.drop.extend(more.drop);
        self.number.extend(more.number);
        self.category.extend(more.category);
        self.keep.extend(more.keep);
        self.missing_mark.extend(more.missing_mark);
        self.same.extend(more.same);
        self.different.extend(more.different);
        self.unit.extend(more.unit);
        self.censored.extend(more.censored);
        self.date.extend(more.date);
        self.date_form.extend(more.date_form);
        let marks = &mut self.marks;
        marks.decimal = more.marks.decimal.or(marks.decimal);
        marks.thousands = more.marks.thousands.or(marks.thousands);
        marks.encoding = more.marks.encoding.or(marks.encoding);
        Ok(())
    }
}

/// COLUMN=LEVEL; the level may contain further equals signs.
fn level(text: &str) -> Result<(String, String), String> {
    let (column, level) = text.split_once('=').ok_or("COLUMN=LEVEL is needed")?;
    Ok((column.to_owned(), level.to_owned()))
}

/// A condition that a row must meet.
fn condition(text: &str) -> Result<Filter, String> {
    text.to_owned().try_into()
}

/// A column, and the day that counts as 0 there.
fn day(text: &str) -> Result<(String, Day), String> {
    let (column, day) = super::column_text(text)?;
    Ok((column, day.parse()?))
}

/// COLUMN=limit or COLUMN=half.
fn censored(text: &str) -> Result<(String, Censored), String> {
    let (column, rule) = column_text(text).map_err(|_| "COLUMN=limit or COLUMN=half is needed")?;
    let rule = match &*rule {
        "limit" => Censored::Limit,
        "half" => Censored::Half,
        _ => return Err(format!("there is no rule {rule:?}: limit or half")),
    };
    Ok((column, rule))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_options_of_a_line_are_added() {
        let mut columns = Columns::default();
        columns
            .add("--unit \"lab=mg/l\" --drop 'a column'")
            .unwrap();
        columns
            .add("--drop b --censored lab=half --encoding cp850")
            .unwrap();
        assert_eq!(columns.drop, ["a column", "b"]);
        assert_eq!(columns.unit, [("lab".to_owned(), "mg/l".to_owned())]);
        assert_eq!(columns.censored, [("lab".to_owned(), Censored::Half)]);
        assert!(columns.marks.encoding.is_some());
        let before = columns.clone();
        for wrong in [
            "--unit lab",
            "--drop 'a",
            "--units a=b",
            "--censored lab=0",
            "yes",
        ] {
            let why = columns.add(wrong).unwrap_err();
            assert!(!why.is_empty() && !why.contains('\n'), "{why}");
        }
        assert_eq!(columns, before);
    }
}
