//! Runs the transition tests with every rule broken in turn.

use std::io::{self, Read};
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::entries::Mutant;

/// After this the tests are stopped: with some rules broken, members wait for each other for ever.
const LIMIT: Duration = Duration::from_secs(60);

/// The environment variable that names the rule to break.
const VARIABLE: &str = "ROTA_MUTATION";

/// Result of the tests with one mutant.
struct MutantRow<'a> {
    mutant: Option<&'a Mutant>,
    failed: Vec<String>,
    /// False if the tests had to be stopped.
    ended: bool,
    seconds: f64,
}

impl<'a> MutantRow<'a> {
    /// Runs all tests with a rule broken, or with none.
    fn of(mutant: Option<&'a Mutant>, tests: &Path) -> io::Result<Self> {
        let began = Instant::now();
        let text = output(tests, mutant)?;
        let failed = text.lines().filter_map(|line| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(name.to_owned())
        });
        Ok(Self {
            mutant,
            failed: failed.collect(),
            ended: text.lines().any(|line| line.starts_with("test result:")),
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    fn noticed(&self) -> bool {
        !self.failed.is_empty() || !self.ended
    }

    fn line(&self) -> String {
        let Some(Mutant {
            clause,
            name,
            sentence,
        }) = self.mutant
        else {
            return String::new();
        };
        let mut caught = match &self.failed[..] {
            [] => "**nothing**".into(),
            [one] => format!("`{one}`"),
            [one, others @ ..] => format!("`{one}` and {} more", others.len()),
        };
        if !self.ended {
            caught += "; the tests do not end";
        }
        let seconds = self.seconds;
        format!("| {clause} | `{name}`: {sentence} | {caught} | {seconds:.1} |")
    }
}

/// Returns the output of the tests, up to where they are stopped.
fn output(tests: &Path, mutant: Option<&Mutant>) -> io::Result<String> {
    let mut command = Command::new(tests);
    command.arg("--test-threads=1").env_remove(VARIABLE);
    if let Some(mutant) = mutant {
        command.env(VARIABLE, &mutant.name);
    }
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::null()).spawn()?;
    let mut pipe = child.stdout.take().expect("standard output is piped");
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        let read = pipe.read_to_end(&mut text);
        // Nobody listens any more if this program gave up.
        drop(send.send(read.map(|_| String::from_utf8_lossy(&text).into_owned())));
    });
    let text = match receive.recv_timeout(LIMIT) {
        Ok(text) => text,
        Err(_) => {
            child.kill()?;
            receive.recv().map_err(io::Error::other)?
        }
    };
    child.wait()?;
    text
}

/// Prints a table of which tests notice which mutants.
///
/// # Errors
/// A sentence: the tests fail without a mutant, or some mutants go unnoticed.
pub(crate) fn print(tests: &Path, mutants: &[&Mutant]) -> Result<(), String> {
    let began = Instant::now();
    let run = |mutant| {
        MutantRow::of(mutant, tests).map_err(|error| format!("{}: {error}", tests.display()))
    };
    // Without a mutant everything passes, so that a failure is due to the mutant.
    let calm = run(None)?;
    if calm.noticed() {
        return Err(format!(
            "without a mutant these tests fail: {:?}",
            calm.failed
        ));
    }
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = mutants.get(at) else {
                return;
            };
            let row = run(Some(mutant));
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push((at, row));
            eprint!("\r{} of {}", rows.len(), mutants.len());
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    eprintln!();
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    let rows = rows
        .into_iter()
        .map(|(_, row)| row)
        .collect::<Result<Vec<_>, _>>()?;
    println!("| clause | mutant | tests that fail | seconds |");
    println!("|---|---|---|---|");
    rows.iter().for_each(|row| println!("{}", row.line()));
    let noticed = rows.iter().filter(|row| row.noticed()).count();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "\n{} mutants, {noticed} noticed, in {seconds:.0} s.",
        rows.len()
    );
    if noticed == rows.len() {
        Ok(())
    } else {
        Err("some mutants are noticed by no test".into())
    }
}
