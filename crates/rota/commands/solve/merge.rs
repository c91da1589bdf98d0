//! `rota solve merge`: groups of silos by greedy merging.

use std::io::{self, Write};
use std::path::Path;

use formatting::numbers;
use methods::Matrix;
use methods::merging::{Until, Utility};
use methods::similarity::{Vectors, gram_f64};
use report::letter;
use serde::Serialize;

use super::table::{NumberTable, TableError};
use super::{NUMBERED, SolveAnswer, SolveError, check_parts, members, write_parts};
use crate::cli::SolveMerge;

/// Largest number of samples that a `f64` represents exactly.
const MOST_SAMPLES: f64 = 9_007_199_254_740_992.0;

/// The result: groups, utilities and merges.
#[derive(Debug, Serialize)]
pub(super) struct MergeResult {
    groups: Vec<Vec<usize>>,
    utility: Vec<f64>,
    total_utility: f64,
    merges: Vec<MergeStep>,
    #[serde(flatten)]
    admission: Option<AdmissionResult>,
    #[serde(skip)]
    samples: Vec<u64>,
}

/// One merge of two groups, named by their first silos.
#[derive(Debug, Serialize)]
struct MergeStep {
    merge: [usize; 2],
    benefit: f64,
}

/// Groups of the newcomers.
#[derive(Debug, Serialize)]
struct AdmissionResult {
    admitted: Vec<AdmittedSilo>,
    newcomer_samples: Option<u64>,
}

/// The group of one newcomer, and the benefit of its best group.
#[derive(Debug, Serialize)]
struct AdmittedSilo {
    silo: usize,
    group: Option<u32>,
    benefit: f64,
    #[serde(skip)]
    best: u32,
}

/// Reads the updates, merges, and assigns newcomers if there are any.
pub(super) fn solve(asked: &SolveMerge) -> Result<MergeResult, SolveError> {
    let updates = NumberTable::read(&asked.updates)?;
    let silos = updates.rows().len();
    if let Some(groups) = asked.groups {
        check_parts("--groups", groups, &updates)?;
    }
    let newcomers = asked.admit.as_deref();
    let newcomers = newcomers
        .map(|path| newcomers_of(path, &updates))
        .transpose()?;
    let arriving = newcomers.as_ref().map_or(0, |table| table.rows().len());
    let (mut samples, newcomer_samples) = samples(&asked.samples, &updates, arriving)?;

    let all: Vec<&[f64]> = updates
        .rows()
        .iter()
        .chain(newcomers.iter().flat_map(NumberTable::rows))
        .map(Vec::as_slice)
        .collect();
    let gram = Vectors::new(&all).map(|rows| gram_f64(&rows));
    let gram = gram
        .expect("rows of one length")
        .expect("numbers are below the limit of a table");
    let utility = |clients: &[usize]| {
        let n = clients.len();
        let gram = Matrix::from_fn(n, n, |i, j| gram[(clients[i], clients[j])]);
        let samples: Vec<u64> = clients.iter().map(|&client| samples[client]).collect();
        Utility::new(&gram, &samples, &asked.alpha)
    };
    let own: Vec<usize> = (0..silos).collect();
    let merged = utility(&own)?.merge(asked.groups.map_or(Until::NoGain, Until::Groups));
    let merged = merged.expect("a number of groups that was checked");
    let assignment = &merged.grouping.assignment;
    let admit = |silo: usize| {
        let clients = [&own[..], &[silo]].concat();
        let found = utility(&clients)?.admit(assignment);
        let best = found
            .benefits
            .iter()
            .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)));
        let (&best, &benefit) = best.expect("there is at least one group");
        Ok(AdmittedSilo {
            silo,
            group: found.group,
            benefit,
            best,
        })
    };
    let admitted: Result<Vec<AdmittedSilo>, SolveError> =
        (silos..silos + arriving).map(admit).collect();
    let admission = AdmissionResult {
        admitted: admitted?,
        newcomer_samples,
    };
    samples.truncate(silos);
    Ok(MergeResult {
        groups: members(assignment),
        merges: merged
            .merges
            .iter()
            .map(|merge| MergeStep {
                merge: merge.groups,
                benefit: merge.benefit,
            })
            .collect(),
        admission: newcomers.is_some().then_some(admission),
        total_utility: merged.grouping.total,
        utility: merged.grouping.utilities,
        samples,
    })
}

