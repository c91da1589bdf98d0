//! Words that the field has better ones for: in pages, help and messages.

use std::fs;
use std::path::Path;

use crate::commands::help;
use crate::pages::pages;

/// Words that are given up, in lower case, and what to write in their place.
const BANNED: &[(&str, &str)] = &[
    ("own model", "local model"),
    ("common model", "global model"),
    ("way of learning", "strategy"),
    ("ways of learning", "strategies"),
    ("masked round", "secure-aggregation round"),
    ("noised round", "differentially private round"),
    ("noised sum", "differentially private sum"),
    ("silos outside", "unseen silos"),
    ("spoils a sum", "corrupts a sum"),
    ("spoiled a sum", "corrupted a sum"),
    ("spoiler", "member that corrupts sums"),
    ("invented rows", "synthetic rows"),
    ("pretend silo", "synthetic silo"),
    ("excused", "marked absent"),
    ("for people", "human-readable, or as text"),
    ("--rehearse", "--dry-run"),
    ("--masked", "--secure-aggregation"),
    ("recover --give-up", "recover --abort-round"),
    ("masked+noised", "differential-privacy"),
    ("[charter]", "[protocol]"),
    ("[[silo]]", "[[member]]"),
    ("fewest-authors", "min-authors"),
    ("smallest-sum", "min-sum-size"),
    ("fewest-rows", "min-rows"),
    ("bytes-a-round", "max-bytes-per-round"),
    ("targets-within", "max-target"),
    ("never-leave", "forbidden-columns"),
];

/// Exceptions for banned words: the beginning of a file's name, and the word.
const EXCEPTIONS: &[(&str, &str)] = &[
    // Records of their day.
    ("docs/decisions/", ""),
    ("docs/results", ""),
    ("CHANGELOG.md", "for people"),
    // These pages state whom the files of the programs are for, which is no such phrase.
    ("docs/architecture.md", "for people"),
    ("docs/protocol/messages.md", "for people"),
    ("docs/take-the-model-home.md", "for people"),
    ("crates/lab/src/history/lines.rs", "for people"),
    // The table of old names.
    ("crates/agreement/src/renamed.rs", ""),
];

/// The banned words in a text, with where it is.
fn banned(name: &str, text: &str, found: &mut Vec<String>) {
    let lower = text.to_lowercase();
    let is_source = name.ends_with(".rs");
    for (word, better) in BANNED {
        // A single word may be an identifier.
        if is_source && word.chars().all(char::is_alphabetic) {
            continue;
        }
        let excepted = EXCEPTIONS
            .iter()
            .any(|(file, of)| name.starts_with(file) && (of.is_empty() || of == word));
        let begins = |at: usize| {
            let before = lower[..at].chars().next_back();
            before.is_none_or(|before| !before.is_alphanumeric() && before != '-')
        };
        let mut places = lower.match_indices(word);
        if !excepted && let Some((at, _)) = places.find(|(at, _)| begins(*at)) {
            let line = lower[..at].matches('\n').count() + 1;
            found.push(format!("{name}:{line}: {word:?}, write {better:?}"));
        }
    }
}

/// The Rust files below a folder that are no tests.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of this repository") {
        let path = entry.expect("an entry that can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match path.is_dir() {
            true if !matches!(&*name, "tests" | "target" | "examples" | "oracles") => {
                sources(&path, found);
            }
            false if name.ends_with(".rs") && name != "tests.rs" => found.push(path.clone()),
            _ => {}
        }
    }
}

/// A source without its comments; the lines stay.
fn code(text: &str) -> String {
    let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = text.lines().map(code).collect();
    lines.join("\n")
}

#[test]
fn pages_help_and_messages_use_the_words_of_the_field() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for page in pages()
        .iter()
        .filter(|page| !page.name.starts_with("measurements/"))
    {
        banned(&page.name, &page.text, &mut found);
    }
    for command in [
        "simulate",
        "compare",
        "advise",
        "attack",
        "init",
        "check",
        "run",
        "recover",
        "blame",
        "federation",
        "lab",
        "model",
        "ledger",
    ] {
        let text = help(&[command]).expect("a command of the program");
        banned(&format!("rota {command} --help"), &text, &mut found);
    }
    let mut files = Vec::new();
    for folder in ["node", "crates", "simulations"] {
        sources(&root.join(folder), &mut files);
    }
    for file in files {
        let text = fs::read_to_string(&file).expect("a source of this repository");
        let name = file.strip_prefix(root).expect("it is below the root");
        banned(&name.display().to_string(), &code(&text), &mut found);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
