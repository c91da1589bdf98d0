//! One running program: its process or connection, and the threads that read and write.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::config::LearnerConfig;
use super::wire::{PROTOCOL, Reply, Request, receive, send};

/// Bytes of its standard error that are kept for messages.
const SAID: usize = 4096;
/// How long a program whose output has ended gets to end itself.
const ENDING: Duration = Duration::from_secs(1);
/// How long a program whose input has ended gets to end itself.
const LEAVING: Duration = Duration::from_secs(2);

/// One running program.
pub(super) struct Child {
    process: Option<std::process::Child>,
    /// Closes the connection, where it is one.
    hang_up: Option<Box<dyn FnOnce() + Send>>,
    /// Frames to write; the thread behind it owns the pipe. `None` once it is closed.
    into: Option<Sender<Vec<u8>>>,
    replies: Receiver<Result<Reply, String>>,
    /// The last that it wrote to its standard error.
    said: Arc<Mutex<Vec<u8>>>,
    /// Closed when it cannot write there any more.
    silent: Receiver<()>,
}

impl Child {
    /// Starts the program, or connects to it, and greets it.
    ///
    /// # Errors
    /// A clause: it cannot be started, or does not answer as a learner does.
    pub(super) fn start(config: &LearnerConfig, folder: &PathBuf) -> Result<Self, String> {
        let mut child = match &config.socket {
            Some(socket) => Self::connect(socket)?,
            None => Self::spawn(config)?,
        };
        let hello = Request::Hello {
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
        let mut process = command
            .spawn()
            .map_err(|error| format!("{program:?} cannot be started: {error}"))?;
        let said = Arc::new(Mutex::new(Vec::new()));
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
        let (into, replies) = threads(stdin, stdout);
        Ok(Self {
            process: Some(process),
            hang_up: None,
            into: Some(into),
            replies,
            said,
            silent,
        })
    }

    #[cfg(unix)]
    fn connect(socket: &PathBuf) -> Result<Self, String> {
        use std::net::Shutdown;
        use std::os::unix::net::UnixStream;
        let stream = UnixStream::connect(socket).map_err(|error| {
            format!("nobody answers at the socket {}: {error}", socket.display())
        })?;
        let again = |error| format!("the socket {} cannot be used: {error}", socket.display());
        let (write, hang_up) = (
            stream.try_clone().map_err(again)?,
            stream.try_clone().map_err(again)?,
        );
        let (into, replies) = threads(write, stream);
        Ok(Self {
            process: None,
            // It fails where the other side has hung up.
            hang_up: Some(Box::new(move || drop(hang_up.shutdown(Shutdown::Both)))),
            into: Some(into),
            replies,
            said: Arc::default(),
            silent: mpsc::channel().1,
        })
    }

    #[cfg(not(unix))]
    fn connect(socket: &PathBuf) -> Result<Self, String> {
        Err(format!(
            "the socket {} cannot be used on this system: write `command`",
            socket.display()
        ))
    }

    /// Sends a request.
    ///
    /// # Errors
    /// A clause: the program has ended, or the request is too large.
    pub(super) fn send(&mut self, request: &Request<'_>) -> Result<(), String> {
        let mut frame = Vec::new();
        send(&mut frame, request).map_err(|error| error.to_string())?;
        let sent = self.into.as_ref().map(|into| into.send(frame).is_ok());
        match sent {
            Some(true) => Ok(()),
            _ => Err(self.ended()),
        }
    }

    /// The next message; `None` if there is none for this long.
    ///
    /// # Errors
    /// A clause: the program has ended, or what it sent is no message.
    pub(super) fn receive(&mut self, within: Duration) -> Result<Option<Reply>, String> {
        match self.replies.recv_timeout(within) {
            Ok(Ok(reply)) => Ok(Some(reply)),
            Ok(Err(what)) => Err(what),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Whether it has ended, or has said something that nobody asked for.
    pub(super) fn is_over(&mut self) -> bool {
        let ended = |process: &mut std::process::Child| !matches!(process.try_wait(), Ok(None));
        self.process.as_mut().is_some_and(ended)
            || !matches!(self.replies.try_recv(), Err(mpsc::TryRecvError::Empty))
    }

    /// How it ended, with the last line of its standard error.
    fn ended(&mut self) -> String {
        let Some(process) = &mut self.process else {
            return "it has closed the connection".into();
        };
        let how = match wait(process, ENDING) {
            Some(status) => format!("it ended ({status})"),
            None => "it has closed its standard output".into(),
        };
        // What it wrote last may still be on its way; a process of its own may keep the stream open.
        let _ = self.silent.recv_timeout(ENDING);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        match said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
            Some(line) => format!("{how}; the last line of its standard error: {line}"),
            None => how,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The end of its input asks it to end; a program that does not is killed.
        self.into = None;
        if let Some(hang_up) = self.hang_up.take() {
            hang_up();
        }
        if let Some(process) = &mut self.process
            && wait(process, LEAVING).is_none()
        {
            // It fails where the process has just ended.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

impl Child {
    /// Ends it at once: it hangs, or nothing that it says can be trusted.
    pub(super) fn kill(mut self) {
        if let Some(process) = &mut self.process {
            // It fails where the process has ended.
            drop(process.kill());
        }
    }
}

/// That nothing was heard for this long.
pub(super) fn silent(timeout: Duration, when: &str) -> String {
    format!(
        "it gave no sign of life for {} seconds {when}; `timeout` says how long it may take",
        timeout.as_secs()
    )
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no wait for a process with a time limit"
)]
fn wait(process: &mut std::process::Child, at_most: Duration) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + at_most;
    loop {
        match process.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// Passes a program's standard error on, and keeps its end.
fn listen(mut stderr: impl Read, said: &Mutex<Vec<u8>>) {
    let mut block = [0; 1024];
    while let Ok(len @ 1..) = stderr.read(&mut block) {
        // Nobody may be listening.
        drop(std::io::stderr().write_all(&block[..len]));
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend(&block[..len]);
        let beyond = said.len().saturating_sub(SAID);
        said.drain(..beyond);
    }
}

/// A thread that writes frames and one that reads messages, so that a program that neither reads
/// nor writes delays nobody.
fn threads(
    mut write: impl Write + Send + 'static,
    mut read: impl Read + Send + 'static,
) -> (Sender<Vec<u8>>, Receiver<Result<Reply, String>>) {
    let (into, frames) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        for frame in frames {
            if write
                .write_all(&frame)
                .and_then(|()| write.flush())
                .is_err()
            {
                return;
            }
        }
    });
    let (heard, replies) = mpsc::channel();
    thread::spawn(move || {
        loop {
            let (reply, last) = match receive(&mut read) {
                Ok(None) => return,
                Ok(Some(reply)) => (Ok(reply), false),
                Err(what) => (Err(what), true),
            };
            if heard.send(reply).is_err() || last {
                return;
            }
        }
    });
    (into, replies)
}
