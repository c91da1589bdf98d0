//! Starts, reads and ends processes of `rota run`, for the tests of processes.

#![allow(clippy::unwrap_used, dead_code)]

use rota::node::events::{Line, NodeEvent};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The path of the program: `ROTA_BIN`, or the one that was built with these tests.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("ROTA_BIN").map_or_else(|| env!("CARGO_BIN_EXE_rota").into(), PathBuf::from)
}

/// `rota` with these arguments, and without data unless they name a folder.
pub(crate) fn rota(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG");
    command
}

/// A command of [`rota`] that another command, such as `ip netns exec NAME`, starts.
pub(crate) fn inside(within: &[String], command: Command) -> Command {
    let Some((first, rest)) = within.split_first() else {
        return command;
    };
    let mut outer = Command::new(first);
    outer
        .args(rest)
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_remove("ROTA_DATA")
        .env_remove("RUST_LOG");
    outer
}

/// Runs `rota` to its end.
pub(crate) fn output(arguments: &[&str]) -> Output {
    rota(arguments).output().unwrap()
}

/// Runs `rota` and returns its standard output; panics unless it exits with 0.
pub(crate) fn good(arguments: &[&str]) -> String {
    let output = output(arguments);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {error}");
    text(&output.stdout)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The path of a folder of that name, which does not exist.
pub(crate) fn nowhere(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    folder
}

/// A scenario in a file.
pub(crate) fn scenario(name: &str, text: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.toml"));
    fs::write(&file, text).unwrap();
    file
}

/// The first of sixteen free ports. Tests that run in parallel must not look for free ports at the same
/// time: a silo that starts later may find its port taken. Every federation has ports of its own, unless
/// a process has more federations than places; a long test may have its ports still when they come again.
pub(crate) fn base_port() -> u16 {
    const PLACES: u16 = 170;
    static FEDERATIONS: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + std::process::id() as u16 % 8 * PLACES * 16;
    let free = |port| {
        let at = (Ipv4Addr::LOCALHOST, port);
        TcpListener::bind(at).is_ok() && UdpSocket::bind(at).is_ok()
    };
    (0..PLACES)
        .map(|_| first + FEDERATIONS.fetch_add(1, Ordering::Relaxed) % PLACES * 16)
        .find(|base| (*base..base + 16).all(free))
        .expect("one of the places of this process has free ports")
}

/// A federation made by `rota federation demo`: its id, and its silos' configurations.
pub(crate) struct Demo {
    pub(crate) folder: PathBuf,
    pub(crate) id: String,
    pub(crate) configs: Vec<PathBuf>,
}

impl Demo {
    /// In a folder of that name, with these options.
    pub(crate) fn new(name: &str, options: &[&str]) -> Self {
        let folder = nowhere(name);
        let place = folder.to_str().unwrap();
        let base = base_port().to_string();
        let said = good(
            &[
                &["federation", "demo", place, "--base-port", &base],
                options,
            ]
            .concat(),
        );
        let mut lines = said.lines();
        let id = lines.next().unwrap().strip_prefix("federation ").unwrap();
        let configs = lines
            .filter_map(|line| line.trim().strip_prefix("rota run --config "))
            .map(PathBuf::from)
            .collect();
        Self {
            folder,
            id: id.into(),
            configs,
        }
    }
}

/// A line of JSON that a node printed.
pub(crate) struct NodeLine {
    /// The node, by its position in the demo.
    pub(crate) node: usize,
    /// The number of the node's start, from 1.
    pub(crate) start: usize,
    /// The line; null at the end of the output.
    pub(crate) line: Value,
}

/// The nodes of a test. They are killed when this is dropped.
pub(crate) struct TestNodes {
    pub(crate) configs: Vec<PathBuf>,
    pub(crate) children: Vec<Option<Child>>,
    /// Number of starts of each.
    pub(crate) starts: Vec<usize>,
    pub(crate) lines: Receiver<NodeLine>,
    sender: Sender<NodeLine>,
    options: Vec<String>,
    /// The command that starts each node's program, such as `ip netns exec NAME`; none where nothing
    /// is between.
    pub(crate) within: Vec<Vec<String>>,
}

impl TestNodes {
    /// Nodes with these configurations, none started yet; each gets `--json` and these options.
    pub(crate) fn new(configs: &[PathBuf], options: &[&str]) -> Self {
        let (sender, lines) = channel();
        Self {
            configs: configs.to_vec(),
            children: configs.iter().map(|_| None).collect(),
            starts: vec![0; configs.len()],
            lines,
            sender,
            options: options.iter().map(|&option| option.into()).collect(),
            within: vec![Vec::new(); configs.len()],
        }
    }

    /// Starts a node. Its log is appended to the file `log` beside its configuration.
    pub(crate) fn start(&mut self, node: usize) {
        let config = &self.configs[node];
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log(config))
            .unwrap();
        let run = rota(&["run", "--json", "--config", config.to_str().unwrap()]);
        let mut child = inside(&self.within[node], run)
            .args(&self.options)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        self.starts[node] += 1;
        let start = self.starts[node];
        let (sender, copy) = (self.sender.clone(), config.with_file_name("lines"));
        let mut copy = OpenOptions::new()
            .create(true)
            .append(true)
            .open(copy)
            .unwrap();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                use std::io::Write;
                writeln!(copy, "{line}").unwrap();
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                let line = written_down(line);
                let _ = sender.send(NodeLine { node, start, line });
            }
            let line = Value::Null;
            let _ = sender.send(NodeLine { node, start, line });
        });
        self.children[node] = Some(child);
    }

    /// Kills a node by SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        if let Some(mut child) = self.children[node].take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Ends a node by SIGTERM, as a service manager does.
    pub(crate) fn terminate(&self, node: usize) {
        let id = self.children[node].as_ref().unwrap().id().to_string();
        let done = Command::new("kill").args(["-TERM", &id]).status().unwrap();
        assert!(done.success());
    }

    /// Waits for the end of a node and returns its exit code.
    pub(crate) fn code(&mut self, node: usize) -> i32 {
        let mut child = self.children[node].take().unwrap();
        child.wait().unwrap().code().unwrap()
    }

    /// The next line that any node prints before `end`.
    pub(crate) fn next(&self, end: Instant) -> Option<NodeLine> {
        match self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            Ok(said) => Some(said),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => unreachable!("this struct holds a sender"),
        }
    }

    /// Waits until a node prints an event; fails with all logs after `seconds`.
    pub(crate) fn until(&self, node: usize, event: &str, seconds: u64) -> Value {
        let end = Instant::now() + Duration::from_secs(seconds);
        loop {
            let Some(said) = self.next(end) else {
                panic!("no {event:?} within {seconds} s\n{}", self.tails());
            };
            if said.node == node && said.line["event"] == event {
                return said.line;
            }
            assert!(
                said.node != node || !said.line.is_null(),
                "it ended before {event:?}\n{}",
                self.tails()
            );
        }
    }

    /// The last lines that every node printed and logged.
    pub(crate) fn tails(&self) -> String {
        let tail = |file: &Path| {
            let text = fs::read_to_string(file).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(25)..].join("\n")
        };
        let of = |config: &PathBuf| {
            let (log, lines) = (log(config), config.with_file_name("lines"));
            format!(
                "== {}\n{}\n-- log\n{}\n",
                config.display(),
                tail(&lines),
                tail(&log)
            )
        };
        self.configs.iter().map(of).collect()
    }
}

