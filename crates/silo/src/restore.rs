//! Restores the state of a silo from its journal and blobs.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use methods::Params;
use methods::params::Gate;
use protocol::Hash;
use protocol::epochs::of_present;
use protocol::member::{Config, Start};
use protocol::message::Content;
use protocol::parameters::ProtocolParameters;

use crate::config::SiloConfig;
use crate::environment::{Blobs, Journal};
use crate::error::{SpawnError, StoreError};
use crate::needed::{forget_secrets, needed, secret, void_blobs};
use crate::notice::Missing;
use crate::outcome::{Document, DocumentError, Settled, genesis};
use crate::record::{Adopted, JournalRecord};
use crate::rounds::{
    LastTraining, OwnState, Personal, PreparedRound, RoundBase, SumBasis, check_start,
    check_summand, outcome_gate,
};
use crate::undone::forget_undone;

/// The restored state of a silo.
pub(crate) struct Restored {
    pub(crate) start: Start,
    pub(crate) base: Arc<RoundBase>,
    pub(crate) own: OwnState,
    pub(crate) trained: Option<LastTraining>,
    /// Secret state of the silo for a secure-aggregation round.
    pub(crate) prepared: Option<Arc<PreparedRound>>,
    pub(crate) kept: VecDeque<Vec<Hash>>,
    /// Blobs of the last void rounds, oldest first.
    pub(crate) void: VecDeque<Vec<Hash>>,
    /// The block of the last adopted outcome if its blobs are missing. Until they are fetched again,
    /// the silo's state is that after an earlier outcome.
    pub(crate) again: Option<Hash>,
    /// Missing blobs.
    pub(crate) missing: Vec<Missing>,
    /// True if the journal is empty.
    pub(crate) begins: bool,
    /// Present content of the journal.
    pub(crate) records: Vec<JournalRecord>,
}

/// The contents of a journal, by kind.
#[derive(Default)]
struct Contents {
    records: Vec<protocol::Record>,
    adopted: Vec<Adopted>,
    trained: Option<TrainedRecord>,
    /// True if the journal has any record.
    any: bool,
    /// True if the journal began anew after a loss and the silo has not acted since. Then it has no
    /// other record.
    lost: bool,
}

/// The last training of a journal.
#[derive(Clone, Copy)]
struct TrainedRecord {
    round: u64,
    /// Hash of the contribution or, of a secure-aggregation round, of what is kept for it.
    blob: Hash,
    /// Hash of the personal state.
    personal: [u8; 32],
    masked: bool,
}

/// Restores a silo. Begins the journal anew if it is lost.
pub(crate) fn restore(
    config: &SiloConfig,
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
) -> Result<Restored, SpawnError> {
    let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
    let agreed = config.member.epoch.protocol.start;
    if genesis.hash != agreed {
        return Err(SpawnError::Start {
            agreed,
            ours: genesis.hash,
        });
    }
    let protocol = &config.member.epoch.protocol;
    let checked = check_start(&protocol.privacy, genesis.state.models.first());
    checked.map_err(SpawnError::StartTooLarge)?;
    let journal_records = load(protocol, config.journal_lost, journal, blobs)?;
    let void = void_blobs(&journal_records).into();
    let mut contents = sorted(journal_records.clone());
    let newest_own = contents.adopted.last().cloned();
    let epoch = &config.member.epoch;
    let undone = forget_undone(&mut contents.adopted, epoch, &contents.records);
    let store = RestoringStore { config, blobs };
    let keep = config.member.epoch.protocol.keep_rounds as usize;
    let kept = contents.adopted.iter().rev().take(keep).rev();
    let kept = kept
        .map(|adopted| adopted.blobs.iter().copied().map(Hash).collect())
        .collect();
    let last = contents.adopted.last();
    let mut missing = Vec::new();
    let newest = store.newest(&contents, &mut missing)?;
    let outcome = newest.unwrap_or_else(|| genesis.read_from(|_, blob| blobs.to_file(blob)));
    let standing = outcome.document.round;
    let mut own = store.own(newest_own.as_ref(), &mut missing)?;
    if undone {
        // The personal state was never anybody else's, and stays.
        own.round = last.map_or(0, |last| last.round);
        own.coalition = last.map_or(0, |last| last.coalition);
    }
    let models = outcome.state.models.len();
    if own.round == standing && own.coalition as usize >= models {
        return Err(SpawnError::Damaged {
            round: own.round,
            why: format!(
                "expected a coalition below {models}, found {}",
                own.coalition
            ),
        });
    }
    let last_trained = contents.trained.filter(|trained| trained.round > own.round);
    let trained = last_trained
        .map(|trained| store.training(trained, &own, &mut missing))
        .transpose()?;
    let again = last.filter(|last| last.round > standing);
    let again = again.map(|last| Hash(last.block));
    let mut records = of_present(contents.records);
    let fresh = records.is_empty() && contents.adopted.is_empty();
    if again.is_some() || undone {
        // With this record the member requests the later outcomes, again or for the first time. Signed
        // messages and final blocks stay as they are.
        records.retain(|record| !matches!(record, protocol::Record::Applied { .. }));
        records.push(protocol::Record::Applied { round: standing });
    }
    let start = match (contents.lost, fresh) {
        (true, _) => Start::Lost,
        (false, true) => Start::New,
        (false, false) => Start::Kept(records),
    };
    let base = Arc::new(RoundBase::new(config, &outcome));
    let checked = check_summand(SumBasis {
        config,
        base: &base,
    });
    checked.map_err(SpawnError::Sums)?;
    let prepared = last_trained.filter(|trained| trained.masked);
    let prepared = prepared.and_then(|trained| store.prepared(trained, &base));
    Ok(Restored {
        start,
        base,
        own,
        trained,
        prepared: prepared.map(Arc::new),
        kept,
        void,
        again,
        missing,
        begins: !contents.any,
        records: journal_records,
    })
}

