//! The log and its check, without a node.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use protocol::message::{Body, Phase};
use protocol::net::{BlobRequest, Command, Event as NetworkEvent};
use protocol::roster::Silo;
use protocol::{Epoch, Hash, MemberIndex, SecretKey, envelope};
use tempfile::TempDir;
use tokio::sync::mpsc;

use silo::Journal;

use super::*;
use crate::fixture;
use crate::store::{DiskJournal, Owner};

const ME: MemberIndex = MemberIndex(1);

fn key(member: u8) -> SecretKey {
    fixture::key(member + 1)
}

fn epoch() -> Epoch {
    let names = ["north", "south", "east", "west"];
    let named = fixture::silos(4, 1).into_iter().zip(names);
    let silos = named.map(|(silo, name)| Silo {
        name: name.into(),
        ..silo
    });
    fixture::epoch(silos.collect(), fixture::protocol())
}

fn open(folder: &Path, sizes: LogSizes) -> AuditLog {
    AuditLog::open(folder, epoch().federation, &key(1), sizes, None).unwrap()
}

fn event(number: u64) -> AuditEvent {
    AuditEvent::Blob {
        to: "north".into(),
        bytes: number,
        hash: "ab".repeat(32),
    }
}

/// Writes this many lines, each by itself, after the first that says that the node started.
fn write(folder: &Path, sizes: LogSizes, lines: u64) {
    let mut log = open(folder, sizes);
    for number in 1..lines {
        log.add(event(number));
        log.flush().unwrap();
    }
}

fn checked(folder: &Path) -> Result<Audited, String> {
    check(folder, &epoch(), |_| Ok(())).map_err(|error| error.to_string())
}

fn file(folder: &Path, number: u64) -> std::path::PathBuf {
    folder.join(AUDIT).join(format!("{number:06}.jsonl"))
}

/// Changes the lines of a file.
fn edit(folder: &Path, number: u64, change: impl FnOnce(&mut Vec<String>)) {
    let path = file(folder, number);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(&path, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_log_goes_on_after_a_restart_and_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), LogSizes::default(), 10);
    write(folder.path(), LogSizes::default(), 5);
    let found = checked(folder.path()).unwrap();
    assert_eq!((found.lines, found.signed), ((1, 15), 15));
    assert_eq!(found.sent["north"]["blob"], (13, 45 + 10));
    assert_eq!(found.silo, "south");
    let alone = "there is no journal beside it, so an older copy of the log would not be noticed";
    assert_eq!(found.notes, [alone]);
}

/// A copy of a log of twenty lines, after `change`: what the check says.
fn after(change: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), LogSizes::default(), 20);
    change(folder.path());
    checked(folder.path()).unwrap_err()
}

#[test]
fn a_line_that_was_changed_cut_out_added_or_moved_is_named() {
    let said = after(|folder| {
        edit(folder, 1, |lines| {
            lines[6] = lines[6].replace("\"bytes\":6", "\"bytes\":7");
        });
    });
    assert!(said.contains("line 8 does not follow line 7"), "{said}");
    let said = after(|folder| edit(folder, 1, |lines| drop(lines.drain(4..7))));
    assert!(said.contains("lines 5 to 7 are missing"), "{said}");
    let said = after(|folder| {
        edit(folder, 1, |lines| lines.insert(3, lines[2].clone()));
    });
    assert!(said.contains("expected line 4, found line 3"), "{said}");
    let said = after(|folder| edit(folder, 1, |lines| lines.swap(3, 4)));
    assert!(said.contains("line 4 is missing"), "{said}");
    let said = after(|folder| edit(folder, 1, |lines| lines[9] = "{}".into()));
    assert!(
        said.contains("the line after line 9 cannot be read"),
        "{said}"
    );
}

