//! Lines of text that carry something in a mail: a mark, a version, and the rest in letters and digits.
//!
//! ```text
//! MARK-VERSION-BASE64URL(checksum 8 │ payload)
//! ```
//!
//! The checksum finds damage on the way. What mail programs put into and around such a line does not count
//! ([`mail`](crate::mail)).

use data_encoding::BASE64URL_NOPAD;
use protocol::{Hash, codec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use task::file::CONFIGURATION;

use crate::mail;

/// Bytes of the checksum.
const CHECKSUM: usize = 8;

/// Reason for which a line cannot be read.
pub(crate) enum TokenFault {
    /// The line does not begin as it should.
    Form,
    /// The line is of another version of the program.
    Version(String),
    /// Some of its characters were lost or changed.
    Damaged,
}

/// Kind of a line.
pub(crate) struct TokenKind {
    /// Begins every line: `rota-invite-`.
    pub(crate) mark: &'static str,
    /// Keeps the checksums of kinds apart.
    pub(crate) label: &'static str,
}

impl TokenKind {
    /// The line.
    pub(crate) fn write(&self, version: u64, payload: &impl Serialize) -> String {
        let payload = codec::encode(payload);
        let mut bytes = self.checksum(&payload).to_vec();
        bytes.extend_from_slice(&payload);
        format!("{}{version}-{}", self.mark, BASE64URL_NOPAD.encode(&bytes))
    }

    /// The version of a line, and the bytes that it carries, of one of these versions.
    pub(crate) fn open(&self, text: &str, versions: &[u64]) -> Result<(u64, Vec<u8>), TokenFault> {
        let line: String = text.split_whitespace().collect();
        let mut found = self.open_line(&line, versions);
        for token in mail::tokens(text, self.mark) {
            match found {
                Ok(_) | Err(TokenFault::Version(_)) => break,
                Err(_) => found = self.open_line(&token, versions),
            }
        }
        found
    }

    /// The version of a line without white space, and the bytes that it carries.
    fn open_line(&self, line: &str, versions: &[u64]) -> Result<(u64, Vec<u8>), TokenFault> {
        let rest = line.strip_prefix(self.mark).ok_or(TokenFault::Form)?;
        let (version, rest) = rest.split_once('-').ok_or(TokenFault::Form)?;
        if version.is_empty() || !version.chars().all(|digit| digit.is_ascii_digit()) {
            return Err(TokenFault::Form);
        }
        let known = versions.iter().find(|known| known.to_string() == version);
        let known = known.ok_or_else(|| TokenFault::Version(version.into()))?;
        let bytes = BASE64URL_NOPAD.decode(rest.as_bytes());
        let bytes = bytes.map_err(|_| TokenFault::Damaged)?;
        let (sum, payload) = bytes
            .split_at_checked(CHECKSUM)
            .ok_or(TokenFault::Damaged)?;
        if sum == self.checksum(payload) {
            Ok((*known, payload.to_vec()))
        } else {
            Err(TokenFault::Damaged)
        }
    }

    fn checksum(&self, payload: &[u8]) -> [u8; CHECKSUM] {
        let hash = Hash::labelled(self.label, &[payload]);
        let mut sum = [0; CHECKSUM];
        sum.copy_from_slice(&hash.0[..CHECKSUM]);
        sum
    }
}

/// Reads what a line carries.
pub(crate) fn decode<T: Serialize + DeserializeOwned>(payload: &[u8]) -> Result<T, TokenFault> {
    codec::decode(payload, CONFIGURATION as usize).map_err(|_| TokenFault::Damaged)
}
