//! The secret by which an institution holds out rows where the agreed split is keyed, in a file beside the
//! institution's key that only its owner can read.
//!
//! It belongs to the institution and not to a federation: another one would move rows from one side to the
//! other, and results on held-out rows would be of rows that were trained on.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use task::TaskConfig;
use task::data::SplitKey;
use task::file;

#[cfg(unix)]
use crate::paths::folder_of;
use crate::paths::owned_as;

/// Name of the file.
pub const SPLIT_KEY: &str = "split.key";
/// Prefix of its line.
const MARK: &str = "rota-split-key:";
/// Largest size of the file in bytes.
const LIMIT: u64 = 4096;

/// Reason for which there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum SplitKeyError {
    /// There is no file.
    #[error(
        "{} is missing, the secret by which this institution holds out rows: put it back from the backup, or copy \
         it from beside the institution's former key. `rota federation sign` makes one for an institution that \
         never had one", .0.display()
    )]
    Missing(PathBuf),
    /// There is no file, and there was one.
    #[error(
        "{} is missing, the secret by which this institution has held out rows so far: copy it from beside its \
         former key, or take it from a backup. With another one, rows that were trained on would be held out, and \
         results on them would be too good. If it is lost for good, write one: {MARK} and 64 random hexadecimal \
         digits", .0.display()
    )]
    Lost(PathBuf),
    /// An error of the file system.
    #[error("cannot {what} the file {}: {reason}", file.display())]
    File {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Other users of this machine can read it.
    #[error("{} can be read by others on this machine: run `chmod 600` on it", .0.display())]
    Open(PathBuf),
    /// The file is another one.
    #[error(
        "{} is not the secret by which rows are held out: its one line is {MARK} and 64 hexadecimal digits; put \
         it back from the backup", .0.display()
    )]
    Form(PathBuf),
    /// The operating system gives no random numbers.
    #[error("cannot make the secret by which rows are held out: {0}")]
    Random(String),
}

/// Returns where the secret of the institution with this key file is.
pub fn beside(identity: &Path) -> PathBuf {
    identity.with_file_name(SPLIT_KEY)
}

/// Returns whether a task needs it.
pub fn is_needed(task: &TaskConfig) -> bool {
    matches!(task, TaskConfig::Table(table) if table.split.keyed)
}

/// Reads the secret of the institution with this key file.
///
/// # Errors
/// [`SplitKeyError`].
pub fn read(identity: &Path) -> Result<SplitKey, SplitKeyError> {
    let path = beside(identity);
    let failed = |reason: io::Error| match reason.kind() {
        io::ErrorKind::NotFound => SplitKeyError::Missing(path.clone()),
        _ => SplitKeyError::File {
            what: "read",
            file: path.clone(),
            reason,
        },
    };
    let text = file::read_text(&path, LIMIT).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(&path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(SplitKeyError::Open(path));
        }
    }
    text.trim()
        .strip_prefix(MARK)
        .and_then(|digits| HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok())
        .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
        .map(SplitKey::new)
        .ok_or(SplitKeyError::Form(path))
}

/// The secret of an institution that is about to sign.
pub struct OwnSplitKey {
    /// The secret.
    pub key: SplitKey,
    /// True if it was drawn now, and is in no file yet: [`write()`] keeps it.
    pub is_new: bool,
}

/// Reads the secret, or draws one where there is none, which nothing keeps. `had` says whether the institution
/// has used one: then it is not replaced.
///
/// # Errors
/// [`SplitKeyError`].
pub fn read_or_draw(identity: &Path, had: bool) -> Result<OwnSplitKey, SplitKeyError> {
    match read(identity) {
        Err(SplitKeyError::Missing(path)) if had => Err(SplitKeyError::Lost(path)),
        Err(SplitKeyError::Missing(_)) => {
            let mut secret = [0; 32];
            getrandom::fill(&mut secret)
                .map_err(|error| SplitKeyError::Random(error.to_string()))?;
            let key = SplitKey::new(secret);
            Ok(OwnSplitKey { key, is_new: true })
        }
        found => found.map(|key| OwnSplitKey { key, is_new: false }),
    }
}

/// Writes a secret beside this key file, where there must be none, for the owner of the key file. The file is
/// there as a whole or not at all.
///
/// # Errors
/// [`SplitKeyError::File`].
pub fn write(identity: &Path, key: &SplitKey) -> Result<(), SplitKeyError> {
    let file = beside(identity);
    let failed = |reason| SplitKeyError::File {
        what: "write",
        file: file.clone(),
        reason,
    };
    if file.exists() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let new = file.with_extension("key.new");
    // A crash may have left a temporary file.
    let _ = fs::remove_file(&new);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(&new).map_err(failed)?;
    writeln!(out, "{MARK}{}", HEXLOWER.encode(&key.to_bytes())).map_err(failed)?;
    if identity.exists() {
        owned_as(&new, identity).map_err(failed)?;
    }
    out.sync_all().map_err(failed)?;
    fs::rename(&new, &file).map_err(failed)?;
    // The name has to last as the bytes do. Other systems open no folders.
    #[cfg(unix)]
    fs::File::open(folder_of(&file))
        .and_then(|folder| folder.sync_all())
        .map_err(failed)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_split_key_is_drawn_once_owner_only_and_never_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let identity = folder.path().join("identity.key");
        let said = |had| match read_or_draw(&identity, had) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        };
        assert!(matches!(read(&identity), Err(SplitKeyError::Missing(_))));
        assert!(
            said(true).contains("take it from a backup"),
            "{}",
            said(true)
        );
        // A secret that is drawn is in no file until it is written, of which a crash may have left a part.
        let drawn = read_or_draw(&identity, false).unwrap();
        assert!(drawn.is_new && !beside(&identity).exists());
        fs::write(folder.path().join("split.key.new"), "rota-").unwrap();
        write(&identity, &drawn.key).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&identity, &SplitKey::new([1; 32])).is_err());
        let made = drawn.key.to_bytes();
        let read_again = read_or_draw(&identity, true).unwrap();
        assert_eq!(
            (read_again.key.to_bytes(), read_again.is_new),
            (made, false)
        );
        // Another key in that folder, as after `rekey`, finds the same.
        let next = folder.path().join("next.key");
        assert_eq!(read(&next).unwrap().to_bytes(), made);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = beside(&identity);
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(said(true).contains("chmod 600"));
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::write(beside(&identity), "rota-split-key:12").unwrap();
        assert!(said(false).contains("64 hexadecimal digits"));
    }
}
