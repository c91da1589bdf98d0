//! Measures the built-in experiments and writes a page of tables for each below `measurements/results`.
//!
//! ```text
//! just results                    every experiment whose page is older than the code that it measures
//! just results heart digits       these, in any case
//! just results --shard 1/2        a part of the runs, on one of several machines; the folders of
//!                                 target/results put together are all of them
//! just results --older            says which pages are older, and measures nothing
//! ```
//!
//! Results are kept run by run in `target/results`, so that what was interrupted goes on where it was. A page
//! names the command, the day, the time that it took, and a stamp of the code. Results of other
//! code are not used.

mod stamp;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use formatting::numbers;
use lab::compare::{
    BUILT_IN, Choices, CompareOptions, CompareProgress, Comparison, Experiment, Shard, compare,
};

/// Pages that are asked for.
#[derive(Default)]
struct WantedPages {
    names: Vec<String>,
    shard: Option<Shard>,
    older: bool,
}

impl WantedPages {
    fn of(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut asked = Self::default();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--older" => asked.older = true,
                "--shard" => {
                    asked.shard = Some(words.next().unwrap_or_default().parse()?);
                }
                name if BUILT_IN.iter().any(|(one, _)| *one == name) => {
                    asked.names.push(word);
                }
                name => return Err(format!("no built-in experiment {name}").into()),
            }
        }
        Ok(asked)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let asked = WantedPages::of(std::env::args().skip(1))?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize()?;
    for (name, text) in BUILT_IN {
        let named = asked.names.iter().any(|one| one == name);
        if !asked.names.is_empty() && !named {
            continue;
        }
        let stamp = stamp::stamp(&root, text)?;
        let page = root.join("measurements/results").join(format!("{name}.md"));
        let state = state(&fs::read_to_string(&page).unwrap_or_default(), &stamp);
        if asked.older {
            println!("{name}: {state}");
        } else if named || state != OF_THIS_CODE {
            let experiment = Experiment::load(name, &Choices::default())?;
            measure(&root, &experiment, &stamp, asked.shard, &page)?;
        }
    }
    Ok(())
}

const OF_THIS_CODE: &str = "of this code";

/// Returns what a page, empty where there is none, is beside code of this stamp.
fn state(page: &str, stamp: &str) -> &'static str {
    match (page.is_empty(), page.contains(stamp)) {
        (true, _) => "never measured",
        (_, true) => OF_THIS_CODE,
        (_, false) => "older than the code",
    }
}

/// Measures an experiment, and writes its page if all of it was measured.
fn measure(
    root: &Path,
    experiment: &Experiment,
    stamp: &str,
    shard: Option<Shard>,
    page: &Path,
) -> Result<(), Box<dyn Error>> {
    let name = experiment.name.clone();
    let folder = root.join("target/results").join(format!("{name}-{stamp}"));
    let data = std::env::var_os("ROTA_DATA").map_or_else(|| root.join("data"), PathBuf::from);
    let mut result = compare(
        experiment,
        CompareOptions {
            data: Some(data.clone()),
            folder: Some(folder.clone()),
            resume: true,
            shard,
            progress: Box::new(move |done| step(&name, done)),
            ..CompareOptions::default()
        },
    )?;
    if !result.missing.is_empty() {
        let missing = numbers::plural(result.missing.len(), "run");
        println!(
            "{}: {missing} of other parts, in {}",
            result.experiment,
            folder.display()
        );
        return Ok(());
    }
    // Where the files lie on this machine is nobody's business.
    for note in result.variants.iter_mut().flat_map(|one| &mut one.notes) {
        *note = note.replace(&*data.to_string_lossy(), "data");
    }
    if let Some(folder) = page.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(page, text(&result, stamp, &today()))?;
    println!("{}", page.display());
    Ok(())
}

fn step(name: &str, done: &CompareProgress) {
    let last = &done.last;
    let of = (done.done, done.runs);
    eprintln!(
        "{name} {}/{}: {} {}, seed {}",
        of.0, of.1, last.variant, last.strategy, last.seed
    );
}

fn today() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = now.map_or_else(|_| String::new(), |since| numbers::date(since.as_secs()));
    date.chars().take(10).collect()
}

/// The page.
fn text(result: &Comparison, stamp: &str, day: &str) -> String {
    let name = &result.experiment;
    let rows = result
        .variants
        .iter()
        .flat_map(|variant| &variant.strategies);
    let seconds: f64 = rows
        .map(|row| (row.seconds.0 + row.seconds.1) * row.seeds as f64)
        .sum();
    format!(
        "# {name}\n\n```sh\njust results {name}\n```\n\n{}, {} over {}, trainings of {} in all; code {stamp}. \
         `rota compare {name}` gives the same tables, with a page to look at. What they show stands in \
         [Results](../results.md).\n\n{}",
        day,
        numbers::plural(result.variants.len().max(1), "table"),
        numbers::plural(result.seeds, "seed"),
        numbers::seconds(seconds),
        report::compare::markdown(result).trim_end()
    ) + "\n"
}
