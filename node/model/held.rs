//! The rounds and models that a state folder holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use agreement::Agreement;
use bytes::Bytes;
use methods::params::Gate;
use methods::serving::members_of;
use methods::strategy::Memory;
use methods::{Layout, Params};
use protocol::{Hash, codec};
use silo::outcome::Document;
use silo::{Adopted, JournalRecord};

use super::ModelError;
use crate::store;

/// The rounds whose models a state folder holds.
#[derive(Debug, Clone)]
pub struct HeldRounds {
    folder: PathBuf,
    /// Oldest first, at least one.
    pub rounds: Vec<HeldRound>,
    /// The rounds that should be among them and whose outcome is missing or damaged, oldest first.
    lost: Vec<LostRound>,
    /// The last round that was adopted.
    last: u64,
}

/// An adopted round whose outcome is missing or damaged.
#[derive(Debug, Clone)]
struct LostRound {
    round: u64,
    outcome: Hash,
}

/// One adopted round.
#[derive(Debug, Clone)]
pub struct HeldRound {
    /// The round.
    pub round: u64,
    /// Hash of the final block.
    pub block: Hash,
    /// Hash of the outcome.
    pub outcome: Hash,
    /// Hash of the certificate of a quorum; `None` where the journal has not got it.
    pub certificate: Option<Hash>,
    /// The silo's own coalition, from 0.
    pub coalition: u32,
    /// Hash of the silo's personal state.
    pub personal: Hash,
    /// The models, by coalition.
    pub models: Vec<HeldModel>,
    /// Coalition of every contribution.
    pub assignment: Vec<u32>,
    /// Numbers that the strategy keeps.
    pub memory: Memory,
}

/// The model of a coalition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldModel {
    /// Hash of the model.
    pub hash: Hash,
    /// Contributions that it was made from.
    pub contributions: usize,
    /// True if its blob is here.
    pub here: bool,
}

impl HeldRounds {
    /// Reads the state folder of a node of this federation. Needs no key and changes nothing; the node
    /// may be running.
    ///
    /// # Errors
    /// [`ModelError`]: no journal, one of another federation, no round yet.
    pub fn read(folder: &Path, agreement: &Agreement) -> Result<Self, ModelError> {
        if std::fs::symlink_metadata(folder.join("journal.redb")).is_err() {
            return Err(ModelError::Nothing(folder.to_owned()));
        }
        let journal = store::snapshot(folder)?;
        let agreed = agreement.epoch.federation;
        if journal.federation != agreed {
            return Err(ModelError::Federation {
                folder: folder.to_owned(),
                agreed,
                journal: journal.federation,
            });
        }
        let keep = agreement.epoch.protocol.keep_rounds as usize;
        Self::among(folder, &journal.records, keep).ok_or_else(|| {
            match LostRound::all(folder, &journal.records, 1).first() {
                Some(lost) => lost.error(folder),
                None => ModelError::NoneYet,
            }
        })
    }

    /// Returns whether the outcome of the last round is here: an earlier one is no answer for it.
    ///
    /// # Errors
    /// [`ModelError::Gone`]: what there is ends with an earlier round.
    pub fn whole(&self) -> Result<(), ModelError> {
        let mut lost = self.lost.iter();
        let last = lost.find(|lost| lost.round == self.last);
        last.map_or(Ok(()), |lost| Err(lost.error(&self.folder)))
    }

