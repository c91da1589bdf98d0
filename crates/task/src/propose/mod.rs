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
mod survival;
mod unanswered;
mod units;
mod whose;
mod wishes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::counted::rows_that;
use crate::data::{
    DataError, DataSet, Format, RawFile, RowsConfig, RowsFile, SplitConfig, Target, pretend_silo,
    silo_of,
};
use crate::questions::{AskedAt, RowAnswers, Unanswered, questions as questions_of};
use crate::schema::{
    DateForm, FeatureColumns, LocalNames, MeasuredColumn, Schema, TargetColumn, merged,
};

pub use self::cells::{Cells, outward};
use self::sorted::{Sorted, chosen_target, read_as_the_first};
use self::survival::{SurvivalCells, SurvivalColumns};
use self::unanswered::{OpenQuestions, odd_cells};
pub use self::units::Misread;
use self::whose::{group, identifiers_of, silos_of};

/// Fewest rows of a level that an agreement lists, unless more are asked for.
pub const RARE: usize = 5;

pub use self::sniff::Marks;
pub use self::wishes::Wishes;

/// Use of a column.
enum ColumnUse {
    /// The column is learned from; what it holds, in one phrase.
    Feature(FeatureColumns, String),
    /// The column is learned from as a category; what it holds, and what became of rare levels, in sentences.
    Category(FeatureColumns, String, Vec<String>),
    /// Numbers, and cells that are none.
    Odd,
    /// Question to a person, in a sentence with the options that answer it.
    Question(String),
    /// The column is left out; why.
    LeftOut(String),
}

/// Findings in the files, and the proposal.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaProposal {
    /// Format of the cells of each file.
    pub formats: Vec<Format>,
    /// Meaning of the columns.
    pub schema: Schema,
    /// Columns that are not used, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Rows in all files.
    pub rows: usize,
    /// The silos, with their rows.
    pub silos: Vec<(String, usize)>,
    /// Findings in each feature column, in one phrase.
    pub columns: Vec<(String, String)>,
    /// Findings in the column to predict, in one phrase.
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
    /// Answers of the person about the rows that are to be kept with them.
    pub answers: RowAnswers,
    /// Remarks for the user, one sentence each.
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
    let survival = survival::chosen(&raw, wishes, &mut notes)?;
    let wishes = &match &survival {
        Some(columns) => columns.wished(wishes.clone()),
        None => wishes.clone(),
    };
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
    let mut sorted = Sorted::default();
    let predicted = predicted(
        &raw,
        (&target, survival.as_ref()),
        &mut asked,
        &mut sorted,
        &mut notes,
    )?;
    let beside = [&wishes.silo_column, &wishes.time, &wishes.entry];
    let learned =
        |name: &&String| **name != target && !beside.iter().any(|own| own.as_ref() == Some(*name));
    for name in header.iter().filter(learned) {
        if wishes.drop.contains(name) {
            sorted.leave_out(name, "as you asked".to_owned());
        } else if let Some((_, why)) = group.as_ref().filter(|(column, _)| column == name) {
            let why = format!("it says whose a row is ({why}): all rows of one stay in one part");
            sorted.leave_out(name, why);
        } else {
            let cells = asked.cells(&raw, name)?;
            match survival::learned_time(&cells, (&target, predicted.may_be_event), wishes) {
                Some(question) => asked.questions.sentences.push(question),
                None => sorted.add(cells, &mut asked, &mut notes),
            }
        }
    }
    let learned: Vec<&str> = sorted
        .features
        .iter()
        .flat_map(|one| one.name.iter())
        .collect();
    notes.extend(survival::told_later(&learned, survival.is_some()));
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
    let about = predicted.target.filter(|_| questions.sentences.is_empty());
    let Some((target, words)) = about else {
        return Err(DataError::Unanswered(questions));
    };
    if features.is_empty() {
        return Err(no_columns());
    }
    let schema = Schema {
        target,
        min_rows: 10,
        only: wishes.only.clone(),
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
        predicted: words,
        group,
        ranges,
        codes,
        missing,
        dates: wishes.date_forms.iter().cloned().collect(),
        answers,
        notes,
    };
    // The proposal is read, for remarks that only the read rows give. Texts and rows are not held at once.
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

/// The columns to predict, as far as they are known.
struct PredictedColumns {
    /// The target and what it holds, in one phrase; `None` where something has to be asked first.
    target: Option<(TargetColumn, String)>,
    /// True if it may be an event of which a column says when it was.
    may_be_event: bool,
}

/// Finds out what is predicted, and asks what only a person knows of it.
///
/// # Errors
/// [`DataError::Config`]: a column that cannot be predicted.
fn predicted(
    raw: &[(RawFile, Format)],
    (target, survival): (&str, Option<&SurvivalColumns>),
    asked: &mut OpenQuestions<'_>,
    sorted: &mut Sorted,
    notes: &mut Vec<String>,
) -> Result<PredictedColumns, DataError> {
    if let Some(columns) = survival {
        let cells = SurvivalCells::of(raw, columns, asked)?;
        let target = cells.target(asked, notes)?;
        sorted.predict(cells.time());
        return Ok(PredictedColumns {
            target,
            may_be_event: true,
        });
    }
    let wishes = asked.wishes;
    let cells = asked.cells(raw, target)?;
    asked.alike(&cells);
    asked.minus(&cells);
    if describe::is_number(&cells, wishes) {
        asked.stand_ins(&cells);
        let question = survival::predicted_time(raw, target, wishes)?;
        asked.questions.sentences.extend(question);
    }
    // Questions come before what follows from their answers.
    let clear = asked.questions.sentences.is_empty();
    let about = clear.then(|| describe::target(&cells, target, wishes, notes));
    let about = about.transpose()?;
    sorted.predict(&cells);
    Ok(PredictedColumns {
        target: about.map(|(target, words)| (target, words.unwrap_or_else(|| cells.range()))),
        may_be_event: !describe::is_number(&cells, wishes),
    })
}

/// Returns what all rows together tell that a person should look at before anything is learned from them: columns
/// that give the target away, and rows that are there twice. One sentence each, without a full stop.
pub fn noticed(data: &DataSet) -> Vec<String> {
    let leaks = leak::leaks_of(data).into_iter().map(|leak| leak.question);
    let repeated = persons::repeated(&data.silos).note();
    let events = survival::noticed(data).into_iter();
    leaks.chain(repeated).chain(events).collect()
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
