//! Standard output of a node: lines of text, or one JSON document per line, each with its time.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::SystemTime;

use crate::clock;
use crate::events::{Line, NodeEvent};
use crate::waiting_lines::WaitingLines;
use formatting::numbers;

/// Writes lines to standard output from a thread of its own, so that a slow or missing reader
/// never holds up the node.
#[derive(Clone)]
pub struct OutputLines {
    json: bool,
    lines: WaitingLines,
    /// `true` once the warning was printed that lines of text are no input for `rota report`.
    begun: Arc<AtomicBool>,
}

impl OutputLines {
    /// Starts the thread, for JSON or text. It ends after the last clone of the output is dropped.
    pub fn start(json: bool) -> (Self, JoinHandle<()>) {
        let (lines, writer) = WaitingLines::start(io::stdout(), move |lost| missing(lost, json));
        let begun = Arc::default();
        (Self { json, lines, begun }, writer)
    }

    /// Prints the event or the line of text, whichever was asked for, with the time of the event and the
    /// seconds since the start; no line if it is empty.
    pub(in crate::institution) fn print(
        &self,
        time: SystemTime,
        at: impl Into<Option<f64>>,
        event: NodeEvent,
        line: &str,
    ) {
        if self.json {
            self.write(document(time, at.into(), event))
        } else {
            self.line(time, line)
        }
    }

    fn write(&self, text: String) {
        self.lines.send((text + "\n").into_bytes());
    }

    /// Says once what lines of text in a file are not good for; nothing with JSON, and nothing on a terminal.
    pub(in crate::institution) fn begin(&self) {
        if !self.begun.swap(true, Ordering::Relaxed) && !io::stdout().is_terminal() {
            let line = "this is the human-readable log: `rota report` needs the lines of `rota run --json`";
            self.line(SystemTime::now(), line);
        }
    }

    /// Prints a line of text; nothing with JSON.
    pub(in crate::institution) fn line(&self, time: SystemTime, line: &str) {
        if !self.json && !line.is_empty() {
            self.write(dated(time, line));
        }
    }
}

/// A line of text, with the time in UTC to the second. It stays one line: what a program or another member
/// says over several may not look like lines of this node.
fn dated(time: SystemTime, line: &str) -> String {
    let time = clock::to_second(time);
    let parts = line.lines().map(str::trim).filter(|part| !part.is_empty());
    let line = parts.collect::<Vec<_>>().join(" ");
    format!("{time}  {}", numbers::plain(&line))
}

/// An event as text, with the time in UTC to the millisecond.
fn document(time: SystemTime, at: Option<f64>, event: NodeEvent) -> String {
    let time = clock::to_millisecond(time);
    let document = serde_json::to_value(Line { event, at, time });
    let document = document.expect("events have texts as keys, and numbers and texts as values");
    numbers::escaped(&document.to_string())
}

/// Says that lines are missing.
fn missing(lost: u64, json: bool) -> String {
    let now = SystemTime::now();
    if json {
        return document(now, None, NodeEvent::LinesLost { lines: lost });
    }
    let lines = numbers::plural(lost as usize, "line");
    dated(
        now,
        &format!("{lines} of this output are missing here, because they were not read in time"),
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn lines_and_documents_carry_their_time() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_772_359_200_250);
        assert_eq!(
            dated(time, "north can be reached\u{7}"),
            "2026-03-01T10:00:00Z  north can be reached\u{fffd}"
        );
        // A text of others over several lines does not look like lines of this node.
        let error = "east refuses: no rows\n  2026-03-01T10:00:00Z  adopted\r\n\ntry again";
        assert_eq!(
            dated(time, error),
            "2026-03-01T10:00:00Z  east refuses: no rows 2026-03-01T10:00:00Z  adopted try again"
        );
        assert_eq!(
            document(time, Some(1.5), NodeEvent::Notarised { view: 3 }),
            r#"{"at":1.5,"event":"notarised","time":"2026-03-01T10:00:00.250Z","view":3}"#
        );
    }
}
