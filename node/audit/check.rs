//! Reads an audit log, and names the first line that was changed, cut out or added.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::epochs::Epochs;
use protocol::{Epoch, Hash, PublicKey};
use serde::Serialize;
use task::file;

use super::line::{AuditEvent, AuditLine, LogHead, hex, start};
use super::log::{files_in, name};
use super::{AUDIT, HEAD};
use crate::store::{self, Snapshot, StoreOpenError};
use formatting::numbers::plain;

/// Reason for which an audit log was not checked, or fault in it.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No log.
    #[error(
        "there is no audit log in {}: the node has not run yet", .0.display()
    )]
    Nothing(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Reason.
        why: io::Error,
    },
    /// The journal beside it cannot be read.
    #[error(transparent)]
    Journal(#[from] StoreOpenError),
    /// Something in it is wrong.
    #[error("the audit log in {} was changed after the node wrote it: {what}", folder.display())]
    Wrong {
        /// The folder.
        folder: PathBuf,
        /// The first thing that is wrong.
        what: String,
    },
    /// The lines could not be passed on.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

/// A log that is whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Audited {
    /// The silo that sent all this.
    pub silo: String,
    /// Number of the first line that is kept, and of the last.
    pub lines: (u64, u64),
    /// Lines up to this number are signed by the silo. Later ones are from its last second.
    pub signed: u64,
    /// The line that the journal beside it names: an older copy of the log would end before it.
    pub journal: Option<u64>,
    /// Times at which the first line was written, and the last.
    pub times: (String, String),
    /// By receiver and kind: how many, and bytes.
    pub sent: BTreeMap<String, BTreeMap<String, (u64, u64)>>,
    /// Events in the life of the log, in sentences.
    pub notes: Vec<String>,
}

/// Checks the log in a state folder, for a silo of the federation whose first epoch this is, against the
/// head that the silo signed and the one that the journal beside it names. Calls `take` with every line
/// that was checked.
///
/// # Errors
/// [`CheckError`]: [`Wrong`](CheckError::Wrong) with the first line that is wrong.
pub fn check(
    state: &Path,
    epoch: &Epoch,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<Audited, CheckError> {
    let folder = state.join(AUDIT);
    let unreadable = |file: &Path| {
        let file = file.to_owned();
        move |why| CheckError::Unreadable { file, why }
    };
    let wrong = |what: String| CheckError::Wrong {
        folder: state.to_owned(),
        what,
    };
    // Before the log, which a running node writes on: the journal names no line that is not there yet.
    let journal = if store::has_journal(state) {
        Some(store::snapshot(state)?)
    } else {
        None
    };
    if !folder.is_dir() {
        let named = journal.is_some_and(|journal| !journal.log.is_empty());
        return Err(if named {
            wrong("it is gone, and the journal beside it names it".into())
        } else {
            CheckError::Nothing(state.to_owned())
        });
    }
    let (head, key, silo) = signed(&folder, epoch, journal.as_ref()).map_err(wrong)?;
    let mut marks = vec![SignedLine::of(&head, "the silo signed")];
    let mut notes = Vec::new();
    let mut named = None;
    match named_by(journal.as_ref(), epoch, &key).map_err(wrong)? {
        Named::Nothing(why) => notes.push(why.into()),
        Named::Line(head) => {
            named = Some(head.lines);
            marks.push(SignedLine::of(&head, "the journal beside it names"));
        }
    }
    let mut log = Checking {
        last: (0, start(&epoch.federation, &key)),
        first: None,
        removed: None,
        marks,
        found: Audited {
            silo,
            signed: head.lines,
            journal: named,
            notes,
            ..Audited::default()
        },
    };
    let files = files_in(&folder).map_err(unreadable(&folder))?;
    for number in files {
        let path = folder.join(name(number));
        let bytes = file::read(&path, file::DATA).map_err(unreadable(&path))?;
        let mut rest = &bytes[..];
        // A line that a node is writing now, or could not finish, is none yet.
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end];
            rest = &rest[end + 1..];
            let place = |what| format!("{AUDIT}/{}: {what}", name(number));
            log.line(line).map_err(|what| wrong(place(what)))?;
            take(line).map_err(CheckError::Output)?;
        }
    }
    log.end().map_err(wrong)
}

