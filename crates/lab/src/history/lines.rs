//! The lines of one node's log.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::Log;
use node::events::{self, NodeEvent};

/// Error of logs that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
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
    /// A log in text.
    #[error(
        "{} is a log in text, for people: it lacks what the report is made of, such as when views began and \
         who contributed. Run the node with `rota run --json`; the rounds of the past are in its state \
         folder: `rota chain`", .0.display()
    )]
    Text(PathBuf),
    /// Logs of several institutions that add noise.
    #[error(
        "{} is the log of {other}, and the first one of {first}: in a federation with noise the lines have exact \
         losses of rows, which epsilon does not cover, so they stay with their institution; give `rota report` the \
         lines of one institution at a time, and pool no logs", file.display()
    )]
    Noised {
        /// The file.
        file: PathBuf,
        /// Whose it is.
        other: String,
        /// Whose the first one is.
        first: String,
    },
    /// Logs of several federations.
    #[error("{} is of the federation {found}, and the first log of {expected}", file.display())]
    Federation {
        /// The file.
        file: PathBuf,
        /// Federation of the file.
        found: String,
        /// That of the first log.
        expected: String,
    },
}

/// One event of a node.
pub(super) struct EventLine {
    /// Seconds since 1970.
    pub(super) at: f64,
    /// Time of the event, as the node wrote it.
    pub(super) time: String,
    pub(super) event: NodeEvent,
}

impl EventLine {
    pub(super) fn is_start(&self) -> bool {
        matches!(self.event, NodeEvent::Start { .. })
    }
}

/// One file.
pub(super) struct NodeLog {
    pub(super) log: Log,
    pub(super) federation: String,
    /// Its name; empty in logs of earlier versions.
    pub(super) federation_name: String,
    pub(super) lines: Vec<EventLine>,
}

/// The lines of a file; `ahead` are the seconds by which the clock of its machine is ahead.
pub(super) fn node(file: &Path, ahead: f64) -> Result<NodeLog, HistoryError> {
    let bytes = std::fs::read(file).map_err(|reason| HistoryError::File {
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
        lines.extend(found.map(|line| EventLine {
            at: line.at - ahead,
            ..line
        }));
    }
    let mut starts = lines.iter().filter_map(|line| match &line.event {
        NodeEvent::Start {
            member,
            federation,
            federation_name,
            ..
        } => Some((member.clone(), federation.clone(), federation_name.clone())),
        _ => None,
    });
    let Some((silo, federation, federation_name)) = starts.next() else {
        let file = file.to_owned();
        return Err(if bytes_are_text(&bytes) {
            HistoryError::Text(file)
        } else {
            HistoryError::Empty(file)
        });
    };
    let log = Log {
        file: file.display().to_string(),
        silo,
        lines: lines.len(),
        skipped,
        starts: 1 + starts.count(),
        cpu_seconds: cpu_seconds(&lines),
    };
    Ok(NodeLog {
        log,
        federation,
        federation_name,
        lines,
    })
}

/// Returns whether a line begins with a time and two spaces, as those of a node without `--json` do.
fn bytes_are_text(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.lines().any(|line| {
        // The text before the time is of the program that kept the lines, such as journald.
        let before = line.split_once("  ").map_or("", |(before, _)| before);
        let time = before.rsplit(' ').next().unwrap_or_default();
        humantime::parse_rfc3339(time).is_ok()
    })
}

/// The event that follows a line which was cut off when its node was killed: the next start is written
/// behind it.
fn after_a_cut(text: &str) -> Option<EventLine> {
    let mut begins = text.match_indices("{\"").skip(1);
    begins.find_map(|(at, _)| line(&text[at..]))
}

/// The CPU time that a node says that it used, over all its starts.
fn cpu_seconds(lines: &[EventLine]) -> Option<f64> {
    let (mut before, mut now) = (0.0, None);
    for line in lines {
        match line.event {
            NodeEvent::Final { cpu_seconds, .. } => now = cpu_seconds.or(now),
            NodeEvent::Start { .. } => before += now.take().unwrap_or(0.0),
            _ => {}
        }
    }
    let all = before + now.unwrap_or(0.0);
    (all > 0.0).then_some(all)
}

/// An event with a time, if the text is one.
fn line(text: &str) -> Option<EventLine> {
    let events::Line { event, time, .. } = serde_json::from_str(text).ok()?;
    let since = humantime::parse_rfc3339_weak(&time).ok()?;
    let at = since.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
    Some(EventLine { at, time, event })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_log_in_text_is_refused_with_the_option_that_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("north.log");
        let said = |text: &str| {
            std::fs::write(&file, text).unwrap();
            node(&file, 0.0).err().unwrap().to_string()
        };
        let text = "2026-03-01T10:02:00Z  round    2   view    2   lead south   4 models\n";
        let why = said(text);
        assert!(
            why.contains("is a log in text") && why.contains("rota run --json"),
            "{why}"
        );
        // As journalctl prints it.
        let why = said(&format!("Mar 01 10:02:00 host rota[7]: {text}"));
        assert!(why.contains("is a log in text"), "{why}");
        for other in ["", "nothing of ours\n", "{\"event\":\"view\"}\n"] {
            let why = said(other);
            assert!(
                why.contains("holds no JSON lines of a node"),
                "{other}: {why}"
            );
        }
    }
}
