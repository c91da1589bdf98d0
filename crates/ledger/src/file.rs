//! The file of a ledger: made once, locked while it is used, and durable before a call returns.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use privacy::accountant::Bound;
use protocol::Hash;

use crate::Ledger;
use crate::contribution::{Contribution, Cost, Place};
use crate::error::LedgerError;
use crate::header::{self, LedgerHeader, Source};
use crate::limits::Limits;
use crate::line::Line;
use crate::read::LedgerContents;

/// Longest time for which another process may have the file.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest time where the caller holds others up: what another node needs for a line, and its disk for that.
const MOMENT: Duration = Duration::from_millis(250);
/// Time between two attempts to lock it.
const PAUSE: Duration = Duration::from_millis(5);
/// Most bytes of a ledger: some hundred thousand lines.
const MOST: u64 = 1 << 28;

/// The ledger of a source, with the limits of the institution.
#[derive(Debug)]
pub struct LedgerFile {
    file: PathBuf,
    limits: Limits,
    /// Longest time for which another process may have it.
    patience: Duration,
    /// The number of lines that this process saw last, and the hash of the last one: a file without it
    /// is an older copy, or another one.
    seen: Mutex<Option<(usize, Hash)>>,
}

impl LedgerFile {
    /// The ledger in a file. It is opened, and locked, only while a call uses it.
    pub fn at(file: impl Into<PathBuf>, limits: Limits) -> Self {
        Self {
            file: file.into(),
            limits,
            patience: PATIENCE,
            seen: Mutex::new(None),
        }
    }

    /// Waits only a moment for another process: for a running node, which others wait for.
    #[must_use]
    pub fn briefly(self) -> Self {
        Self {
            patience: MOMENT,
            ..self
        }
    }

    /// Makes the ledger of a source, which must not exist. `id` is random.
    ///
    /// # Errors
    /// [`LedgerError::Exists`], or [`LedgerError::Io`] where the file cannot be written.
    pub fn create(file: &Path, source: &Source, id: &[u8; 16]) -> Result<(), LedgerError> {
        let made = || {
            // Written whole under another name, so that a kill leaves no half of a ledger. A link never
            // replaces a file.
            let mut name = file.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}", HEXLOWER.encode(id)));
            let other = file.with_file_name(name);
            let mut options = OpenOptions::new();
            owned(options.write(true).create_new(true));
            let mut new = options.open(&other)?;
            let text = LedgerHeader::begin(source, id) + "\n";
            new.write_all(text.as_bytes())?;
            new.sync_all()?;
            let linked = fs::hard_link(&other, file);
            fs::remove_file(&other)?;
            linked?;
            sync_folder(file)
        };
        made().map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => LedgerError::Exists {
                file: file.to_owned(),
            },
            _ => at(file, why),
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The limits of the institution.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads the ledger, and changes nothing.
    ///
    /// # Errors
    /// [`LedgerError`]: missing, in use, damaged, or older than what this process saw.
    pub fn read(&self) -> Result<LedgerContents, LedgerError> {
        self.load(&mut self.locked(false)?)
    }

    /// Adds the lines of contributions that others know of, where there is none, and returns what was added.
    /// No limit refuses them: what was told was told.
    ///
    /// # Errors
    /// [`LedgerError`]: missing, in use, damaged, or of another unit. Lines before the error stay.
    pub fn reconcile(&self, known: &[(Place, Cost)]) -> Result<Vec<Line>, LedgerError> {
        let mut file = self.locked(true)?;
        let mut contents = self.load(&mut file)?;
        let mut added = Vec::new();
        for (place, cost) in known {
            if contents.at(place).is_some() {
                continue;
            }
            self.same_unit(&contents, cost)?;
            let (number, bound) = contents.with(cost, self.limits.delta);
            let line = Line::reconciled(number, (*place, cost), &bound);
            let (text, hash) = line.text(contents.last());
            let text = text + "\n";
            Self::append(&mut file, &contents, &text).map_err(|why| at(&self.file, why))?;
            self.saw(contents.lines.len() + 1, hash);
            let read = contents.add(text.as_bytes());
            read.map_err(|why| at(&self.file, io::Error::other(why)))?;
            added.push(line);
        }
        Ok(added)
    }