/// The newcomers' updates, of the same length as the silos'.
fn newcomers_of(path: &Path, updates: &NumberTable) -> Result<NumberTable, SolveError> {
    let newcomers = NumberTable::read(path)?;
    if newcomers.columns() == updates.columns() {
        Ok(newcomers)
    } else {
        Err(SolveError::Newcomers {
            file: newcomers.file().to_owned(),
            got: newcomers.width(),
            updates: updates.file().to_owned(),
            expected: updates.width(),
        })
    }
}

/// The samples of silos and newcomers; and the mean, if it is assumed for the newcomers.
fn samples(
    path: &Path,
    updates: &NumberTable,
    newcomers: usize,
) -> Result<(Vec<u64>, Option<u64>), SolveError> {
    let table = NumberTable::read(path)?;
    let counted: Result<Vec<u64>, TableError> = (0..table.rows().len())
        .map(|row| match table.rows()[row][..] {
            [count] if count.fract() == 0.0 && (1.0..=MOST_SAMPLES).contains(&count) => {
                Ok(count as u64)
            }
            [count] => Err(table.wrong(
                row,
                0,
                format!(
                    "{count} is not a number of samples: expected a whole number of at least 1"
                ),
            )),
            _ => Err(table.wrong(
                row,
                1,
                "expected one number per line, the samples of a silo",
            )),
        })
        .collect();
    let mut counted = counted?;
    let silos = updates.rows().len();
    let (got, all) = (counted.len(), silos + newcomers);
    if got == all {
        return Ok((counted, None));
    }
    if got != silos {
        let mut expected = silos.to_string();
        if newcomers > 0 {
            expected += &format!(" or, with the newcomers', {all}");
        }
        return Err(SolveError::Samples {
            file: table.file().to_owned(),
            got: numbers::plural(got, "number"),
            updates: updates.file().to_owned(),
            silos: numbers::plural(silos, "silo"),
            expected,
        });
    }
    let sum: f64 = counted.iter().map(|&count| count as f64).sum();
    let mean = (sum / silos as f64).round() as u64;
    counted.resize(all, mean);
    Ok((counted, Some(mean)))
}

impl SolveAnswer for MergeResult {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let groups = numbers::plural(self.groups.len(), "group");
        let silos = numbers::plural(self.utility.len(), "silo");
        let merges = numbers::plural(self.merges.len(), "merge");
        let total = self.total_utility;
        writeln!(
            out,
            "{groups} of {silos} after {merges}, total utility {total:.6}."
        )?;
        writeln!(out, "{NUMBERED}\n")?;
        write_parts(out, &self.groups)?;
        writeln!(out, "\n  silo  group     samples       utility")?;
        let mut group = vec![0; self.utility.len()];
        for (index, members) in self.groups.iter().enumerate() {
            members.iter().for_each(|&silo| group[silo] = index);
        }
        for (silo, utility) in self.utility.iter().enumerate() {
            let (letter, samples) = (letter(group[silo]), self.samples[silo]);
            writeln!(
                out,
                "  {silo:>4}  {letter:<5}  {samples:>10}  {utility:>12.6}"
            )?;
        }
        if !self.merges.is_empty() {
            writeln!(out, "\nMerges in order (groups named by their first silo):")?;
        }
        for MergeStep {
            merge: [into, from],
            benefit,
        } in &self.merges
        {
            writeln!(out, "  {into:>4} + {from:<4}  benefit {benefit:>12.6}")?;
        }
        match &self.admission {
            Some(admission) => admission.text(out),
            None => Ok(()),
        }
    }
}

impl AdmissionResult {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "\nNewcomers, each assigned independently:")?;
        for AdmittedSilo {
            silo,
            group,
            benefit,
            best,
        } in &self.admitted
        {
            let best = letter(*best as usize);
            match group {
                Some(_) => writeln!(out, "  {silo:>4}  joins {best}, benefit {benefit:.6}")?,
                None => writeln!(
                    out,
                    "  {silo:>4}  stays alone: the best group is {best}, with benefit {benefit:.6}"
                )?,
            }
        }
        if let Some(samples) = self.newcomer_samples {
            writeln!(
                out,
                "Their samples are not in the file: each counts with the silos' mean, {samples}."
            )?;
        }
        Ok(())
    }
}
