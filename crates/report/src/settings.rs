//! The section on settings: what was run, with which options, by which program and when.

use maud::{Markup, html};
use serde_json::Value;

use super::numbers;
use super::story::Story;

/// The section. `date` is that of the run, for people.
pub(crate) fn section(story: &Story, date: &str) -> Markup {
    let mut rows = vec![
        ("scenario".to_owned(), story.scenario.clone()),
        ("seed".to_owned(), story.seed.to_string()),
        ("rounds".to_owned(), story.rounds.len().to_string()),
        ("silos".to_owned(), silos(story)),
    ];
    flat("task", &story.settings.task, &mut rows);
    flat("strategy", &story.settings.strategy, &mut rows);
    rows.push((
        "program".to_owned(),
        format!("rota {}", story.settings.version),
    ));
    if !date.is_empty() {
        rows.push(("date".to_owned(), date.to_owned()));
    }
    html! {
        section {
            h2 { "Settings" }
            dl.settings { @for (key, value) in &rows { dt { (key) } dd { (numbers::plain(value)) } } }
        }
    }
}

fn silos(story: &Story) -> String {
    match story.outside.len() {
        0 => story.silos.len().to_string(),
        outside => format!("{} and {outside} outside", story.silos.len()),
    }
}

/// The keys and values below `value`, with full paths as in TOML.
pub(super) fn flat(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    /// More characters of one value are cut.
    const MOST: usize = 200;
    match value {
        Value::Null => {}
        Value::Object(keys) => {
            for (key, value) in keys {
                flat(&format!("{path}.{key}"), value, rows);
            }
        }
        Value::String(text) => rows.push((path.to_owned(), numbers::short(text, MOST))),
        Value::Array(items) if items.is_empty() => {}
        other => rows.push((path.to_owned(), numbers::short(&other.to_string(), MOST))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn task_strategy_seed_program_and_date_are_named() {
        let page = section(&fixture::story(3, 1, 2), "2026-01-02 03:04 UTC").into_string();
        for part in [
            "task.table.data</dt><dd>diabetes",
            "strategy.training.optimiser.rate</dt><dd>0.01",
            "seed</dt><dd>7",
            "program</dt><dd>rota 0.1.0",
            "date</dt><dd>2026-01-02 03:04 UTC",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
    }
}
