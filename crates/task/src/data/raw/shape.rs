//! Finds the table in a file: what stands before the names of its columns, between its rows and behind
//! them is left out, and said.

use csv::StringRecord;

use super::cell::{plain, tidy};
use super::lexer::{CsvRecord, Lexer, is_invisible};
use crate::counted::verb;
use crate::data::{Format, number};

/// Words that begin a row which sums up others, as the last row of a table may.
const TOTALS: [&str; 26] = [
    "total",
    "totals",
    "grand total",
    "subtotal",
    "sum",
    "sums",
    "overall",
    "all rows",
    "average",
    "mean",
    "summe",
    "gesamt",
    "gesamtsumme",
    "insgesamt",
    "mittelwert",
    "durchschnitt",
    "somme",
    "total général",
    "moyenne",
    "totale",
    "somma",
    "suma",
    "total general",
    "totaal",
    "totalt",
    "summa",
];

/// Most lines before the names of the columns.
const AHEAD: usize = 20;

/// What separates the cells, if the first line of a file says so, as Excel writes it: `sep=;`.
pub fn separator(text: &str) -> Option<char> {
    let line = text
        .split(['\n', '\r'])
        .next()?
        .trim_start_matches(is_invisible);
    let line = line.trim_matches(['"', ' ']);
    let (name, mark) = line.split_at_checked(4)?;
    let mut marks = mark.chars();
    let mark = marks.next().filter(char::is_ascii)?;
    (name.eq_ignore_ascii_case("sep=") && marks.next().is_none()).then_some(mark)
}

/// "line 3", "lines 3, 5 and 7", "lines 3, 5, 7 and 12 more".
pub(super) fn lines(of: &[u64]) -> String {
    let text = |line: &u64| line.to_string();
    match of {
        [] => String::new(),
        [one] => format!("line {one}"),
        [first @ .., last] if of.len() <= 5 => {
            let first: Vec<String> = first.iter().map(text).collect();
            format!("lines {} and {last}", first.join(", "))
        }
        _ => {
            let first: Vec<String> = of[..3].iter().map(text).collect();
            format!("lines {} and {} more", first.join(", "), of.len() - 3)
        }
    }
}

/// Cells that hold something.
fn filled(cells: &StringRecord) -> usize {
    cells.iter().filter(|cell| !cell.is_empty()).count()
}

/// The table without what surrounds it, and notes on that. With `named` the first line has the names of
/// the columns.
pub(super) fn trimmed(
    mut records: Vec<CsvRecord>,
    named: bool,
    text: &str,
) -> (Vec<CsvRecord>, Vec<String>) {
    let mut notes = Vec::new();
    let mut empty = Vec::new();
    records.retain(|record| {
        let keep = filled(&record.cells) > 0;
        if !keep {
            empty.push(record.line);
        }
        keep
    });
    let ahead = ahead(&records, named, text);
    if ahead > 0 {
        let skipped: Vec<u64> = records.drain(..ahead).map(|record| record.line).collect();
        notes.push(format!(
            "{} {} before the table and {} left out: a title or a comment",
            lines(&skipped),
            match skipped.len() {
                1 => "stands",
                _ => "stand",
            },
            verb(skipped.len(), "are")
        ));
    }
    if !empty.is_empty() {
        notes.push(format!(
            "{} {} separators only and {} left out",
            lines(&empty),
            verb(empty.len(), "have"),
            verb(empty.len(), "are")
        ));
    }
    if named && records.len() > 1 {
        let header = records[0].cells.clone();
        let mut again = Vec::new();
        let mut at = 0;
        records.retain(|record| {
            at += 1;
            let keep = at == 1 || !same_names(&record.cells, &header);
            if !keep {
                again.push(record.line);
            }
            keep
        });
        if !again.is_empty() {
            notes.push(format!(
                "{} {} the names of the columns and {} left out",
                lines(&again),
                verb(again.len(), "repeat"),
                verb(again.len(), "are")
            ));
        }
    }
    let first = usize::from(named);
    while records.len() > first + 1
        && let Some(word) = total(&records[first..])
    {
        let last = records.pop().expect("there is a last record");
        notes.push(format!(
            "line {} begins with {word:?} and is left out: it sums up the rows before it",
            last.line
        ));
    }
    (records, notes)
}

fn same_names(cells: &StringRecord, header: &StringRecord) -> bool {
    filled(header) > 1 && cells == header
}

