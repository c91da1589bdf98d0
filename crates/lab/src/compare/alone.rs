//! The models that silos make alone. When a silo chooses what it serves, it compares the strategy's model
//! with these. They are the same for all strategies with the same rows and seed, and take many
//! trainings, so that all strategies share them.

use std::sync::Arc;

use learn::{RowCounts, Study, StudySilo};
use methods::Learner;
use methods::serving::{Effort, LocalModels};

use super::kept::Once;
use super::measured_model::MeasuredModel;
use super::trial::{alone, start};
use crate::participation::participation;
use methods::serving::Alone;
use simulations::RunError;
use simulations::scenario::Scenario;

/// Models that a silo makes alone.
pub(super) struct OwnModels {
    /// The best model, and what was learned about it in cross-validation.
    pub(super) local: LocalModels,
    /// The best model, measured.
    pub(super) measured: MeasuredModel,
}

/// One silo: how it trains alone, and what came of it.
struct SiloAlone {
    learner: Arc<dyn Learner>,
    rows: RowCounts,
    alone: Alone,
    models: Once<Option<OwnModels>>,
}

/// Models that the silos of a study make alone, members first.
pub(super) struct AllAlone {
    folds: usize,
    effort: Effort,
    slots: Vec<SiloAlone>,
}

impl AllAlone {
    /// Prepares it for the silos of this scenario; nothing is trained yet. The training is that of the
    /// scenario's strategy, which is searched around.
    ///
    /// # Errors
    /// [`RunError`]: the silos cannot agree on a scale.
    pub(super) fn new(scenario: &Scenario, study: &Study) -> Result<Self, RunError> {
        let participation = participation(scenario, study)?;
        let start = start(scenario, &participation)?;
        let (members, others) = (&participation.members, &participation.others);
        let places = members.iter().chain(others).enumerate();
        let slot = |(place, &at): (usize, &usize)| {
            let silo: &StudySilo = &study.silos[at];
            SiloAlone {
                learner: silo.learner.clone(),
                rows: silo.rows,
                alone: alone(scenario, start.clone(), place, scenario.rounds),
                models: Once::default(),
            }
        };
        let slots: Vec<SiloAlone> = places.map(slot).collect();
        let work = slots[..members.len()].iter();
        let work = work.map(|slot| Effort::work(&*slot.learner, &slot.alone));
        Ok(Self {
            folds: scenario.serve.folds,
            effort: Effort::within(work.sum()),
            slots,
        })
    }

    /// The models of every silo, `None` where it has no rows to train on or to be measured on, or cannot
    /// be trained. Those that another thread is making are asked for last.
    pub(super) fn all(&self) -> Vec<Arc<Option<OwnModels>>> {
        for slot in &self.slots {
            let _ = slot.models.try_get(|| self.make(slot));
        }
        let wait = |slot| {
            let slot: &SiloAlone = slot;
            let Ok(made) = slot.models.get(|| self.make(slot));
            made
        };
        self.slots.iter().map(wait).collect()
    }

    /// Those of the silos with these names whose local model could not be tuned, because their rows, or persons,
    /// are too few to divide, or not here: it is trained as the federation trains, or there is none. A silo that
    /// has nothing to be measured on is not among them.
    pub(super) fn untuned(&self, names: &[String]) -> Vec<String> {
        let all = names.iter().zip(&self.slots).zip(self.all());
        let untuned = all.filter(|((_, slot), own)| {
            let tuned = own
                .as_ref()
                .as_ref()
                .and_then(|own| own.local.tuned.as_ref());
            slot.rows.test > 0 && tuned.is_none()
        });
        untuned.map(|((name, _), _)| name.clone()).collect()
    }

    fn make(&self, slot: &SiloAlone) -> Result<Option<OwnModels>, std::convert::Infallible> {
        if slot.rows.train == 0 || slot.rows.test == 0 {
            return Ok(None);
        }
        let local = LocalModels::tune(&*slot.learner, &slot.alone, self.folds, self.effort);
        Ok(local.ok().map(|local| OwnModels {
            measured: MeasuredModel::of(slot.learner.clone(), local.model.clone()),
            local,
        }))
    }
}
