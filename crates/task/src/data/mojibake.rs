//! Texts that were read in another encoding than they were written in.

use std::collections::BTreeMap;

use super::{Charset, RawFile};

/// Most different texts that are looked at in a file.
const TEXTS: usize = 5000;

/// The texts of a file that are not ASCII, with the column of each.
fn texts(file: &RawFile) -> BTreeMap<&str, &str> {
    let mut found = BTreeMap::new();
    for name in &file.header {
        found.insert(name.as_str(), name.as_str());
    }
    for row in &file.rows {
        for (text, column) in row.cells.iter().zip(&file.header) {
            if found.len() > TEXTS {
                return found;
            }
            if !text.is_ascii() {
                found.entry(text).or_insert(column);
            }
        }
    }
    found.retain(|text, _| !text.is_ascii());
    found
}

/// The encodings in which texts of single bytes are confused.
const SINGLE: [&str; 9] = [
    "windows-1252",
    "windows-1250",
    "macintosh",
    "cp850",
    "windows-1251",
    "koi8-r",
    "ibm866",
    "windows-1253",
    "windows-1254",
];

fn single() -> impl Iterator<Item = Charset> {
    SINGLE.into_iter().filter_map(Charset::of)
}

/// A text that was written in one encoding and read in another, as it was meant.
fn repaired(text: &str, read: Charset, written: Charset) -> Option<String> {
    let bytes = read.bytes(text)?;
    let meant = written.text(&bytes)?;
    (meant != text && !meant.contains(char::is_control)).then(|| meant.into_owned())
}

/// A text in UTF-8 that was read as something else, as it was meant. It is hardly ever anything else.
pub(crate) fn meant(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let usual = single().take(4);
    let mut meant = usual.filter_map(|read| repaired(text, read, Charset::UTF_8));
    meant.next()
}

/// Returns whether a text has the same bytes as another, each in its encoding: that in which the first was read, and
/// that of the other.
pub(crate) fn same_bytes(text: &str, other: &str) -> Option<(Charset, Charset)> {
    if text.is_ascii() || other.is_ascii() || text == other {
        return None;
    }
    let mut pairs = single().flat_map(|read| {
        let written = [Charset::UTF_8].into_iter().chain(single());
        written.map(move |written| (read, written))
    });
    pairs.find(|(read, written)| repaired(text, *read, *written).as_deref() == Some(other))
}

/// A text that looks as if it was read in another encoding than it was written in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mojibake {
    /// The column that holds it.
    pub column: String,
    /// True if another file has the text that is meant.
    pub elsewhere: bool,
    /// Description of the finding, in a sentence.
    pub what: String,
    /// Remedy.
    pub remedy: String,
}

impl std::fmt::Display for Mojibake {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(text, "{}: {}", self.what, self.remedy)
    }
}

