//! Attacks on single rows ([`lab::attack`]) as HTML pages.

mod intervals;

use lab::attack::{CanaryAudit, LEVEL, MembershipAttack, OwnMembership};
use maud::{Markup, html};

use crate::page::document;
use intervals::{MeasuredBar, bars};

/// The page of an attack on membership. `command` runs the same again.
pub fn membership(found: &MembershipAttack, command: &str) -> String {
    let tests = found.tests.iter().map(|test| MeasuredBar {
        name: test.name.clone(),
        estimate: test.auc,
    });
    let tests: Vec<_> = tests.collect();
    let mut marks = vec![("guessing", 0.5)];
    marks.extend(
        found
            .bound
            .as_ref()
            .map(|bound| ("bound by differential privacy", bound.auc)),
    );
    let lead = "How well an attacker who sees the models of a federation can tell which rows they were trained on: \
                the area under the ROC curve. 0.5 is guessing, 1 is always right.";
    page(
        &found.scenario,
        "Rota · attack on membership",
        lead,
        html! {
            section {
                h2 { "What was found" }
                (bars("Area under the ROC curve", &tests, &marks))
                (table("Attack", "Area", &tests))
                @match &found.bound {
                    Some(bound) => p {
                        "No attack on these rounds can have an area above "
                        b { (format!("{:.3}", bound.auc)) }
                        ": all rounds together satisfy " (bound.words) "."
                    },
                    None => p { "These sums have no noise, so nothing bounds what a stronger attack finds." },
                }
                p.note {
                    (found.shadows) " shadow federations and " (found.targets) " attacked ones of " (found.silos)
                    " institutions and " (found.rounds) " rounds, each with about half of " (found.rows)
                    " " (found.unit) "s. Intervals (95 %): " (found.unit) "s resampled."
                }
            }
            (not_tried(&found.not_tried))
        },
        command,
    )
}

/// The page of the attack on a node's local model.
pub fn own(found: &OwnMembership, command: &str) -> String {
    let tests = [MeasuredBar {
        name: "low loss as the sign of a training row".into(),
        estimate: found.auc,
    }];
    page(
        &found.model,
        "Rota · attack on membership, on own rows",
        "How well the losses of a model distinguish the rows that it was trained on from rows that were held out.",
        html! {
            section {
                h2 { "What was found" }
                (bars("Area under the ROC curve", &tests, &[("guessing", 0.5)]))
                (table("Attack", "Area", &tests))
                p {
                    "Mean loss: " (format!("{:.4}", found.train_loss)) " of " (found.train) " training rows, "
                    (format!("{:.4}", found.held_out_loss)) " of " (found.held_out) " held-out rows."
                }
                p.note {
                    "This is the weakest attack. If it finds nothing, a stronger one still may; only noise bounds \
                     all of them. The interval (95 %) is from rows resampled."
                }
            }
            (not_tried(std::slice::from_ref(&found.not_tried)))
        },
        command,
    )
}

/// The page of an audit with canaries.
pub fn canary(found: &CanaryAudit, command: &str) -> String {
    let claim = found.epsilon.map(|epsilon| ("claimed", epsilon));
    let marks: Vec<_> = claim
        .into_iter()
        .chain([("most it can show", found.most)])
        .collect();
    let runs = found
        .runs
        .iter()
        .map(|run| (run.seed.to_string(), run.epsilon));
    let runs: Vec<_> = runs.collect();
    page(
        &found.scenario,
        "Rota · audit with canaries",
        "Measured lower bounds on epsilon: for each synthetic unit (a canary) a coin decides whether it is in the \
         federation, and an auditor guesses from the opened sums which of them are.",
        html! {
            section {
                h2 { "What was found" }
                p.lead { (found.verdict()) }
                (intervals::lower("Lower bound on epsilon, by run", &runs, &marks))
                div.scroll tabindex="0" role="region" aria-label="Runs" {
                    table.stuck {
                        thead { tr {
                            th scope="col" { "Seed" }
                            th.number scope="col" { "Right guesses" }
                            th.number scope="col" { "Lower bound" }
                        } }
                        tbody { @for run in &found.runs { tr {
                            th scope="row" { (run.seed) }
                            td.number { (run.right) " of " (found.guesses) }
                            td.number { (format!("{:.2}", run.epsilon)) }
                        } } }
                    }
                }
                p {
                    "Claimed: " (found.bound) ". With all " (found.guesses) " guesses right a run would show "
                    b { (format!("{:.2}", found.most)) } "."
                }
                p.note {
                    (found.canaries) " canaries in each run of " (found.rounds) " rounds. A bound is above the truth \
                     in " (format!("{:.0}", 100.0 * LEVEL)) " % of the runs at most."
                }
            }
            (not_tried(&found.not_tried))
        },
        command,
    )
}

fn page(title: &str, kicker: &str, lead: &str, content: Markup, command: &str) -> String {
    document(
        &format!("{title} · attack"),
        html! {
            header {
                p.kicker { (kicker) }
                h1 { (title) }
                p.lead { (lead) }
            }
            (content)
            section {
                h2 { "Run it again" }
                pre tabindex="0" { (command) }
            }
        },
    )
}

fn table(name: &str, value: &str, rows: &[MeasuredBar]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(value) {
            table.stuck {
                thead { tr {
                    th scope="col" { (name) }
                    th.number scope="col" { (value) }
                    th.number scope="col" { "95 % interval" }
                } }
                tbody { @for row in rows { tr {
                    th scope="row" { (row.name) }
                    td.number { (format!("{:.3}", row.estimate.value)) }
                    td.number { (format!("{:.3} to {:.3}", row.estimate.low, row.estimate.high)) }
                } } }
            }
        }
    }
}

fn not_tried(what: &[String]) -> Markup {
    html! {
        section {
            h2 { "What was not tried" }
            p { "An attack that finds little does not prove that there is little to find." }
            ul { @for one in what { li { (one) } } }
        }
    }
}

#[cfg(test)]
mod tests;
