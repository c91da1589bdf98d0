//! Folders of pictures: a folder for every class, or for every domain with one for every class in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{ROWS, refused};
use crate::data::DataError;

/// Pictures by class and, where there is a level of folders more, by domain.
#[derive(Debug, PartialEq)]
pub(crate) struct PictureFolder {
    pub files: Vec<PathBuf>,
    /// Names of the classes, in the order of the alphabet.
    pub classes: Vec<String>,
    /// The class of every file.
    pub labels: Vec<u32>,
    /// Names of the domains; empty where there are none.
    pub domains: Vec<String>,
    /// The domain of every file; empty where there are none.
    pub domain: Vec<u32>,
}

/// Lists the pictures under `path`: files that end with `.png`, `.jpg` or `.jpeg`. Nothing is decoded.
///
/// # Errors
/// [`DataError::File`]: a folder that cannot be read, or without such files.
pub(crate) fn list(path: &Path) -> Result<PictureFolder, DataError> {
    let first = entries(path)?;
    let mut found: Vec<(Option<String>, String, PathBuf)> = Vec::new();
    for (name, class) in &first.folders {
        let inside = entries(class)?;
        for (deeper, folder) in &inside.folders {
            for file in entries(folder)?.pictures {
                found.push((Some(name.clone()), deeper.clone(), file));
            }
        }
        for file in inside.pictures {
            found.push((None, name.clone(), file));
        }
        if found.len() > ROWS {
            return Err(refused(
                path,
                format!("expected at most {ROWS} pictures, found more"),
            ));
        }
    }
    let deep = found.iter().filter(|(domain, ..)| domain.is_some()).count();
    if found.is_empty() {
        return Err(refused(
            path,
            format!(
                "expected a folder for every class with pictures (.png, .jpg, .jpeg) in it, found {} \
                 folders and {} pictures beside them",
                first.folders.len(),
                first.pictures.len()
            ),
        ));
    }
    if deep != 0 && deep != found.len() {
        return Err(refused(
            path,
            format!(
                "expected all pictures in folders of classes, or all one level deeper in folders of \
                 domains, found {} and {deep}",
                found.len() - deep
            ),
        ));
    }
    let sorted = |names: BTreeSet<&String>| names.into_iter().cloned().collect::<Vec<String>>();
    let classes = sorted(found.iter().map(|(_, class, _)| class).collect());
    let domains = sorted(
        found
            .iter()
            .filter_map(|(domain, ..)| domain.as_ref())
            .collect(),
    );
    let at = |names: &[String], name: &String| names.binary_search(name).map_or(0, |at| at as u32);
    Ok(PictureFolder {
        labels: found
            .iter()
            .map(|(_, class, _)| at(&classes, class))
            .collect(),
        domain: found
            .iter()
            .filter_map(|(domain, ..)| Some(at(&domains, domain.as_ref()?)))
            .collect(),
        files: found.into_iter().map(|(.., file)| file).collect(),
        classes,
        domains,
    })
}

/// Contents of a folder, in the order of the alphabet.
struct Entries {
    folders: Vec<(String, PathBuf)>,
    pictures: Vec<PathBuf>,
}

fn entries(path: &Path) -> Result<Entries, DataError> {
    let failed = |error: std::io::Error| refused(path, error.to_string());
    let (mut folders, mut pictures) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let lower = name.to_ascii_lowercase();
        if name.starts_with('.') {
            continue;
        }
        if entry.path().is_dir() {
            folders.push((name, entry.path()));
        } else if [".png", ".jpg", ".jpeg"]
            .iter()
            .any(|end| lower.ends_with(end))
        {
            pictures.push(entry.path());
        }
    }
    folders.sort();
    pictures.sort();
    Ok(Entries { folders, pictures })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::data::images::tests::Scratch;

    #[test]
    fn classes_are_folders() {
        let scratch = Scratch::new();
        for file in [
            "b/2.png",
            "b/1.JPG",
            "a/x.jpeg",
            "a/notes.txt",
            ".hidden/x.png",
        ] {
            scratch.write(file, b"");
        }
        let found = list(scratch.path()).unwrap();
        assert_eq!(found.classes, ["a", "b"]);
        assert_eq!(found.labels, [0, 1, 1]);
        assert!(found.domains.is_empty() && found.domain.is_empty());
        let names: Vec<_> = found
            .files
            .iter()
            .map(|file| file.file_name().unwrap())
            .collect();
        assert_eq!(names, ["x.jpeg", "1.JPG", "2.png"]);
    }

    #[test]
    fn one_level_more_is_domains() {
        let scratch = Scratch::new();
        for file in ["Art/Mug/1.png", "Art/Pen/1.png", "Photo/Mug/1.png"] {
            scratch.write(file, b"");
        }
        let found = list(scratch.path()).unwrap();
        assert_eq!(
            (found.classes, found.labels),
            (vec!["Mug".into(), "Pen".into()], vec![0, 1, 0])
        );
        assert_eq!(
            (found.domains, found.domain),
            (vec!["Art".into(), "Photo".into()], vec![0, 0, 1])
        );
    }

    #[test]
    fn other_folders_are_refused() {
        let scratch = Scratch::new();
        assert!(list(&scratch.path().join("nothing")).is_err());
        scratch.write("1.png", b"");
        scratch.write("a/text", b"");
        let error = list(scratch.path()).unwrap_err().to_string();
        assert!(
            error.contains("found 1 folders and 1 pictures beside them"),
            "{error}"
        );
        scratch.write("a/1.png", b"");
        scratch.write("b/c/1.png", b"");
        let error = list(scratch.path()).unwrap_err().to_string();
        assert!(error.contains("found 1 and 1"), "{error}");
    }
}
