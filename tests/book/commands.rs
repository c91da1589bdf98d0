//! Command lines on pages: subcommands and options have to be those of the program.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

use crate::pages::{Page, root};

/// The command lines of a page: lines of `sh` and `console` blocks, and what stands in backticks and
/// begins like one.
pub(crate) fn lines(page: &Page) -> Vec<String> {
    let command = |text: &String| {
        let beginnings = ["rota ", "just ", "cargo run ", "cargo test "];
        beginnings.iter().any(|start| text.starts_with(start))
    };
    let mut lines: Vec<_> = page.code().into_iter().filter(command).collect();
    for (language, text) in page.fences() {
        match language.as_str() {
            "sh" => lines.extend(text.lines().map(str::to_owned)),
            "console" => {
                lines.extend(
                    text.lines()
                        .filter_map(|line| line.strip_prefix("$ "))
                        .map(str::to_owned),
                );
            }
            _ => {}
        }
    }
    lines
}

/// Checks one line, if it runs `rota` or `just`.
pub(crate) fn check(line: &str) -> Result<(), String> {
    let line = line.split(" #").next().unwrap_or_default();
    // Only the program's own words: not what a shell does before and after.
    for part in line.split(['|', ';', '&']) {
        let words: Vec<&str> = part.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| !word.contains('=')) else {
            continue;
        };
        match &words[at..] {
            [
                "rota" | "target/release/rota" | "target/debug/rota",
                rest @ ..,
            ]
            | ["cargo", "run", "--release", "--", rest @ ..] => program(rest)?,
            ["cargo", "run", "--release", "--example", name, ..] => example(name)?,
            ["cargo", "run", "--release", "-p", _, "--example", name, ..] => example(name)?,
            ["cargo", "test", rest @ ..] => tests(rest)?,
            ["just", recipe, ..] => just(recipe)?,
            _ => {}
        }
    }
    Ok(())
}

fn program(words: &[&str]) -> Result<(), String> {
    let commands = [
        "solve",
        "identity",
        "federation",
        "model",
        "schema",
        "lab",
        "attack",
    ];
    let subcommands = match words {
        [first, ..] if commands.contains(first) => 2,
        _ => 1,
    };
    let path: Vec<&str> = words
        .iter()
        .take(subcommands)
        .copied()
        .filter(|word| !word.starts_with('-'))
        .collect();
    let help = help(&path)?;
    for option in words.iter().filter(|word| word.starts_with('-')) {
        let name = option.split('=').next().unwrap_or_default();
        let known = help
            .split(|c: char| c.is_whitespace() || ",[]".contains(c))
            .any(|word| word == name);
        if !known && name != "-" {
            return Err(format!("`rota {}` has no option {name}", path.join(" ")));
        }
    }
    Ok(())
}

/// The help of a subcommand.
pub(crate) fn help(path: &[&str]) -> Result<String, String> {
    static KNOWN: Mutex<BTreeMap<String, Result<String, String>>> = Mutex::new(BTreeMap::new());
    let ask = || {
        let output = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(path)
            .arg("--help")
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8(output.stdout).unwrap())
        } else {
            Err(String::from_utf8(output.stderr).unwrap())
        }
    };
    let mut known = KNOWN.lock().unwrap();
    known.entry(path.join(" ")).or_insert_with(ask).clone()
}

fn example(name: &str) -> Result<(), String> {
    let file = format!("examples/{name}.rs");
    let found = crate::pages::files()
        .iter()
        .any(|path| *path == file || path.ends_with(&format!("/{file}")));
    if found {
        Ok(())
    } else {
        Err(format!("there is no {file}"))
    }
}

/// `--test NAME` names a test binary.
fn tests(words: &[&str]) -> Result<(), String> {
    let files = crate::pages::files();
    for pair in words.windows(2).filter(|pair| pair[0] == "--test") {
        let ends = [
            format!("tests/{}.rs", pair[1]),
            format!("tests/{}/main.rs", pair[1]),
        ];
        if !files
            .iter()
            .any(|file| ends.iter().any(|end| file.ends_with(end)))
        {
            return Err(format!("there is no test binary {}", pair[1]));
        }
    }
    Ok(())
}

fn just(recipe: &str) -> Result<(), String> {
    let justfile = std::fs::read_to_string(root().join("justfile")).unwrap();
    let known = justfile
        .lines()
        .filter(|line| !line.starts_with(['#', ' ', '\t']))
        .filter_map(|line| line.split([' ', ':']).next())
        .any(|name| name == recipe);
    if known {
        Ok(())
    } else {
        Err(format!("the justfile has no recipe {recipe}"))
    }
}
