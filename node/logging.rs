//! The log, on standard error, so that standard output has nothing but the result.

use std::io::{self, IsTerminal, Write};

use indicatif::ProgressBar;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts the log: warnings, more with `-v` and `-vv`; `RUST_LOG` overrides both. Lines are written
/// around the progress `bar`, and have a time if `timed`.
pub(crate) fn start(verbose: u8, timed: bool, bar: &ProgressBar) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .from_env_lossy();
    // gossipsub warns of duplicates whenever two members publish the same certificate.
    let quiet = std::env::var_os("RUST_LOG").is_none() && verbose == 0;
    let filter = match "libp2p_gossipsub=error".parse() {
        Ok(directive) if quiet => filter.add_directive(directive),
        _ => filter,
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer({
            let bar = bar.clone();
            move || Around(bar.clone())
        })
        .with_ansi(colours(&io::stderr()))
        .log_internal_errors(false);
    match timed {
        true => log.init(),
        false => log.without_time().init(),
    }
}

/// Standard error; the bar is hidden while a line is written.
struct Around(ProgressBar);

impl Write for Around {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Whether to write colours to this stream, following <https://no-color.org>.
pub(crate) fn colours(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    stream.is_terminal() && set("NO_COLOR").is_none() && set("TERM").is_none_or(|t| t != "dumb")
}