    /// The rounds before the last one that should be here and whose outcome is missing or damaged, each with the
    /// file of that.
    pub fn lost(&self) -> impl Iterator<Item = (u64, PathBuf)> + '_ {
        let path = |lost: &LostRound| store::blob_path(&self.folder, &lost.outcome);
        let earlier = self.lost.iter().filter(|lost| lost.round != self.last);
        earlier.map(move |lost| (lost.round, path(lost)))
    }

    /// The last `keep` rounds that the records of the journal in `folder` have as adopted and whose
    /// documents are here; `None` for no round.
    pub(crate) fn among(folder: &Path, records: &[JournalRecord], keep: usize) -> Option<Self> {
        let certificate = |block: &[u8; 32]| {
            records.iter().rev().find_map(|record| match record {
                JournalRecord::Protocol(protocol::Record::Final { blocks, proof }) => {
                    let has = blocks.iter().any(|own| own.hash().0 == *block);
                    has.then(|| Hash::of(&codec::encode(proof)))
                }
                _ => None,
            })
        };
        let rounds = adopted(records).take(keep).filter_map(|adopted| {
            let certificate = certificate(&adopted.block);
            HeldRound::read(folder, adopted, certificate)
        });
        let mut rounds: Vec<HeldRound> = rounds.collect();
        rounds.reverse();
        let last = adopted(records).next()?.round;
        (!rounds.is_empty()).then(|| Self {
            folder: folder.to_owned(),
            rounds,
            lost: LostRound::all(folder, records, keep),
            last,
        })
    }

    /// Since when the outcome of a round has been here; `None` if it is not.
    pub(crate) fn since(&self, round: &HeldRound) -> Option<SystemTime> {
        store::blob_since(&self.folder, &round.outcome)
    }

    /// The round of that number, or the last.
    ///
    /// # Errors
    /// [`ModelError::NoRound`]; [`ModelError::Gone`] where the round was adopted and its outcome is not here.
    pub fn round(&self, round: Option<u64>) -> Result<&HeldRound, ModelError> {
        let asked = round.unwrap_or(self.last);
        if let Some(lost) = self.lost.iter().find(|lost| lost.round == asked) {
            return Err(lost.error(&self.folder));
        }
        let found = match round {
            None => self.rounds.last(),
            Some(round) => self.rounds.iter().find(|held| held.round == round),
        };
        found.ok_or_else(|| ModelError::NoRound {
            round: round.unwrap_or(0),
            held: self
                .rounds
                .iter()
                .map(|held| held.round.to_string())
                .collect(),
        })
    }

    /// A model of a round, of this layout.
    ///
    /// # Errors
    /// [`ModelError`]: missing, or of another layout.
    pub fn model(
        &self,
        round: &HeldRound,
        hash: Hash,
        layout: &Arc<Layout>,
    ) -> Result<Params, ModelError> {
        let round = round.round;
        let blob: Bytes =
            store::blob(&self.folder, &hash).ok_or_else(|| gone(&self.folder, &hash, round))?;
        let gate = Gate {
            layout: layout.clone(),
            norm: f64::INFINITY,
        };
        gate.admit(blob).map_err(|error| ModelError::Blob {
            hash,
            round,
            why: error.to_string(),
        })
    }

    /// All models of a round, of this layout.
    ///
    /// # Errors
    /// [`ModelError`]: one is missing, or of another layout.
    pub fn models(
        &self,
        round: &HeldRound,
        layout: &Arc<Layout>,
    ) -> Result<Vec<Params>, ModelError> {
        let models = round.models.iter();
        models
            .map(|model| self.model(round, model.hash, layout))
            .collect()
    }

    /// Coalition of every contribution to a round; those to the last one before it where it had none, and told nothing.
    pub fn assignment(&self, round: &HeldRound) -> &[u32] {
        let mut before = self.rounds.iter().rev();
        let told = |held: &&HeldRound| held.round <= round.round && !held.assignment.is_empty();
        before
            .find(told)
            .map_or(&[][..], |held| held.assignment.as_slice())
    }

    /// The silo's personal state of a round, given the initial one.
    ///
    /// # Errors
    /// [`ModelError`]: missing, or of another layout.
    pub fn personal(&self, round: &HeldRound, initial: Params) -> Result<Params, ModelError> {
        if round.personal.0 == initial.hash() {
            return Ok(initial);
        }
        // One from a backup is no blob until a training has followed it.
        match super::kept_personal(&self.folder, initial.layout())? {
            Some(kept) if kept.hash() == round.personal.0 => Ok(kept),
            _ => self.model(round, round.personal, initial.layout()),
        }
    }
}

/// The rounds that records of a journal have as adopted, the last first.
fn adopted(records: &[JournalRecord]) -> impl Iterator<Item = &Adopted> {
    records.iter().rev().filter_map(|record| match record {
        JournalRecord::Adopted(adopted) => Some(adopted),
        _ => None,
    })
}

/// The document of a round's outcome; `None` where it is missing or damaged.
fn document(folder: &Path, adopted: &Adopted) -> Option<Document> {
    let document = store::blob(folder, &Hash(adopted.outcome))?;
    Document::read(&document).ok()
}

fn gone(folder: &Path, hash: &Hash, round: u64) -> ModelError {
    let path = store::blob_path(folder, hash);
    ModelError::Gone { path, round }
}

impl LostRound {
    /// Those of the last `keep` adopted rounds whose outcome cannot be read, oldest first.
    fn all(folder: &Path, records: &[JournalRecord], keep: usize) -> Vec<Self> {
        let rounds = adopted(records).take(keep);
        let lost = rounds.filter(|round| document(folder, round).is_none());
        let lost = lost.map(|round| Self {
            round: round.round,
            outcome: Hash(round.outcome),
        });
        let mut lost: Vec<Self> = lost.collect();
        lost.reverse();
        lost
    }

    fn error(&self, folder: &Path) -> ModelError {
        gone(folder, &self.outcome, self.round)
    }
}

impl HeldRound {
    /// `None` where the outcome's document is missing or damaged.
    fn read(folder: &Path, adopted: &Adopted, certificate: Option<Hash>) -> Option<Self> {
        let document = document(folder, adopted)?;
        let models = (0..)
            .zip(&document.models)
            .map(|(coalition, hash)| HeldModel {
                hash: *hash,
                contributions: members_of(&document.assignment, coalition),
                here: store::blob(folder, hash).is_some(),
            });
        Some(Self {
            round: adopted.round,
            block: Hash(adopted.block),
            outcome: Hash(adopted.outcome),
            certificate,
            coalition: adopted.coalition,
            personal: Hash(adopted.personal),
            models: models.collect(),
            assignment: document.assignment,
            memory: document.memory,
        })
    }
}
