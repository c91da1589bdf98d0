//! Drafts: a scenario for data that nobody has described yet (`rota init`), and an agreement for a
//! scenario (`rota federation new`).

mod agreement;
mod compose;
mod text;

use std::path::{Path, PathBuf};

use task::data::DataError;
use task::data::Target;
use task::propose::{SchemaProposal, Wishes, propose};

pub use agreement::{New, NewError, agreement};
pub use compose::{ComposeError, Composed, InitRequest, Prompt, compose};
pub use text::scenario;

/// A proposed scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioDraft {
    /// What was found.
    pub proposal: SchemaProposal,
    /// The scenario as TOML.
    pub text: String,
    /// Fewest rows of a silo; smaller ones are left out.
    pub silo_rows: usize,
}

/// Looks at the files and drafts a scenario that is to stand in `scenario`.
///
/// # Errors
/// [`DataError`]: files that cannot be read, or from which no federation can learn.
pub fn draft(
    files: &[PathBuf],
    wishes: &Wishes,
    scenario: &Path,
) -> Result<ScenarioDraft, DataError> {
    if let Some(count @ 0..2) = wishes.pretend_silos {
        return Err(DataError::Config(format!(
            "--pretend-silos is {count}, and a federation needs at least 2"
        )));
    }
    let proposal = propose(files, wishes)?;
    let small = proposal.schema.min_rows;
    let enough = proposal
        .silos
        .iter()
        .filter(|(_, rows)| *rows >= small)
        .count();
    if enough < 2 {
        return Err(DataError::Config(format!(
            "a federation needs at least two silos with {small} rows, and there are {enough}"
        )));
    }
    let text = text::scenario(&proposal, files, wishes, scenario, small);
    Ok(ScenarioDraft {
        proposal,
        text,
        silo_rows: small,
    })
}

/// What was found, for people: one line each.
pub fn findings(draft: &ScenarioDraft) -> Vec<String> {
    let ScenarioDraft { proposal, .. } = draft;
    let silos = proposal.silos.len();
    let mut rows: Vec<usize> = proposal.silos.iter().map(|(_, rows)| *rows).collect();
    rows.sort_unstable();
    let mut lines = vec![format!(
        "{} rows of {silos} silos, between {} and {} rows each (median {})",
        proposal.rows,
        rows[0],
        rows[silos - 1],
        rows[silos / 2],
    )];
    let small = rows.iter().filter(|rows| **rows < draft.silo_rows).count();
    if small > 0 {
        lines.push(format!(
            "{small} silos have fewer than {} rows and are left out (`silo-rows`)",
            draft.silo_rows
        ));
    }
    lines.extend(described(proposal));
    lines.extend(proposal.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// What each column holds and what it is taken for, and which columns are left out and why: one line
/// each.
pub fn described(proposal: &SchemaProposal) -> Vec<String> {
    let target = proposal
        .schema
        .target
        .name
        .iter()
        .collect::<Vec<_>>()
        .join(", ");
    let kind = match proposal.target() {
        Target::Classes(classes) => format!("{} ", classes.len()),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "to predict: {target}, {kind}{}",
        proposal.predicted
    )];
    let numbers = proposal.schema.encoded().len();
    lines.push(format!(
        "{} columns to learn from, which become {numbers} numbers a row:",
        proposal.columns.len()
    ));
    let width = proposal
        .columns
        .iter()
        .map(|(name, _)| name.chars().count())
        .max();
    let width = width.unwrap_or(0).min(32);
    for (name, what) in &proposal.columns {
        lines.push(format!("  {name:width$}  {what}"));
    }
    if !proposal.left_out.is_empty() {
        lines.push(format!("{} columns are left out:", proposal.left_out.len()));
        for (name, why) in &proposal.left_out {
            lines.push(format!("  {name:width$}  {why}"));
        }
    }
    lines
}
