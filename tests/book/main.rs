//! The documentation against the program: the table of contents, links, cited files and tests,
//! command lines, and the output of every console example.
//!
//! `ROTA_GOLDEN=write cargo test --workspace --test book` writes the output of console examples
//! again; read the difference before you commit it.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod commands;
mod console;
mod pages;

use pages::{Page, files, pages, root};

#[test]
fn every_page_is_in_the_table_of_contents_once() {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let listed: Vec<_> = pages::links(&summary);
    let mut wrong = Vec::new();
    for page in pages().iter().filter(|page| page.in_book()) {
        let name = page.name.strip_prefix("docs/").unwrap();
        match listed.iter().filter(|link| *link == name).count() {
            1 => {}
            times => wrong.push(format!("{} is listed {times} times", page.name)),
        }
    }
    for link in &listed {
        if !root().join("docs").join(link).is_file() {
            wrong.push(format!("{link} is listed and does not exist"));
        }
    }
    assert!(wrong.is_empty(), "docs/SUMMARY.md:\n{}", wrong.join("\n"));
}

/// Links from page to page lead to a page and, where they name one, to a heading of it. Pages of
/// the book link to pages of the book only: other files are not part of it.
#[test]
fn every_relative_link_leads_to_a_page_and_a_heading() {
    let mut wrong = Vec::new();
    for page in pages() {
        for link in pages::links(&page.text) {
            if let Err(why) = pages::resolve(&page, &link) {
                wrong.push(format!("{}: {link}: {why}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A path in backticks is the end of a path in the repository, so `member/clock.rs` is enough.
#[test]
fn every_file_that_a_page_cites_exists() {
    let files = files();
    let exists = |cited: &str| {
        let end = format!("/{cited}");
        files
            .iter()
            .any(|file| file == cited || file.ends_with(&end))
    };
    let wrong = cited(pages::cited_files, &exists);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A name in backticks with three underscores or more, or one in a page's section "Tests", is a
/// function of this repository.
#[test]
fn every_test_that_a_page_cites_exists() {
    let functions = pages::functions();
    let exists = |cited: &str| functions.contains(cited);
    let wrong = cited(pages::cited_functions, &exists);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The citations of things that do not exist, each with its page.
fn cited(of: fn(&Page) -> Vec<String>, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for page in pages() {
        for cited in of(&page).into_iter().filter(|cited| !exists(cited)) {
            wrong.push(format!(
                "{} cites `{cited}`, which does not exist",
                page.name
            ));
        }
    }
    wrong
}

/// Rules (R1 …) and safety properties (S1 …) that pages, comments or texts cite are those of
/// `docs/protocol.md`.
#[test]
fn every_rule_that_is_cited_is_defined_in_the_protocol() {
    let protocol = std::fs::read_to_string(root().join("docs/protocol.md")).unwrap();
    let defined: Vec<_> = protocol
        .lines()
        .map(|line| line.trim_start_matches(['#', '|', '*', '-', ' ']))
        .filter_map(|line| {
            pages::rules(line)
                .into_iter()
                .next()
                .filter(|rule| line.starts_with(rule))
        })
        .collect();
    let cited = |name: &String| {
        let code = [
            "crates/protocol/",
            "crates/silo/",
            "simulations/",
            "node/",
            "tests/",
        ];
        name.ends_with(".rs") && code.iter().any(|start| name.starts_with(start))
            || name.ends_with(".md") && !name.starts_with("docs/methods/")
    };
    let mut wrong = Vec::new();
    for name in files().iter().filter(|name| cited(name)) {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        for rule in pages::rules(&text)
            .iter()
            .filter(|rule| !defined.contains(rule))
        {
            wrong.push(format!(
                "{name} cites {rule}, which docs/protocol.md does not define"
            ));
        }
    }
    assert!(defined.len() > 10, "found only {defined:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_on_a_page_is_accepted_by_the_program() {
    let mut wrong = Vec::new();
    for page in pages() {
        for line in commands::lines(&page) {
            if let Err(why) = commands::check(&line) {
                wrong.push(format!("{}: {line}: {why}", page.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_console_example_prints_what_the_page_shows() {
    let write = std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write");
    let mut examples = 0;
    for page in pages() {
        let blocks = console::blocks(&page);
        examples += blocks.len();
        let folder = console::folder(&page);
        let mut text = page.text.clone();
        for block in blocks {
            let actual = console::run(&block, folder.path());
            if write && !block.elides() {
                text = text.replacen(&block.text, &actual, 1);
            } else {
                console::compare(&page, &block, &actual);
            }
        }
        if write && text != page.text {
            std::fs::write(root().join(&page.name), text).unwrap();
        }
    }
    assert!(examples > 0, "no page has a console example");
}

/// A block that begins with a comment that names a file shows exactly that file.
#[test]
fn every_file_shown_on_a_page_is_shown_unchanged() {
    let mut wrong = Vec::new();
    for page in pages() {
        for (file, shown) in pages::shown_files(&page) {
            match std::fs::read_to_string(root().join(&file)) {
                Ok(text) if text.trim() == shown.trim() => {}
                Ok(_) => wrong.push(format!("{}: {file} has another content", page.name)),
                Err(error) => wrong.push(format!("{}: {file}: {error}", page.name)),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
