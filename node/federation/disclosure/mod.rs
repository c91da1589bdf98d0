//! What leaves an institution under an agreement, who sees it, and what they could learn from it: one
//! page for its owner.

mod brief;
mod masked;
mod noised;
mod officer;
mod together;

#[cfg(test)]
mod tests;

pub use brief::brief;
pub use officer::officer;

use agreement::{Agreement, StatusFor};
use protocol::charter::Charter;
use task::TaskConfig;

use super::start::{FederationStart, first_under};
use crate::policy::LedgerRoom;
use crate::spending::{ContributionHistory, Spending};
use formatting::numbers;

/// What is known of an institution's own side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OwnSide {
    /// Rows that models are trained on.
    pub training_rows: Option<usize>,
    /// What it contributed so far, and what is to come; `None`: nothing is known but the agreement.
    pub spending: Option<Spending>,
    /// The room that its ledger has for differentially private rounds.
    pub room: Option<LedgerRoom>,
}

impl OwnSide {
    /// Of an institution of a first agreement, which has contributed nothing yet.
    pub fn of_founder(agreement: &Agreement) -> Self {
        let history = ContributionHistory::none(&agreement.epoch);
        Self {
            spending: Some(Spending::of(agreement, &history, None)),
            ..Self::default()
        }
    }
}

/// The page: headings end in a colon, other lines are indented.
pub fn disclosure(agreement: &Agreement, own: &OwnSide) -> Vec<String> {
    let spending = own.spending.clone();
    let spending = spending.unwrap_or_else(|| Spending::under(agreement));
    let charter = &agreement.epoch.charter;
    let strategy = &agreement.strategy_config;
    let first = first_under(agreement).ok();
    let mut lines = vec!["What stays in this institution:".to_owned()];
    lines
        .push("  every row and every file of data, the names and codes that they have here".into());
    lines.push("  the secret key, and the results on rows held out here".into());
    if !strategy.personal.is_empty() {
        lines.push(format!(
            "  the personal parts of the model: {}",
            strategy.personal.join(", ")
        ));
    }
    if !strategy.trained.is_empty() {
        lines.push(format!(
            "  all of the model except what is trained: {}",
            strategy.trained.join(", ")
        ));
    }
    lines.push(String::new());
    lines.push("What leaves it, and who sees it:".into());
    lines.push(
        "  the agreement itself: names of columns, levels and classes, as listed above. They come from \
         whoever drafted it, and everybody who sees it or an invitation reads them"
            .into(),
    );
    lines.extend(leaves(agreement, charter, first.as_ref()));
    lines.push(String::new());
    lines.push("What others could learn from it:".into());
    lines.extend(learned(
        agreement,
        charter,
        first.as_ref(),
        (own.training_rows, &spending),
    ));
    if charter.privacy.is_noised() {
        lines.extend([String::new(), "When it stops:".into()]);
        lines.extend(noised::stops(agreement, own.room));
        lines.extend([String::new(), "Whether it is worth it:".into()]);
        lines.extend(noised::worth(agreement));
    }
    lines.extend([String::new(), "For the data protection officer:".into()]);
    let paragraph = officer(agreement, &spending).into_iter();
    lines.extend(paragraph.map(|said| format!("  {said}")));
    lines
}

/// Who sees an entry of a round.
fn seen(charter: &Charter) -> &'static str {
    if charter.shows_names() {
        "every member, with this institution's name"
    } else {
        "every member, without a name; the lead of the round knows whose it is"
    }
}

