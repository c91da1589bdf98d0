//! What secure-aggregation rounds with noise cannot do, because it breaks the bound that the noise gives: the keys of an
//! agreement that are refused with them, why, and what to choose in their place.

use methods::learner::{Optimiser, Training};
use methods::strategy::{NoisedUse, StrategyConfig};
use protocol::parameters::{Noise, Release, Unit};
use task::{ModelConfig, NoiseFault, TableTask, TaskConfig};

use super::refusals::{KeyFault, MaskedTask, present};
use crate::file::PrivacyTable;

mod once;
pub(super) mod split;

/// The keys that do not go with noise.
pub(super) fn all(of: &MaskedTask<'_>, noise: &Noise, table: &PrivacyTable) -> Vec<KeyFault> {
    let solved = match noise.release {
        Release::Steps => false,
        Release::Once { .. } => true,
    };
    let mut faults = Vec::new();
    if solved {
        faults.extend(once::all(of, table));
    }
    faults.extend(of_task(of.task, &noise.unit));
    faults.extend(of_strategy(of.strategy));
    if !solved {
        faults.extend(of_training(&of.strategy.training));
    }
    faults
}

fn fault(path: &'static str, what: &str) -> Option<KeyFault> {
    Some((path, what.to_owned()))
}

fn of_task(task: &TaskConfig, unit: &Unit) -> Vec<KeyFault> {
    let other = match task {
        TaskConfig::Table(task) => return of_table(task, unit),
        TaskConfig::External(_) => fault(
            "task.external",
            "cannot be used where sums are noised: each row's gradient has to be clipped by itself, and nobody \
             can check that a program of one's own does so. Choose a model of `[task.table]`, or \
             `mode = \"secure-aggregation\"`",
        ),
        TaskConfig::Digits8Bench | TaskConfig::Constant { .. } => fault(
            "task",
            "has no rows whose gradients could be clipped: choose a model of `[task.table]`, or \
             `mode = \"secure-aggregation\"`",
        ),
    };
    other.into_iter().collect()
}

fn of_table(task: &TableTask, unit: &Unit) -> Vec<KeyFault> {
    // Asked of the task by which rows will be read, and not of what somebody wrote of it.
    let rows = task.noise_faults().into_iter();
    let mut faults: Vec<_> = rows.map(|NoiseFault { key, what }| (key, what)).collect();
    if let ModelConfig::Network(_) = &task.model {
        faults.extend(fault(
            "task.table.model",
            "is a network, whose rows have no gradients of their own in this program, and batch \
             normalisation would mix them: choose \"logistic\", or a table `linear` or `mlp`",
        ));
    }
    faults.extend(of_unit(task, unit));
    faults
}

/// Returns whether rows of one person are known to belong together.
fn of_unit(task: &TableTask, unit: &Unit) -> Option<KeyFault> {
    let Unit::Person(column) = unit else {
        return None;
    };
    let group = task.split.group.as_ref();
    (group != Some(column)).then(|| {
        let what = format!(
            "names the column {column:?}, and the rows of a person are told apart by `group` of \
             `[task.table.split]`, which must name the same one"
        );
        ("privacy.privacy-unit", what)
    })
}

/// The strategies of differentially private rounds.
pub(super) const CHOOSE: &str = "choose fedavg for plain steps or, with its `momentum`, for steps with momentum, fedadam, \
                      fedyogi or fedadagrad for adaptive ones, or `mode = \"secure-aggregation\"`";

fn of_strategy(strategy: &StrategyConfig) -> Vec<KeyFault> {
    let name = strategy.name();
    let mut faults = Vec::new();
    if let Some(why) = unfit(strategy.method.noised()) {
        let what =
            format!("is {name:?}, which cannot be used where sums are noised: {why}; {CHOOSE}");
        faults.push(("strategy.name", what));
    }
    faults.extend(present([
        (
            "strategy.personal",
            !strategy.personal.is_empty(),
            "must be left out where sums are noised: layers that saw own rows without noise would show them in \
             the gradients of the others",
        ),
        (
            "strategy.trained",
            !strategy.trained.is_empty(),
            "must be left out where sums are noised: noise and clipping are for gradients of the whole model",
        ),
    ]));
    faults
}

/// Rounds open gradients: a silo takes no steps of its own.
fn of_training(training: &Training) -> Vec<KeyFault> {
    const TRAINING: &str = "strategy.training";
    let (sgd, keeps) = match &training.optimiser {
        Optimiser::Sgd {
            momentum,
            weight_decay,
            ..
        } => (true, (*momentum, *weight_decay) != (0.0, 0.0)),
        _ => (false, false),
    };
    present([
        (
            TRAINING,
            (training.epochs, training.batch) != (1, 0),
            "must have `epochs = 1` and `batch = 0` where sums are noised: a round opens one gradient of all \
             rows, and a second step on own rows would use them again without noise",
        ),
        (
            TRAINING,
            !sgd,
            "must have the optimiser \"sgd\" where sums are noised: silos send gradients and keep nothing \
             between rounds. For adaptive steps choose the strategy fedadam",
        ),
        (
            TRAINING,
            keeps,
            "must have neither `momentum` nor `weight-decay` where sums are noised: silos send gradients and \
             keep nothing between rounds. The global model may have momentum: write `momentum` in `[strategy]`, \
             with the strategy fedavg",
        ),
    ])
}

/// Why a method cannot take part in differentially private rounds.
fn unfit(of: NoisedUse) -> Option<&'static str> {
    match of {
        NoisedUse::Steps => None,
        NoisedUse::NoTerm => {
            Some("its proximal term is zero in the first step, and there is only one")
        }
        NoisedUse::OwnTraining => {
            Some("silos train layers or models of their own on rows without noise")
        }
        NoisedUse::EvenSteps => {
            Some("silos take one step each, so there are no numbers of steps to even out")
        }
        NoisedUse::KeptNumbers => {
            Some("silos keep numbers from rounds without noise, or send more than a gradient")
        }
        NoisedUse::NoBound => Some(
            "its sums have no bound for one row, because they depend on fits of all rows of a silo",
        ),
        NoisedUse::NoSum => Some("nothing is added up"),
        NoisedUse::SingleSilos => Some("it needs models, losses or scores of single silos"),
    }
}

#[cfg(test)]
mod tests;
