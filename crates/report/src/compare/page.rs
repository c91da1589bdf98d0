//! A comparison as one HTML page.

use lab::compare::{Comparison, VariantTable};
use maud::{Markup, html};

use super::super::page::document;
use super::super::pitfalls::PITFALLS;
use super::super::{download, numbers, settings::flat};
use super::cells::TextTable;
use super::table::{failures, metric_words, settings, tables, unfinished};
use super::text::{how, trained};
use super::{csv, curves, graph, together};

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
                    p.lead.bad { "This is the quick form of the experiment: do not quote its numbers." }
                }
                p.muted {
                    (numbers::plural(comparison.seeds, "seed"))
                    @if !date.is_empty() { ", " (date) }
                }
                p.note { (how(comparison)) }
                p.note { (trained(comparison)) }
            }
            @for variant in &comparison.variants { (section(comparison, variant)) }
            (tuning(comparison))
            (setting(comparison, command))
        },
    )
}

fn section(comparison: &Comparison, variant: &VariantTable) -> Markup {
    let name = if variant.name.is_empty() {
        comparison.experiment.clone()
    } else {
        format!("{}-{}", comparison.experiment, variant.name)
    };
    html! {
        section {
            h2 { (if variant.name.is_empty() { "Results" } else { &variant.name }) }
            @for text in failures(variant) { p.lead.bad { (text) } }
            @for text in unfinished(variant) { p.note { "Not finished: " (text) " (" (PITFALLS) ")" } }
            @for note in &variant.notes { p.note { "Note: " (numbers::plain(note)) "." } }
            @for table in tables(comparison, variant) { (markup(&table)) }
            (download::data(&comparison.experiment, &csv::csv(comparison)))
            h3 { "Course" }
            p.note {
                "Means over seeds on test rows, which were not used for any choice. Point at a line for its name. \
                 Seconds are "
                "those of training on this machine, which may have done other things at the same time."
            }
            (curves::charts(&name, &metric_words(comparison.metrics[0]), variant))
            (together::section(&name, variant))
            (graph::section(variant))
        }
    }
}

fn markup(table: &TextTable) -> Markup {
    let filled = |&at: &usize| table.filled(at);
    let main: Vec<usize> = table.main.iter().copied().filter(filled).collect();
    let others = (1..table.columns.len()).filter(|at| !main.contains(at));
    let others: Vec<usize> = others.filter(filled).collect();
    // Where there is nothing to put first, all columns are the table.
    let (shown, folded) = if main.is_empty() {
        (others, Vec::new())
    } else {
        (main, others)
    };
    html! {
        h3 { (table.title) }
        (grid(table, &shown, !folded.is_empty()))
        @if !folded.is_empty() {
            details.fold {
                summary { "More columns: " (heads(table, &folded)) }
                (grid(table, &folded, false))
            }
        }
        @if !table.note.is_empty() { p.note { (table.note) } }
    }
}

fn heads(table: &TextTable, columns: &[usize]) -> String {
    let heads = columns.iter().map(|&at| table.columns[at].as_str());
    heads.collect::<Vec<_>>().join(", ")
}

/// The name of every row, which stays in view, and these columns of it; whether the first of them
/// decides.
fn grid(table: &TextTable, columns: &[usize], decides: bool) -> Markup {
    let decision = |at: usize| decides && columns.first() == Some(&at);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table.stuck {
                thead { tr {
                    th scope="col" { (table.columns[0]) }
                    @for &at in columns { th.number.decision[decision(at)] scope="col" { (table.columns[at]) } }
                } }
                tbody { @for (nth, row) in table.rows.iter().enumerate() { tr {
                    th scope="row" { (row[0]) }
                    @for &at in columns {
                        td.number.decision[decision(at) && !table.undecided.contains(&nth)] { (cell(&row[at])) }
                    }
                } } }
            }
        }
    }
}

