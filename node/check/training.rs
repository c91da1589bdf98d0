//! Check that the others wait long enough for what a training takes on this machine.

use methods::learner::LearnError;

use super::Finding;
use crate::equipment::Equipment;
use crate::federation::pace;
use crate::institution::config::Institution;

/// Measures one training of the agreed model on the institution's own rows, or by its program, which is
/// started for it and ended. Nothing is said where there is time enough, and where no training is
/// possible, which is said elsewhere.
pub(super) fn training(institution: &Institution) -> Option<Finding> {
    let start = institution.start().ok()?;
    let equipment = institution.equipment(start.as_ref()).ok()?;
    let found = measured(institution, &equipment);
    if let Some(programs) = &equipment.programs {
        programs.end();
    }
    match found {
        Ok(found) => found,
        Err(error) => Some(
            Finding::note("training", format!("a training failed here: {error}"))
                .remedy("the node would contribute nothing: look at the rows, or at the program"),
        ),
    }
}

fn measured(
    institution: &Institution,
    equipment: &Equipment,
) -> Result<Option<Finding>, LearnError> {
    let agreement = &institution.agreement;
    let epoch = &agreement.epoch;
    let (strategy, learner) = (&agreement.strategy, &*equipment.equipped);
    let state = strategy.initial_state(learner, agreement.seed);
    // A first round that agrees on a scale trains nothing.
    let round = agreement.strategy_config.first_training();
    let task = strategy.plan(&state, round).task;
    let found = pace(learner, &task, agreement.seed, epoch.patience())?;
    let wrong = found.and_then(|found| found.against(epoch));
    Ok(wrong.map(|(text, remedy)| Finding::note("training", text).remedy(remedy)))
}
