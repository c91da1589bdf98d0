//! Child processes: this test program again, with the child's task in its environment.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use super::*;

const DEED: &str = "ROTA_STORES_CHILD";
const FOLDER: &str = "ROTA_STORES_FOLDER";
const FROM: &str = "ROTA_STORES_FROM";

/// A running child. It is killed when it is dropped.
pub(crate) struct RunningChild {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl RunningChild {
    /// Starts a child that runs the task `deed` in `folder`, counting from `from`. With `before`, a
    /// shell runs that command first.
    pub(crate) fn start(deed: &str, folder: &Path, from: u64, before: Option<&str>) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut command = match before {
            None => Command::new(program),
            Some(before) => {
                let mut shell = Command::new("sh");
                shell.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\""));
                shell.arg(program);
                shell
            }
        };
        let mut child = command
            .args([
                "--exact",
                "stores::child::child",
                "--ignored",
                "--nocapture",
            ])
            .env(DEED, deed)
            .env(FOLDER, folder)
            .env(FROM, from.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The child's next line of output; `None` when it has ended.
    pub(crate) fn says(&mut self) -> Option<String> {
        let mut said = self.lines.by_ref().map_while(Result::ok);
        said.find_map(|line| line.strip_prefix('@').map(str::to_owned))
    }

    /// Kills it (by SIGKILL on Unix) and returns the rest of its output.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.says()).collect()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> ExitStatus {
        drop(self.child.stdin.take());
        self.child.wait().unwrap()
    }
}

impl Drop for RunningChild {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn say(what: impl std::fmt::Display) {
    // Starts a new line, because the test harness may have written an incomplete one.
    println!("\n@{what}");
    std::io::stdout().flush().unwrap();
}

/// The records of the journal after this number of writes.
pub(crate) fn after(deeds: u64) -> Vec<JournalRecord> {
    let mut list = Vec::new();
    for deed in 0..deeds {
        match write(deed) {
            (records, true) => list = records,
            (mut records, false) => list.append(&mut records),
        }
    }
    list
}

/// The records of a write, and whether they replace all others.
fn write(deed: u64) -> (Vec<JournalRecord>, bool) {
    let several = 1 + random(deed) % 4;
    let records = (0..several).map(|n| record(10 * deed + n)).collect();
    (records, deed % 16 == 15)
}

/// Not a test: the main function of a child.
#[test]
#[ignore = "a part of other tests"]
fn child() {
    let Ok(deed) = std::env::var(DEED) else {
        return;
    };
    let folder = std::env::var_os(FOLDER).unwrap();
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    let OpenedStore {
        mut journal, blobs, ..
    } = store::open(Path::new(&folder), &owner(), CACHE).unwrap();
    match deed.as_str() {
        // Writes without end, as a silo does: blobs, then the records that name them.
        "write" => {
            for deed in from.. {
                let (records, anew) = write(deed);
                let named = (0..records.len() as u64).map(|n| blob(10 * deed + n));
                blobs.put_all(named.collect()).unwrap();
                if anew {
                    journal.replace(0, records).unwrap();
                } else {
                    journal.commit(records).unwrap();
                }
                say(deed + 1);
            }
        }
        // Keeps the folder in use until its input ends.
        "hold" => {
            say("open");
            std::io::stdin().lines().for_each(drop);
        }
        // Puts blobs that grow until the disk is full.
        "fill blobs" => {
            let refused = (10..).find_map(|power| {
                let large = Bytes::from(vec![7; 1 << power]);
                blobs
                    .put_all(vec![blob(power), (Hash::of(&large), large)])
                    .err()
            });
            say(refused.unwrap());
            // A smaller blob that fits is stored.
            blobs.put(blob(1).0, blob(1).1).unwrap();
        }
        // Commits until the disk is full.
        "fill journal" => {
            for deed in from.. {
                if let Err(error) = journal.commit(vec![record(deed); 50]) {
                    say(error);
                    // After a failure nothing more is written.
                    assert!(journal.commit(vec![record(deed)]).is_err());
                    return;
                }
                say(deed + 1);
            }
        }
        other => panic!("no deed {other:?}"),
    }
}
