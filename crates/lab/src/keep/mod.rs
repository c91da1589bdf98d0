//! Writes what a run learned, round by round, for those who want to look at it with their own tools.

mod exported;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use learn::StudySilo;
use methods::strategy::{SAMPLING_SEED, State, findings};
use serde::Serialize;
use serde_json::Value;
use simulations::{Contributions, Federation, RunError, RunRecord, Scenario};

use self::exported::CardSource;
use crate::summary::{AdoptedModel, SiloMerges, adopted_models, last_adopted};

/// Error of a run whose result is not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The run itself failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        reason: io::Error,
    },
}

/// The table of contents, `index.json`.
#[derive(Debug, Serialize)]
struct Index {
    scenario: String,
    seed: u64,
    strategy: String,
    rounds: Vec<KeptRound>,
    /// The model that each silo has in the end, with its card: `rota model predict --model` takes it.
    exported: Vec<OfSilo>,
    /// Reason for which there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_exported: Option<String>,
}

/// Files of a round; paths are relative to the folder.
#[derive(Debug, Serialize)]
struct KeptRound {
    round: u64,
    /// The models that became final.
    models: Vec<KeptModel>,
    /// Contributions of members.
    contributions: Vec<OfSilo>,
    /// Parameters that stay at each silo.
    personal: Vec<OfSilo>,
    /// Losses of the cross-evaluation as a table without names: rows and columns in the order of
    /// `contributions`, the row is whose data, the column whose model.
    #[serde(skip_serializing_if = "Option::is_none")]
    losses: Option<String>,
    /// Merges of silos into groups, in rounds that have them.
    #[serde(skip_serializing_if = "Option::is_none")]
    merges: Option<SiloMerges>,
    /// Memory of the strategy from this round to the next, by name: weights, groups, graphs.
    kept: BTreeMap<String, Value>,
}

#[derive(Debug, Serialize)]
struct KeptModel {
    file: String,
    silos: Vec<String>,
}

#[derive(Debug, Serialize)]
struct OfSilo {
    silo: String,
    file: String,
}

/// Writes into `folder`, which is made, the models, contributions, personal parts and losses of every
/// round, the model of each of these silos in the end with its card, and `index.json`, which names the files.
/// Models are safetensors files.
///
/// # Errors
/// [`KeepError`]: a file cannot be written.
pub(crate) fn write(
    folder: &Path,
    scenario: &Scenario,
    silos: &[StudySilo],
    federation: &Federation,
    recorded: &RunRecord,
) -> Result<(), KeepError> {
    let adopted = adopted_models(&recorded.notices);
    let keep = Keep { folder, federation };
    let rounds = recorded.rounds.iter().map(|round| {
        let of_round = adopted.iter().filter(|one| one.round == round.round);
        let mut of_round: Vec<_> = of_round.collect();
        of_round.sort_by_key(|one| one.silo);
        let contributed = recorded.contributions.iter();
        let contributed = contributed.clone().find(|one| one.round == round.round);
        keep.round(round.round, &of_round, contributed)
    });
    let rounds = rounds.collect::<Result<_, _>>()?;
    let (exported, not_exported) = match CardSource::of(scenario, federation) {
        Ok(source) => keep.exported(&source, silos, &adopted)?,
        Err(why) => (Vec::new(), Some(why.to_string())),
    };
    let index = Index {
        scenario: scenario.name.clone(),
        seed: federation.seed,
        strategy: scenario.strategy.name().into(),
        rounds,
        exported,
        not_exported,
    };
    let text = serde_json::to_string_pretty(&index).expect("an index is texts and numbers");
    keep.file("index.json", text.as_bytes())
}

/// Returns what a strategy keeps between rounds, by name, as a report shows it.
pub(crate) fn strategy_memory(state: &State) -> impl Iterator<Item = (String, Value)> {
    // An agreed seed measures nothing.
    let memory = state
        .memory
        .iter()
        .filter(|(name, _)| *name != SAMPLING_SEED);
    memory.map(|(name, kept)| (name.to_owned(), kept.json()))
}

struct Keep<'a> {
    folder: &'a Path,
    federation: &'a Federation,
}

impl Keep<'_> {
    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), KeepError> {
        let file = self.folder.join(name);
        let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(&file, bytes));
        written.map_err(|reason| KeepError::File { file, reason })
    }

    fn name(&self, silo: usize) -> String {
        let silos = self.federation.epoch.roster.silos();
        silos
            .get(silo)
            .map_or(String::new(), |silo| silo.name.clone())
    }

    /// Writes the model that each silo has in the end, with its card; or says why the first has none.
    fn exported(
        &self,
        source: &CardSource<'_>,
        silos: &[StudySilo],
        adopted: &[AdoptedModel],
    ) -> Result<(Vec<OfSilo>, Option<String>), KeepError> {
        let mut written = Vec::new();
        for last in last_adopted(adopted, silos.len()).into_iter().flatten() {
            let at = last.silo;
            let bytes = match source.file(&silos[at], &last) {
                Ok(bytes) => bytes,
                Err(why) => return Ok((written, Some(why.to_string()))),
            };
            let file = format!("exported/silo-{at}.safetensors");
            self.file(&file, &bytes)?;
            let silo = self.name(at);
            written.push(OfSilo { silo, file });
        }
        Ok((written, None))
    }

    fn round(
        &self,
        round: u64,
        adopted: &[&AdoptedModel],
        contributed: Option<&Contributions>,
    ) -> Result<KeptRound, KeepError> {
        let (mut models, mut personal) = (BTreeMap::<u32, KeptModel>::new(), Vec::new());
        for one in adopted {
            let (model, own) = &one.model;
            let file = format!("round-{round:04}/coalition-{}.safetensors", one.coalition);
            if !models.contains_key(&one.coalition) {
                self.file(&file, &model.document())?;
            }
            let kept = models.entry(one.coalition).or_insert_with(|| KeptModel {
                file,
                silos: Vec::new(),
            });
            kept.silos.push(self.name(one.silo));
            if !own.layout().is_empty() {
                let file = format!("round-{round:04}/silo-{}-personal.safetensors", one.silo);
                self.file(&file, &own.document())?;
                let silo = self.name(one.silo);
                personal.push(OfSilo { silo, file });
            }
        }
        let mut contributions = Vec::new();
        for (author, document) in contributed.iter().flat_map(|one| &one.models) {
            let at = usize::from(author.0);
            let file = format!("round-{round:04}/silo-{at}.safetensors");
            self.file(&file, document)?;
            let silo = self.name(at);
            contributions.push(OfSilo { silo, file });
        }
        // All have adopted the same.
        let kept = adopted.first().into_iter();
        let kept = kept.flat_map(|one| {
            let found = findings(&one.state).into_iter();
            strategy_memory(&one.state).chain(found.map(|(name, value)| (name, value.json())))
        });
        let losses = contributed.and_then(|one| one.losses.as_ref());
        let losses = losses.map(|rows| -> Result<String, KeepError> {
            let file = format!("round-{round:04}/losses.csv");
            let line = |row: &Vec<f64>| {
                let cells: Vec<_> = row.iter().map(f64::to_string).collect();
                cells.join(",") + "\n"
            };
            let text: String = rows.iter().map(line).collect();
            self.file(&file, text.as_bytes())?;
            Ok(file)
        });
        Ok(KeptRound {
            round,
            models: models.into_values().collect(),
            contributions,
            personal,
            losses: losses.transpose()?,
            merges: contributed
                .and_then(|one| one.merges.as_ref())
                .map(|of| SiloMerges::new(of, |author| self.name(author.at()))),
            kept: kept.collect(),
        })
    }
}
