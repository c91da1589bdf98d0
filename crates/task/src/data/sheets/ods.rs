//! Sheets of OpenDocument (`.ods`).

use quick_xml::events::{BytesStart, Event};

use super::book::{Book, Xml};
use super::values::{duration, iso};
use super::{COLUMNS, Peculiar, SheetRow, Sink, at_most};
use crate::data::DataError;

/// The part with all sheets.
pub(super) const CONTENT: &str = "content.xml";

fn content<'a>(book: &'a Book<'_>) -> Result<Xml<'a>, DataError> {
    book.xml(CONTENT)?
        .ok_or_else(|| book.damaged("it has no content.xml"))
}

/// Names of the sheets.
///
/// # Errors
/// [`DataError::File`]: it is damaged.
pub(super) fn names(book: &Book<'_>) -> Result<Vec<String>, DataError> {
    let mut xml = content(book)?;
    let mut found = Vec::new();
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) if element.local_name().into_inner() == "table" => {
                let name = book.attribute(&element, "name")?;
                found.push(name.unwrap_or_default().into_owned());
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
        buffer.clear();
    }
}

/// Gives the rows of a sheet that hold something, one after the other.
///
/// # Errors
/// [`DataError`]: it is damaged, or a row is refused.
pub(super) fn rows(
    book: &Book<'_>,
    sheet: usize,
    peculiar: &mut Peculiar,
    sink: Sink<'_>,
) -> Result<(), DataError> {
    let mut xml = content(book)?;
    let mut tables = 0;
    let mut row = SheetRow::default();
    let (mut repeated, mut hidden) = (1, false);
    // Empty cells that count only if something follows.
    let mut gap = 0;
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) => match element.local_name().into_inner() {
                "table" => tables += 1,
                "table-row" if tables == sheet + 1 => {
                    repeated = times(book, &element, "number-rows-repeated")?;
                    let visible = book.attribute(&element, "visibility")?;
                    hidden = visible.is_some_and(|own| own != "visible");
                    row.begin();
                    gap = 0;
                }
                "table-cell" | "covered-table-cell" if tables == sheet + 1 => {
                    let count = times(book, &element, "number-columns-repeated")?;
                    let cell = OdsCell::of(book, &element)?;
                    let (text, number) = cell.text(book, &mut xml, peculiar)?;
                    if text.is_empty() {
                        gap += count;
                    } else {
                        let first = row.cells.len() + gap;
                        gap = 0;
                        at_most(book, first.saturating_add(count) - 1, COLUMNS, "columns")?;
                        for place in first..first + count {
                            match number {
                                true => row.put_number(place, text.clone()),
                                false => row.put(place, text.clone()),
                            }
                        }
                    }
                }
                _ => {}
            },
            Event::End(element) if tables == sheet + 1 => match element.local_name().into_inner() {
                "table" => return Ok(()),
                "table-row" if row.is_filled() => {
                    for _ in 0..repeated {
                        row.at += 1;
                        peculiar.hidden += usize::from(hidden);
                        book.take(&row.cells)?;
                        sink(&row)?;
                    }
                }
                "table-row" => row.at = row.at.saturating_add(repeated as u64),
                _ => {}
            },
            Event::Eof => return Ok(()),
            _ => {}
        }
        buffer.clear();
    }
}

/// Returns how often an element stands for itself.
fn times(book: &Book<'_>, element: &BytesStart<'_>, name: &str) -> Result<usize, DataError> {
    let count = book
        .attribute(element, name)?
        .and_then(|count| count.parse().ok());
    Ok(count.unwrap_or(1).clamp(1, 1 << 40))
}

/// Attributes at the begin of a cell.
#[derive(Default)]
struct OdsCell {
    kind: String,
    value: Option<String>,
    error: bool,
    computed: bool,
}

impl OdsCell {
    fn of(book: &Book<'_>, element: &BytesStart<'_>) -> Result<Self, DataError> {
        let mut cell = Self::default();
        for attribute in element.attributes().with_checks(false) {
            let attribute = attribute.map_err(|error| book.failed(error))?;
            let name = attribute.key.local_name().into_inner().to_owned();
            match name.as_str() {
                // LibreOffice says in its own words that a formula has failed.
                "value-type" if attribute.value == "error" => cell.error = true,
                "value-type" => cell.kind = attribute.value.into_owned(),
                "value" | "date-value" | "time-value" | "boolean-value" | "string-value" => {
                    let value = book.attribute(element, &name)?;
                    cell.value = value.map(|value| value.into_owned());
                }
                "formula" => cell.computed = true,
                _ => {}
            }
        }
        Ok(cell)
    }

    /// Reads the cell to its end; its text, and whether that is a number.
    fn text(
        self,
        book: &Book<'_>,
        xml: &mut Xml<'_>,
        peculiar: &mut Peculiar,
    ) -> Result<(String, bool), DataError> {
        let shown = paragraphs(book, xml)?;
        if self.error {
            peculiar.errors += 1;
            return Ok((String::new(), false));
        }
        let value = self.value.unwrap_or_default();
        Ok(match self.kind.as_str() {
            "float" | "currency" | "percentage" => {
                peculiar.percent += usize::from(self.kind == "percentage");
                match value.parse::<f64>() {
                    Ok(number) if number.is_finite() => (number.to_string(), true),
                    _ => (value, false),
                }
            }
            "date" => (iso(&value), false),
            "time" => (duration(&value).unwrap_or(value), false),
            "boolean" => (value.to_uppercase(), false),
            "string" if shown.is_empty() => (value, false),
            "" => {
                peculiar.uncomputed += usize::from(self.computed && shown.is_empty());
                (shown, false)
            }
            _ => (shown, false),
        })
    }
}

/// The paragraphs of the cell that has just begun, to its end; notes beside it belong to no text.
fn paragraphs(book: &Book<'_>, xml: &mut Xml<'_>) -> Result<String, DataError> {
    let mut text = String::new();
    let (mut depth, mut first, mut aside, mut within) = (0, true, None, None);
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) => {
                depth += 1;
                match element.local_name().into_inner() {
                    "annotation" | "shapes" | "frame" => aside = aside.or(Some(depth)),
                    "p" if aside.is_none() => {
                        if !first {
                            text.push('\n');
                        }
                        (first, within) = (false, Some(depth));
                    }
                    "s" if within.is_some() => {
                        let count = times(book, &element, "c")?.min(1000);
                        text.extend(std::iter::repeat_n(' ', count));
                    }
                    "tab" if within.is_some() => text.push('\t'),
                    "line-break" if within.is_some() => text.push('\n'),
                    _ => {}
                }
            }
            Event::End(_) if depth == 0 => return Ok(text),
            Event::End(_) => {
                if aside == Some(depth) {
                    aside = None;
                }
                if within == Some(depth) {
                    within = None;
                }
                depth -= 1;
            }
            Event::Text(own) if within.is_some() => text += &own.xml10_content(),
            Event::CData(own) if within.is_some() => text += &own.xml10_content(),
            Event::GeneralRef(reference) if within.is_some() => {
                text += &book.letters(&reference)?
            }
            Event::Eof => return Err(book.damaged("it breaks off")),
            _ => {}
        }
        buffer.clear();
    }
}
