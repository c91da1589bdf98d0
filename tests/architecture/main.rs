//! The structure of the workspace: which crate may use which, no module circles, no long files, no
//! citation of a rule that is not defined.

mod circles;
mod kinds;
mod modes;
mod modules;
mod names;
mod parts;
mod rules;
mod sizes;
mod test_names;
mod walls;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The crates of this workspace, and those that each of them may use.
const ARROWS: [(&str, &[&str]); 17] = [
    ("protocol", &[]),
    ("bare", &["protocol"]),
    ("methods", &[]),
    ("privacy", &[]),
    ("questions", &["privacy"]),
    ("ledger", &["privacy", "protocol"]),
    ("task", &["methods"]),
    ("learn", &["questions", "task", "methods"]),
    // It does not wait for the crate that computes models.
    (
        "agreement",
        &["questions", "task", "privacy", "protocol", "methods"],
    ),
    ("mesh", &["protocol"]),
    ("silo", &["ledger", "privacy", "protocol", "methods"]),
    (
        "simulations",
        &[
            "agreement",
            "bare",
            "silo",
            "learn",
            "task",
            "protocol",
            "methods",
        ],
    ),
    ("formatting", &["protocol"]),
    (
        "node",
        &[
            "agreement",
            "formatting",
            "ledger",
            "mesh",
            "silo",
            "learn",
            "questions",
            "task",
            "privacy",
            "protocol",
            "methods",
        ],
    ),
    (
        "lab",
        &[
            "agreement",
            "bare",
            "formatting",
            "mesh",
            "node",
            "silo",
            "simulations",
            "learn",
            "task",
            "protocol",
            "methods",
        ],
    ),
    (
        "report",
        &[
            "agreement",
            "formatting",
            "lab",
            "silo",
            "simulations",
            "task",
            "methods",
        ],
    ),
    (
        "rota",
        &[
            "agreement",
            "formatting",
            "lab",
            "mesh",
            "node",
            "questions",
            "report",
            "silo",
            "simulations",
            "learn",
            "task",
            "protocol",
            "methods",
        ],
    ),
];

/// Libraries that are named in one crate only; `simulations` also runs an actix system.
const ONLY_IN: [(&str, &[&str]); 20] = [
    ("libp2p", &["mesh"]),
    ("burn-core", &["learn"]),
    ("burn-optim", &["learn"]),
    ("tch", &["learn"]),
    ("bincode", &["protocol"]),
    ("ed25519-dalek", &["protocol"]),
    ("curve25519-dalek", &["privacy"]),
    ("chacha20", &["privacy"]),
    ("zeroize", &["node", "privacy", "silo", "task"]),
    ("actix", &["silo"]),
    ("redb", &["node"]),
    ("ratatui", &["node"]),
    ("clap", &["node", "rota"]),
    ("clap_complete", &["node"]),
    ("clap_mangen", &["node"]),
    ("indicatif", &["node", "rota"]),
    ("faer", &["methods"]),
    ("clarabel", &["methods"]),
    ("petgraph", &["methods"]),
    (
        "tokio",
        &["silo", "mesh", "simulations", "node", "lab", "rota"],
    ),
];

/// Direct dependencies by crate of this workspace, without those of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, it has just built this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    list(&metadata["packages"])
        .iter()
        .map(|package| {
            let normal = list(&package["dependencies"])
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| text(&dependency["name"]))
                .collect();
            (text(&package["name"]), normal)
        })
        .collect()
}

#[test]
fn crates_use_only_the_allowed_crates() {
    let dependencies = dependencies();
    let ours: BTreeSet<_> = ARROWS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(dependencies.keys().cloned().collect::<BTreeSet<_>>(), ours);
    for (name, allowed) in ARROWS {
        for used in dependencies[name].intersection(&ours) {
            assert!(
                allowed.contains(&used.as_str()),
                "{name} must not use {used}"
            );
        }
    }
}

#[test]
fn a_foreign_library_is_named_in_the_allowed_crates_only() {
    let dependencies = dependencies();
    for (library, allowed) in ONLY_IN {
        for (name, used) in &dependencies {
            assert!(
                !used.contains(library) || allowed.contains(&name.as_str()),
                "{name} must not name {library}: {allowed:?} alone may"
            );
        }
    }
}

#[test]
fn the_pure_crates_have_no_runtime_anywhere_below() {
    for name in ["protocol", "methods", "privacy", "questions"] {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                "--offline",
                "--edges",
                "normal",
                "--prefix",
                "none",
                "-p",
                name,
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs, it has just built this test");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let tree = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(tree.starts_with(name));
        for runtime in ["tokio", "actix", "libp2p", "burn-core"] {
            let found = tree
                .lines()
                .find(|line| line.split(' ').next() == Some(runtime));
            assert_eq!(found, None, "{name} must be free of {runtime}");
        }
    }
}

/// All files of Rust below a folder of this repository.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is part of this repository");
    let paths = entries.map(|entry| entry.expect("a folder can be read").path());
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// Crates of this workspace that are compiled for a package, tests aside.
fn compiled_for(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "-p",
            package,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, it has just built this test");
    let tree = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(tree.starts_with(package), "{tree}");
    let names = tree.lines().filter_map(|line| line.split(' ').next());
    names.map(str::to_owned).collect()
}

#[test]
fn the_program_of_an_institution_has_nothing_of_the_laboratory() {
    let compiled = compiled_for("node");
    for ours in ["protocol", "agreement", "silo", "mesh"] {
        assert!(compiled.contains(ours), "{compiled:?}");
    }
    for laboratory in ["simulations", "lab", "report", "rota"] {
        assert!(!compiled.contains(laboratory), "node compiles {laboratory}");
    }
}