/// The past of a silo that takes no part in rounds: nothing of its models is restored.
pub(crate) struct SiloPast {
    pub(crate) start: Start,
    /// True if the journal is empty.
    pub(crate) begins: bool,
    /// Present content of the journal.
    pub(crate) records: Vec<JournalRecord>,
}

/// Restores a silo that takes no part in rounds.
pub(crate) fn restore_bystander(
    config: &Config,
    lost: bool,
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
) -> Result<SiloPast, SpawnError> {
    let records = load(&config.epoch.protocol, lost, journal, blobs)?;
    let contents = sorted(records.clone());
    let present = of_present(contents.records);
    let fresh = present.is_empty() && contents.adopted.is_empty();
    let start = match (contents.lost, fresh) {
        (true, _) => Start::Lost,
        (false, true) => Start::New,
        (false, false) => Start::Kept(present),
    };
    Ok(SiloPast {
        start,
        begins: !contents.any,
        records,
    })
}

/// Loads the records that are needed, and removes the others from the journal. Secrets of secure-aggregation rounds that
/// only these name are removed from the blobs, too.
pub(crate) fn load(
    protocol: &ProtocolParameters,
    lost: bool,
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
) -> Result<Vec<JournalRecord>, SpawnError> {
    let stored = journal.load()?;
    let mut records = stored.clone();
    if lost {
        records.push(JournalRecord::Lost);
    }
    let (keep, rounds) = (protocol.keep_rounds as usize, protocol.rounds);
    let mut kept = needed(records, keep, rounds);
    if forget_secrets(&mut kept) {
        kept = needed(kept, keep, rounds);
    }
    rewrite(journal, blobs, &stored, &kept)?;
    Ok(kept)
}

/// Removes the secrets of secure-aggregation rounds of epochs that are over. A silo that begins in the next epoch does
/// so by itself; this is for an institution that has left.
///
/// # Errors
/// The journal or a blob cannot be changed.
pub fn forget_ended(journal: &mut dyn Journal, blobs: &dyn Blobs) -> Result<(), StoreError> {
    let stored = journal.load()?;
    let mut kept = stored.clone();
    forget_secrets(&mut kept);
    rewrite(journal, blobs, &stored, &kept)
}

/// Makes a journal that holds `stored` hold `kept`, and removes the secrets that only `stored` names: those
/// of epochs that are over, and of adopted rounds if the silo stopped before it had removed them.
fn rewrite(
    journal: &mut dyn Journal,
    blobs: &dyn Blobs,
    stored: &[JournalRecord],
    kept: &[JournalRecord],
) -> Result<(), StoreError> {
    let named = |records: &[JournalRecord]| -> BTreeSet<Hash> {
        records.iter().filter_map(secret).collect()
    };
    let gone: Vec<Hash> = named(stored).difference(&named(kept)).copied().collect();
    // Before the journal forgets their names, so that a crash in between leaves none behind.
    if !gone.is_empty() {
        blobs.remove(&gone)?;
    }
    let pairs = stored.iter().zip(kept);
    let same = pairs.take_while(|(stored, kept)| stored == kept).count();
    if same < stored.len().max(kept.len()) {
        journal.replace(same as u64, kept[same..].to_vec())?;
    }
    Ok(())
}