/// Records before the table: comments after `#`, titles alone in their line.
fn ahead(records: &[CsvRecord], named: bool, text: &str) -> usize {
    let mut count = 0;
    while count < AHEAD.min(records.len().saturating_sub(1)) {
        let own = &records[count].cells;
        let next = &records[count + 1].cells;
        let first = own.get(0).unwrap_or_default();
        let hash =
            first.starts_with('#') && text[records[count].start..].starts_with(['#', '"', ' ']);
        // A line of names may begin with `#`, too: then it has as many cells as the next.
        let comment = hash && (own.len() == 1 || own.len() != next.len());
        // Titles are one cell wide, as far as anybody sees.
        let wide = records[count + 1..]
            .iter()
            .take(AHEAD)
            .map(|record| filled(&record.cells))
            .max()
            .unwrap_or(0);
        let bare = own.len() == 1 && wide > 1;
        let padded = named
            && own.len() > 1
            && filled(own) == 1
            && !first.is_empty()
            && wide > 1
            && (names(next) || filled(next) == 1);
        // A number is no title, and neither are names with another separator.
        let numeric = number(first).is_some() || first.contains([';', '\t', '|']);
        if !(comment || (named && (bare || padded) && !numeric)) {
            break;
        }
        count += 1;
    }
    count
}

/// Whether these could be the names of columns: several, and none a number.
fn names(cells: &StringRecord) -> bool {
    let mut filled = cells.iter().filter(|cell| !cell.is_empty());
    cells.len() > 1 && filled.clone().count() > 1 && filled.all(|cell| number(cell).is_none())
}

/// The word with which the last row says that it sums up the others. It stands in the first cell that is
/// filled, and nowhere else in that column.
fn total(records: &[CsvRecord]) -> Option<String> {
    let (last, others) = records.split_last()?;
    let (place, cell) = summing(&last.cells)?;
    let elsewhere = others.iter().any(|record| {
        record
            .cells
            .get(place)
            .is_some_and(|text| word(text) == word(cell))
    });
    (!elsewhere).then(|| cell.to_owned())
}

/// The cell by which a row says that it sums up others, and its place: the first or second, and nothing before
/// it. Only the row itself is looked at.
pub(super) fn summing(cells: &StringRecord) -> Option<(usize, &str)> {
    let mut filled = cells.iter().enumerate().take(2);
    filled
        .find(|(_, cell)| !cell.is_empty())
        .filter(|(_, cell)| TOTALS.contains(&word(cell).as_str()))
}

/// What a cell begins with, in small letters.
fn word(cell: &str) -> String {
    let end = cell.find([':', '(', '=']).unwrap_or(cell.len());
    cell[..end].trim().to_lowercase()
}

/// The names of columns, without blanks and invisible marks; and a note if there were any. `raw` are
/// the names as they are in the file.
pub(crate) fn tidied(raw: &[String]) -> (Vec<String>, Option<String>) {
    let tidy = |name: &String| -> String {
        let seen = name.chars().filter(|letter| !is_invisible(*letter));
        let spaced = seen.map(|letter| if letter.is_whitespace() { ' ' } else { letter });
        tidy(&spaced.collect::<String>()).into_owned()
    };
    let tidied: Vec<String> = raw.iter().map(tidy).collect();
    // A space behind every separator is a way of writing tables, and no part of a name.
    let spaced = raw.iter().skip(1).all(|name| name.starts_with(' '));
    let seen = |name: &str| {
        name.strip_prefix(' ')
            .filter(|_| spaced)
            .unwrap_or(name)
            .to_owned()
    };
    let changed: Vec<String> = raw
        .iter()
        .zip(&tidied)
        .filter(|(raw, tidy)| plain(&seen(raw)) != tidy.as_str())
        .map(|(_, tidy)| format!("{tidy:?}"))
        .collect();
    let note = (!changed.is_empty()).then(|| {
        format!(
            "the name{} of {} {} spaces or invisible characters that are left out",
            if changed.len() == 1 { "" } else { "s" },
            changed.join(", "),
            verb(changed.len(), "have")
        )
    });
    (tidied, note)
}

/// The names of the columns of a record, as they are in the file.
pub(super) fn written_names(text: &str, record: &CsvRecord, format: &Format) -> Vec<String> {
    let cells = Lexer::untrimmed(text, record.start, format.delimiter);
    let cells = cells.unwrap_or_else(|| record.cells.clone());
    cells.iter().map(String::from).collect()
}
