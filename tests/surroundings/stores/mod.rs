//! The contracts of a journal and of a store of blobs, on the simulated disk and on the real one; and
//! faults of the real one: damage, a kill during a write, a full disk.

#![allow(clippy::unwrap_used)]

mod blobs;
mod child;
mod damage;
mod figures;
mod full;
mod journal;
mod kill;
mod lost;
mod refusals;
#[cfg(unix)]
mod rights;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use protocol::{Hash, MemberIndex, SecretKey};
use rota::node::store::{self, DiskBlobs, DiskJournal, OpenedStore, Owner};
use rota::{protocol, silo, simulations};
use silo::{Adopted, Blobs, Journal, JournalRecord};
use simulations::Disk;
use tempfile::TempDir;

/// Size of the blob cache in bytes, so small that some blobs are read from disk again.
const CACHE: usize = 4096;

/// A disk, on which journal and blobs can be opened several times.
trait ReopenableDisk {
    fn new() -> Self;
    /// Opens the journal, after the one opened before was closed.
    fn journal(&self) -> Box<dyn Journal>;
    fn blobs(&self) -> Arc<dyn Blobs>;
}

impl ReopenableDisk for Disk {
    fn new() -> Self {
        Disk::unrecorded()
    }

    fn journal(&self) -> Box<dyn Journal> {
        Disk::journal(self)
    }

    fn blobs(&self) -> Arc<dyn Blobs> {
        Disk::blobs(self)
    }
}

impl ReopenableDisk for TempDir {
    fn new() -> Self {
        tempfile::tempdir().unwrap()
    }

    fn journal(&self) -> Box<dyn Journal> {
        Box::new(DiskJournal::open(self.path(), &owner()).unwrap())
    }

    fn blobs(&self) -> Arc<dyn Blobs> {
        Arc::new(DiskBlobs::open(self.path(), CACHE).unwrap())
    }
}

/// The owner of all journals.
fn owner() -> Owner {
    Owner {
        federation: Hash([7; 32]),
        me: MemberIndex(2),
        key: SecretKey::from_bytes(&[9; 32]),
    }
}

/// Opens the journal and blobs of a real disk again, after any kind of end.
fn reopened(folder: &Path) -> (Vec<JournalRecord>, DiskBlobs) {
    let OpenedStore {
        mut journal, blobs, ..
    } = store::open(folder, &owner(), CACHE).unwrap();
    (journal.load().unwrap(), blobs)
}

/// A record about as large as a vote, different for every `n`.
fn record(n: u64) -> JournalRecord {
    JournalRecord::Trained {
        round: n,
        blob: blob(n).0.0,
        personal: Hash::of(b"personal").0,
    }
}

fn applied(round: u64) -> JournalRecord {
    JournalRecord::Protocol(protocol::Record::Applied { round })
}

fn adopted(round: u64, block: u64) -> JournalRecord {
    JournalRecord::Adopted(Adopted {
        round,
        block: Hash::of(&block.to_le_bytes()).0,
        outcome: [1; 32],
        coalition: 0,
        personal: [2; 32],
        blobs: vec![[3; 32]; 5],
    })
}

/// A blob of up to 3,000 bytes, different for every `n`.
fn blob(n: u64) -> (Hash, Bytes) {
    let mut bytes = n.to_le_bytes().to_vec();
    bytes.resize(8 + (random(n) % 3000) as usize, n as u8);
    (Hash::of(&bytes), bytes.into())
}

/// A pseudorandom number from a seed.
fn random(seed: u64) -> u64 {
    let hash = Hash::of(&seed.to_le_bytes());
    u64::from_le_bytes(*hash.0.first_chunk().unwrap())
}

/// Defines the tests of the contracts on both disks.
macro_rules! promises {
    ($($suite:ident: $($promise:ident),* ;)*) => {
        mod simulated {$($(
            #[test]
            fn $promise() {
                crate::stores::$suite::$promise::<crate::stores::Disk>();
            }
        )*)*}
        mod real {$($(
            #[test]
            fn $promise() {
                crate::stores::$suite::$promise::<crate::stores::TempDir>();
            }
        )*)*}
    };
}

promises! {
    journal:
        a_new_journal_is_empty,
        records_come_back_in_their_order,
        records_outlive_the_journal,
        a_refused_transaction_leaves_nothing,
        an_outcome_is_adopted_once,
        a_loss_begins_anew,
        replacing_leaves_nothing_else,
        replacing_the_end_leaves_what_is_before_it,
        any_history_reads_like_a_list;
    blobs:
        an_unknown_blob_is_not_there,
        a_blob_is_what_was_put,
        blobs_outlive_the_store,
        several_are_kept_at_once,
        a_blob_that_is_laid_down_is_there_once_it_is_put,
        what_is_not_retained_is_gone,
        what_is_put_after_the_decision_stays,
        a_blob_may_be_put_again,
        readers_see_whole_blobs_while_others_write;
}
