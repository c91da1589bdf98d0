//! `rota advise`: which way of learning serves a federation's members best, and whether any does.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use formatting::numbers;
use indicatif::ProgressBar;
use lab::compare::{Experiment, advise};
use report::compare as report;

use super::CommandError;
use crate::cli::{Advise, data_folder};
use crate::progress::Counted;

/// Compares within the budget, and prints the tables and the advice.
pub(crate) fn run(options: &Advise, bar: ProgressBar) -> Result<(), CommandError> {
    let experiment = Experiment::for_advice(&options.scenario)?;
    let budget = Duration::from_secs_f64(60.0 * options.minutes);
    let progress = Counted::new(bar, options.quiet, "starting");
    let data = data_folder(options.data.as_deref());
    let advice = advise(experiment, data.as_deref(), budget, |done| {
        progress.step(done.done, done.runs, &super::compare::line(done));
    });
    progress.end();
    let advice = advice?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let json = serde_json::to_string_pretty(&advice).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        report::write(&mut out, &advice.comparison)?;
        writeln!(out)?;
        report::write_advice(&mut out, &advice)?;
    }
    Ok(out.flush()?)
}
