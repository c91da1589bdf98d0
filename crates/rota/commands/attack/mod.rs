//! `rota attack`: measures what a curious member finds out.

mod rows;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use agreement::PrivacyTable;
use formatting::numbers;
use indicatif::ProgressBar;
use lab::absence::{AbsenceAttack, kept};
use lab::run as federate;
use node::commands::{quietly, state_of};
use node::verify::kept_sums;
use serde::Serialize;
use simulations::{LinkageResult, Options, Overrides, Scenario};

use crate::cli::{AbsenceOptions, AttackCommand, AttackHow, AttackOptions, data_folder};
use crate::commands::{CommandError, NodeError, wrapped};
use crate::progress::RoundProgress;

/// Runs an attack and prints what it found.
pub(crate) fn run(attack: &AttackCommand, bar: ProgressBar) -> Result<(), CommandError> {
    match attack {
        AttackCommand::Linkage(options) => linkage(options, bar),
        AttackCommand::Absence(options) => absence(options, bar),
        AttackCommand::Membership(options) => rows::membership(options),
        AttackCommand::Canary(options) => rows::canary(options),
    }
}

/// Rounds that the text of an attack by absence shows, beside the last.
const SHOWN: [u64; 5] = [1, 2, 11, 21, 41];

fn absence(options: &AbsenceOptions, bar: ProgressBar) -> Result<(), CommandError> {
    let AbsenceOptions {
        scenario,
        of,
        federation,
        runs,
        how,
    } = options;
    match scenario {
        Some(scenario) => absence_in(scenario, *runs, how, bar),
        None => absence_kept(&state_of(of)?, federation.as_deref(), how),
    }
}

/// Looks for sums that differ by their authors in the rounds that a node has kept.
fn absence_kept(
    state: &Path,
    federation: Option<&Path>,
    how: &AttackHow,
) -> Result<(), CommandError> {
    let data = data_folder(how.data.as_deref());
    let sums = quietly(|| kept_sums(state, federation, data.as_deref()));
    let found = kept(&sums.map_err(NodeError::from)?);
    print(&found, how.json, || found.lines())
}

/// Prints a result as JSON or as lines of text.
fn print(
    found: &impl Serialize,
    json: bool,
    lines: impl FnOnce() -> Vec<String>,
) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        let json = serde_json::to_string_pretty(found).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        for line in lines() {
            writeln!(out, "{}", wrapped(&line))?;
        }
    }
    Ok(out.flush()?)
}

fn absence_in(
    scenario: &str,
    runs: u64,
    options: &AttackHow,
    bar: ProgressBar,
) -> Result<(), CommandError> {
    if let Some(strategy) = options.strategy.as_ref().filter(|name| *name != "fedavg") {
        return Err(CommandError::usage(format!(
            "--strategy {strategy}: this attack is on sums of models, and runs FedAvg: leave the option out"
        )));
    }
    let scenario = Scenario::load(scenario)?.with(&overrides(options))?;
    if has_noise(&scenario) {
        let data = data_folder(options.data.as_deref());
        let data = Options {
            data,
            ..Options::default()
        };
        let found = lab::absence::noised(&scenario, &data, runs)?;
        return print(&found, options.json, || found.lines());
    }
    let progress = RoundProgress::new(bar, options.quiet, scenario.rounds);
    let found = lab::absence::absence(
        &scenario,
        Options {
            data: data_folder(options.data.as_deref()),
            references: false,
            progress: Box::new(|round| progress.round(round)),
            ..Options::default()
        },
    );
    progress.end();
    let found = found?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let json = serde_json::to_string_pretty(&found).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        write_absence(&mut out, &found)?;
    }
    Ok(out.flush()?)
}

/// Returns what sums tell, in words.
fn write_absence(out: &mut impl Write, found: &AbsenceAttack) -> io::Result<()> {
    let Some(last) = found.rounds.last().map(|round| round.round) else {
        return writeln!(
            out,
            "{}: this attack needs at least two rounds: add --rounds",
            found.scenario
        );
    };
    writeln!(
        out,
        "{}: how well sums of {} disclose the update of a single institution (cosine; 1: known except for its \
         length)\n",
        found.scenario,
        numbers::plural(found.silos.len(), "institution")
    )?;
    writeln!(
        out,
        "  {:>5}  {:>24}  {:>24}  {:>16}",
        "round", "sum less the next without", "sum less the next of all", "the sum alone"
    )?;
    for round in &found.rounds {
        if SHOWN.contains(&round.round) || round.round == last {
            let range = |cosines: &[f64]| {
                let least = cosines.iter().copied().fold(f64::INFINITY, f64::min);
                let most = cosines.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                format!("{least:.3} to {most:.3}")
            };
            writeln!(
                out,
                "  {:>5}  {:>24}  {:>24}  {:>16}",
                round.round,
                range(&round.without),
                range(&round.with_all),
                range(&round.sum)
            )?;
        }
    }
    writeln!(
        out,
        "\nMasked rounds open only sums of the same authors for the whole life of the federation, so the first \
         column cannot happen. Masks do not hide what the sum alone discloses."
    )
}

fn linkage(options: &AttackOptions, bar: ProgressBar) -> Result<(), CommandError> {
    let AttackOptions { scenario, how } = options;
    let (scenario, options) = (Scenario::load(scenario)?.with(&overrides(how))?, how);
    let progress = RoundProgress::new(bar, options.quiet, scenario.rounds);
    let summary = federate(
        &scenario,
        Options {
            data: data_folder(options.data.as_deref()),
            cache: true,
            references: false,
            progress: Box::new(|round| progress.round(round)),
            ..Options::default()
        },
    );
    progress.end();
    let summary = summary?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let document = serde_json::json!({
            "scenario": summary.scenario,
            "strategy": summary.strategy,
            "seed": summary.seed,
            "linkage": summary.linkage,
        });
        let json = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
    } else {
        write_text(&mut out, &scenario, summary.linkage.as_ref())?;
    }
    Ok(out.flush()?)
}

fn has_noise(scenario: &Scenario) -> bool {
    let table = scenario.privacy.as_ref();
    table.is_some_and(PrivacyTable::is_noised)
}

fn overrides(options: &AttackHow) -> Overrides {
    Overrides {
        seed: options.seed,
        silos: options.silos,
        rounds: options.rounds,
        strategy: options.strategy.clone(),
        ..Overrides::default()
    }
}

/// The result in words.
fn write_text(
    out: &mut impl Write,
    scenario: &Scenario,
    linkage: Option<&LinkageResult>,
) -> io::Result<()> {
    let Some(linkage) = linkage else {
        return writeln!(
            out,
            "{}: nothing to recognise: members see models with their authors' names, or no silo contributed to \
             two rounds in a row",
            scenario.name
        );
    };
    writeln!(
        out,
        "{}: the lead of a round knows the authors of its models, and tries to tell the authors of the next \
         round's models, which it sees without names",
        scenario.name
    )?;
    writeln!(
        out,
        "{} models in {} rounds, each compared with the models of the round before\n",
        linkage.entries, linkage.rounds
    )?;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    writeln!(out, "  {:37} authors recognised", "by")?;
    for clue in &linkage.clues {
        writeln!(out, "  {:37} {:>6}", clue.kind.words(), percent(clue.share))?;
    }
    writeln!(out, "  {:37} {:>6}", "guessing", percent(linkage.chance))
}
