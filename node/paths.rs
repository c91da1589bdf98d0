//! Paths in files that people may move together, and whose those files are.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The path of a file as seen from a folder, where both are below one folder; else the whole path.
pub fn relative(file: &Path, folder: &Path) -> PathBuf {
    let whole = |path: &Path| {
        // The folder of a file that is named alone is the current one.
        let path = if path == Path::new("") {
            Path::new(".")
        } else {
            path
        };
        std::path::absolute(path).unwrap_or_else(|_| path.into())
    };
    let (file, folder) = (whole(file), whole(folder));
    let common = file
        .components()
        .zip(folder.components())
        .take_while(|(a, b)| a == b)
        .count();
    if common <= 1 {
        return file;
    }
    let up = folder.components().skip(common).map(|_| Path::new(".."));
    up.chain(
        file.components()
            .skip(common)
            .map(|part| Path::new(part.as_os_str())),
    )
    .collect()
}

/// A path for people: without the folders that `..` leaves again.
pub fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        let last = tidy.components().next_back();
        match (part, last) {
            (Component::ParentDir, Some(Component::Normal(_))) => {
                tidy.pop();
            }
            (part, _) => tidy.push(part),
        }
    }
    if tidy.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        tidy
    }
}

/// Bytes that this user may still write on the disk of an existing folder; `None` where the system does
/// not say.
#[cfg(unix)]
pub fn free(folder: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(folder).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// On this system it is not known.
#[cfg(not(unix))]
pub fn free(_: &Path) -> Option<u64> {
    None
}

/// Gives a file that root made to the owner of another file or folder: the user whose service reads it.
#[cfg(unix)]
pub(crate) fn owned_as(file: &Path, other: &Path) -> io::Result<()> {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown};
    let (other, own) = (fs::metadata(other)?, fs::metadata(file)?);
    if (other.uid(), other.gid()) == (own.uid(), own.gid()) || own.uid() != 0 {
        return Ok(());
    }
    chown(file, Some(other.uid()), Some(other.gid()))
}

/// On other systems files belong to whoever made them.
#[cfg(not(unix))]
pub(crate) fn owned_as(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// The folder of a file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_as_seen_from_the_folder() {
        let seen = |file: &str, folder: &str| relative(Path::new(file), Path::new(folder));
        assert_eq!(seen("/a/b/c.csv", "/a/b"), Path::new("c.csv"));
        assert_eq!(
            seen("/a/data/c.csv", "/a/runs/one"),
            Path::new("../../data/c.csv")
        );
        assert_eq!(seen("/x/c.csv", "/a/b"), Path::new("/x/c.csv"));
        assert_eq!(seen("data/c.csv", ""), Path::new("data/c.csv"));
    }

    #[test]
    fn a_tidy_path_leaves_no_folder_that_it_entered() {
        let seen = |path: &str| tidy(Path::new(path)).display().to_string();
        assert_eq!(seen("north/node/../identity.key"), "north/identity.key");
        assert_eq!(seen("../a/./b"), "../a/b");
        assert_eq!(seen("node/.."), ".");
    }
}
