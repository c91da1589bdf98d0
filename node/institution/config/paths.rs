//! Paths of an institution's files, as `node.toml` names them.

use std::path::{Path, PathBuf};

use agreement::{ConfigError, TomlText};

use super::consent::CONSENT;
use super::keys::{FORMAT, SiloFile};

/// The files and folders that a `node.toml` names, without those of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The key.
    pub identity: PathBuf,
    /// The agreement.
    pub federation: PathBuf,
    /// The signed consent, also where it is not named.
    pub consent: PathBuf,
    /// The state folder.
    pub state: PathBuf,
    /// The model that the federation starts from, or an earlier state folder with it.
    pub start_model: Option<PathBuf>,
}

impl Places {
    /// Places in the text of a `node.toml`, called `name`, which lies in `folder`.
    ///
    /// # Errors
    /// [`ConfigError`]: it is no `node.toml`.
    pub fn read(name: &str, text: &str, folder: &Path) -> Result<Self, ConfigError> {
        let source = TomlText { file: name, text };
        source.check_format(FORMAT).map_err(ConfigError::At)?;
        let raw: SiloFile =
            toml::from_str(text).map_err(|error| ConfigError::At(source.toml(&error)))?;
        let consent = raw.consent.unwrap_or_else(|| CONSENT.into());
        Ok(Self {
            identity: folder.join(raw.identity),
            federation: folder.join(raw.federation),
            consent: folder.join(consent),
            state: folder.join(raw.state),
            start_model: raw.start_model.map(|path| folder.join(path)),
        })
    }
}
