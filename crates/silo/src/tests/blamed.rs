//! A silo whose vectors are wrong: what the others keep of the round that it corrupted, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use methods::Learner;
use privacy::masks::Secret;
use protocol::message::Amendment;
use protocol::privacy::threshold;
use protocol::work::FinalMasked;
use protocol::{Hash, MemberIndex, Record};
use tokio::time::sleep;

use super::epochs::live;
use super::masked::{ALL, groups, secrets};
use super::{TestSilos, kill};
use crate::outcome::Document;
use crate::rounds::{VoidRound, disclosed_secret};
use crate::testing::*;
use crate::{Adopted, Blobs, JournalRecord, SiloHandle, Stopped, StoreError, forget_ended, spawn};

/// The round that is corrupted, of so many.
const CORRUPTED: u64 = 2;
const ROUNDS: u64 = 4;
/// The silo that corrupts it.
const FAULTY: u16 = 2;

/// A store that changes the last byte of the vector that its silo masks for one round, or for all.
struct CorruptingBlobs {
    kept: Arc<MemoryBlobs>,
    /// The round.
    corrupts: Option<u64>,
    /// Rounds for which the silo has prepared.
    prepared: AtomicU64,
}

impl Blobs for CorruptingBlobs {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        self.kept.get(hash)
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.kept.put(hash, blob)
    }

    fn to_file(&self, blob: Bytes) -> Bytes {
        if blob.starts_with(b"rota prepared") {
            self.prepared.fetch_add(1, Ordering::Relaxed);
        }
        let vector = 4 * (learner(0.0).layout().len() + 4);
        let prepared = self.prepared.load(Ordering::Relaxed);
        if blob.len() != vector || self.corrupts.is_some_and(|round| round != prepared) {
            return blob;
        }
        let mut changed = blob.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        changed.into()
    }

    fn mark(&self) -> u64 {
        self.kept.mark()
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        self.kept.retain(keep, mark)
    }
}

fn start(silos: &TestSilos, i: u16) -> SiloHandle {
    if i == FAULTY {
        corrupting(silos, i, Some(CORRUPTED))
    } else {
        silos.live(i)
    }
}

/// Starts a silo that corrupts the sum of a round, or those of all.
pub(super) fn corrupting(silos: &TestSilos, i: u16, corrupts: Option<u64>) -> SiloHandle {
    let rig = &silos.rigs[usize::from(i)];
    let (mut environment, ends) = rig.environment();
    environment.blobs = Arc::new(CorruptingBlobs {
        kept: rig.blobs.clone(),
        corrupts,
        prepared: AtomicU64::new(0),
    });
    silos.hub.join(MemberIndex(i), ends);
    spawn(config(&silos.epoch, i), environment).unwrap()
}

/// The adoption of the corrupted round, and the blob with the silo's secret behind it.
fn kept(rig: &Rig) -> Option<(Adopted, Hash)> {
    let mut adopted = None;
    for record in rig.journal.records() {
        match record {
            JournalRecord::Adopted(of) if of.round == CORRUPTED => adopted = Some(of),
            // The one before the adoption may still be there.
            JournalRecord::Prepared { round, blob, .. } if round == CORRUPTED => {
                if let Some(adopted) = adopted {
                    return Some((adopted, Hash(blob)));
                }
            }
            _ => {}
        }
    }
    None
}

/// Returns whether all blobs of the corrupted round are here, and only its secret.
fn checked(rig: &Rig) -> (Adopted, Secret) {
    let (adopted, hash) = kept(rig).unwrap();
    assert_eq!(secrets(rig), 1);
    let here = |blob: &[u8; 32]| rig.blobs.get(&Hash(*blob)).is_some();
    assert!(adopted.blobs.iter().all(here));
    let secret = disclosed_secret(&rig.blobs.get(&hash).unwrap()).unwrap();
    (adopted, secret)
}

#[test]
fn the_secret_of_a_void_round_stays_until_the_agreement_changes_and_names_who_spoiled_it() {
    virtually(async {
        let first = epoch_with(4, ROUNDS, groups(ALL));
        let silos = TestSilos::of(first.clone());
        let mut running: Vec<_> = (0..4).map(|i| start(&silos, i)).collect();
        for i in 0..4 {
            silos.until(i, ROUNDS).await;
        }
        let models: Vec<_> = silos.rigs[0].adopted().iter().map(|own| own.2).collect();
        assert_eq!(models[1], models[0]);
        assert!(models[3] > models[2] && models[2] > models[1]);
        // Also after a restart. One round is kept, and there were two more since.
        kill(&mut running[1]).await;
        running[1] = silos.live(1);
        sleep(Duration::from_secs(60)).await;
        let rig = &silos.rigs[0];
        let (adopted, _) = checked(rig);
        let masked = |record| match record {
            JournalRecord::Protocol(Record::Final { blocks, .. }) => {
                let blocks = blocks.into_iter().map(|block| (block.hash(), block));
                let mut of = blocks.filter(|(hash, _)| hash.0 == adopted.block);
                of.next()
                    .map(|(hash, block)| (hash, block.masked().unwrap().clone()))
            }
            _ => None,
        };
        let (block, round) = rig.journal.records().into_iter().find_map(masked).unwrap();
        let of = FinalMasked {
            block,
            threshold: threshold(&first.roster, round.ready.len()),
            round,
        };
        let blob = |hash: &Hash| rig.blobs.get(hash);
        let document = Document::read(&blob(&Hash(adopted.outcome)).unwrap()).unwrap();
        let void = VoidRound::read(&first, &of, &document, blob).unwrap();
        for (i, own) in (0..).zip(&silos.rigs) {
            let found = void.examine(MemberIndex(i), &checked(own).1, blob).unwrap();
            assert_eq!(found.is_some(), i == FAULTY, "{found:?}");
        }

        let mut protocol = first.protocol.clone();
        protocol.rounds = ROUNDS + 1;
        let amendment = Amendment {
            format: first.format,
            silos: first.roster.silos().to_vec(),
            protocol,
            text: Vec::new(),
            stolen: Vec::new(),
        };
        for silo in &running[..3] {
            silo.approve(amendment.clone(), 1);
        }
        for silo in &mut running {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let names: Vec<_> = silos.rigs.iter().map(|rig| kept(rig).unwrap().1).collect();
        // One that has left begins in no next epoch.
        let left = &silos.rigs[2];
        assert_eq!(secrets(left), 1);
        forget_ended(&mut left.journal.clone(), &*left.blobs).unwrap();
        assert_eq!((left.blobs.get(&names[2]), secrets(left)), (None, 0));
        assert!(kept(left).is_none());
        for (i, rig) in silos.rigs.iter().enumerate() {
            running[i] = live(&first, rig, &silos.hub, i as u16);
            assert_eq!((rig.blobs.get(&names[i]), secrets(rig)), (None, 0));
            assert!(kept(rig).is_none());
        }
        for i in 0..4 {
            silos.until(i, ROUNDS + 1).await;
        }
        sleep(Duration::from_secs(60)).await;
        for silo in &mut running {
            kill(silo).await;
        }
        // Nothing of the corrupted round is left once another one was adopted.
        for (rig, name) in silos.rigs.iter().zip(names) {
            assert_eq!((rig.blobs.get(&name), secrets(rig)), (None, 0));
            let gone = |blob: &[u8; 32]| rig.blobs.get(&Hash(*blob)).is_none();
            assert!(adopted.blobs.iter().any(gone));
        }
    });
}
