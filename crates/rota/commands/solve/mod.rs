//! `rota solve`: runs the lead's algorithms on files of numbers.

mod coalitions;
mod domains;
mod drawing;
mod merge;
mod robust_loss;
mod table;
mod topology;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use formatting::numbers;
use indicatif::ProgressBar;
use methods::Matrix;
use methods::clustering::kmeans::{Clusters, KMeans};
use methods::merging::UtilityError;
use methods::robust::RobustError;
use methods::similarity::{Vectors, squared_distances_f64};
use methods::topology::GraphError;
use node::exit::Exit;
use report::letter;
use report::terminal::wrapped;
use serde::Serialize;

use super::CommandError;
use crate::cli::Solve;
use table::{NumberTable, TableError};

/// Errors of `rota solve`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SolveError {
    /// An invalid file.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A number of parts that is 0 or above the number of silos.
    #[error("{option} is {asked}, but {file} has {rows}: ask for 1 to {most}")]
    Parts {
        /// The option.
        option: &'static str,
        /// Value of the option.
        asked: usize,
        /// The file of silos.
        file: String,
        /// `6 rows`.
        rows: String,
        /// The number of silos.
        most: usize,
    },
    /// `--at-most` with `--coalitions auto`.
    #[error("--at-most needs a number of coalitions: auto chooses the number itself")]
    AtMostAuto,
    /// A held-out table of another size than the losses.
    #[error("{file} has {got}, but {other} has {expected}: both must be about the same silos")]
    HeldOut {
        /// The file of held-out losses.
        file: String,
        /// Rows of the held-out table.
        got: String,
        /// The file of losses.
        other: String,
        /// Rows of the table of losses.
        expected: String,
    },
    /// A wrong number of sample counts.
    #[error("{file} has {got}, but {updates} has {silos}: {expected} are needed, one per line")]
    Samples {
        /// The file of samples.
        file: String,
        /// Numbers in the file of samples.
        got: String,
        /// The file of updates.
        updates: String,
        /// Rows of the file of updates.
        silos: String,
        /// Possible count of numbers.
        expected: String,
    },
    /// Newcomers' updates of another length.
    #[error(
        "{file} has {got}, but {updates} has {expected}: all updates must be of the same model"
    )]
    Newcomers {
        /// The file of newcomers.
        file: String,
        /// Columns of the file of newcomers.
        got: String,
        /// The file of updates.
        updates: String,
        /// Columns of the file of updates.
        expected: String,
    },
    /// A folder that holds no models of a run.
    #[error("{}: {reason}; write such a folder with rota simulate SCENARIO --keep DIR", file.display())]
    Kept {
        /// The file that is missing or wrong.
        file: PathBuf,
        /// Description of the fault.
        reason: String,
    },
    /// An invalid α.
    #[error("--alpha: {0}")]
    Alpha(#[from] UtilityError),
    /// An invalid similarity threshold.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A drawing that cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// A model that is not exactly one row.
    #[error("{file} has {rows}: a model must be one row")]
    ModelRows {
        /// The file of the model.
        file: String,
        /// Rows of the model.
        rows: String,
    },
    /// A model that does not fit the data.
    #[error(
        "{file} has {got}, but {data} has {features}: a model needs one number per feature, \
         in their order{hint}"
    )]
    ModelSize {
        /// The file of the model.
        file: String,
        /// Numbers of the model.
        got: String,
        /// The data.
        data: String,
        /// Number of features in them, and their names.
        features: String,
        /// A possible reason.
        hint: &'static str,
    },
    /// `--label-cost` without logistic loss.
    #[error(
        "--label-cost is only for --loss logistic: with absolute loss the target may move freely"
    )]
    LabelCost,
    /// An invalid radius or label cost.
    #[error(transparent)]
    Robust(#[from] RobustError),
}

impl SolveError {
    /// Returns how the program ends with it.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Unwritable { .. } => Exit::Failure,
            _ => Exit::Input,
        }
    }
}

/// A result that prints as JSON (by its fields) or as text.
trait SolveAnswer: Serialize {
    /// Writes the result as text.
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;
}

/// Computes and prints the result; `bar` shows progress.
pub(crate) fn run(solve: &Solve, bar: &ProgressBar) -> Result<(), CommandError> {
    match solve {
        Solve::Coalitions(asked) => print(asked.json, &coalitions::solve(asked, bar)?),
        Solve::Domains(asked) => print(asked.json, &domains::solve(asked)?),
        Solve::Merge(asked) => print(asked.json, &merge::solve(asked)?),
        Solve::Topology(asked) => {
            let learned = topology::solve(asked)?;
            // Write drawings first, so that they exist even if the reader closes the pipe early; print
            // the result even if they cannot be written.
            let drawn = drawing::write(asked, &learned);
            print(asked.json, &learned)?;
            for path in drawn?.iter().filter(|_| !asked.json) {
                writeln!(
                    io::stdout().lock(),
                    "\ndrawing written to {}",
                    path.display()
                )?;
            }
            Ok(())
        }
        Solve::RobustLoss(asked) => print(asked.json, &robust_loss::solve(asked)?),
    }
}

fn print(json: bool, answer: &impl SolveAnswer) -> Result<(), CommandError> {
    let mut out = BufWriter::new(io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, answer).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        answer.text(&mut out)?;
    }
    Ok(out.flush()?)
}

/// Refuses to group the silos of a file into 0 parts or more parts than silos.
fn check_parts(option: &'static str, asked: usize, silos: &NumberTable) -> Result<(), SolveError> {
    let most = silos.rows().len();
    check_number(option, asked, silos.file(), silos.height(), most)
}

/// Refuses 0 parts or more parts than the `most` silos of a file that has `rows`.
fn check_number(
    option: &'static str,
    asked: usize,
    file: &str,
    rows: String,
    most: usize,
) -> Result<(), SolveError> {
    if (1..=most).contains(&asked) {
        Ok(())
    } else {
        Err(SolveError::Parts {
            option,
            asked,
            file: file.to_owned(),
            rows,
            most,
        })
    }
}

/// k-means of rows of one length, as many clusters as rows at most.
fn clusters_of(rows: &[Vec<f64>], clusters: usize, seed: u64) -> Clusters {
    let all = Vectors::new(rows).expect("rows of one length");
    let squares = squared_distances_f64(&all).expect("numbers are below the limit of a table");
    // Inner products with the first row as the origin.
    let gram = Matrix::from_fn(rows.len(), rows.len(), |i, j| {
        (squares[(i, 0)] + squares[(j, 0)] - squares[(i, j)]) / 2.0
    });
    let found = KMeans::new(clusters, seed).fit(&gram);
    found.expect("a number of clusters that was checked")
}

/// The members of every part of an assignment whose parts are numbered from 0 without gaps.
fn members(assignment: &[u32]) -> Vec<Vec<usize>> {
    let parts = assignment.iter().max().map_or(0, |last| *last as usize + 1);
    let mut members = vec![Vec::new(); parts];
    for (silo, &part) in assignment.iter().enumerate() {
        members[part as usize].push(silo);
    }
    members
}

/// Writes one line per part: its letter, size and members.
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

/// A number rounded to nine digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.8e}").parse().unwrap_or(value)
}

/// Explanation of silo numbers in every text.
const NUMBERED: &str = "Silos are numbered from 0, in the order of the rows.";
