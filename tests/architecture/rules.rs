//! Every rule of the protocol that is cited anywhere is defined in the documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Folder of the pages that define rules (R1, M1), safety (S1), liveness (L1) and privacy (P1), each once.
const DEFINITIONS: &str = "docs/protocol";

/// Files and folders that may cite rules of the protocol.
const CITING: [&str; 10] = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "crates",
    "docs",
    "examples",
    "measurements",
    "node",
    "simulations",
    "tests",
];

/// Files below [`CITING`] in which L1 and L2 are norms, P1 a probability, M0 a move of a drawing, or such a
/// word a number of rounds of a cipher.
const NORMS: [&str; 11] = [
    "crates/task",
    "crates/learn",
    "crates/methods",
    "docs/methods",
    "docs/methods.md",
    "crates/lab/src/attack/canary/bound.rs",
    "crates/report/src/band.rs",
    "crates/report/src/classes/all.rs",
    "crates/rota/cli/solve.rs",
    "crates/privacy/src/masks/stream.rs",
    "crates/privacy/src/noise/words.rs",
];

/// Documents that the project does not have. They existed before the project did.
const ABSENT: [&str; 3] = ["PROTOCOL.md", "SPEC.md", "DESIGN.md"];

/// Text files below a path, without those in folders called `target`.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("the folder was just found");
        for entry in entries {
            let entry = entry.expect("entries of a folder can be read").path();
            if !entry.ends_with("target") {
                files(&entry, found);
            }
        }
    } else if path.extension().is_some_and(|end| {
        ["rs", "md", "toml", "html", "js"]
            .iter()
            .any(|known| end == *known)
    }) {
        found.push(path.into());
    }
}

/// Returns whether a word is the name of a rule: R, M, S, L, P, A or I, and a number of one or two digits.
fn is_rule(word: &str) -> bool {
    let mut letters = word.chars();
    letters
        .next()
        .is_some_and(|letter| "RMSLPAI".contains(letter))
        && (2..4).contains(&word.len())
        && letters.all(|digit| digit.is_ascii_digit())
}

/// The rules that a text names.
fn cited(text: &str) -> BTreeSet<String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| is_rule(word))
        .map(str::to_owned)
        .collect()
}

/// The rules that a text defines: a paragraph `**R1 · …**`, or a table row that begins `| S1 |`.
fn defined(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let bold = line
            .strip_prefix("**")
            .and_then(|rest| rest.split_once(" · "));
        let row = || {
            line.strip_prefix("| ")
                .and_then(|rest| rest.split_once(" |"))
        };
        let (name, _) = bold.or_else(row)?;
        is_rule(name).then(|| name.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn every_cited_rule_is_defined_once_in_the_protocol_pages() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    files(&root.join(DEFINITIONS), &mut pages);
    let text = |page| std::fs::read_to_string(page).expect("the page was just found");
    let mut defined: Vec<_> = pages.iter().flat_map(|page| defined(&text(page))).collect();
    defined.sort();
    let all = defined.len();
    defined.dedup();
    assert!(all > 10, "found only {defined:?}");
    assert_eq!(all, defined.len(), "{DEFINITIONS} defines a rule twice");
    let mut found = Vec::new();
    for path in CITING {
        files(&root.join(path), &mut found);
    }
    let (mut undefined, mut absent) = (BTreeMap::<String, Vec<_>>::new(), Vec::new());
    let mut citations = 0;
    for file in found {
        let path = file.strip_prefix(root).expect("files were found below it");
        if path == Path::new("tests/architecture/rules.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for name in ABSENT.iter().filter(|name| text.contains(**name)) {
            absent.push(format!("{} cites {name}", path.display()));
        }
        if NORMS.iter().any(|norms| path.starts_with(norms)) {
            continue;
        }
        for rule in cited(&text) {
            citations += 1;
            if !defined.contains(&rule) {
                undefined.entry(rule).or_default().push(path.to_owned());
            }
        }
    }
    assert!(
        citations > 50,
        "only {citations} citations: is CITING right?"
    );
    assert!(
        undefined.is_empty(),
        "these rules are cited and not defined in {DEFINITIONS}: {undefined:#?}"
    );
    assert!(absent.is_empty(), "no such document: {absent:#?}");
}

#[test]
fn a_rule_that_is_not_defined_is_found() {
    let defined =
        defined("**R1 · Notarize.** Once per view.\n\n| S1 | One block. |\n| beat | 5 s |");
    assert_eq!(defined, ["R1", "S1"]);
    let cited = cited("(R1, S1–S3) but not `S1_2`, Q1 or R");
    assert_eq!(cited, ["R1", "S1", "S3"].map(str::to_owned).into());
}
