//! Breaks every rule of the protocol in turn, and prints which transition tests notice, as a table in
//! Markdown. Fails if none does:
//!
//! ```text
//! mutants TESTS [CLAUSE-OR-NAME]     TESTS: the test program of the crate `protocol`
//! ```
//!
//! `just mutants` builds both programs and runs them. A rule is broken for a whole process by the
//! environment variable `ROTA_MUTATION`, so nothing is built again for the next one.

use std::error::Error;
use std::num::NonZero;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use std::{io::Read, thread};

use protocol::member::Mutation;

/// After this the tests are stopped: with some rules broken, members wait for each other for ever.
const LIMIT: Duration = Duration::from_secs(60);

/// What the tests say of a mutation.
struct MutantRow {
    mutation: Option<Mutation>,
    failed: Vec<String>,
    /// Whether they came to an end.
    ended: bool,
    seconds: f64,
}

impl MutantRow {
    /// Runs all tests with a rule broken, or with none.
    fn of(mutation: Option<Mutation>, tests: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let began = Instant::now();
        let text = output(tests, mutation)?;
        let failed = text.lines().filter_map(|line| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(name.to_owned())
        });
        Ok(Self {
            mutation,
            failed: failed.collect(),
            ended: text.lines().any(|line| line.starts_with("test result:")),
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    fn noticed(&self) -> bool {
        !self.failed.is_empty() || !self.ended
    }

    fn line(&self) -> String {
        let Some(mutation) = self.mutation else {
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
        format!(
            "| {} | `{mutation:?}`: {} | {caught} | {:.1} |",
            mutation.clause(),
            mutation.what(),
            self.seconds
        )
    }
}

/// What the tests print, up to where they are stopped.
fn output(
    tests: &Path,
    mutation: Option<Mutation>,
) -> Result<String, Box<dyn Error + Send + Sync>> {
    let mut command = Command::new(tests);
    command
        .arg("--test-threads=1")
        .env_remove(Mutation::VARIABLE);
    if let Some(mutation) = mutation {
        command.env(Mutation::VARIABLE, format!("{mutation:?}"));
    }
    let pipes = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = pipes.stderr(Stdio::null()).spawn()?;
    let mut pipe = child.stdout.take().ok_or("the tests have no output")?;
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
            receive.recv()?
        }
    };
    child.wait()?;
    Ok(text?)
}

fn all(tests: &Path, only: Option<&str>) -> Result<ExitCode, Box<dyn Error + Send + Sync>> {
    let began = Instant::now();
    // Without a mutation everything passes, so that a failure is due to the mutation.
    let calm = MutantRow::of(None, tests)?;
    if calm.noticed() {
        return Err(format!("without a mutation these tests fail: {:?}", calm.failed).into());
    }
    let wanted = |mutation: &Mutation| {
        only.is_none_or(|only| only == mutation.clause() || only == format!("{mutation:?}"))
    };
    let mutations: Vec<_> = Mutation::ALL.iter().copied().filter(wanted).collect();
    if mutations.is_empty() {
        return Err(format!("there is no clause and no mutation {only:?}").into());
    }
    let (next, rows) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(&mutation) = mutations.get(next.fetch_add(1, Ordering::Relaxed)) {
            let row = MutantRow::of(Some(mutation), tests);
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push(row);
            eprint!("\r{} of {}", rows.len(), mutations.len());
        }
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        (0..cores).for_each(|_| drop(scope.spawn(work)));
    });
    eprintln!();
    let rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut rows = rows.into_iter().collect::<Result<Vec<_>, _>>()?;
    rows.sort_by_key(|row| mutations.iter().position(|one| Some(*one) == row.mutation));
    println!("| clause | mutation | tests that fail | seconds |");
    println!("|---|---|---|---|");
    rows.iter().for_each(|row| println!("{}", row.line()));
    let noticed = rows.iter().filter(|row| row.noticed()).count();
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "\n{} mutations, {noticed} noticed, in {seconds:.0} s.",
        rows.len()
    );
    Ok(if noticed == rows.len() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [tests] => all(Path::new(tests), None),
        [tests, only] => all(Path::new(tests), Some(only)),
        _ => Err("mutants TESTS [CLAUSE-OR-NAME]".into()),
    };
    result.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::FAILURE
    })
}
