//! Writes the audit log.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use learn::file;
use protocol::{Epoch, Hash, MemberIndex, SecretKey};

use super::line::{Event, Head, Line, hex, start};
use super::{AUDIT, HEAD};
use crate::store::{self, OpenError};

/// Least time between two signatures of the head.
const SIGNED: Duration = Duration::from_secs(1);

/// How large the log may become.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Bytes after which a new file begins.
    pub file: u64,
    /// Most files.
    pub files: usize,
}

impl Default for Sizes {
    /// 16 files of 16 MiB.
    fn default() -> Self {
        Self {
            file: 16 << 20,
            files: 16,
        }
    }
}

/// Why a log cannot be continued.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Its folder.
    #[error(transparent)]
    Folder(#[from] OpenError),
    /// A file of it.
    #[error("the audit log {}: {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// Its last line cannot be read, so that no line can follow it.
    #[error(
        "the last line of the audit log {} cannot be read: {why}; to begin a new log, rename the folder \
         {AUDIT} in the state folder", file.display()
    )]
    Last {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

/// The audit log of a running node.
pub struct AuditLog {
    folder: PathBuf,
    owner: (Hash, MemberIndex, SecretKey),
    sizes: Sizes,
    /// Numbers of the files, oldest first, with the number and the hash of the last line of each but
    /// the newest.
    files: Vec<(u64, Option<(u64, Hash)>)>,
    file: File,
    /// Bytes in the newest file.
    size: u64,
    /// Number of lines, and the hash of the last.
    last: (u64, Hash),
    /// The same of the lines that are written.
    written: (u64, Hash),
    /// Lines that are not written yet.
    waiting: Vec<u8>,
    /// Lines that could not be written.
    lost: u64,
    /// When the head was signed last.
    signed: Option<Instant>,
}

impl AuditLog {
    /// Opens the log in a state folder, or begins one, and notes that the node started.
    ///
    /// # Errors
    /// [`LogError`].
    pub fn open(
        state: &Path,
        epoch: &Epoch,
        me: MemberIndex,
        key: &SecretKey,
        sizes: Sizes,
    ) -> Result<Self, LogError> {
        let folder = store::subfolder(state, AUDIT)?;
        let federation = epoch.federation;
        let mut files = Vec::new();
        let mut last = (0, start(&federation, me));
        let mut size = 0;
        let found = files_in(&folder).map_err(|why| at(&folder, why))?;
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
            if let Some(line) = last_line(&bytes[..whole]) {
                let read: Line = serde_json::from_slice(line).map_err(|why| LogError::Last {
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
        let newest = files.last().map_or(1, |(number, _)| *number);
        let path = folder.join(name(newest));
        let file = append(&path).map_err(|why| at(&path, why))?;
        let mut log = Self {
            owner: (federation, me, key.clone()),
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
        let head = read_head(&log.folder);
        let head = head.filter(|head| head.verify(&key.public()));
        if let Some(missing) = head.and_then(|head| head.lines.checked_sub(log.last.0))
            && missing > 0
        {
            log.add(Event::Missing { lines: missing });
        }
        let program = env!("CARGO_PKG_VERSION").to_owned();
        log.add(Event::Started { program });
        log.flush().map_err(|why| at(&path, why))?;
        log.sign().map_err(|why| at(&log.folder.join(HEAD), why))?;
        Ok(log)
    }

    /// Adds a line. [`flush`](Self::flush) writes it.
    pub fn add(&mut self, event: Event) {
        let (lines, before) = &self.last;
        let line = Line {
            line: lines + 1,
            at: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
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
            _ => self.sign(),
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
        self.add(Event::Lost { lines });
    }

    /// Signs the number of lines and the hash of the last.
    ///
    /// # Errors
    /// Errors of the system.
    pub fn sign(&mut self) -> io::Result<()> {
        let (federation, me, key) = &self.owner;
        let head = Head::signed(key, federation, *me, (self.last.0, &self.last.1));
        let json = serde_json::to_vec_pretty(&head).expect("strings and numbers are JSON");
        let (path, new) = (self.folder.join(HEAD), self.folder.join("head.json.new"));
        fs::write(&new, json)?;
        store::close_file(&new)?;
        fs::rename(&new, &path)?;
        self.signed = Some(Instant::now());
        Ok(())
    }

    /// Writes to another file from now on, and gives the one before.
    #[cfg(test)]
    pub(super) fn swap_file(&mut self, file: File) -> File {
        std::mem::replace(&mut self.file, file)
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
                self.add(Event::Removed { last, hash });
            }
        }
        Ok(())
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let ended = self.flush().and_then(|()| self.sign());
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

/// The signed head, if there is one.
pub(super) fn read_head(folder: &Path) -> Option<Head> {
    let bytes = file::read(&folder.join(HEAD), file::CONFIGURATION).ok()?;
    serde_json::from_slice(&bytes).ok()
}
