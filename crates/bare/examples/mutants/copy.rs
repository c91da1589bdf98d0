//! A copy of the workspace in which every rule has a switch.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::edit::apply;
use super::entries::{Edit, MutantEntries};

/// Files and folders that Cargo reads to build crates of the workspace.
const COPIED: [&str; 9] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    ".cargo",
    "crates",
    "node",
    "simulations",
    "tests",
    "examples",
];

/// The sources that are edited.
const SOURCES: &str = "crates/protocol/src";

/// The copy, and where it is built.
pub(crate) struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    /// Copies the workspace into the folder of what is built, with all edits. Files that are equal stay as
    /// they are, so that little is compiled again.
    ///
    /// # Errors
    /// A sentence: what cannot be read, written or edited.
    pub(crate) fn make(
        workspace: &Path,
        target: &Path,
        entries: &MutantEntries,
    ) -> Result<Self, String> {
        let copy = Self {
            root: target.join("mutants"),
            target: target.to_owned(),
        };
        let mut files = BTreeMap::new();
        for name in COPIED {
            collect(workspace, Path::new(name), &mut files)?;
        }
        edited(&mut files, &entries.edits)?;
        let names: Vec<_> = entries.mutants.iter().map(|mutant| &mutant.name).collect();
        let switch = include_str!("switch.rs");
        let switch = format!("{switch}\n/// All mutants.\nconst NAMES: &[&str] = &{names:?};\n");
        files.insert(Path::new(SOURCES).join("mutation.rs"), switch.into_bytes());
        clear(&copy.root, Path::new(""), &files)?;
        for (path, bytes) in files {
            let path = copy.root.join(path);
            if fs::read(&path).is_ok_and(|old| old == bytes) {
                continue;
            }
            let folder = path.parent().expect("a file below the copy has a folder");
            fs::create_dir_all(folder)
                .and_then(|()| fs::write(&path, bytes))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        Ok(copy)
    }

    /// Builds the unit tests of a crate. Returns the program.
    ///
    /// # Errors
    /// A sentence: they cannot be built.
    pub(crate) fn tests(&self, name: &str) -> Result<PathBuf, String> {
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "test",
                "--lib",
                "--no-run",
                "--message-format=json",
                "-p",
                name,
            ])
            .args(
                ["--features", "mutants"]
                    .iter()
                    .filter(|_| name != "protocol"),
            )
            .env("CARGO_TARGET_DIR", &self.target)
            .current_dir(&self.root)
            .stdout(Stdio::piped());
        let output = cargo.spawn().and_then(|child| child.wait_with_output());
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "the tests of {name} cannot be built with the mutants"
            ));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let mut programs = text.lines().rev().filter_map(|line| {
            let (_, rest) = line.split_once("\"executable\":\"")?;
            Some(PathBuf::from(rest.split_once('"')?.0))
        });
        programs
            .next()
            .ok_or_else(|| format!("cargo names no test program of {name}"))
    }
}

/// Reads a file, or all files of a folder but what other programs have built there.
fn collect(root: &Path, path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
    let from = root.join(path);
    let unreadable = |error| format!("cannot read {}: {error}", from.display());
    if !from.is_dir() {
        files.insert(path.to_owned(), fs::read(&from).map_err(unreadable)?);
        return Ok(());
    }
    for entry in fs::read_dir(&from).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if name != "target" {
            collect(root, &path.join(name), files)?;
        }
    }
    Ok(())
}

/// Removes the files of a copy that the workspace does not have any more, and folders that are empty then:
/// Cargo would compile what is left there.
fn clear(copy: &Path, path: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), String> {
    let folder = copy.join(path);
    let failed = |error| format!("cannot clear {}: {error}", folder.display());
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = path.join(entry.file_name());
        if entry.file_type().map_err(failed)?.is_dir() {
            clear(copy, &path, files)?;
            // One that still has files stays.
            let _ = fs::remove_dir(entry.path());
        } else if !files.contains_key(&path) {
            fs::remove_file(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Applies the edits to the files.
fn edited(files: &mut BTreeMap<PathBuf, Vec<u8>>, edits: &[Edit]) -> Result<(), String> {
    let mut by_file = BTreeMap::<_, Vec<_>>::new();
    for edit in edits {
        by_file.entry(&edit.file).or_default().push(edit);
    }
    for (file, edits) in by_file {
        let bytes = files.get_mut(&Path::new(SOURCES).join(file));
        let bytes = bytes.ok_or_else(|| format!("there is no {SOURCES}/{file}"))?;
        *bytes = apply(&String::from_utf8_lossy(bytes), &edits)?.into_bytes();
    }
    // Only the copy knows the feature, so that no other build has tests that need the switches.
    let manifest = files.get_mut(Path::new("crates/bare/Cargo.toml"));
    let manifest = manifest.ok_or("there is no crates/bare/Cargo.toml")?;
    manifest.extend(b"\n[features]\nmutants = []\n");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    #[test]
    fn the_lines_of_every_edit_are_in_the_sources_exactly_once() {
        let entries = MutantEntries::read(&workspace().join("crates/protocol/mutants")).unwrap();
        assert!(entries.mutants.len() > 150, "{}", entries.mutants.len());
        let mut files = BTreeMap::new();
        for path in ["crates/protocol", "crates/bare"] {
            collect(&workspace(), Path::new(path), &mut files).unwrap();
        }
        edited(&mut files, &entries.edits).unwrap();
    }

    #[test]
    fn files_that_the_workspace_has_no_more_leave_the_copy() {
        let copy = std::env::temp_dir().join(format!("rota-mutants-{}", std::process::id()));
        for folder in ["kept", "gone/below"] {
            fs::create_dir_all(copy.join(folder)).unwrap();
        }
        for file in ["kept/a.rs", "kept/b.rs", "gone/below/c.rs"] {
            fs::write(copy.join(file), "").unwrap();
        }
        let files = BTreeMap::from([(PathBuf::from("kept/a.rs"), Vec::new())]);
        clear(&copy, Path::new(""), &files).unwrap();
        let there = ["kept/a.rs", "kept/b.rs", "gone"].map(|path| copy.join(path).exists());
        fs::remove_dir_all(&copy).unwrap();
        assert_eq!(there, [true, false, false]);
    }

    #[test]
    fn names_of_mutants_are_used_once() {
        let entries = MutantEntries::read(&workspace().join("crates/protocol/mutants")).unwrap();
        let mut names: Vec<_> = entries.mutants.iter().map(|mutant| &mutant.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn the_sources_of_the_protocol_have_no_switch() {
        let mut files = BTreeMap::new();
        collect(&workspace(), Path::new(SOURCES), &mut files).unwrap();
        for (path, bytes) in files {
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("broken(\""), "{}", path.display());
        }
    }
}