/// The text of a cell. A window that is narrow shows an interval, or a deviation, below its number.
fn cell(text: &str) -> Markup {
    let breaks = [" [", " ±"].iter().find_map(|mark| text.find(mark));
    match breaks.map(|at| text.split_at(at)) {
        Some((number, rest)) => html! { (number) " " span.rest { (rest.trim_start()) } },
        None => html! { (text) },
    }
}

/// Returns what was tried for every strategy.
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
                    table.stuck {
                        thead { tr {
                            th scope="col" { "strategy" }
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
            pre tabindex="0" { (command) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::undecided;
    use super::*;

    fn table(main: &[usize]) -> TextTable {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        TextTable {
            title: "results".into(),
            columns: vec![
                String::new(),
                "silos".into(),
                "rows".into(),
                "vs local".into(),
                "none".into(),
            ],
            main: main.to_vec(),
            rows: vec![words("fedavg 47.6 47.1 +0.7 "), words("local 48.2 48.0  ")],
            ..TextTable::default()
        }
    }

    fn heads(text: &str) -> Vec<&str> {
        let parts = text
            .split("</th>")
            .filter_map(|part| part.rsplit_once("scope=\"col\">"));
        parts.map(|(_, head)| head).collect()
    }

    #[test]
    fn the_deciding_column_is_beside_the_name_and_others_are_folded() {
        let page = markup(&table(&[3, 1])).into_string();
        let (main, folded) = page
            .split_once("<details class=\"fold\">")
            .unwrap_or_default();
        assert_eq!(heads(main), ["", "vs local", "silos"]);
        assert_eq!(heads(folded), ["", "rows"]);
        assert!(
            main.contains("<th class=\"number decision\" scope=\"col\">vs local<"),
            "{main}"
        );
        assert!(
            folded.starts_with("<summary>More columns: rows</summary>"),
            "{folded}"
        );
        // In both tables the name stays in view, and no row is lost.
        for part in [main, folded] {
            assert!(part.contains("<table class=\"stuck\">"), "{part}");
            assert_eq!(part.matches("<th scope=\"row\">").count(), 2);
        }
        assert!(main.contains(">+0.7<") && folded.contains(">47.1<"));
    }

    /// An interval that holds 0 decides nothing, and looks like it.
    #[test]
    fn an_interval_that_holds_0_is_not_bold() {
        let of = |undecided: &[usize]| {
            let table = TextTable {
                undecided: undecided.to_vec(),
                ..table(&[3, 1])
            };
            let page = markup(&table).into_string();
            page.matches("<td class=\"number decision\">").count()
        };
        assert_eq!((of(&[]), of(&[0]), of(&[0, 1])), (2, 1, 0));
        let clear = |low: f64, high: f64| {
            let by = f64::midpoint(low, high);
            Some(lab::summary::Interval { by, low, high })
        };
        let intervals = [
            clear(0.1, 0.3),
            clear(-0.1, 0.3),
            None,
            clear(-0.3, -0.1),
            clear(0.0, 0.2),
        ];
        assert_eq!(undecided(intervals.into_iter()), [1, 4]);
    }

    #[test]
    fn a_number_and_its_interval_may_stand_below_each_other() {
        for (text, shown) in [
            (
                "+0.71 [−0.20, +1.60]",
                "+0.71 <span class=\"rest\">[−0.20, +1.60]</span>",
            ),
            ("47.6 ± 0.3", "47.6 <span class=\"rest\">± 0.3</span>"),
            ("3/1/0", "3/1/0"),
        ] {
            assert_eq!(cell(text).into_string(), shown);
        }
    }

    #[test]
    fn without_a_deciding_column_all_filled_columns_are_the_table() {
        for main in [&[][..], &[4]] {
            let page = markup(&table(main)).into_string();
            assert_eq!(heads(&page), ["", "silos", "rows", "vs local"]);
            assert!(
                !page.contains("<details") && !page.contains("decision"),
                "{page}"
            );
        }
    }
}