impl TestNodes {
    /// Memory of a running node in MiB, by a field of `/proc/PID/status`: `VmRSS` now, `VmHWM` at
    /// most so far.
    pub(crate) fn memory(&self, node: usize, field: &str) -> f64 {
        let id = self.children[node].as_ref().unwrap().id();
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let value = |line: &str| {
            let value = line.strip_prefix(field)?.strip_prefix(':')?;
            value.trim().trim_end_matches(" kB").parse::<f64>().ok()
        };
        status.lines().find_map(value).unwrap() / 1024.0
    }
}

impl Drop for TestNodes {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The log file of a node.
pub(crate) fn log(config: &Path) -> PathBuf {
    config.with_file_name("log")
}

/// Changes the bytes of a file.
pub(crate) fn overwrite(file: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(file).unwrap();
    change(&mut bytes);
    File::create(file)
        .and_then(|mut out| std::io::Write::write_all(&mut out, &bytes))
        .unwrap();
}

/// The line, if it is one of the events that are written down in `rota::node::events`, with these keys and no
/// others; else what is wrong with it.
fn written_down(line: Value) -> Value {
    let Ok(read) = serde_json::from_value::<Line>(line.clone()) else {
        return Value::String(format!("not written down as an event: {line}"));
    };
    let again = serde_json::to_value(&read).unwrap();
    if read.event != NodeEvent::Unknown && again == line {
        line
    } else {
        Value::String(format!("written down otherwise, as {again}: {line}"))
    }
}

/// Signs the agreement that a configuration written by hand names, unless that is done.
pub(crate) fn sign(config: &Path) {
    let silo: toml::Table = fs::read_to_string(config).unwrap().parse().unwrap();
    let consent = silo.get("consent").and_then(toml::Value::as_str);
    if !config
        .with_file_name(consent.unwrap_or("consent.toml"))
        .exists()
    {
        let sign = ["federation", "sign", "--yes", "--config"];
        good(&[&sign[..], &[config.to_str().unwrap()]].concat());
    }
}
