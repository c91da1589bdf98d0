//! Reads a text part by part, so that a file takes no more memory than its rows.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::gather::{Gathering, Wanted};
use super::lexer::{CsvRecord, Lexer};
use super::origin::Origin;
use super::{RawFile, open_quote, separator, shape};
use crate::data::{DataError, Format};

/// Adds more of a text; `false` where nothing more will come.
type More<'a> = Box<dyn FnMut(&mut String) -> Result<bool, DataError> + 'a>;

/// A part of a text, and what gives the next one.
pub(in crate::data) struct TextWindow<'a> {
    text: Cow<'a, str>,
    more: Option<More<'a>>,
}

impl<'a> TextWindow<'a> {
    /// A text of which nothing more will come.
    pub(in crate::data) fn whole(text: &'a str) -> Self {
        Self {
            text: Cow::Borrowed(text),
            more: None,
        }
    }

    /// A text that `more` gives part by part.
    pub(in crate::data) fn parts(
        more: impl FnMut(&mut String) -> Result<bool, DataError> + 'a,
    ) -> Self {
        Self {
            text: Cow::Owned(String::new()),
            more: Some(Box::new(more)),
        }
    }

    /// Forgets the text before a byte, and takes at least as much again as is left.
    fn advance(&mut self, by: usize) -> Result<(), DataError> {
        let text = self.text.to_mut();
        text.drain(..by);
        let enough = 2 * text.len();
        while let Some(more) = &mut self.more {
            if !more(text)? {
                self.more = None;
            }
            if text.len() > enough {
                break;
            }
        }
        Ok(())
    }
}

impl RawFile {
    /// The rows of CSV text, which is read part by part, and in them the cells of the wanted columns.
    ///
    /// # Errors
    /// [`DataError::OpenQuote`], [`DataError::Ragged`], [`DataError::TwoColumns`]; an empty file; what the window
    /// cannot give.
    pub(in crate::data) fn of_window(
        path: PathBuf,
        mut window: TextWindow<'_>,
        format: &Format,
        wanted: Wanted<'_>,
    ) -> Result<Self, DataError> {
        let mut format = format.clone();
        let (head, given, position) = head(&path, &mut window, format.delimiter)?;
        let mut note = None;
        if let Some(mark) = given.filter(|mark| *mark != format.delimiter) {
            format.delimiter = mark;
            note = Some(format!(
                "cells are separated by {mark:?}, as its first line says"
            ));
        }
        let origin = Origin::Text(&window.text);
        let mut table = Gathering::begin(path.clone(), head, origin, &format, wanted)?;
        let (mut at, mut line) = position;
        loop {
            let goes_on = window.more.is_some();
            let mut lexer = Lexer::part(&window.text[at..], format.delimiter, line, goes_on);
            for record in lexer.by_ref() {
                table.add(record.map_err(|open| open_quote(&path, open))?)?;
            }
            let read = lexer.reached();
            (at, line) = (at + read.0, read.1);
            if !goes_on {
                break;
            }
            window.advance(at)?;
            at = 0;
        }
        // Whatever ends with its line is taken out of the window before more comes.
        let ends = window.text.is_empty() || window.text.ends_with(['\n', '\r']);
        let mut file = table.finish(ends)?;
        file.notes.splice(0..0, note);
        Ok(file)
    }
}

/// The first records, what separates cells if the text says so, and the byte and line behind them.
type Head = (Vec<CsvRecord>, Option<char>, (usize, u64));

/// The first records of a text, what separates cells if it says so itself, and the byte and line behind them.
fn head(path: &Path, window: &mut TextWindow<'_>, delimiter: char) -> Result<Head, DataError> {
    loop {
        let given = separator(&window.text);
        let delimiter = given.unwrap_or(delimiter);
        let mut lexer = Lexer::part(&window.text, delimiter, 1, window.more.is_some());
        if given.is_some() {
            lexer.skip_line();
        }
        let (mut head, mut filled) = (Vec::new(), 0);
        while filled < shape::HEAD
            && let Some(record) = lexer.next()
        {
            let record = record.map_err(|open| open_quote(path, open))?;
            filled += usize::from(shape::filled(&record.cells) > 0);
            head.push(record);
        }
        if filled == shape::HEAD || window.more.is_none() {
            return Ok((head, given, lexer.reached()));
        }
        window.advance(0)?;
    }
}
