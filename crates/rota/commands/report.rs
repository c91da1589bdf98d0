//! `rota report`: the history of a federation from the logs of its nodes.

use std::io::{self, BufWriter, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use formatting::numbers;
use lab::history;
use report::history as report;

use super::{CommandError, vacant, write};
use crate::cli::WriteReport;
use crate::progress::say;

/// Reads the logs, prints what they say, and writes the page.
pub(crate) fn run(options: &WriteReport) -> Result<(), CommandError> {
    if !options.json {
        vacant(&options.out, options.force)?;
    }
    let history = history::read(&options.logs);
    let history = history.map_err(|error| CommandError::usage(error.to_string()))?;
    let mut out = BufWriter::new(io::stdout().lock());
    if options.json {
        let json = serde_json::to_string_pretty(&history).map_err(io::Error::from)?;
        writeln!(out, "{}", numbers::escaped(&json))?;
        return Ok(out.flush()?);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let date = now.map_or_else(|_| String::new(), |since| numbers::date(since.as_secs()));
    write(&options.out, &report::page(&history, &date))?;
    report::write(&mut out, &history)?;
    out.flush()?;
    Ok(say(&format!("report    {}", options.out.display()))?)
}
