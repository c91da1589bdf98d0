//! `rota attack`: measures what a curious member finds out.

use std::io::{self, BufWriter, Write};

use formatting::numbers;
use indicatif::ProgressBar;
use lab::run as federate;
use simulations::{LinkageResult, Options, Overrides, Scenario};

use super::CommandError;
use crate::cli::{AttackCommand, LinkageAttack, data_folder};
use crate::progress::RoundProgress;

/// Runs an attack and prints what it found.
pub(crate) fn run(attack: &AttackCommand, bar: ProgressBar) -> Result<(), CommandError> {
    let AttackCommand::Linkage(options) = attack;
    let scenario = Scenario::load(&options.scenario)?.with(&overrides(options))?;
    let progress = RoundProgress::new(bar, options.quiet, scenario.rounds);
    let summary = federate(
        &scenario,
        Options {
            data: data_folder(options.data.as_deref()),
            memo: true,
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

fn overrides(options: &LinkageAttack) -> Overrides {
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
            "{}: nothing to recognise: models carry their authors' names, or no two rounds in a row \
             had models of the same silo",
            scenario.name
        );
    };
    writeln!(
        out,
        "{}: who led a round knows the authors of its models, and sees those of the next round without \
         names",
        scenario.name
    )?;
    writeln!(
        out,
        "{} models in {} rounds, each after the round before\n",
        linkage.entries, linkage.rounds
    )?;
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    writeln!(out, "  {:32} authors recognised", "by")?;
    for clue in &linkage.clues {
        writeln!(out, "  {:32} {:>6}", clue.kind.words(), percent(clue.share))?;
    }
    writeln!(out, "  {:32} {:>6}", "guessing", percent(linkage.chance))
}
