//! `rota solve domains`: a domain for every silo, by k-means on models that silos trained alone.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use formatting::numbers;
use report::terminal::wrapped;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use super::table::NumberTable;
use super::{NUMBERED, SolveAnswer, SolveError, check_number, check_parts, clusters_of, members};
use crate::cli::SolveDomains;

/// Largest value of a model: squares of distances stay finite.
const LARGEST: f32 = 1e18;

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct DomainsResult {
    domains: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    silos: Option<Vec<String>>,
    inertia: f64,
    #[serde(skip)]
    round: u64,
}

/// The models of a folder of `rota simulate --keep`.
struct KeptModels {
    round: u64,
    silos: Vec<String>,
    rows: Vec<Vec<f64>>,
}

/// Fields of `index.json` that are read.
#[derive(Deserialize)]
struct IndexFile {
    rounds: Vec<IndexRound>,
}

#[derive(Deserialize)]
struct IndexRound {
    round: u64,
    contributions: Vec<IndexSilo>,
}

#[derive(Deserialize)]
struct IndexSilo {
    silo: String,
    file: String,
}

/// Reads the models, and clusters them.
pub(super) fn solve(asked: &SolveDomains) -> Result<DomainsResult, SolveError> {
    if !asked.models.is_dir() {
        let table = NumberTable::read(&asked.models)?;
        check_parts("--domains", asked.domains, &table)?;
        return Ok(found(asked, table.rows(), None, 0));
    }
    let kept = KeptModels::read(&asked.models)?;
    let most = kept.rows.len();
    let (folder, silos) = (
        asked.models.display().to_string(),
        numbers::plural(most, "silo"),
    );
    check_number("--domains", asked.domains, &folder, silos, most)?;
    Ok(found(asked, &kept.rows, Some(kept.silos), kept.round))
}

/// The domains of models of one length, of which there are at least as many.
fn found(
    asked: &SolveDomains,
    models: &[Vec<f64>],
    silos: Option<Vec<String>>,
    round: u64,
) -> DomainsResult {
    let clusters = clusters_of(models, asked.domains, asked.seed);
    DomainsResult {
        domains: clusters.labels,
        inertia: clusters.inertia,
        silos,
        round,
    }
}

impl KeptModels {
    /// The contributions of the last round that has any.
    fn read(folder: &Path) -> Result<Self, SolveError> {
        let file = folder.join("index.json");
        let wrong = |reason: String| SolveError::Kept {
            file: file.clone(),
            reason,
        };
        let text = fs::read_to_string(&file).map_err(|error| wrong(error.to_string()))?;
        let index: IndexFile =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let mut rounds = index.rounds.into_iter().rev();
        let last = rounds.find(|round| !round.contributions.is_empty());
        let last = last.ok_or_else(|| wrong("no round has contributions".into()))?;
        let (mut silos, mut rows) = (Vec::new(), Vec::<Vec<f64>>::new());
        for one in last.contributions {
            let file = folder.join(&one.file);
            let row = fs::read(&file).map_err(|error| error.to_string());
            let row = row.and_then(|bytes| weights(&bytes));
            let row = row.and_then(|row| match rows.first() {
                Some(first) if first.len() != row.len() => Err(format!(
                    "{} weights, but the model of {} has {}",
                    row.len(),
                    silos[0],
                    first.len()
                )),
                _ => Ok(row),
            });
            rows.push(row.map_err(|reason| SolveError::Kept { file, reason })?);
            silos.push(one.silo);
        }
        Ok(Self {
            round: last.round,
            silos,
            rows,
        })
    }
}

/// All weights of a model, tensors in the order of their names.
fn weights(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
    let mut tensors = file.tensors();
    tensors.sort_by(|one, other| one.0.cmp(&other.0));
    let mut all = Vec::new();
    for (name, tensor) in tensors {
        if tensor.dtype() != Dtype::F32 {
            return Err(format!("{name} is not of 32-bit numbers"));
        }
        for value in tensor.data().as_chunks::<4>().0 {
            let value = f32::from_le_bytes(*value);
            if value.is_nan() || value.abs() > LARGEST {
                return Err(format!("{name} has a value of {value}"));
            }
            all.push(f64::from(value));
        }
    }
    Ok(all)
}

impl SolveAnswer for DomainsResult {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let parts = members(&self.domains);
        let domains = numbers::plural(parts.len(), "domain");
        let silos = numbers::plural(self.domains.len(), "silo");
        match &self.silos {
            None => writeln!(out, "{domains} of {silos}.\n{NUMBERED}\n")?,
            Some(_) => writeln!(
                out,
                "{domains} of {silos}, by their models of round {}.\n",
                self.round
            )?,
        }
        let name = |&silo: &usize| match &self.silos {
            None => silo.to_string(),
            Some(names) => names[silo].clone(),
        };
        for (domain, part) in parts.iter().enumerate() {
            let size = numbers::plural(part.len(), "silo");
            let named: Vec<_> = part.iter().map(name).collect();
            wrapped(
                out,
                16,
                &format!("  {domain:<2} {size:>9}  {}", named.join(", ")),
            )?;
        }
        let each: Vec<String> = self.domains.iter().map(u32::to_string).collect();
        writeln!(
            out,
            "\nIn [task.table] of a scenario for fedcg with given = true:\n"
        )?;
        writeln!(out, "domains = [{}]", each.join(", "))
    }
}
