//! The encodings of texts: those of the WHATWG standard, and that of DOS, which the standard does not have.

use std::borrow::Cow;

use encoding_rs::Encoding;

/// Encoding of letters as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// One of the WHATWG standard.
    Standard(&'static Encoding),
    /// Code page 850, in which DOS and its successors write western texts.
    Cp850,
}

/// The letters of the upper half of code page 850.
const CP850: &str = "ÇüéâäàåçêëèïîìÄÅ\
     ÉæÆôöòûùÿÖÜø£Ø×ƒ\
     áíóúñÑªº¿®¬½¼¡«»\
     ░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐\
     └┴┬├─┼ãÃ╚╔╩╦╠═╬¤\
     ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
     ÓßÔÒõÕµþÞÚÛÙýÝ¯´\
     \u{AD}±‗¾¶§÷¸°¨·¹³²■\u{A0}";

/// Names of code page 850.
const NAMES: [&str; 4] = ["cp850", "ibm850", "850", "csibm850"];

impl Charset {
    /// UTF-8.
    pub const UTF_8: Self = Self::Standard(encoding_rs::UTF_8);

    /// The encoding of this name, in any case.
    pub fn of(name: &str) -> Option<Self> {
        let known = NAMES
            .iter()
            .any(|own| own.eq_ignore_ascii_case(name.trim()));
        match Encoding::for_label(name.as_bytes()) {
            Some(standard) => Some(Self::Standard(standard)),
            None => known.then_some(Self::Cp850),
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Standard(encoding) => encoding.name(),
            Self::Cp850 => NAMES[0],
        }
    }

    /// The name that `format` has of it.
    pub fn label(self) -> String {
        self.name().to_ascii_lowercase()
    }

    /// The text of bytes, without looking for a mark at their beginning; `None` where they are no text.
    pub fn text(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Standard(encoding) => {
                encoding.decode_without_bom_handling_and_without_replacement(bytes)
            }
            Self::Cp850 => Some(bytes.iter().map(|byte| cp850(*byte)).collect()),
        }
    }

    /// Returns whether ASCII letters have their own bytes, which no other letter has.
    pub fn is_ascii_compatible(self) -> bool {
        match self {
            Self::Standard(encoding) => encoding.is_ascii_compatible(),
            Self::Cp850 => true,
        }
    }

    /// The bytes of a text; `None` where it has letters that the encoding lacks.
    pub fn bytes(self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Standard(encoding) => {
                let (bytes, _, lost) = encoding.encode(text);
                (!lost).then(|| bytes.into_owned())
            }
            Self::Cp850 => {
                let byte = |letter: char| match u8::try_from(letter) {
                    Ok(ascii @ 0..128) => Some(ascii),
                    _ => {
                        let at = CP850.chars().position(|own| own == letter)?;
                        Some(128 + at as u8)
                    }
                };
                text.chars().map(byte).collect()
            }
        }
    }
}

/// The letter of a byte in code page 850.
fn cp850(byte: u8) -> char {
    match byte {
        0..128 => byte.into(),
        _ => CP850
            .chars()
            .nth(usize::from(byte) - 128)
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_page_850_has_a_letter_for_every_byte() {
        assert_eq!(CP850.chars().count(), 128);
        let all: Vec<u8> = (0..=255).collect();
        let text = Charset::Cp850.text(&all).expect("every byte is a letter");
        assert_eq!(Charset::Cp850.bytes(&text), Some(all));
        assert_eq!(
            Charset::Cp850
                .text(b"S\x81d, K\x94ln, Stra\xE1e")
                .as_deref(),
            Some("S\u{FC}d, K\u{F6}ln, Stra\u{DF}e")
        );
        assert_eq!(Charset::Cp850.bytes("\u{20AC}"), None);
    }

    #[test]
    fn names_are_those_of_the_standard_and_of_code_page_850() {
        for name in ["cp850", "IBM850", "850"] {
            assert_eq!(Charset::of(name), Some(Charset::Cp850), "{name}");
        }
        for (name, found) in [
            ("latin1", "windows-1252"),
            ("Shift_JIS", "shift_jis"),
            ("gb18030", "gb18030"),
            ("euc-kr", "euc-kr"),
            ("KOI8-R", "koi8-r"),
            ("cp1251", "windows-1251"),
        ] {
            assert_eq!(
                Charset::of(name).map(Charset::label).as_deref(),
                Some(found)
            );
        }
        assert_eq!(Charset::of("ebcdic"), None);
    }
}
