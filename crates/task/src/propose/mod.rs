//! Proposes a schema for files that nobody has described yet.
//!
//! [`propose`] looks at the files, finds out how they are written and what the columns hold, and
//! says why it proposes what it does. People are to read and correct the proposal: a number may be
//! a code, and a code a number.

mod alike;
mod category;
mod cells;
mod column;
mod describe;
mod encodings;
mod form;
pub mod leak;
mod pairs;
mod personal;
pub mod persons;
mod sniff;
mod sorted;
mod surroundings;
mod unanswered;
mod units;
mod whose;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::counted::rows_that;
use crate::data::{
    ColumnMarks, DataError, DataSet, Format, RawFile, RowsConfig, RowsFile, SplitConfig, Target,
    composed, pretend_silo, silo_of,
};
use crate::questions::{AskedAt, RowAnswers, Unanswered, questions as questions_of};
use crate::schema::{
    Censored, DateForm, Day, FeatureColumns, LocalNames, MeasuredColumn, Schema, merged,
};

pub use self::cells::{Cells, outward};
use self::sorted::{Sorted, chosen_target, read_as_the_first};
use self::unanswered::{OpenQuestions, odd_cells};
pub use self::units::Misread;
use self::whose::{group, identifiers_of, silos_of};

/// Fewest rows of a level that an agreement lists, unless more are asked for.
pub const RARE: usize = 5;

pub use self::sniff::Marks;

