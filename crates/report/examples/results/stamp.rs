//! A stamp of the code that a table depends on, so that a table older than the code can be seen.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What results depend on, below the root of the repository.
const FOLDERS: [&str; 8] = [
    "crates/lab/src/compare",
    "crates/learn/src",
    "crates/methods/src",
    "crates/silo/src",
    "crates/task/src",
    "simulations/src/direct",
    "simulations/src/scenario",
    "Cargo.lock",
];

/// Twelve hexadecimal digits of the sources and of the experiment's file. Tests do not count: what they say
/// changes no result.
pub(super) fn stamp(root: &Path, experiment: &str) -> io::Result<String> {
    let mut files = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        hasher.update(name.to_string_lossy().as_bytes());
        hasher.update(&[0]);
        hasher.update(blake3::hash(code(&fs::read_to_string(&file)?).as_bytes()).as_bytes());
    }
    hasher.update(experiment.as_bytes());
    Ok(hasher.finalize().to_hex()[..12].to_owned())
}

/// A file without the module of its tests.
fn code(text: &str) -> &str {
    const TESTS: &str = "\n#[cfg(test)]\n";
    let at = text.rfind(TESTS).unwrap_or(text.len());
    let mut after = text[at..].lines().skip(2).take(2);
    if after.any(|line| line == "mod tests {") {
        &text[..at]
    } else {
        text
    }
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let test = path.file_stem().is_some_and(|name| name == "tests");
        if !test {
            collect(&path, files)?;
        }
    }
    Ok(())
}