#[test]
fn a_log_that_was_cut_off_at_its_end_or_beginning_is_noticed() {
    let said = after(|folder| edit(folder, 1, |lines| lines.truncate(15)));
    assert!(
        said.contains("lines 16 to 20 are cut off at the end, or an older copy"),
        "{said}"
    );
    // The last line, changed: nothing follows it.
    let said = after(|folder| {
        edit(folder, 1, |lines| {
            lines[19] = lines[19].replace("\"bytes\":19", "\"bytes\":91");
        });
    });
    assert!(
        said.contains("line 20 is not the one that the silo signed"),
        "{said}"
    );
    let said = after(|folder| edit(folder, 1, |lines| drop(lines.drain(..5))));
    assert!(
        said.contains("lines up to 5 are missing at the beginning"),
        "{said}"
    );
    let said = after(|folder| fs::remove_file(folder.join(AUDIT).join("head.json")).unwrap());
    assert!(said.contains("head.json is missing"), "{said}");
    // A head of another key.
    let said = after(|folder| {
        let head = folder.join(AUDIT).join("head.json");
        let text = fs::read_to_string(&head).unwrap();
        let (own, other) = (key(1).public(), key(2).public());
        fs::write(head, text.replace(&format!("{own}"), &format!("{other}"))).unwrap();
    });
    assert!(said.contains("is not signed by a member"), "{said}");
}

#[test]
fn the_oldest_files_are_removed_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = LogSizes {
        file: 1000,
        files: 3,
    };
    write(folder.path(), sizes, 60);
    // The node starts again with files that an earlier process wrote.
    write(folder.path(), sizes, 20);
    assert!(!file(folder.path(), 1).exists());
    let kept = fs::read_dir(folder.path().join(AUDIT)).unwrap().count();
    assert_eq!(kept, 3 + 1);
    let found = checked(folder.path()).unwrap();
    assert!(found.lines.0 > 50 && found.lines.1 > 80, "{found:?}");
    let note = &found.notes[1];
    assert!(note.contains("the log had its full size"), "{note}");
    // One more is not what the node removed.
    let first = (1..).find(|number| file(folder.path(), *number).exists());
    fs::remove_file(file(folder.path(), first.unwrap())).unwrap();
    let said = checked(folder.path()).unwrap_err();
    assert!(said.contains("missing at the beginning"), "{said}");
}

#[test]
fn lines_that_a_power_cut_took_are_noted_and_a_part_of_a_line_is_none() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), LogSizes::default(), 20);
    edit(folder.path(), 1, |lines| lines.truncate(18));
    let path = file(folder.path(), 1);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text + "{\"line\":19,\"at").unwrap();
    write(folder.path(), LogSizes::default(), 3);
    let found = checked(folder.path()).unwrap();
    assert_eq!(found.lines, (1, 22));
    assert!(
        found.notes[1].starts_with("2 lines before line 19 were gone"),
        "{found:?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn lines_that_could_not_be_written_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut log = open(folder.path(), LogSizes::default());
    log.add(event(1));
    log.flush().unwrap();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let good = log.swap_file(full.unwrap());
    for number in [2, 3] {
        log.add(event(number));
        log.flush().unwrap_err();
        log.give_up();
    }
    log.swap_file(good);
    log.add(event(4));
    log.flush().unwrap();
    drop(log);
    let found = checked(folder.path()).unwrap();
    assert_eq!(found.notes.len(), 2, "{found:?}");
    assert!(
        found.notes[1].starts_with("2 lines before line 3"),
        "{found:?}"
    );
    assert_eq!(found.sent["north"]["blob"].0, 2);
}

/// The journal in a folder of this silo.
fn journal(folder: &Path) -> DiskJournal {
    let owner = Owner {
        federation: epoch().federation,
        me: ME,
        key: key(1),
    };
    DiskJournal::open(folder, &owner).unwrap()
}