/// What the user knows already.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wishes {
    /// The column to predict; by default the last.
    pub target: Option<String>,
    /// The class that counts as positive, of two.
    pub positive: Option<String>,
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
    fn composed(&self) -> Self {
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
    fn of_columns(mut self, header: &[String]) -> Self {
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
    fn columns(&self) -> impl Iterator<Item = &String> {
        let one = [&self.target, &self.silo_column, &self.group];
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
    }

    /// Returns what is known of the texts of a column: a level that is kept is one, whatever its text usually means.
    pub(in crate::propose) fn marks_of(&self, column: &str, header: &[String]) -> ColumnMarks {
        let kept = self.keep.iter().filter(|(name, _)| name == column);
        ColumnMarks {
            codes: kept.map(|(_, level)| level.clone()).collect(),
            missing: self.marks(header).0.remove(column).unwrap_or_default(),
            ..ColumnMarks::default()
        }
    }

    /// Returns whether a level, or a rare class, is listed however few rows have it.
    fn keeps(&self, column: &str, level: &str) -> bool {
        let same = |(name, kept): &(String, String)| name == column && kept == level;
        self.keep.iter().any(same)
    }

    /// The texts that mean a missing value in one column of these alone; and those that do in all.
    fn marks(&self, header: &[String]) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
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
    fn answers(&self) -> RowAnswers {
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

/// What becomes of a column.
enum ColumnUse {
    /// The column is learned from; what it holds, in one phrase.
    Feature(FeatureColumns, String),
    /// The column is learned from as a category; what it holds, and what became of rare levels, in sentences.
    Category(FeatureColumns, String, Vec<String>),
    /// Numbers, and cells that are none.
    Odd,
    /// What only a person knows, in a sentence with the options that answer it.
    Question(String),
    /// The column is left out; why.
    LeftOut(String),
}

/// What was found in the files, and what is proposed.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaProposal {
    /// How the cells of each file are written.
    pub formats: Vec<Format>,
    /// What the columns mean.
    pub schema: Schema,
    /// Columns that are not used, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Rows in all files.
    pub rows: usize,
    /// The silos, with their rows.
    pub silos: Vec<(String, usize)>,
    /// What was found in each feature column, in one phrase.
    pub columns: Vec<(String, String)>,
    /// What was found in the column to predict, in one phrase.
    pub predicted: String,
    /// The column that says whose a row is, for `split`, with the reason.
    pub group: Option<(String, String)>,
    /// Ranges that an agreement could have, by columns of numbers, the one to predict among them. They come from
    /// these rows, to one digit and without what fewer than [`RARE`] rows hold.
    pub ranges: BTreeMap<String, [f64; 2]>,
    /// Texts that mean another one, by column: values that look alike and are one.
    pub codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Texts that mean a missing value in one column alone.
    pub missing: BTreeMap<String, Vec<String>>,
    /// The forms in which the files write the dates of columns, where they have to be named.
    pub dates: BTreeMap<String, DateForm>,
    /// What the person has said about the rows and is to be kept with them.
    pub answers: RowAnswers,
    /// What the user should look at, one sentence each.
    pub notes: Vec<String>,
}

impl SchemaProposal {
    /// The rows, as the scenario that is proposed reads them.
    fn read(&self, files: &[PathBuf], wishes: &Wishes) -> Result<DataSet, DataError> {
        let group = self.group.as_ref().map(|(column, _)| column.clone());
        let out = self.left_out.iter().map(|(name, _)| name);
        let ignore: Vec<String> = out
            .filter(|name| Some(*name) != group.as_ref())
            .cloned()
            .collect();
        let file = |(path, format): (&PathBuf, &Format)| RowsFile {
            path: path.clone(),
            silo: None,
            part: None,
            format: Some(format.clone()),
            names: LocalNames {
                codes: self.codes.clone(),
                missing: self.missing.clone(),
                dates: self.dates.clone(),
                ..LocalNames::default()
            },
        };
        let rows = RowsConfig {
            files: files.iter().zip(&self.formats).map(file).collect(),
            silo_column: wishes.silo_column.clone(),
            silo_rows: 0,
            pretend_silos: wishes.pretend_silos,
            ignore,
            format: self.formats[0].clone(),
            columns: None,
            answers: self.answers.clone(),
        };
        let split = SplitConfig {
            group,
            ..SplitConfig::default()
        };
        let any = Schema {
            min_rows: 2,
            ..self.schema.clone()
        };
        rows.read(Some(&any), None, &split)
    }

    /// Keeps of the answers those that are asked for where these rows are read.
    fn keep_answers(&mut self, data: &DataSet) {
        let known = std::mem::take(&mut self.answers);
        let asked = questions_of(data, &RowAnswers::default()).into_iter();
        for question in asked.filter(|question| known.answers(question)) {
            self.answers.answer(&question);
        }
    }

    /// The kind of the target.
    pub fn target(&self) -> Target {
        self.schema.target()
    }
}

/// Looks at these files, which have the same columns.
///
/// # Errors
/// [`DataError`]: a file that cannot be read, a column that is not there, no column left to learn
/// from, one silo only.
pub fn propose(files: &[PathBuf], wishes: &Wishes) -> Result<SchemaProposal, DataError> {
    let (wishes, mut notes) = (&wishes.composed(), Vec::new());
    let (formats, raw) = read_as_the_first(files, wishes, &mut notes)?;
    let first = &raw[0].0;
    let header = &first.header;
    let wishes = &wishes.clone().of_columns(header);
    let dropped = |name: &String| wishes.drop.contains(name) && first.has(name);
    for name in wishes.columns().filter(|name| !dropped(name)) {
        first.place(name)?;
    }
    let silos = silos(&raw, wishes, &mut notes)?;
    let target = chosen_target(header, wishes, &mut notes)?;
    let silo_of_row = silos_of(&raw, wishes)?;
    let group = group(&raw, &silo_of_row, &target, wishes, &mut notes);
    let mut asked = OpenQuestions {
        wishes,
        missing: wishes.marks(header).0,
        answers: wishes.answers(),
        questions: Unanswered::default(),
        codes: BTreeMap::new(),
        encodings: Vec::new(),
    };
    asked.encodings(&raw);
    let known = (&*target, group.as_ref().map(|(column, _)| &**column));
    for question in identifiers_of(&raw, &silo_of_row, known, wishes)? {
        asked.ask(question);
    }
    let cells = asked.cells(&raw, &target)?;
    asked.alike(&cells);
    asked.minus(&cells);
    if describe::is_number(&cells, wishes) {
        asked.stand_ins(&cells);
    }
    let predicted = cells.range();
    // Questions come before what follows from their answers.
    let clear = asked.questions.sentences.is_empty();
    let about = clear.then(|| describe::target(&cells, &target, wishes, &mut notes));
    let about = about.transpose()?;
    let mut sorted = Sorted::default();
    if let Some(both) = cells.usual().filter(|_| cells.all_numbers()) {
        sorted.usual.insert(target.clone(), both);
    }
    if let Some(both) = cells.agreeable().filter(|_| cells.all_numbers()) {
        sorted.ranges.insert(target.clone(), both);
    }
    let learned = |name: &&String| **name != target && Some(*name) != wishes.silo_column.as_ref();
    for name in header.iter().filter(learned) {
        if wishes.drop.contains(name) {
            sorted.leave_out(name, "as you asked".to_owned());
        } else if let Some((_, why)) = group.as_ref().filter(|(column, _)| column == name) {
            let why = format!("it says whose a row is ({why}): all rows of one stay in one part");
            sorted.leave_out(name, why);
        } else {
            sorted.add(asked.cells(&raw, name)?, &mut asked, &mut notes);
        }
    }
    let Sorted {
        features,
        columns,
        left_out,
        usual,
        ranges,
    } = sorted;
    let OpenQuestions {
        questions,
        codes,
        missing,
        answers,
        ..
    } = asked;
    let Some((target, words)) = about.filter(|_| questions.sentences.is_empty()) else {
        return Err(DataError::Unanswered(questions));
    };
    if features.is_empty() {
        return Err(no_columns());
    }
    let schema = Schema {
        target,
        min_rows: 10,
        only: Vec::new(),
        subgroup: None,
        usual,
        features: merged(features),
    };
    schema.check()?;
    let mut codes = codes;
    let known = |name: &str| {
        schema
            .names()
            .chain(schema.target.name.iter())
            .any(|own| own == name)
    };
    codes.retain(|name, _| known(name));
    let mut proposal = SchemaProposal {
        rows: raw.iter().map(|(file, _)| file.rows.len()).sum(),
        formats,
        schema,
        left_out,
        silos,
        columns,
        predicted: words.unwrap_or(predicted),
        group,
        ranges,
        codes,
        missing,
        dates: wishes.date_forms.iter().cloned().collect(),
        answers,
        notes,
    };
    // What is proposed is read, and what only the read rows tell is said. Texts and rows are not held at once.
    drop(raw);
    let data = proposal.read(files, wishes)?;
    let open = questions_of(&data, &proposal.answers);
    if let Some(open) = Unanswered::at(AskedAt::Draft, open) {
        return Err(DataError::Unanswered(open));
    }
    proposal.notes.extend(noticed(&data));
    proposal.keep_answers(&data);
    Ok(proposal)
}

/// Returns what all rows together tell that a person should look at before anything is learned from them: columns
/// that give the target away, and rows that are there twice. One sentence each, without a full stop.
pub fn noticed(data: &DataSet) -> Vec<String> {
    let leaks = leak::leaks_of(data).into_iter().map(|leak| leak.question);
    leaks.chain(persons::repeated(&data.silos).note()).collect()
}

/// Returns how a file is written, as far as that can be seen: encoding, separator, marks in numbers.
///
/// # Errors
/// [`DataError`]: it cannot be read, is no table, or has numbers that can be read in two ways.
pub fn format_of(file: &Path) -> Result<Format, DataError> {
    sniff::read(file, &Marks::default()).map(|(format, _)| format)
}

/// Returns how each of these files is written, as far as that can be seen. `marks` answer what the files leave
/// open.
///
/// # Errors
/// As of [`format_of`], for the first file that has one.
pub fn formats_of(files: &[PathBuf], marks: Marks) -> Result<Vec<Format>, DataError> {
    let format = |file: &PathBuf| sniff::read(file, &marks).map(|(format, _)| format);
    files.iter().map(format).collect()
}

fn no_columns() -> DataError {
    DataError::Config("no column is left to learn from".into())
}

/// The silos with their rows, in the order of their first rows.
fn silos(
    raw: &[(RawFile, Format)],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, usize)>, DataError> {
    let mut found: Vec<(String, usize)> = Vec::new();
    if let Some(count) = wishes.pretend_silos {
        let rows: usize = raw.iter().map(|(file, _)| file.rows.len()).sum();
        let silo = |at: usize| {
            (
                pretend_silo(at),
                rows / count + usize::from(at < rows % count),
            )
        };
        return Ok((0..count).map(silo).collect());
    }
    match &wishes.silo_column {
        Some(column) => {
            let mut places: BTreeMap<String, usize> = BTreeMap::new();
            let mut without = 0;
            for (file, format) in raw {
                let place = file.place(column)?;
                for row in &file.rows {
                    let name = row.cells.get(place).unwrap_or_default();
                    if format.is_missing(name) {
                        without += 1;
                        continue;
                    }
                    let at = *places.entry(name.to_owned()).or_insert_with(|| {
                        found.push((name.to_owned(), 0));
                        found.len() - 1
                    });
                    found[at].1 += 1;
                }
            }
            if without > 0 {
                notes.push(format!(
                    "{} no value of {column:?}, which names the silo: left out",
                    rows_that(without, "have")
                ));
            }
        }
        None => {
            let silo = |(file, _): &(RawFile, Format)| (silo_of(&file.path), file.rows.len());
            found.extend(raw.iter().map(silo));
        }
    }
    if found.len() > 1 || wishes.alone {
        return Ok(found);
    }
    let candidates: Vec<String> = raw[0]
        .0
        .header
        .iter()
        .filter(|name| {
            let cells = Cells::of(raw, name, &MeasuredColumn::default());
            cells.is_ok_and(|cells| cells.may_name_silos())
        })
        .map(|name| format!("{name:?}"))
        .collect();
    let hint = if candidates.is_empty() {
        "give a file for each silo".to_owned()
    } else {
        format!(
            "give a file for each silo, or say which column names it with --silo-column: {} could",
            candidates.join(", ")
        )
    };
    Err(DataError::Config(format!(
        "all rows are of one silo, and a federation needs several: {hint}; or split the rows into trial silos with \
         --split-into 3"
    )))
}

#[cfg(test)]
mod asked;
#[cfg(test)]
mod tests;
