//! The sections on refused messages, evidence, checks, and how to run the same again.

use super::story::Story;
use maud::{Markup, html};

use super::terminal;

/// The three sections; `command` runs the same again.
pub(crate) fn sections(story: &Story, command: &str) -> Markup {
    let lists = [
        ("Of no use", terminal::unusable(story)),
        ("Training failed", terminal::failed(&story.training_failed)),
        (
            "Left out of a round",
            story
                .left_out
                .iter()
                .map(terminal::left_out)
                .collect::<Vec<_>>(),
        ),
        (
            "Refused",
            story.refused.iter().map(terminal::refused).collect(),
        ),
        (
            "Proven by signed evidence",
            story.faults.iter().map(terminal::fault).collect(),
        ),
    ];
    html! {
        section {
            h2 { "What went wrong" }
            @if lists.iter().all(|(_, lines)| lines.is_empty()) {
                p.note { "Nothing: every model is usable, no training failed, no member was left out, and no \
                          message was refused." }
            }
            @for (title, lines) in lists.iter().filter(|(_, lines)| !lines.is_empty()) {
                h3 { (title) }
                dl.scroll.tall { @for (subject, reason) in lines { dt { (subject) } dd { (reason) } } }
            }
        }
        section {
            h2 { "What was checked" }
            dl { @for (name, text) in &story.facts { dt { (name) } dd { (text) } } }
            @if !story.invariants.is_empty() {
                p.note { "The safety properties, checked after every event:" }
                ul { @for property in &story.invariants { li { (property) } } }
            }
        }
        section {
            h2 { "Run it again" }
            p.note {
                @match story.virtual_seconds {
                    None if story.is_direct() => "The same seed gives the same outcomes. ",
                    Some(_) => "The same seed gives the same events, and so the trace above. ",
                    None => "The same seed gives the same data and the same training; the order of messages differs from run to run. ",
                }
                "In the folder where it ran:"
            }
            pre tabindex="0" { code { (command) } }
        }
    }
}
