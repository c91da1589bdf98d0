//! Boosted trees of an answer, written as a file that other programs run.

use std::path::Path;

use learn::export::{onnx_of_trees, xgboost_of_trees};
use questions::Outcome;

use super::{NodeCommandError, model};

/// A file for trees; its name says in which format.
#[derive(Debug, Clone, Copy)]
pub struct TreesFile<'a> {
    path: &'a Path,
    is_onnx: bool,
}

impl<'a> TreesFile<'a> {
    /// A file that does not exist yet.
    ///
    /// # Errors
    /// [`NodeCommandError::Usage`]: a name that ends with neither `.onnx` nor `.json`, or a file that exists.
    pub fn new(path: &'a Path) -> Result<Self, NodeCommandError> {
        let is = |format: &str| {
            path.extension()
                .is_some_and(|end| end.eq_ignore_ascii_case(format))
        };
        if !is("onnx") && !is("json") {
            return Err(NodeCommandError::Usage(format!(
                "--export {}: a name that ends with .onnx or .json was expected: .onnx is for ONNX, .json for a model of \
                 XGBoost",
                path.display()
            )));
        }
        if path.exists() {
            return Err(NodeCommandError::Usage(format!(
                "--export {}: the file exists, and is not overwritten: name another one",
                path.display()
            )));
        }
        Ok(Self {
            path,
            is_onnx: is("onnx"),
        })
    }

    /// Writes the trees of an answer.
    ///
    /// # Errors
    /// [`NodeCommandError::Usage`]: the answer has no trees. [`NodeCommandError::Write`].
    pub fn write(&self, answer: &Outcome) -> Result<(), NodeCommandError> {
        let Outcome::Trees(found) = answer else {
            return Err(NodeCommandError::Usage(NO_TREES.to_owned()));
        };
        let bytes = match self.is_onnx {
            true => {
                onnx_of_trees(found).map_err(|error| NodeCommandError::Failed(error.to_string()))?
            }
            false => xgboost_of_trees(found).into_bytes(),
        };
        model::write(self.path, &bytes)
    }
}

/// Said where `--export` names a file for an answer of another kind.
pub const NO_TREES: &str = "--export writes trees, and the question is of another kind: ask with kind \"trees\", or leave out --export";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_name_of_a_file_says_its_format_and_it_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(TreesFile::new(&path("t.onnx")).unwrap().is_onnx);
        assert!(!TreesFile::new(&path("t.JSON")).unwrap().is_onnx);
        std::fs::write(path("old.onnx"), "").unwrap();
        for (wrong, says) in [
            ("t", ".onnx or .json"),
            ("t.txt", ".onnx or .json"),
            ("old.onnx", "name another one"),
        ] {
            let why = TreesFile::new(&path(wrong)).unwrap_err();
            assert!(matches!(why, NodeCommandError::Usage(_)), "{why}");
            assert!(why.to_string().contains(says), "{why}");
        }
    }
}
