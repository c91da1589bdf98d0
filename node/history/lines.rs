//! The lines of one node's log.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::Log;

/// Why logs cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A file cannot be read.
    #[error("cannot read {}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        reason: std::io::Error,
    },
    /// A file without events of a node.
    #[error(
        "{} holds no JSON lines of a node: expected what `rota run --json` prints, one document a \
         line, from its \"start\" on", .0.display()
    )]
    Empty(PathBuf),
    /// Logs of several federations.
    #[error("{} is of the federation {found}, and the first log of {expected}", file.display())]
    Federation {
        /// The file.
        file: PathBuf,
        /// Its federation.
        found: String,
        /// That of the first log.
        expected: String,
    },
}

/// One event of a node.
pub(super) struct Line {
    /// Seconds since 1970.
    pub(super) at: f64,
    pub(super) event: String,
    pub(super) document: Value,
}

/// One file.
pub(super) struct NodeLog {
    pub(super) log: Log,
    pub(super) federation: String,
    pub(super) lines: Vec<Line>,
}

/// The lines of a file; `ahead` are the seconds by which the clock of its machine is ahead.
pub(super) fn node(file: &Path, ahead: f64) -> Result<NodeLog, LogError> {
    let bytes = std::fs::read(file).map_err(|reason| LogError::File {
        file: file.to_owned(),
        reason,
    })?;
    // A line may end in the middle of a character.
    let text = String::from_utf8_lossy(&bytes);
    let (mut lines, mut skipped) = (Vec::new(), 0);
    for text in text.lines().filter(|line| !line.trim().is_empty()) {
        let (found, whole) = match line(text) {
            Some(line) => (Some(line), true),
            None => (after_a_cut(text), false),
        };
        skipped += usize::from(!whole);
        lines.extend(found.map(|line| Line {
            at: line.at - ahead,
            ..line
        }));
    }
    let starts: Vec<&Line> = lines.iter().filter(|line| line.event == "start").collect();
    let text = |line: &&Line, key: &str| line.document[key].as_str().map(str::to_owned);
    let first = starts.first();
    let silo = first.and_then(|line| text(line, "silo"));
    let federation = first.and_then(|line| text(line, "federation"));
    let (Some(silo), Some(federation)) = (silo, federation) else {
        return Err(LogError::Empty(file.to_owned()));
    };
    let log = Log {
        file: file.display().to_string(),
        silo,
        lines: lines.len(),
        skipped,
        starts: starts.len(),
        cpu_seconds: cpu_seconds(&lines),
    };
    Ok(NodeLog {
        log,
        federation,
        lines,
    })
}

/// The event that follows a line which was cut off when its node was killed: the next start is written
/// behind it.
fn after_a_cut(text: &str) -> Option<Line> {
    let mut begins = text.match_indices("{\"").skip(1);
    begins.find_map(|(at, _)| line(&text[at..]))
}

/// The CPU time that a node says that it used, over all its starts.
fn cpu_seconds(lines: &[Line]) -> Option<f64> {
    let (mut before, mut now) = (0.0, None);
    for line in lines {
        match line.document["cpu-seconds"].as_f64() {
            Some(seconds) => now = Some(seconds),
            None if line.event == "start" => before += now.take().unwrap_or(0.0),
            None => {}
        }
    }
    let all = before + now.unwrap_or(0.0);
    (all > 0.0).then_some(all)
}

/// An event with a time, if the text is one.
fn line(text: &str) -> Option<Line> {
    let document: Value = serde_json::from_str(text).ok()?;
    let event = document["event"].as_str()?.to_owned();
    let time = humantime::parse_rfc3339_weak(document["time"].as_str()?).ok()?;
    let at = time.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some(Line {
        at,
        event,
        document,
    })
}
