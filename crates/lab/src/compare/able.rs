//! Refusals of an experiment: what silos cannot carry out, before the first run, and wrong settings.

use std::sync::Arc;

use learn::Study;
use methods::strategy::{EquipError, OwnRadius, build, equip};
use task::data::DataError;

use super::entry::ExperimentEntry;
use super::error::ExperimentError;
use super::experiment::Experiment;
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
                if scenario.learner.is_some()
                    && let Some(EquipError::Missing(lack)) = self.lack(&scenario, study)?
                {
                    return Err(self.refused(variant, entry, lack.to_string()));
                }
            }
        }
        Ok(())
    }

    /// Leaves out strategies that the models of tables do not allow, but for the first. The silos come from `study`.
    ///
    /// # Errors
    /// As [`check_programs`](Self::check_programs).
    pub(super) fn leave_out_unable(
        &mut self,
        study: &dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    ) -> Result<(), ExperimentError> {
        let mut unable = Vec::new();
        let variant = &self.variants[0];
        let learned = self.entries.iter().filter(|entry| !entry.is_reference());
        for entry in learned.skip(1) {
            let scenario = self.scenario(variant, entry, &self.points(entry)[0], 0)?;
            if scenario.learner.is_none()
                && let Some(lack) = self.lack(&scenario, study)?
            {
                unable.push((entry.label.clone(), lack.to_string()));
            }
        }
        let is_unable = |label: &str| unable.iter().any(|(one, _)| one == label);
        self.entries.retain(|entry| !is_unable(&entry.label));
        let sentence = |(label, lack): &(String, String)| format!("{label} is left out: {lack}");
        self.left_out.extend(unable.iter().map(sentence));
        Ok(())
    }

    /// Refuses a federation of one silo, which has nobody to learn with.
    ///
    /// # Errors
    /// [`ExperimentError::Experiment`], and as [`check_programs`](Self::check_programs).
    pub(super) fn check_members(
        &self,
        study: &dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    ) -> Result<(), ExperimentError> {
        let entry = &self.entries[0];
        let scenario = self.scenario(&self.variants[0], entry, &self.points(entry)[0], 0)?;
        let study = study(&scenario).map_err(|error| self.of_data(error))?;
        match participation(&scenario, &study)?.members.len() {
            0 | 1 => {
                Err(self.fault("one silo has nobody to learn with: advice is for two or more"))
            }
            _ => Ok(()),
        }
    }

    /// Returns what the first silo that cannot carry out the strategy of a scenario lacks.
    fn lack(
        &self,
        scenario: &Scenario,
        study: &dyn Fn(&Scenario) -> Result<Arc<Study>, DataError>,
    ) -> Result<Option<EquipError>, ExperimentError> {
        // Options that do not go together are the strategy's failure, not the silo's.
        let study = study(scenario).map_err(|error| self.of_data(error))?;
        let members = participation(scenario, &study)?.study.silos;
        let Ok(strategy) = build(&scenario.strategy, members.len()) else {
            return Ok(None);
        };
        let radius = OwnRadius::from(scenario.protocol.radius.clone());
        let mut each = members.into_iter();
        Ok(each.find_map(|silo| equip(&*strategy, silo.learner, &radius).err()))
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