fn sorted(records: Vec<JournalRecord>) -> Contents {
    let mut contents = Contents {
        any: !records.is_empty(),
        ..Contents::default()
    };
    for record in records {
        match record {
            JournalRecord::Lost => contents.lost = true,
            JournalRecord::Begun => {}
            JournalRecord::Adopted(adopted) => contents.adopted.push(adopted),
            JournalRecord::Trained {
                round,
                blob,
                personal,
            } => {
                let masked = false;
                contents.trained = Some(TrainedRecord {
                    round,
                    blob: Hash(blob),
                    personal,
                    masked,
                });
            }
            JournalRecord::Prepared {
                round,
                blob,
                personal,
            } => {
                let masked = true;
                contents.trained = Some(TrainedRecord {
                    round,
                    blob: Hash(blob),
                    personal,
                    masked,
                });
            }
            JournalRecord::Protocol(record) => contents.records.push(record),
        }
    }
    contents
}

/// Returns whether this record has the final block of an adopted outcome, or the end of an epoch that names
/// it.
fn finalises(record: &protocol::Record, adopted: &Adopted) -> bool {
    let protocol::Record::Final { blocks, .. } = record else {
        return false;
    };
    let same = |round, outcome: &Hash| (round, outcome.0) == (adopted.round, adopted.outcome);
    blocks.iter().any(|block| match &block.content {
        Content::Learning(learning) => {
            same(learning.round, &learning.outcome) && block.hash().0 == adopted.block
        }
        Content::Change(change) => {
            let after = &change.after;
            same(after.round, &after.outcome) && after.block.0 == adopted.block
        }
        Content::Recovery(recovery) => {
            let after = &recovery.after;
            same(after.round, &after.outcome) && after.block.0 == adopted.block
        }
        // The outcome of a secure-aggregation round is certified after its block.
        Content::Masked(masked) => masked.round == adopted.round && block.hash().0 == adopted.block,
        Content::Empty => false,
    })
}

struct RestoringStore<'a> {
    config: &'a SiloConfig,
    blobs: &'a dyn Blobs,
}

