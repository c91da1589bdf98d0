//! Sheets of Office Open XML (`.xlsx`, `.xlsm`).

use std::collections::BTreeMap;

use quick_xml::events::{BytesStart, Event};

use super::book::{Book, Xml};
use super::values::{ShownCell, iso};
use super::{COLUMNS, Peculiar, SheetName, SheetRow, Sink, at_most};
use crate::data::DataError;

/// Common parts of the sheets of a file.
pub(super) struct Workbook {
    pub(super) sheets: Vec<SheetName>,
    strings: Vec<String>,
    styles: Vec<ShownCell>,
    since_1904: bool,
}

/// Usual place of the main part of a document.
const USUAL: &str = "xl/workbook.xml";

/// Targets of the relations of a part, by their ids, each with its kind.
fn relations(book: &Book<'_>, part: &str) -> Result<BTreeMap<String, (String, String)>, DataError> {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    let mut found = BTreeMap::new();
    let Some(mut xml) = book.xml(&format!("{folder}/_rels/{name}.rels"))? else {
        return Ok(found);
    };
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) if element.local_name().into_inner() == "Relationship" => {
                let of = |name| book.attribute(&element, name);
                if let (Some(id), Some(kind), Some(target)) =
                    (of("Id")?, of("Type")?, of("Target")?)
                {
                    let target = match target.strip_prefix('/') {
                        Some(target) => target.to_owned(),
                        None => format!("{folder}/{target}"),
                    };
                    let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
                    found.insert(id.into_owned(), (kind, target));
                }
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
        buffer.clear();
    }
}

/// The main part of a document, if it is of this kind.
pub(super) fn main_part(book: &Book<'_>) -> Result<Option<String>, DataError> {
    let relations = relations(book, "")?;
    let main = relations
        .into_values()
        .find(|(kind, _)| kind == "officeDocument");
    let main = main.map_or_else(|| USUAL.to_owned(), |(_, target)| target);
    let main = main.trim_start_matches('/').to_owned();
    let there = book.names().any(|name| name.eq_ignore_ascii_case(&main));
    Ok((there && main.ends_with(".xml")).then_some(main))
}

