//! Knowledge of a person about a table that nobody has described yet.

use std::collections::BTreeMap;

use super::{Marks, RARE};
use crate::data::{ColumnMarks, composed};
use crate::questions::RowAnswers;
use crate::schema::{Censored, DateForm, Day, Filter};

/// Knowledge of the user about the columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The column to predict, or that of the event where there is a time until it; by default the last, or what looks
    /// like an event and its time.
    pub target: Option<String>,
    /// The class that counts as positive, of two; of an event the value that means that it happened.
    pub positive: Option<String>,
    /// The column of the time until the event, or until somebody was last seen without it.
    pub time: Option<String>,
    /// The column of the time at which somebody came under observation.
    pub entry: Option<String>,
    /// Conditions that a row must meet to be used.
    pub only: Vec<Filter>,
    /// The column that names each row's silo; by default each file is a silo.
    pub silo_column: Option<String>,
    /// Number of synthetic silos to which the rows are dealt in turn, in place of a silo for each file.
    pub pretend_silos: Option<usize>,
    /// The column that says whose a row is: all rows of one stay in one part. By default what looks so.
    pub group: Option<String>,
    /// Columns to leave out.
    pub drop: Vec<String>,
    /// Columns that hold numbers, whatever they look like.
    pub numbers: Vec<String>,
    /// Columns that hold categories, even if their codes are numbers.
    pub categories: Vec<String>,
    /// Levels that are listed however few rows have them: column and level; also rare classes that others
    /// may read of, and numbers that look as if they stood for a missing value.
    pub keep: Vec<(String, String)>,
    /// Fewest rows of a level that is listed; [`RARE`] by default and at least.
    pub rare: Option<usize>,
    /// Texts that mean a missing value, beside the usual ones: in all columns, or `COLUMN=TEXT` in one.
    pub missing: Vec<String>,
    /// Columns in which values that look alike are one value, such as `True` and `TRUE`.
    pub same: Vec<String>,
    /// Columns in which they are different ones.
    pub different: Vec<String>,
    /// The text before or behind each number of a column, which is left out and agreed as its unit.
    pub units: Vec<(String, String)>,
    /// Columns that hold dates, each with the day that counts as 0.
    pub dates: Vec<(String, Day)>,
    /// The forms in which the files write the dates of columns.
    pub date_forms: Vec<(String, DateForm)>,
    /// Columns in which bounds such as `<0.5` stand among the numbers, and how these are read.
    pub censored: Vec<(String, Censored)>,
    /// True if the rows of one silo are enough, because others are to read the description: to agree on
    /// columns, not to simulate a federation.
    pub alone: bool,
    /// The marks in numbers, where files leave them open.
    pub marks: Marks,
}

impl Wishes {
    /// The same with letters and their accents as one, as files are read.
    pub(super) fn composed(&self) -> Self {
        let text = |text: &String| composed(text).into_owned();
        let one = |own: &Option<String>| own.as_ref().map(text);
        let list = |own: &[String]| own.iter().map(text).collect();
        let pairs = |own: &[(String, String)]| {
            let pair = |(column, value): &(String, String)| (text(column), text(value));
            own.iter().map(pair).collect()
        };
        let censored = self.censored.iter();
        Self {
            target: one(&self.target),
            positive: one(&self.positive),
            time: one(&self.time),
            entry: one(&self.entry),
            silo_column: one(&self.silo_column),
            group: one(&self.group),
            drop: list(&self.drop),
            numbers: list(&self.numbers),
            categories: list(&self.categories),
            keep: pairs(&self.keep),
            missing: list(&self.missing),
            same: list(&self.same),
            different: list(&self.different),
            units: pairs(&self.units),
            censored: censored
                .map(|(column, rule)| (text(column), *rule))
                .collect(),
            dates: self
                .dates
                .iter()
                .map(|(own, day)| (text(own), *day))
                .collect(),
            date_forms: {
                let forms = self.date_forms.iter();
                forms.map(|(own, form)| (text(own), *form)).collect()
            },
            ..self.clone()
        }
    }

    /// The same for a table with these columns, where an equals sign may stand in the name of one.
    pub(super) fn of_columns(mut self, header: &[String]) -> Self {
        let known = |name: &str| header.iter().any(|own| own == name);
        for (column, value) in self.keep.iter_mut().filter(|(column, _)| !known(column)) {
            let whole = format!("{column}={value}");
            let mut signs = whole.match_indices('=').map(|(at, _)| at);
            if let Some(at) = signs.find(|at| known(&whole[..*at])) {
                (*column, *value) = (whole[..at].to_owned(), whole[at + 1..].to_owned());
            }
        }
        self
    }

    /// All columns that it names.
    pub(super) fn columns(&self) -> impl Iterator<Item = &String> {
        let one = [
            &self.target,
            &self.time,
            &self.entry,
            &self.silo_column,
            &self.group,
        ];
        let lists = [
            &self.drop,
            &self.numbers,
            &self.categories,
            &self.same,
            &self.different,
        ];
        let kept = self.keep.iter().chain(&self.units);
        let kept = kept.map(|(column, _)| column);
        one.into_iter()
            .flatten()
            .chain(lists.into_iter().flatten())
            .chain(kept)
            .chain(self.censored.iter().map(|(column, _)| column))
            .chain(self.dates.iter().map(|(column, _)| column))
            .chain(self.date_forms.iter().map(|(column, _)| column))
            .chain(self.only.iter().map(|filter| &filter.column))
    }

    /// Returns what is known of the texts of a column: a level that is kept is one, whatever its text usually means.
    pub(super) fn marks_of(&self, column: &str, header: &[String]) -> ColumnMarks {
        let kept = self.keep.iter().filter(|(name, _)| name == column);
        ColumnMarks {
            codes: kept.map(|(_, level)| level.clone()).collect(),
            missing: self.marks(header).0.remove(column).unwrap_or_default(),
            ..ColumnMarks::default()
        }
    }

    /// Returns whether a level, or a rare class, is listed however few rows have it.
    pub(super) fn keeps(&self, column: &str, level: &str) -> bool {
        let same = |(name, kept): &(String, String)| name == column && kept == level;
        self.keep.iter().any(same)
    }

    /// The texts that mean a missing value in one column of these alone; and those that do in all.
    pub(super) fn marks(&self, header: &[String]) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
        let (mut own, mut all) = (BTreeMap::<String, Vec<String>>::new(), Vec::new());
        for mark in &self.missing {
            match mark.rsplit_once('=') {
                Some((name, text)) if header.iter().any(|own| own == name) => {
                    own.entry(name.to_owned())
                        .or_default()
                        .push(text.to_owned());
                }
                _ => all.push(mark.clone()),
            }
        }
        (own, all)
    }

    /// Returns what the person has said about the rows: numbers that are kept, and columns that are learned from.
    pub(super) fn answers(&self) -> RowAnswers {
        let mut answers = RowAnswers::default();
        for (column, value) in &self.keep {
            answers.add(column, Some(value));
        }
        let dates = self.dates.iter().map(|(column, _)| column);
        for column in self.numbers.iter().chain(&self.categories).chain(dates) {
            answers.add(column, None);
        }
        answers
    }

    /// Fewest rows of a level that is listed.
    pub fn rare(&self) -> usize {
        self.rare.unwrap_or(RARE).max(RARE)
    }
}
