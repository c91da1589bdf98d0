//! Refusals of an experiment: programs that cannot carry out a strategy, before the first run, and wrong settings.

use std::sync::Arc;

use learn::Study;
use methods::strategy::{EquipError, OwnRadius, build, equip};
use task::data::DataError;

use super::error::ExperimentError;
use super::experiment::{Experiment, ExperimentEntry};
use super::file::Variant;
use crate::participation::participation;
use simulations::RunError;
use simulations::scenario::Scenario;

impl Experiment {
    /// Refuses a strategy that needs more than a silo's program can do. The silos of a scenario come from `study`.
    ///
    /// # Errors
    /// [`ExperimentError::Settings`]: the strategy, and what the program lacks. Whatever a simulation refuses before
    /// it asks that.
    pub(super) fn check_programs(
        &self,
        study: &dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    ) -> Result<(), ExperimentError> {
        for variant in &self.variants {
            for entry in self.entries.iter().filter(|entry| !entry.is_reference()) {
                let scenario = self.scenario(variant, entry, &self.points(entry)[0], 0)?;
                if scenario.learner.is_none() {
                    continue;
                }
                let study = study(&scenario).map_err(|error| self.of_data(error))?;
                let members = participation(&scenario, &study)?.study.silos;
                // Options that do not go together are the strategy's failure, not the program's.
                let Ok(strategy) = build(&scenario.strategy, members.len()) else {
                    continue;
                };
                let radius = OwnRadius::from(scenario.protocol.radius.clone());
                for silo in members {
                    if let Err(EquipError::Missing(lack)) = equip(&*strategy, silo.learner, &radius)
                    {
                        return Err(self.refused(variant, entry, lack.to_string()));
                    }
                }
            }
        }
        Ok(())
    }

    /// The error of settings of a strategy.
    pub(super) fn refused(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        what: String,
    ) -> ExperimentError {
        let of = if variant.name.is_empty() {
            format!("strategy {:?}", entry.label)
        } else {
            format!("strategy {:?}, variant {:?}", entry.label, variant.name)
        };
        ExperimentError::Settings {
            file: self.file.clone(),
            of,
            what,
        }
    }

    /// The error of data that no run can read.
    pub(super) fn of_data(&self, error: DataError) -> RunError {
        match error {
            DataError::Config(what) => RunError::Setup(format!("{}, task: {what}", self.file)),
            error => RunError::Data(error),
        }
    }
}
