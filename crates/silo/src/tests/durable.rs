//! Models and outcomes are durable before a silo signs a message that depends on them. One log records
//! the operations of a silo's blobs, journal and network in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::envelope::{self, Known, Opened};
use protocol::identity::Strict;
use protocol::message::{Block, Body, Message, RoundManifest};
use protocol::net::Command;
use protocol::{Hash, MemberIndex};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::testing::*;
use crate::{Blobs, Checks, Journal, JournalRecord, StoreError, spawn};

/// Virtual time that three rounds take at most. A silo that can store nothing leads a view until the
/// parameter set's limit of 60 heartbeats, so a few such views fit in.
const ENOUGH: Duration = Duration::from_secs(240);

#[allow(clippy::large_enum_variant)] // a few dozen of them, in a test
#[derive(Clone)]
enum DurableStep {
    Put(Hash),
    Committed(JournalRecord),
    Sent(Bytes),
}

#[derive(Clone, Default)]
struct StepLog(Arc<Mutex<Vec<DurableStep>>>);

impl StepLog {
    fn note(&self, done: DurableStep) {
        self.0.lock().unwrap().push(done);
    }
}

struct NotedJournal(MemoryJournal, StepLog);

impl Journal for NotedJournal {
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError> {
        self.0.load()
    }

    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.0.commit(records.clone())?;
        let committed = records.into_iter().map(DurableStep::Committed);
        committed.for_each(|done| self.1.note(done));
        Ok(())
    }

    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.0.replace(from, records)
    }
}

/// A store of blobs on a disk with room for a number of blobs.
struct NotedBlobs {
    kept: Arc<MemoryBlobs>,
    log: StepLog,
    room: Mutex<usize>,
}

impl Blobs for NotedBlobs {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        self.kept.get(hash)
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        let mut room = self.room.lock().unwrap();
        *room = room.checked_sub(1).ok_or_else(full)?;
        self.kept.put(hash, blob)?;
        self.log.note(DurableStep::Put(hash));
        Ok(())
    }

    fn mark(&self) -> u64 {
        self.kept.mark()
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        self.kept.retain(keep, mark)
    }
}

/// Four silos and three rounds; the third has room for this number of blobs. Its log, and all frames.
fn third(room: usize) -> (Vec<DurableStep>, Vec<(MemberIndex, Bytes)>) {
    virtually(async {
        let (epoch, hub, log) = (epoch(4, 3), Hub::default(), StepLog::default());
        // Without the cache every silo fetches and computes everything itself.
        let checks = Checks::new(false);
        let rigs: Vec<_> = (0..4).map(|_| Rig::new(checks.clone())).collect();
        let mut silos = Vec::new();
        for (i, rig) in (0..).zip(&rigs) {
            let (mut environment, mut ends) = rig.environment();
            if i == 2 {
                environment.journal = Box::new(NotedJournal(rig.journal.clone(), log.clone()));
                environment.blobs = Arc::new(NotedBlobs {
                    kept: rig.blobs.clone(),
                    log: log.clone(),
                    room: Mutex::new(room),
                });
                let (on, commands) = mpsc::channel(256);
                let mut said = std::mem::replace(&mut ends.commands, commands);
                let log = log.clone();
                tokio::task::spawn_local(async move {
                    while let Some(command) = said.recv().await {
                        if let Command::Send { frame, .. } | Command::Publish { frame } = &command {
                            log.note(DurableStep::Sent(frame.clone()));
                        }
                        let _ = on.send(command).await;
                    }
                });
            }
            hub.join(MemberIndex(i), ends);
            silos.push(spawn(config(&epoch, i), environment).unwrap());
        }
        sleep(ENOUGH).await;
        // The other three silos do not depend on it.
        let others = [0, 1, 3].map(|i: usize| rigs[i].adopted().len());
        assert_eq!(others, [3; 3], "room {room}");
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        sleep(Duration::from_secs(1)).await;
        let done = log.0.lock().unwrap().clone();
        (done, hub.frames())
    })
}

/// Numbers of signed and adopted things whose dependencies were checked.
#[derive(Debug, Default, PartialEq)]
struct CheckedCounts {
    trained: usize,
    contributed: usize,
    included: usize,
    notarized: usize,
    adopted: usize,
}

/// What a silo has done so far.
#[derive(Default)]
struct Past {
    /// The blobs of every manifest, by the manifest's root.
    manifests: BTreeMap<Hash, Vec<Hash>>,
    put: BTreeSet<Hash>,
    /// Rounds and blobs of its trainings.
    trained: BTreeSet<(u64, Hash)>,
    /// The round of the last adoption.
    last: u64,
    blocks: BTreeMap<Hash, Block>,
    counts: CheckedCounts,
    /// Room for blobs, for messages.
    room: usize,
}

