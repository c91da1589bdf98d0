//! What was refused, what was proven, what was checked, and how to see it again.

use super::story::Story;
use maud::{Markup, html};

use super::terminal;

/// The sections.
pub(crate) fn sections(story: &Story, command: &str) -> Markup {
    let told = [
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
            @if told.iter().all(|(_, lines)| lines.is_empty()) {
                p.note { "Nothing: nobody was left out, and every member took every other’s word." }
            }
            @for (title, lines) in told.iter().filter(|(_, lines)| !lines.is_empty()) {
                h3 { (title) }
                dl.scroll.tall { @for (whose, what) in lines { dt { (whose) } dd { (what) } } }
            }
        }
        section {
            h2 { "What was checked" }
            dl { @for (name, text) in &story.facts { dt { (name) } dd { (text) } } }
            p.note { "Agreement means, after every event:" }
            ul { @for property in &story.invariants { li { (property) } } }
        }
        section {
            h2 { "See it again" }
            p.note {
                @match story.virtual_seconds {
                    Some(_) => "The same seed gives the same federation, event by event, and with it the trace above. ",
                    None => "The same seed gives the same data and the same training; what arrives first is up to the sockets. ",
                }
                "From the repository:"
            }
            pre tabindex="0" { code { (command) } }
        }
    }
}
