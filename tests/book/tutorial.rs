//! The book's tutorial "Three hospitals" and its second day, line by line, as somebody with a few
//! terminals does it.
//!
//! A block of language `console,NAME` is typed into the terminal NAME, which begins in the folder of
//! that name; `NAME-2` is a second one in the same folder. Its commands begin with `$ ` and are followed
//! by what they print. A node that is started runs while other terminals go on; its terminal takes the
//! next block when it has ended. A block of language `node,NAME` is a line that the node of NAME prints,
//! and whoever reads goes on when it is there; an id in it is typed into commands as that node printed it.
//! `...` stands for any lines. What differs from run to run is masked: keys and hashes, times,
//! numbers of a run, and who leads.
//!
//! `ROTA_GOLDEN=write` prints every block as it is now, to be read and copied.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use snapbox::IntoData;

/// Longest time that a node of the tutorial may run.
const LONGEST: Duration = Duration::from_secs(60);

/// A block of the page: the terminal, and its lines.
struct TutorialBlock {
    /// True if the block is what a node prints.
    node: bool,
    terminal: String,
    text: String,
}

fn blocks(page: &str) -> Vec<TutorialBlock> {
    let mut blocks = Vec::new();
    let mut open: Option<TutorialBlock> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let (language, terminal) = language.split_once(',').unwrap_or((language, ""));
                open = Some(TutorialBlock {
                    node: language == "node",
                    terminal: match language {
                        "console" | "node" => terminal.to_owned(),
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

/// Returns whether a command is `rota run`, with options or without.
fn starts_a_node(command: &str) -> bool {
    command == "rota run" || command.starts_with("rota run ")
}

/// Everybody's folder, and the nodes that run.
struct Terminals {
    folder: PathBuf,
    running: BTreeMap<String, TutorialNode>,
    ports: [u16; 4],
    /// Ids of the page, and what they are here.
    ids: BTreeMap<String, String>,
}

/// A node that runs.
struct TutorialNode {
    line: String,
    pid: u32,
    /// Output of the node so far.
    text: String,
    lines: Receiver<String>,
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
        for (shown, here) in &self.ids {
            line = line.replace(shown, here);
        }
        let mut command = Command::new("sh");
        command
            .args(["-c", &line])
            .current_dir(self.folder.join(terminal.trim_end_matches("-2")))
            .env("PATH", path)
            .env_remove("ROTA_DATA")
            .env_remove("ROTA_CONFIG")
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Returns what a command prints; starts it only, where it is a node.
    fn run(&mut self, terminal: &str, line: &str) -> String {
        if starts_a_node(line) {
            let mut command = self.command(terminal, &format!("exec {line} 2>&1"));
            let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
            let out = BufReader::new(child.stdout.take().unwrap());
            let (pid, (tell, ended), (print, lines)) = (child.id(), channel(), channel());
            std::thread::spawn(move || {
                for line in out.lines().map_while(Result::ok) {
                    let _ = print.send(line);
                }
                tell.send(child.wait().unwrap())
            });
            let node = TutorialNode {
                line: line.to_owned(),
                pid,
                text: String::new(),
                lines,
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

    /// Returns what the node in this terminal printed, once it has ended.
    fn ended(&mut self, terminal: &str) -> Option<String> {
        let mut node = self.running.remove(terminal)?;
        let status = node.ended.recv_timeout(LONGEST);
        node.text
            .extend(node.lines.try_iter().map(|line| line + "\n"));
        let TutorialNode {
            line, pid, text, ..
        } = node;
        let Ok(status) = status else {
            let _ = Command::new("kill").arg(pid.to_string()).status();
            panic!("{line}: still running\n{text}");
        };
        assert!(status.success(), "{line}: {text}");
        Some(text)
    }

    /// Waits until the node in this terminal has printed a line like this one, and takes note of its ids.
    fn prints(&mut self, terminal: &str, shown: &str) {
        let folder = self.folder.clone();
        let node = self.running.get_mut(terminal).unwrap();
        let found = loop {
            let Ok(line) = node.lines.recv_timeout(LONGEST) else {
                panic!("{terminal} never prints {shown:?} after\n{}", node.text);
            };
            node.text += &format!("{line}\n");
            let here = line.replace(&format!("{}/", folder.display()), "");
            // The node said long ago that all 12 rounds were done.
            if masked(&here) == masked(shown) && counts(&here) == counts(shown) {
                break line;
            }
        };
        let ids = |text: &str| {
            let words = text.split(|c: char| !c.is_ascii_hexdigit());
            let ids: Vec<String> = words
                .filter(|word| word.len() == 32)
                .map(str::to_owned)
                .collect();
            ids
        };
        self.ids.extend(ids(shown).into_iter().zip(ids(&found)));
    }

    /// Ends all nodes as Ctrl-C does.
    fn interrupt(&mut self) {
        let terminals: Vec<String> = self.running.keys().cloned().collect();
        for terminal in terminals {
            let pid = self.running[&terminal].pid.to_string();
            let done = Command::new("kill").args(["-INT", &pid]).status().unwrap();
            assert!(done.success());
            self.ended(&terminal);
        }
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

/// The words that are whole numbers: rounds, members, rows.
fn counts(text: &str) -> Vec<u64> {
    let words = text.split(' ');
    let counts = words.filter_map(|word| word.trim_matches(|c| ",.:;".contains(c)).parse().ok());
    counts.collect()
}

/// Replaces what differs from run to run.
fn masked(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words = Vec::new();
        let mut lead = false;
        for word in line.split(' ') {
            let bare = word.trim_matches(|c: char| "(),.:;`".contains(c));
            let hex = bare.len() >= 8 && bare.chars().all(|c| c.is_ascii_hexdigit());
            let long = bare.len() > 40;
            let digits = bare.chars().any(|c| c.is_ascii_digit());
            words.push(match () {
                () if lead && ["north", "south", "east", "west"].contains(&word) => {
                    "LEAD".to_owned()
                }
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

/// Ports that are free for both transports, below those that a system gives to whoever asks for any:
/// such a port could be somebody else's by the time at which a node listens.
fn ports() -> [u16; 4] {
    let first = 20_000 + std::process::id() as u16 % 1000 * 10;
    let free = |port: &u16| {
        let at = ("127.0.0.1", *port);
        std::net::UdpSocket::bind(at).is_ok() && std::net::TcpListener::bind(at).is_ok()
    };
    let mut ports = (first..first + 100).filter(free);
    [(); 4].map(|()| ports.next().expect("four of a hundred ports are free"))
}

#[test]
fn hospitals_have_the_first_and_second_day_of_the_book() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_rota"), folder.path().join("rota")).unwrap();
    symlink(root.join("examples"), folder.path().join("examples")).unwrap();
    let mut terminals = Terminals {
        folder: folder.path().canonicalize().unwrap(),
        running: BTreeMap::new(),
        ports: ports(),
        ids: BTreeMap::new(),
    };
    play(&mut terminals, &root.join("docs/three-hospitals.md"));
    assert!(terminals.running.is_empty(), "a node is never waited for");
    play(&mut terminals, &root.join("docs/second-day.md"));
    assert_eq!(terminals.running.len(), 4);
    terminals.interrupt();
}

/// Types what a page says.
fn play(terminals: &mut Terminals, file: &Path) {
    let page = fs::read_to_string(file).unwrap();
    let write = std::env::var_os("ROTA_GOLDEN").is_some();
    let compare = |terminals: &Terminals, shown: &str, actual: &str| {
        let actual = terminals.shown(actual);
        if write {
            println!("{actual}");
        } else {
            let assert = snapbox::Assert::new().action_env("SNAPSHOTS");
            let (actual, shown) = (masked(&actual), masked(shown));
            let name = file.file_name().unwrap().to_string_lossy();
            if let Err(error) = assert.try_eq(Some(&name), actual.into_data(), shown.into_data()) {
                panic!("{error}");
            }
        }
    };
    let mut started: BTreeMap<String, String> = BTreeMap::new();
    let blocks = blocks(&page);
    assert!(blocks.len() > 10, "{} blocks", blocks.len());
    for block in blocks {
        if block.node {
            for line in block.text.lines() {
                terminals.prints(&block.terminal, line);
            }
            continue;
        }
        if let Some(text) = terminals.ended(&block.terminal) {
            let (_, shown) = started[&block.terminal].split_once('\n').unwrap();
            compare(terminals, shown, &text);
        }
        let terminal = match block.terminal.as_str() {
            "any" => "",
            name => name,
        };
        let mut actual = String::new();
        let mut node = false;
        for line in block.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                node |= starts_a_node(command);
                actual += &format!("{line}\n{}", terminals.run(terminal, command));
            }
        }
        if node {
            drop(started.insert(block.terminal, block.text))
        } else {
            compare(terminals, &block.text, &actual)
        }
    }
}
