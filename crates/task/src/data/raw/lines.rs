//! Reads a text line by line, so that no line decides how another one is read: for sums with noise, in which a
//! row may change nothing but its own numbers.
//!
//! Every line is a row. What [`RawFile::of_text`] finds by looking at many lines is not looked for: titles
//! before the names of the columns, cells over several lines, the encoding. A line that cannot be read is put
//! aside with what is wrong with it, and so is one that begins with "total" or the like, wherever it stands: its
//! numbers would follow from those of all other rows. Notes may look at all lines: they are for whoever has them.

use std::borrow::Cow;
use std::path::PathBuf;

use encoding_rs::Encoding;

use super::lexer::{CsvRecord, Lexer};
use super::{RawFile, RawRows, cells, end, open_quote, separator, shape};
use crate::data::{Charset, DataError, Format};

impl RawFile {
    /// The rows of CSV text, each read by itself. The first line has the names of the columns, unless the format
    /// has them: then it is a row like all others, and a mark of the encoding or `sep=;` in it says nothing.
    ///
    /// # Errors
    /// Faults of the file, whatever rows it has: [`DataError::File`], an encoding whose lines cannot be told
    /// apart, no names; [`DataError::TwoColumns`]; [`DataError::OpenQuote`] among the names.
    pub fn of_lines(path: PathBuf, bytes: &[u8], format: &Format) -> Result<Self, DataError> {
        let failed = |reason: String, hint: &str| DataError::File {
            path: path.clone(),
            reason,
            hint: hint.into(),
        };
        let named = Charset::of(&format.encoding).unwrap_or(Charset::UTF_8);
        // Without a line of names the first bytes are those of a row, which decides about itself alone.
        let has_names = format.columns.is_none();
        let marked = Encoding::for_bom(bytes).filter(|_| has_names);
        let marked = marked.map(|(encoding, mark)| (Charset::Standard(encoding), mark));
        let (encoding, mark) = marked.unwrap_or((named, 0));
        if !encoding.is_ascii_compatible() {
            let hint = ": with noise every line is read by itself; save the file in UTF-8";
            return Err(failed(format!("it is {} text", encoding.name()), hint));
        }
        let no_text = |line: u64| {
            let hint = ": say in `format` which `encoding` it has, for example \"windows-1252\"";
            failed(format!("line {line} is no {} text", encoding.name()), hint)
        };
        let mut format = format.clone();
        let mut lines = lines(&bytes[mark..]).enumerate().peekable();
        let given = lines
            .peek()
            .filter(|_| has_names)
            .and_then(|(_, first)| separator(&decoded(encoding, first)?));
        if let Some(mark) = given {
            format.delimiter = mark;
            lines.next();
        }
        let mut names = match &format.columns {
            Some(names) if names.is_empty() => {
                let what = "with noise the names of the columns cannot follow from a row: write them in `columns` \
                            of `format`";
                return Err(DataError::Config(format!("{}: {what}", path.display())));
            }
            names => names.clone(),
        };
        let mut rows: Option<RawRows> = None;
        let mut named = Vec::new();
        let mut unreadable = Vec::new();
        // The last line, and the last one that is a row.
        let (mut line, mut row) = (0, 0);
        for (at, bytes) in lines {
            line = at as u64 + 1;
            // A mark before the first row belongs to no cell.
            let plain = bytes
                .strip_prefix(b"\xEF\xBB\xBF")
                .filter(|_| encoding == Charset::UTF_8);
            let bytes = plain.unwrap_or(bytes);
            let Some(text) = decoded(encoding, bytes) else {
                if names.is_none() {
                    return Err(no_text(line));
                }
                unreadable.push(no_text(line));
                continue;
            };
            let record = match Lexer::new(&text, format.delimiter).next() {
                None => continue,
                Some(Ok(record)) => CsvRecord { line, ..record },
                Some(Err(open)) => {
                    let error = open_quote(&path, super::lexer::OpenQuote { line, ..open });
                    if names.is_none() {
                        return Err(error);
                    }
                    unreadable.push(error);
                    continue;
                }
            };
            let Some(names) = &names else {
                names = Some(shape::written_names(&text, &record, &format));
                continue;
            };
            if record.cells.iter().all(str::is_empty) {
                continue;
            }
            if let Some((_, word)) = shape::summing(&record.cells, 0) {
                let hint = ": with noise such a row counts as nothing, wherever it stands";
                let what = format!("line {line} begins with {word:?}, so it sums up other rows");
                unreadable.push(failed(what, hint));
                continue;
            }
            let width = names.len();
            if named.is_empty() {
                named = named_columns(names);
            }
            let last = named.iter().rposition(|named| *named);
            let least = last.map_or(0, |last| last + 1);
            let rows = rows.get_or_insert_with(|| RawRows::new(&named, true));
            match cells(record, least..=width, format.delimiter, &path, &mut 0) {
                Ok(cells) => {
                    rows.push(&path, line, cells.iter())?;
                    row = line;
                }
                Err(error) => unreadable.push(error),
            }
        }
        let names = names.unwrap_or_default();
        let named = named_columns(&names);
        let mut rows = rows.unwrap_or_else(|| RawRows::new(&named, true));
        rows.keep_columns(&named);
        let names: Vec<String> = names
            .into_iter()
            .zip(named)
            .filter(|(_, named)| *named)
            .map(|(name, _)| name)
            .collect();
        let mut file = Self {
            unreadable,
            ..Self::new(path, &names, rows, Vec::new())?
        };
        if row == line && !bytes.ends_with(b"\n") && !bytes.ends_with(b"\r") {
            file.notes.extend(end::broken_off(&file));
        }
        Ok(file)
    }
}

