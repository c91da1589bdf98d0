//! Advice on joining a federation with noise, and on changes of it.
//!
//! The rule: join where the federation with noise is better than the model that each silo makes alone, and the
//! whole 95 % interval of the mean difference per silo says so. Noise is a price that has to buy something.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use learn::study_of;
use methods::serving::Adaptation;
use serde::Serialize;
use task::TaskConfig;

use super::super::advise::complete;
use super::super::choices::Choices;
use super::super::comparison::{Comparison, ComparisonRow};
use super::super::entry::{ExperimentEntry, OWN};
use super::super::error::ExperimentError;
use super::super::experiment::Experiment;
use super::super::file::RunSettings;
use super::super::run::{CompareOptions, CompareProgress, MakeRows, run_units};
use super::WITHOUT;
use super::imitation::Imitation;
use crate::statistic::Interval;
use crate::summary::NoiseBound;

/// Multiples of today's silos, rows or ε that are tried.
pub const TIMES: [usize; 3] = [2, 5, 10];
/// Seeds: as many as fit into half of the time.
pub const SEEDS: [usize; 4] = [4, 8, 12, 20];
/// The largest ε of an agreement.
const MOST_EPSILON: f64 = 1000.0;

/// Advice on joining a federation with noise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NoiseAdvice {
    /// True if it is, with one kind of release at least.
    pub joins: bool,
    /// Every kind of release at the asked ε.
    pub releases: Vec<ReleaseAdvice>,
    /// Changes that would turn advice not to join.
    pub changes: Option<WhatChanges>,
    /// Seeds for which every strategy was measured.
    pub seeds: usize,
    /// True if time was over before all of them were.
    pub cut_short: bool,
    /// The comparison.
    pub comparison: Comparison,
}

/// Advice on one kind of release.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReleaseAdvice {
    /// Its label in the comparison.
    pub label: String,
    /// Adaptation by every silo of the model to its own rows afterwards.
    pub adapted: Option<Adaptation>,
    /// Bound by its noise.
    pub noise: Option<NoiseBound>,
    /// Gain over the model that each silo makes alone, per silo.
    pub gain: Option<Interval>,
    /// Difference from the federation without noise: mostly negative, worse.
    pub price: Option<Interval>,
}

impl ReleaseAdvice {
    fn of(entry: &ExperimentEntry, row: &ComparisonRow) -> Self {
        let over = |reference: &str| {
            let against = row.against.iter().find(|one| one.over == reference)?;
            let difference = against.inside.as_ref()?;
            difference.interval()
        };
        Self {
            label: row.label.clone(),
            adapted: entry.adapted,
            noise: row.noise.clone(),
            gain: over(OWN),
            price: over(WITHOUT),
        }
    }

    /// Returns whether the whole interval of the gain is above 0.
    pub fn joins(&self) -> bool {
        self.gain.is_some_and(|gain| gain.low > 0.0)
    }
}

/// Changes that would turn advice not to join, if the rest stays as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WhatChanges {
    /// A larger ε, on the same rows.
    pub epsilon: NeededTimes,
    /// More silos, on rows drawn to resemble these.
    pub silos: NeededTimes,
    /// More rows at every silo, on rows drawn to resemble these.
    pub rows: NeededTimes,
}

/// Multiple of something from which on the advice would change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeededTimes {
    /// From so many times today's on.
    At {
        /// Times today's.
        times: usize,
        /// Bound by the noise then.
        noise: Option<NoiseBound>,
    },
    /// Not up to so many times today's.
    NotUpTo(usize),
    /// That is not known, and why, as a clause.
    Unknown(String),
}

/// The choices with which an experiment is loaded for advice on noise of `epsilon`.
pub fn noise_choices(epsilon: f64) -> Choices {
    let times = TIMES.iter().map(|times| epsilon * *times as f64);
    let larger = times.filter(|epsilon| *epsilon <= MOST_EPSILON);
    Choices {
        epsilons: std::iter::once(epsilon).chain(larger).collect(),
        seeds: Some(SEEDS[0]),
        ..Choices::default()
    }
}

