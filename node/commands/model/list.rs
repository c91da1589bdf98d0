//! `rota model list`: the models of the rounds that a node's state holds.

use std::io::{self, BufWriter, Write};

use formatting::numbers;
use learn::export::HeldOut;
use serde_json::{Value, json};

use super::super::NodeCommandError;
use super::{NodeModels, print_json};
use crate::cli::NodePlace;
use crate::model::{self, Choice, HeldRound, ServedNote, Which};

/// The columns of the table: round, coalition, contributions, model, and its held-out metric.
type ListCells = [String; 5];

/// Prints the models of every round that the state holds, and which of them is served.
pub(super) fn list(node: &NodePlace, as_json: bool) -> Result<(), NodeCommandError> {
    let node = NodeModels::load(&node.file()?)?;
    let mut rounds = Vec::new();
    let mut lines = Vec::new();
    for round in &node.held.rounds {
        let mut models = Vec::new();
        for number in (1u32..).take(round.models.len()) {
            let (line, model) = coalition(&node, round, number);
            lines.push(line);
            models.push(model);
        }
        let certificate = round.certificate.map(|hash| format!("{hash:#}"));
        rounds.push(json!({
            "round": round.round, "block": format!("{:#}", round.block),
            "outcome": format!("{:#}", round.outcome), "certificate": certificate,
            "models": models,
        }));
    }
    let served = model::served(&node.institution.state);
    let note = served.as_ref().ok().and_then(Option::as_ref);
    let note = note.map(|noted| &noted.served);
    if as_json {
        let epoch = &node.institution.agreement.epoch;
        print_json(&json!({
            "federation": epoch.protocol.name, "id": format!("{:#}", epoch.federation),
            "silo": epoch.roster.name(node.institution.me),
            "rounds_agreed": epoch.protocol.rounds, "rounds": rounds, "serves": note,
        }))?;
    } else {
        print(&node, &lines, note, served.is_ok())?;
    }
    for (round, file) in node.held.lost() {
        writeln!(
            io::stderr().lock(),
            "note: round {round} is not listed, because {} is gone or damaged",
            file.display()
        )?;
    }
    // A damaged model hides nothing else, and is no success.
    node.held.whole()?;
    Ok(served.map(drop)?)
}

/// The model of a coalition after a round, as a row of the table and as a document. Coalitions are
/// counted from 1.
fn coalition(node: &NodeModels, round: &HeldRound, number: u32) -> (ListCells, Value) {
    let held = &round.models[number as usize - 1];
    let choice = Choice {
        which: Which::Coalition(Some(number)),
        round: Some(round.round),
        instead: false,
    };
    // A blob may be missing, and some strategies have no single model.
    let measured = node.choose(choice).ok().and_then(|chosen| chosen.held_out);
    let own = round.coalition + 1 == number;
    let metric = measured.as_ref().and_then(|measured| {
        let value = measured.metrics.get(&measured.metric)?;
        Some(*value)
    });
    let line = [
        round.round.to_string(),
        format!(
            "{number} of {}{}",
            round.models.len(),
            if own { " *" } else { "" }
        ),
        held.contributions.to_string(),
        format!("{:.16}", format!("{:#}", held.hash)),
        match (held.here, metric) {
            (false, _) => "missing".to_owned(),
            (true, None) => "–".to_owned(),
            (true, Some(value)) => numbers::value(value, numbers::decimals(value).min(4)),
        },
    ];
    let model = json!({
        "coalition": number, "own": own, "contributions": held.contributions,
        "hash": format!("{:#}", held.hash), "here": held.here, "held_out": measured,
    });
    (line, model)
}

/// Prints the table for people, with the model that is served.
fn print(
    node: &NodeModels,
    lines: &[ListCells],
    served: Option<&ServedNote>,
    is_whole: bool,
) -> Result<(), NodeCommandError> {
    let epoch = &node.institution.agreement.epoch;
    let silo = epoch.roster.name(node.institution.me);
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(
        out,
        "{} in the federation {} ({:#})",
        numbers::plain(silo),
        numbers::plain(&epoch.protocol.name),
        epoch.federation
    )?;
    let last = node.held.rounds.last().map_or(0, |round| round.round);
    writeln!(
        out,
        "the state holds the models of {}, the last of them after round {last} of {}; * is the own \
         coalition's",
        numbers::plural(node.held.rounds.len(), "round"),
        epoch.protocol.rounds
    )?;
    let unit = match node.equipment.metric.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    print_table(&mut out, &head(node, unit.trim()), lines)?;
    match served {
        None if is_whole => writeln!(
            out,
            "serves: not chosen yet; a node chooses after the last round"
        )?,
        None => writeln!(out, "serves: what it chose cannot be read")?,
        Some(note) => {
            let held_out = note.held_out.as_ref();
            let value = held_out.and_then(|own| Some((own, own.metrics.get(&own.metric)?)));
            let value = value.map(|(own, value)| {
                let value = numbers::value(*value, numbers::decimals(*value).min(4));
                let unit = numbers::plain(&unit);
                format!(
                    ", {} {value}{unit} on {} held-out rows",
                    own.metric, own.rows
                )
            });
            let decided = note.decided.as_ref();
            let decided = decided.map(|decided| format!(", {}", decided.words()));
            let unmeasured = held_out.and_then(HeldOut::unmeasured);
            let value = value.or(unmeasured.map(|why| format!(", {why}")));
            writeln!(
                out,
                "serves: {}, after round {}{}{}{}",
                note.candidate.words(),
                note.round,
                value.unwrap_or_default(),
                decided.unwrap_or_default(),
                note.personal.words()
            )?;
        }
    }
    Ok(out.flush()?)
}

/// The names of the columns.
fn head(node: &NodeModels, unit: &str) -> ListCells {
    let metric = &node.equipment.metric;
    [
        "round".to_owned(),
        "coalition".into(),
        "contributions".into(),
        "model".into(),
        match unit {
            "" => format!("held-out {}", metric.name.key()),
            unit => format!("held-out {} ({})", metric.name.key(), numbers::plain(unit)),
        },
    ]
}

/// Prints the rows of the table below its head, each column as wide as its longest cell.
fn print_table(out: &mut impl Write, head: &ListCells, lines: &[ListCells]) -> io::Result<()> {
    let widths: Vec<usize> = (0..head.len())
        .map(|at| {
            let cells = lines.iter().map(|line| line[at].chars().count());
            cells.chain([head[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    for line in std::iter::once(head).chain(lines) {
        let cells = line
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