/// The text of a line, if it is one.
fn decoded(encoding: Charset, line: &[u8]) -> Option<Cow<'_, str>> {
    encoding.text(line).filter(|text| !text.contains('\0'))
}

/// Returns whether columns have names. One without is not read, whatever it holds.
fn named_columns(names: &[String]) -> Vec<bool> {
    let (tidied, _) = shape::tidied(names);
    tidied.iter().map(|name| !name.is_empty()).collect()
}

/// The lines, which end with a line feed, a carriage return or both.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some(end) = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            return Some(text);
        };
        let both = text[end..].starts_with(b"\r\n");
        rest = Some(&text[end + 1 + usize::from(both)..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::RawRow;
    use super::*;

    fn read(bytes: &[u8]) -> RawFile {
        RawFile::of_lines("a.csv".into(), bytes, &Format::default()).unwrap()
    }

    fn rows(file: &RawFile) -> Vec<(String, String)> {
        let cells = |row: RawRow<'_>| row.cells.iter().collect::<Vec<_>>().join("|");
        let rows = file.rows.iter();
        rows.map(|row| (row.at.to_string(), cells(row))).collect()
    }

    #[test]
    fn a_line_that_cannot_be_read_changes_no_other_line() {
        let good = b"x,y\n1,a\n\n 2 , \"b, c\"\r\n,\n3,\xC3\xA9\r4,d,,\n".as_slice();
        let expected = [
            ("line 2".to_owned(), "1|a".to_owned()),
            ("line 4".into(), "2|b, c".into()),
            ("line 6".into(), "3|\u{E9}".into()),
            ("line 7".into(), "4|d".into()),
        ];
        assert_eq!(rows(&read(good)), expected);
        let bad: [(&[u8], &str); 8] = [
            (
                b"9,\"open",
                "line 8: a quotation mark opens cell 2, which is never closed",
            ),
            (b"9,\"a\" b", "line 8: a quotation mark opens cell 2"),
            (b"9", "line 8: expected 2 cells, one per column, found 1"),
            (
                b"9,8,7",
                "line 8: expected 2 cells, one per column, found 3",
            ),
            (b"9,\xFF\xFE", "line 8 is no UTF-8 text"),
            (b"9,\0", "line 8 is no UTF-8 text"),
            (b"Mittelwert,b", "line 8 begins with \"Mittelwert\""),
            (b",Total (n=4):", "line 8 begins with \"Total (n=4):\""),
        ];
        for (line, why) in bad {
            let with = read(&[good, line, b"\n"].concat());
            assert_eq!(rows(&with), expected);
            let said: Vec<_> = with.unreadable.iter().map(DataError::to_string).collect();
            assert!(said.len() == 1 && said[0].contains(why), "{said:?}");
            // In front of all others, too.
            let with = read(&[&good[..4], line, b"\n", &good[4..]].concat());
            let cells =
                |rows: Vec<(String, String)>| rows.into_iter().map(|row| row.1).collect::<Vec<_>>();
            assert_eq!(cells(rows(&with)), cells(expected.to_vec()));
        }
    }

    #[test]
    fn a_value_that_breaks_off_is_reported_and_read_as_it_is() {
        let text = b"x,y\n1,22.5\n1,23.5\r1,24.5\r\n1,25.5\n1,26.5\n".as_slice();
        for (last, says) in [
            ("1,2", true),
            ("1,27.", true),
            ("1,", true),
            ("1,27.5", false),
            ("1,2\n", false),
            ("1,2\r", false),
            // These are no rows.
            ("1", false),
            ("Total,2", false),
        ] {
            let file = read(&[text, last.as_bytes()].concat());
            let said = file.notes.join("\n");
            assert_eq!(said.contains("was the file cut off?"), says, "{last:?}");
            assert_eq!(
                file.rows.iter().count(),
                if says { 6 } else { file.rows.len() }
            );
        }
    }

    #[test]
    fn columns_without_names_are_not_read_and_names_alone_are_valid() {
        let file = read(b"\xEF\xBB\xBFsep=;\n;x;y;;\n7;1;a;;\n8;2;b;9\n");
        assert_eq!(file.header, ["x", "y"]);
        assert_eq!(
            rows(&file),
            [
                ("line 3".into(), "1|a".into()),
                ("line 4".into(), "2|b".into())
            ]
        );
        assert_eq!(rows(&read(b"x,y\n")), []);
        let bare = Format {
            columns: Some(vec!["x".into(), "y".into()]),
            ..Format::default()
        };
        let bare = RawFile::of_lines("a.csv".into(), b"\xEF\xBB\xBF\"1\",a\n2,b\n", &bare);
        assert_eq!(
            rows(&bare.unwrap()),
            [
                ("line 1".into(), "1|a".into()),
                ("line 2".into(), "2|b".into())
            ]
        );
    }

    #[test]
    fn what_is_wrong_with_the_whole_file_is_an_error() {
        let why = |bytes: &[u8], format: &Format| {
            let file = RawFile::of_lines("a.csv".into(), bytes, format);
            file.err().unwrap().to_string()
        };
        let usual = Format::default();
        assert!(why(b"", &usual).contains("it is empty"));
        assert!(why(b"x,x\n1,2\n", &usual).contains("is there twice"));
        assert!(why(b"x,\"y\n1,2\n", &usual).contains("line 1: a quotation mark"));
        assert!(why(b"\xFF\xFEx\0,\0y\0", &usual).contains("save the file in UTF-8"));
        let numbered = Format {
            columns: Some(Vec::new()),
            ..usual
        };
        assert!(why(b"1,2\n", &numbered).contains("write them in `columns`"));
    }
}
