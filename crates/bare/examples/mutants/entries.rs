//! Reads the mutants: what is wrong in each, and the edits of the protocol's sources that make it so.
//!
//! A file holds the mutants of one clause of the protocol's pages:
//!
//! ```text
//! # CLAUSE
//!
//! NAME: what is wrong, as a clause of a sentence
//!
//! @ file below crates/protocol/src, and the function, or - for the whole file
//! -lines that are found once there
//! +lines in their place, which ask `broken("NAME")`
//! ```
//!
//! Mutants that need the same lines stand together, with the edits that they share below them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The file with the edits that all others need.
const SUPPORT: &str = "support.txt";

/// A rule that can be broken.
pub(crate) struct Mutant {
    /// The clause of the protocol's pages that it breaks.
    pub(crate) clause: String,
    /// Its name.
    pub(crate) name: String,
    /// Clause of a sentence that says what is wrong then.
    pub(crate) sentence: String,
}

/// Replacement of some lines of a source by others.
pub(crate) struct Edit {
    /// The file, below the sources of the crate.
    pub(crate) file: String,
    /// The function that holds the lines; without one the whole file does.
    pub(crate) function: Option<String>,
    /// The lines that are replaced.
    pub(crate) old: Vec<String>,
    /// The lines in their place.
    pub(crate) new: Vec<String>,
}

/// All mutants with all their edits.
pub(crate) struct MutantEntries {
    /// The mutants, by clause.
    pub(crate) mutants: Vec<Mutant>,
    /// The edits that make all of them.
    pub(crate) edits: Vec<Edit>,
}

impl MutantEntries {
    /// Reads all files of a folder.
    ///
    /// # Errors
    /// A sentence with the file and the line that cannot be read, or the mutant that no edit makes.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let unreadable = |error| format!("cannot read {}: {error}", folder.display());
        let files = fs::read_dir(folder).map_err(unreadable)?;
        let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "txt"));
        paths.sort();
        let mut all = Self {
            mutants: Vec::new(),
            edits: Vec::new(),
        };
        for path in paths {
            let text = fs::read_to_string(&path).map_err(unreadable)?;
            let support = path.ends_with(SUPPORT);
            all.add(&text, support)
                .map_err(|why| format!("{}: {why}", path.display()))?;
        }
        Ok(all)
    }

    /// Adds the mutants of a file.
    fn add(&mut self, text: &str, support: bool) -> Result<(), String> {
        let mut clause = None;
        // Mutants that stand together, and the names that their edits ask for.
        let (mut together, mut asked) = (Vec::new(), BTreeSet::new());
        let mut in_edit = false;
        for (nth, line) in text.lines().enumerate() {
            let wrong = |what: &str| format!("line {}: {what}", nth + 1);
            let edit = self.edits.last_mut().filter(|_| in_edit);
            match (line.chars().next(), edit) {
                (None, _) => {}
                (Some('#'), _) => clause = line.strip_prefix("# ").map(str::to_owned),
                (Some('@'), _) => {
                    let place = line
                        .strip_prefix("@ ")
                        .and_then(|rest| rest.split_once(' '));
                    let (file, function) =
                        place.ok_or_else(|| wrong("expected @ FILE FUNCTION"))?;
                    self.edits.push(Edit {
                        file: file.to_owned(),
                        function: Some(function.to_owned()).filter(|name| name != "-"),
                        old: Vec::new(),
                        new: Vec::new(),
                    });
                    in_edit = true;
                }
                (Some('-'), Some(edit)) => edit.old.push(line[1..].to_owned()),
                (Some('+'), Some(edit)) => {
                    asked.extend(switches(&line[1..]));
                    edit.new.push(line[1..].to_owned());
                }
                _ if support => return Err(wrong("expected an edit")),
                _ => {
                    if in_edit {
                        made(&together, &asked)?;
                        (together, asked) = (Vec::new(), BTreeSet::new());
                        in_edit = false;
                    }
                    let parts = line.split_once(": ");
                    let (name, sentence) =
                        parts.ok_or_else(|| wrong("expected NAME: what is wrong"))?;
                    together.push(name.to_owned());
                    self.mutants.push(Mutant {
                        clause: clause.clone().ok_or_else(|| wrong("expected # CLAUSE"))?,
                        name: name.to_owned(),
                        sentence: sentence.to_owned(),
                    });
                }
            }
        }
        made(&together, &asked)
    }
}

/// The names of mutants that a line asks for: what it quotes with a capital. Names of keys have none.
fn switches(line: &str) -> impl Iterator<Item = String> {
    let quoted = line.split('"').skip(1).step_by(2);
    let names = quoted.filter(|text| text.starts_with(char::is_uppercase));
    names.map(str::to_owned)
}

/// Checks that edits ask for exactly the mutants that they stand below.
fn made(together: &[String], asked: &BTreeSet<String>) -> Result<(), String> {
    let named: BTreeSet<_> = together.iter().cloned().collect();
    if named == *asked {
        Ok(())
    } else {
        Err(format!("the edits of {named:?} ask for {asked:?}"))
    }
}
