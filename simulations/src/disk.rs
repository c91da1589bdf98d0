//! A silo's disk in memory. It survives crashes of its silo and can be made to fail at a given
//! commit.
//!
//! It keeps the same promises of [`silo::Journal`] and [`silo::Blobs`] as the stores of a node, and
//! the tests of those promises run on both.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::hash::Uniform;
use protocol::{Hash, MemberIndex};
use silo::{Adoptions, Blobs, Journal, Record, StoreError};

use crate::moments::StepCut;
use crate::recorder::Recorder;

/// Journal and blobs of one silo. Clones share the disk.
#[derive(Clone)]
pub struct Disk {
    /// The owner and the recorder of its commits, in a simulation.
    recorder: Option<(MemberIndex, Recorder)>,
    content: Arc<Mutex<Content>>,
}

#[derive(Default)]
struct Content {
    records: Vec<Record>,
    adoptions: Adoptions,
    /// Its iteration order is never used.
    blobs: HashMap<Hash, (Bytes, u64), Uniform>,
    /// Counts the blobs that were put.
    puts: u64,
    /// Counts the restarts of the silo: a journal that was opened before the last one refuses
    /// everything.
    restarts: u32,
    commits: u64,
    fail: Option<(u64, StepCut)>,
}

impl Disk {
    /// An empty disk of `owner`. Every commit is reported to `recorder`.
    pub(crate) fn new(owner: MemberIndex, recorder: Recorder) -> Self {
        Self {
            recorder: Some((owner, recorder)),
            content: Arc::default(),
        }
    }

    /// An empty disk whose commits are not recorded, for tests of stores.
    pub fn unrecorded() -> Self {
        Self {
            recorder: None,
            content: Arc::default(),
        }
    }

    /// Opens the journal for a silo that starts. Journals opened before refuse everything from now
    /// on.
    pub fn journal(&self) -> Box<dyn Journal> {
        let mut content = self.content();
        content.restarts += 1;
        let restarts = content.restarts;
        Box::new(Open {
            disk: self.clone(),
            restarts,
        })
    }

    /// Everything in the journal, oldest first.
    pub(crate) fn records(&self) -> Vec<Record> {
        self.content().records.clone()
    }

    /// The blobs.
    pub fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(self.clone())
    }

    /// Refuses all writes until the journal is opened again. Deletes what was written if
    /// `journal_lost`.
    pub fn close(&self, journal_lost: bool) {
        let mut content = self.content();
        content.restarts += 1;
        if journal_lost {
            content.records.clear();
            content.adoptions = Adoptions::default();
            content.blobs.clear();
        }
    }

    /// The `nth` commit from now (1 is the next) fails, like a crash at that point: with
    /// [`StepCut::Before`] nothing is written, otherwise everything.
    pub fn fail(&self, nth: u64, cut: StepCut) {
        let mut content = self.content();
        content.fail = Some((content.commits + nth, cut));
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // No code panics while it holds this lock.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// How the commit under way fails, if it is the one that was chosen to.
    fn due(&mut self) -> Option<StepCut> {
        let commits = self.commits;
        self.fail
            .take_if(|(at, _)| *at <= commits)
            .map(|(_, cut)| cut)
    }
}

struct Open {
    disk: Disk,
    restarts: u32,
}

fn refused(why: &str) -> StoreError {
    StoreError {
        what: "the simulated journal".into(),
        why: why.into(),
    }
}

impl Journal for Open {
    fn load(&mut self) -> Result<Vec<Record>, StoreError> {
        Ok(self.disk.content().records.clone())
    }

    fn commit(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut content = self.disk.content();
        if content.restarts != self.restarts {
            return Err(refused("the silo that opened it has crashed"));
        }
        content.commits += 1;
        let cut = content.due();
        if cut == Some(StepCut::Before) {
            return Err(refused("scripted failure before writing"));
        }
        if let Some(block) = content.adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} was adopted before"
            )));
        }
        content.adoptions.take(&records);
        if let Some((owner, recorder)) = &self.disk.recorder {
            records
                .iter()
                .for_each(|record| recorder.persisted(*owner, record));
        }
        content.records.extend(records);
        match cut {
            None => Ok(()),
            Some(_) => Err(refused("scripted failure after writing")),
        }
    }

    fn replace(&mut self, from: u64, records: Vec<Record>) -> Result<(), StoreError> {
        let mut content = self.disk.content();
        if content.restarts != self.restarts {
            return Err(refused("the silo that opened it has crashed"));
        }
        let kept = content.records.len();
        if from > kept as u64 {
            return Err(refused(&format!(
                "it has {kept} records, and {from} should stay"
            )));
        }
        let mut adoptions = content.adoptions.before(from);
        if let Some(block) = adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} is adopted twice in the new content"
            )));
        }
        adoptions.take(&records);
        content.records.truncate(from as usize);
        content.records.extend(records);
        content.adoptions = adoptions;
        if let ([Record::Lost | Record::Begun], Some((owner, recorder))) =
            (&content.records[..], &self.disk.recorder)
        {
            // The silo begins again without its journal: for the properties, the journal is lost.
            recorder.crashed(*owner, true);
        }
        Ok(())
    }
}

impl Blobs for Disk {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        let content = self.content();
        content.blobs.get(hash).map(|(blob, _)| blob.clone())
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.put_all(vec![(hash, blob)])
    }

    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        let Content {
            blobs: all, puts, ..
        } = &mut *self.content();
        *puts += 1;
        all.extend(blobs.into_iter().map(|(hash, blob)| (hash, (blob, *puts))));
        Ok(())
    }

    fn mark(&self) -> u64 {
        self.content().puts
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        let keep: HashSet<&Hash, Uniform> = keep.iter().collect();
        let mut content = self.content();
        let kept = |hash: &Hash, put: u64| put > mark || keep.contains(hash);
        content.blobs.retain(|hash, (_, put)| kept(hash, *put));
        Ok(())
    }
}
