//! A silo's journal in one redb file.
//!
//! One transaction of the silo is one transaction of redb, with two-phase commit and immediate
//! durability: after a crash the journal has either all of its records, counted in the head, or none.
//! `docs/decisions/0004-journal-on-redb.md` explains the choice of redb, and how to replace it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use protocol::codec;
use redb::{
    Builder, Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition,
    WriteTransaction,
};
use silo::{Adoptions, Journal, JournalRecord, StoreError};

use super::blobs::any as any_blob;
use super::error::{StoreOpenError, at, damaged, io_error};
use super::frame::{FORMAT, Framer, JournalHead, Mac, Owner, Unread, mac_of, read_head};
use super::{Note, Notes, folder};

/// Records by their sequence number, from 0, without a gap.
pub(super) const RECORDS: TableDefinition<u64, &[u8]> = TableDefinition::new("records");
/// The head, in one row.
pub(super) const HEAD: TableDefinition<(), &[u8]> = TableDefinition::new("head");
/// Name of the file.
pub(super) const NAME: &str = "journal.redb";
/// Name of the file while a new journal is being written.
const NEW: &str = "journal.redb.new";
/// Bytes of pages that redb keeps in memory. Few suffice: a record is written once and read once.
const CACHE: usize = 4 << 20;

/// Time that a note about the audit log may wait for a transaction of the silo.
const NOTED: Duration = Duration::from_secs(60);

/// A journal on disk, verified when it is opened. It is locked until it and its [`LogNote`]s are dropped.
pub struct DiskJournal {
    path: PathBuf,
    core: Arc<Mutex<JournalFile>>,
    adoptions: Adoptions,
}

/// The file, and what was written into it.
struct JournalFile {
    database: Database,
    framer: Framer,
    head: JournalHead,
    /// Note about the audit log for the next head.
    log: Vec<u8>,
    /// Time at which the head was written last.
    written: Instant,
    _lock: folder::Lock,
}

/// Says in a journal how far the audit log beside it has come, so that an older copy of that log is
/// noticed.
#[derive(Clone)]
pub struct LogNote {
    path: PathBuf,
    core: Arc<Mutex<JournalFile>>,
}

fn locked(core: &Mutex<JournalFile>) -> MutexGuard<'_, JournalFile> {
    // A step that panicked has not changed the head, which follows its transaction.
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogNote {
    /// Returns what was noted last; empty for nothing.
    pub fn said(&self) -> Vec<u8> {
        locked(&self.core).log.clone()
    }

    /// Notes how far the log has come. It is durable with the next transaction of the silo, at once if
    /// `now`, and at the latest with the first note a minute after the last transaction.
    ///
    /// # Errors
    /// [`StoreError`]: it is not durable.
    pub fn note(&self, log: &[u8], now: bool) -> Result<(), StoreError> {
        let mut core = locked(&self.core);
        core.log = log.to_vec();
        let due = now || core.written.elapsed() >= NOTED;
        let head = core.head.clone();
        if due && head.log != log {
            core.transact(&self.path, head, &[])
        } else {
            Ok(())
        }
    }
}

impl JournalFile {
    /// One transaction: records behind those that `head` counts, in place of any others.
    fn transact(
        &mut self,
        path: &Path,
        mut head: JournalHead,
        records: &[JournalRecord],
    ) -> Result<(), StoreError> {
        head.log.clone_from(&self.log);
        let transaction = durable(&self.database).map_err(at(path))?;
        append(&transaction, &self.framer, &mut head, records).map_err(at(path))?;
        transaction.commit().map_err(at(path))?;
        self.head = head;
        self.written = Instant::now();
        Ok(())
    }

    /// The MAC that a record at this position follows.
    fn mac_before(&self, path: &Path, position: u64) -> Result<Mac, StoreOpenError> {
        let Some(before) = position.checked_sub(1) else {
            return Ok(self.framer.start());
        };
        let transaction = self.database.begin_read().map_err(at(path))?;
        let table = transaction.open_table(RECORDS).map_err(at(path))?;
        let row = table.get(before).map_err(at(path))?;
        let mac = row.and_then(|row| mac_of(row.value()));
        mac.ok_or_else(|| damaged(path, format!("record {before}: it is missing")))
    }
}

