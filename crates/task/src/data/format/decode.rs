//! Turns the bytes of a file into text, part by part.

use std::path::Path;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

use super::{Charset, DataError, Format, by_zero_bytes, guess};

/// Reads text of one encoding, part by part.
pub(in crate::data) struct TextDecoder {
    /// `None` for an encoding in which every byte is a letter.
    decoder: Option<Decoder>,
    charset: Charset,
    /// Ends of lines in the parts before.
    lines: usize,
}

impl Format {
    /// Returns what decodes the text of a file that begins with these bytes.
    pub(in crate::data) fn decoder(&self, head: &[u8]) -> TextDecoder {
        let mut charset = Charset::of(&self.encoding).unwrap_or(Charset::UTF_8);
        if charset == Charset::UTF_8 {
            charset = by_zero_bytes(head).map_or(charset, Charset::Standard);
        }
        TextDecoder {
            decoder: match charset {
                Charset::Standard(encoding) => Some(encoding.new_decoder()),
                Charset::Cp850 => None,
            },
            charset,
            lines: 0,
        }
    }

    /// The text of a file.
    ///
    /// # Errors
    /// [`DataError::File`]: bytes that are no text in this encoding, with what to try.
    pub fn decode(&self, path: &Path, bytes: Vec<u8>) -> Result<String, DataError> {
        let mut decoder = self.decoder(&bytes);
        let as_it_is =
            decoder.charset == Charset::Standard(UTF_8) && Encoding::for_bom(&bytes).is_none();
        let bytes = match String::from_utf8(bytes) {
            Ok(text) if as_it_is && !text.contains('\0') => return Ok(text),
            Ok(text) => text.into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let mut text = String::new();
        decoder.decode(path, &bytes, true, &mut text)?;
        Ok(text)
    }
}

impl TextDecoder {
    /// Adds the text of the next bytes, which with `last` are the last.
    ///
    /// # Errors
    /// [`DataError::File`]: bytes that are no text in this encoding, with what to try.
    pub(in crate::data) fn decode(
        &mut self,
        path: &Path,
        bytes: &[u8],
        last: bool,
        into: &mut String,
    ) -> Result<(), DataError> {
        let failed = |reason: String, hint: &str| DataError::File {
            path: path.to_owned(),
            reason,
            hint: hint.to_owned(),
        };
        let before = into.len();
        let (whole, name) = match &mut self.decoder {
            Some(decoder) => {
                let most = decoder.max_utf8_buffer_length_without_replacement(bytes.len());
                into.reserve(most.unwrap_or(4 * bytes.len() + 16));
                let (result, _) = decoder.decode_to_string_without_replacement(bytes, into, last);
                (
                    result == DecoderResult::InputEmpty,
                    decoder.encoding().name(),
                )
            }
            None => {
                let text = self.charset.text(bytes);
                into.push_str(text.as_deref().unwrap_or_default());
                (text.is_some(), self.charset.name())
            }
        };
        let added = &into[before..];
        let first = self.lines == 0;
        self.lines += added.bytes().filter(|byte| *byte == b'\n').count();
        if !whole {
            return Err(failed(
                format!("line {} is no {name} text", self.lines + 1),
                &guess::hint(whole_lines(bytes, first, last)),
            ));
        }
        if added.contains('\0') {
            return Err(failed(
                "it holds zero bytes, which no text has".into(),
                ": save it as CSV in UTF-8",
            ));
        }
        Ok(())
    }
}

/// The lines of a part of a text that begin and end in it; all where there is none.
fn whole_lines(bytes: &[u8], first: bool, last: bool) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let start = match first {
        true => 0,
        false => bytes.iter().position(is_end).unwrap_or(0),
    };
    let end = match last {
        true => bytes.len(),
        false => bytes.iter().rposition(is_end).unwrap_or(bytes.len()),
    };
    match start < end {
        true => &bytes[start..end],
        false => bytes,
    }
}
