//! `rota solve coalitions`: the best grouping of silos into coalitions.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use formatting::numbers;
use indicatif::ProgressBar;
use methods::Scores;
use methods::coalitions::choice::{
    GroupingCandidate, best, candidates, own_is_best, prove_at_most, transfer,
};
use methods::coalitions::{CoalitionProgram, Solution};
use report::terminal::wrapped;
use serde::Serialize;

use super::table::NumberTable;
use super::{NUMBERED, SolveAnswer, SolveError, check_parts, members, rounded, write_parts};
use crate::cli::{Number, SolveCoalitions};
use crate::progress::working;

/// Largest number of candidates in the text output.
const COMPARED: usize = 12;

/// Reason for which the program is valid.
const POSSIBLE: &str = "between 1 coalition and as many as there are silos, of which there is one";

/// The result: a grouping into coalitions and what is proven about it.
#[derive(Debug, Serialize)]
pub(super) struct CoalitionsResult {
    objective: f64,
    lower_bound: f64,
    gap: f64,
    optimal: bool,
    time_limit_hit: bool,
    number: usize,
    coalitions: Vec<Vec<usize>>,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_out: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<ComparedGrouping>,
    #[serde(skip)]
    notes: OutputNotes,
}

/// The best grouping found for one number of coalitions.
#[derive(Debug, Serialize)]
struct ComparedGrouping {
    coalitions: usize,
    objective: f64,
    held_out: f64,
}

/// Details of the text output only.
#[derive(Debug)]
struct OutputNotes {
    silos: usize,
    limit: Duration,
    at_most: bool,
    /// True if every silo's local model is the best on its own data.
    in_sample: bool,
    /// True if held-out losses were given.
    judged: bool,
}

/// Reads the losses, chooses the number of coalitions if requested, and solves the program.
pub(super) fn solve(
    asked: &SolveCoalitions,
    bar: &ProgressBar,
) -> Result<CoalitionsResult, SolveError> {
    let auto = asked.coalitions == Number::Auto;
    if asked.at_most && auto {
        return Err(SolveError::AtMostAuto);
    }
    let table = NumberTable::read(&asked.losses)?.square()?;
    if let Number::Of(number) = asked.coalitions {
        check_parts("--coalitions", number, &table)?;
    }
    let held_out = asked.held_out.as_deref();
    let held_out = held_out.map(|path| held_out_of(path, &table)).transpose()?;
    let losses = scores(&table);
    let judge = held_out.as_ref().unwrap_or(&losses);

    let _shown = working(bar, "grouping the silos");
    let start = Instant::now();
    let late = AtomicBool::new(false);
    let stop = || {
        let over = start.elapsed() >= asked.time_limit;
        late.fetch_or(over, Ordering::Relaxed);
        over
    };
    let (found, candidates) = match asked.coalitions {
        Number::Auto => choose(&losses, judge, asked.seed, &stop),
        Number::Of(number) => {
            let found = if asked.at_most {
                prove_at_most(&losses, number, asked.seed, &stop)
            } else {
                CoalitionProgram::new(&losses, number).map(|it| it.prove(asked.seed, &stop))
            };
            (found.expect(POSSIBLE), Vec::new())
        }
    };
    let coalitions = members(&found.assignment);
    Ok(CoalitionsResult {
        gap: gap(&found),
        number: coalitions.len(),
        coalitions,
        // The limit may have cut the choice of the number short, even if the grouping is optimal.
        time_limit_hit: late.into_inner() && (auto || !found.optimal),
        seconds: start.elapsed().as_secs_f64(),
        held_out: (auto || held_out.is_some()).then(|| transfer(judge, &found.assignment)),
        candidates: candidates.iter().map(ComparedGrouping::from).collect(),
        objective: found.objective,
        lower_bound: found.lower_bound,
        optimal: found.optimal,
        notes: OutputNotes {
            silos: losses.len(),
            limit: asked.time_limit,
            at_most: asked.at_most,
            in_sample: own_is_best(&losses),
            judged: held_out.is_some(),
        },
    })
}