impl DiskJournal {
    /// Opens the journal in `folder` and verifies every page and record of it. Starts a new one if
    /// there is none.
    ///
    /// # Errors
    /// [`StoreOpenError`]: in use, of another owner, of a newer format, damaged, or an error of the system.
    pub fn open(folder: &Path, owner: &Owner) -> Result<Self, StoreOpenError> {
        Self::open_noting(folder, owner, false, &mut Notes::new())
    }

    /// As [`open`](Self::open), with notes for the operator. If the journal is declared `lost`, an
    /// existing one is kept under another name.
    pub(super) fn open_noting(
        folder: &Path,
        owner: &Owner,
        lost: bool,
        notes: &mut Notes,
    ) -> Result<Self, StoreOpenError> {
        folder::make(folder, notes)?;
        let lock = lock(folder, lost, notes)?;
        let path = folder.join(NAME);
        let framer = Framer::new(owner);
        if lost {
            give_up(&path, owner, &framer, notes)?;
        }
        if !path.try_exists().map_err(|error| io_error(&path, error))? {
            // Blobs, or journals that were set aside, show that this silo has run before and may
            // have voted. This includes a crash between setting a journal aside and starting a new one.
            let used = any_blob(folder) || any_aside(folder)?;
            if used && !lost {
                notes.push(Note::Gone(path.clone()));
            }
            let records: &[_] = if used || lost {
                &[JournalRecord::Lost]
            } else {
                &[]
            };
            begin(folder, &path, owner, &framer, records)?;
        }
        let (database, head, adoptions) = whole(&path, owner, &framer)?;
        folder::close(&path, notes)?;
        let core = JournalFile {
            database,
            framer,
            log: head.log.clone(),
            head,
            written: Instant::now(),
            _lock: lock,
        };
        Ok(Self {
            path,
            core: Arc::new(Mutex::new(core)),
            adoptions,
        })
    }

    /// Returns where the audit log says how far it has come.
    pub fn log_note(&self) -> LogNote {
        LogNote {
            path: self.path.clone(),
            core: self.core.clone(),
        }
    }

    /// One transaction: replaces the records from position `from` on by these, if there are so many;
    /// behind the last one without `from`.
    fn write(&mut self, from: Option<u64>, records: &[JournalRecord]) -> Result<(), StoreError> {
        let core = self.core.clone();
        let mut core = locked(&core);
        let mut head = core.head.clone();
        let few = head.records;
        let from = from.unwrap_or(few);
        if few < from {
            let why = format!("it has {few} records, and {from} should stay");
            return Err(self.refused(why));
        }
        // Most transactions only add.
        let cut = (from < few).then(|| self.adoptions.before(from));
        if let Some(block) = cut.as_ref().unwrap_or(&self.adoptions).again(records) {
            return Err(self.refused(format!(
                "the outcome of block {block} was adopted before, it must be adopted once"
            )));
        }
        if from < few {
            (head.records, head.last) = (from, core.mac_before(&self.path, from)?);
        }
        core.transact(&self.path, head, records)?;
        if let Some(cut) = cut {
            self.adoptions = cut;
        }
        self.adoptions.take(records);
        Ok(())
    }

    fn refused(&self, why: String) -> StoreError {
        StoreError {
            what: format!("the journal {}", self.path.display()),
            why,
        }
    }
}

impl Journal for DiskJournal {
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError> {
        let mut records = Vec::new();
        let keep = |record| records.push(record);
        let core = locked(&self.core);
        read(&core.database, &self.path, &core.framer, &core.head, keep)?;
        Ok(records)
    }

    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.write(None, &records)
    }

    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.write(Some(from), &records)
    }
}

/// Takes the lock of the folder. If the journal is declared lost, a lock file that cannot be used is
/// set aside: no process can hold it.
fn lock(folder: &Path, lost: bool, notes: &mut Notes) -> Result<folder::Lock, StoreOpenError> {
    match folder::lock(folder, notes) {
        Err(StoreOpenError::Damaged { .. } | StoreOpenError::Io { .. }) if lost => {
            let from = folder.join("lock");
            let to = folder::set_aside(&from, "unreadable")?;
            let why = "it is not a lock file".to_owned();
            notes.push(Note::SetAside { from, to, why });
            folder::lock(folder, notes)
        }
        lock => lock,
    }
}

