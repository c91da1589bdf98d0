//! Cuts the text of a CSV file into cells.
//!
//! Lines end with a line feed, a carriage return or both. A cell that begins with a quotation mark ends
//! with one; two of them within it are one. Blanks around cells are left out, and so are blank lines.

use csv::StringRecord;

use super::cell::tidy;

/// The cells of one line, or of several with quotation marks.
pub(in crate::data) struct CsvRecord {
    /// The line where the record begins, from 1.
    pub(in crate::data) line: u64,
    /// The byte where the record begins.
    pub(in crate::data) start: usize,
    pub(in crate::data) cells: StringRecord,
    /// The line where the first cell over several lines begins.
    pub(in crate::data) long: Option<u64>,
}

/// A quotation mark that opens a cell and has no proper end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenQuote {
    pub(super) line: u64,
    /// The cell in its record, from 1.
    pub(super) cell: usize,
    pub(super) why: Quote,
}

/// Fault of a cell in quotation marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    /// The cell is open at the end of the file.
    Open,
    /// Text follows where the cell ends.
    More,
}

/// Reads text from one of its lines on.
pub(super) struct Lexer<'a> {
    text: &'a str,
    delimiter: u8,
    at: usize,
    line: u64,
    /// True if the blanks around cells are left out.
    trim: bool,
    /// True if more of the text is to come: a record that may go on there is not read yet.
    goes_on: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, delimiter: char) -> Self {
        Self {
            text,
            delimiter: delimiter as u8,
            at: 0,
            line: 1,
            trim: true,
            goes_on: false,
        }
    }

    /// Reads on in another part of the text, which begins with this line.
    pub(super) fn part(text: &'a str, delimiter: char, line: u64, goes_on: bool) -> Self {
        Self {
            line,
            goes_on,
            ..Self::new(text, delimiter)
        }
    }

    /// The byte and the line that were read up to.
    pub(super) fn reached(&self) -> (usize, u64) {
        (self.at, self.line)
    }

    /// The cells of the record that begins at a byte, with the blanks around them.
    pub(super) fn untrimmed(text: &'a str, start: usize, delimiter: char) -> Option<StringRecord> {
        let mut lexer = Self::new(text, delimiter);
        (lexer.at, lexer.trim) = (start, false);
        Some(lexer.next()?.ok()?.cells)
    }

    /// Takes a whole line as it is.
    pub(super) fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        self.at += end.unwrap_or(rest.len());
        self.end_line();
    }

    /// Passes the end of a line, if it is here.
    fn end_line(&mut self) -> bool {
        let bytes = self.text.as_bytes();
        let length = match (bytes.get(self.at), bytes.get(self.at + 1)) {
            (Some(b'\r'), Some(b'\n')) => 2,
            (Some(b'\r' | b'\n'), _) => 1,
            _ => return false,
        };
        self.at += length;
        self.line += 1;
        true
    }

    /// Passes blanks within a line that do not separate cells.
    fn blanks(&self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(at)
            && matches!(byte, b' ' | b'\t')
            && *byte != self.delimiter
        {
            at += 1;
        }
        at
    }

    /// A cell in quotation marks, the first of which is at `at`.
    fn quoted(&mut self, at: usize) -> Result<String, Quote> {
        let bytes = self.text.as_bytes();
        let mut value = String::new();
        self.at = at + 1;
        let mut from = self.at;
        loop {
            match bytes.get(self.at) {
                None => return Err(Quote::Open),
                Some(b'"') => {
                    value.push_str(&self.text[from..self.at]);
                    self.at += 1;
                    from = self.at;
                    if bytes.get(self.at) != Some(&b'"') {
                        break;
                    }
                    self.at += 1;
                }
                Some(b'\r' | b'\n') => {
                    self.end_line();
                }
                Some(_) => self.at += 1,
            }
        }
        self.at = self.blanks(self.at);
        match bytes.get(self.at) {
            None | Some(b'\r' | b'\n') => Ok(value),
            Some(byte) if *byte == self.delimiter => Ok(value),
            Some(_) => Err(Quote::More),
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Result<CsvRecord, OpenQuote>;

    fn next(&mut self) -> Option<Self::Item> {
        let before = self.reached();
        let record = self.record();
        let open = matches!(&record, Some(Err(open)) if open.why == Quote::Open);
        if self.goes_on && (open || record.is_none() || self.at >= self.text.len()) {
            (self.at, self.line) = before;
            return None;
        }
        record
    }
}

impl Lexer<'_> {
    /// The next record of this text, whether or not it goes on.
    fn record(&mut self) -> Option<Result<CsvRecord, OpenQuote>> {
        let bytes = self.text.as_bytes();
        loop {
            let after = self.blanks(self.at);
            match bytes.get(after) {
                None => return None,
                Some(b'\r' | b'\n') => {
                    self.at = after;
                    self.end_line();
                }
                Some(_) => break,
            }
        }
        let mut record = CsvRecord {
            line: self.line,
            start: self.at,
            cells: StringRecord::new(),
            long: None,
        };
        loop {
            let start = self.blanks(self.at);
            if bytes.get(start) == Some(&b'"') {
                let line = self.line;
                match self.quoted(start) {
                    Ok(value) if self.trim => {
                        record.cells.push_field(&tidy(&value));
                    }
                    Ok(value) => record.cells.push_field(&value),
                    Err(why) => {
                        let cell = record.cells.len() + 1;
                        return Some(Err(OpenQuote { line, cell, why }));
                    }
                }
                if self.line > line {
                    record.long.get_or_insert(line);
                }
            } else {
                let rest = &bytes[self.at..];
                let ends = |byte: &u8| matches!(byte, b'\r' | b'\n') || *byte == self.delimiter;
                let end = rest.iter().position(ends).unwrap_or(rest.len());
                let cell = &self.text[self.at..self.at + end];
                match self.trim {
                    true => record.cells.push_field(&tidy(cell)),
                    false => record.cells.push_field(cell),
                }
                self.at += end;
            }
            match bytes.get(self.at) {
                Some(byte) if *byte == self.delimiter => self.at += 1,
                _ => break,
            }
        }
        self.end_line();
        Some(Ok(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<(u64, Vec<String>)> {
        let records = Lexer::new(text, ',').map(|record| record.expect("no open quote"));
        let own = |record: CsvRecord| record.cells.iter().map(String::from).collect();
        records.map(|record| (record.line, own(record))).collect()
    }

    fn fails(text: &str) -> OpenQuote {
        let found = Lexer::new(text, ',').find_map(Result::err);
        found.expect("an open quote")
    }

    #[test]
    fn cells_are_cut_at_separators_and_lines() {
        let expected = [
            (1, vec!["a".to_owned(), "b".into()]),
            (3, vec!["1".into(), "x, y".into()]),
            (4, vec!["2".into(), "he said \"no\"".into()]),
            (5, vec![String::new(), "5\" pipe".into()]),
            (6, vec!["3".into(), "two\nlines".into()]),
            (8, vec!["4".into(), String::new()]),
        ];
        let lines = "a , b|  |1, \"x, y\" |2,\"he said \"\"no\"\"\"|,5\" pipe|3,\"two\nlines\"|4,";
        for end in ["\n", "\r\n", "\r"] {
            let text = lines.replace('|', end);
            assert_eq!(cells(&text), expected, "{end:?}");
            assert_eq!(cells(&(text + end)), expected, "{end:?}");
        }
    }

    #[test]
    fn a_text_in_parts_has_the_records_of_the_whole() {
        let text = "a,b\r\n1,\"two\r\nlines \"\"x\"\"\"\r\n\r\n\"q\" ,3\n4,5\r6,7";
        let whole = cells(text);
        // Parts of every length: what a part does not finish comes again with the next.
        for length in 1..text.len() {
            let (mut from, mut to, mut line) = (0, 0, 1);
            let mut found = Vec::new();
            loop {
                to = (to + length).min(text.len());
                let mut lexer = Lexer::part(&text[from..to], ',', line, to < text.len());
                for record in lexer.by_ref() {
                    let record = record.expect("no open quote");
                    let own: Vec<String> = record.cells.iter().map(String::from).collect();
                    found.push((record.line, own));
                }
                from += lexer.reached().0;
                line = lexer.reached().1;
                if to == text.len() {
                    break;
                }
            }
            assert_eq!(found, whole, "{length}");
        }
    }

    #[test]
    fn an_open_quotation_mark_is_found_where_it_began() {
        let rest = "52,6,ok\n".repeat(20);
        let short = "52,6,ok\n".repeat(3);
        let cases = [
            (format!("a,b,c\n1,2,\"check\n{rest}"), 2, 3, Quote::Open),
            (format!("a,b,c\n1,2,\"check\n{short}"), 2, 3, Quote::Open),
            (format!("a,b,c\n1,2,3\n\"1,2,3\n{short}"), 3, 1, Quote::Open),
            (
                format!("a,b,c\n1,\"2,3\n{short}1,\"2\",3\n"),
                2,
                2,
                Quote::More,
            ),
            ("a,b\n1,\"x\" y\n".to_owned(), 2, 2, Quote::More),
            ("a,b\n1,\"x\\\" y\"\n".to_owned(), 2, 2, Quote::More),
            ("a,\"b\n1,2\n".to_owned(), 1, 2, Quote::Open),
            (
                format!("a,b,c\r1,2,\"check\r{}", rest.replace('\n', "\r")),
                2,
                3,
                Quote::Open,
            ),
            ("a,b\n1,\"".to_owned(), 2, 2, Quote::Open),
        ];
        for (text, line, cell, why) in cases {
            assert_eq!(fails(&text), OpenQuote { line, cell, why }, "{text}");
        }
    }
}
