//! `rota federation new`: makes an agreement.

use std::io::{self, BufWriter, Write};

use agreement::{Joining, PrivacyTable, read_configuration};
use formatting::numbers;
use protocol::PublicKey;

use super::federation::{joining, status};
use super::model::write as write_model;
use super::more_columns::with_answers;
use super::{NodeCommandError, vacant, wrapped, write};
use crate::cli::{Columns, NewFederation, quoted};
use crate::draft::{BuiltInTexts, Composed, InitRequest, New, Protection, agreement, compose};
use crate::model::START;
use crate::prompt::Prompt;

/// Writes a new agreement, and says what it is.
pub(super) fn new(options: &NewFederation, built_in: BuiltInTexts) -> Result<(), NodeCommandError> {
    let file = &options.out;
    vacant(file, options.force)?;
    if options.scenario.is_some() && options.columns != Columns::default() {
        let why = "options about columns go with --table: a scenario says what its columns mean";
        return Err(NodeCommandError::Usage(why.into()));
    }
    let (composed, members) = composed(options, built_in)?;
    let mut plan = composed.plan;
    if let Some(rotation) = options.rotation {
        plan.protocol.rotation.0 = rotation;
    }
    if let Some(verification) = options.verification {
        plan.protocol.verification.0 = verification;
    }
    let New { text, start, pace } = agreement(&plan, &members)?;
    let beside = file.with_file_name(START);
    if start.is_some() {
        vacant(&beside, options.force)?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for line in &composed.says {
        writeln!(out, "{}", wrapped(line))?;
    }
    for line in &composed.protected {
        writeln!(out, "{}", wrapped(line))?;
    }
    out.flush()?;
    write(file, &text)?;
    writeln!(out, "written: {}", file.display())?;
    if let Some(pace) = pace {
        let heartbeats = numbers::plural(
            pace.heartbeats(plan.protocol.heartbeat.0) as usize,
            "heartbeat",
        );
        let line = format!(
            "patience: one training takes {} here, so that a round waits at least {heartbeats} for slow members \
             instead of {}",
            pace.words(),
            plan.protocol.usual_patience()
        );
        writeln!(out, "{}", wrapped(&line))?;
    }
    if let Some(start) = start {
        write_model(&beside, &start.document())?;
        let shown = beside.display();
        let line = format!(
            "written: {shown}, the values that the program of the scenario holds. All members start from \
             them: keep the file beside the agreement of your own node, from which the others fetch it, or \
             give it to them"
        );
        writeln!(out, "{}", wrapped(&line))?;
    }
    for (column, why) in &composed.left_out {
        let ignore = quoted(column);
        writeln!(
            out,
            "left out: {column}, {why}. `check` and `join` with such a file need --ignore {ignore}"
        )?;
    }
    let sums = plan.privacy.as_ref();
    let sums = sums.filter(|table| table.is_masked() && !table.is_noised());
    if sums.is_some_and(PrivacyTable::is_one_group) {
        writeln!(out, "{}", wrapped(ONE_GROUP))?;
    }
    status(&mut out, file, &text)?;
    Ok(out.flush()?)
}

/// Note on what one member can do to a federation of one group, and on what to choose instead.
const ONE_GROUP: &str = "note: any one member can stop this federation. While its node is down no sum is opened, and \
                         if it sends wrong numbers, on purpose or not, every sum is void, and after three in a row the \
                         group is suspended until the agreement changes. Nobody sees who corrupted a sum unless authors \
                         disclose (`rota blame`). To continue without a member, add noise (--epsilon), \
                         with which rounds need only `min-authors`; or several groups of at least three \
                         (--groups FILE), of which one that is stopped does not stop the others.";

/// Returns what members may read of each other's updates, where the options say so.
fn protection(options: &NewFederation) -> Result<Option<Protection>, NodeCommandError> {
    let Some(file) = &options.groups else {
        return Ok(options.protection.wanted());
    };
    let text = read_configuration(file)?;
    let table = PrivacyTable::groups(&file.display().to_string(), &text)?;
    Ok(Some(Protection::Masked(table)))
}

/// Returns what a new federation learns, and its members. Asks for what the options leave out where somebody
/// can be asked.
///
/// # Errors
/// [`NodeCommandError`]: something is missing or wrong.
fn composed(
    options: &NewFederation,
    built_in: BuiltInTexts,
) -> Result<(Composed, Vec<Joining>), NodeCommandError> {
    let wanted = InitRequest {
        scenario: options.scenario.clone(),
        built_in,
        tables: options.table.clone(),
        wishes: options.columns.wishes(),
        name: options.name.clone(),
        model: options.model.clone(),
        missing: options.missing.map(|rule| rule.rule()),
        strategy: options.strategy.clone(),
        rounds: options.rounds,
        seed: options.seed,
        protection: protection(options)?,
    };
    let member = |(name, key, rows): &(String, PublicKey, Option<u64>)| Joining {
        name: name.clone(),
        key: *key,
        rows: *rows,
        addresses: Vec::new(),
    };
    let mut members: Vec<_> = options.members.iter().map(member).collect();
    let asked = wanted.scenario.is_none() && wanted.tables.is_empty();
    let mut ask = Prompt::at_terminal();
    let composed = with_answers(&options.columns, ask.as_mut(), |columns, ask| {
        let wanted = InitRequest {
            wishes: columns.wishes(),
            ..wanted.clone()
        };
        compose(&wanted, ask)
    })?;
    if let Some(ask) = ask.as_mut().filter(|_| asked && members.is_empty()) {
        members = ask_members(ask)?;
    }
    Ok((composed, members))
}

/// Asks for members until an empty line.
fn ask_members(ask: &mut Prompt<'_>) -> Result<Vec<Joining>, NodeCommandError> {
    let mut members = Vec::new();
    loop {
        let question = "A member as NAME KEY ADDRESS, as `rota identity new --name` prints it (empty: \
                        no more)";
        let member = ask.ask(question, None, |answer| match answer {
            "" => Ok(None),
            line => joining(line).map(Some),
        })?;
        match member {
            Some(member) => members.push(member),
            None => return Ok(members),
        }
    }
}
