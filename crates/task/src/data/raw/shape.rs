//! Records that are no plain rows: titles and comments before a table, rows of totals behind it, names of
//! columns and of rows, lines of units.

use csv::StringRecord;

use super::cell::is_invisible;
use super::cell::{plain, tidy};
use super::lexer::{CsvRecord, Lexer};
use super::origin::Origin;
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
/// Records that are looked at to find the names of the columns.
pub(in crate::data) const HEAD: usize = 2 * AHEAD + 1;

/// Returns what separates the cells, if the first line of a file says so, as Excel writes it: `sep=;`.
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

/// "line 3", "lines 3, 5 and 7", "lines 3, 5, 7 and 12 more"; or rows, as `unit` says.
pub(super) fn lines(unit: &str, of: &[u64]) -> String {
    let text = |line: &u64| line.to_string();
    match of {
        [] => String::new(),
        [one] => format!("{unit} {one}"),
        [first @ .., last] if of.len() <= 5 => {
            let first: Vec<String> = first.iter().map(text).collect();
            format!("{unit}s {} and {last}", first.join(", "))
        }
        _ => {
            let first: Vec<String> = of[..3].iter().map(text).collect();
            format!("{unit}s {} and {} more", first.join(", "), of.len() - 3)
        }
    }
}

/// Cells that hold something.
pub(super) fn filled(cells: &StringRecord) -> usize {
    cells.iter().filter(|cell| !cell.is_empty()).count()
}

/// Records before the table: comments after `#`, titles alone in their line.
pub(super) fn ahead(records: &[CsvRecord], named: bool, origin: Origin<'_>) -> usize {
    let mut count = 0;
    while count < AHEAD.min(records.len().saturating_sub(1)) {
        let own = &records[count].cells;
        let next = &records[count + 1].cells;
        let first = own.get(0).unwrap_or_default();
        let plain = match origin {
            Origin::Text(text) => text[records[count].start..].starts_with(['#', '"', ' ']),
            Origin::Sheet => true,
        };
        let hash = first.starts_with('#') && plain;
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
            && (!first.is_empty() || matches!(origin, Origin::Sheet))
            && wide > 1
            && (names(next) || filled(next) == 1);
        // Above a table of a sheet there may be pairs of a word and what it stands for.
        let pair = matches!(origin, Origin::Sheet) && named && 2 * filled(own) <= wide;
        // A number is no title, and neither are names with another separator.
        let numeric = number(first).is_some() || first.contains([';', '\t', '|']);
        if !(comment || (named && (bare || padded || pair) && !numeric)) {
            break;
        }
        count += 1;
    }
    count
}

/// Returns whether these could be the names of columns: several, and none a number.
fn names(cells: &StringRecord) -> bool {
    let mut filled = cells.iter().filter(|cell| !cell.is_empty());
    cells.len() > 1 && filled.clone().count() > 1 && filled.all(|cell| number(cell).is_none())
}

/// The cell by which a row says that it sums up others, and its place: the first or second behind so many columns
/// without a name, and nothing before it. Only the row itself is looked at.
pub(super) fn summing(cells: &StringRecord, margin: usize) -> Option<(usize, &str)> {
    let mut filled = cells.iter().enumerate().take(margin + 2);
    filled
        .find(|(_, cell)| !cell.is_empty())
        .filter(|(_, cell)| total_word(cell).is_some())
}

/// The word by which a cell says that it is of a sum, in small letters.
pub(super) fn total_word(cell: &str) -> Option<String> {
    let first = cell.chars().next().filter(|first| first.is_alphabetic());
    first?;
    let end = cell.find([':', '(', '=']).unwrap_or(cell.len());
    let word = cell[..end].trim().to_lowercase();
    TOTALS.contains(&word.as_str()).then_some(word)
}

/// Names the column of the labels of rows for which R writes no name: every row has one cell more than there are
/// names, and the first counts the rows, in quotation marks. What to say of it.
pub(super) fn labels_beside_names(
    names: &mut Vec<String>,
    records: &[CsvRecord],
    origin: Origin<'_>,
) -> Option<String> {
    let Origin::Text(text) = origin else {
        return None;
    };
    let labelled = |(at, record): (usize, &CsvRecord)| {
        record.cells.len() == names.len() + 1
            && text[record.start..].starts_with('"')
            && record.cells.get(0) == Some((at + 1).to_string().as_str())
    };
    if names.is_empty() || records.len() < 2 || !records.iter().enumerate().all(labelled) {
        return None;
    }
    names.insert(0, String::new());
    Some(
        "every row has one cell more than there are names of columns, as R writes them: the first counts the rows"
            .into(),
    )
}

/// Returns the remark on the first record below the names, if it is a second line of names or of units: no cell
/// of it is a number, and where all others of a column are, it has a text.
pub(super) fn second_names(
    header: &StringRecord,
    records: &[CsvRecord],
    unit: &str,
) -> Option<String> {
    let (first, others) = records.split_first()?;
    // The names may come again among the rows.
    let others = others.iter().filter(|record| record.cells != *header);
    let others: Vec<&CsvRecord> = others.collect();
    if first.cells == *header || others.len() < 3 {
        return None;
    }
    let usual = Format::default();
    let is_value = |text: &str| !text.is_empty() && !usual.is_missing(text);
    let (mut above_numbers, mut above_texts) = (Vec::new(), 0);
    for (place, cell) in first.cells.iter().enumerate() {
        if looks_numeric(cell) {
            return None;
        }
        let column = others.iter().filter_map(|record| record.cells.get(place));
        let mut column = column.filter(|text| is_value(text));
        let values = column.clone().next().is_some();
        if values && is_value(cell) && column.clone().all(looks_numeric) {
            above_numbers.push(format!("{cell:?}"));
        } else if is_value(cell) && column.any(|other| other == cell) {
            return None;
        } else if is_value(cell) && values {
            above_texts += 1;
        }
    }
    if above_numbers.is_empty() || above_texts > above_numbers.len() {
        return None;
    }
    above_numbers.truncate(3);
    Some(format!(
        "{unit} {} holds {} above numbers and is left out: a second {unit} of names or units",
        first.line,
        above_numbers.join(", ")
    ))
}

/// Returns whether a text is a number or a date, whatever its marks.
fn looks_numeric(text: &str) -> bool {
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let letters = text.chars().filter(|letter| letter.is_alphabetic());
    digits && letters.count() <= 1
}

/// The names of columns, without blanks and invisible marks; and a note if there were any. `raw` are
/// the names as they are in the file.
pub(crate) fn tidied(raw: &[String]) -> (Vec<String>, Option<String>) {
    // Of one name alone a tab is hardly a blank: it separates what somebody has to say that it does.
    let alone = raw.len() == 1;
    let blank = |letter: char| letter.is_whitespace() && !(alone && letter == '\t');
    let tidy = |name: &String| -> String {
        let seen = name.chars().filter(|letter| !is_invisible(*letter));
        let spaced = seen.map(|letter| if blank(letter) { ' ' } else { letter });
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
