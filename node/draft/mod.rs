//! Drafts: a scenario for data that nobody has described yet (`rota init`), and an agreement for a
//! scenario (`rota federation new`).

mod agreement;
mod asked;
mod compose;
mod plan;
mod protect;
mod text;

use std::path::{Path, PathBuf};

use formatting::numbers::{plural, verb};
use task::TaskConfig;
use task::data::DataError;
use task::data::Target;
use task::propose::{SchemaProposal, Wishes};

pub use agreement::{New, NewError, agreement};
pub use compose::{ComposeError, Composed, InitRequest, compose};
pub use plan::{BuiltInTexts, FederationPlan, PlanError};
pub use protect::{Protection, epsilon};

use crate::prompt::Prompt;

/// A proposed scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioDraft {
    /// Proposed schema.
    pub proposal: SchemaProposal,
    /// The scenario as TOML.
    pub text: String,
    /// Fewest rows of a silo; smaller ones are left out.
    pub silo_rows: usize,
    /// Changes that were made because members are not to read every model, one sentence each.
    pub protected: Vec<String>,
}

/// Looks at the files and drafts a scenario that is to stand in `scenario`, and that goes with what members may
/// read of each other's updates. What only a person can say is
/// asked for where somebody can be asked.
///
/// # Errors
/// [`ComposeError`]: files that cannot be read, or from which no federation can learn; questions that nobody can be
/// asked.
pub fn draft(
    files: &[PathBuf],
    wishes: &Wishes,
    scenario: &Path,
    protection: &Protection,
    ask: Option<&mut Prompt<'_>>,
) -> Result<ScenarioDraft, ComposeError> {
    let mut wishes = wishes.clone();
    if let Some(count @ 0..2) = wishes.pretend_silos {
        return Err(ComposeError::Option(format!(
            "--split-into is {count}, and a federation needs at least 2"
        )));
    }
    let mut proposal = asked::proposed(files, &mut wishes, ask)?;
    let small = proposal.schema.min_rows;
    let enough = proposal
        .silos
        .iter()
        .filter(|(_, rows)| *rows >= small)
        .count();
    if enough < 2 {
        return Err(ComposeError::Option(format!(
            "a federation needs at least two silos with {small} rows each, found {enough}"
        )));
    }
    protect::fits(&proposal, protection)?;
    let mut protected = protect::proposed(&mut proposal, protection);
    let mut text = text::scenario(&proposal, files, &wishes, scenario, small, None);
    if *protection != Protection::Clear {
        let mut plan = FederationPlan::parse("the proposal for these files", &text)
            .map_err(|error| DataError::Config(error.to_string()))?;
        plan.rounds = protection.rounds().unwrap_or(plan.rounds);
        let rows = Some(proposal.rows);
        protected.extend(protect::fitted(&mut plan, protection, rows));
        if let TaskConfig::Table(task) = &plan.task
            && let Some(schema) = &task.schema
        {
            proposal.schema = schema.clone();
        }
        text = text::scenario(&proposal, files, &wishes, scenario, small, Some(&plan));
    }
    Ok(ScenarioDraft {
        proposal,
        text,
        silo_rows: small,
        protected,
    })
}

/// Returns what was found, for people: one line each.
pub fn findings(draft: &ScenarioDraft) -> Vec<String> {
    let ScenarioDraft { proposal, .. } = draft;
    let silos = proposal.silos.len();
    let mut rows: Vec<usize> = proposal.silos.iter().map(|(_, rows)| *rows).collect();
    rows.sort_unstable();
    let mut lines = vec![format!(
        "{} of {}, between {} and {} rows each (median {})",
        plural(proposal.rows, "row"),
        plural(silos, "silo"),
        rows[0],
        rows[silos - 1],
        rows[silos / 2],
    )];
    let small = rows.iter().filter(|rows| **rows < draft.silo_rows).count();
    if small > 0 {
        lines.push(format!(
            "{} {} fewer than {} rows and {} left out (`silo-rows`)",
            plural(small, "silo"),
            verb(small, "has", "have"),
            draft.silo_rows,
            verb(small, "is", "are"),
        ));
    }
    lines.extend(described(proposal));
    lines.extend(
        draft
            .protected
            .iter()
            .map(|line| format!("privacy: {line}")),
    );
    lines.extend(proposal.notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Returns what each column holds and what it is taken for, and which columns are left out and why: one line
/// each.
pub fn described(proposal: &SchemaProposal) -> Vec<String> {
    let target = proposal
        .schema
        .target
        .name
        .iter()
        .collect::<Vec<_>>()
        .join(", ");
    let target = match proposal.schema.target.survival {
        true => format!("when an event happens ({target})"),
        false => target,
    };
    let kind = match proposal.target() {
        Target::Classes(classes) => format!("{} ", classes.len()),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "to predict: {target}, {kind}{}",
        proposal.predicted
    )];
    let (columns, numbers) = (proposal.columns.len(), proposal.schema.encoded().len());
    lines.push(format!(
        "{} to learn from, encoded as {} per row:",
        plural(columns, "column"),
        plural(numbers, "number"),
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
        let left = proposal.left_out.len();
        lines.push(format!(
            "{} {} left out:",
            plural(left, "column"),
            verb(left, "is", "are")
        ));
        for (name, why) in &proposal.left_out {
            lines.push(format!("  {name:width$}  {why}"));
        }
    }
    lines
}
