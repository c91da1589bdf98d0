//! Confinement of a backup: it writes into the folder that it is restored into, and nowhere else.

use std::io;
use std::path::{self, Component, Path, PathBuf};

/// Those of `paths` that are outside of a folder, by `..`, as absolute paths or through links.
///
/// # Errors
/// The system does not say where the folder is.
pub(super) fn outside<'a>(
    folder: &Path,
    paths: impl IntoIterator<Item = &'a Path>,
) -> io::Result<Vec<PathBuf>> {
    let folder = real(folder)?;
    let mut found = Vec::new();
    for path in paths {
        if !real(path)?.starts_with(&folder) {
            found.push(path.to_owned());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns where a path leads once all links in what exists of it are followed.
fn real(path: &Path) -> io::Result<PathBuf> {
    let mut at = PathBuf::new();
    for part in path::absolute(path)?.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                at.pop();
            }
            part => {
                at.push(part);
                match at.canonicalize() {
                    Ok(real) => at = real,
                    // A link into nothing would be followed once that exists.
                    Err(_) if at.is_symlink() => return Ok(PathBuf::new()),
                    Err(_) => {}
                }
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn dots_absolute_paths_and_links_lead_out_of_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("in");
        std::fs::create_dir(&folder).unwrap();
        let is_out = |path: &str| {
            let path = folder.join(path);
            let found = outside(&folder, [&*path]).unwrap();
            found == [path]
        };
        for path in [
            "",
            "a",
            "a/b/../c",
            "./x",
            "new/deep/../../y",
            "..a",
            "a..b/c",
        ] {
            assert!(!is_out(path), "{path}");
        }
        for path in [
            "..",
            "../x",
            "a/../../x",
            "/etc/rota",
            "../in2/x",
            "new/../../x",
        ] {
            assert!(is_out(path), "{path}");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(place.path(), folder.join("up")).unwrap();
            symlink(place.path().join("nothing"), folder.join("gone")).unwrap();
            symlink(folder.join("a"), folder.join("same")).unwrap();
            std::fs::create_dir(folder.join("a")).unwrap();
            for path in ["up/x", "up", "a/../up/in/../x", "gone", "gone/x"] {
                assert!(is_out(path), "{path}");
            }
            for path in ["same/x", "up/in/x"] {
                assert!(!is_out(path), "{path}");
            }
        }
        // The folder may be one that is still to be made.
        let new = place.path().join("made/later");
        let within = new.join("state");
        assert!(outside(&new, [&*within]).unwrap().is_empty());
    }
}
