//! The public data sets that the program reads: where they are from, which files they have, and
//! whether those of a folder are right.

mod download;
mod verify;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use download::{Client, DownloadError, Got, get};
pub use verify::{FileState, verify};

/// The built-in catalogue.
const CATALOGUE: &str = include_str!("catalogue.toml");

/// All public data sets that are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// The sets, in the order in which they are listed.
    #[serde(rename = "set")]
    pub sets: Vec<PublicSet>,
}

/// A public data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicSet {
    /// Name of the set on the command line.
    pub name: String,
    /// Description of the set, in a line.
    pub title: String,
    /// Reader of the set, as a scenario names it.
    pub used: String,
    /// Makers of the set.
    pub source: String,
    /// A page about it.
    pub page: String,
    /// Licence of the set.
    pub licence: String,
    /// The folder of its files, under the data folder.
    pub folder: String,
    /// Further remarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Files of the set.
    pub files: Vec<PublicFile>,
}

/// A file of a public data set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublicFile {
    /// Name of the file in the folder of the set.
    pub name: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// SHA-256 of the file, as 64 hexadecimal digits.
    pub sha256: String,
    /// Address for downloading the file; `None` for a file that was packed again and is not published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// Error of a catalogue that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The file is not TOML of this form.
    #[error("{}: {reason}", file.display())]
    Form {
        /// The file.
        file: PathBuf,
        /// Description of the fault, with the line.
        reason: String,
    },
    /// There is no set of that name.
    #[error("there is no public data set {name:?}: {}{near}", known.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// "Did you mean …?"
        near: String,
        /// The names there are.
        known: Vec<String>,
    },
}

impl Catalogue {
    /// The built-in one.
    ///
    /// # Panics
    /// Never: a test reads it.
    pub fn built_in() -> Self {
        toml::from_str(CATALOGUE).expect("the built-in catalogue is right, as a test asserts")
    }

    /// One in a file, for instance with the addresses of a mirror.
    ///
    /// # Errors
    /// [`CatalogueError::Form`].
    pub fn read(file: &Path) -> Result<Self, CatalogueError> {
        let form = |reason: String| CatalogueError::Form {
            file: file.to_owned(),
            reason,
        };
        let text = task::file::read_text(file, task::file::CONFIGURATION)
            .map_err(|error| form(error.to_string()))?;
        let catalogue: Self = toml::from_str(&text).map_err(|error| form(error.to_string()))?;
        catalogue.check().map_err(form)?;
        Ok(catalogue)
    }

    /// Returns whether names are plain names of files and folders, and checksums have their form.
    fn check(&self) -> Result<(), String> {
        // Downloads must not be written anywhere but under the data folder.
        let plain = |name: &str| {
            !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':'])
        };
        for set in &self.sets {
            for name in [&set.folder]
                .into_iter()
                .chain(set.files.iter().map(|file| &file.name))
            {
                if !plain(name) {
                    return Err(format!(
                        "set {:?}: expected the plain name of a file or folder, found {name:?}",
                        set.name
                    ));
                }
            }
            for file in &set.files {
                let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_hexdigit());
                if file.sha256.len() != 64 || !digits(&file.sha256) {
                    return Err(format!(
                        "set {:?}: expected a SHA-256 of 64 hexadecimal digits for {}, found {:?}",
                        set.name, file.name, file.sha256
                    ));
                }
            }
        }
        Ok(())
    }

    /// The sets of these names, in their order; all if there are none.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`].
    pub fn named(&self, names: &[String]) -> Result<Vec<&PublicSet>, CatalogueError> {
        if names.is_empty() {
            return Ok(self.sets.iter().collect());
        }
        let find = |name: &String| {
            let found = self.sets.iter().find(|set| set.name == *name);
            found.ok_or_else(|| {
                let known: Vec<String> = self.sets.iter().map(|set| set.name.clone()).collect();
                CatalogueError::Unknown {
                    name: name.clone(),
                    near: task::data::nearest(name, known.iter().map(String::as_str)),
                    known,
                }
            })
        };
        names.iter().map(find).collect()
    }
}

impl PublicSet {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns whether all files can be downloaded.
    pub fn is_downloadable(&self) -> bool {
        self.files.iter().all(|file| file.address.is_some())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_catalogue_is_right() {
        let catalogue = Catalogue::built_in();
        catalogue.check().unwrap();
        let mut names: Vec<&str> = catalogue.sets.iter().map(|set| set.name.as_str()).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "every name once");
        for set in &catalogue.sets {
            assert!(!set.files.is_empty(), "{}", set.name);
            for address in set.files.iter().filter_map(|file| file.address.as_ref()) {
                assert!(address.starts_with("https://"), "{address}");
            }
            assert!(
                set.is_downloadable() || set.note.is_some(),
                "{} says why not",
                set.name
            );
        }
        let heart = catalogue.named(&["heart".into()]).unwrap()[0];
        assert_eq!((heart.files.len(), heart.is_downloadable()), (4, true));
    }

    #[test]
    fn an_unknown_name_is_refused_with_a_near_one() {
        let error = Catalogue::built_in()
            .named(&["hart".into()])
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("there is no public data set \"hart\""),
            "{error}"
        );
        assert!(error.ends_with("did you mean \"heart\"?"), "{error}");
    }

    #[test]
    fn a_catalogue_may_not_name_other_folders() {
        let sum = "0".repeat(64);
        let text = |folder: &str, name: &str, sum: &str| {
            format!(
                "[[set]]\nname = 'a'\ntitle = ''\nused = ''\nsource = ''\npage = ''\nlicence = ''\n\
                 folder = '{folder}'\nfiles = [{{ name = '{name}', bytes = 1, sha256 = '{sum}' }}]"
            )
        };
        let check = |text: String| toml::from_str::<Catalogue>(&text).unwrap().check();
        check(text("a", "b.csv", &sum)).unwrap();
        assert!(
            check(text("..", "b.csv", &sum))
                .unwrap_err()
                .contains("found \"..\"")
        );
        assert!(
            check(text("a", "../b", &sum))
                .unwrap_err()
                .contains("found \"../b\"")
        );
        assert!(check(text("/etc", "b", &sum)).is_err());
        assert!(
            check(text("a", "b", "12"))
                .unwrap_err()
                .contains("64 hexadecimal digits")
        );
    }
}
