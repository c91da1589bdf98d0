//! Console examples: run, and compared with what the page shows.
//!
//! A block of language `console` has commands, which begin with `$ `, each followed by what it
//! prints: standard output, and standard error where it fails. All blocks of a page run in one new
//! folder, which has the repository's `examples`. A line `...` stands for any lines. Durations on
//! this machine's clock differ from run to run and are not compared.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use snapbox::IntoData;
use tempfile::TempDir;

use crate::pages::{Page, root};

/// A console block.
pub(crate) struct ConsoleBlock {
    /// Text of the block, without the fences.
    pub(crate) text: String,
}

impl ConsoleBlock {
    /// Returns whether parts of the output are left out.
    pub(crate) fn elides(&self) -> bool {
        self.text.lines().any(|line| line == "...")
    }
}

/// The console blocks of a page.
pub(crate) fn blocks(page: &Page) -> Vec<ConsoleBlock> {
    let fences = page.fences().into_iter();
    fences
        .filter(|(language, _)| language == "console")
        .map(|(_, text)| ConsoleBlock { text })
        .collect()
}

/// A new folder for a page's examples.
pub(crate) fn folder(_page: &Page) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_rota"), folder.path().join("rota")).unwrap();
    for name in ["examples", "simulations"] {
        symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

/// The block with what its commands print now.
pub(crate) fn run(block: &ConsoleBlock, folder: &Path) -> String {
    let mut text = String::new();
    for line in block.text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            text.push_str(line);
            text.push('\n');
            text.push_str(&output(command, folder));
        }
    }
    text
}

fn output(command: &str, folder: &Path) -> String {
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    // On pages for people who have just cloned the repository, `cargo run` starts the program.
    let script = format!("cargo() {{ shift 3; rota \"$@\"; }}\n{command}");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .env("PATH", path)
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG")
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    if !output.status.success() {
        text.push_str(&String::from_utf8(output.stderr).unwrap());
    }
    text
}

/// Compares what a block prints with what it shows.
pub(crate) fn compare(page: &Page, block: &ConsoleBlock, actual: &str) {
    let name = format!(
        "{} (ROTA_GOLDEN=write cargo test --workspace --test book writes it anew)",
        page.name
    );
    let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
    let (actual, shown) = (masked(actual), masked(&block.text));
    if let Err(error) = assert.try_eq(Some(&name), actual.into_data(), shown.into_data()) {
        panic!("{error}");
    }
}

/// Replaces durations on this machine's clock: of a run, of the comparison, of a solver.
fn masked(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let clock = line.starts_with("took ") || line.contains(" optimal in ");
        lines.push(if clock {
            durations(line)
        } else {
            line.to_owned()
        });
    }
    lines.join("\n") + "\n"
}

/// `70 ms for 3.7 s` as `TIME for 3.7 s`: a time after `for` is the federation's own.
fn durations(line: &str) -> String {
    const UNITS: [&str; 4] = ["µs", "ms", "s", "min"];
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut out: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let unit = words
            .get(at + 1)
            .map(|word| word.trim_end_matches([',', '.', ':']));
        let number = words[at].parse::<f64>().is_ok();
        let own = out.last() == Some(&"for");
        if number && !own && unit.is_some_and(|unit| UNITS.contains(&unit)) {
            out.push("TIME");
            at += 2;
        } else {
            out.push(words[at]);
            at += 1;
        }
    }
    out.join(" ")
}

#[test]
fn only_durations_of_this_machine_are_masked() {
    let text = "took      70 ms for 3.7 s in the federation, 1,059 events; the comparison 26 ms\n\
                final after 0.38 s\n";
    assert_eq!(
        masked(text),
        "took TIME for 3.7 s in the federation, 1,059 events; the comparison TIME\n\
         final after 0.38 s\n"
    );
}
