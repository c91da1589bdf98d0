//! Compares files with their sizes and checksums.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::{PublicFile, PublicSet};

/// State of a file, compared with the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// As in the catalogue.
    Right,
    /// There is no such file.
    Absent,
    /// The file has another size, in bytes.
    Size(u64),
    /// The file has another checksum.
    Sum(String),
    /// The file cannot be read, for the reason that the system gives.
    Unreadable(String),
}

/// The files of a set under the folder `data`, and what each is.
pub fn verify<'a>(set: &'a PublicSet, data: &Path) -> Vec<(&'a PublicFile, FileState)> {
    let folder = data.join(&set.folder);
    let state = |file: &'a PublicFile| (file, file.state(&folder.join(&file.name)));
    set.files.iter().map(state).collect()
}

impl PublicFile {
    /// Returns what the file at `path` is, compared with this one.
    pub(super) fn state(&self, path: &Path) -> FileState {
        match path.metadata() {
            Ok(found) if !found.is_file() => {
                return FileState::Unreadable("it is not a regular file".into());
            }
            Ok(found) if found.len() != self.bytes => return FileState::Size(found.len()),
            Ok(_) => (),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return FileState::Absent,
            Err(error) => return FileState::Unreadable(error.to_string()),
        }
        match sum(path) {
            Ok(found) if found.eq_ignore_ascii_case(&self.sha256) => FileState::Right,
            Ok(found) => FileState::Sum(found),
            Err(error) => FileState::Unreadable(error.to_string()),
        }
    }
}

/// SHA-256 of a file.
fn sum(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 1 << 16];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(HEXLOWER.encode(&hash.finalize())),
            count => hash.update(&chunk[..count]),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_state_of_a_file_is_distinguished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        // SHA-256 of "abc" (FIPS 180-2).
        let file = PublicFile {
            name: "a".into(),
            bytes: 3,
            sha256: "BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD".into(),
            address: None,
        };
        assert_eq!(file.state(&path), FileState::Absent);
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(file.state(&path), FileState::Right);
        std::fs::write(&path, "abcd").unwrap();
        assert_eq!(file.state(&path), FileState::Size(4));
        std::fs::write(&path, "abd").unwrap();
        assert!(matches!(file.state(&path), FileState::Sum(_)));
        assert!(matches!(
            file.state(folder.path()),
            FileState::Unreadable(_)
        ));
    }
}
