//! The JSON files of LEAF (Caldas et al. 2018): the rows of every user, as lists of numbers (FEMNIST)
//! or as names of pictures (CelebA).

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use super::{CLASSES, ROWS, refused};
use crate::data::DataError;
use crate::file;

/// The rows of all users of one or several files.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Leaf {
    /// Names of the users, in the order of the files.
    pub users: Vec<String>,
    /// The user of every row.
    pub user: Vec<u32>,
    /// Names of the classes: numbers in their order, or words in that of the alphabet.
    pub classes: Vec<String>,
    /// The class of every row.
    pub labels: Vec<u32>,
    /// The rows.
    pub rows: LeafRows,
}

/// Kind of rows.
#[derive(Debug, PartialEq)]
pub(crate) enum LeafRows {
    /// Numbers, `width` for every row.
    Numbers {
        /// Numbers in a row.
        width: usize,
        /// All of them.
        values: Vec<f32>,
    },
    /// Names of pictures.
    Files(Vec<String>),
}

impl Default for LeafRows {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

#[derive(Deserialize)]
struct LeafDocument {
    users: Vec<String>,
    user_data: BTreeMap<String, UserData>,
}

#[derive(Deserialize)]
struct UserData {
    x: Vec<LeafRow>,
    y: Vec<LeafLabel>,
}

enum LeafRow {
    Numbers(Vec<f32>),
    Name(String),
}

struct LeafLabel(String);

impl<'de> Deserialize<'de> for LeafRow {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reads;
        impl<'de> Visitor<'de> for Reads {
            type Value = LeafRow;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list of numbers or the name of a picture")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<LeafRow, E> {
                Ok(LeafRow::Name(name.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LeafRow, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = list.next_element()? {
                    numbers.push(number);
                }
                Ok(LeafRow::Numbers(numbers))
            }
        }
        from.deserialize_any(Reads)
    }
}

impl<'de> Deserialize<'de> for LeafLabel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reads;
        impl Visitor<'_> for Reads {
            type Value = LeafLabel;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a whole number from 0, or the name of a class")
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<LeafLabel, E> {
                Ok(LeafLabel(name.to_owned()))
            }
            fn visit_u64<E: Error>(self, class: u64) -> Result<LeafLabel, E> {
                Ok(LeafLabel(class.to_string()))
            }
            fn visit_f64<E: Error>(self, class: f64) -> Result<LeafLabel, E> {
                if class.fract() == 0.0 && (0.0..1e9).contains(&class) {
                    Ok(LeafLabel((class as u64).to_string()))
                } else {
                    Err(E::custom(format!(
                        "expected a whole number from 0, found {class}"
                    )))
                }
            }
        }
        from.deserialize_any(Reads)
    }
}

/// Reads a file, or every `.json` file of a folder in the order of their names.
///
/// # Errors
/// [`DataError::File`]: no such JSON; users without rows; rows of different kinds or widths.
pub(crate) fn read(path: &Path) -> Result<Leaf, DataError> {
    let mut leaf = Leaf::default();
    let mut names: Vec<String> = Vec::new();
    for file in files(path)? {
        let bytes =
            file::read(&file, file::DATA).map_err(|error| refused(&file, error.to_string()))?;
        let document: LeafDocument = serde_json::from_slice(&bytes).map_err(|error| {
            refused(
                &file,
                format!("expected JSON as LEAF writes it (users, user_data): {error}"),
            )
        })?;
        leaf.add(document, &mut names)
            .map_err(|reason| refused(&file, reason))?;
    }
    leaf.name_classes(&names);
    if leaf.classes.len() <= CLASSES {
        Ok(leaf)
    } else {
        Err(refused(
            path,
            format!("expected at most {CLASSES} classes, found more"),
        ))
    }
}

/// Returns whether the path is a folder of such files.
pub(crate) fn is_leaf(path: &Path) -> bool {
    path.is_dir() && files(path).is_ok_and(|files| !files.is_empty())
}