/// The head that the silo signed, its key and its name.
fn signed(
    folder: &Path,
    epoch: &Epoch,
    journal: Option<&Snapshot>,
) -> Result<(LogHead, PublicKey, String), String> {
    let path = folder.join(HEAD);
    let head = file::read(&path, file::CONFIGURATION).ok();
    let head = head.and_then(|bytes| serde_json::from_slice::<LogHead>(&bytes).ok());
    let head = head.ok_or_else(|| format!("{HEAD} is missing or cannot be read"))?;
    let key = head.signer();
    let owner = key.and_then(|key| Some((key, name_of(epoch, journal, &key)?)));
    let owner = owner.filter(|_| head.federation == hex(&epoch.federation));
    let Some((key, silo)) = owner else {
        return Err(format!(
            "{HEAD} is not signed by a member of the federation"
        ));
    };
    Ok((head, key, silo))
}

/// Line of the log that the journal beside it names.
enum Named {
    /// No line, for this reason.
    Nothing(&'static str),
    /// The last line when this head was signed.
    Line(LogHead),
}

/// Returns what the journal names of the log of the silo with this key.
fn named_by(journal: Option<&Snapshot>, epoch: &Epoch, key: &PublicKey) -> Result<Named, String> {
    match journal {
        None => Ok(Named::Nothing(
            "there is no journal beside it, so an older copy of the log would not be noticed",
        )),
        Some(journal) if journal.log.is_empty() => Ok(Named::Nothing(
            "the journal beside it names no line of it, so an older copy of the log would not be noticed",
        )),
        Some(journal) => {
            let head = LogHead::read(&journal.log, &epoch.federation, key);
            let head =
                head.ok_or("the journal beside it names a log that this silo did not sign")?;
            Ok(Named::Line(head))
        }
    }
}

/// The name of the silo with this key, in the first agreement or in one that the changes in the journal
/// lead to.
fn name_of(first: &Epoch, journal: Option<&Snapshot>, key: &PublicKey) -> Option<String> {
    let records = journal.map(|journal| journal.records.clone());
    let records = records
        .into_iter()
        .flatten()
        .filter_map(|record| match record {
            silo::JournalRecord::Protocol(record) => Some(record),
            _ => None,
        });
    let epochs = Epochs::replay(first.clone().into(), records);
    let later = epochs.iter().flat_map(|epochs| {
        let former = epochs.former.iter().map(|(epoch, _)| &**epoch);
        former.chain([&*epochs.now])
    });
    [first].into_iter().chain(later).find_map(|epoch| {
        let member = epoch.roster.position(key)?;
        Some(epoch.roster.name(member).to_owned())
    })
}

/// A line that the silo signed for.
struct SignedLine {
    line: u64,
    hash: String,
    /// Signer of that line, with what it does with it.
    by: &'static str,
}

impl SignedLine {
    fn of(head: &LogHead, by: &'static str) -> Self {
        Self {
            line: head.lines,
            hash: head.hash.clone(),
            by,
        }
    }
}

struct Checking {
    /// Number and hash of the last line.
    last: (u64, Hash),
    /// Number of the first line that is kept, and what it follows.
    first: Option<(u64, String)>,
    /// The last line that was removed, as a later one says.
    removed: Option<(u64, String)>,
    /// Lines that have to be there.
    marks: Vec<SignedLine>,
    found: Audited,
}

impl Checking {
    fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (last, hash) = self.last;
        let next = last + 1;
        let line: AuditLine = serde_json::from_slice(bytes)
            .map_err(|why| format!("the line after line {last} cannot be read: {why}"))?;
        let number = line.line;
        if self.first.is_none() && number > 1 {
            // Earlier lines may have been removed: a later line has to say so.
            self.first = Some((number, line.before.clone()));
        } else {
            self.first.get_or_insert((1, line.before.clone()));
            if number != next {
                return Err(match number.cmp(&(next + 1)) {
                    Ordering::Equal => format!("line {next} is missing"),
                    Ordering::Greater => {
                        format!("lines {next} to {} are missing", number - 1)
                    }
                    Ordering::Less => format!("expected line {next}, found line {number}"),
                });
            }
            if line.before != hex(&hash) {
                return Err(match last {
                    0 => "line 1 does not begin the log of this silo".into(),
                    _ => format!(
                        "line {number} does not follow line {last}: one of the two was changed"
                    ),
                });
            }
        }
        self.last = (number, Hash::of(bytes));
        let hash = hex(&self.last.1);
        let marks = self.marks.iter().filter(|mark| mark.line == number);
        if let Some(mark) = marks.into_iter().find(|mark| mark.hash != hash) {
            return Err(format!("line {number} is not the one that {}", mark.by));
        }
        self.count(line);
        Ok(())
    }

