//! The paragraph for a data protection officer, with the numbers of a federation.

use agreement::Agreement;
use formatting::numbers;
use privacy::accountant::{Bound, Epsilon};
use protocol::parameters::{Noise, Unit};
use protocol::privacy::Masked;

use super::together::{delta, does_not_hold, ledger_numbers, why_no_bound};
use super::told;
use crate::spending::Spending;

/// The paragraph, a few sentences each.
pub fn officer(agreement: &Agreement, spending: &Spending) -> Vec<String> {
    let mut said = told(&agreement.epoch.protocol.privacy).officer(agreement, spending);
    said.push(
        "This is not a legal finding of anonymity. It does not cover what the results disclose about patients like \
         ours in general, nor our own copies and staff."
            .into(),
    );
    said
}

/// Without noise.
pub(super) const NO_BOUND: &str = "There is no noise, and so no bound on what all published results together tell about one \
                        patient";

/// Returns where only sums are opened; `bound` is what is said of all that is published.
pub(super) fn of_sums(masked: &Masked, bound: Vec<String>) -> Vec<String> {
    let opened = format!(
        "What leaves us in a round looks like random numbers to everybody. Only the sum over at least {} \
         institutions is opened, and every member checks that before it helps.",
        fewest(masked)
    );
    let seen = "Who takes part, when, and with what weight, is known to all members.";
    let said = [opened].into_iter().chain(bound);
    said.chain([seen.to_owned()]).collect()
}

/// Returns what noise bounds.
pub(super) fn with_noise(
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

/// So many members or institutions that try to learn more than the sums.
pub(super) fn colluding(colluders: u16, one: &str) -> String {
    match colluders {
        1 => format!("1 {one} is curious and no two {one}s collude"),
        some => format!("{some} {one}s collude"),
    }
}

/// Returns what both numbers mean, in a sentence that begins so.
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
