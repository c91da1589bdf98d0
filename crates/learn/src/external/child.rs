//! One running program: its process or connection, and what ends it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::config::LearnerConfig;
use super::kin::Kin;
use super::line::{ProgramLine, ProgramPipes, Unsent};
use super::locked;
use super::said::ProgramStderr;
use super::wire::{PROTOCOL, ProgramRequest, Reply, send};

/// Longest time for a program whose output has ended to end itself.
const ENDING: Duration = Duration::from_secs(1);
/// Longest time for a program whose input has ended to end itself.
const LEAVING: Duration = Duration::from_secs(2);
/// Interval at which somebody who waits for an answer looks whether the program still runs.
const GLANCE: Duration = Duration::from_millis(100);
/// Interval at which the processes of a program are counted.
const COUNTED: Duration = Duration::from_secs(1);

/// One running program.
pub(super) struct Child {
    /// The process or connection itself.
    ender: Ender,
    /// Carrier of messages.
    line: Box<dyn ProgramLine>,
    /// Longest time without a word from it.
    timeout: Duration,
    /// Standard error of the program; none of a connection.
    said: Option<Arc<Mutex<ProgramStderr>>>,
    /// Closed when it cannot write there any more.
    silent: Receiver<()>,
}

impl Child {
    /// Starts the program, or connects to it, and greets it. Before it is greeted, `started` is given
    /// what can end it.
    ///
    /// # Errors
    /// A clause: it cannot be started, or does not answer as a learner does.
    pub(super) fn start(
        config: &LearnerConfig,
        folder: &Path,
        started: impl FnOnce(Ender),
    ) -> Result<Self, String> {
        let mut child = match &config.socket {
            Some(socket) => Self::connect(socket, config.timeout)?,
            None => Self::spawn(config)?,
        };
        started(child.ender.clone());
        let hello = ProgramRequest::Hello {
            protocol: PROTOCOL,
            program: concat!("rota ", env!("CARGO_PKG_VERSION")),
            folder,
        };
        child.send(&hello)?;
        match child.receive(config.timeout)? {
            Some(Reply::Hello { protocol, .. }) if protocol == PROTOCOL => Ok(child),
            Some(Reply::Hello { protocol, .. }) => Err(format!(
                "it speaks version {protocol} of the learner protocol, this program version \
                 {PROTOCOL}"
            )),
            Some(Reply::Failed { why }) => Err(why),
            Some(other) => Err(format!("expected a hello, found {other:?}")),
            None => Err(silent(config.timeout, "after it was started")),
        }
    }