/// Writes so many lines, as a running node does, whose journal has a transaction after the first
/// `before` of them. Gives what was found at the start.
fn run(folder: &Path, lines: u64, before: u64) -> String {
    let mut journal = journal(folder);
    let note = Some(journal.log_note());
    let federation = epoch().federation;
    let mut log = AuditLog::open(folder, federation, &key(1), LogSizes::default(), note).unwrap();
    for number in 1..lines {
        log.add(event(number));
        log.flush().unwrap();
        log.sign(false).unwrap();
        if number == before {
            journal.commit(vec![silo::JournalRecord::Begun]).unwrap();
        }
    }
    // As when the process is killed.
    log.forget_journal();
    log.findings().join("; ")
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn an_older_copy_of_the_whole_log_beside_the_newest_journal_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let aside = tempfile::tempdir().unwrap();
    let audit = folder.path().join(AUDIT);
    let older = aside.path().join("older");
    run(folder.path(), 10, 5);
    let found = checked(folder.path()).unwrap();
    // The transaction came after the first line, which says that the node started, and five more.
    assert_eq!((found.lines, found.journal), ((1, 10), Some(6)));
    assert!(found.notes.is_empty(), "{found:?}");
    copy(&audit, &older);
    run(folder.path(), 20, 15);
    assert_eq!(checked(folder.path()).unwrap().journal, Some(26));
    copy(&older, &audit);
    let said = checked(folder.path()).unwrap_err();
    let expected = "lines 11 to 26 are cut off at the end, or an older copy of the log was put back: the \
                    journal beside it names line 26";
    assert!(said.contains(expected), "{said}");
    // Written on by somebody without the key, past that line: the head is signed for the first ten.
    let path = file(folder.path(), 1);
    let text = fs::read_to_string(&path).unwrap();
    let mut line: AuditLine = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let mut more = text.clone();
    for _ in 0..30 {
        line.before = format!("{:#}", Hash::of(&line.bytes()));
        line.line += 1;
        more += &(serde_json::to_string(&line).unwrap() + "\n");
    }
    fs::write(&path, &more).unwrap();
    let said = checked(folder.path()).unwrap_err();
    assert!(
        said.contains("line 26 is not the one that the journal beside it names"),
        "{said}"
    );
    // The node finds both when it starts, and the log says so from then on.
    let found = run(folder.path(), 3, 2);
    assert!(
        found.contains("line 26 of the audit log is not the one"),
        "{found}"
    );
    let notes = checked(folder.path()).unwrap().notes;
    assert!(notes[0].starts_with("line 26 was not the one"), "{notes:?}");
    fs::write(&path, text).unwrap();
    fs::copy(older.join("head.json"), audit.join("head.json")).unwrap();
    let found = run(folder.path(), 3, 2);
    assert!(found.contains("lines of the audit log are gone"), "{found}");
}

#[test]
fn a_log_that_is_gone_is_noticed_where_the_journal_names_it() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), 10, 5);
    fs::remove_dir_all(folder.path().join(AUDIT)).unwrap();
    let said = checked(folder.path()).unwrap_err();
    assert!(said.contains("it is gone, and the journal"), "{said}");
    // A journal that names none may have none beside it.
    let other = tempfile::tempdir().unwrap();
    drop(journal(other.path()));
    let said = checked(other.path()).unwrap_err();
    assert!(said.starts_with("there is no audit log"), "{said}");
}

/// What is put back together is older and whole; only other members can tell.
#[test]
fn a_log_and_a_journal_that_are_put_back_together_are_not_noticed_here() {
    let folder = tempfile::tempdir().unwrap();
    let older = tempfile::tempdir().unwrap();
    run(folder.path(), 10, 5);
    copy(&folder.path().join(AUDIT), &older.path().join(AUDIT));
    let name = "journal.redb";
    fs::copy(folder.path().join(name), older.path().join(name)).unwrap();
    run(folder.path(), 20, 15);
    let found = checked(older.path()).unwrap();
    assert_eq!((found.lines, found.journal), ((1, 10), Some(6)));
    let mut said = Vec::new();
    found.write(&mut said).unwrap();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("only other members could tell"), "{said}");
    // A newer log than the journal is what a killed node leaves.
    copy(&folder.path().join(AUDIT), &older.path().join(AUDIT));
    assert_eq!(checked(older.path()).unwrap().journal, Some(6));
}

