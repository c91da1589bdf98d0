//! Texts that were read in another encoding than they were written in.

use std::collections::BTreeMap;

use encoding_rs::{Encoding, MACINTOSH, UTF_8, WINDOWS_1250, WINDOWS_1252};

use super::RawFile;

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

/// A text that was written in one encoding and read in another, as it was meant.
fn repaired(text: &str, read: &'static Encoding, written: &'static Encoding) -> Option<String> {
    let (bytes, _, lost) = read.encode(text);
    if lost {
        return None;
    }
    let meant = written.decode_without_bom_handling_and_without_replacement(&bytes)?;
    (meant != text && !meant.contains(char::is_control)).then(|| meant.into_owned())
}

/// Notes on files with texts that look as if they were read in another encoding: `SÃ¼d` for `Süd`. One
/// for each file, at most.
pub fn mojibake(files: &[RawFile]) -> Vec<String> {
    let all: Vec<_> = files.iter().map(texts).collect();
    let mut notes = Vec::new();
    for (at, (file, own)) in files.iter().zip(&all).enumerate() {
        let path = file.path.display();
        let elsewhere = |meant: &str| {
            let others = all.iter().enumerate().filter(|(other, _)| *other != at);
            let mut holding = others.filter(|(_, texts)| texts.contains_key(meant));
            holding.next().map(|(other, _)| other)
        };
        let note = own.iter().find_map(|(text, column)| {
            if text.contains('\u{FFFD}') {
                return Some(format!(
                    "{path}: column {column:?} holds {text:?}, in which letters were lost when the file \
                     was written: export it again, in UTF-8"
                ));
            }
            // UTF-8 that was read as something else is hardly ever anything else.
            for read in [WINDOWS_1252, WINDOWS_1250, MACINTOSH] {
                let Some(meant) = repaired(text, read, UTF_8) else {
                    continue;
                };
                let there = elsewhere(&meant);
                let there = there.map_or(String::new(), |other| {
                    format!(", as in {}", files[other].path.display())
                });
                return Some(format!(
                    "{path}: column {column:?} holds {text:?}, which is {meant:?} in another encoding{there}: \
                     say in `format` which `encoding` the file has, or export it again in UTF-8"
                ));
            }
            // Others only if a file before has the text.
            let single = [WINDOWS_1252, WINDOWS_1250, MACINTOSH];
            let pairs = single.into_iter().flat_map(|read| single.map(|written| (read, written)));
            let mut pairs = pairs.filter(|(read, written)| read != written);
            pairs.find_map(|(read, written)| {
                let meant = repaired(text, read, written)?;
                let other = elsewhere(&meant).filter(|other| *other < at)?;
                (!own.contains_key(meant.as_str())).then(|| {
                    format!(
                        "{path}: column {column:?} holds {text:?}, and {} {meant:?}, which are the same bytes in \
                         the encodings {} and {}: say in `format` which `encoding` each file has",
                        files[other].path.display(),
                        read.name(),
                        written.name()
                    )
                })
            })
        });
        notes.extend(note);
    }
    notes
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
        mojibake(&[good, file("odd.csv", bytes, encoding)])
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
        // Lost for good.
        let lost = notes("ward,y\nS\u{FFFD}d,1\n".as_bytes(), "utf-8");
        assert!(lost[0].contains("letters were lost"), "{lost:?}");
    }
}