    fn spawn(config: &LearnerConfig) -> Result<Self, String> {
        let (program, arguments) = config
            .command
            .split_first()
            .ok_or("there is no command to start")?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if !config.folder.as_os_str().is_empty() {
            command.current_dir(&config.folder);
        }
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // What it starts itself ends with it, and an interruption from the terminal is for the silo.
            command.process_group(0);
        }
        let mut kin = Kin::of(&mut command);
        let mut process = command
            .spawn()
            .map_err(|error| format!("{program:?} cannot be started: {error}"))?;
        kin.started(process.id());
        let said = Arc::new(Mutex::new(ProgramStderr::new(Instant::now())));
        let (stdin, stdout, stderr) = (
            process.stdin.take().ok_or("it has no standard input")?,
            process.stdout.take().ok_or("it has no standard output")?,
            process.stderr.take().ok_or("it has no standard error")?,
        );
        let kept = said.clone();
        let (speaks, silent) = mpsc::channel();
        thread::spawn(move || {
            listen(stderr, &kept);
            drop(speaks);
        });
        let process = Arc::new(Mutex::new(Process {
            process,
            kin,
            status: None,
            swarm: None,
        }));
        let (lives, watched) = (Arc::downgrade(&process), config.processes);
        thread::spawn(move || watch(&lives, watched));
        Ok(Self {
            ender: Ender::Process(process),
            line: Box::new(ProgramPipes::new(stdin, stdout)),
            timeout: config.timeout,
            said: Some(said),
            silent,
        })
    }

    #[cfg(unix)]
    fn connect(socket: &PathBuf, timeout: Duration) -> Result<Self, String> {
        use std::net::Shutdown;
        use std::os::unix::net::UnixStream;

        use super::line::ProgramSocket;
        let stream = UnixStream::connect(socket).map_err(|error| {
            format!("nobody answers at the socket {}: {error}", socket.display())
        })?;
        let again = |error| format!("the socket {} cannot be used: {error}", socket.display());
        let hang_up = stream.try_clone().map_err(again)?;
        let line = ProgramSocket::new(stream, timeout).map_err(again)?;
        Ok(Self {
            // It fails where the other side has hung up.
            ender: Ender::Connection(Arc::new(move || drop(hang_up.shutdown(Shutdown::Both)))),
            line: Box::new(line),
            timeout,
            said: None,
            silent: mpsc::channel().1,
        })
    }

    #[cfg(not(unix))]
    fn connect(socket: &PathBuf, _: Duration) -> Result<Self, String> {
        Err(format!(
            "the socket {} cannot be used on this system: write `command`",
            socket.display()
        ))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// A clause: the program has ended or does not read, or the request is too large.
    pub(super) fn send(&mut self, request: &ProgramRequest<'_>) -> Result<(), String> {
        let mut frame = Vec::new();
        send(&mut frame, request).map_err(|error| error.to_string())?;
        self.line.send(frame).map_err(|unsent| match unsent {
            Unsent::Gone => self.ended(),
            Unsent::Full => silent(self.timeout, "while it was sent a request"),
        })
    }

    /// The next message; `None` if there is none for this long.
    ///
    /// # Errors
    /// A clause: the program has ended, or what it sent is no message.
    pub(super) fn receive(&mut self, within: Duration) -> Result<Option<Reply>, String> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.line.receive(left.min(GLANCE)) {
                Ok(reply) => return reply.map(Some),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
                // A process that it started may hold its output open.
                Err(RecvTimeoutError::Timeout) if self.ender.has_ended() => {
                    return match self.line.receive(GLANCE) {
                        Ok(reply) => reply.map(Some),
                        Err(_) => Err(self.ended()),
                    };
                }
                Err(RecvTimeoutError::Timeout) if left <= GLANCE => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Returns whether the program has ended, or has said something that nobody asked for.
    pub(super) fn is_over(&mut self) -> bool {
        self.ender.has_ended() || !self.line.is_quiet()
    }

    /// Returns how the program ended, with the last line of its standard error.
    fn ended(&mut self) -> String {
        let Ender::Process(process) = &self.ender else {
            return "it has closed the connection".into();
        };
        let how = if wait(process, ENDING) {
            let mut process = locked(process);
            match (process.end(), process.swarm) {
                (_, Some(count)) => format!(
                    "it had started {count} processes, and was ended with all of them: `processes` says how many it \
                     may have"
                ),
                (Some(status), None) => format!("it ended ({status})"),
                (None, None) => "it ended".into(),
            }
        } else {
            "it has closed its standard output".into()
        };
        // What it wrote last may still be on its way; a process of its own may keep the stream open.
        let _ = self.silent.recv_timeout(ENDING);
        match self.said.as_ref().and_then(|said| locked(said).last_line()) {
            Some(line) => format!("{how}; the last line of its standard error: {line}"),
            None => how,
        }
    }

    /// Ends it at once: it hangs, or nothing that it says can be trusted.
    pub(super) fn kill(mut self) {
        // A program of another user cannot be killed, but hears the end of its input.
        self.line.close();
        self.ender.end();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The end of its input asks it to end; a program that does not is killed.
        self.line.close();
        if let Ender::Process(process) = &self.ender {
            wait(process, LEAVING);
        }
        self.ender.end();
    }
}

/// Any thread can end a program with this, while another one waits for its answer.
#[derive(Clone)]
pub(super) enum Ender {
    /// A process that was started, which is killed with all that it started.
    Process(Arc<Mutex<Process>>),
    /// A connection, which is closed.
    Connection(Arc<dyn Fn() + Send + Sync>),
}

impl Ender {
    /// Ends it at once.
    pub(super) fn end(&self) {
        match self {
            Self::Process(process) => {
                locked(process).end();
            }
            Self::Connection(hang_up) => hang_up(),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::Process(process) => locked(process).has_ended(),
            Self::Connection(_) => false,
        }
    }
}

/// A process that leads a group of its own.
pub(super) struct Process {
    process: std::process::Child,
    /// Processes that the process started, where they left that group.
    kin: Kin,
    /// Exit status of the process, once nothing is left of it.
    status: Option<ExitStatus>,
    /// Number of processes at the moment when it was ended because there were too many.
    swarm: Option<usize>,
}

impl Process {
    #[cfg(unix)]
    fn id(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(self.process.id().cast_signed())
    }

    /// Returns whether the process has ended. Its number, which is that of its group, is still its own.
    #[cfg(unix)]
    fn has_ended(&mut self) -> bool {
        use rustix::io::Errno;
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let runs = |id| matches!(waitid(WaitId::Pid(id), look), Ok(None) | Err(Errno::INTR));
        self.status.is_some() || !self.id().is_some_and(runs)
    }

    #[cfg(not(unix))]
    fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Kills it with all that it started; how it ended.
    fn end(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // Both fail where it has just ended.
            #[cfg(unix)]
            if let Some(id) = self.id() {
                use rustix::process::{Signal, kill_process_group};
                let _ = kill_process_group(id, Signal::KILL);
            }
            self.kin.end();
            match self.process.kill() {
                Ok(()) => self.status = self.process.wait().ok(),
                // It is another user's, and is not waited for.
                Err(_) => self.status = self.process.try_wait().ok().flatten(),
            }
        }
        self.status
    }
}

