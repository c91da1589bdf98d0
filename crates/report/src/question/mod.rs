//! The HTML page of an answered question: its tables, survival curves with numbers at risk, a forest plot, or the loss
//! of boosted trees.

mod curve;
mod forest;
mod trees;

use maud::{Markup, html};
use questions::Outcome;
use questions::outcome::{PrintedCell, PrintedTable};

use crate::page::document;

/// What the page of a question shows.
#[derive(Debug, Clone, Copy)]
pub struct QuestionStory<'a> {
    /// Name of the question, such as its file.
    pub name: &'a str,
    /// What is said first: who answered.
    pub lead: &'a str,
    /// What each site computed and what was opened, in lines.
    pub explanation: &'a str,
    /// The answer.
    pub outcome: &'a Outcome,
    /// Its tables, after suppression.
    pub sheets: &'a [PrintedTable],
    /// The smallest cell that is printed.
    pub smallest: u64,
    /// What was opened in all.
    pub opened: &'a str,
    /// The command that asks again.
    pub command: &'a str,
}

/// The page as one HTML document.
pub fn page(story: &QuestionStory<'_>) -> String {
    document(
        &format!("{} · question", story.name),
        html! {
            header {
                p.kicker { "Rota · question" }
                h1 { (story.name) }
                p.lead { (story.lead) }
            }
            (picture(story))
            @for sheet in story.sheets { (table(sheet)) }
            section {
                h2 { "What was opened" }
                pre tabindex="0" { (story.explanation) }
                p { (story.opened) }
            }
            section {
                h2 { "Ask again" }
                pre tabindex="0" { (story.command) }
            }
        },
    )
}

fn picture(story: &QuestionStory<'_>) -> Markup {
    match story.outcome {
        Outcome::Km(found) => curve::section(found, story.smallest),
        Outcome::Cox(found) => {
            let lines = found
                .coefficients
                .iter()
                .map(|one| (one.term.clone(), one.value, one.estimate));
            forest::section("Hazard ratios", true, lines)
        }
        Outcome::Glm(found) => {
            let ratios = found.family != questions::kinds::glm::GlmFamily::Gaussian;
            let title = if ratios { "Ratios" } else { "Coefficients" };
            let lines = found
                .coefficients
                .iter()
                .map(|one| (one.term.clone(), one.value, one.estimate));
            forest::section(title, ratios, lines)
        }
        Outcome::Trees(found) => trees::sections(found),
        _ => html! {},
    }
}

fn table(sheet: &PrintedTable) -> Markup {
    html! {
        section {
            h2 { (sheet.title) }
            div.scroll tabindex="0" role="region" aria-label=(sheet.title) {
                table.stuck {
                    thead { tr { @for (at, name) in sheet.header.iter().enumerate() {
                        @if is_text(sheet, at) { th scope="col" { (name) } } @else { th.number scope="col" { (name) } }
                    } } }
                    tbody { @for row in &sheet.rows { tr { @for cell in row {
                        @match cell {
                            PrintedCell::Text(text) => { td { (text) } }
                            other => { td.number { (other.text()) } }
                        }
                    } } } }
                }
            }
            @for note in &sheet.notes { p.note { (note) } }
        }
    }
}

fn is_text(sheet: &PrintedTable, at: usize) -> bool {
    sheet
        .rows
        .first()
        .is_some_and(|row| matches!(row.get(at), Some(PrintedCell::Text(_))))
}
