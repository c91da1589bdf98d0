//! The book's tutorial "Three hospitals", line by line, as somebody with three terminals does it.
//!
//! A block of language `console,NAME` is typed into the terminal NAME, which begins in the folder of
//! that name. Its commands begin with `$ ` and are followed by what they print. A node that is
//! started runs while other terminals go on; its terminal takes the next block when it has ended.
//! `...` stands for any lines. What differs from run to run is masked: keys and hashes, times,
//! numbers of a run, and who leads.
//!
//! `ROTA_GOLDEN=write` prints every block as it is now, to be read and copied.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use snapbox::IntoData;

/// Longest time that a node of the tutorial may run.
const LONGEST: Duration = Duration::from_secs(180);

/// A block of the page: the terminal, and its lines.
struct Block {
    terminal: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let (language, terminal) = language.split_once(',').unwrap_or((language, ""));
                open = Some(Block {
                    terminal: match language {
                        "console" => terminal.to_owned(),
                        _ => String::new(),
                    },
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => {
                blocks.extend(open.take().filter(|block| !block.terminal.is_empty()));
            }
            (None, Some(block)) => block.text += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

/// Everybody's folder, and the nodes that run.
struct Terminals {
    folder: PathBuf,
    running: BTreeMap<String, Node>,
    ports: [u16; 3],
}

/// A node that runs.
struct Node {
    line: String,
    log: PathBuf,
    pid: u32,
    ended: Receiver<ExitStatus>,
}

impl Terminals {
    fn command(&self, terminal: &str, line: &str) -> Command {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.folder.display());
        let mut line = line.to_owned();
        for (at, port) in self.ports.iter().enumerate() {
            line = line.replace(&format!(":700{}", at + 1), &format!(":{port}"));
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", &line])
            .current_dir(self.folder.join(terminal))
            .env("PATH", path)
            .env_remove("ROTA_DATA")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// What a command prints; starts it only, where it is a node.
    fn run(&mut self, terminal: &str, line: &str) -> String {
        if line.starts_with("rota run ") {
            let log = self.folder.join(terminal).join("log");
            let out = fs::File::create(&log).unwrap();
            let mut command = self.command(terminal, line);
            command.stdout(out.try_clone().unwrap()).stderr(out);
            let mut child = command.spawn().unwrap();
            let (pid, (tell, ended)) = (child.id(), channel());
            std::thread::spawn(move || tell.send(child.wait().unwrap()));
            let line = line.to_owned();
            let node = Node {
                line,
                log,
                pid,
                ended,
            };
            self.running.insert(terminal.to_owned(), node);
            return String::new();
        }
        let output = self.command(terminal, line).output().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap();
        if !output.status.success() {
            text += &String::from_utf8(output.stderr).unwrap();
        }
        text
    }

    /// What the node in this terminal printed, once it has ended.
    fn ended(&mut self, terminal: &str) -> Option<String> {
        let Node {
            line,
            log,
            pid,
            ended,
        } = self.running.remove(terminal)?;
        let status = ended.recv_timeout(LONGEST);
        let text = fs::read_to_string(&log).unwrap();
        let Ok(status) = status else {
            let _ = Command::new("kill").arg(pid.to_string()).status();
            panic!("{line}: still running\n{text}");
        };
        assert!(status.success(), "{line}: {text}");
        Some(text)
    }

    /// As the page would show it: with its ports, and with the folder that it is in left out.
    fn shown(&self, text: &str) -> String {
        let mut text = text.replace(&format!("{}/", self.folder.display()), "");
        for (at, port) in self.ports.iter().enumerate() {
            text = text.replace(&port.to_string(), &format!("700{}", at + 1));
        }
        text
    }
}

/// Replaces what differs from run to run.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words = Vec::new();
        let mut lead = false;
        for word in line.split(' ') {
            let bare = word.trim_matches(|c: char| "(),.:;".contains(c));
            let hex = bare.len() >= 8 && bare.chars().all(|c| c.is_ascii_hexdigit());
            let long = bare.len() > 40;
            let digits = bare.chars().any(|c| c.is_ascii_digit());
            words.push(match () {
                () if lead && ["north", "south", "east"].contains(&word) => "LEAD".to_owned(),
                () if hex => word.replace(bare, "HASH"),
                () if long => "TEXT".to_owned(),
                () if digits => word
                    .split(|c: char| c.is_ascii_digit() || "+-.:,TZ".contains(c))
                    .filter(|part| !part.is_empty())
                    .fold("N".to_owned(), |all, part| all + part),
                () => word.to_owned(),
            });
            lead = word == "lead";
        }
        words.retain(|word| !word.is_empty());
        out += &words.join(" ");
        out.push('\n');
    }
    out
}

/// Three free ports.
fn ports() -> [u16; 3] {
    let sockets = [(); 3].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port())
}

#[test]
fn three_hospitals_come_to_predictions_as_the_book_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/three-hospitals.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_rota"), folder.path().join("rota")).unwrap();
    symlink(root.join("examples"), folder.path().join("examples")).unwrap();
    let mut terminals = Terminals {
        folder: folder.path().canonicalize().unwrap(),
        running: BTreeMap::new(),
        ports: ports(),
    };
    let write = std::env::var_os("ROTA_GOLDEN").is_some();
    let compare = |terminals: &Terminals, shown: &str, actual: &str| {
        let actual = terminals.shown(actual);
        if write {
            println!("{actual}");
        } else {
            let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
            let (actual, shown) = (masked(&actual), masked(shown));
            let name = "docs/three-hospitals.md";
            if let Err(error) = assert.try_eq(Some(&name), actual.into_data(), shown.into_data()) {
                panic!("{error}");
            }
        }
    };
    let mut started: BTreeMap<String, String> = BTreeMap::new();
    let blocks = blocks(&page);
    assert!(blocks.len() > 10, "{} blocks", blocks.len());
    for block in blocks {
        if let Some(text) = terminals.ended(&block.terminal) {
            let (line, shown) = started[&block.terminal].split_once('\n').unwrap();
            compare(&terminals, shown, &text);
            let _ = line;
        }
        let terminal = match block.terminal.as_str() {
            "any" => "",
            name => name,
        };
        let mut actual = String::new();
        let mut node = false;
        for line in block.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                node |= command.starts_with("rota run ");
                actual += &format!("{line}\n{}", terminals.run(terminal, command));
            }
        }
        match node {
            true => drop(started.insert(block.terminal, block.text)),
            false => compare(&terminals, &block.text, &actual),
        }
    }
    assert!(terminals.running.is_empty(), "a node is never waited for");
}