impl RestoringStore<'_> {
    fn get(&self, round: u64, hash: Hash) -> Result<Bytes, SpawnError> {
        self.blobs
            .get(&hash)
            .ok_or(SpawnError::Missing { round, hash })
    }

    /// The newest adopted outcome whose blobs are all here, if there is one. Blobs of newer ones can
    /// be fetched from other members, which all adopted the same.
    fn newest(
        &self,
        contents: &Contents,
        missing: &mut Vec<Missing>,
    ) -> Result<Option<Settled>, SpawnError> {
        let mut incomplete = None;
        let mut newest = None;
        for adopted in contents.adopted.iter().rev() {
            if !contents
                .records
                .iter()
                .any(|record| finalises(record, adopted))
            {
                return Err(SpawnError::Damaged {
                    round: adopted.round,
                    why: "no final block of the journal has this outcome".into(),
                });
            }
            match self.outcome(adopted) {
                Ok(settled) => {
                    newest = Some(settled);
                    break;
                }
                // There is no other member to fetch it from.
                Err(error) if self.config.member.epoch.roster.len() == 1 => return Err(error),
                Err(SpawnError::Missing { .. }) => {
                    incomplete.get_or_insert(adopted.round);
                }
                Err(other) => return Err(other),
            }
        }
        if let Some(round) = incomplete {
            let standing = newest.as_ref().map_or(0, |settled| settled.document.round);
            missing.push(Missing::Outcome { round, standing });
        }
        Ok(newest)
    }

    /// The silo's own state after its last adoption.
    fn own(
        &self,
        last: Option<&Adopted>,
        missing: &mut Vec<Missing>,
    ) -> Result<OwnState, SpawnError> {
        let Some(last) = last else {
            return Ok(OwnState {
                round: 0,
                coalition: 0,
                personal: self.given().unwrap_or_else(|| self.initial()),
            });
        };
        let round = last.round;
        let personal = match self.personal(round, last.personal) {
            Err(SpawnError::Missing { .. }) => {
                missing.push(Missing::Personal { round });
                self.given().unwrap_or_else(|| self.initial())
            }
            personal => personal?,
        };
        Ok(OwnState {
            round,
            coalition: last.coalition,
            personal,
        })
    }

    /// The result of the last training. Its blobs may be missing: without the model the signed
    /// contribution stands but cannot be served.
    fn training(
        &self,
        trained: TrainedRecord,
        own: &OwnState,
        missing: &mut Vec<Missing>,
    ) -> Result<LastTraining, SpawnError> {
        let (round, blob) = (trained.round, trained.blob);
        if self.blobs.get(&blob).is_none() {
            missing.push(Missing::Contribution { round });
        }
        let personal = match self.personal(round, trained.personal) {
            Err(SpawnError::Missing { .. }) => {
                missing.push(Missing::Trained { round });
                own.personal.clone()
            }
            personal => personal?,
        };
        Ok(LastTraining {
            round,
            blob,
            personal,
        })
    }

    /// Returns the secret state of the silo for a secure-aggregation round. Without it the silo sits the round
    /// out: it can neither mask its vector nor unlock shares.
    fn prepared(&self, trained: TrainedRecord, base: &RoundBase) -> Option<PreparedRound> {
        let blob = self.blobs.get(&trained.blob)?;
        let gate = Gate {
            layout: base.gate.layout.clone(),
            norm: f64::INFINITY,
        };
        let admit = |bytes| gate.admit(bytes).map_err(|error| error.to_string());
        let epoch = &self.config.member.epoch.id;
        PreparedRound::read(trained.round, &blob, epoch, admit).ok()
    }

    fn outcome(&self, adopted: &Adopted) -> Result<Settled, SpawnError> {
        let round = adopted.round;
        let damaged = |why| SpawnError::Damaged { round, why };
        let blob = self.get(round, Hash(adopted.outcome))?;
        let document = Document::read(&blob).map_err(|error| match error {
            DocumentError::Newer(found) => SpawnError::Newer { round, found },
            DocumentError::Malformed(_) => damaged(error.to_string()),
        })?;
        let gate = outcome_gate(self.config);
        let models = document
            .all_models()
            .map(|hash| self.model(round, hash, &gate))
            .collect::<Result<_, _>>()?;
        let settled = Settled::assemble(blob, document, models);
        if settled.hash.0 != adopted.outcome || settled.document.round != round {
            return Err(damaged(
                "the document has another hash or round than the journal".into(),
            ));
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
                "expected a blob with hash {hash}, found other bytes"
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

    /// The personal state from a backup, where it has the layout of the present agreement.
    fn given(&self) -> Option<Personal> {
        let given = self.config.personal.clone()?;
        let fits = given.layout() == self.initial().params.layout();
        fits.then(|| Personal::new(given))
    }

    fn personal(&self, round: u64, hash: [u8; 32]) -> Result<Personal, SpawnError> {
        let initial = self.initial();
        if initial.hash.0 == hash {
            return Ok(initial);
        }
        // Its bytes are no blob of this state folder until a training has followed it.
        if let Some(given) = self.given().filter(|given| given.hash.0 == hash) {
            return Ok(given);
        }
        let gate = Gate {
            layout: initial.params.layout().clone(),
            norm: f64::INFINITY,
        };
        Ok(Personal::new(self.model(round, Hash(hash), &gate)?))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use methods::strategy::{Kept, Memory};
    use methods::{Layout, Role, State, TensorSpec};

    use super::*;
    use crate::testing::*;

    /// The toy learner has one number per silo that is personal to it.
    #[test]
    fn a_personal_state_of_a_backup_is_begun_with_and_found_by_hash() {
        let blobs = MemoryBlobs::default();
        let mut config = config(&epoch(4, 3), 0);
        let initial = config.learner.initial_personal(config.initial_seed);
        let own = |config: &SiloConfig, last: Option<&Adopted>| {
            let (blobs, mut missing) = (&blobs, Vec::new());
            let own = RestoringStore { config, blobs }
                .own(last, &mut missing)
                .unwrap();
            (own.personal.params, missing.len())
        };
        assert_eq!(own(&config, None), (initial.clone(), 0));
        let given = Params::from_values(initial.layout(), &[7.0]);
        config.personal = Some(given.clone());
        assert_eq!(own(&config, None), (given.clone(), 0));
        let mut adopted = Adopted {
            round: 3,
            block: [0; 32],
            outcome: [0; 32],
            coalition: 0,
            personal: given.hash(),
            blobs: Vec::new(),
        };
        assert_eq!(own(&config, Some(&adopted)), (given.clone(), 0));
        adopted.personal = [9; 32];
        assert_eq!(own(&config, Some(&adopted)), (given, 1));
        // One of another model is passed over.
        let layout = Layout::new(vec![TensorSpec::new("other", [3], Role::Weight)]).unwrap();
        config.personal = Some(Params::from_values(&layout, &[1.0; 3]));
        assert_eq!(own(&config, None).0, initial);
    }

    #[test]
    fn an_outcome_is_read_back_with_the_models_of_its_strategy() {
        let state = State {
            models: vec![model(1.0), model(2.0)],
            tables: BTreeMap::from([("velocity".into(), vec![model(0.5)])]),
            memory: Memory::from([("rounds", Kept::Count(3))]),
        };
        let settled = Settled::new(3, Vec::new(), Vec::new(), state);
        let blobs = MemoryBlobs::default();
        blobs.put_all(settled.blobs().collect()).unwrap();
        let adopted = Adopted {
            round: 3,
            block: [0; 32],
            outcome: settled.hash.0,
            coalition: 0,
            personal: [0; 32],
            blobs: Vec::new(),
        };
        let (config, blobs) = (&config(&epoch(4, 3), 0), &blobs);
        let read = RestoringStore { config, blobs }.outcome(&adopted).unwrap();
        assert_eq!(read.state, settled.state);
    }
}
