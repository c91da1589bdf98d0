//! `rota solve`: the lead's mathematics on files of numbers, for people and scripts.

mod coalitions;
mod drawing;
mod merge;
mod robust_loss;
mod table;
mod topology;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use indicatif::ProgressBar;
use rota::methods::merging::UtilityError;
use rota::methods::robust::RobustError;
use rota::methods::topology::GraphError;
use rota::report::{letter, numbers, terminal::wrapped};
use serde::Serialize;

use super::CommandError;
use crate::cli::Solve;
use table::{Table, TableError};

/// Why there is no answer: one sentence, with what to try.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SolveError {
    /// A file.
    #[error(transparent)]
    Table(#[from] TableError),
    /// No parts of a division, or more than there are silos.
    #[error("{option} is {asked}, but {file} has {rows}: ask for 1 to {most}")]
    Parts {
        /// The option that says how many.
        option: &'static str,
        /// Parts asked for.
        asked: usize,
        /// The file of silos.
        file: String,
        /// `6 rows`.
        rows: String,
        /// Their number.
        most: usize,
    },
    /// Two wishes that exclude each other.
    #[error("--at-most needs a number of coalitions: auto chooses one by itself")]
    AtMostAuto,
    /// Two files that should be of one size.
    #[error("{file} has {got}, {other} has {expected}: both are about the same silos")]
    HeldOut {
        /// The file of held-out losses.
        file: String,
        /// Its rows.
        got: String,
        /// The file of losses.
        other: String,
        /// Its rows.
        expected: String,
    },
    /// Samples of other silos than there are.
    #[error("{file} has {got}, {updates} has {silos}: {expected} are needed, one a line")]
    Samples {
        /// The file of samples.
        file: String,
        /// Its numbers.
        got: String,
        /// The file of updates.
        updates: String,
        /// Its rows.
        silos: String,
        /// How many numbers there may be.
        expected: String,
    },
    /// Newcomers with another model.
    #[error("{file} has {got}, {updates} has {expected}: updates are of one model")]
    Newcomers {
        /// The file of newcomers.
        file: String,
        /// Its columns.
        got: String,
        /// The file of updates.
        updates: String,
        /// Its columns.
        expected: String,
    },
    /// What merging does not take: α.
    #[error("--alpha: {0}")]
    Alpha(#[from] UtilityError),
    /// What a topology does not take: the threshold.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A drawing cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// Several models, or one written as a column.
    #[error("{file} has {rows}: a model is one row")]
    ModelRows {
        /// The file of the model.
        file: String,
        /// Its rows.
        rows: String,
    },
    /// A model that does not fit the data.
    #[error(
        "{file} has {got}, but {data} has {features} ({names}): a model is one number for each, in \
         their order{hint}"
    )]
    ModelSize {
        /// The file of the model.
        file: String,
        /// Its numbers.
        got: String,
        /// The data.
        data: String,
        /// How many features they have.
        features: String,
        /// Which.
        names: String,
        /// What may be the reason.
        hint: &'static str,
    },
    /// An option that the loss has no use for.
    #[error("--label-cost is for --loss logistic: with absolute loss the target may move freely")]
    LabelCost,
    /// The radius, or the cost of a label.
    #[error(transparent)]
    Robust(#[from] RobustError),
}

impl SolveError {
    /// 2 where another file or other words on the command line would help, 1 otherwise.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Unwritable { .. } => 1,
            _ => 2,
        }
    }
}

/// What was found: JSON by its fields, text by hand.
trait Answer: Serialize {
    /// Writes it for people.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Computes and prints; `bar` shows that the program is at work.
pub(crate) fn run(solve: &Solve, bar: &ProgressBar) -> Result<(), CommandError> {
    match solve {
        Solve::Coalitions(asked) => print(asked.json, &coalitions::solve(asked, bar)?),
        Solve::Merge(asked) => print(asked.json, &merge::solve(asked)?),
        Solve::Topology(asked) => {
            let learned = topology::solve(asked)?;
            // The drawings first: who reads only the first lines of the text still has them. And
            // what was learned is printed also where they cannot be written.
            let drawn = drawing::write(asked, &learned);
            print(asked.json, &learned)?;
            for path in drawn?.iter().filter(|_| !asked.json) {
                writeln!(io::stdout().lock(), "\ndrawn in {}", path.display())?;
            }
            Ok(())
        }
        Solve::RobustLoss(asked) => print(asked.json, &robust_loss::solve(asked)?),
    }
}

fn print(json: bool, answer: &impl Answer) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        answer.text(&mut out)?;
    }
    Ok(out.flush()?)
}

/// Refuses a division of the silos of a file, one a row, into no parts or more than silos.
fn divisible(option: &'static str, asked: usize, silos: &Table) -> Result<(), SolveError> {
    let most = silos.rows().len();
    match (1..=most).contains(&asked) {
        true => Ok(()),
        false => Err(SolveError::Parts {
            option,
            asked,
            file: silos.file().to_owned(),
            rows: silos.height(),
            most,
        }),
    }
}

/// The members of every part of a division, whose parts are numbered from 0 without gaps.
fn members(assignment: &[u32]) -> Vec<Vec<usize>> {
    let parts = assignment.iter().max().map_or(0, |last| *last as usize + 1);
    let mut members = vec![Vec::new(); parts];
    for (silo, &part) in assignment.iter().enumerate() {
        members[part as usize].push(silo);
    }
    members
}

/// One line per part of a division; `more` comes before the members.
fn write_parts(out: &mut dyn Write, parts: &[Vec<usize>]) -> io::Result<()> {
    for (index, members) in parts.iter().enumerate() {
        let size = numbers::plural(members.len(), "silo");
        let line = format!("  {:<2} {size:>9}  {}", letter(index), listed(members));
        wrapped(out, 16, &line)?;
    }
    Ok(())
}

/// `0, 1, 5`.
fn listed(silos: &[usize]) -> String {
    let all: Vec<String> = silos.iter().map(usize::to_string).collect();
    all.join(", ")
}

/// Nine digits of a number, for people.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// What every text about silos says once.
const NUMBERED: &str = "Silos are numbered from 0, in the order of the rows.";
