//! Turns the bytes of a file into text, part by part.

use std::path::Path;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

use super::{DataError, Format, by_zero_bytes};

/// Reads text of one encoding, part by part.
pub(in crate::data) struct TextDecoder {
    decoder: Decoder,
    /// Ends of lines in the parts before.
    lines: usize,
}

impl Format {
    /// What decodes the text of a file that begins with these bytes.
    pub(in crate::data) fn decoder(&self, head: &[u8]) -> TextDecoder {
        let mut encoding = self.known_encoding();
        if encoding == UTF_8 {
            encoding = by_zero_bytes(head).unwrap_or(encoding);
        }
        TextDecoder {
            decoder: encoding.new_decoder(),
            lines: 0,
        }
    }

    fn known_encoding(&self) -> &'static Encoding {
        Encoding::for_label(self.encoding.as_bytes()).unwrap_or(UTF_8)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// [`DataError::File`]: bytes that are no text in this encoding, with what to try.
    pub fn decode(&self, path: &Path, bytes: Vec<u8>) -> Result<String, DataError> {
        let mut decoder = self.decoder(&bytes);
        let as_it_is = decoder.decoder.encoding() == UTF_8 && Encoding::for_bom(&bytes).is_none();
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
        let most = self
            .decoder
            .max_utf8_buffer_length_without_replacement(bytes.len());
        into.reserve(most.unwrap_or(4 * bytes.len() + 16));
        let (result, _) = self
            .decoder
            .decode_to_string_without_replacement(bytes, into, last);
        let added = &into[before..];
        self.lines += added.bytes().filter(|byte| *byte == b'\n').count();
        if result != DecoderResult::InputEmpty {
            return Err(failed(
                format!(
                    "line {} is no {} text",
                    self.lines + 1,
                    self.decoder.encoding().name()
                ),
                ": say in `format` which `encoding` it has, for example \"windows-1252\"",
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