impl Past {
    /// The blobs that have to be durable before this is committed.
    fn needed(&mut self, record: &JournalRecord) -> Vec<Hash> {
        match record {
            JournalRecord::Trained {
                blob,
                personal,
                round,
            }
            | JournalRecord::Prepared {
                blob,
                personal,
                round,
            } => {
                self.counts.trained += 1;
                self.trained.insert((*round, Hash(*blob)));
                vec![Hash(*blob), Hash(*personal)]
            }
            JournalRecord::Adopted(adopted) => {
                self.counts.adopted += 1;
                self.last = adopted.round;
                let all = adopted.blobs.iter();
                all.chain([&adopted.personal, &adopted.outcome])
                    .copied()
                    .map(Hash)
                    .collect()
            }
            JournalRecord::Protocol(record) => self.needed_by_protocol(record),
            JournalRecord::Lost | JournalRecord::Begun => Vec::new(),
        }
    }

    fn needed_by_protocol(&mut self, record: &protocol::Record) -> Vec<Hash> {
        match record {
            protocol::Record::Contributed(message) => {
                let Body::Contribution(own) = &message.body else {
                    panic!("{message:?}")
                };
                self.counts.contributed += 1;
                // The result of the training is stored, and so is the model that it started from.
                let (round, blob) = (message.round, own.fields.blob);
                let room = self.room;
                let trained = self.trained.contains(&(round, blob));
                assert!(trained, "room {room}: {round}");
                assert_eq!(self.last + 1, round, "room {room}");
                vec![blob]
            }
            protocol::Record::Block(block) => {
                self.blocks.insert(block.hash(), block.clone());
                Vec::new()
            }
            protocol::Record::Vote(vote) => {
                let Body::Notarize { block, .. } = &vote.body else {
                    return Vec::new();
                };
                let Some(learning) = self.blocks[block].learning() else {
                    return Vec::new();
                };
                self.counts.notarized += 1;
                [&self.manifests[&learning.manifest][..], &[learning.outcome]].concat()
            }
            _ => Vec::new(),
        }
    }
}

/// Checks that everything a silo signed depends only on data that were durable before.
fn rests_on_durable(
    log: Vec<DurableStep>,
    frames: &[(MemberIndex, Bytes)],
    room: usize,
) -> CheckedCounts {
    let epoch = epoch(4, 3);
    let message = |frame: &Bytes| -> Option<Message> {
        match envelope::open(&epoch, &Strict, &Known::default(), frame).unwrap() {
            Opened::Message(message) => Some(message),
            _ => None,
        }
    };
    let mut past = Past {
        room,
        ..Past::default()
    };
    for (_, frame) in frames {
        if let Some(Body::ContributionList(contribution_list)) =
            message(frame).map(|message| message.body)
        {
            let blobs: Vec<_> = contribution_list
                .entries
                .iter()
                .map(|e| e.fields.blob)
                .collect();
            let (entries, scores) = (contribution_list.entries, None);
            past.manifests
                .insert(RoundManifest { entries, scores }.root(), blobs);
        }
    }
    for done in log {
        let needed = match &done {
            DurableStep::Put(hash) => {
                past.put.insert(*hash);
                continue;
            }
            DurableStep::Committed(record) => past.needed(record),
            DurableStep::Sent(frame) => match message(frame).map(|message| message.body) {
                Some(Body::Inclusion { manifest }) => {
                    past.counts.included += 1;
                    past.manifests[&manifest].clone()
                }
                _ => continue,
            },
        };
        for hash in needed {
            let here = past.put.contains(&hash);
            assert!(here, "room {room}: {hash} is not durable");
        }
    }
    past.counts
}

#[test]
fn everything_signed_is_backed_by_durable_records_and_blobs() {
    let (log, frames) = third(usize::MAX);
    let counts = rests_on_durable(log, &frames, usize::MAX);
    assert_eq!((counts.trained, counts.contributed), (3, 3));
    assert_eq!((counts.notarized, counts.adopted), (3, 3));
    // A lead signs its own manifest without a message.
    assert!(counts.included >= 2, "{counts:?}");
}

#[test]
fn a_model_that_could_not_be_stored_is_not_signed() {
    let all = third(usize::MAX).0;
    let puts = all
        .iter()
        .filter(|done| matches!(done, DurableStep::Put(_)))
        .count();
    assert!(puts > 12, "{puts}");
    for room in 0..puts {
        let (log, frames) = third(room);
        rests_on_durable(log, &frames, room);
    }
}
