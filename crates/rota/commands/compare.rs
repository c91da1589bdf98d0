//! `rota compare`: compares strategies over several seeds.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use formatting::numbers;
use indicatif::ProgressBar;
use lab::compare::{CompareOptions, CompareProgress, Comparison, Experiment, compare, merge};
use node::exit::Exit;
use report::compare as report;
use tokio::runtime;

use super::{CommandError, NodeError};
use crate::cli::{Compare, CompareCommand, CompareOutput, MergeParts, data_folder, typed};
use crate::progress::{Counted, say};

/// Runs the experiment, prints the tables and writes results and page.
pub(crate) fn run(options: &Compare, bar: ProgressBar) -> Result<(), CommandError> {
    if let Some(CompareCommand::Merge(options)) = &options.merge {
        return merge_parts(options);
    }
    // Known before the experiment is read.
    options.caller.connected();
    let name = options.experiment.as_deref().unwrap_or_default();
    let experiment = Experiment::load(name, &options.choices())?;
    if !options.epsilon.is_empty() {
        super::own_rows::refuse_own_rows(&experiment, &options.source)?;
    }
    if let Some(keep) = &options.keep {
        super::simulate::empty(keep)?;
    }
    let folder = folder(&options.output, &experiment);
    if folder.is_some() {
        let again = if options.resume {
            typed()
        } else {
            typed() + " --resume"
        };
        when_interrupted(again);
    }
    let progress = Counted::new(bar, options.output.quiet, "starting");
    let default = CompareOptions::default();
    let result = compare(
        &experiment,
        CompareOptions {
            data: data_folder(options.data.as_deref()),
            threads: options.threads.unwrap_or(default.threads),
            folder: folder.clone(),
            resume: options.resume,
            shard: options.shard,
            keep: options.keep.clone(),
            rows: None,
            progress: Box::new(|done| progress.step(done.done, done.runs, &line(done))),
        },
    );
    progress.end();
    finish(&result?, &options.output, folder.as_deref())
}

/// Says, when the process is interrupted, that this command goes on where it was.
fn when_interrupted(again: String) {
    thread::spawn(move || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        // Where signals cannot be listened to, the process ends without the line.
        let Ok(runtime) = runtime else { return };
        if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            // So that no run that ends meanwhile has the last line.
            let _last = io::stderr().lock();
            let _ = say(&format!(
                "interrupted: what was measured is kept; `{again}` measures the rest"
            ));
            Exit::Interrupted.now();
        }
    });
}

fn merge_parts(options: &MergeParts) -> Result<(), CommandError> {
    let out = options.output.out.as_deref();
    let (experiment, comparison) = merge(&options.parts, out)?;
    let folder = folder(&options.output, &experiment);
    finish(&comparison, &options.output, folder.as_deref())
}

/// The folder of results: as given, or named after the experiment; none with `--json` alone.
fn folder(output: &CompareOutput, experiment: &Experiment) -> Option<PathBuf> {
    if output.out.is_some() || output.json {
        return output.out.clone();
    }
    let name = node::commands::file_name(&experiment.name, "experiment");
    let quick = if experiment.quick { "-quick" } else { "" };
    Some(Path::new("rota-compare").join(format!("{name}{quick}")))
}

/// A line about a run that ended.
pub(super) fn line(done: &CompareProgress) -> String {
    let last = &done.last;
    let left = done.left.map_or_else(String::new, |left| {
        format!(", about {} left", rounded(left))
    });
    let variant = if last.variant.is_empty() {
        String::new()
    } else {
        format!("{}, ", numbers::plain(&last.variant))
    };
    format!(
        "{variant}{}, seed {}{left}",
        numbers::plain(&last.strategy),
        last.seed
    )
}

fn rounded(left: Duration) -> String {
    numbers::seconds(left.as_secs_f64().round())
}

/// Prints and writes a comparison.
fn finish(
    comparison: &Comparison,
    output: &CompareOutput,
    folder: Option<&Path>,
) -> Result<(), CommandError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = now.map_or_else(|_| String::new(), |since| numbers::date(since.as_secs()));
    let json = serde_json::to_string_pretty(comparison).map_err(io::Error::from)?;
    let mut written = None;
    if let Some(folder) = folder {
        std::fs::create_dir_all(folder).map_err(|reason| NodeError::Write {
            path: folder.into(),
            reason,
        })?;
        super::write(&folder.join("comparison.csv"), &report::csv(comparison))?;
        super::write(&folder.join("comparison.json"), &json)?;
        super::write(&folder.join("comparison.md"), &report::markdown(comparison))?;
        let page = folder.join("comparison.html");
        super::write(&page, &report::page(comparison, &typed(), &date))?;
        written = Some(page);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if output.json {
        writeln!(out, "{}", numbers::escaped(&json))?
    } else {
        report::write(&mut out, comparison)?
    }
    out.flush()?;
    if let Some(page) = written {
        let line = format!("report    {}", page.display());
        if output.json {
            say(&line)?
        } else {
            writeln!(out, "\n{line}")?
        }
        out.flush()?;
    }
    let runs = comparison.failures();
    let all: usize = comparison
        .variants
        .iter()
        .map(|variant| variant.strategies.len())
        .sum();
    match runs {
        0 => Ok(()),
        runs => Err(CommandError::failed(format!(
            "{} of {} gave no model that is of use{}",
            numbers::plural(runs, "run"),
            all * comparison.seeds,
            why(comparison, output.json)
        ))),
    }
}

/// Returns where the reasons of failed runs are read, as the end of a sentence: under a heading of the printed text, or
/// beside a document, which has no such heading, the first of them.
fn why(comparison: &Comparison, json: bool) -> String {
    let rows = comparison.variants.iter();
    let mut rows = rows.flat_map(|variant| &variant.strategies);
    let first = rows.find_map(|row| Some((&row.label, row.failed.first()?)));
    match first.filter(|_| json) {
        Some((label, (seed, why))) => format!(
            "; the first is {}, seed {seed}: {}",
            numbers::plain(label),
            numbers::plain(why)
        ),
        None => ": see \"What went wrong\"".into(),
    }
}
