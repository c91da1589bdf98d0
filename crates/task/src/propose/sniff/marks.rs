//! Finds the decimal mark and the mark of thousands of a file, or asks for them.

use super::Marks;
use crate::data::{DataError, Format, RAISED, RawFile, core, grouped};

/// Evidence of a cell about a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// The mark is before decimals.
    Decimal(char),
    /// The mark is between thousands.
    Thousands(char),
    /// The mark is one or the other.
    Either(char),
}

/// Returns what a cell that may be a number tells; `None` for one that is no number.
fn says(text: &str) -> Option<Vec<Says>> {
    let (digits, power) = core(text)?;
    let is_mark = |letter: &char| !letter.is_ascii_digit();
    let mut marks: Vec<char> = digits.chars().filter(is_mark).collect();
    let sure = |mark: char| matches!(mark, ' ' | '\'' | '_');
    let last = match marks.last() {
        None => return Some(Vec::new()),
        Some(last) => *last,
    };
    let (first, count) = (marks[0], marks.len());
    marks.dedup();
    match marks.as_slice() {
        [mark] if sure(*mark) => {
            grouped(&digits, *mark)?;
            Some(vec![Says::Thousands(*mark)])
        }
        [mark] if count > 1 => {
            grouped(&digits, *mark)?;
            Some(vec![Says::Thousands(*mark)])
        }
        [mark] => {
            let (whole, part) = digits.split_once(*mark)?;
            let either = grouped(&digits, *mark).is_some() && part.len() == 3 && !power;
            if whole.is_empty() && part.is_empty() {
                return None;
            }
            Some(vec![if either {
                Says::Either(*mark)
            } else {
                Says::Decimal(*mark)
            }])
        }
        // Groups, then decimals.
        [_, decimal]
            if matches!(*decimal, '.' | ',' | RAISED) && digits.matches(last).count() == 1 =>
        {
            let (whole, _) = digits.split_once(last)?;
            grouped(whole, first)?;
            Some(vec![Says::Thousands(first), Says::Decimal(last)])
        }
        _ => None,
    }
}

/// The first cell of the file that tells something, by its column and its text, and how many do.
#[derive(Debug, Clone, Default)]
struct FirstCell {
    first: Option<(String, String)>,
    count: usize,
}

impl FirstCell {
    fn add(&mut self, column: &str, text: &str) {
        self.first
            .get_or_insert_with(|| (column.to_owned(), text.to_owned()));
        self.count += 1;
    }

    /// The same with the cells of another column.
    fn join(&mut self, other: Self) {
        self.first = self.first.take().or(other.first);
        self.count += other.count;
    }
}

const DECIMALS: [char; 2] = ['.', ','];
const THOUSANDS: [char; 5] = [',', '.', '\'', ' ', '_'];

/// Evidence of columns of numbers, by mark.
#[derive(Debug, Clone, Default)]
struct MarkCounts {
    decimal: [FirstCell; 2],
    thousands: [FirstCell; 5],
    either: [FirstCell; 2],
    /// For each mark, a column in which it may be either, beside the other mark before decimals for certain.
    beside: [FirstCell; 2],
}

impl MarkCounts {
    /// Returns what the columns of plain numbers tell, or, if these tell nothing, those with a unit behind each number.
    fn of(file: &RawFile, format: &Format) -> Self {
        let all = Self::of_columns(file, format, says);
        let told = [&all.decimal[..], &all.thousands, &all.either];
        if told.into_iter().flatten().any(|cell| cell.count > 0) {
            return all;
        }
        // A unit has no digits, and bounds stand before them.
        let bare = |text: &str| -> Option<Vec<Says>> {
            let sign =
                |letter: char| matches!(letter, '<' | '>' | '=' | '\u{2264}' | '\u{2265}' | '~');
            let text = text.trim_start_matches(sign).trim();
            says(text.trim_end_matches(|letter: char| !letter.is_numeric()))
        };
        Self::of_columns(file, format, bare)
    }

    fn of_columns(
        file: &RawFile,
        format: &Format,
        says: impl Fn(&str) -> Option<Vec<Says>>,
    ) -> Self {
        let mut all = Self::default();
        for (place, column) in file.header.iter().enumerate() {
            let cells = || {
                let cells = file.rows.iter().filter_map(|row| row.cells.get(place));
                cells.filter(|text| !format.is_missing(text))
            };
            let (mut present, mut told) = (0, Vec::new());
            for text in cells() {
                present += 1;
                if let Some(own) = says(text) {
                    told.push((text, own));
                }
            }
            // Dates and texts tell nothing; an odd cell among numbers does not matter.
            if 10 * told.len() >= 9 * present {
                all.join(Self::of_column(column, told));
            }
        }
        all
    }

