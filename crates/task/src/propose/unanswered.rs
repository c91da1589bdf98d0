//! Questions about a table that only a person can answer, while it is looked at.

use std::collections::BTreeMap;

use super::alike::alike;
use super::{Cells, Wishes};
use crate::counted::rows_that;
use crate::data::{DataError, Format, RawFile, nearest, number};
use crate::questions::{AskedAt, RowAnswers, RowDoubt, RowQuestion, Unanswered, stand_ins};
use crate::typed::{typed, typed_pair};

/// Questions that only a person can answer, and the answers that the person has given.
pub(super) struct OpenQuestions<'a> {
    pub(super) wishes: &'a Wishes,
    /// Texts that mean a missing value in one column alone.
    pub(super) missing: BTreeMap<String, Vec<String>>,
    pub(super) answers: RowAnswers,
    pub(super) questions: Unanswered,
    pub(super) codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Columns whose texts are asked about because of their encoding.
    pub(super) encodings: Vec<String>,
}

impl OpenQuestions<'_> {
    /// The cells of a column, in which values that are one are counted as one.
    pub(super) fn cells<'n>(
        &mut self,
        raw: &[(RawFile, Format)],
        name: &'n str,
    ) -> Result<Cells<'n>, DataError> {
        let marks = self.wishes.marks_of(name, &raw[0].0.header);
        let measured = self.wishes.measured(name);
        let mut cells = Cells::marked(raw, name, &marks, &measured)?;
        if self.wishes.same.iter().any(|same| same == name) {
            for group in alike(&cells.values) {
                let [first, others @ ..] = group.as_slice() else {
                    continue;
                };
                for other in others {
                    let rows = cells.values.remove(other).unwrap_or_default();
                    *cells.values.entry(first.clone()).or_default() += rows;
                    let codes = self.codes.entry(name.to_owned()).or_default();
                    codes.insert(other.clone(), first.clone());
                }
            }
        }
        let known = || cells.values.keys().map(String::as_str);
        let is_odd = odd_numbers(&cells);
        for (_, level) in self.wishes.keep.iter().filter(|(column, _)| column == name) {
            let is_there = cells.values.contains_key(level) || is_odd(level);
            if !is_there {
                return Err(DataError::Config(format!(
                    "--keep {}: no row has that value{}",
                    typed_pair(name, level),
                    nearest(level, known())
                )));
            }
        }
        Ok(cells)
    }

    /// Asks a question that the person has not answered.
    pub(super) fn ask(&mut self, question: RowQuestion) {
        if !self.answers.answers(&question) {
            self.questions.sentences.push(question.at(AskedAt::Draft));
            self.questions.questions.push(question);
        }
    }

    /// Returns whether it is asked if a column says whose a row is.
    pub(super) fn asks_whose(&self, column: &str) -> bool {
        let mut asked = self.questions.questions.iter();
        asked.any(|question| question.column == column && question.doubt == RowDoubt::Identifier)
    }

    /// Asks whether numbers stand for missing values.
    pub(super) fn stand_ins(&mut self, cells: &Cells<'_>) {
        for odd in stand_ins(&cells.numbers) {
            self.ask(RowQuestion::stand_in(cells.name, odd));
        }
    }

    /// Asks whether a minus beside pluses, which is read as missing elsewhere, is a value; whether it did.
    pub(super) fn minus(&mut self, cells: &Cells<'_>) -> bool {
        let is_mark = |own: &String| own == "-";
        let of_column = self.missing.get(cells.name).into_iter().flatten();
        let answered = of_column.chain(&self.wishes.missing).any(is_mark);
        let plus = |text: &&String| text.bytes().all(|byte| byte == b'+') && !text.is_empty();
        let Some(plus) = cells.values.keys().find(plus).filter(|_| !answered) else {
            return false;
        };
        if cells.minus == 0 {
            return false;
        }
        let answer = typed_pair(cells.name, "-");
        self.questions.sentences.push(format!(
            "column {:?}: {} \"-\", which is read as missing, and others {plus:?}. If it is a value, say --keep \
             {answer}; if it stands for a missing value, --missing-mark={answer}",
            cells.name,
            rows_that(cells.minus, "hold")
        ));
        true
    }

    /// Asks whether values that look alike are one.
    pub(super) fn alike(&mut self, cells: &Cells<'_>) {
        let mut known = self.wishes.different.iter().chain(&self.encodings);
        let known = known.any(|name| name == cells.name);
        let groups = if known || cells.all_numbers() {
            Vec::new()
        } else {
            alike(&cells.values)
        };
        if groups.is_empty() {
            return;
        }
        let group = |group: &Vec<String>| {
            let each: Vec<String> = group
                .iter()
                .map(|text| format!("{text:?} {}", cells.values[text]))
                .collect();
            each.join(" and ")
        };
        let groups: Vec<String> = groups.iter().map(group).collect();
        let (name, typed) = (cells.name, typed(cells.name));
        self.questions.sentences.push(format!(
            "column {name:?}: these look like the same, written in several ways: {}. If they are, say \
             --same {typed}; if not, --different {typed}",
            groups.join("; ")
        ));
    }

    /// Asks about a level that is kept of a column that is read as numbers.
    pub(super) fn kept_number(&mut self, cells: &Cells<'_>) {
        let column = cells.name;
        let is_odd = odd_numbers(cells);
        let mut kept = self.wishes.keep.iter().filter(|(name, _)| name == column);
        if let Some((_, level)) = kept.find(|(_, level)| !is_odd(level)) {
            self.questions.sentences.push(format!(
                "--keep {}: column {column:?} holds numbers, which have no levels; if they are codes, say \
                 --category {}",
                typed_pair(column, level),
                typed(column)
            ));
        }
    }

    /// Asks what the cells are that are no numbers, in a column of numbers.
    pub(super) fn odd(&mut self, cells: &Cells<'_>) {
        let (name, typed) = (cells.name, typed(cells.name));
        if let Some(question) = cells.around_question() {
            self.questions.sentences.push(question);
            return;
        }
        let remedies = cells.remedies();
        if remedies.is_empty() && cells.odd().iter().all(|(text, _)| is_code(text)) {
            self.questions.sentences.push(format!(
                "column {name:?}: {}. Its cells look like codes: if the column holds categories, say --category \
                 {typed}; to leave it out, --drop {typed}; if {}",
                odd_ones(cells),
                if_missing(cells)
            ));
            return;
        }
        let remedies = remedies.into_iter();
        let remedies: String = remedies.map(|remedy| remedy + "; ").collect();
        self.questions.sentences.push(format!(
            "column {name:?}: {}; {remedies}if the column holds categories, --category {typed}; to leave it \
             out, --drop {typed}",
            odd_cells(cells),
        ));
    }
}

