//! Several processes with one ledger. A child is this test program again, which finds its work in its
//! environment.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::{Ledger, LedgerError};

/// The file on which a child works, and the number of the federation that it plays.
const FILE: &str = "ROTA_TEST_LEDGER";
const FEDERATION: &str = "ROTA_TEST_LEDGER_FEDERATION";
/// Largest ε.
const MOST: f64 = 1.0;
/// The noise of each round: some thirty rounds are possible.
const Z: f64 = 20.0;
/// Text that a child prints before the number of a round that is durable.
pub(super) const DONE: &str = "durable ";

/// Starts a child that contributes to rounds of its federation until the ledger is spent.
pub(super) fn child(file: &Path, federation: u8) -> Child {
    let program = std::env::current_exe().unwrap();
    Command::new(program)
        .args([
            "--exact",
            "tests::processes::works_as_a_child",
            "--nocapture",
        ])
        .env(FILE, file)
        .env(FEDERATION, federation.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The rounds that a child says are durable.
pub(super) fn said(child: &mut Child) -> impl Iterator<Item = u64> + use<> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map_while(Result::ok).filter_map(|line| {
        let (_, round) = line.split_once(DONE)?;
        round.parse().ok()
    })
}

pub(super) fn limits() -> Limits {
    Limits {
        epsilon: Some(MOST),
        ..no_limit()
    }
}

#[test]
fn works_as_a_child() {
    let (Ok(file), Ok(federation)) = (std::env::var(FILE), std::env::var(FEDERATION)) else {
        // Run without a parent there is nothing to do.
        return;
    };
    let ledger = LedgerFile::at(file, limits());
    let federation = federation.parse().unwrap();
    for round in 1.. {
        match ledger.record(&noised(federation, round, Z)) {
            Ok(_) => println!("{DONE}{round}"),
            Err(LedgerError::Spent { .. }) => return,
            Err(why) => panic!("{why}"),
        }
    }
}

#[test]
fn processes_that_share_a_source_spend_its_limit_once() {
    let fresh = Fresh::new();
    let mut children = [1, 2, 3].map(|federation| child(&fresh.file(), federation));
    let durable: usize = children.iter_mut().map(|child| said(child).count()).sum();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let read = fresh.ledger(limits()).read().unwrap();
    assert_eq!(read.lines.len(), durable);
    assert!(read.bound(delta()).epsilon().value() <= MOST);
    let (_, more) = read.with(&noised(9, 9, Z).cost, delta());
    assert!(more.epsilon().value() > MOST, "there was room for more");
    let federations = |federation: u8| {
        let of = |line: &&crate::Line| line.federation.starts_with(&format!("{federation:02x}"));
        read.lines.iter().filter(of).count()
    };
    assert_eq!(federations(1) + federations(2) + federations(3), durable);
}

#[test]
fn threads_with_handles_of_their_own_spend_the_limit_once() {
    let fresh = Fresh::new();
    let file = fresh.file();
    let work = |federation| {
        let ledger = LedgerFile::at(&file, limits());
        let spent = |round: &u64| ledger.record(&noised(federation, *round, Z)).is_ok();
        (1..).take_while(spent).count()
    };
    let work = &work;
    let durable: usize = std::thread::scope(|scope| {
        let threads = [1, 2, 3, 4].map(|federation| scope.spawn(move || work(federation)));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    let read = fresh.ledger(limits()).read().unwrap();
    assert_eq!(read.lines.len(), durable);
    assert!(read.bound(delta()).epsilon().value() <= MOST);
}
