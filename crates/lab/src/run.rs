//! Runs a scenario: first the federation, then the references that it is compared with.

use std::time::Instant;

use learn::Study;
use task::data::DataError;

use crate::participation::participation;
use crate::reference::References;
use crate::summary::{self, Summary};
use simulations::Federation;
use simulations::Options;
use simulations::RunError;
use simulations::federate;
use simulations::pool::Threads;
use simulations::scenario::Scenario;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::Arc;

    use simulations::scenario::Overrides;

    use crate::summary::{AdoptedModel, adopted_models};

    #[test]
    fn equal_outcomes_of_all_members_take_memory_once_however_often_they_were_computed() {
        let overrides = Overrides {
            rounds: Some(2),
            silos: Some(4),
            ..Overrides::default()
        };
        let scenario = Scenario::load("null").unwrap().with(&overrides).unwrap();
        let study = scenario.study(None).unwrap();
        let federation = Federation::of(&scenario, &study).unwrap();
        for memo in [false, true] {
            let mut options = Options {
                memo,
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
                    assert_eq!(model(first), model(other), "round {round}, memo {memo}");
                    // Computed once, the outcome itself is one.
                    assert_eq!(Arc::ptr_eq(&first.state, &other.state), memo);
                }
            }
        }
    }
}
