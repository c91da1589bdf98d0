//! The documentation against the program: the table of contents, links, cited files and tests,
//! command lines, and the output of every console example.
//!
//! `ROTA_GOLDEN=write cargo test --workspace --test book` writes the output of console examples
//! again; read the difference before you commit it.

#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod banned;
mod commands;
mod console;
mod fuzzed;
mod glossary;
mod messages;
mod methods;
mod pages;
mod papers;
mod reference;
mod takeover;
mod tutorial;

use std::collections::BTreeMap;

use pages::{Page, files, pages, root};

/// The page that a reader opens first.
const FIRST: &str = "docs/README.md";

/// Bound of the words of the page of results: what grows with every measurement stands in `measurements`.
const RESULTS_WORDS: usize = 1_500;

/// Bound of the words that an administrator reads, from nothing to predictions and an audit.
const ADMINISTRATORS_WORDS: usize = 8_000;

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

#[test]
fn the_snippets_of_add_a_strategy_are_compiled() {
    let page = std::fs::read_to_string(root().join("docs/methods/add-a-strategy.md")).unwrap();
    let compiled = "crates/methods/src/strategy/catalogue/methods/added.rs";
    let compiled = std::fs::read_to_string(root().join(compiled)).unwrap();
    let lines = |text: &str| -> String {
        let each = text.lines().map(str::trim).filter(|line| !line.is_empty());
        each.collect::<Vec<_>>().join("\n")
    };
    let snippets: Vec<&str> = page.split("```rust,ignore").skip(1).collect();
    assert_eq!(snippets.len(), 2);
    for snippet in snippets {
        let (snippet, _) = snippet.split_once("```").unwrap();
        assert!(lines(&compiled).contains(&lines(snippet)), "{snippet}");
    }
}

/// Links are followed from the first page; the table of contents is no page.
#[test]
fn every_page_is_reached_from_the_first_page() {
    let mut unread: BTreeMap<String, Page> = pages()
        .into_iter()
        .filter(|page| page.in_book() || page.name.starts_with("measurements/"))
        .map(|page| (page.name.clone(), page))
        .collect();
    let mut next = vec![FIRST.to_owned()];
    while let Some(name) = next.pop() {
        let Some(page) = unread.remove(&name) else {
            continue;
        };
        let targets = pages::links(&page.text).into_iter();
        next.extend(targets.map(|link| pages::target(&page, &link).display().to_string()));
    }
    let unreached: Vec<_> = unread.keys().collect();
    assert!(
        unreached.is_empty(),
        "no links from {FIRST} lead to {unreached:?}"
    );
}

#[test]
fn the_page_of_results_has_no_more_words_than_its_bound() {
    let all = pages();
    let page = all
        .iter()
        .find(|page| page.name == "docs/results.md")
        .unwrap();
    let words = page.words();
    assert!(
        words <= RESULTS_WORDS,
        "docs/results.md has {words} words, at most {RESULTS_WORDS} are allowed: move the rest to \
         measurements/results.md"
    );
}

/// The pages listed under this heading of the first page; blocks of code do not count.
#[test]
fn the_administrators_way_has_fewer_words_than_its_bound() {
    let first = std::fs::read_to_string(root().join(FIRST)).unwrap();
    let (_, rest) = first
        .split_once("\n## The administrator's way\n")
        .expect("docs/README.md has no section on the administrator's way");
    let way = pages::links(rest.split("\n## ").next().unwrap_or_default());
    assert!(way.len() > 5, "only {way:?}");
    let mut counts = Vec::new();
    for page in pages() {
        let name = page.name.strip_prefix("docs/").unwrap_or_default();
        if way.iter().any(|link| link == name) {
            counts.push((page.words(), page.name));
        }
    }
    let words: usize = counts.iter().map(|(words, _)| words).sum();
    assert_eq!(counts.len(), way.len());
    assert!(
        words < ADMINISTRATORS_WORDS,
        "the administrator's way has {words} words, and must have fewer than {ADMINISTRATORS_WORDS}: \
         move what only researchers or auditors need to other pages; {counts:?}"
    );
}

/// Links from page to page lead to a page and, where they name one, to a heading of it. Pages of
/// the book link to pages of the book and to measurements only: other files are not part of it.
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
