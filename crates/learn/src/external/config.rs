//! Configuration of the program that learns.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::DataError;

/// Default number of seconds without a word from the program.
const TIMEOUT: u64 = 600;
/// Default number of processes that a program may have: many more than workers that read rows on all cores.
const PROCESSES: usize = 512;

/// The program that learns in place of Rota. In TOML: `learner = ["python3", "learner.py"]`, or a
/// table `[learner]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "WrittenCommand", into = "ProgramTable")]
#[schemars(with = "WrittenCommand")]
pub struct LearnerConfig {
    /// Program and arguments; empty where a socket is given.
    pub command: Vec<String>,
    /// Socket at which programs listen that somebody else started.
    pub socket: Option<PathBuf>,
    /// Most programs, or connections, at once.
    pub programs: usize,
    /// Names or positions of the silos that learn so; all where it is empty.
    pub silos: Vec<String>,
    /// Longest time without a word from the program while it is asked for something.
    pub timeout: Duration,
    /// Most processes of a program, with itself; with more it is ended.
    pub processes: usize,
    /// Folder in which the program runs.
    pub folder: PathBuf,
    /// Rounds of the federation, which the program is told; no key of the table.
    pub rounds: Option<u64>,
}

/// As it is written.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    untagged,
    expecting = "a list such as [\"python3\", \"learner.py\"], or a table with `command` or `socket`, is needed"
)]
enum WrittenCommand {
    /// Program and arguments.
    Command(Vec<String>),
    /// With more about it.
    Program(ProgramTable),
}

/// The program that learns, with more about it.
#[derive(Clone, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProgramTable {
    /// Program and arguments. It runs in the folder of this file and speaks the learner protocol on
    /// its standard input and output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    command: Vec<String>,
    /// Instead of a command: a Unix socket at which a program listens, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    socket: Option<PathBuf>,
    /// Most programs at once in a simulation; they share its silos. By default 2, and one connection
    /// to a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    programs: Option<usize>,
    /// In a simulation: names, or positions from 0, of the silos that learn with the program. By
    /// default all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    silos: Vec<String>,
    /// Longest time without a word from the program while it is asked for something; then it is
    /// stopped and started again.
    #[serde(default = "timeout")]
    #[schemars(range(min = 1, max = 86400), extend("x-unit" = "seconds"))]
    timeout: u64,
    /// Most processes that a program may have at once, with itself; with more it is ended with all of them.
    #[serde(default = "processes")]
    #[schemars(range(min = 1, max = 65536))]
    processes: usize,
}

fn processes() -> usize {
    PROCESSES
}

/// Default number of programs at once. Who listens at a socket may serve one connection at a time.
fn programs(socket: Option<&PathBuf>) -> usize {
    match socket {
        Some(_) => 1,
        None => 2,
    }
}

fn timeout() -> u64 {
    TIMEOUT
}

impl From<WrittenCommand> for LearnerConfig {
    fn from(written: WrittenCommand) -> Self {
        match written {
            WrittenCommand::Command(command) => Self::command(command),
            WrittenCommand::Program(program) => Self {
                programs: program
                    .programs
                    .unwrap_or(programs(program.socket.as_ref())),
                command: program.command,
                socket: program.socket,
                silos: program.silos,
                timeout: Duration::from_secs(program.timeout),
                processes: program.processes,
                folder: PathBuf::new(),
                rounds: None,
            },
        }
    }
}

impl From<LearnerConfig> for ProgramTable {
    fn from(config: LearnerConfig) -> Self {
        Self {
            command: config.command,
            socket: config.socket,
            programs: Some(config.programs),
            silos: config.silos,
            timeout: config.timeout.as_secs(),
            processes: config.processes,
        }
    }
}

impl LearnerConfig {
    /// This program, with everything else by default.
    pub fn command(command: Vec<String>) -> Self {
        Self {
            command,
            socket: None,
            programs: programs(None),
            silos: Vec::new(),
            timeout: Duration::from_secs(TIMEOUT),
            processes: PROCESSES,
            folder: PathBuf::new(),
            rounds: None,
        }
    }

    /// Programs that listen at this socket, with everything else by default.
    pub fn socket(socket: PathBuf) -> Self {
        Self {
            programs: programs(Some(&socket)),
            socket: Some(socket),
            ..Self::command(Vec::new())
        }
    }

    /// The same program in a federation of this many rounds.
    pub fn with_rounds(&self, rounds: u64) -> Self {
        Self {
            rounds: Some(rounds),
            ..self.clone()
        }
    }

    /// Makes it relative to the folder of the file that it is written in.
    pub fn resolve(&mut self, folder: &Path) {
        if let Some(socket) = &mut self.socket {
            *socket = folder.join(&*socket);
        }
        self.folder = folder.to_owned();
    }

    /// Returns whether its numbers are in range, and it names exactly one of command and socket.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub fn check(&self) -> Result<(), DataError> {
        let wrong = |what: &str| Err(DataError::Config(format!("`learner` {what}")));
        match (self.command.is_empty(), &self.socket) {
            (true, None) => {
                return wrong(
                    "names no program: write it as a list, such as [\"python3\", \"learner.py\"]",
                );
            }
            (false, Some(_)) => return wrong("has both `command` and `socket`: keep one of them"),
            _ => {}
        }
        if !(1..=64).contains(&self.programs) {
            return wrong(&format!(
                "has `programs = {}`, it must be between 1 and 64",
                self.programs
            ));
        }
        if !(1..=86_400).contains(&self.timeout.as_secs()) {
            return wrong(&format!(
                "has `timeout = {}`, it must be between 1 and 86400 seconds",
                self.timeout.as_secs()
            ));
        }
        if !(1..=65_536).contains(&self.processes) {
            return wrong(&format!(
                "has `processes = {}`, it must be between 1 and 65536",
                self.processes
            ));
        }
        Ok(())
    }

    /// The program's socket or command line, for messages.
    pub fn name(&self) -> String {
        match &self.socket {
            Some(socket) => socket.display().to_string(),
            None => self.command.join(" "),
        }
    }
}