/// Sets aside a journal that is declared lost, unless its only record is [`JournalRecord::Lost`].
fn give_up(
    path: &Path,
    owner: &Owner,
    framer: &Framer,
    notes: &mut Notes,
) -> Result<(), StoreOpenError> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let (what, why) = match whole(path, owner, framer) {
        Ok((database, head, _)) => {
            let mut more = false;
            let count = |record| more |= record != JournalRecord::Lost;
            read(&database, path, framer, &head, count)?;
            if !more {
                return Ok(());
            }
            ("lost", "it was declared lost".to_owned())
        }
        Err(StoreOpenError::Damaged { why, .. }) => ("damaged", format!("it is damaged ({why})")),
        Err(StoreOpenError::Newer { found, .. }) => ("newer", format!("it has format {found}")),
        Err(StoreOpenError::Io { reason, .. }) => {
            ("unreadable", format!("it is unreadable ({reason})"))
        }
        Err(other) => return Err(other),
    };
    let (from, to) = (path.to_owned(), folder::set_aside(path, what)?);
    notes.push(Note::SetAside { from, to, why });
    Ok(())
}

/// Returns whether a journal was set aside in this folder.
pub(super) fn any_aside(folder: &Path) -> Result<bool, StoreOpenError> {
    let error = |error| io_error(folder, error);
    let mut aside = false;
    for entry in fs::read_dir(folder).map_err(error)? {
        let name = entry.map_err(error)?.file_name();
        let name = name.to_string_lossy();
        aside |= name != NEW && name.starts_with(&format!("{NAME}."));
    }
    Ok(aside)
}

/// Starts a journal with these records in a folder that has none.
pub(super) fn begin_with(
    folder: &Path,
    owner: &Owner,
    records: &[JournalRecord],
) -> Result<(), StoreOpenError> {
    let mut notes = Notes::new();
    folder::make(folder, &mut notes)?;
    let _lock = folder::lock(folder, &mut notes)?;
    let path = folder.join(NAME);
    begin(folder, &path, owner, &Framer::new(owner), records)
}

/// Starts a journal, empty or declared lost. It is written under a temporary name and renamed, so
/// after a crash there is either no journal or a complete one.
fn begin(
    folder: &Path,
    path: &Path,
    owner: &Owner,
    framer: &Framer,
    records: &[JournalRecord],
) -> Result<(), StoreOpenError> {
    let new = folder.join(NEW);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(io_error(&new, error));
        }
        _ => {}
    }
    let file = folder::create(&new).map_err(|error| io_error(&new, error))?;
    let database = builder().create_file(file).map_err(at(&new))?;
    let mut head = JournalHead {
        federation: owner.federation,
        member: owner.me,
        key: owner.key.public(),
        records: 0,
        last: framer.start(),
        log: Vec::new(),
    };
    let transaction = durable(&database).map_err(at(&new))?;
    append(&transaction, framer, &mut head, records).map_err(at(&new))?;
    transaction.commit().map_err(at(&new))?;
    drop(database);
    fs::rename(&new, path)
        .and_then(|()| folder::sync(folder))
        .map_err(|error| io_error(path, error))
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    builder
}

/// A transaction that is durable once it is committed.
fn durable(database: &Database) -> Result<WriteTransaction, redb::Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_durability(Durability::Immediate)?;
    // With two-phase commit an incomplete transaction is never taken for a commit by its checksum.
    transaction.set_two_phase_commit(true);
    Ok(transaction)
}

/// Writes records after those that the head counts, in place of any others, and the new head.
fn append(
    transaction: &WriteTransaction,
    framer: &Framer,
    head: &mut JournalHead,
    records: &[JournalRecord],
) -> Result<(), redb::Error> {
    let mut table: Table<u64, &[u8]> = transaction.open_table(RECORDS)?;
    table.retain_in(head.records.., |_, _| false)?;
    for record in records {
        let (frame, mac) = framer.record(head.records, &head.last, &codec::encode(record));
        table.insert(head.records, &frame[..])?;
        (head.records, head.last) = (head.records + 1, mac);
    }
    transaction
        .open_table(HEAD)?
        .insert((), &framer.head(head)[..])?;
    Ok(())
}

