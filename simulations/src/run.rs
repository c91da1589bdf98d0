//! Runs a scenario: first the federation, then the references that it is compared with.

use std::time::Instant;

use learn::{DataError, Study};
use methods::strategy::{Averaging, Method, StrategyConfig};

use crate::error::RunError;
use crate::federate::federate;
use crate::federation::Federation;
use crate::options::Options;
use crate::participation::participation;
use crate::pool::Threads;
use crate::scenario::Scenario;
use crate::summary::{self, Reference, Summary};

/// Runs a scenario on the data of its task.
///
/// # Errors
/// [`RunError`]: data, setup, a violated property, or a federation that does not finish.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Summary, RunError> {
    let folder = options.data.as_deref();
    let study = scenario.task.study(scenario.silos, folder, scenario.seed);
    let study = study.map_err(|error| match error {
        DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", scenario.file)),
        error => RunError::Data(error),
    })?;
    run_study(scenario, &study, options)
}

/// Runs a scenario with the silos of `study` in place of those of its task.
///
/// # Errors
/// [`RunError`]: setup, a violated property, or a federation that does not finish.
pub fn run_study(
    scenario: &Scenario,
    study: &Study,
    mut options: Options<'_>,
) -> Result<Summary, RunError> {
    let threads = Threads::new(options.threads);
    let (faults, strategy) = (&scenario.faults, &scenario.strategy);
    let participation = participation(scenario, study)?;
    let federation = Federation::new(scenario, &participation.study, strategy, faults)?;
    let recorded = federate(scenario, &federation, faults, &mut options, &threads)?;
    let mut reference = Reference {
        wanted: options.references,
        ..Reference::default()
    };
    let began = Instant::now();
    if options.references {
        options.progress = Box::new(|_| ());
        options.environment = None;
        options.memo = true;
        // One global model for all, without what the strategy's wrappers add to it.
        if !strategy.is_plain_average() {
            let method = Method::FedAvg(Averaging::default());
            let average = StrategyConfig {
                standardise: strategy.standardise,
                ..StrategyConfig::new(method, strategy.training.clone())
            };
            let federation = Federation::new(scenario, &participation.study, &average, &[])?;
            match federate(scenario, &federation, &[], &mut options, &threads) {
                Ok(recorded) => reference.global = summary::final_model(&recorded),
                // What the federation reached is reported all the same.
                Err(error @ RunError::Training { .. }) => {
                    reference.failed =
                        Some(format!("one global model cannot be compared: {error}"));
                }
                Err(error) => return Err(error),
            }
        }
    }
    let mut summary = summary::build(
        scenario,
        study,
        &participation,
        &federation,
        &recorded,
        &reference,
        &threads,
    )?;
    summary.reference_seconds = began.elapsed().as_secs_f64();
    Ok(summary)
}