fn leaves(
    agreement: &Agreement,
    charter: &Charter,
    first: Option<&FederationStart>,
) -> Vec<String> {
    if let Some(masked) = charter.privacy.masked() {
        let mut lines = match masked.noise() {
            Some(noise) => noised::leaves(agreement, (masked, noise), first),
            None => masked::leaves(agreement, masked, first),
        };
        lines.extend(always(agreement));
        return lines;
    }
    let mut lines = Vec::new();
    let scale = agreement.strategy_config.standardise;
    if scale {
        lines.push(format!(
            "  in the first round, the number of training rows, and sum and squared deviations of every \
             column{}: {}",
            match &agreement.task {
                TaskConfig::Table(_) => " and of the number to predict",
                _ => "",
            },
            seen(charter)
        ));
    }
    let rounds = charter.rounds - u64::from(scale);
    let size = first.map_or(charter.blob_limit, |first| first.largest);
    lines.push(format!(
        "  in each of {}, a model trained on its rows, {}{}: {}",
        numbers::plural(rounds as usize, "round"),
        match first {
            Some(first) => format!("{} numbers, ", numbers::count(first.parameters as u64)),
            None => String::new(),
        },
        numbers::bytes(size),
        seen(charter)
    ));
    if let Some(first) = first.filter(|first| first.largest > first.model) {
        lines.push(format!(
            "  with it, in some rounds, what the strategy {} adds, up to {}: seen by the same",
            agreement.strategy_config.name(),
            numbers::bytes(first.largest - first.model)
        ));
    }
    if first.is_some_and(|first| first.plan.weights) {
        lines.push(format!(
            "  with the model, the number of rows that it was trained on: {}",
            seen(charter)
        ));
    }
    if let Some(stop) = agreement.strategy_config.stop {
        lines.push(format!(
            "  with the model, the number of rows kept for validation, and the {} of the model before over \
             them: {}",
            stop.measure.name(),
            seen(charter)
        ));
    }
    lines.push("  with the model, its training loss: the lead of the round".into());
    if first.is_some_and(|first| first.plan.cross_evaluate) {
        lines.push(
            "  in rounds that compare models, the loss of every member's model on its rows, one number \
             for each: every member, beside this institution's local model, and the lead by name"
                .into(),
        );
    }
    lines.extend(always(agreement));
    lines
}

/// What leaves an institution whatever it learns.
fn always(agreement: &Agreement) -> Vec<String> {
    let mut lines = Vec::new();
    lines.push(
        "  signed votes and the times at which its node runs, its name, key and address: every member"
            .into(),
    );
    if agreement.status == StatusFor::Members {
        lines.push(
            "  the state of its node (round and activity, connections, version, start, free disk space): every \
             member that asks"
                .into(),
        );
    }
    lines.push(
        "  to machines that are no members: that encrypted connections exist, and between which \
         addresses"
            .into(),
    );
    lines
}

/// What a model of so many numbers can hold of so many rows.
fn memory(numbers: usize, rows: usize) -> String {
    if numbers >= rows {
        format!(
            "  more than that is possible here: the model has {numbers} numbers and is trained on {rows} rows, \
             so it can hold single rows"
        )
    } else {
        format!(
            "  the model has {numbers} numbers and is trained on {rows} rows: it cannot hold all of them, but \
             rare values and outliers leave traces"
        )
    }
}

fn learned(
    agreement: &Agreement,
    charter: &Charter,
    first: Option<&FederationStart>,
    (rows, spending): (Option<usize>, &Spending),
) -> Vec<String> {
    if let Some(masked) = charter.privacy.masked() {
        return match masked.noise() {
            Some(noise) => noised::learned(agreement, (masked, noise), spending),
            None => masked::learned(agreement, masked),
        };
    }
    let n = agreement.epoch.roster.len() as u64;
    let mut lines = vec![
        "  from a model: properties of the rows as a whole, and with some probability whether a person \
         whose data they know is among them"
            .to_owned(),
    ];
    if let (Some(first), Some(rows)) = (first, rows) {
        lines.push(memory(first.parameters, rows));
    }
    if agreement.strategy_config.standardise {
        lines.push(
            "  from sums and squared deviations: mean and spread of every column of these rows, exactly"
                .into(),
        );
    }
    if first.is_some_and(|first| first.plan.cross_evaluate) {
        lines.push(
            "  from losses: which institutions have similar patients, customers or stations".into(),
        );
    }
    if charter.shows_names() {
        lines.push(
            "  every member knows which model is whose, in every round: this strategy keeps state for \
             each"
                .into(),
        )
    } else {
        lines.push(format!(
            "  models are sent without names, but may still be recognised: each of the {n} members leads about one \
             round in {n} and knows the authors then, and models of one institution resemble each other from round \
             to round"
        ))
    }
    lines.push(
        "  nothing is added to hide single rows (no noise, no encrypted sums): whoever receives a model \
         sees all of it"
            .into(),
    );
    lines.push(format!(
        "  what was sent cannot be called back: members keep models of {} for others, and may keep all \
         for good",
        numbers::plural(charter.keep_rounds as usize, "round")
    ));
    lines
}
