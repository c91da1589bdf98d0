//! A stamp of the code that a table depends on, so that a table older than the code can be seen.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Sources that results depend on, below the root of the repository.
pub(super) const FOLDERS: [&str; 7] = [
    "crates/lab/src/compare",
    "crates/learn/src",
    "crates/methods/src",
    "crates/silo/src",
    "crates/task/src",
    "simulations/src/direct",
    "simulations/src/scenario",
];
/// The versions of the libraries.
const LIBRARIES: &str = "Cargo.lock";

/// Twelve hexadecimal digits of the sources, of the libraries, and of the experiment's file. Tests and comments
/// do not count: what they say changes no result.
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
        let text = fs::read_to_string(&file)?;
        for line in code(&text) {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
    }
    let lock = fs::read_to_string(root.join(LIBRARIES))?;
    libraries(&lock).for_each(|one| _ = hasher.update(one.as_bytes()));
    hasher.update(experiment.as_bytes());
    Ok(hasher.finalize().to_hex()[..12].to_owned())
}

/// The lines of a file without comments and without the module of its tests.
fn code(text: &str) -> impl Iterator<Item = &str> {
    const TESTS: &str = "\n#[cfg(test)]\n";
    let at = text.rfind(TESTS).unwrap_or(text.len());
    let mut after = text[at..].lines().skip(2).take(2);
    let tests = after.any(|line| line == "mod tests {");
    let code = if tests { &text[..at] } else { text };
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// Returns what the lock file says of packages that come from elsewhere, one after the other.
fn libraries(lock: &str) -> impl Iterator<Item = &str> {
    let packages = lock.split("[[package]]");
    packages.filter(|package| package.contains("\nsource = "))
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        // The list of experiments says nothing of one.
        let left_out = path
            .file_stem()
            .is_some_and(|name| name == "tests" || name == "built_in");
        if !left_out {
            collect(&path, files)?;
        }
    }
    Ok(())
}