/// The end of the log is in the journal at once, without a transaction of the silo.
#[test]
fn the_end_of_a_log_is_named_by_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let journal = journal(folder.path());
    let note = Some(journal.log_note());
    let federation = epoch().federation;
    let mut log = AuditLog::open(
        folder.path(),
        federation,
        &key(1),
        LogSizes::default(),
        note,
    )
    .unwrap();
    // The silo ends before the network.
    drop(journal);
    log.add(event(1));
    log.add(event(2));
    drop(log);
    let found = checked(folder.path()).unwrap();
    assert_eq!((found.lines, found.journal), ((1, 3), Some(3)));
}

/// Returns what a tap wrote about these commands, and passed on.
fn tapped(commands: Vec<Command>, asked: &NetworkEvent) -> (TempDir, Audited, usize) {
    let folder = tempfile::tempdir().unwrap();
    let questions = Questions::default();
    questions.observe(asked);
    let epoch = epoch();
    let names = epoch.roster.silos().iter().map(|silo| silo.name.clone());
    let tap = AuditedNetwork {
        log: open(folder.path(), LogSizes::default()),
        questions,
        names: names.collect(),
        me: ME,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let count = runtime.block_on(async {
        let (silo, from) = mpsc::channel(64);
        let (to, mut network) = mpsc::channel(64);
        for command in commands {
            silo.send(command).await.unwrap();
        }
        drop(silo);
        tap.pass(from, to).await;
        let mut count = 0;
        while network.recv().await.is_some() {
            count += 1;
        }
        count
    });
    let found = checked(folder.path()).unwrap();
    (folder, found, count)
}

#[test]
fn everything_that_is_sent_has_a_line_and_is_passed_on() {
    let progress = Body::Progress {
        phase: Phase::Collecting,
        counter: 0,
    };
    let (_, frame) = envelope::sign(&epoch(), &key(1), 0, 7, ME, progress);
    let wanted = NetworkEvent::Wanted {
        by: MemberIndex(3),
        blobs: vec![Hash::of(b"model"), Hash::of(b"other")],
        ticket: 5,
    };
    let fetch = |from: &[u16]| Command::Fetch {
        blobs: vec![BlobRequest {
            hash: Hash::of(b"wish"),
            limit: 10,
        }],
        from: from.iter().copied().map(MemberIndex).collect(),
    };
    let commands = vec![
        Command::Send {
            to: MemberIndex(0),
            frame: frame.clone(),
        },
        Command::Publish {
            frame: frame.clone(),
        },
        Command::Serve {
            ticket: 5,
            blobs: vec![Some(b"model".to_vec().into()), None],
        },
        fetch(&[0, 2, 3]),
        fetch(&[2]),
    ];
    let (folder, found, passed) = tapped(commands, &wanted);
    assert_eq!(passed, 5);
    let bytes = frame.len() as u64;
    assert_eq!(found.sent["north"]["Progress"], (1, bytes));
    assert_eq!(found.sent["all"]["Progress"], (1, bytes));
    // The blob that was refused was not sent.
    assert_eq!(found.sent["west"]["blob"], (1, 5));
    assert_eq!(found.sent["all"]["request for a blob"].0, 1);
    assert_eq!(found.sent["east"]["request for a blob"].0, 1);
    let lines = fs::read_to_string(file(folder.path(), 1)).unwrap();
    let line: AuditLine = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    let AuditEvent::Message {
        view, round, hash, ..
    } = line.event
    else {
        panic!("{lines}")
    };
    assert_eq!((view, round), (Some(7), None));
    assert_eq!(hash, format!("{:#}", Hash::of(&frame)));
}

/// Prints what a line costs, written one by one and in batches.
#[test]
#[ignore = "measures"]
fn measure_the_cost_of_a_line() {
    for batch in [1, 16, 64] {
        let folder = tempfile::tempdir().unwrap();
        let mut log = open(folder.path(), LogSizes::default());
        let began = std::time::Instant::now();
        let lines = 64_000;
        for number in 0..lines {
            log.add(event(number));
            if number % batch == 0 {
                log.flush().unwrap();
            }
        }
        let each = began.elapsed() / lines as u32;
        drop(log);
        let bytes = fs::metadata(file(folder.path(), 1)).unwrap().len();
        println!(
            "batches of {batch}: {each:?} a line, {} bytes in the first file",
            bytes
        );
    }
}