/// Opens the file, and reads and verifies all of it.
fn whole(
    path: &Path,
    owner: &Owner,
    framer: &Framer,
) -> Result<(Database, JournalHead, Adoptions), StoreOpenError> {
    folder::regular(path)?;
    // Damaged bytes can make redb panic instead of returning an error.
    let verified = catch_unwind(AssertUnwindSafe(|| verify(path, owner, framer)));
    verified.unwrap_or_else(|_| Err(damaged(path, "its pages cannot be read")))
}

fn verify(
    path: &Path,
    owner: &Owner,
    framer: &Framer,
) -> Result<(Database, JournalHead, Adoptions), StoreOpenError> {
    let mut database = builder().open(path).map_err(at(path))?;
    if !database.check_integrity().map_err(at(path))? {
        tracing::warn!(journal = %path.display(), "the journal was repaired after a crash");
    }
    let head = head(&database, path, owner, framer)?;
    let mut adoptions = Adoptions::default();
    let mut twice = None;
    read(&database, path, framer, &head, |record| {
        let record = [record];
        twice = twice.or(adoptions.again(&record));
        adoptions.take(&record);
    })?;
    match twice {
        None => Ok((database, head, adoptions)),
        Some(block) => Err(damaged(
            path,
            format!("it adopts the outcome of block {block} twice"),
        )),
    }
}

/// Reads the head and checks its owner.
fn head(
    database: &Database,
    path: &Path,
    owner: &Owner,
    framer: &Framer,
) -> Result<JournalHead, StoreOpenError> {
    let transaction = database.begin_read().map_err(at(path))?;
    let table = transaction.open_table(HEAD).map_err(at(path))?;
    let row = table.get(()).map_err(at(path))?;
    let row = row.ok_or_else(|| damaged(path, "it has no head"))?;
    let (path, bytes) = (path.to_owned(), row.value());
    let head = match read_head(bytes) {
        Ok(head) => head,
        Err(Unread::Damaged(why)) => return Err(damaged(&path, why)),
        Err(Unread::Newer(found)) => {
            return Err(StoreOpenError::Newer {
                path,
                found,
                ours: FORMAT,
            });
        }
    };
    if head.federation != owner.federation {
        return Err(StoreOpenError::Federation {
            path,
            found: head.federation,
            ours: owner.federation,
        });
    }
    if head.member != owner.me {
        return Err(StoreOpenError::Member {
            path,
            found: head.member,
            ours: owner.me,
        });
    }
    if head.key != owner.key.public() {
        return Err(StoreOpenError::Key {
            path,
            found: head.key,
            ours: owner.key.public(),
        });
    }
    if !framer.wrote(&head, bytes) {
        return Err(damaged(&path, "the head was changed"));
    }
    Ok(head)
}

/// Calls `take` with every record, oldest first, after verifying it.
fn read(
    database: &Database,
    path: &Path,
    framer: &Framer,
    head: &JournalHead,
    mut take: impl FnMut(JournalRecord),
) -> Result<(), StoreOpenError> {
    let transaction = database.begin_read().map_err(at(path))?;
    let table = transaction.open_table(RECORDS).map_err(at(path))?;
    let (mut next, mut before): (u64, Mac) = (0, framer.start());
    for row in table.iter().map_err(at(path))? {
        let (sequence, frame) = row.map_err(at(path))?;
        let broken = |why: &str| damaged(path, format!("record {next}: {why}"));
        if sequence.value() != next {
            return Err(broken("it is missing"));
        }
        let (payload, mac) = match framer.open(next, &before, frame.value()) {
            Ok(opened) => opened,
            Err(why) => return Err(broken(why)),
        };
        let record = codec::decode(payload, codec::LIMIT);
        take(record.map_err(|error| broken(&error.to_string()))?);
        (next, before) = (next + 1, mac);
    }
    if (next, before) != (head.records, head.last) {
        let why = format!("{} records where {} were written", next, head.records);
        return Err(damaged(path, why));
    }
    Ok(())
}