    /// Returns what the cells of one column tell.
    fn of_column(column: &str, told: Vec<(&str, Vec<Says>)>) -> Self {
        let mut own = Self::default();
        for (text, all) in told {
            for says in all {
                let (list, marks, mark) = match says {
                    Says::Decimal(mark) => (&mut own.decimal[..], &DECIMALS[..], mark),
                    Says::Thousands(mark) => (&mut own.thousands[..], &THOUSANDS[..], mark),
                    Says::Either(mark) => (&mut own.either[..], &DECIMALS[..], mark),
                };
                if let Some(at) = marks.iter().position(|own| *own == mark) {
                    list[at].add(column, text);
                }
            }
        }
        for (at, mark) in DECIMALS.into_iter().enumerate() {
            if own.decimal(other(mark)).count > 0 {
                own.beside[at] = own.either[at].clone();
            }
        }
        own
    }

    fn join(&mut self, other: Self) {
        let own = [&mut self.decimal[..], &mut self.thousands, &mut self.either];
        let own = own.into_iter().flatten().chain(&mut self.beside);
        let others = other.decimal.into_iter().chain(other.thousands);
        let others = others.chain(other.either).chain(other.beside);
        own.zip(others).for_each(|(own, other)| own.join(other));
    }

    fn decimal(&self, mark: char) -> &FirstCell {
        &self.decimal[usize::from(mark == ',')]
    }

    fn either(&self, mark: char) -> &FirstCell {
        &self.either[usize::from(mark == ',')]
    }

    fn beside(&self, mark: char) -> &FirstCell {
        &self.beside[usize::from(mark == ',')]
    }

    fn thousands(&self, mark: char) -> &FirstCell {
        let at = THOUSANDS.iter().position(|own| *own == mark);
        &self.thousands[at.unwrap_or(0)]
    }
}

/// The other of point and comma.
fn other(mark: char) -> char {
    if mark == '.' { ',' } else { '.' }
}

/// The decimal mark and the mark of thousands of a file, if there is one; and what is read so because of
/// another column, in sentences.
///
/// # Errors
/// [`DataError::Question`]: numbers can be read in two ways. [`DataError::File`]: one mark means both, or both
/// are before decimals.
pub(super) fn found(
    file: &RawFile,
    format: &Format,
    given: &Marks,
) -> Result<(char, Option<char>, Option<String>), DataError> {
    match (given.decimal, given.thousands) {
        (Some(decimal), Some(thousands)) => return Ok((decimal, Some(thousands), None)),
        (None, Some(mark)) if DECIMALS.contains(&mark) => {
            return Ok((other(mark), Some(mark), None));
        }
        _ => {}
    }
    let all = MarkCounts::of(file, format);
    if given.decimal.is_none() && given.thousands.is_none() {
        contradiction(file, &all)?;
    }
    // The other marks of thousands are never decimal marks.
    let grouping = |decimal: char| {
        let marks = THOUSANDS.into_iter().filter(|mark| *mark != decimal);
        let told = marks.map(|mark| (all.thousands(mark).count, mark));
        told.filter(|(count, _)| *count > 0)
            .max_by_key(|(count, _)| *count)
    };
    let told = DECIMALS
        .into_iter()
        .find(|mark| all.decimal(*mark).count > 0);
    if let Some(decimal) = given.decimal.or(told) {
        // In a file with decimal commas a point is between thousands, and the other way round.
        let known = given.thousands.or(grouping(decimal).map(|(_, mark)| mark));
        if let (None, Some(cell)) = (known, &all.either(other(decimal)).first) {
            let why = all.decimal(decimal).first.as_ref();
            let beside = all.beside(other(decimal)).first.as_ref();
            return by_another(file, format, cell, (decimal, why, beside));
        }
        return Ok((decimal, known, None));
    }
    // No number has decimals for certain.
    for mark in DECIMALS {
        if all.thousands(mark).count > 0 {
            return Ok((other(mark), Some(mark), None));
        }
    }
    let found = given.thousands.or(grouping('.').map(|(_, mark)| mark));
    let (point, comma) = (&all.either('.').first, &all.either(',').first);
    match (point, comma) {
        (None, None) => Ok(('.', found, None)),
        // Thousands have another mark, so these are decimals.
        (Some(_), None) if found.is_some() => Ok(('.', found, None)),
        (None, Some(_)) if found.is_some() => Ok((',', found, None)),
        // Whoever separates cells by commas does not write decimal commas.
        (None, Some(_)) if format.delimiter == ',' => Ok(('.', Some(','), None)),
        (Some(at), _) => Err(question(file, at, '.')),
        (None, Some(at)) => Err(question(file, at, ',')),
    }
}

