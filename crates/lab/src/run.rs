//! Runs a scenario: first the federation, then the references that it is compared with.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use learn::Study;
use task::data::DataError;

use crate::keep::{self, KeepError};
use crate::participation::{ParticipatingSilos, participation};
use crate::reference::References;
use crate::summary::{self, Summary};
use simulations::Federation;
use simulations::Options;
use simulations::federate;
use simulations::pool::Threads;
use simulations::scenario::Scenario;
use simulations::{RunError, RunRecord};

/// Runs a scenario on the data of its task.
///
/// # Errors
/// [`RunError`]: data, setup, a violated property, or a federation that does not finish.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Summary, RunError> {
    run_study(scenario, &study(scenario, &options)?, options)
}

/// The silos of a scenario's task.
pub(crate) fn study(scenario: &Scenario, options: &Options<'_>) -> Result<Study, RunError> {
    let study = scenario.study(options.data.as_deref());
    study.map_err(|error| match error {
        DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", scenario.file)),
        error => RunError::Data(error),
    })
}

/// Runs a scenario as [`run`] does, and writes what was learned in every round into a folder: final models,
/// contributions and personal parts as safetensors files, losses as tables, and `index.json`, which names
/// them.
///
/// # Errors
/// [`KeepError`]: as for [`run`], or a file that cannot be written.
pub fn run_and_keep(
    scenario: &Scenario,
    options: Options<'_>,
    folder: &Path,
) -> Result<Summary, KeepError> {
    let study = study(scenario, &options)?;
    let options = Options {
        keep_contributions: true,
        ..options
    };
    let play = play(scenario, &study, options)?;
    let silos = &play.participation.study.silos;
    keep::write(folder, scenario, silos, &play.federation, &play.recorded)?;
    Ok(play.summary()?)
}

/// Runs a scenario with the silos of `study` in place of those of its task.
///
/// # Errors
/// [`RunError`]: setup, a violated property, or a federation that does not finish.
pub fn run_study(
    scenario: &Scenario,
    study: &Study,
    options: Options<'_>,
) -> Result<Summary, RunError> {
    play(scenario, study, options)?.summary()
}

/// A federation that has run.
struct Played<'a> {
    scenario: &'a Scenario,
    study: &'a Study,
    references: bool,
    threads: Arc<Threads>,
    participation: ParticipatingSilos,
    federation: Federation,
    recorded: RunRecord,
}

/// Runs the federation of a scenario.
fn play<'a>(
    scenario: &'a Scenario,
    study: &'a Study,
    mut options: Options<'_>,
) -> Result<Played<'a>, RunError> {
    let threads = Threads::new(options.threads);
    let (faults, strategy) = (&scenario.faults, &scenario.strategy);
    let participation = participation(scenario, study)?;
    let federation = Federation::new(scenario, &participation.study, strategy, faults)?;
    let recorded = federate(scenario, &federation, faults, &mut options, &threads)?;
    Ok(Played {
        scenario,
        study,
        references: options.references,
        threads,
        participation,
        federation,
        recorded,
    })
}

impl Played<'_> {
    /// Returns what came out, beside the references that it is compared with.
    fn summary(&self) -> Result<Summary, RunError> {
        let began = Instant::now();
        let references = if self.references {
            References::compute(self.scenario, &self.participation, &self.threads)?
        } else {
            References::default()
        };
        let mut summary = summary::build(
            self.scenario,
            self.study,
            &self.participation,
            &self.federation,
            &self.recorded,
            &references,
            &self.threads,
        )?;
        summary.reference_seconds = began.elapsed().as_secs_f64();
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    use simulations::scenario::Overrides;

    use crate::summary::{AdoptedModel, adopted_models};

    #[test]
    fn equal_outcomes_of_all_members_take_memory_once() {
        let overrides = Overrides {
            rounds: Some(2),
            silos: Some(4),
            ..Overrides::default()
        };
        let scenario = Scenario::load("null").unwrap().with(&overrides).unwrap();
        let study = scenario.study(None).unwrap();
        let federation = Federation::of(&scenario, &study).unwrap();
        for cache in [false, true] {
            let mut options = Options {
                cache,
                ..Options::default()
            };
            let threads = Threads::new(2);
            let recorded = federate(&scenario, &federation, &[], &mut options, &threads).unwrap();
            let adopted = adopted_models(&recorded.notices);
            for round in [1, 2] {
                let of_round: Vec<_> = adopted.iter().filter(|one| one.round == round).collect();
                let [first, others @ ..] = &of_round[..] else {
                    panic!("nobody adopted round {round}")
                };
                assert_eq!(others.len(), 3);
                for other in others {
                    let model = |one: &AdoptedModel| one.state.models[0].document().as_ptr();
                    assert_eq!(model(first), model(other), "round {round}, cache {cache}");
                    // Computed once, the outcome itself is one.
                    assert_eq!(Arc::ptr_eq(&first.state, &other.state), cache);
                }
            }
        }
    }
}
