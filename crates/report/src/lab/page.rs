//! An experiment as one HTML page.

use lab::rotation::{Laboratory, PolicyResult, RotationRun};
use maud::{Markup, html};

use super::super::page::document;
use super::super::{download, numbers};
use super::chart::{ChartLine, chart};
use super::csv::csv;
use super::table::{LabTable, tables};
use super::timelines;

/// The page. `command` runs the same again; `date` is that of the run, for people, or empty.
pub fn page(all: &Laboratory, command: &str, date: &str) -> String {
    let title = format!("{} · rotations", all.scenario);
    document(
        &title,
        html! {
            header {
                p.kicker { "Rota · laboratory of rotating leads" }
                h1 { (all.scenario) }
                p.lead { (all.description) }
                p.muted {
                    (numbers::plural(all.silos.len(), "silo")) ", "
                    (numbers::plural(all.rounds as usize, "round")) ", "
                    (numbers::plural(all.seeds, "seed")) ", strategy " (all.strategy)
                    @if !date.is_empty() { ", " (date) }
                }
                @if let Some(deployed) = &all.deployment {
                    p { "With real processes: " (deployed.network) "." }
                    @for note in &deployed.notes { p.note { (note) } }
                }
            }
            section {
                h2 { "Results" }
                @for table in tables(all) { (markup(&table)) }
                (download::data(&format!("{}-rotations", all.scenario), &csv(all)))
            }
            (timelines::section(all))
            (curves(all))
            section {
                h2 { "What goes wrong" }
                @if all.faults.is_empty() { p { "Nothing." } }
                @else { ul { @for fault in &all.faults { li { (fault) } } } }
                p.note { "\"The lead\" is the member that leads at that moment, so each rotation loses a different \
                          member." }
                h3 { "Run it again" }
                pre tabindex="0" { (command) }
                p.muted { "rota " (all.version) }
            }
        },
    )
}

fn markup(table: &LabTable) -> Markup {
    html! {
        h3 { (table.title) }
        div.scroll tabindex="0" role="region" aria-label=(table.title) {
            table.stuck {
                thead { tr { @for (at, column) in table.columns.iter().enumerate() {
                    th.number[at > 0] scope="col" { (column) }
                } } }
                tbody { @for row in &table.rows { tr {
                    @for (at, cell) in row.iter().enumerate() {
                        @if at == 0 { th scope="row" { (cell) } } @else { td.number { (cell) } }
                    }
                } } }
            }
        }
        p.note { (table.note) }
    }
}

fn curves(all: &Laboratory) -> Markup {
    let metric = &all.metric.name;
    let by_time = all.policies.iter().map(|policy| ChartLine {
        name: policy.policy.clone(),
        points: policy
            .trials
            .first()
            .map(|trial| {
                let points = trial.curve.iter();
                points
                    .filter_map(|point| Some((point.seconds, point.metric?)))
                    .collect()
            })
            .unwrap_or_default(),
    });
    let seen = |of: fn(&lab::rotation::SeenAuthors) -> f64| {
        let line = move |policy: &PolicyResult| ChartLine {
            name: policy.policy.clone(),
            points: by_round(&policy.trials, of),
        };
        all.policies.iter().map(line).collect::<Vec<_>>()
    };
    let seed = all
        .policies
        .first()
        .and_then(|policy| policy.trials.first());
    let seed = seed.map_or(0, |trial| trial.seed);
    let clock = match all.deployment {
        None => "virtual seconds",
        Some(_) => "seconds",
    };
    html! {
        section {
            h2 { "Course" }
            div.pair {
                (chart(
                    &format!("Held-out {metric} by {clock}, seed {seed}"),
                    &format!("{}-accuracy", all.scenario),
                    ("seconds", metric),
                    &by_time.collect::<Vec<_>>(),
                ))
                (chart(
                    "Percent of the others whose contributions a member has seen by name, by round (mean over members and seeds)",
                    &format!("{}-seen", all.scenario),
                    ("round", "percent"),
                    &seen(|seen| 100.0 * seen.mean),
                ))
            }
        }
    }
}

/// The mean over trials after each round.
fn by_round(trials: &[RotationRun], of: fn(&lab::rotation::SeenAuthors) -> f64) -> Vec<(f64, f64)> {
    let last = trials
        .iter()
        .map(|trial| trial.seen.len())
        .max()
        .unwrap_or(0);
    let point = |at: usize| {
        let values: Vec<f64> = trials
            .iter()
            .filter_map(|trial| trial.seen.get(at))
            .map(of)
            .collect();
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        ((at + 1) as f64, mean)
    };
    (0..last).map(point).collect()
}
