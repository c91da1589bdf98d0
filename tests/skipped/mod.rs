//! Says that a test is skipped, so that nobody takes a run for more than it was. Shared by the tests of
//! several crates.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::{Write, stderr};

/// The environment variable that names a file for the lines, for a summary at the end.
const FILE: &str = "ROTA_SKIPPED";

/// Says why the test on this thread is skipped. The test runner calls such a test "ok" and hides what it
/// prints, so this writes to the standard error of the process itself.
pub(crate) fn skipped(why: impl Display) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let why = why.to_string().replace('\n', " ");
    let line = format!("skipped: {}::{test}: {why}\n", env!("CARGO_CRATE_NAME"));
    let _ = stderr().write_all(line.as_bytes());
    let Some(file) = std::env::var_os(FILE) else {
        return;
    };
    let file = OpenOptions::new().create(true).append(true).open(file);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.expect("the file of skipped tests can be written");
}
