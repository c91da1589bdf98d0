//! Finds the decimal mark and the mark of thousands of a file, or asks for them.

use super::Marks;
use crate::data::{DataError, Format, RawFile, core, grouped};

/// What a cell tells of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// The mark is before decimals.
    Decimal(char),
    /// The mark is between thousands.
    Thousands(char),
    /// The mark is one or the other.
    Either(char),
}

/// What a cell that may be a number tells; `None` for one that is no number.
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
        [_, decimal] if matches!(decimal, '.' | ',') && digits.matches(last).count() == 1 => {
            let (whole, _) = digits.split_once(last)?;
            grouped(whole, first)?;
            Some(vec![Says::Thousands(first), Says::Decimal(last)])
        }
        _ => None,
    }
}

/// The first cell of the file that tells something, by its column and its text, and how many do.
#[derive(Default)]
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
}

const DECIMALS: [char; 2] = ['.', ','];
const THOUSANDS: [char; 5] = [',', '.', '\'', ' ', '_'];

/// What the columns of numbers tell, by mark.
#[derive(Default)]
struct MarkCounts {
    decimal: [FirstCell; 2],
    thousands: [FirstCell; 5],
    either: [FirstCell; 2],
}

impl MarkCounts {
    fn of(file: &RawFile, format: &Format) -> Self {
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
            if 10 * told.len() < 9 * present {
                continue;
            }
            for (text, own) in told {
                for says in own {
                    let (list, marks, mark) = match says {
                        Says::Decimal(mark) => (&mut all.decimal[..], &DECIMALS[..], mark),
                        Says::Thousands(mark) => (&mut all.thousands[..], &THOUSANDS[..], mark),
                        Says::Either(mark) => (&mut all.either[..], &DECIMALS[..], mark),
                    };
                    if let Some(at) = marks.iter().position(|own| *own == mark) {
                        list[at].add(column, text);
                    }
                }
            }
        }
        all
    }

    fn decimal(&self, mark: char) -> &FirstCell {
        &self.decimal[usize::from(mark == ',')]
    }

    fn either(&self, mark: char) -> &FirstCell {
        &self.either[usize::from(mark == ',')]
    }

    fn thousands(&self, mark: char) -> &FirstCell {
        let at = THOUSANDS.iter().position(|own| *own == mark);
        &self.thousands[at.unwrap_or(0)]
    }
}

/// The decimal mark and the mark of thousands of a file, if there is one.
///
/// # Errors
/// [`DataError::Question`]: numbers can be read in two ways. [`DataError::File`]: one mark means both.
pub(super) fn found(
    file: &RawFile,
    format: &Format,
    given: &Marks,
) -> Result<(char, Option<char>), DataError> {
    let other = |mark: char| if mark == '.' { ',' } else { '.' };
    match (given.decimal, given.thousands) {
        (Some(decimal), Some(thousands)) => return Ok((decimal, Some(thousands))),
        (None, Some(mark)) if DECIMALS.contains(&mark) => return Ok((other(mark), Some(mark))),
        _ => {}
    }
    let all = MarkCounts::of(file, format);
    if (given.decimal, given.thousands) == (None, None) {
        for mark in DECIMALS {
            if let (Some(decimal), Some(thousands)) =
                (&all.decimal(mark).first, &all.thousands(mark).first)
            {
                return Err(DataError::File {
                    path: file.path.clone(),
                    reason: format!(
                        "{:?} is before decimals in column {:?} ({:?}) and between thousands in column {:?} \
                         ({:?})",
                        mark.to_string(),
                        decimal.0,
                        decimal.1,
                        thousands.0,
                        thousands.1
                    ),
                    hint: ": write its numbers in one way".into(),
                });
            }
        }
    }
    // The other marks of thousands are never decimal marks.
    let grouping = |decimal: char| {
        let marks = THOUSANDS.into_iter().filter(|mark| *mark != decimal);
        let told = marks.map(|mark| (all.thousands(mark).count, mark));
        told.filter(|(count, _)| *count > 0)
            .max_by_key(|(count, _)| *count)
    };
    if let Some(decimal) = given.decimal {
        let found = grouping(decimal).map(|(_, mark)| mark);
        let either = all.either(other(decimal)).first.is_some();
        return Ok((decimal, found.or(either.then_some(other(decimal)))));
    }
    let (points, commas) = (all.decimal('.').count, all.decimal(',').count);
    let decimal = match (points, commas) {
        (0, 0) => None,
        (points, commas) => Some(if commas > points { ',' } else { '.' }),
    };
    if let Some(decimal) = decimal {
        // In a file with decimal commas a point is between thousands, and the other way round.
        let found = given.thousands.or(grouping(decimal).map(|(_, mark)| mark));
        let either =
            all.either(other(decimal)).first.is_some() && all.decimal(other(decimal)).count == 0;
        return Ok((decimal, found.or(either.then_some(other(decimal)))));
    }
    // No number has decimals for certain.
    for mark in DECIMALS {
        if all.thousands(mark).count > 0 {
            return Ok((other(mark), Some(mark)));
        }
    }
    let found = given.thousands.or(grouping('.').map(|(_, mark)| mark));
    let (point, comma) = (&all.either('.').first, &all.either(',').first);
    match (point, comma) {
        (None, None) => Ok(('.', found)),
        // Thousands have another mark, so these are decimals.
        (Some(_), None) if found.is_some() => Ok(('.', found)),
        (None, Some(_)) if found.is_some() => Ok((',', found)),
        // Whoever separates cells by commas does not write decimal commas.
        (None, Some(_)) if format.delimiter == ',' => Ok(('.', Some(','))),
        (Some(at), _) => Err(question(file, at, '.')),
        (None, Some(at)) => Err(question(file, at, ',')),
    }
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
