//! What others learn of what an institution contributes, in a few sentences: for the status of its node, and
//! for the history of a federation.

use agreement::Agreement;
use formatting::numbers::plural;
use protocol::charter::{Noise, Release};
use protocol::privacy::Masked;

use super::masked::{EXPERIMENTAL, names};
use super::together::{by_ledger, together};
use crate::spending::Spending;

/// The sentences, without full stops; none for rounds in clear.
pub fn brief(agreement: &Agreement, spending: &Spending) -> Vec<String> {
    let Some(masked) = agreement.epoch.charter.privacy.masked() else {
        return Vec::new();
    };
    let mut said = match masked.noise() {
        Some(noise) => with_noise(agreement, (masked, noise), spending),
        None => without_noise(masked),
    };
    said.push(EXPERIMENTAL.into());
    said
}

fn with_noise(
    agreement: &Agreement,
    (masked, noise): (&Masked, &Noise),
    spending: &Spending,
) -> Vec<String> {
    let fewest = plural(usize::from(masked.smallest_sum), "institution");
    let (sum, go_on) = match noise.release {
        Release::Steps => ("one sum a round", "rounds continue"),
        Release::Once { .. } => ("one sum", "the round continues"),
    };
    let learned = format!(
        "every member learns who takes part, and when, and {sum}, with noise, of at least {fewest}"
    );
    let down = format!(
        "if one institution is down, {go_on} without it, as long as at least {fewest} are ready"
    );
    let bound = together(agreement, noise, spending).into_iter();
    let bound = bound.chain(by_ledger(spending));
    [learned].into_iter().chain(bound).chain([down]).collect()
}

fn without_noise(masked: &Masked) -> Vec<String> {
    let groups = masked.groups();
    let sums = groups.iter().map(|group| {
        format!(
            "every member learns one sum per round: that of {}",
            names(group)
        )
    });
    let mut said = vec![
        "every member learns who takes part, and when, but no single institution's model"
            .to_owned(),
    ];
    said.extend(sums);
    said.push(
        "sums hide the updates of institutions that are always there, and give no bound on what is learned about \
         a patient"
            .into(),
    );
    said.extend(groups.iter().map(|group| {
        format!(
            "if one institution of {} is down, their sum is not opened, and this group waits",
            names(group)
        )
    }));
    said
}