    fn count(&mut self, line: AuditLine) {
        let times = &mut self.found.times;
        if times.0.is_empty() {
            times.0.clone_from(&line.at);
        }
        times.1.clone_from(&line.at);
        let (number, at) = (line.line, &line.at);
        let mut sent = |to: String, kind: &str, bytes: u64| {
            let of = self.found.sent.entry(to).or_default();
            let of = of.entry(kind.to_owned()).or_default();
            *of = (of.0 + 1, of.1 + bytes);
        };
        let note = match line.event {
            AuditEvent::Message {
                to, kind, bytes, ..
            } => return sent(to, &kind, bytes),
            AuditEvent::Blob { to, bytes, .. } => return sent(to, "blob", bytes),
            AuditEvent::Request { to, .. } => return sent(to, "request for a blob", 0),
            AuditEvent::Started { .. } => return,
            AuditEvent::Restored { made } => format!(
                "the log was put back at {at} from a backup of {made}: what was sent from then until the \
                 node stopped is not in it"
            ),
            AuditEvent::Missing { lines } => format!(
                "{lines} lines before line {number} were gone when the node started at {at}"
            ),
            AuditEvent::Changed { signed } => format!(
                "line {signed} was not the one that the silo had signed when the node started at {at}: the \
                 lines up to line {} may be another's",
                number - 1
            ),
            AuditEvent::Lost { lines } => {
                format!("{lines} lines before line {number} could not be written at {at}")
            }
            AuditEvent::Removed { last, hash } => {
                self.removed = Some((last, hash));
                return;
            }
        };
        self.found.notes.push(note);
    }

    fn end(mut self) -> Result<Audited, String> {
        let (last, _) = self.last;
        if let Some(mark) = self.marks.iter().find(|mark| last < mark.line) {
            let SignedLine { line, by, .. } = mark;
            return Err(format!(
                "lines {} to {line} are cut off at the end, or an older copy of the log was put back: {by} line \
                 {line}",
                last + 1,
            ));
        }
        let (first, before) = self.first.unwrap_or_default();
        if first > 1 {
            let removed = self.removed == Some((first - 1, before));
            if !removed {
                return Err(format!(
                    "lines up to {} are missing at the beginning, and no later line says that the node \
                     removed them",
                    first - 1
                ));
            }
            let note = format!(
                "lines up to {} were removed: the log had its full size",
                first - 1
            );
            self.found.notes.push(note);
        }
        self.found.lines = (first, last);
        Ok(self.found)
    }
}

impl Audited {
    /// Writes the result as text.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let Self {
            silo,
            lines: (first, last),
            times: (from, to),
            ..
        } = self;
        writeln!(
            out,
            "{}: lines {first} to {last}, written from {from} to {to}",
            plain(silo)
        )?;
        writeln!(
            out,
            "each line follows the one before it, and the silo signed for the first {}",
            self.signed
        )?;
        if let Some(line) = self.journal {
            writeln!(
                out,
                "the journal beside it names line {line}, so an older copy of the log would have been noticed. If \
                 both had been put back, only other members could tell, when the node runs and hears them"
            )?;
        }
        for note in &self.notes {
            writeln!(out, "note: {note}")?;
        }
        for (to, kinds) in &self.sent {
            writeln!(out, "to {}", plain(to))?;
            for (kind, (count, bytes)) in kinds {
                writeln!(out, "  {count:>8} {:<20} {bytes:>14} bytes", plain(kind))?;
            }
        }
        Ok(())
    }
}
