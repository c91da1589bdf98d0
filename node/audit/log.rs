//! Writes the audit log.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use protocol::{Hash, SecretKey};
use task::file;

use super::line::{AuditEvent, AuditLine, LogHead, hex, start};
use super::{AUDIT, HEAD};
use crate::clock;
use crate::store::{self, LogNote, StoreOpenError};

/// Least time between two signatures of the head.
const SIGNED: Duration = Duration::from_secs(1);

/// Largest size of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogSizes {
    /// Bytes after which a new file begins.
    pub file: u64,
    /// Most files.
    pub files: usize,
}

impl Default for LogSizes {
    /// 16 files of 16 MiB.
    fn default() -> Self {
        Self {
            file: 16 << 20,
            files: 16,
        }
    }
}

/// Reason for which a log cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The folder of the log cannot be used.
    #[error(transparent)]
    Folder(#[from] StoreOpenError),
    /// A file of it.
    #[error("the audit log {}: {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// The last line of the log cannot be read, so that no line can follow it.
    #[error(
        "the last line of the audit log {} cannot be read: {why}; to begin a new log, rename the folder \
         {AUDIT} in the state folder", file.display()
    )]
    Last {
        /// The file.
        file: PathBuf,
        /// Reason.
        why: String,
    },
}

/// The audit log of a running node.
pub struct AuditLog {
    folder: PathBuf,
    owner: (Hash, SecretKey),
    /// Note in the journal of the end of the log.
    note: Option<LogNote>,
    /// Faults of the log when it was opened, in sentences.
    findings: Vec<String>,
    sizes: LogSizes,
    /// Numbers of the files, oldest first, with the number and the hash of the last line of each but
    /// the newest.
    files: Vec<(u64, Option<(u64, Hash)>)>,
    file: File,
    /// Bytes in the newest file.
    size: u64,
    /// Number of lines, and the hash of the last.
    last: (u64, Hash),
    /// Number of lines that are written to the file, and the hash of the last of them.
    written: (u64, Hash),
    /// Lines that are not written yet.
    waiting: Vec<u8>,
    /// Lines that could not be written.
    lost: u64,
    /// Time at which the head was signed last.
    signed: Option<Instant>,
}

/// Content of a log when it is opened.
struct ExistingLog {
    /// Files of the log, as in [`AuditLog::files`].
    files: Vec<(u64, Option<(u64, Hash)>)>,
    /// Bytes in the newest file.
    size: u64,
    /// Number of lines, and the hash of the last.
    last: (u64, Hash),
    /// Numbers of the lines that are not those that the silo signed.
    changed: BTreeSet<u64>,
}

impl ExistingLog {
    /// Reads the files of a log, and cuts off what a crash left of a line. `before` stands for the line
    /// before the first.
    fn read(folder: &Path, heads: &[LogHead], before: Hash) -> Result<Self, LogError> {
        let mut changed = BTreeSet::new();
        let mut files = Vec::new();
        let mut last = (0, before);
        let mut size = 0;
        let found = files_in(folder).map_err(|why| at(folder, why))?;
        for (nth, &number) in found.iter().enumerate() {
            let path = folder.join(name(number));
            let bytes = file::read(&path, file::DATA).map_err(|why| at(&path, why))?;
            // A crash may have left a part of a line.
            let whole = bytes.iter().rposition(|byte| *byte == b'\n');
            let whole = whole.map_or(0, |at| at + 1);
            let newest = nth + 1 == found.len();
            if newest && whole < bytes.len() {
                let cut = OpenOptions::new().write(true).open(&path);
                let cut = cut.and_then(|file| file.set_len(whole as u64));
                cut.map_err(|why| at(&path, why))?;
            }
            for head in heads {
                let line = line_of(&bytes[..whole], head.lines);
                if line.is_some_and(|line| hex(&Hash::of(line)) != head.hash) {
                    changed.insert(head.lines);
                }
            }
            if let Some(line) = last_line(&bytes[..whole]) {
                let read: AuditLine =
                    serde_json::from_slice(line).map_err(|why| LogError::Last {
                        file: path.clone(),
                        why: why.to_string(),
                    })?;
                last = (read.line, Hash::of(line));
            }
            size = whole as u64;
            files.push((number, (!newest).then_some(last)));
        }
        if files.is_empty() {
            files.push((1, None));
        }
        Ok(Self {
            files,
            size,
            last,
            changed,
        })
    }
}