impl Workbook {
    /// Reads what the sheets have in common from the main part.
    ///
    /// # Errors
    /// [`DataError::File`]: it is damaged.
    pub(super) fn read(book: &Book<'_>, main: &str) -> Result<Self, DataError> {
        let relations = relations(book, main)?;
        let of_kind = |wanted: &str| {
            let found = relations.values().find(|(kind, _)| kind == wanted);
            found.map(|(_, target)| target.as_str())
        };
        let mut workbook = Self {
            sheets: Vec::new(),
            strings: strings(book, of_kind("sharedStrings"))?,
            styles: styles(book, of_kind("styles"))?,
            since_1904: false,
        };
        let missing = || book.damaged(&format!("it has no {main}"));
        let mut xml = book.xml(main)?.ok_or_else(missing)?;
        let mut buffer = Vec::new();
        loop {
            match xml
                .read_event_into(&mut buffer)
                .map_err(|error| book.failed(error))?
            {
                Event::Start(element) => match element.local_name().into_inner() {
                    "workbookPr" => {
                        let since = book.attribute(&element, "date1904")?;
                        workbook.since_1904 = matches!(since.as_deref(), Some("1" | "true"));
                    }
                    "sheet" => {
                        let of = |name| book.attribute(&element, name);
                        let id = of("id")?.unwrap_or_default();
                        // Sheets of charts and macros have no cells.
                        if let Some((kind, part)) = relations.get(id.as_ref())
                            && kind == "worksheet"
                        {
                            workbook.sheets.push(SheetName {
                                name: of("name")?.unwrap_or_default().into_owned(),
                                part: part.clone(),
                                hidden: of("state")?.is_some_and(|state| state != "visible"),
                            });
                        }
                    }
                    _ => {}
                },
                Event::Eof => return Ok(workbook),
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
        &self,
        book: &Book<'_>,
        sheet: &SheetName,
        peculiar: &mut Peculiar,
        sink: Sink<'_>,
    ) -> Result<(), DataError> {
        let missing = || book.damaged(&format!("it has no {}", sheet.part));
        let mut xml = book.xml(&sheet.part)?.ok_or_else(missing)?;
        let mut buffer = Vec::new();
        let mut row = SheetRow::default();
        let mut hidden = false;
        loop {
            match xml
                .read_event_into(&mut buffer)
                .map_err(|error| book.failed(error))?
            {
                Event::Start(element) => match element.local_name().into_inner() {
                    "row" => {
                        let of = |name| book.attribute(&element, name);
                        let given = of("r")?.and_then(|at| at.parse().ok());
                        row.at = given.unwrap_or(row.at + 1);
                        row.begin();
                        hidden = matches!(of("hidden")?.as_deref(), Some("1" | "true"));
                    }
                    "c" => {
                        let cell = XlsxCell::of(book, &element)?;
                        self.cell(book, &mut xml, cell, &mut row, peculiar)?;
                    }
                    _ => {}
                },
                Event::End(element)
                    if element.local_name().into_inner() == "row" && row.is_filled() =>
                {
                    peculiar.hidden += usize::from(hidden);
                    book.take(&row.cells)?;
                    sink(&row)?;
                }
                Event::Eof => return Ok(()),
                _ => {}
            }
            buffer.clear();
        }
    }

    /// Reads a cell to its end and puts it into the row.
    fn cell(
        &self,
        book: &Book<'_>,
        xml: &mut Xml<'_>,
        cell: XlsxCell,
        row: &mut SheetRow,
        peculiar: &mut Peculiar,
    ) -> Result<(), DataError> {
        let XlsxContent { value, computed } = XlsxContent::read(book, xml)?;
        let place = match cell.place {
            Some(place) => place,
            None => row.cells.len(),
        };
        at_most(book, place, COLUMNS, "columns")?;
        let text = match (cell.kind.as_str(), value) {
            (_, None) => {
                peculiar.uncomputed += usize::from(computed);
                String::new()
            }
            ("s", Some(value)) => {
                let at = value.trim().parse::<usize>().ok();
                let text = at.and_then(|at| self.strings.get(at));
                text.ok_or_else(|| book.damaged(&format!("there is no text {value}")))?
                    .clone()
            }
            ("str" | "inlineStr", Some(value)) => plain(&value),
            ("b", Some(value)) => match value.trim() {
                "1" | "true" => "TRUE".to_owned(),
                _ => "FALSE".to_owned(),
            },
            ("e", Some(_)) => {
                peculiar.errors += 1;
                String::new()
            }
            ("d", Some(value)) => iso(value.trim()),
            (_, Some(value)) => {
                let value = value.trim();
                let shown = cell.style.and_then(|style| self.styles.get(style));
                let shown = shown.copied().unwrap_or(ShownCell::Plain);
                peculiar.percent += usize::from(shown == ShownCell::Percent);
                match value.parse::<f64>() {
                    Ok(number) if number.is_finite() => {
                        let text = shown.text(number, self.since_1904);
                        row.put_number(place, text);
                        return Ok(());
                    }
                    _ => value.to_owned(),
                }
            }
        };
        row.put(place, text);
        Ok(())
    }
}

/// Attributes at the begin of a cell.
struct XlsxCell {
    place: Option<usize>,
    style: Option<usize>,
    kind: String,
}

impl XlsxCell {
    fn of(book: &Book<'_>, element: &BytesStart<'_>) -> Result<Self, DataError> {
        let of = |name| book.attribute(element, name);
        Ok(Self {
            place: of("r")?.and_then(|name| column(&name)),
            style: of("s")?.and_then(|style| style.parse().ok()),
            kind: of("t")?.unwrap_or_default().into_owned(),
        })
    }
}

/// The column of a cell by its name, such as `BC12`.
fn column(name: &str) -> Option<usize> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters.take(6).fold(0, |number, letter| {
        26 * number + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    });
    number.checked_sub(1)
}

/// Content of a cell, or of an item of the texts that cells share.
struct XlsxContent {
    value: Option<String>,
    /// True if a formula stands there.
    computed: bool,
}

impl XlsxContent {
    /// Reads the element that has just begun to its end. Hints on how a word is spoken belong to no text.
    fn read(book: &Book<'_>, xml: &mut Xml<'_>) -> Result<Self, DataError> {
        let mut content = Self {
            value: None,
            computed: false,
        };
        let (mut depth, mut spoken, mut taken) = (0, None, false);
        let mut buffer = Vec::new();
        loop {
            match xml
                .read_event_into(&mut buffer)
                .map_err(|error| book.failed(error))?
            {
                Event::Start(element) => {
                    depth += 1;
                    match element.local_name().into_inner() {
                        "v" | "t" if spoken.is_none() => {
                            taken = true;
                            content.value.get_or_insert_default();
                        }
                        "rPh" => spoken = Some(depth),
                        "f" => content.computed = true,
                        _ => {}
                    }
                }
                Event::End(_) if depth == 0 => return Ok(content),
                Event::End(_) => {
                    if spoken == Some(depth) {
                        spoken = None;
                    }
                    taken = false;
                    depth -= 1;
                }
                Event::Text(text) if taken => content.add(&text.xml10_content()),
                Event::CData(text) if taken => content.add(&text.xml10_content()),
                Event::GeneralRef(reference) if taken => content.add(&book.letters(&reference)?),
                Event::Eof => return Err(book.damaged("it breaks off")),
                _ => {}
            }
            buffer.clear();
        }
    }

