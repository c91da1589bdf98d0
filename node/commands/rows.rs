//! Texts for a person about an institution's rows: what they are by the agreement, or all that does not fit.

use std::io::{self, Write};
use std::path::Path;

use crate::cli::OwnNames;
use crate::federation::beyond;
use crate::institution::{PASTE, RowsFit, fit, misfits, names_that_fit, surveyed};
use crate::split_key;
use agreement::Agreement;
use protocol::MemberIndex;
use task::data::DataError;
use task::data::{OwnRows, SplitKey};
use task::survey::Survey;

use super::{NodeCommandError, wrapped};

/// Prints lines.
pub(super) fn say(lines: &[String]) -> Result<(), NodeCommandError> {
    let mut out = io::stdout().lock();
    for line in lines {
        writeln!(out, "{}", wrapped(line))?;
    }
    Ok(writeln!(out)?)
}

/// Prints what the rows in `folder` are, of the institution called `name`, and gives it, or all that does
/// not fit; the inner error is the first that does not. `key` is its secret for a keyed split, where it has one.
pub(super) fn fitting(
    agreement: &Agreement,
    rows: &OwnRows,
    name: Option<&str>,
    (folder, key): (&Path, Option<&SplitKey>),
    doubts: Doubts,
) -> Result<Result<RowsFit, DataError>, NodeCommandError> {
    let survey = surveyed(agreement, rows, folder);
    // The counts are the same under every name and seed, or follow from the institution's secret.
    let found = match fit(agreement, rows, name.unwrap_or("silo"), folder, (0, key)) {
        Ok(found) => found,
        Err(error) => {
            let all = survey.as_ref().map(what_would_fit).unwrap_or_default();
            if !all.is_empty() {
                say(&all)?;
            }
            return Ok(Err(error));
        }
    };
    let survey = survey.unwrap_or_default();
    let whose = name.map_or_else(String::new, |name| format!(" of {name}"));
    let mut lines = vec![format!("The rows{whose}, read by the agreement:")];
    let columns = survey.columns.iter();
    lines.extend(columns.map(|(name, what)| format!("    {name}: {what}")));
    let mut me = agreement.epoch.roster.silos().iter();
    let me = me
        .position(|silo| Some(silo.name.as_str()) == name)
        .map(|at| MemberIndex(at as u16));
    let more = me.and_then(|me| beyond(agreement, me, found.split.train as u64));
    let roughly = (key.is_none() && split_key::is_needed(&agreement.task)).then(|| {
        "how many rows are held out is said roughly: an institution chooses them by a secret of its own".to_owned()
    });
    let notes = found.notes.iter().chain(&roughly).chain(&more);
    let notes = notes.chain(&survey.doubts);
    let notes = notes.map(|note| format!("note: {note}"));
    lines.extend(
        found
            .lines()
            .into_iter()
            .chain(notes)
            .map(|line| format!("  {line}")),
    );
    say(&lines)?;
    Ok(if doubts == Doubts::Refuse && !survey.doubts.is_empty() {
        Err(DataError::Config(
            "its numbers are far from those of the drafter's table (see the notes)".into(),
        ))
    } else {
        Ok(found)
    })
}

/// All that does not fit, and the names and codes with which it would, whole: for `node.toml` and as options.
pub(super) fn what_would_fit(survey: &Survey) -> Vec<String> {
    let misfits = misfits(survey);
    if misfits.is_empty() {
        return Vec::new();
    }
    let mut lines = [vec!["What does not fit:".to_owned()], misfits].concat();
    if let Some(names) = &survey.names {
        lines.extend([PASTE.to_owned(), String::new()]);
        lines.extend(names_that_fit(survey));
        lines.extend([
            String::new(),
            "or give the same to `join`, `sign` or `federation check`, of which the first two write it there (--absent COLUMN \
             and --missing COLUMN TEXT are other answers):"
                .to_owned(),
            String::new(),
            format!("  {}", OwnNames::options(names)),
        ]);
    }
    lines
}

/// Treatment of numbers far from the usual ones before a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubts {
    /// Such numbers prevent the signature, until somebody has looked.
    Refuse,
    /// Such numbers are only reported.
    Say,
}