/// The rows that advice rests on.
#[derive(Clone, Default)]
pub struct AdviceRows<'a> {
    /// The folder of data sets.
    pub data: Option<&'a Path>,
    /// Rows in place of those of the scenario's task.
    pub made: Option<Arc<MakeRows>>,
}

impl AdviceRows<'_> {
    fn options(&self) -> CompareOptions<'static> {
        CompareOptions {
            data: self.data.map(Path::to_owned),
            rows: self.made.clone(),
            ..CompareOptions::default()
        }
    }
}

/// Measures for at most `budget` whether to join the federation with noise of `epsilon` of a scenario, which was
/// loaded with [`noise_choices`].
///
/// # Errors
/// As [`compare`](super::super::compare()).
pub fn advise_noise(
    mut experiment: Experiment,
    epsilon: f64,
    rows: &AdviceRows<'_>,
    budget: Duration,
    mut progress: impl FnMut(&CompareProgress),
) -> Result<NoiseAdvice, ExperimentError> {
    let began = Instant::now();
    let measure = |experiment: &Experiment, progress: &mut dyn FnMut(&CompareProgress)| {
        run_units(experiment, rows.options(), Some(began + budget), progress)
    };
    let mut results = measure(&experiment, &mut progress)?;
    let first = began.elapsed();
    let fits = |seeds: &&usize| {
        let takes = first.mul_f64(**seeds as f64 / SEEDS[0] as f64);
        first + takes <= budget / 2
    };
    if let Some(&seeds) = SEEDS[1..].iter().rev().find(fits) {
        let mut more = experiment.clone();
        more.seeds = seeds;
        let found = measure(&more, &mut progress)?;
        if complete(&more, &found) >= complete(&experiment, &results) {
            (experiment, results) = (more, found);
        }
    }
    let (runs, seeds) = (experiment.units().len(), complete(&experiment, &results));
    let cut_short = results.len() < runs;
    results.retain(|one| one.unit.seed < seeds.max(1));
    let comparison = Comparison::of(&experiment, results, began.elapsed().as_secs_f64());
    let all: Vec<ReleaseAdvice> = noised(&experiment, &comparison).collect();
    // The asked ε comes first, then its multiples.
    let releases = all.len() / noise_choices(epsilon).epsilons.len();
    let asked = all[..releases].to_vec();
    let joins = asked.iter().any(ReleaseAdvice::joins);
    let changes = (!joins && seeds > 1).then(|| {
        let search = MoreNeeded {
            experiment: &experiment,
            epsilon,
            rows,
            until: began + budget,
        };
        let (silos, rows) = search.more(&mut progress);
        WhatChanges {
            epsilon: larger_epsilon(&all[releases..], releases),
            silos,
            rows,
        }
    });
    Ok(NoiseAdvice {
        joins,
        releases: asked,
        changes,
        seeds,
        cut_short,
        comparison,
    })
}

/// The federations with noise.
fn noised<'a>(
    experiment: &'a Experiment,
    comparison: &'a Comparison,
) -> impl Iterator<Item = ReleaseAdvice> + 'a {
    let rows = experiment
        .entries
        .iter()
        .zip(&comparison.variants[0].strategies);
    rows.filter(|(entry, _)| entry.is_noised())
        .map(|(entry, row)| ReleaseAdvice::of(entry, row))
}

/// The least of these larger ε at which one of so many releases is worth joining.
fn larger_epsilon(all: &[ReleaseAdvice], releases: usize) -> NeededTimes {
    let each = all.chunks(releases.max(1)).zip(TIMES);
    let mut last = None;
    for (advice, times) in each {
        if let Some(found) = advice.iter().find(|one| one.joins()) {
            let noise = found.noise.clone();
            return NeededTimes::At { times, noise };
        }
        last = Some(times);
    }
    match last {
        Some(times) => NeededTimes::NotUpTo(times),
        None => NeededTimes::Unknown(format!("no epsilon above {MOST_EPSILON} can be agreed on")),
    }
}

/// The search for a number of silos or rows at which the advice would be to join.
struct MoreNeeded<'a> {
    experiment: &'a Experiment,
    epsilon: f64,
    rows: &'a AdviceRows<'a>,
    until: Instant,
}