    /// Returns whether a contribution protects what the ledger counts.
    fn same_unit(&self, contents: &LedgerContents, cost: &Cost) -> Result<(), LedgerError> {
        let ledger = &contents.source.unit;
        match cost {
            Cost::Noised { unit, .. } if unit != ledger => Err(LedgerError::OtherUnit {
                file: self.file.clone(),
                ledger: ledger.clone(),
                agreed: unit.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Opens and locks the file, for this process alone if it is to be written.
    fn locked(&self, write: bool) -> Result<File, LedgerError> {
        // Opening a pipe would wait for ever.
        if fs::metadata(&self.file).is_ok_and(|found| !found.is_file()) {
            return Err(at(&self.file, io::Error::other("it is not a regular file")));
        }
        let opened = OpenOptions::new().read(true).write(write).open(&self.file);
        let file = opened.map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => LedgerError::Missing {
                file: self.file.clone(),
            },
            _ => at(&self.file, why),
        })?;
        let began = Instant::now();
        loop {
            let locked = if write {
                file.try_lock()
            } else {
                file.try_lock_shared()
            };
            match locked {
                Ok(()) if self.is_still(&file) => return Ok(file),
                Ok(()) => {
                    let why = "another file was put in its place while it was opened";
                    return Err(self.rolled_back(why.into()));
                }
                Err(TryLockError::Error(why)) => return Err(at(&self.file, why)),
                Err(TryLockError::WouldBlock) if began.elapsed() > self.patience => {
                    return Err(LedgerError::InUse {
                        file: self.file.clone(),
                    });
                }
                Err(TryLockError::WouldBlock) => wait_for_another_process(),
            }
        }
    }

    /// Returns whether an opened file is still the one with the name of the ledger.
    fn is_still(&self, file: &File) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let identity = |found: fs::Metadata| (found.dev(), found.ino());
            let (named, opened) = (fs::metadata(&self.file), file.metadata());
            named.ok().map(identity) == opened.ok().map(identity)
        }
        #[cfg(not(unix))]
        {
            let _ = file;
            true
        }
    }

    /// Reads the locked file, and compares it with what this process saw last.
    fn load(&self, file: &mut File) -> Result<LedgerContents, LedgerError> {
        let mut bytes = Vec::new();
        let read = Read::by_ref(file).take(MOST + 1).read_to_end(&mut bytes);
        read.map_err(|why| at(&self.file, why))?;
        if bytes.len() as u64 > MOST {
            let why = format!("it has more than {MOST} bytes");
            return Err(at(&self.file, io::Error::other(why)));
        }
        let contents = LedgerContents::read(&self.file, &bytes)?;
        if let Some((lines, hash)) = *self.seen()
            && contents.hashes.get(lines) != Some(&hash)
        {
            let why = format!("line {lines} that was there before is not there");
            return Err(self.rolled_back(why));
        }
        self.saw(contents.lines.len(), *contents.last());
        Ok(contents)
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Option<(usize, Hash)>> {
        let seen = self.seen.lock();
        seen.unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn saw(&self, lines: usize, last: Hash) {
        *self.seen() = Some((lines, last));
    }

    fn rolled_back(&self, why: String) -> LedgerError {
        LedgerError::RolledBack {
            file: self.file.clone(),
            why,
        }
    }

    /// Removes what a killed process left of a line, appends another one, and makes it durable; and only
    /// then counts it.
    fn append(file: &mut File, contents: &LedgerContents, text: &str) -> io::Result<()> {
        file.set_len(contents.whole as u64)?;
        file.seek(SeekFrom::Start(contents.whole as u64))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Self::count(file, contents.lines.len() as u64 + 1)
    }

    /// Counts lines that are durable.
    fn count(file: &mut File, lines: u64) -> io::Result<()> {
        file.seek(SeekFrom::Start(header::DIGITS.start as u64))?;
        file.write_all(header::digits(lines).as_bytes())?;
        file.sync_all()
    }
}

impl Ledger for LedgerFile {
    fn record(&self, contribution: &Contribution) -> Result<Bound, LedgerError> {
        let mut file = self.locked(true)?;
        let contents = self.load(&mut file)?;
        self.same_unit(&contents, &contribution.cost)?;
        let place = contribution.place;
        let commitment = HEXLOWER.encode(&contribution.commitment.0);
        if let Some(line) = contents.at(&place) {
            if line.commitment != commitment {
                return Err(LedgerError::Second { place });
            }
            // The process that wrote it may have been killed before it knew that the line is durable.
            let lines = contents.lines.len() as u64;
            let counted = file.sync_all().and_then(|()| Self::count(&mut file, lines));
            counted.map_err(|why| at(&self.file, why))?;
            return Ok(contents.bound(self.limits.delta));
        }
        let (number, bound) = contents.with(&contribution.cost, self.limits.delta);
        if let Some(limit) = self.limits.exceeded(&bound) {
            return Err(LedgerError::Spent { bound, limit });
        }
        let line = Line::new(number, contribution, &bound);
        let (text, hash) = line.text(contents.last());
        Self::append(&mut file, &contents, &(text + "\n")).map_err(|why| at(&self.file, why))?;
        self.saw(contents.lines.len() + 1, hash);
        Ok(bound)
    }

    fn expect(&self, places: &[Place]) -> Result<(), LedgerError> {
        if places.is_empty() {
            return Ok(());
        }
        let contents = self.read()?;
        match places.iter().find(|place| contents.at(place).is_none()) {
            None => Ok(()),
            Some(place) => Err(LedgerError::Lacks {
                file: self.file.clone(),
                place: *place,
            }),
        }
    }
}

/// Waits a moment. The system tells nobody when a lock becomes free, except who waits for it without end.
#[expect(
    clippy::disallowed_methods,
    reason = "a lock of another process is waited for, with an end"
)]
fn wait_for_another_process() {
    std::thread::sleep(PAUSE);
}

/// The file is for its owner alone.
fn owned(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes the name of a file durable.
fn sync_folder(file: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let folder = file.parent().filter(|parent| *parent != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = file;
    Ok(())
}

fn at(file: &Path, why: io::Error) -> LedgerError {
    LedgerError::Io {
        file: file.to_owned(),
        why,
    }
}
