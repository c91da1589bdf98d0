//! The log, on standard error, so that standard output has nothing but the result.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::ProgressBar;
use tracing_subscriber::filter::LevelFilter;
#[cfg(feature = "otlp")]
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::waiting_lines::WaitingLines;

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines
    #[default]
    Text,
    /// One JSON document per line
    Json,
}

/// Options of the log.
pub struct LogSettings<'a> {
    /// 0 for warnings, 1 for events, 2 and more for every step.
    pub verbose: u8,
    /// True if warnings are left out, too: of many runs, of which some are expected to fail, and of one that
    /// is to be quiet, whose summary says what happened.
    pub without_warnings: bool,
    /// True if lines have a time.
    pub timed: bool,
    /// Format of the lines.
    pub format: LogFormat,
    /// A collector for traces.
    pub otlp: Option<&'a str>,
}

/// Time for which the end of the program waits until the last lines are written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The log, which writes its last lines and sends the last traces when it is dropped.
pub struct Started {
    lines: Option<WaitingLines>,
    #[cfg(feature = "otlp")]
    _traces: Option<crate::otlp::Traces>,
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(lines) = &self.lines {
            lines.wait(LAST_LINES);
        }
    }
}

/// Starts the log: warnings, more with `-v` and `-vv`; `RUST_LOG` overrides both. Lines are written
/// around the progress `bar`; those of a node by a thread of their own, so that a reader that stands still
/// (a terminal that is paused, a full pipe) never holds up the node.
///
/// # Errors
/// A collector that cannot be used, or a program without traces.
pub fn start(options: &LogSettings<'_>, bar: &ProgressBar) -> Result<Started, String> {
    let level = match options.verbose {
        0 if options.without_warnings => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .from_env_lossy();
    // gossipsub warns of duplicates whenever two members publish the same certificate.
    let quiet = std::env::var_os("RUST_LOG").is_none() && options.verbose == 0;
    let filter = match "libp2p_gossipsub=error".parse() {
        Ok(directive) if quiet => filter.add_directive(directive),
        _ => filter,
    };
    let bar = bar.clone();
    let format = options.format;
    let missing = move |lost| missing(lost, format);
    let waiting = options
        .timed
        .then(|| WaitingLines::start(io::stderr(), missing).0);
    let to = waiting.clone();
    let lines = fmt::layer()
        .with_writer(move || To(to.clone().ok_or_else(|| bar.clone())))
        .with_ansi(colours(&io::stderr()) && options.format == LogFormat::Text)
        .log_internal_errors(false);
    let lines = match (options.format, options.timed) {
        (LogFormat::Text, true) => lines.boxed(),
        (LogFormat::Text, false) => lines.without_time().boxed(),
        (LogFormat::Json, true) => lines.json().boxed(),
        (LogFormat::Json, false) => lines.json().without_time().boxed(),
    };
    let log = tracing_subscriber::registry().with(lines.with_filter(filter));
    #[cfg(feature = "otlp")]
    {
        let traces = options.otlp.map(crate::otlp::layer).transpose()?;
        let (layer, traces) = traces.unzip();
        // Spans of rounds, views and phases, whatever the log shows.
        let spans = Targets::new().with_target("silo", LevelFilter::INFO);
        log.with(layer.map(|layer| layer.with_filter(spans))).init();
        Ok(Started {
            lines: waiting,
            _traces: traces,
        })
    }
    #[cfg(not(feature = "otlp"))]
    {
        log.init();
        match options.otlp {
            None => Ok(Started { lines: waiting }),
            Some(_) => Err(
                "this program was built without traces: build it with `cargo build \
                            --release --features otlp`"
                    .into(),
            ),
        }
    }
}

/// Says that lines of the log are missing.
fn missing(lost: u64, format: LogFormat) -> String {
    let said = format!(
        "{} of this log are missing here, because they were not read in time",
        formatting::numbers::plural(lost as usize, "line")
    );
    match format {
        LogFormat::Text => format!(" WARN {said}"),
        LogFormat::Json => {
            serde_json::json!({ "level": "WARN", "fields": { "message": said } }).to_string()
        }
    }
}

/// Target of a line: the thread that writes it, or standard error, where the bar is hidden while it is written.
struct To(Result<WaitingLines, ProgressBar>);

impl Write for To {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Ok(lines) => {
                lines.send(line.to_vec());
                Ok(line.len())
            }
            Err(bar) => bar.suspend(|| io::stderr().write(line)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.0 {
            // The thread that writes may hold standard error, whose reader stands still.
            Ok(_) => Ok(()),
            Err(_) => io::stderr().flush(),
        }
    }
}

/// Returns whether to write colours to this stream, following <https://no-color.org>.
pub fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|t| t != "dumb")
}

/// Writes a line to standard error; unlike `eprintln!`, it does not panic if that is closed.
///
/// # Errors
/// Standard error cannot be written to.
pub fn say(line: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_of_missing_lines_is_a_line_of_the_log() {
        let said = "3 lines of this log are missing here, because they were not read in time";
        assert_eq!(missing(3, LogFormat::Text), format!(" WARN {said}"));
        let json: serde_json::Value = missing(3, LogFormat::Json).parse().expect("it is JSON");
        assert_eq!(
            (&json["level"], &json["fields"]["message"]),
            (&"WARN".into(), &said.into())
        );
    }
}