/// Refuses a file in which one mark means both, or both are before decimals.
fn contradiction(file: &RawFile, all: &MarkCounts) -> Result<(), DataError> {
    let failed = |reason: String, hint: &str| {
        Err(DataError::File {
            path: file.path.clone(),
            reason,
            hint: hint.into(),
        })
    };
    for mark in DECIMALS {
        if let (Some(decimal), Some(thousands)) =
            (&all.decimal(mark).first, &all.thousands(mark).first)
        {
            return failed(
                format!(
                    "{:?} is before decimals in column {:?} ({:?}) and between thousands in column {:?} ({:?})",
                    mark.to_string(),
                    decimal.0,
                    decimal.1,
                    thousands.0,
                    thousands.1
                ),
                ": write its numbers in one way",
            );
        }
    }
    if let (Some(point), Some(comma)) = (&all.decimal('.').first, &all.decimal(',').first) {
        return failed(
            format!(
                "column {:?} has a decimal point ({:?}) and column {:?} a decimal comma ({:?})",
                point.0, point.1, comma.0, comma.1
            ),
            ": write its numbers in one way, or say with --decimal which of them are numbers",
        );
    }
    Ok(())
}

/// A column that tells a mark, and a cell of it, if there is one.
type ToldBy<'a> = Option<&'a (String, String)>;

/// The marks of a file whose decimal mark another column tells, or a person: then the `cell` is between
/// thousands, unless that is a guess.
fn by_another(
    file: &RawFile,
    format: &Format,
    cell: &(String, String),
    (decimal, why, beside): (char, ToldBy<'_>, ToldBy<'_>),
) -> Result<(char, Option<char>, Option<String>), DataError> {
    let mark = other(decimal);
    let cell = beside.unwrap_or(cell);
    let digits = core(&cell.1).map_or_else(|| cell.1.clone(), |(digits, _)| digits);
    let (large, small) = (digits.replace(mark, ""), digits.replace(mark, "."));
    let name = |mark| if mark == '.' { "point" } else { "comma" };
    let because = match why {
        Some((column, text)) => format!(
            "column {column:?} has a decimal {} ({text:?})",
            name(decimal)
        ),
        None => format!("the decimal mark is a {}", name(decimal)),
    };
    // Commas between cells are of one way of writing numbers, decimal commas of another.
    let foreign = format.delimiter == ',' && mark == '.';
    if foreign || beside.is_some_and(|_| format.delimiter != ',') {
        return Err(DataError::Question {
            path: file.path.clone(),
            column: cell.0.clone(),
            readings: format!(
                "{:?}, which is {large} or {small}, while {because}: write all numbers in one way, or, if this \
                 {} is between thousands, state it in `format` with `decimal = \"{decimal}\"` and \
                 `thousands = \"{mark}\"`",
                cell.1,
                name(mark)
            ),
        });
    }
    let note = format!(
        "column {:?} holds {:?}, which is read as {large}, because {because}",
        cell.0, cell.1
    );
    Ok((decimal, Some(mark), Some(note)))
}

fn question(file: &RawFile, (column, text): &(String, String), mark: char) -> DataError {
    let digits = core(text).map_or_else(|| text.clone(), |(digits, _)| digits);
    let as_large = match mark {
        '.' => "`thousands = \".\"` and `decimal = \",\"`".to_owned(),
        _ => "`thousands = \",\"`".to_owned(),
    };
    let (large, small) = (digits.replace(mark, ""), digits.replace(mark, "."));
    DataError::Question {
        path: file.path.clone(),
        column: column.clone(),
        readings: format!(
            "{text:?}, which is {large} or {small}, and nothing in the file decides which: state it in `format` \
             with {as_large} or with `decimal = \"{mark}\"`"
        ),
    }
}
