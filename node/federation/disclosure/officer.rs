//! The paragraph for a data protection officer, with the numbers of a federation.

use agreement::Agreement;
use formatting::numbers;
use privacy::accountant::{Bound, Epsilon};
use protocol::charter::{Noise, Unit};
use protocol::privacy::Masked;

use super::noised::colluding;
use super::together::{delta, does_not_hold, ledger_numbers, why_no_bound};
use crate::spending::Spending;

/// The paragraph, a few sentences each.
pub fn officer(agreement: &Agreement, spending: &Spending) -> Vec<String> {
    let mut said = match agreement.epoch.charter.privacy.masked() {
        Some(masked) => of_sums(agreement, masked, spending),
        None => vec![
            "What leaves us in a round is a model that was trained on our rows, and every member sees it.".to_owned(),
            format!("{NO_BOUND}."),
            "Who takes part, and when, is known to all members.".into(),
        ],
    };
    said.push(
        "This is not a legal finding of anonymity. It does not cover what the results disclose about patients like \
         ours in general, nor our own copies and staff."
            .into(),
    );
    said
}

/// Without noise.
const NO_BOUND: &str = "There is no noise, and so no bound on what all published results together tell about one \
                        patient";

fn of_sums(agreement: &Agreement, masked: &Masked, spending: &Spending) -> Vec<String> {
    let mut said = vec![format!(
        "What leaves us in a round looks like random numbers to everybody. Only the sum over at least {} \
         institutions is opened, and every member checks that before it helps.",
        fewest(masked)
    )];
    match masked.noise() {
        Some(noise) => said.extend(with_noise(agreement, (masked, noise), spending)),
        None => said.push(format!(
            "{NO_BOUND}. If all other institutions of our group collude, they know our update."
        )),
    }
    said.push("Who takes part, when, and with what weight, is known to all members.".into());
    said
}

fn with_noise(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    spending: &Spending,
) -> Vec<String> {
    let data = match noise.unit {
        Unit::Row => "one row",
        Unit::Person(_) => "one patient's data",
    };
    let mut said = Vec::new();
    if let Some(delta) = delta(noise) {
        let (together, alone) = (spending.together(delta), spending.alone(delta));
        match why_no_bound(spending, &together) {
            None => said.push(bounded(
                masked,
                &format!("With or without {data}"),
                &together,
            )),
            Some(why) => {
                said.push(format!(
                    "There is no bound on what all published results together tell about {data}, because {why}."
                ));
                if spending.to_come > 0 && alone.epsilon().is_bound() {
                    let with = format!("Of the rounds to come alone: with or without {data}");
                    said.push(bounded(masked, &with, &alone));
                }
            }
        }
    }
    if spending.so_far.is_none() {
        said.push("These are the rounds under this agreement only.".into());
    }
    let continued = spending.so_far.as_ref().and_then(|so_far| so_far.continued);
    if let Some(earlier) = &agreement.continues {
        let name = numbers::plain(&earlier.name);
        said.push(match continued {
            None => format!("What the federation {name} told of our rows before is not counted."),
            Some(_) => format!(
                "What the federation {name} told of our rows before is counted; what that one continued itself, if it \
                 did, is not."
            ),
        });
    }
    said.extend(ledger_numbers(spending).map(|numbers| {
        format!("Our ledger counts all federations that learn from these rows: {numbers}.")
    }));
    if spending.uncounted {
        said.push(
            "No ledger counts what we disclose: epsilon is that of this federation alone, whatever else was learned \
             from the same rows."
                .into(),
        );
    }
    said.extend(does_not_hold(agreement).map(|why| format!("But {why}.")));
    said.push("A patient treated in two institutions counts twice.".into());
    said
}

/// What both numbers mean, in a sentence that begins so.
fn bounded(masked: &Masked, with: &str, bound: &Bound) -> String {
    let institutions = colluding(masked.colluders, "institution");
    let (epsilon, alone) = (bound.epsilon(), bound.alone());
    let at_most = match alone.is_bound() {
        true => format!("the factor is at most {}", factor(alone)),
        false => "there is no bound".into(),
    };
    format!(
        "{with}, nothing that is published becomes more than {} times as likely, except with probability about 1 \
         in {}, as long as at most {institutions}. If more do, masks hide nothing, and {at_most}: epsilon is \
         {epsilon}, and epsilon_alone is {alone}.",
        factor(epsilon),
        numbers::count((1.0 / bound.delta().value()).round() as u64),
    )
}

/// The factor e^ε of a bound, rounded up, so that what is printed is never below what holds.
fn factor(epsilon: Epsilon) -> String {
    match epsilon.value().exp() {
        factor if factor <= 100.0 => format!("{:.1} (e^{epsilon})", (10.0 * factor).ceil() / 10.0),
        factor if factor <= 1e6 => {
            format!("{} (e^{epsilon})", numbers::count(factor.ceil() as u64))
        }
        _ => format!("e^{epsilon}"),
    }
}

/// The fewest authors of a sum.
fn fewest(masked: &Masked) -> usize {
    let groups = masked.groups().iter();
    let smallest = groups.map(|group| group.authors.len()).min();
    smallest.unwrap_or(usize::from(masked.smallest_sum))
}
