//! A member's secret key in a file that only its owner can read.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use protocol::{PublicKey, SecretKey};
use task::file;

/// Prefix of a key file.
const MARK: &str = "rota-secret-key:";
/// Largest size of a key file in bytes.
const LIMIT: u64 = 4096;

/// Reason for which a key file could not be created or read.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// The file exists.
    #[error(
        "{} exists already: it is not overwritten, because a lost key cannot be recovered; choose another file", .0.display()
    )]
    Exists(PathBuf),
    /// An error of the file system.
    #[error("cannot {what} the key file {}: {reason}", file.display())]
    File {
        /// The operation that failed.
        what: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Other users of this machine can read it.
    #[error(
        "{} can be read by others on this machine, who could sign messages as this institution: \
         run `chmod 600` on it, and consider a new identity", .0.display()
    )]
    Open(PathBuf),
    /// Another process uses it.
    #[error(
        "another process uses this institution's key ({}): stop that one first; two processes with \
         one key sign contradictory messages, which is evidence of a Byzantine member", .0.display()
    )]
    InUse(PathBuf),
    /// The file is not a key file.
    #[error(
        "{} is not a key file of `rota identity new`: its one line is {MARK} and 64 hexadecimal digits", .0.display()
    )]
    Form(PathBuf),
    /// The operating system gives no random numbers.
    #[error("cannot create a key: {0}")]
    Random(String),
}

/// Creates a new key and writes it to `file`, which must not exist.
///
/// # Errors
/// [`IdentityError`]: the file exists, or cannot be written.
pub fn create(file: &Path) -> Result<PublicKey, IdentityError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|error| IdentityError::Random(error.to_string()))?;
    let key = SecretKey::from_bytes(&secret);
    write(file, &key)?;
    Ok(key.public())
}

/// Writes a key to `file`, which must not exist, with permissions for its owner only.
///
/// # Errors
/// [`IdentityError`]: the file exists, or cannot be written.
pub fn write(file: &Path, key: &SecretKey) -> Result<(), IdentityError> {
    let failed = |reason: io::Error| match reason.kind() {
        io::ErrorKind::AlreadyExists => IdentityError::Exists(file.into()),
        _ => IdentityError::File {
            what: "write",
            file: file.into(),
            reason,
        },
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut out = options.open(file).map_err(failed)?;
    writeln!(out, "{MARK}{}", HEXLOWER.encode(&key.to_bytes())).map_err(failed)?;
    out.sync_all().map_err(failed)
}

/// Reads a key.
///
/// # Errors
/// [`IdentityError`]: the file cannot be read, others can read it, or it is not a key file.
pub fn read(path: &Path) -> Result<SecretKey, IdentityError> {
    let failed = |reason| IdentityError::File {
        what: "read",
        file: path.into(),
        reason,
    };
    let text = file::read_text(path, LIMIT).map_err(failed)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(IdentityError::Open(path.into()));
        }
    }
    parse(&text, path)
}

/// The key in the text of a key file, which an error calls `path`.
///
/// # Errors
/// [`IdentityError::Form`]: it is none.
pub fn parse(text: &str, path: &Path) -> Result<SecretKey, IdentityError> {
    text.trim()
        .strip_prefix(MARK)
        .and_then(|digits| HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok())
        .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
        .map(|secret| SecretKey::from_bytes(&secret))
        .ok_or_else(|| IdentityError::Form(path.into()))
}

/// The lock of a key file. It is released when it is dropped or when the process ends in any way.
pub struct InUse(#[cfg_attr(not(unix), allow(dead_code))] Option<File>);

impl Drop for InUse {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that is being started may still share it.
        let _ = self.0.as_ref().map(File::unlock);
    }
}

/// Locks a key file for this process. The lock detects another process on this machine that uses the
/// same file. A process that uses a copy of the file can be detected only by the other members.
///
/// # Errors
/// [`IdentityError::InUse`]: another process uses the file.
pub fn hold(path: &Path) -> Result<InUse, IdentityError> {
    // On other systems a lock would prevent other processes from reading the file.
    if !cfg!(unix) {
        return Ok(InUse(None));
    }
    let file = File::open(path).ok();
    match file.as_ref().map(File::try_lock) {
        Some(Err(TryLockError::WouldBlock)) => Err(IdentityError::InUse(path.into())),
        // Some file systems have no locks.
        _ => Ok(InUse(file)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rota-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_key_file_is_written_once_owner_only_and_read_back() {
        let folder = folder("identity");
        let file = folder.join("a.key");
        let public = create(&file).unwrap();
        assert_eq!(read(&file).unwrap().public(), public);
        assert!(matches!(create(&file), Err(IdentityError::Exists(_))));
        assert_ne!(create(&folder.join("b.key")).unwrap(), public);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let now = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(now & 0o777, 0o600);
            mode(0o644);
            assert!(matches!(read(&file), Err(IdentityError::Open(_))));
            mode(0o600);
        }
        for wrong in ["", "hello", "rota-secret-key:12", &"0".repeat(80)] {
            fs::write(&file, wrong).unwrap();
            assert!(
                matches!(read(&file), Err(IdentityError::Form(_))),
                "{wrong}"
            );
        }
        fs::remove_dir_all(folder).unwrap();
    }
}