/// Texts of files that look as if they were read in another encoding: `SÃ¼d` for `Süd`. One for each file, at
/// most.
pub fn mojibake<'a>(files: impl IntoIterator<Item = &'a RawFile>) -> Vec<Mojibake> {
    let files: Vec<&RawFile> = files.into_iter().collect();
    let all: Vec<_> = files.iter().copied().map(texts).collect();
    let mut found = Vec::new();
    for (at, (file, own)) in files.iter().zip(&all).enumerate() {
        let path = file.path.display();
        let elsewhere = |meant: &str| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let mut holding = others.filter(|(_, texts)| texts.contains_key(meant));
            holding.next().map(|(other, _)| other)
        };
        found.extend(own.iter().find_map(|(text, column)| {
            let odd = |elsewhere, what: String, remedy: &str| Mojibake {
                column: (*column).to_owned(),
                elsewhere,
                what: format!("{path}: column {column:?} holds {text:?}, {what}"),
                remedy: remedy.to_owned(),
            };
            if text.contains('\u{FFFD}') {
                return Some(odd(
                    false,
                    "in which letters were lost when the file was written".into(),
                    "export it again, in UTF-8",
                ));
            }
            if let Some(meant) = meant(text) {
                let there = elsewhere(&meant);
                let named = there.map_or(String::new(), |other| {
                    format!(", as in {}", files[other].path.display())
                });
                return Some(odd(
                    there.is_some(),
                    format!("which is {meant:?} in another encoding{named}"),
                    "say in `format` which `encoding` the file has, or export it again in UTF-8",
                ));
            }
            // Others only if a file before has the text.
            let pairs = single().flat_map(|read| single().map(move |written| (read, written)));
            let mut pairs = pairs.filter(|(read, written)| read != written);
            pairs.find_map(|(read, written)| {
                let meant = repaired(text, read, written)?;
                let other = elsewhere(&meant).filter(|other| *other < at)?;
                (!own.contains_key(meant.as_str())).then(|| {
                    odd(
                        true,
                        format!(
                            "and {} {meant:?}, which are the same bytes in the encodings {} and {}",
                            files[other].path.display(),
                            read.name(),
                            written.name()
                        ),
                        "say in `format` which `encoding` each file has",
                    )
                })
            })
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::Format;

    fn file(name: &str, bytes: &[u8], encoding: &str) -> RawFile {
        let format = Format {
            encoding: encoding.into(),
            ..Format::default()
        };
        let text = format.decode(name.as_ref(), bytes.to_vec()).unwrap();
        RawFile::of_text(name.into(), &text, &format).unwrap()
    }

    fn notes(bytes: &[u8], encoding: &str) -> Vec<String> {
        let good = file("good.csv", "ward,y\nSüd,1\nKöln,2\n".as_bytes(), "utf-8");
        let found = mojibake(&[good, file("odd.csv", bytes, encoding)]);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_text_in_the_wrong_encoding_is_named_with_the_right_one() {
        let utf8 = "ward,y\nSüd,1\n".as_bytes();
        assert_eq!(notes(utf8, "utf-8"), [""; 0]);
        let read = notes(utf8, "windows-1252");
        assert_eq!(read.len(), 1);
        assert!(
            read[0].starts_with("odd.csv: column \"ward\" holds \"SÃ¼d\", which is \"Süd\""),
            "{read:?}"
        );
        assert!(read[0].contains("as in good.csv"), "{read:?}");
        // Written wrongly by a program before.
        let twice = notes("ward,y\nSÃ¼d,1\n".as_bytes(), "utf-8");
        assert!(twice[0].contains("\"Süd\""), "{twice:?}");
        // Nobody else has the text.
        let alone = notes("ward,y\nZÃ¼rich,1\n".as_bytes(), "utf-8");
        assert!(
            alone[0].contains("\"Zürich\"") && !alone[0].contains("as in"),
            "{alone:?}"
        );
        // A column's name.
        let name = notes("Größe,y\n1,1\n".as_bytes(), "windows-1252");
        assert!(name[0].contains("\"Größe\""), "{name:?}");
        // Of a Mac, read as Windows'.
        let mac = notes(b"ward,y\nS\x9fd,1\n", "windows-1252");
        assert_eq!(mac.len(), 1);
        assert!(
            mac[0].contains("and good.csv \"Süd\"") && mac[0].contains("macintosh"),
            "{mac:?}"
        );
        // Of DOS, and of Russian texts.
        let dos = notes(b"ward,y\nS\x81d,1\n", "windows-1250");
        assert!(
            dos[0].contains("and good.csv \"Süd\"") && dos[0].contains("cp850"),
            "{dos:?}"
        );
        let bytes = Charset::of("koi8-r")
            .unwrap()
            .bytes("ward,y\nСевер,1\n")
            .unwrap();
        let good = file("good.csv", "ward,y\nСевер,1\n".as_bytes(), "utf-8");
        let odd = file("odd.csv", &bytes, "windows-1251");
        let found = mojibake(&[good, odd]);
        assert!(
            found[0].elsewhere && found[0].what.contains("KOI8-R"),
            "{found:?}"
        );
        assert!(same_bytes("яЕБЕП", "Север").is_some());
        assert_eq!(
            same_bytes("SÃ¼d", "Süd").map(|(_, written)| written),
            Some(Charset::UTF_8)
        );
        assert_eq!(same_bytes("Nord", "Süd"), None);
        // Lost for good.
        let lost = notes("ward,y\nS\u{FFFD}d,1\n".as_bytes(), "utf-8");
        assert!(lost[0].contains("letters were lost"), "{lost:?}");
    }
}
