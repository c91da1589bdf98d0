//! Settings that exclude a model that is solved at once from one differentially private sum.

use methods::strategy::Method;
use task::loss::RegressionLoss;
use task::{ModelConfig, TaskConfig};

use super::fault;
use crate::file::PrivacyTable;
use crate::privacy::noise::CLASSES_WITHIN;
use crate::privacy::refusals::{KeyFault, MaskedTask};

/// The keys that do not go with it.
pub(super) fn all(of: &MaskedTask<'_>, table: &PrivacyTable) -> impl Iterator<Item = KeyFault> {
    [
        of_task(of.task, table),
        of_strategy(of),
        of_rounds(of.rounds),
    ]
    .into_iter()
    .flatten()
}

fn of_task(task: &TaskConfig, table: &PrivacyTable) -> Option<KeyFault> {
    let TaskConfig::Table(task) = task else {
        // Refused with noise in any case.
        return None;
    };
    match &task.model {
        ModelConfig::Linear {
            loss: RegressionLoss::Squared,
        } => of_numbers(table),
        ModelConfig::Logistic => of_classes(table),
        // Refused with noise in any case, by its target.
        ModelConfig::Cox => None,
        ModelConfig::Linear { .. } => fault(
            "task.table.model",
            "must have `loss = \"squared\"` where the model is solved at once, because it is solved by least \
             squares: or choose `mechanism = \"gradients\"`",
        ),
        ModelConfig::Mlp { .. } | ModelConfig::Network(_) => fault(
            "task.table.model",
            "cannot be solved at once: sums of products are all that a linear model needs, but not enough for \
             another one. \
             Choose \"logistic\" or `linear = { loss = \"squared\" }`, or `mechanism = \"gradients\"`",
        ),
    }
}

fn of_numbers(table: &PrivacyTable) -> Option<KeyFault> {
    table.targets_within.is_none().then(|| {
        let what = "is missing: write the size that no target exceeds, such as `max-target = 1.0`. Choose it by \
                    what is known of the target in general, not by own rows";
        ("privacy.max-target", what.into())
    })
}

fn of_classes(table: &PrivacyTable) -> Option<KeyFault> {
    let other = table
        .targets_within
        .is_some_and(|within| within != CLASSES_WITHIN);
    other.then(|| {
        let what = "is for targets that are numbers: leave it out with the model \"logistic\", whose classes count as \
                    targets of −2 and 2";
        ("privacy.max-target", what.into())
    })
}

fn of_strategy(of: &MaskedTask<'_>) -> Option<KeyFault> {
    let strategy = of.strategy;
    let plain = matches!(&strategy.method, Method::FedAvg(options) if options.momentum == 0.0);
    (!plain).then(|| {
        let what = format!(
            "is {:?}, and where the model is solved at once there are no steps that it could change: choose fedavg \
             without `momentum`, or `mechanism = \"gradients\"`",
            strategy.name()
        );
        ("strategy.name", what)
    })
}

fn of_rounds(rounds: u64) -> Option<KeyFault> {
    (rounds != 1).then(|| {
        let what = format!(
            "is {rounds}, and must be 1 where the model is solved at once: one sum is all that it needs, and a \
             second one would cost as much again. Choose `mechanism = \"gradients\"` for more"
        );
        ("rounds", what)
    })
}

#[cfg(test)]
mod tests;
