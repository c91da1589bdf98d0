//! Runs a scenario: first the federation, then the references that it is compared with.

use std::time::Instant;

use learn::{DataError, Study};

use crate::error::RunError;
use crate::federate::federate;
use crate::federation::Federation;
use crate::options::Options;
use crate::participation::participation;
use crate::pool::Threads;
use crate::reference::References;
use crate::scenario::Scenario;
use crate::summary::{self, Summary};

/// Runs a scenario on the data of its task.
///
/// # Errors
/// [`RunError`]: data, setup, a violated property, or a federation that does not finish.
pub fn run(scenario: &Scenario, options: Options<'_>) -> Result<Summary, RunError> {
    let folder = options.data.as_deref();
    let study = scenario.study(folder);
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
    let began = Instant::now();
    let references = match options.references {
        true => References::compute(scenario, &participation, &threads)?,
        false => References::default(),
    };
    let mut summary = summary::build(
        scenario,
        study,
        &participation,
        &federation,
        &recorded,
        &references,
        &threads,
    )?;
    summary.reference_seconds = began.elapsed().as_secs_f64();
    Ok(summary)
}
