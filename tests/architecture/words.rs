//! Words that would promise too much, and words with which a doc comment does not begin.

use std::path::Path;

/// Places of programs and texts that people read.
const READ: [&str; 5] = ["README.md", "docs", "node", "crates", "simulations"];

/// Lines that may hold the word: a library's names, and the page that says what is not given.
const ALLOWED: [&str; 3] = [
    "ValidationMode::Anonymous",
    "MessageAuthenticity::Anonymous",
    "does **not** make anybody anonymous",
];

fn lines(path: &Path, found: &mut Vec<String>) {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).expect("the folder was just found");
        for entry in entries {
            let entry = entry.expect("entries of a folder can be read").path();
            if !entry.ends_with("target") {
                lines(&entry, found);
            }
        }
    } else if let Ok(text) = std::fs::read_to_string(path) {
        let promising = text.lines().filter(|line| {
            let line = line.to_lowercase();
            line.contains("anonymous") || line.contains("anonymis")
        });
        let promising =
            promising.filter(|line| !ALLOWED.iter().any(|allowed| line.contains(allowed)));
        found.extend(promising.map(|line| format!("{}: {}", path.display(), line.trim())));
    }
}

/// Without noise or masks, models whose names are removed can be traced to their authors
/// (`rota attack linkage`).
#[test]
fn nothing_states_that_anybody_is_anonymous() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    READ.iter()
        .for_each(|place| lines(&root.join(place), &mut found));
    assert!(found.is_empty(), "{found:#?}");
}

/// The test runner calls a skipped test "ok" and hides what it prints.
#[test]
fn skipped_tests_are_reported_by_the_one_visible_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for place in ["tests", "node", "crates", "simulations", "examples"] {
        for file in crate::rust_files(&root.join(place)) {
            let text =
                std::fs::read_to_string(&file).expect("a file of this repository can be read");
            let prints = text.lines().filter(|line| {
                let line = line.to_lowercase();
                line.contains("println!(\"skip") || line.contains("print!(\"skip")
            });
            found.extend(prints.map(|line| format!("{}: {}", file.display(), line.trim())));
        }
    }
    let this = |line: &&String| !line.contains("words.rs");
    let found: Vec<_> = found.iter().filter(this).collect();
    assert!(
        found.is_empty(),
        "use `skipped` of tests/skipped: {found:#?}"
    );
}

/// Returns whether a line ends a program by a number or constant of its own.
fn ends_by_itself(line: &str) -> bool {
    [
        "process::exit(",
        "ExitCode::from(",
        "ExitCode::SUCCESS",
        "ExitCode::FAILURE",
    ]
    .iter()
    .any(|end| line.contains(end))
}

/// So that each code has one meaning, which the documentation states (`docs/exit-codes.md`).
#[test]
fn exit_codes_are_set_in_one_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for place in ["node", "crates"] {
        for file in crate::rust_files(&root.join(place)) {
            let name = file
                .strip_prefix(root)
                .unwrap_or(&file)
                .display()
                .to_string();
            let text =
                std::fs::read_to_string(&file).expect("a file of this repository can be read");
            if !name.contains("/examples/") && text.lines().any(ends_by_itself) {
                found.push(name);
            }
        }
    }
    assert_eq!(found, ["node/exit.rs"]);
}

/// Words with which a question begins. A doc comment states what an item is: a noun, or "Returns …".
const QUESTIONS: [&str; 4] = ["What", "How", "Whether", "Who"];

/// Largest number of doc comments that begin as questions: those that are texts of help and of schemas. Whoever mends some
/// lowers it.
const MOST_QUESTIONS: usize = 103;

/// Returns the lines of a file that begin a doc comment with a question, counted from 1.
fn questions(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let asks = |at: usize| {
        ["///", "//!"].iter().any(|mark| {
            let begins = at == 0 || !lines[at - 1].starts_with(mark);
            let comment = lines[at].strip_prefix(mark).filter(|_| begins);
            let first = comment.and_then(|comment| comment.split_whitespace().next());
            first.is_some_and(|word| QUESTIONS.contains(&word))
        })
    };
    let asking = (0..lines.len()).filter(|at| asks(*at));
    asking.map(|at| (at + 1, lines[at])).collect()
}

#[test]
fn few_doc_comments_begin_as_questions() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut files, mut found) = (0, Vec::new());
    for place in ["tests", "node", "crates", "simulations", "examples"] {
        for file in crate::rust_files(&root.join(place)) {
            files += 1;
            let text =
                std::fs::read_to_string(&file).expect("a file of this repository can be read");
            let asking = questions(&text).into_iter();
            found.extend(asking.map(|(line, text)| format!("{}:{line}: {text}", file.display())));
        }
    }
    assert!(files > 1000, "the files are found");
    assert!(
        found.len() <= MOST_QUESTIONS,
        "{} doc comments begin as questions, at most {MOST_QUESTIONS} may: begin them with a noun or \
         \"Returns …\": {found:#?}",
        found.len()
    );
}

#[test]
fn a_question_is_told_from_a_statement() {
    let text = "//! What a file has.\n\n/// Rows of a file.\n/// How many there are follows from them.\n\
                struct Rows;\n    /// Whether one is missing.\n    missing: bool,\n/// Who-is-who.\n\
                // How it works.\n";
    let lines: Vec<usize> = questions(text).into_iter().map(|(line, _)| line).collect();
    assert_eq!(lines, [1, 6]);
}
