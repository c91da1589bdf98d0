//! The page that lists what is fuzzed: every target once, and how many there are.

use std::collections::BTreeSet;

use crate::pages::{files, root};

const PAGE: &str = "docs/reliability.md";
const ENGINE: &str = "tests/fuzz/engine.rs";

/// The text behind each `start` of a text, up to `end`.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    let parts = text.split(start).skip(1);
    parts.filter_map(move |part| Some(part.split_once(end)?.0))
}

#[test]
fn every_fuzz_target_is_on_its_page_and_counted() {
    let mut targets = BTreeSet::new();
    for file in files().iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        let found = between(&text, "FuzzTarget {\n", "\n    });");
        let names = found.filter_map(|target| between(target, "name: \"", "\"").next());
        targets.extend(names.map(str::to_owned));
    }
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    let section = between(&page, "\n### Damaged and synthetic input\n", "\n### ");
    let section: String = section.collect();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let listed: BTreeSet<String> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, targets);
    let counted = format!("The {} targets:", targets.len());
    assert!(
        section.contains(&counted),
        "{PAGE} does not say {counted:?}"
    );
    let engine = std::fs::read_to_string(root().join(ENGINE)).unwrap();
    let constant = format!("const TARGETS: u32 = {};", targets.len());
    assert!(engine.contains(&constant), "{ENGINE} has no {constant:?}");
}