impl MoreNeeded<'_> {
    /// Returns what more silos, and more rows, would change.
    fn more(&self, progress: &mut dyn FnMut(&CompareProgress)) -> (NeededTimes, NeededTimes) {
        let unknown = |why: String| (NeededTimes::Unknown(why.clone()), NeededTimes::Unknown(why));
        let imitation = match self.imitation() {
            Ok(imitation) => Arc::new(imitation),
            Err(why) => return unknown(why),
        };
        // Rows that say something else about today say nothing about more.
        match self.joins(&imitation, (1, 1), progress) {
            Ok(false) => (),
            Ok(true) => {
                return unknown(
                    "for synthetic rows like these the advice is to join already with today's numbers".into(),
                );
            }
            Err(why) => return unknown(why),
        }
        let (mut silos, mut rows) = (None, None);
        for times in TIMES {
            for (found, many) in [(&mut rows, (1, times)), (&mut silos, (times, 1))] {
                if matches!(found, None | Some(NeededTimes::NotUpTo(_))) {
                    *found = Some(match self.joins(&imitation, many, progress) {
                        Ok(true) => NeededTimes::At { times, noise: None },
                        Ok(false) => NeededTimes::NotUpTo(times),
                        // An answer for fewer is worth having.
                        Err(why) => match found.take() {
                            Some(known) => known,
                            None => NeededTimes::Unknown(why),
                        },
                    });
                }
            }
        }
        let none = || NeededTimes::Unknown("nothing was measured".into());
        (silos.unwrap_or_else(none), rows.unwrap_or_else(none))
    }

    /// Returns what the rows of the scenario look like.
    fn imitation(&self) -> Result<Imitation, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let (variant, entry) = (&self.experiment.variants[0], &self.experiment.entries[0]);
        let scenario = self
            .experiment
            .scenario(variant, entry, &RunSettings::new(), 0);
        let scenario = scenario.map_err(|error| said(&error))?;
        let task = scenario.task_of_rows().map_err(|error| said(&error))?;
        let TaskConfig::Table(task) = &task else {
            return Err("synthetic rows can be made for tables only".into());
        };
        let seed = scenario.seed;
        let tables = match &self.rows.made {
            Some(make) => make(seed),
            None => task.tables(scenario.silos, self.rows.data, seed),
        };
        let tables = tables.map_err(|error| said(&error))?;
        let study = study_of(task, tables.clone(), seed).map_err(|error| said(&error))?;
        let train: Vec<usize> = study.silos.iter().map(|silo| silo.rows.train).collect();
        if !scenario.outside.is_empty() || train.contains(&0) {
            return Err("some silos are outside of the federation".into());
        }
        Imitation::of(&tables, &train)
            .ok_or_else(|| "synthetic rows cannot be made for such targets".into())
    }

    /// Returns whether the advice would be to join with so many times the silos and rows.
    fn joins(
        &self,
        imitation: &Arc<Imitation>,
        (silos, rows): (usize, usize),
        progress: &mut dyn FnMut(&CompareProgress),
    ) -> Result<bool, String> {
        let drawn = imitation.clone();
        let make: Arc<MakeRows> = Arc::new(move |seed| Ok(drawn.draw(silos, rows, seed)));
        let mut experiment = self.experiment.clone();
        experiment.seeds = SEEDS[0];
        let asked = format!("epsilon {}", self.epsilon);
        experiment.entries.retain(|entry| {
            entry.is_own() || entry.label.rsplit(", ").next() == Some(asked.as_str())
        });
        let options = CompareOptions {
            rows: Some(make),
            ..self.rows.options()
        };
        let results = run_units(&experiment, options, Some(self.until), progress);
        let results = results.map_err(|error| error.to_string())?;
        if complete(&experiment, &results) < experiment.seeds {
            return Err("time ran out: allow more minutes (--minutes)".into());
        }
        let comparison = Comparison::of(&experiment, results, 0.0);
        Ok(noised(&experiment, &comparison).any(|release| release.joins()))
    }
}
