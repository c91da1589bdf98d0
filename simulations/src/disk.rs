//! A silo's disk in memory: it survives crashes, and can be told when to fail.
//!
//! It keeps the promises of [`silo::Journal`] and [`silo::Blobs`] that the node's own stores keep,
//! and the tests of those promises run on both.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use protocol::{Hash, MemberIndex};
use serde::Deserialize;
use silo::{Adoptions, Blobs, Journal, Record, StoreError};

use crate::recorder::Ear;

/// Where a crash cuts a step short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cut {
    /// Before anything of it is durable.
    Before,
    /// After everything of it is durable, and before anything is sent.
    After,
}

/// Journal and blobs of one silo. Clones share the disk.
#[derive(Clone)]
pub struct Disk {
    /// Who hears of its commits, and as whose.
    heard: Option<(MemberIndex, Ear)>,
    content: Arc<Mutex<Content>>,
}

#[derive(Default)]
struct Content {
    records: Vec<Record>,
    adoptions: Adoptions,
    /// Nothing depends on its order.
    blobs: HashMap<Hash, Bytes, Uniform>,
    /// Counts lives; a journal of an earlier one refuses everything.
    life: u32,
    commits: u64,
    fail: Option<(u64, Cut)>,
}

impl Disk {
    /// An empty disk of `owner`, whose commits `recorder` hears of.
    pub(crate) fn new(owner: MemberIndex, recorder: Ear) -> Self {
        Self {
            heard: Some((owner, recorder)),
            content: Arc::default(),
        }
    }

    /// An empty disk outside any simulation.
    pub fn unheard() -> Self {
        Self {
            heard: None,
            content: Arc::default(),
        }
    }

    /// Opens the journal for another life; journals opened before refuse everything from now on.
    pub fn journal(&self) -> Box<dyn Journal> {
        let mut content = self.content();
        content.life += 1;
        let life = content.life;
        Box::new(Open {
            disk: self.clone(),
            life,
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

    /// Nothing is written any more until the journal is opened again; what was written is gone if
    /// `emptied`.
    pub fn close(&self, emptied: bool) {
        let mut content = self.content();
        content.life += 1;
        if emptied {
            content.records.clear();
            content.adoptions = Adoptions::default();
            content.blobs.clear();
        }
    }

    /// The `nth` commit from now (1 is the next) fails, like a crash at that point.
    pub fn fail(&self, nth: u64, cut: Cut) {
        let mut content = self.content();
        content.fail = Some((content.commits + nth, cut));
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        // Nothing panics while it holds this lock.
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Places hashes by their first bytes: nobody here looks for collisions.
type Uniform = BuildHasherDefault<FirstBytes>;

#[derive(Default)]
struct FirstBytes(u64);

impl Hasher for FirstBytes {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    // The length, which is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Content {
    /// Whether the commit under way fails.
    fn due(&mut self) -> Option<Cut> {
        let commits = self.commits;
        self.fail
            .take_if(|(at, _)| *at <= commits)
            .map(|(_, cut)| cut)
    }
}

struct Open {
    disk: Disk,
    life: u32,
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
        if content.life != self.life {
            return Err(refused("its silo has crashed"));
        }
        content.commits += 1;
        let cut = content.due();
        if cut == Some(Cut::Before) {
            return Err(refused("told to fail before writing"));
        }
        if let Some(block) = content.adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} was adopted before"
            )));
        }
        content.adoptions.take(&records);
        if let Some((owner, recorder)) = &self.disk.heard {
            records
                .iter()
                .for_each(|record| recorder.kept(*owner, record));
        }
        content.records.extend(records);
        match cut {
            None => Ok(()),
            Some(_) => Err(refused("told to fail after writing")),
        }
    }

    fn replace(&mut self, records: Vec<Record>) -> Result<(), StoreError> {
        let mut content = self.disk.content();
        if content.life != self.life {
            return Err(refused("its silo has crashed"));
        }
        let mut adoptions = Adoptions::default();
        if let Some(block) = adoptions.again(&records) {
            return Err(refused(&format!(
                "the outcome of block {block} is in it twice"
            )));
        }
        adoptions.take(&records);
        if let ([Record::Lost | Record::Begun], Some((owner, recorder))) =
            (&records[..], &self.disk.heard)
        {
            // It begins again with what it does not know to be safe, and is told everything anew.
            recorder.crashed(*owner, true);
        }
        (content.records, content.adoptions) = (records, adoptions);
        Ok(())
    }
}

impl Blobs for Disk {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        self.content().blobs.get(hash).cloned()
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.content().blobs.insert(hash, blob);
        Ok(())
    }

    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        self.content().blobs.extend(blobs);
        Ok(())
    }

    fn retain(&self, keep: &[Hash]) -> Result<(), StoreError> {
        let keep: HashSet<&Hash, Uniform> = keep.iter().collect();
        self.content().blobs.retain(|hash, _| keep.contains(hash));
        Ok(())
    }
}