    fn add(&mut self, text: &str) {
        self.value.get_or_insert_default().push_str(text);
    }
}

/// A text, in which letters that XML cannot have are written as `_x000D_`.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("_x") {
        let code = rest
            .get(at + 2..at + 6)
            .filter(|_| rest[at..].get(6..7) == Some("_"));
        let letter = code
            .and_then(|code| u32::from_str_radix(code, 16).ok())
            .and_then(char::from_u32);
        plain += &rest[..at];
        rest = match letter {
            Some(letter) => {
                plain.push(letter);
                &rest[at + 7..]
            }
            None => {
                plain += "_x";
                &rest[at + 2..]
            }
        };
    }
    plain + rest
}

/// The texts that cells share.
fn strings(book: &Book<'_>, part: Option<&str>) -> Result<Vec<String>, DataError> {
    let mut found = Vec::new();
    let Some(mut xml) = part.map_or(Ok(None), |part| book.xml(part))? else {
        return Ok(found);
    };
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) if element.local_name().into_inner() == "si" => {
                let content = XlsxContent::read(book, &mut xml)?;
                found.push(plain(&content.value.unwrap_or_default()));
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
        buffer.clear();
    }
}

/// Returns what every style makes of a number.
fn styles(book: &Book<'_>, part: Option<&str>) -> Result<Vec<ShownCell>, DataError> {
    let mut found = Vec::new();
    let Some(mut xml) = part.map_or(Ok(None), |part| book.xml(part))? else {
        return Ok(found);
    };
    let mut own: BTreeMap<u32, ShownCell> = BTreeMap::new();
    let mut of_cells = false;
    let mut buffer = Vec::new();
    loop {
        match xml
            .read_event_into(&mut buffer)
            .map_err(|error| book.failed(error))?
        {
            Event::Start(element) => {
                let number = |name| -> Result<Option<u32>, DataError> {
                    Ok(book
                        .attribute(&element, name)?
                        .and_then(|id| id.parse().ok()))
                };
                match element.local_name().into_inner() {
                    "numFmt" => {
                        let code = book.attribute(&element, "formatCode")?.unwrap_or_default();
                        if let Some(id) = number("numFmtId")? {
                            own.insert(id, ShownCell::written(&code));
                        }
                    }
                    "cellXfs" => of_cells = true,
                    "xf" if of_cells => {
                        let id = number("numFmtId")?.unwrap_or(0);
                        found.push(own.get(&id).copied().unwrap_or(ShownCell::built_in(id)));
                    }
                    _ => {}
                }
            }
            Event::End(element) if element.local_name().into_inner() == "cellXfs" => {
                of_cells = false
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
        buffer.clear();
    }
}
