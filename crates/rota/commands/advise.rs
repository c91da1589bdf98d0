//! `rota advise`: which strategy serves a federation's members best, and whether any does; with
//! `--epsilon` whether a federation with noise is worth joining.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;
use std::time::Duration;

use formatting::numbers;
use indicatif::ProgressBar;
use lab::compare::{
    AdviceRows, Comparison, Experiment, SEEDS, TIMES, advise, advise_noise, noise_choices,
};
use report::compare as report;
use serde::Serialize;

use super::CommandError;
use super::own_rows::refuse_own_rows;
use crate::cli::{Advise, data_folder};
use crate::progress::{Counted, say};

/// Compares within the budget, and prints the tables and the advice.
pub(crate) fn run(options: &Advise, bar: ProgressBar) -> Result<(), CommandError> {
    let data = data_folder(options.data.as_deref());
    if let Some(epsilon) = options.epsilon {
        return with_noise(options, epsilon, data.as_deref(), bar);
    }
    let experiment = Experiment::for_advice(&options.scenario)?;
    let progress = Counted::new(bar, options.quiet, "starting");
    let advice = advise(experiment, data.as_deref(), budget(options), |done| {
        progress.step(done.done, done.runs, &super::compare::line(done));
    });
    progress.end();
    let advice = advice?;
    print(options.json, &advice, &advice.comparison, |out| {
        report::write_advice(out, &advice)
    })
}

fn budget(options: &Advise) -> Duration {
    Duration::from_secs_f64(60.0 * options.minutes)
}

/// Returns whether to join a federation with noise.
fn with_noise(
    options: &Advise,
    epsilon: f64,
    data: Option<&Path>,
    bar: ProgressBar,
) -> Result<(), CommandError> {
    let experiment = Experiment::load(&options.scenario, &noise_choices(epsilon))?;
    refuse_own_rows(&experiment, &options.source)?;
    if !options.quiet {
        say(&format!(
            "this takes at most {} minutes: {} to {} seeds of each silo alone and of the federation without and \
             with noise; and where the advice is not to join, {} to {} times the epsilon, silos and rows",
            options.minutes,
            SEEDS[0],
            SEEDS[SEEDS.len() - 1],
            TIMES[0],
            TIMES[TIMES.len() - 1],
        ))?;
    }
    let progress = Counted::new(bar, options.quiet, "starting");
    let rows = AdviceRows { data, made: None };
    let advice = advise_noise(experiment, epsilon, &rows, budget(options), |done| {
        progress.step(done.done, done.runs, &super::compare::line(done));
    });
    progress.end();
    let advice = advice?;
    print(options.json, &advice, &advice.comparison, |out| {
        report::write_noise_advice(out, &advice)
    })
}

/// Prints advice as JSON, or its comparison and then, by `words`, what it says.
fn print(
    json: bool,
    advice: &impl Serialize,
    comparison: &Comparison,
    words: impl FnOnce(&mut BufWriter<StdoutLock<'_>>) -> io::Result<()>,
) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let json = serde_json::to_string_pretty(advice).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        report::write(&mut out, comparison)?;
        writeln!(out)?;
        words(&mut out)?;
    }
    Ok(out.flush()?)
}
