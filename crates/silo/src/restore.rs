//! Where a silo goes on from, read back from its journal and blobs.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use methods::Params;
use methods::params::Gate;
use protocol::member::Start;
use protocol::{Hash, Record};

use crate::actors::worker::{Ground, Left, Own, Personal, outcome_gate};
use crate::config::SiloConfig;
use crate::needed::needed;
use crate::outcome::{Document, Settled, genesis};
use crate::spawn::SpawnError;
use crate::surroundings::{Adopted, Blobs, Entry, Journal};

/// Where a silo goes on from.
pub(crate) struct Restored {
    pub(crate) start: Start,
    pub(crate) ground: Arc<Ground>,
    pub(crate) own: Own,
    pub(crate) trained: Option<Left>,
    pub(crate) kept: VecDeque<Vec<Hash>>,
}

/// What a journal says.
#[derive(Default)]
struct Said {
    records: Vec<Record>,
    adopted: Vec<Adopted>,
    /// Round, contribution, personal state.
    trained: Option<(u64, Hash, [u8; 32])>,
    /// It began anew after a loss, and the silo has not acted since: then it says nothing else.
    lost: bool,
}

/// Reads the journal; begins it anew if it is lost.
pub(crate) fn restore(
    config: &SiloConfig,
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
) -> Result<Restored, SpawnError> {
    let genesis = genesis(&*config.learner, config.initial_seed);
    let agreed = config.member.epoch.charter.start;
    if genesis.hash != agreed {
        return Err(SpawnError::Start {
            agreed,
            ours: genesis.hash,
        });
    }
    let said = read(load(config, journal)?);
    let store = Store { config, blobs };
    let keep = config.member.epoch.charter.keep as usize;
    let kept = said.adopted.iter().rev().take(keep).rev();
    let kept = kept
        .map(|adopted| adopted.blobs.iter().copied().map(Hash).collect())
        .collect();
    let (ground, own) = match said.adopted.last() {
        None => (
            genesis,
            Own {
                coalition: 0,
                personal: store.initial(),
            },
        ),
        Some(adopted) => {
            if !said.records.iter().any(|record| finalises(record, adopted)) {
                return Err(SpawnError::Damaged {
                    round: adopted.round,
                    why: "no final block of the journal has this outcome".into(),
                });
            }
            let settled = store.outcome(adopted)?;
            let models = settled.state.models.len();
            if adopted.coalition as usize >= models {
                return Err(SpawnError::Damaged {
                    round: adopted.round,
                    why: format!("coalition {} of {models}", adopted.coalition),
                });
            }
            let personal = store.personal(adopted.round, adopted.personal)?;
            (
                settled,
                Own {
                    coalition: adopted.coalition,
                    personal,
                },
            )
        }
    };
    let trained = said
        .trained
        .filter(|(round, ..)| *round > ground.document.round);
    let left = |(round, blob, personal)| {
        Ok::<_, SpawnError>(Left {
            round,
            blob,
            personal: store.personal(round, personal)?,
        })
    };
    let trained = trained.map(left).transpose()?;
    let fresh = said.records.is_empty() && said.adopted.is_empty();
    let start = match (said.lost, fresh) {
        (true, _) => Start::Lost,
        (false, true) => Start::New,
        (false, false) => Start::Kept(said.records),
    };
    let ground = Arc::new(Ground::new(config, &ground));
    Ok(Restored {
        start,
        ground,
        own,
        trained,
        kept,
    })
}

/// What of the journal is needed. The rest is dropped from it when there is more of that; and for a
/// silo whose journal is lost at once, because it is told everything from the beginning on.
fn load(config: &SiloConfig, journal: &mut dyn Journal) -> Result<Vec<Entry>, SpawnError> {
    let mut entries = journal.load()?;
    let before = entries.len();
    if config.journal_lost {
        entries.push(Entry::Lost);
    }
    let needed = needed(entries, config.member.epoch.charter.keep as usize);
    let lost = needed == [Entry::Lost];
    if before > 2 * needed.len() || (lost && before != 1) {
        journal.replace(needed.clone())?;
    }
    Ok(needed)
}

fn read(entries: Vec<Entry>) -> Said {
    let mut said = Said::default();
    for entry in entries {
        match entry {
            Entry::Lost => said.lost = true,
            Entry::Adopted(adopted) => said.adopted.push(adopted),
            Entry::Trained {
                round,
                blob,
                personal,
            } => {
                said.trained = Some((round, Hash(blob), personal));
            }
            Entry::Protocol(record) => said.records.push(record),
        }
    }
    said
}

/// Whether a block made this outcome final.
fn finalises(record: &Record, adopted: &Adopted) -> bool {
    let Record::Final { blocks, .. } = record else {
        return false;
    };
    blocks.iter().any(|block| {
        block.learning().is_some_and(|learning| {
            (learning.round, learning.outcome.0) == (adopted.round, adopted.outcome)
        }) && block.hash().0 == adopted.block
    })
}

struct Store<'a> {
    config: &'a SiloConfig,
    blobs: &'a dyn Blobs,
}

impl Store<'_> {
    fn get(&self, round: u64, hash: Hash) -> Result<Bytes, SpawnError> {
        self.blobs
            .get(&hash)
            .ok_or(SpawnError::Missing { round, hash })
    }

    fn outcome(&self, adopted: &Adopted) -> Result<Settled, SpawnError> {
        let round = adopted.round;
        let damaged = |why| SpawnError::Damaged { round, why };
        let blob = self.get(round, Hash(adopted.outcome))?;
        let document = Document::read(&blob).map_err(damaged)?;
        let gate = outcome_gate(self.config);
        let model = |hash: &Hash| self.model(round, *hash, &gate);
        let models = document
            .models
            .iter()
            .map(model)
            .collect::<Result<_, _>>()?;
        let settled = Settled::assemble(blob, document, models);
        if settled.hash.0 != adopted.outcome || settled.document.round != round {
            return Err(damaged("its document is another one".into()));
        }
        Ok(settled)
    }

    fn model(&self, round: u64, hash: Hash, gate: &Gate) -> Result<Params, SpawnError> {
        let damaged = |why: String| SpawnError::Damaged { round, why };
        let model = gate
            .admit(self.get(round, hash)?)
            .map_err(|e| damaged(e.to_string()))?;
        if model.hash() != hash.0 {
            return Err(damaged(format!(
                "blob {hash} has other bytes than it was kept with"
            )));
        }
        Ok(model)
    }

    fn initial(&self) -> Personal {
        Personal::new(
            self.config
                .learner
                .initial_personal(self.config.initial_seed),
        )
    }

    fn personal(&self, round: u64, hash: [u8; 32]) -> Result<Personal, SpawnError> {
        let initial = self.initial();
        if initial.hash.0 == hash {
            return Ok(initial);
        }
        let gate = Gate {
            layout: initial.params.layout().clone(),
            norm: f64::INFINITY,
        };
        Ok(Personal::new(self.model(round, Hash(hash), &gate)?))
    }
}
