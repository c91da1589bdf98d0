//! The agreement in force as a page to print: for the files of an owner and of a data protection officer.

use std::path::Path;

use agreement::Agreement;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use protocol::MemberIndex;

use super::{OwnSide, words_for};
use crate::chain::{FinalChain, Who};
use formatting::numbers::{plain, plural};
use formatting::palette;

const STYLE: &str = include_str!("print.css");

/// What a page says besides the agreement.
pub struct Printed<'a> {
    /// The agreement in force.
    pub agreement: &'a Agreement,
    /// The institution's place in it.
    pub me: MemberIndex,
    /// What is known of its own side.
    pub own: &'a OwnSide,
    /// How the institution stands to the agreement, in a sentence.
    pub consent: &'a str,
    /// That nothing counts what the institution discloses, in a sentence; `None` where that is not said.
    pub uncounted: Option<&'a str>,
    /// The signed consents that are here, one line each.
    pub consents: &'a [String],
    /// The decisions so far; `None` before the node has run.
    pub chain: Option<&'a FinalChain>,
    /// Date of the page, for people.
    pub date: &'a str,
    /// The configuration of the node.
    pub config: &'a Path,
}

/// The page, in one file without scripts.
pub fn page(printed: &Printed<'_>) -> String {
    let agreement = printed.agreement;
    let epoch = &agreement.epoch;
    let name = plain(epoch.roster.name(printed.me));
    let federation = plain(&epoch.protocol.name);
    let style = format!("{}{STYLE}", palette::variables());
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (federation) ": the agreement, as " (name) " has it" }
                style { (PreEscaped(style)) }
            }
            body { main {
                header {
                    p.kicker { "Agreement of a federation, printed for " (name) " on " (printed.date) }
                    h1 { (federation) }
                    p {
                        "In force after " (plural(epoch.number as usize, "change")) ", in the federation with the id "
                        code { (format!("{:#}", epoch.federation)) } "."
                    }
                }
                section {
                    h2 { "The agreement" }
                    (lines(&words_for(agreement, printed.own)))
                }
                section {
                    h2 { "Signatures" }
                    p { (name) ": " (plain(printed.consent)) "." }
                    (lines(printed.consents))
                    @if let Some(uncounted) = printed.uncounted { p { (name) ": " (plain(uncounted)) "." } }
                }
                section { h2 { "What was decided" } (decisions(printed.chain)) }
                section { h2 { "How to leave" } (leaving(agreement, printed.config)) }
                section.sign {
                    @for who in ["Owner of the data", "Data protection officer"] {
                        div { span {} (who) ", place, date" }
                    }
                }
            } }
        }
    };
    page.into_string()
}

/// Lines of text as headings, lists and lists below them, by how far they are indented.
fn lines(lines: &[String]) -> Markup {
    html! {
        @for line in lines {
            @let indent = line.len() - line.trim_start().len();
            @let text = plain(line.trim());
            @if text.is_empty() {}
            @else if indent == 0 { p.head { (text) } }
            @else if indent < 4 { p.item { (text) } }
            @else { p.item.below { (text) } }
        }
    }
}

fn decisions(chain: Option<&FinalChain>) -> Markup {
    let Some(chain) = chain else {
        return html! { p { "The node has not run yet." } };
    };
    let mut round = 0;
    let mut rows = Vec::new();
    for link in &chain.blocks {
        round = link.round.unwrap_or(round);
        if let Some(change) = &link.change {
            let by: Vec<String> = link.approved.iter().map(Who::shown).collect();
            rows.push((round, change.join(", "), by.join(", "), link.recovery));
        }
    }
    html! {
        p { (plural(chain.rounds(), "round")) " so far, each with the signatures of a quorum of the members." }
        @for missing in &chain.missing { p.item { "Missing here: " (missing.sentence()) } }
        @if rows.is_empty() { p { "The first agreement has not been changed." } } @else {
            table {
                thead { tr { th { "After round" } th { "What changed" } th { "Approved by (the quorum in its block)" } } }
                tbody { @for (round, what, by, recovery) in rows { tr {
                    td { (round) }
                    td { (what) @if recovery { " (recovery: without a quorum)" } }
                    td { (by) }
                } } }
            }
        }
    }
}

fn leaving(agreement: &Agreement, config: &Path) -> Markup {
    let roster = &agreement.epoch.roster;
    let lowers = roster.len() > 1 && (roster.len() - 2) / 3 < roster.faulty();
    html! {
        p {
            "An institution may leave at any time: " code { "rota federation leave --config " (config.display()) }
            @if lowers {
                ". The others have to approve it, because they tolerate fewer faulty members afterwards. To leave \
                 without waiting for them, stop the node."
            } @else { ". Nobody has to approve it." }
        }
        p {
            "From then on its node sends nothing and receives nothing. Its state folder keeps its models. What it \
             contributed before is part of the models that the others have, and is not taken back: models cannot \
             forget. Its rows never left this institution."
        }
    }
}
