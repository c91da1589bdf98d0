//! A comparison as one HTML page.

use maud::{Markup, html};
use simulations::compare::{Comparison, Row, VariantTable};

use super::super::page::document;
use super::super::{download, numbers, settings::flat};
use super::cells::TextTable;
use super::table::{failures, metric_words, settings, tables};
use super::text::how;
use super::{csv, curves, graph};

/// Most members whose grouping is drawn pair by pair.
const PAIRS: usize = 30;

/// The page. `command` runs the same again; `date` is that of the run, for people, or empty.
pub fn page(comparison: &Comparison, command: &str, date: &str) -> String {
    let title = format!("{} · comparison", comparison.experiment);
    document(
        &title,
        html! {
            header {
                p.kicker { "Rota · comparison" }
                h1 { (comparison.experiment) }
                p.lead { (comparison.description) }
                @if comparison.quick {
                    p.lead.bad { "This is the quick form of the experiment, which is not to be quoted." }
                }
                p.muted {
                    (numbers::plural(comparison.seeds, "seed"))
                    @if !date.is_empty() { ", " (date) }
                }
                p.note { (how(comparison)) }
            }
            @for variant in &comparison.variants { (section(comparison, variant)) }
            (tuning(comparison))
            (setting(comparison, command))
        },
    )
}

fn section(comparison: &Comparison, variant: &VariantTable) -> Markup {
    let name = match variant.name.is_empty() {
        true => comparison.experiment.clone(),
        false => format!("{}-{}", comparison.experiment, variant.name),
    };
    html! {
        section {
            h2 { (if variant.name.is_empty() { "Results" } else { &variant.name }) }
            @for text in failures(variant) { p.lead.bad { (text) } }
            @for note in &variant.notes { p.note { "Note: " (numbers::plain(note)) "." } }
            @for table in tables(comparison, variant) { (markup(&table)) }
            (download::data(&comparison.experiment, &csv::csv(comparison)))
            h3 { "Course" }
            p.note { "Means over seeds on test rows, which nothing was chosen by. Point at a line for its name." }
            (curves::charts(&name, &metric_words(comparison.metrics[0]), variant))
            (groupings(variant))
            (graph::section(variant))
        }
    }
}

fn markup(table: &TextTable) -> Markup {
    let empty = |at: usize| at > 0 && table.rows.iter().all(|row| row[at].is_empty());
    let shown: Vec<usize> = (0..table.columns.len()).filter(|&at| !empty(at)).collect();
    html! {
        h3 { (table.title) }
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table {
                thead { tr { @for &at in &shown {
                    th.number[at > 0] scope="col" { (table.columns[at]) }
                } } }
                tbody { @for row in &table.rows { tr {
                    @for &at in &shown {
                        @if at == 0 { th scope="row" { (row[0]) } } @else { td.number { (row[at]) } }
                    }
                } } }
            }
        }
        @if !table.note.is_empty() { p.note { (table.note) } }
    }
}

/// Which members are grouped together, over seeds.
fn groupings(variant: &VariantTable) -> Markup {
    let with = |row: &&Row| row.together.as_ref().is_some_and(|all| all.len() <= PAIRS);
    let rows: Vec<&Row> = variant
        .strategies
        .iter()
        .filter(with)
        .filter(|row| row.strategy != "local")
        .collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Who is with whom" }
            p.note {
                "Share of the seeds, in percent, in which two members are in one coalition after the chosen round."
            }
            div.pair {
                @for row in rows {
                    figure {
                        figcaption { (row.label) }
                        div.scroll tabindex="0" role="region" aria-label={ "Groupings of " (row.label) } {
                            table.shares {
                                @for (name, shares) in variant.members.iter().zip(row.together.iter().flatten()) {
                                    tr {
                                        th scope="row" { (numbers::short(name, 16)) }
                                        @for share in shares {
                                            td style=(format!("--share:{share:.2}")) { (format!("{:.0}", 100.0 * share)) }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What was tried for every way of learning.
fn tuning(comparison: &Comparison) -> Markup {
    let rows = |variant: &VariantTable| -> Vec<[String; 4]> {
        let each = variant.strategies.iter().flat_map(|row| {
            row.tried.iter().map(|tried| {
                let settings: Vec<String> = tried
                    .settings
                    .iter()
                    .map(|(key, value)| format!("{key} = {value}"))
                    .collect();
                [
                    row.label.clone(),
                    settings.join(", "),
                    tried
                        .value
                        .map_or_else(|| "failed".into(), |value| format!("{value:.4}")),
                    tried
                        .round
                        .map_or_else(String::new, |round| format!("{round:.1}")),
                ]
            })
        });
        each.collect()
    };
    html! {
        section {
            h2 { "What was tried" }
            p.note { "Means over seeds, on validation rows." }
            @for variant in &comparison.variants {
                @if !variant.name.is_empty() { h3 { (variant.name) } }
                div.scroll.tall tabindex="0" role="region" aria-label="What was tried" {
                    table {
                        thead { tr {
                            th scope="col" { "way of learning" }
                            th scope="col" { "settings" }
                            th.number scope="col" { (comparison.tune.by.key()) }
                            th.number scope="col" { "best round" }
                        } }
                        tbody { @for [label, settings, value, round] in rows(variant) { tr {
                            th scope="row" { (label) }
                            td { (settings) }
                            td.number { (value) }
                            td.number { (round) }
                        } } }
                    }
                }
                @let chosen = settings(variant);
                @if !chosen.is_empty() {
                    h3 { "What was chosen, and numbers that strategies report" }
                    dl { @for (label, text) in chosen { dt { (label) } dd { (text) } } }
                }
            }
        }
    }
}

fn setting(comparison: &Comparison, command: &str) -> Markup {
    let mut rows = Vec::new();
    flat("scenario", &comparison.scenario, &mut rows);
    rows.push(("program".to_owned(), format!("rota {}", comparison.version)));
    html! {
        section {
            h2 { "Settings" }
            dl.settings { @for (key, value) in &rows { dt { (key) } dd { (numbers::plain(value)) } } }
            h3 { "Run it again" }
            pre { (command) }
        }
    }
}