impl AuditLog {
    /// Opens the log of the silo with this key in a state folder, or begins one, and notes that the node
    /// started. Where the log is not the one that the silo signed last, or that the journal names with
    /// `note`, a line of it says so.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(
        state: &Path,
        federation: Hash,
        key: &SecretKey,
        sizes: LogSizes,
        note: Option<LogNote>,
    ) -> Result<Self, LogError> {
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Self::open_with(
            state,
            (federation, key),
            sizes,
            note,
            AuditEvent::Started { program },
        )
    }

    /// Writes into a log that was put back from a backup, before its node runs, that it was, and when the
    /// backup was made.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn restored(
        state: &Path,
        federation: Hash,
        key: &SecretKey,
        made: &str,
    ) -> Result<(), LogError> {
        let made = made.to_owned();
        let event = AuditEvent::Restored { made };
        Self::open_with(state, (federation, key), LogSizes::default(), None, event).map(drop)
    }

    /// Opens or begins the log, and notes why.
    fn open_with(
        state: &Path,
        (federation, key): (Hash, &SecretKey),
        sizes: LogSizes,
        note: Option<LogNote>,
        why: AuditEvent,
    ) -> Result<Self, LogError> {
        let folder = store::subfolder(state, AUDIT)?;
        let public = key.public();
        let kept = fs::read(folder.join(HEAD)).ok();
        let noted = note.as_ref().map(LogNote::said);
        let heads = kept.iter().chain(&noted);
        let heads = heads.filter_map(|bytes| LogHead::read(bytes, &federation, &public));
        let heads: Vec<LogHead> = heads.collect();
        let ExistingLog {
            files,
            size,
            last,
            changed,
        } = ExistingLog::read(&folder, &heads, start(&federation, &public))?;
        let newest = files.last().map_or(1, |(number, _)| *number);
        let path = folder.join(name(newest));
        let file = append(&path).map_err(|why| at(&path, why))?;
        let mut log = Self {
            owner: (federation, key.clone()),
            note,
            findings: Vec::new(),
            sizes,
            files,
            file,
            size,
            last,
            written: last,
            waiting: Vec::new(),
            lost: 0,
            signed: None,
            folder,
        };
        let signed = heads.iter().map(|head| head.lines).max();
        log.find(signed.unwrap_or(0), changed);
        log.add(why);
        log.flush().map_err(|why| at(&path, why))?;
        log.sign(true)
            .map_err(|why| at(&log.folder.join(HEAD), why))?;
        Ok(log)
    }

    /// Notes what is wrong with the log, whose line of this number was signed: lines that are gone, and
    /// those that were `changed`.
    fn find(&mut self, signed: u64, changed: BTreeSet<u64>) {
        let missing = signed.saturating_sub(self.last.0);
        if missing > 0 {
            self.findings.push(format!(
                "the last {missing} lines of the audit log are gone: an older copy of it was put back, or a power \
                 cut took them"
            ));
            self.add(AuditEvent::Missing { lines: missing });
        }
        for signed in changed {
            self.findings.push(format!(
                "line {signed} of the audit log is not the one that this node wrote: another log was put back, or \
                 it was changed"
            ));
            self.add(AuditEvent::Changed { signed });
        }
    }

    /// Returns what was wrong with the log when it was opened, in sentences.
    pub fn findings(&self) -> &[String] {
        &self.findings
    }

    /// Adds a line. [`flush`](Self::flush) writes it.
    pub fn add(&mut self, event: AuditEvent) {
        let (lines, before) = &self.last;
        let line = AuditLine {
            line: lines + 1,
            at: clock::to_millisecond(SystemTime::now()),
            event,
            before: hex(before),
        };
        let bytes = line.bytes();
        self.last = (line.line, Hash::of(&bytes));
        self.waiting.extend(bytes);
        self.waiting.push(b'\n');
    }

    /// Writes the lines that were added; at most once a second it signs the head. Where it fails, these
    /// lines are lost, and the next one that can be written says how many.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        if self.size >= self.sizes.file {
            self.rotate()?;
        }
        self.file.write_all(&self.waiting)?;
        self.size += self.waiting.len() as u64;
        self.waiting.clear();
        (self.written, self.lost) = (self.last, 0);
        match self.signed {
            Some(signed) if signed.elapsed() < SIGNED => Ok(()),
            _ => self.sign(false),
        }
    }

    /// Forgets lines that could not be written; the next line says how many.
    pub fn give_up(&mut self) {
        // A part of them may be in the file.
        if let Err(why) = self.file.set_len(self.size) {
            tracing::warn!("the audit log may end in a part of a line: {why}");
        }
        let waiting = self.last.0 - self.written.0;
        // The line that says so may be among them.
        self.lost += waiting - u64::from(self.lost > 0).min(waiting);
        self.last = self.written;
        self.waiting.clear();
        let lines = self.lost;
        self.add(AuditEvent::Lost { lines });
    }

    /// Signs the number of lines and the hash of the last, and lets the journal say it with its next
    /// transaction, or `now`.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sign(&mut self, now: bool) -> io::Result<()> {
        let (federation, key) = &self.owner;
        let head = LogHead::signed(key, federation, (self.last.0, &self.last.1));
        let json = serde_json::to_vec_pretty(&head).expect("strings and numbers are JSON");
        let (path, new) = (self.folder.join(HEAD), self.folder.join("head.json.new"));
        fs::write(&new, &json)?;
        store::close_file(&new)?;
        fs::rename(&new, &path)?;
        self.signed = Some(Instant::now());
        let noted = self.note.as_ref().map(|note| note.note(&json, now));
        if let Some(Err(why)) = noted {
            tracing::warn!("the journal does not have the last line of the audit log: {why}");
        }
        Ok(())
    }

    /// Writes to another file from now on, and gives the one before.
    #[cfg(test)]
    pub(super) fn swap_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
    }

    /// Says nothing more in the journal.
    #[cfg(test)]
    pub(super) fn forget_journal(&mut self) {
        self.note = None;
    }

    fn newest(&self) -> u64 {
        self.files.last().map_or(1, |(number, _)| *number)
    }

    /// Begins a new file, and removes the oldest if there are too many. The lines that wait are the
    /// first of the new file.
    fn rotate(&mut self) -> io::Result<()> {
        let number = self.newest() + 1;
        self.file.sync_all()?;
        self.file = append(&self.folder.join(name(number)))?;
        self.size = 0;
        if let Some(newest) = self.files.last_mut() {
            newest.1 = Some(self.written);
        }
        self.files.push((number, None));
        while self.files.len() > self.sizes.files.max(2) {
            let (oldest, last) = self.files.remove(0);
            fs::remove_file(self.folder.join(name(oldest)))?;
            if let Some((last, hash)) = last {
                let hash = hex(&hash);
                self.add(AuditEvent::Removed { last, hash });
            }
        }
        Ok(())
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let ended = self.flush().and_then(|()| self.sign(true));
        if let Err(why) = ended {
            tracing::warn!("the end of the audit log is not signed: {why}");
        }
    }
}

/// Appends to a file that only its owner can read.
fn append(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    store::close_file(path)?;
    Ok(file)
}

fn at(file: &Path, why: io::Error) -> LogError {
    let file = file.to_owned();
    LogError::File { file, why }
}

/// The line of this number in a file that begins with a whole line and ends with one.
fn line_of(bytes: &[u8], number: u64) -> Option<&[u8]> {
    let mut lines = bytes.strip_suffix(b"\n")?.split(|byte| *byte == b'\n');
    let first = lines.clone().next()?;
    let first: AuditLine = serde_json::from_slice(first).ok()?;
    lines.nth(usize::try_from(number.checked_sub(first.line)?).ok()?)
}

fn last_line(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = bytes.strip_suffix(b"\n")?;
    bytes.rsplit(|byte| *byte == b'\n').next()
}

/// The name of a file of lines.
pub(super) fn name(number: u64) -> String {
    format!("{number:06}.jsonl")
}

/// The numbers of the files in a folder of lines, ascending.
pub(super) fn files_in(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let number = entry.to_str().and_then(|name| name.strip_suffix(".jsonl"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
