//! The federation with noise, beside each silo alone and the federation without noise.
//!
//! With noise nothing is chosen by the rows: trying settings on them is not counted by any bound. So a
//! federation with noise has the settings of its scenario, or those that [`RELEASES`] gives to all, and its
//! result is that of the last round.

mod advice;
mod imitation;
mod release;

pub use advice::{
    AdviceRows, NeededTimes, NoiseAdvice, ReleaseAdvice, SEEDS, TIMES, WhatChanges, advise_noise,
    noise_choices,
};

use methods::serving::Adaptation;
use task::{Source, TaskConfig};
use toml::{Table, Value};

use self::release::{RELEASES, ReleaseSettings};
use super::entry::{ExperimentEntry, OWN};
use super::error::ExperimentError;
use super::experiment::Experiment;
use super::file::RunSettings;

/// Label of the federation without noise.
pub(super) const WITHOUT: &str = "without noise";

impl Experiment {
    /// Adds each silo alone, and the federation with noise at these ε. A scenario's own strategy is the
    /// federation without noise.
    ///
    /// # Errors
    /// [`ExperimentError::Experiment`]: a model whose settings with noise the scenario has to say itself.
    pub(super) fn add_noise(
        &mut self,
        epsilons: &[f64],
        of_scenario: bool,
    ) -> Result<(), ExperimentError> {
        let agreed = self.take_noise();
        self.hold_out_by_unit();
        let own = self.entries.first().cloned();
        if of_scenario {
            // The time is better spent on seeds.
            self.served = false;
            for entry in &mut self.entries {
                entry.label = WITHOUT.into();
            }
        }
        let mut strategy = Table::new();
        strategy.insert("name".into(), OWN.into());
        let alone = ExperimentEntry::plain(OWN, strategy);
        self.entries.insert(0, alone);
        for &epsilon in epsilons {
            let releases: Vec<_> = match (&agreed, &own) {
                (Some(agreed), Some(own)) => vec![as_agreed(agreed, own, epsilon)],
                _ => {
                    self.known_model()?;
                    let releases = RELEASES.iter();
                    releases.map(|release| release.entry(epsilon)).collect()
                }
            };
            for release in releases {
                let adapted = Adaptation::ALL.map(|how| adapted(&release, how));
                self.entries.push(release);
                self.entries.extend(adapted);
            }
        }
        Ok(())
    }

    /// Returns whether its rows are those of files or of a program, which may be an institution's own.
    pub fn reads_own_rows(&self) -> bool {
        let (variant, entry) = (&self.variants[0], &self.entries[0]);
        let scenario = self.scenario(variant, entry, &RunSettings::new(), 0);
        scenario.is_ok_and(|scenario| match &scenario.task {
            TaskConfig::Table(task) => matches!(task.data, Some(Source::Rows(_))),
            task => matches!(task, TaskConfig::External(_)),
        })
    }

    /// Takes what the scenario says of privacy out of it; gives it if it asks for noise.
    fn take_noise(&mut self) -> Option<Table> {
        let Some(Value::Table(privacy)) = self.scenario.remove("privacy") else {
            return None;
        };
        let mode = privacy.get("mode").and_then(Value::as_str);
        (mode == Some(release::MODE)).then_some(privacy)
    }

    /// Holds out rows in all federations as those with noise have to, so that all are measured on the same.
    fn hold_out_by_unit(&mut self) {
        let task = self.scenario.get_mut("task");
        let table = task.and_then(|task| task.get_mut("table")?.as_table_mut());
        let split = table.map(|table| table.entry("split").or_insert(Table::new().into()));
        if let Some(Value::Table(split)) = split
            && !split.contains_key("time")
        {
            split.insert("keyed".into(), true.into());
        }
    }

    /// Returns whether there are settings for the model of the scenario.
    fn known_model(&self) -> Result<(), ExperimentError> {
        let task = self.scenario.get("task").and_then(|task| task.get("table"));
        let model = task.and_then(|table| table.get("model"));
        if model.and_then(Value::as_str) == Some(release::MODEL) {
            return Ok(());
        }
        Err(self.fault(format!(
            "`--epsilon`: expected `model = \"{model}\"` of [task.table], for which there are settings with noise. \
             For another model write a table [privacy] with `mode = \"{mode}\"`, `epsilon` and `clipping-norm`: rounds and \
             training are then those of the scenario",
            model = release::MODEL,
            mode = release::MODE,
        )))
    }
}

/// The federation as its scenario has it, at this ε.
fn as_agreed(agreed: &Table, own: &ExperimentEntry, epsilon: f64) -> ExperimentEntry {
    let mut privacy = agreed.clone();
    privacy.remove("noise-multiplier");
    privacy.insert("epsilon".into(), epsilon.into());
    let release = privacy.get("mechanism").and_then(Value::as_str);
    let label = release::label(release.unwrap_or(RELEASES[0].name), epsilon);
    let mut entry = ExperimentEntry {
        label,
        ..own.clone()
    };
    entry.set.insert("privacy".into(), Value::Table(privacy));
    fixed(entry)
}

impl ReleaseSettings {
    /// The federation with this release, at this ε.
    fn entry(&self, epsilon: f64) -> ExperimentEntry {
        let mut entry =
            ExperimentEntry::plain(&release::label(self.name, epsilon), self.strategy());
        entry.set = self.set(epsilon);
        fixed(entry)
    }
}

impl ExperimentEntry {
    /// Returns whether it is a federation with noise that was added beside each silo alone.
    fn is_noised(&self) -> bool {
        self.fixed && self.set.contains_key("privacy")
    }
}

/// The same federation, each of whose silos adapts the model to its own rows afterwards. That releases nothing
/// more.
fn adapted(entry: &ExperimentEntry, how: Adaptation) -> ExperimentEntry {
    let name = match how {
        Adaptation::OwnIntercept => "own intercept",
        Adaptation::Shrunken => "shrunken",
    };
    ExperimentEntry {
        label: format!("{}, {name}", entry.label),
        adapted: Some(how),
        ..entry.clone()
    }
}

/// An entry for which nothing is tried.
fn fixed(entry: ExperimentEntry) -> ExperimentEntry {
    ExperimentEntry {
        fixed: true,
        served: Some(false),
        tune: Default::default(),
        ..entry
    }
}

#[cfg(test)]
mod tests;
