//! The signed consent that lets a node start.

use std::path::{Path, PathBuf};

use agreement::{Agreement, ConfigError, Consent, ConsentError};
use protocol::PublicKey;

/// Name of the file of a signed consent beside `node.toml`.
pub const CONSENT: &str = "consent.toml";

/// Reason for which a consent that `node.toml` names does not let a node start.
#[derive(Debug, thiserror::Error)]
pub enum Unsigned {
    /// There is no such file.
    #[error(
        "this institution has not signed the agreement yet: {} is not there; read and sign it with \
         `rota federation sign --config node.toml`", .0.display()
    )]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(ConfigError),
    /// The consent does not hold.
    #[error("the signed consent in {} does not count: {why}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// Reason.
        why: ConsentError,
    },
    /// The consent is another member's.
    #[error("the signed consent in {} is that of {name}: `consent` names this institution's own", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
        /// Name of the member whose consent it is.
        name: String,
    },
}

/// The consent of the member with this key in a file.
///
/// # Errors
/// [`Unsigned`]: there is none, or it does not hold.
pub fn consent_in(
    file: &Path,
    agreement: &Agreement,
    key: &PublicKey,
) -> Result<Consent, Unsigned> {
    if !file.exists() {
        return Err(Unsigned::Missing(file.into()));
    }
    let consent = Consent::load(file).map_err(Unsigned::Unreadable)?;
    let file = file.to_owned();
    if let Err(why) = consent.check(agreement) {
        return Err(Unsigned::Refused { file, why });
    }
    if consent.key == *key {
        Ok(consent)
    } else {
        Err(Unsigned::Foreign {
            file,
            name: consent.name,
        })
    }
}
