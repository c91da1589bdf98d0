//! Secret that an institution discloses of a void round, as a file: 32 bytes, and what they are of.

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use privacy::masks::Secret;
use serde::{Deserialize, Serialize};
use task::file;

/// The format that is written and read.
const FORMAT: &str = "rota disclosure 1";
/// Most bytes of a file.
const LIMIT: u64 = 1 << 16;

/// A disclosure as it stands in a file. All that it gives away is the secret; the other lines say of which
/// round.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DisclosureFile {
    /// The format.
    pub format: String,
    /// Id of the federation.
    pub federation: String,
    /// The round.
    pub round: u64,
    /// Id of the final block of the round.
    pub block: String,
    /// Name of the institution.
    pub member: String,
    /// The 32 bytes that the keys, the transcript and the mask of this round follow from, in hexadecimal.
    secret: String,
}

/// Reason for which a file discloses nothing.
#[derive(Debug, thiserror::Error)]
pub enum DisclosureFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Reason.
        why: String,
    },
    /// The file is something else.
    #[error("{} is no file of `rota blame --disclose`: {why}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Reason.
        why: String,
    },
    /// The file is of another round or federation.
    #[error("{} is of {found}, expected one of {expected}", file.display())]
    Other {
        /// The file.
        file: PathBuf,
        /// Subject of the file.
        found: String,
        /// Subject that was asked for.
        expected: String,
    },
}

impl DisclosureFile {
    /// The secret of a member in the round with this block.
    pub(super) fn new(
        federation: String,
        (round, block): (u64, String),
        member: String,
        secret: &Secret,
    ) -> Self {
        Self {
            format: FORMAT.into(),
            federation,
            round,
            block,
            member,
            secret: HEXLOWER_PERMISSIVE.encode(secret.expose()),
        }
    }

    /// The text of the file.
    ///
    /// # Errors
    /// Those of the writer of JSON.
    pub fn text(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`DisclosureFileError`]: it cannot be read, or is something else.
    pub fn read(path: &Path) -> Result<Self, DisclosureFileError> {
        let bytes = file::read(path, LIMIT).map_err(|error| DisclosureFileError::Unreadable {
            file: path.to_owned(),
            why: error.to_string(),
        })?;
        let malformed = |why: String| DisclosureFileError::Malformed {
            file: path.to_owned(),
            why,
        };
        let read: Self =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        if read.format != FORMAT {
            return Err(malformed(format!(
                "its format is {:?}, this program reads {FORMAT:?}",
                read.format
            )));
        }
        match read.bytes() {
            Some(_) => Ok(read),
            None => Err(malformed(
                "its secret has to be 64 hexadecimal digits".into(),
            )),
        }
    }

    fn bytes(&self) -> Option<[u8; 32]> {
        let bytes = HEXLOWER_PERMISSIVE.decode(self.secret.as_bytes()).ok()?;
        bytes.try_into().ok()
    }

    /// The secret; `None` for a file that was not read.
    pub(super) fn secret(&self) -> Option<Secret> {
        self.bytes().map(Secret::new)
    }
}
