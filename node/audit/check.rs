//! Reads an audit log, and names the first line that was changed, cut out or added.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use learn::file;
use protocol::{Epoch, Hash, MemberIndex};
use serde::Serialize;

use super::line::{Event, Line, hex, start};
use super::log::{files_in, name, read_head};
use super::{AUDIT, HEAD};
use crate::report::numbers::plain;

/// Why an audit log was not checked, or what is wrong in it.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// No log.
    #[error(
        "there is no audit log in {}: give the folder that `state` in the silo.toml of a node names",
        .0.display()
    )]
    Nothing(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// Something in it is wrong.
    #[error("the audit log in {} is not as the node wrote it: {what}", folder.display())]
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
#[serde(rename_all = "kebab-case")]
pub struct Audited {
    /// The silo that sent all this.
    pub silo: String,
    /// Number of the first line that is kept, and of the last.
    pub lines: (u64, u64),
    /// Lines up to this number are signed by the silo. Later ones are from its last second.
    pub signed: u64,
    /// When the first line was written, and the last.
    pub times: (String, String),
    /// By receiver and kind: how many, and bytes.
    pub sent: BTreeMap<String, BTreeMap<String, (u64, u64)>>,
    /// What happened to the log, in sentences.
    pub notes: Vec<String>,
}

/// Checks the log in a state folder. Calls `take` with every line that was checked.
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
    if !folder.is_dir() {
        return Err(CheckError::Nothing(state.to_owned()));
    }
    let wrong = |what: String| CheckError::Wrong {
        folder: state.to_owned(),
        what,
    };
    let head = read_head(&folder);
    let head = head.ok_or_else(|| wrong(format!("{HEAD} is missing or cannot be read")))?;
    let member = MemberIndex(head.member);
    let key = epoch.roster.key(member).map(|key| key.public());
    let signed = key.is_some_and(|key| head.verify(&key));
    if !signed || head.federation != hex(&epoch.federation) {
        let what = format!("{HEAD} is not signed by a member of the federation");
        return Err(wrong(what));
    }
    let mut log = Checking {
        last: (0, start(&epoch.federation, member)),
        first: None,
        removed: None,
        signed: (head.lines, head.hash, false),
        found: Audited {
            silo: epoch.roster.name(member).to_owned(),
            signed: head.lines,
            ..Audited::default()
        },
    };
    let files = files_in(&folder).map_err(unreadable(&folder))?;
    for number in files {
        let path = folder.join(name(number));
        let bytes = file::read(&path, file::DATA).map_err(unreadable(&path))?;
        let mut rest = &bytes[..];
        // What a node is writing now, or could not finish, is no line yet.
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

struct Checking {
    /// Number and hash of the last line.
    last: (u64, Hash),
    /// Number of the first line that is kept, and what it follows.
    first: Option<(u64, String)>,
    /// The last line that was removed, as a later one says.
    removed: Option<(u64, String)>,
    /// The lines that the silo signed for, the hash of the last, and whether it was found.
    signed: (u64, String, bool),
    found: Audited,
}

impl Checking {
    fn line(&mut self, bytes: &[u8]) -> Result<(), String> {
        let (last, hash) = self.last;
        let next = last + 1;
        let line: Line = serde_json::from_slice(bytes)
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
        if number == self.signed.0 {
            self.signed.2 = hex(&self.last.1) == self.signed.1;
            if !self.signed.2 {
                return Err(format!("line {number} is not the one that the silo signed"));
            }
        }
        self.count(line);
        Ok(())
    }

    fn count(&mut self, line: Line) {
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
            Event::Message {
                to, kind, bytes, ..
            } => return sent(to, &kind, bytes),
            Event::Blob { to, bytes, .. } => return sent(to, "blob", bytes),
            Event::Request { to, .. } => return sent(to, "request for a blob", 0),
            Event::Started { .. } => return,
            Event::Missing { lines } => format!(
                "{lines} lines before line {number} were gone when the node started at {at}"
            ),
            Event::Lost { lines } => {
                format!("{lines} lines before line {number} could not be written at {at}")
            }
            Event::Removed { last, hash } => {
                self.removed = Some((last, hash));
                return;
            }
        };
        self.found.notes.push(note);
    }

    fn end(mut self) -> Result<Audited, String> {
        let (last, _) = self.last;
        if last < self.signed.0 {
            return Err(format!(
                "lines {} to {} are cut off at the end: the silo signed for {} lines",
                last + 1,
                self.signed.0,
                self.signed.0
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
