//! No source file is too long.

use std::fs;
use std::path::{Path, PathBuf};

/// Lines that a file may have.
const MOST: usize = 600;

/// Known longer files. Remove a file from this list when it is split; do not add any.
const KNOWN: &[&str] = &[];

/// Every source file below a folder, tests, benches and examples included.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for path in entries.map(|entry| entry.expect("a readable entry").path()) {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The files among these that have more lines than they may, with their lines.
fn too_long(files: &[PathBuf], most: usize) -> Vec<(&PathBuf, usize)> {
    let lines = |file| fs::read_to_string(file).map_or(0, |text| text.lines().count());
    let all = files.iter().map(|file| (file, lines(file)));
    all.filter(|(_, lines)| *lines > most).collect()
}

#[test]
fn no_source_file_has_more_than_600_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(root, &mut files);
    assert!(
        files.len() > 300,
        "only {} source files were found",
        files.len()
    );
    let name = |file: &PathBuf| {
        file.strip_prefix(root)
            .unwrap_or(file)
            .display()
            .to_string()
    };
    let long = too_long(&files, MOST);
    let fresh: Vec<_> = long
        .iter()
        .map(|(file, lines)| (name(file), *lines))
        .filter(|(file, _)| !KNOWN.contains(&file.as_str()))
        .collect();
    assert!(
        fresh.is_empty(),
        "split these files by what they do: {fresh:?}"
    );
    for known in KNOWN {
        assert!(
            long.iter().any(|(file, _)| name(file) == *known),
            "{known} has at most {MOST} lines now, remove it from KNOWN"
        );
    }
}

#[test]
fn a_file_with_one_line_too_many_is_found() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file!());
    let lines = fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    let files = [file];
    assert!(too_long(&files, lines).is_empty());
    assert_eq!(too_long(&files, lines - 1).len(), 1);
}