/// The number of coalitions with the least loss by `judge`, and its grouping.
fn choose(
    losses: &Scores,
    judge: &Scores,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> (Solution, Vec<GroupingCandidate>) {
    let held_out = |grouping: &[u32]| transfer(judge, grouping);
    let candidates = candidates(losses, seed, held_out, stop).expect(POSSIBLE);
    let chosen = best(&candidates).expect(POSSIBLE);
    let program = CoalitionProgram::new(losses, chosen.coalitions).expect(POSSIBLE);
    let mut found = program.prove(seed, stop);
    let known = &chosen.solution;
    // The time may have ended before the proof began.
    if !found.optimal && known.objective < found.objective {
        let lower_bound = known.lower_bound.max(found.lower_bound);
        found = Solution {
            lower_bound,
            ..known.clone()
        };
    }
    (found, candidates)
}

/// Losses of the same silos on other data.
fn held_out_of(path: &Path, losses: &NumberTable) -> Result<Scores, SolveError> {
    let table = NumberTable::read(path)?.square()?;
    if table.rows().len() == losses.rows().len() {
        Ok(scores(&table))
    } else {
        Err(SolveError::HeldOut {
            file: table.file().to_owned(),
            got: table.height(),
            other: losses.file().to_owned(),
            expected: losses.height(),
        })
    }
}

fn scores(table: &NumberTable) -> Scores {
    Scores::from_rows(table.rows()).expect("a square table of numbers below the limit of a table")
}

/// Gap between objective and lower bound, relative to the larger of the two.
fn gap(found: &Solution) -> f64 {
    let above = found.objective - found.lower_bound;
    let size = found.objective.abs().max(found.lower_bound.abs());
    if above > 0.0 { above / size } else { 0.0 }
}

impl From<&GroupingCandidate> for ComparedGrouping {
    fn from(candidate: &GroupingCandidate) -> Self {
        Self {
            coalitions: candidate.coalitions,
            objective: candidate.solution.objective,
            held_out: candidate.held_out,
        }
    }
}

impl SolveAnswer for CoalitionsResult {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let OutputNotes {
            silos,
            limit,
            at_most,
            ..
        } = self.notes;
        let seconds = numbers::seconds(self.seconds);
        let coalitions = numbers::plural(self.number, "coalition");
        let silos = numbers::plural(silos, "silo");
        let chosen = if at_most {
            ", the best number allowed"
        } else {
            ""
        };
        let summary = if self.optimal {
            format!("{coalitions} of {silos}{chosen}, proven optimal in {seconds}.")
        } else {
            format!(
                "{coalitions} of {silos}{chosen}, not proven optimal in {seconds}: the \
                 optimum is at most {:.2} % better.",
                100.0 * self.gap
            )
        };
        wrapped(out, 0, &summary)?;
        if self.time_limit_hit {
            let limit = limit.as_secs_f64();
            writeln!(
                out,
                "The time limit of {limit} s was hit; --time-limit sets a longer one."
            )?;
        }
        writeln!(out, "{NUMBERED}\n")?;
        write_parts(out, &self.coalitions)?;
        writeln!(out, "\nobjective      {}", rounded(self.objective))?;
        if !self.optimal {
            writeln!(out, "lower bound    {}", rounded(self.lower_bound))?;
        }
        if let Some(held_out) = self.held_out.filter(|_| self.notes.judged) {
            writeln!(out, "held-out loss  {}", rounded(held_out))?;
        }
        self.compared(out)
    }
}

impl CoalitionsResult {
    /// Writes the best candidates for the number of coalitions.
    fn compared(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.candidates.is_empty() {
            return Ok(());
        }
        let chosen = |candidate: &&ComparedGrouping| candidate.coalitions == self.number;
        let mut candidates: Vec<&ComparedGrouping> = self.candidates.iter().collect();
        candidates.sort_by(|a, b| {
            let first = chosen(b).cmp(&chosen(a));
            first.then(a.held_out.total_cmp(&b.held_out))
        });
        candidates.truncate(COMPARED);
        candidates.sort_by_key(|candidate| candidate.coalitions);
        let (shown, compared) = (candidates.len(), self.candidates.len());
        let which = if shown == compared {
            ""
        } else {
            ", the best of them"
        };
        let most = self.notes.silos;
        writeln!(
            out,
            "\n{compared} of {most} numbers of coalitions compared{which}:"
        )?;
        let head = if self.notes.judged {
            "   held-out loss"
        } else {
            ""
        };
        writeln!(out, "  coalitions       objective{head}")?;
        for candidate in candidates {
            let (number, objective) = (candidate.coalitions, rounded(candidate.objective));
            write!(out, "  {number:>10}  {objective:>14}")?;
            if self.notes.judged {
                write!(out, "  {:>14}", rounded(candidate.held_out))?;
            }
            writeln!(out, "{}", if chosen(&candidate) { "  chosen" } else { "" })?;
        }
        let advice = match self.notes {
            OutputNotes { judged: true, .. } => return Ok(()),
            OutputNotes {
                in_sample: true, ..
            } => {
                "Every silo's local model is the best on its own data, as with losses measured on the \
                 training rows; then single silos always win. Give --held-out, or cross-fitted \
                 losses."
            }
            _ => {
                "The candidates were compared by the same losses that formed them, which favours \
                 many small coalitions: --held-out is fairer."
            }
        };
        writeln!(out)?;
        wrapped(out, 0, advice)
    }
}