/// Tells which texts are numbers of a column that are asked about, however they are spelt: -9e30 is the one of thirty
/// zeros.
fn odd_numbers(cells: &Cells<'_>) -> impl Fn(&str) -> bool + use<> {
    let odd = stand_ins(&cells.numbers);
    move |text| odd.iter().any(|(value, _)| number(text) == Some(*value))
}

/// Returns whether a text is a code such as V45.81 and G0283, which nobody writes for a missing value.
fn is_code(text: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphabetic();
    let mark = |mark: char| mark.is_ascii_alphanumeric() || mark == '.' || mark == '-';
    text.starts_with(letter)
        && text.contains(|c: char| c.is_ascii_digit())
        && text.chars().all(mark)
}

/// The cells of a column of numbers that are none, and what to say if they are missing values.
pub(super) fn odd_cells(cells: &Cells<'_>) -> String {
    format!("{}. If {}", odd_ones(cells), if_missing(cells))
}

/// The cells of a column of numbers that are none.
fn odd_ones(cells: &Cells<'_>) -> String {
    let odd = cells.odd();
    let some = odd.iter().take(8);
    let listed: Vec<String> = some
        .map(|(text, times)| format!("{} {times}", shown(text)))
        .collect();
    format!(
        "{}, and {}: {}{}",
        cells.range(),
        match cells.present() - cells.numeric {
            1 => "1 cell that is no number".to_owned(),
            count => format!("{count} cells that are no numbers"),
        },
        listed.join(", "),
        if odd.len() > 8 { ", …" } else { "" },
    )
}

/// Returns what to say if these cells are missing values.
fn if_missing(cells: &Cells<'_>) -> String {
    let odd = cells.odd();
    let marks: Vec<String> = odd
        .iter()
        .take(8)
        .map(|(text, _)| format!("--missing-mark={}", typed(text)))
        .collect();
    format!("they are missing values, say {}", marks.join(" "))
}

/// A cell in quotation marks, at most forty characters of it.
fn shown(text: &str) -> String {
    match text.chars().count() {
        0..=40 => format!("{text:?}"),
        _ => format!("{:?}…", text.chars().take(40).collect::<String>()),
    }
}
