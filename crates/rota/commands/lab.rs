//! `rota lab rotation`: a federation under several rotations of leads.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use formatting::numbers;
use indicatif::ProgressBar;
use lab::deploy::{self, NetworkKind};
use lab::rotation::{self, LabOptions, LabProgress, Laboratory, RotationExperiment};
use report::lab as report;
use simulations::{Overrides, Scenario, scenario};

use super::{CommandError, NodeError, write};
use crate::cli::{LabCommand, LabNetwork, LabRotation, data_folder, typed};
use crate::progress::{Counted, say, working};

/// Runs the experiment, prints the tables and writes results and page.
pub(crate) fn run(options: &LabCommand, bar: ProgressBar) -> Result<(), CommandError> {
    let LabCommand::Rotation(options) = options;
    let experiment = experiment(options)?;
    if options.deploy {
        let result = deployed(&experiment, options, &bar)?;
        return finish(&result, options);
    }
    let progress = Counted::new(bar, options.quiet, "running without faults");
    let result = rotation::rotation(
        &experiment,
        LabOptions {
            data: data_folder(options.data.as_deref()),
            progress: Box::new(|done| progress.step(done.done, done.runs, &line(done))),
            ..LabOptions::default()
        },
    );
    progress.end();
    finish(&result?, options)
}

/// Returns what to run.
fn experiment(options: &LabRotation) -> Result<RotationExperiment, CommandError> {
    let policies = rotation::policies(&options.policies);
    let policies = policies.map_err(|why| CommandError::usage(format!("--policies: {why}")))?;
    if options.seeds == Some(0) {
        return Err(CommandError::usage("--seeds is 0, it must be at least 1"));
    }
    let name = options.scenario.as_deref().unwrap_or(rotation::SCENARIO);
    let scenario = Scenario::load(name)?.with(&Overrides {
        silos: options.silos,
        rounds: options.rounds,
        ..Overrides::default()
    })?;
    let faults = options.faults.as_deref().map(read).transpose()?;
    Ok(RotationExperiment {
        scenario,
        policies,
        seeds: options.number_of_seeds(),
        faults,
        limit: options.limit,
    })
}

/// Runs it with real processes.
fn deployed(
    experiment: &RotationExperiment,
    options: &LabRotation,
    bar: &ProgressBar,
) -> Result<Laboratory, CommandError> {
    let hosts = options.hosts.as_deref().map(hosts).transpose()?;
    let folder = match folder(&experiment.scenario.name, options) {
        Some(folder) => folder.join("runs"),
        None => std::env::temp_dir().join(format!("rota-lab-{}", std::process::id())),
    };
    let quiet = options.quiet;
    let plan = deploy::DeploymentPlan {
        experiment,
        network: options.network.map(|network| match network {
            LabNetwork::Loopback => NetworkKind::Loopback,
            LabNetwork::Namespaces => NetworkKind::Namespaces,
        }),
        hosts: hosts.unwrap_or_default(),
        ssh_config: options.ssh_config.clone(),
        base_port: options.base_port,
        program: std::env::current_exe()?,
        folder,
        data: data_folder(options.data.as_deref()),
        say: Box::new(move |line| {
            if !quiet {
                // Standard error may be closed; that is no reason to fail.
                let _ = say(line);
            }
        }),
    };
    let shown = working(bar, "running");
    let result = deploy::rotation(plan);
    drop(shown);
    Ok(result?)
}

/// The machines in a file.
fn hosts(file: &Path) -> Result<Vec<deploy::Host>, CommandError> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|why| CommandError::usage(format!("--hosts: cannot read {name}: {why}")))?;
    deploy::parse_hosts(&text).map_err(|why| CommandError::usage(format!("--hosts: {name} {why}")))
}

fn read(file: &Path) -> Result<Vec<scenario::Fault>, CommandError> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|why| CommandError::usage(format!("--faults: cannot read {name}: {why}")))?;
    Ok(scenario::faults(&name, &text)?)
}

fn line(done: &LabProgress) -> String {
    format!("{}, seed {}", done.policy, done.seed)
}

/// Prints and writes the result.
fn finish(all: &Laboratory, options: &LabRotation) -> Result<(), CommandError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = now.map_or_else(|_| String::new(), |since| numbers::date(since.as_secs()));
    let json = serde_json::to_string_pretty(all).map_err(io::Error::from)?;
    let mut written = None;
    if let Some(folder) = folder(&all.scenario, options) {
        std::fs::create_dir_all(&folder).map_err(|reason| NodeError::Write {
            path: folder.clone(),
            reason,
        })?;
        write(&folder.join("rotation.csv"), &report::csv(all))?;
        write(&folder.join("rotation.json"), &json)?;
        let page = folder.join("rotation.html");
        write(&page, &report::page(all, &typed(), &date))?;
        written = Some(page);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        writeln!(out, "{}", numbers::escaped(&json))?
    } else {
        report::write(&mut out, all)?
    }
    out.flush()?;
    if let Some(page) = written {
        let line = format!("report    {}", page.display());
        if options.json {
            say(&line)?
        } else {
            writeln!(out, "\n{line}")?
        }
    }
    Ok(out.flush()?)
}

/// The folder of results: as given, or named after the scenario; none with `--json` alone.
fn folder(scenario: &str, options: &LabRotation) -> Option<PathBuf> {
    if options.out.is_some() || options.json {
        return options.out.clone();
    }
    let harmless = |c: char| {
        if c.is_alphanumeric() || "-_".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = scenario.chars().map(harmless).take(64).collect();
    Some(Path::new("rota-lab").join(name))
}