fn files(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| refused(path, error.to_string()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    Ok(files)
}

impl Leaf {
    fn add(&mut self, mut document: LeafDocument, names: &mut Vec<String>) -> Result<(), String> {
        for user in document.users {
            let data = document.user_data.remove(&user);
            let UserData { x, y } =
                data.ok_or_else(|| format!("expected rows of the user {user:?}, found none"))?;
            if x.len() != y.len() {
                return Err(format!(
                    "user {user:?}: expected one label for every row, found {} rows and {} labels",
                    x.len(),
                    y.len()
                ));
            }
            let at = self.users.len() as u32;
            self.users.push(user.clone());
            for (row, LeafLabel(label)) in x.into_iter().zip(y) {
                self.rows
                    .push(row)
                    .map_err(|why| format!("user {user:?}: {why}"))?;
                self.user.push(at);
                names.push(label);
            }
            if names.len() > ROWS {
                return Err(format!("expected at most {ROWS} rows, found more"));
            }
        }
        Ok(())
    }

    fn name_classes(&mut self, names: &[String]) {
        self.classes = super::super::pool::ordered(names.iter().map(String::as_str));
        let place: BTreeMap<&str, u32> = self.classes.iter().map(String::as_str).zip(0..).collect();
        self.labels = names.iter().map(|name| place[name.as_str()]).collect();
    }
}

impl LeafRows {
    fn push(&mut self, row: LeafRow) -> Result<(), String> {
        match (&mut *self, row) {
            (Self::Files(files), LeafRow::Name(name)) => files.push(name),
            (Self::Files(files), LeafRow::Numbers(numbers)) if files.is_empty() => {
                if numbers.is_empty() {
                    return Err("expected rows of at least one number, found an empty one".into());
                }
                let width = numbers.len();
                *self = Self::Numbers {
                    width,
                    values: numbers,
                };
            }
            (Self::Numbers { width, values }, LeafRow::Numbers(numbers)) => {
                if numbers.len() != *width {
                    return Err(format!(
                        "expected rows of {width} numbers like the first one, found {}",
                        numbers.len()
                    ));
                }
                values.extend(numbers);
            }
            _ => {
                return Err(
                    "expected rows of one kind, found numbers and names of pictures".into(),
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::data::images::tests::Scratch;

    const FEMNIST: &str = r#"{"users": ["f1", "f0"], "num_samples": [2, 1],
        "user_data": {"f0": {"x": [[0.5, 1.0]], "y": [10]}, "f1": {"x": [[0, 1], [1, 1]], "y": [2, 10]}}}"#;

    #[test]
    fn rows_are_read_by_user() {
        let scratch = Scratch::new();
        scratch.write("a.json", FEMNIST.as_bytes());
        scratch.write(
            "b.json",
            br#"{"users": ["g"], "user_data": {"g": {"x": [[0.25, 0]], "y": [2.0]}}}"#,
        );
        assert!(is_leaf(scratch.path()));
        let leaf = read(scratch.path()).unwrap();
        assert_eq!(leaf.users, ["f1", "f0", "g"]);
        assert_eq!(leaf.user, [0, 0, 1, 2]);
        assert_eq!(
            (leaf.classes, leaf.labels),
            (vec!["2".into(), "10".into()], vec![0, 1, 1, 0])
        );
        let values = vec![0.0, 1.0, 1.0, 1.0, 0.5, 1.0, 0.25, 0.0];
        assert_eq!(leaf.rows, LeafRows::Numbers { width: 2, values });
        let names = scratch.write(
            "celeba",
            br#"{"users": ["7"], "user_data": {"7": {"x": ["1.jpg", "2.jpg"], "y": ["smiles", "1"]}}}"#,
        );
        let leaf = read(&names).unwrap();
        assert_eq!(
            leaf.rows,
            LeafRows::Files(vec!["1.jpg".into(), "2.jpg".into()])
        );
        assert_eq!(leaf.classes, ["1", "smiles"]);
    }

    #[test]
    fn other_files_are_refused() {
        let scratch = Scratch::new();
        let error = |text: &str| {
            read(&scratch.write("a", text.as_bytes()))
                .unwrap_err()
                .to_string()
        };
        assert!(error("{}").contains("expected JSON as LEAF writes it"));
        let user = |x: &str, y: &str| {
            error(&format!(
                r#"{{"users": ["u"], "user_data": {{"u": {{"x": {x}, "y": {y}}}}}}}"#
            ))
        };
        assert!(user("[[1]]", "[]").ends_with("found 1 rows and 0 labels"));
        assert!(
            user("[[1], [1, 2]]", "[0, 1]")
                .ends_with("rows of 1 numbers like the first one, found 2")
        );
        assert!(
            user("[[1], \"a.png\"]", "[0, 1]").ends_with("found numbers and names of pictures")
        );
        assert!(user("[[1]]", "[-1]").contains("expected a whole number from 0"));
        assert!(user("[[1]]", "[0.5]").contains("found 0.5"));
        assert!(user("[[]]", "[0]").contains("found an empty one"));
        assert!(
            error(r#"{"users": ["u"], "user_data": {}}"#)
                .contains("rows of the user \"u\", found none")
        );
    }
}
