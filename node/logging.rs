//! The log, on standard error, so that standard output has nothing but the result.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use clap::ValueEnum;
use indicatif::ProgressBar;
use tracing_subscriber::filter::LevelFilter;
#[cfg(feature = "otlp")]
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// How the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON document per line
    Json,
}

/// Options of the log.
pub struct Log<'a> {
    /// 0 for warnings, 1 for events, 2 and more for every step.
    pub verbose: u8,
    /// Whether warnings are left out, too: of many runs, of which some are expected to fail.
    pub many_runs: bool,
    /// Whether lines have a time.
    pub timed: bool,
    /// How it is written.
    pub format: LogFormat,
    /// A collector for traces.
    pub otlp: Option<&'a str>,
}

/// Lines that may wait for a reader of standard error; more are dropped and counted.
const WAITING: usize = 4096;
/// How long the end of the program waits until the last lines are written.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The log, which writes its last lines and sends the last traces when it is dropped.
pub struct Started {
    lines: Option<Waiting>,
    #[cfg(feature = "otlp")]
    _traces: Option<crate::otlp::Traces>,
}

/// What the thread that writes the log of a node does next.
enum Step {
    /// Write a line.
    Line(Vec<u8>),
    /// Say that all lines before it are written.
    Tell(SyncSender<()>),
}

/// Lines that wait to be written.
#[derive(Clone)]
struct Waiting {
    steps: SyncSender<Step>,
    dropped: Arc<AtomicU64>,
}

impl Drop for Started {
    fn drop(&mut self) {
        let Some(lines) = self.lines.take() else {
            return;
        };
        let (written, wait) = sync_channel(1);
        if lines.steps.try_send(Step::Tell(written)).is_ok() {
            // Nobody may read them: the program ends all the same.
            let _ = wait.recv_timeout(LAST_LINES);
        }
    }
}

/// Starts the log: warnings, more with `-v` and `-vv`; `RUST_LOG` overrides both. Lines are written
/// around the progress `bar`; those of a node by a thread of their own, so that a reader that stands still
/// (a terminal that is paused, a full pipe) never holds up the node.
///
/// # Errors
/// A collector that cannot be used, or a program without traces.
pub fn start(options: &Log<'_>, bar: &ProgressBar) -> Result<Started, String> {
    let level = match options.verbose {
        0 if options.many_runs => LevelFilter::ERROR,
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
    let waiting = options.timed.then(|| writer(options.format));
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

/// Starts the thread that writes the lines of a node's log.
fn writer(format: LogFormat) -> Waiting {
    let (steps, waiting) = sync_channel(WAITING);
    let dropped = Arc::<AtomicU64>::default();
    let counted = dropped.clone();
    thread::spawn(move || write(&waiting, &counted, format, &mut io::stderr()));
    Waiting { steps, dropped }
}

fn write(steps: &Receiver<Step>, dropped: &AtomicU64, format: LogFormat, out: &mut impl Write) {
    for step in steps {
        match step {
            Step::Line(line) => {
                // If standard error is closed, the node goes on.
                let _ = out.write_all(&line);
                let lost = dropped.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let _ = writeln!(out, "{}", missing(lost, format));
                }
            }
            Step::Tell(written) => drop(written.send(())),
        }
    }
}

/// Says that lines of the log are missing.
fn missing(lost: u64, format: LogFormat) -> String {
    let said = format!(
        "{} of this log are missing here: nobody read them in time",
        formatting::numbers::plural(lost as usize, "line")
    );
    match format {
        LogFormat::Text => format!(" WARN {said}"),
        LogFormat::Json => {
            serde_json::json!({ "level": "WARN", "fields": { "message": said } }).to_string()
        }
    }
}

/// Where a line goes: to the thread that writes it, or to standard error, where the bar is hidden while it
/// is written.
struct To(Result<Waiting, ProgressBar>);

impl Write for To {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Ok(lines) => {
                if lines.steps.try_send(Step::Line(line.to_vec())).is_err() {
                    lines.dropped.fetch_add(1, Ordering::Relaxed);
                }
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

/// Whether to write colours to this stream, following <https://no-color.org>.
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
    fn lines_that_nobody_read_in_time_are_counted_where_they_are_missing() {
        for (format, expected) in [
            (
                LogFormat::Text,
                "one\n WARN 3 lines of this log are missing here: nobody read them in time\ntwo\n",
            ),
            (
                LogFormat::Json,
                "one\n{\"fields\":{\"message\":\"3 lines of this log are missing here: nobody read them in \
                 time\"},\"level\":\"WARN\"}\ntwo\n",
            ),
        ] {
            let (steps, waiting) = sync_channel(2);
            let dropped = Arc::<AtomicU64>::default();
            let lines = Waiting { steps, dropped };
            let dropped = lines.dropped.clone();
            let mut to = To(Ok(lines));
            for line in ["one\n", "two\n", "lost\n", "lost\n", "lost\n"] {
                assert_eq!(to.write(line.as_bytes()).ok(), Some(line.len()));
            }
            drop(to);
            let mut out = Vec::new();
            write(&waiting, &dropped, format, &mut out);
            assert_eq!(String::from_utf8(out).ok().as_deref(), Some(expected));
        }
    }
}
