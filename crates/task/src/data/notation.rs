//! Ways of writing numbers and missing values that a person should know of: what stands around numbers,
//! and marks of missing values that could be values.

use std::collections::BTreeMap;

use super::{ColumnMarks, DataError, Format, Negative, RawFile, WrittenNumber};

/// Notes on what stands around the numbers of these columns: a currency, a sign of per cent, brackets. `marks`
/// are those of every column of the file, where there are any.
///
/// # Errors
/// [`DataError::Mixed`]: two currencies, or numbers with one and without, or two marks of negative
/// numbers. [`DataError::NoColumn`].
pub fn notation_notes(
    file: &RawFile,
    columns: &[&str],
    format: &Format,
    marks: &[ColumnMarks],
) -> Result<Vec<String>, DataError> {
    let mut notes = Vec::new();
    let none = ColumnMarks::default();
    for &column in columns {
        let place = file.place(column)?;
        let own = marks.get(place).unwrap_or(&none);
        let mut first: Option<(usize, WrittenNumber)> = None;
        let mut negative: Option<(usize, WrittenNumber)> = None;
        for (at, row) in file.rows.iter().enumerate() {
            let text = row.cells.get(place).unwrap_or_default();
            if text.is_empty() || format.is_missing_in(own, text) {
                continue;
            }
            let Some(written) = format.written(text) else {
                continue;
            };
            if written.negative != Negative::No {
                match &negative {
                    Some((before, first)) if first.negative != written.negative => {
                        return Err(mixed(file, place, *before, at));
                    }
                    Some(_) => {}
                    None => negative = Some((at, written.clone())),
                }
            }
            match &first {
                Some((before, first)) if first.unit != written.unit => {
                    return Err(mixed(file, place, *before, at));
                }
                Some(_) => {}
                None => first = Some((at, written)),
            }
        }
        let cell = |at: usize| file.rows.row(at).cells.get(place).unwrap_or_default();
        if let Some((at, written)) = first
            && let Some(unit) = written.unit
        {
            notes.push(format!(
                "the numbers of {column:?} are written with {unit:?}, which is left out: {:?} is read as {}",
                cell(at),
                written.value
            ));
        }
        if let Some((at, written)) = negative
            && written.negative != Negative::Sign
        {
            notes.push(format!(
                "negative numbers of {column:?} are marked as accountants do: {:?} is read as {}",
                cell(at),
                written.value
            ));
        }
    }
    Ok(notes)
}

/// Two cells of a column whose numbers are written in two ways.
fn mixed(file: &RawFile, place: usize, first: usize, second: usize) -> DataError {
    let cell = |at: usize| {
        let row = file.rows.row(at);
        format!(
            "{:?} in {}",
            row.cells.get(place).unwrap_or_default(),
            row.at
        )
    };
    DataError::Mixed {
        path: file.path.clone(),
        column: file.header[place].clone(),
        cells: format!("{} and {}", cell(first), cell(second)),
    }
}

/// Notes on the cells of these columns that are read as missing by default and could be values. `marks` are those
/// of every column of the file, where there are any.
pub fn missing_notes(
    file: &RawFile,
    columns: &[&str],
    format: &Format,
    marks: &[ColumnMarks],
) -> Vec<String> {
    let mut notes = Vec::new();
    let none = ColumnMarks::default();
    for &column in columns {
        let Ok(place) = file.place(column) else {
            continue;
        };
        let own = marks.get(place).unwrap_or(&none);
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &file.rows {
            let text = row.cells.get(place).unwrap_or_default();
            let guess = format.is_guess(text) && !own.missing.iter().any(|mark| mark == text);
            if !text.is_empty() && guess && format.is_missing_in(own, text) {
                *counts.entry(text).or_default() += 1;
            }
        }
        for (text, count) in counts {
            notes.push(match count {
                1 => format!("1 cell of {column:?} holds {text:?}, read as missing"),
                count => format!("{count} cells of {column:?} hold {text:?}, read as missing"),
            });
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn file(cells: &[&str]) -> RawFile {
        let rows: String = cells.iter().map(|cell| format!("\"{cell}\",1\n")).collect();
        let text = format!("x,y\n{rows}");
        RawFile::of_text("a.csv".into(), &text, &Format::default()).unwrap()
    }

    fn notes(cells: &[&str]) -> Result<Vec<String>, String> {
        let format = Format {
            thousands: Some(','),
            ..Format::default()
        };
        notation_notes(&file(cells), &["x"], &format, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn what_stands_around_all_numbers_of_a_column_is_reported() {
        let said = |cells: &[&str]| notes(cells).unwrap().join("; ");
        assert_eq!(said(&["1", "-2", "", "NA", "2.5", "\u{2212}3"]), "");
        assert_eq!(
            said(&["$1,234.00", "", "$5"]),
            "the numbers of \"x\" are written with \"$\", which is left out: \"$1,234.00\" is read as 1234"
        );
        assert!(said(&["12 %", "7%"]).contains("\"12 %\" is read as 12"));
        assert!(said(&["12 €", "7€"]).contains("\"€\""));
        assert_eq!(
            said(&["1", "(45)", "7", "(3)"]),
            "negative numbers of \"x\" are marked as accountants do: \"(45)\" is read as -45"
        );
        assert!(said(&["1", "45-"]).contains("\"45-\" is read as -45"));
    }

    #[test]
    fn numbers_of_one_column_in_two_ways_are_refused() {
        let cases: [(&[&str], &str); 6] = [
            (
                &["12 %", "0.12"],
                "a.csv: column \"x\" holds \"12 %\" in line 2 and \"0.12\" in line 3: write all",
            ),
            (&["5", "NA", "$5"], "\"5\" in line 2 and \"$5\" in line 4"),
            (&["$5", "€5"], "\"$5\" in line 2 and \"€5\" in line 3"),
            (
                &["5 USD", "5 EUR"],
                "\"5 USD\" in line 2 and \"5 EUR\" in line 3",
            ),
            (&["-5", "(5)"], "\"-5\" in line 2 and \"(5)\" in line 3"),
            (&["1", "5-", "-5"], "\"5-\" in line 3 and \"-5\" in line 4"),
        ];
        for (cells, part) in cases {
            let error = notes(cells).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn cells_missing_by_default_that_could_be_values_are_counted() {
        let said = |cells: &[&str]| missing_notes(&file(cells), &["x"], &Format::default(), &[]);
        assert_eq!(said(&["1", "", "NA", "NaN", "null"]), [""; 0]);
        assert_eq!(
            said(&["1", "-", "-", "None", "missing"]),
            [
                "2 cells of \"x\" hold \"-\", read as missing",
                "1 cell of \"x\" holds \"None\", read as missing",
                "1 cell of \"x\" holds \"missing\", read as missing",
            ]
        );
    }
}
