//! Reads a journal without its owner's key and without changing it, even while its node runs or after
//! it was killed.
//!
//! The file is copied into memory and opened there, so that redb repairs the copy after a kill. A copy
//! that was taken during a write may be inconsistent; redb's checksums detect that, and the file is
//! copied again. Only the owner has the key of the MACs and can verify every record; other readers
//! verify the signatures of other members in them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use protocol::{Hash, MemberIndex, PublicKey, codec};
use redb::backends::InMemoryBackend;
use redb::{Database, ReadableDatabase, ReadableTable, StorageBackend};
use silo::JournalRecord;
use task::file;

use super::error::{StoreOpenError, at, damaged, io_error};
use super::folder;
use super::frame::{FORMAT, Unread, read_head, unproven};
use super::journal::{HEAD, NAME, RECORDS};

/// Most attempts to take a consistent copy.
const TRIES: usize = 20;

/// The records of a journal at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The federation that it belongs to.
    pub federation: Hash,
    /// The member that wrote it.
    pub member: MemberIndex,
    /// The key that it names as its owner's.
    pub key: PublicKey,
    /// End of the audit log beside it, as that log reported it; empty for nothing.
    pub log: Vec<u8>,
    /// Records of the journal, oldest first.
    pub records: Vec<JournalRecord>,
}

/// Reads the journal in `folder`.
///
/// # Errors
/// [`StoreOpenError`]: there is none, it cannot be read, or it is damaged.
pub fn snapshot(folder: &Path) -> Result<Snapshot, StoreOpenError> {
    let path = folder.join(NAME);
    folder::regular(&path)?;
    let mut tries = 0;
    loop {
        tries += 1;
        let bytes = file::read(&path, file::DATA).map_err(|error| io_error(&path, error))?;
        // Damaged bytes can make redb panic instead of returning an error.
        let read = catch_unwind(AssertUnwindSafe(|| parse(&path, &bytes)));
        match read.unwrap_or_else(|_| Err(damaged(&path, "its pages cannot be read"))) {
            Err(StoreOpenError::Damaged { .. }) if tries < TRIES => {}
            other => return other,
        }
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Snapshot, StoreOpenError> {
    if bytes.is_empty() {
        return Err(damaged(path, "it is empty"));
    }
    let memory = InMemoryBackend::new();
    let filled = memory.set_len(bytes.len() as u64);
    filled
        .and_then(|()| memory.write(0, bytes))
        .map_err(|error| io_error(path, error))?;
    let mut database = Database::builder()
        .create_with_backend(memory)
        .map_err(at(path))?;
    database.check_integrity().map_err(at(path))?;
    let transaction = database.begin_read().map_err(at(path))?;
    let table = transaction.open_table(HEAD).map_err(at(path))?;
    let row = table.get(()).map_err(at(path))?;
    let row = row.ok_or_else(|| damaged(path, "it has no head"))?;
    let head = read_head(row.value()).map_err(|error| match error {
        Unread::Damaged(why) => damaged(path, why),
        Unread::Newer(found) => StoreOpenError::Newer {
            path: path.to_owned(),
            found,
            ours: FORMAT,
        },
    })?;
    let mut records = Vec::new();
    let table = transaction.open_table(RECORDS).map_err(at(path))?;
    for (nth, row) in (0..).zip(table.iter().map_err(at(path))?) {
        let (sequence, frame) = row.map_err(at(path))?;
        let broken = |why: &str| damaged(path, format!("record {nth}: {why}"));
        if sequence.value() != nth {
            return Err(broken("it is missing"));
        }
        let payload = unproven(nth, frame.value()).map_err(broken)?;
        let record = codec::decode(payload, codec::LIMIT);
        records.push(record.map_err(|error| broken(&error.to_string()))?);
    }
    if records.len() as u64 != head.records {
        let why = format!(
            "{} records where {} were written",
            records.len(),
            head.records
        );
        return Err(damaged(path, why));
    }
    Ok(Snapshot {
        federation: head.federation,
        member: head.member,
        key: head.key,
        log: head.log,
        records,
    })
}