/// That nothing was heard for this long.
pub(super) fn silent(timeout: Duration, when: &str) -> String {
    format!(
        "it gave no sign of life for {} seconds {when}; `timeout` says how long it may take",
        timeout.as_secs()
    )
}

/// Ends a program that has more processes than it may have, with all of them: they would be there until it ends,
/// and take what the node needs.
#[expect(
    clippy::disallowed_methods,
    reason = "the system tells nobody how many processes there are"
)]
fn watch(lives: &Weak<Mutex<Process>>, most: usize) {
    loop {
        thread::sleep(COUNTED);
        let Some(process) = lives.upgrade() else {
            return;
        };
        let mut process = locked(&process);
        if process.has_ended() {
            // What it started does not wait until somebody asks for something.
            process.end();
            return;
        }
        let count = process.kin.count(process.process.id());
        if count > most {
            process.swarm = Some(count);
            process.end();
            return;
        }
    }
}

/// Returns whether the process ends within this time.
#[expect(
    clippy::disallowed_methods,
    reason = "std has no wait for a process with a time limit"
)]
fn wait(process: &Mutex<Process>, at_most: Duration) -> bool {
    let until = Instant::now() + at_most;
    while !locked(process).has_ended() {
        if Instant::now() >= until {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Passes a program's standard error on, as far as it is not too much, and keeps its end.
fn listen(mut stderr: impl Read, said: &Mutex<ProgramStderr>) {
    let mut block = [0; 1 << 14];
    // Nobody may be listening.
    let pass = |bytes: Vec<u8>| drop(std::io::stderr().write_all(&bytes));
    while let Ok(len @ 1..) = stderr.read(&mut block) {
        let shown = locked(said).hear(Instant::now(), &block[..len]);
        pass(shown);
    }
    let shown = locked(said).finish(Instant::now());
    pass(shown);
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_over_its_process_limit_is_ended_with_all_of_them() {
        // In its group, in groups of their own, and without the variable that marks them.
        for starts in ["sleep 60 &", "setsid sleep 60 &", "env -i sleep 60 &"] {
            let script = format!("for i in 1 2 3 4 5 6 7 8 9; do {starts} done; cat >/dev/null");
            let mut config = LearnerConfig::command(vec!["sh".into(), "-c".into(), script]);
            config.processes = 8;
            let mut child = Child::spawn(&config).unwrap();
            let why = child.receive(Duration::from_secs(20)).unwrap_err();
            assert!(why.contains("`processes`"), "{starts}: {why}");
            config.processes = 100;
            let mut child = Child::spawn(&config).unwrap();
            assert_eq!(child.receive(2 * COUNTED), Ok(None), "{starts}");
        }
    }
}
