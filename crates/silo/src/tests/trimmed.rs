//! Journals of silos that run for long: what stays in them, and that nothing is missing in what stays.
//!
//! `ROTA_ROUNDS=2000 cargo test --release -p silo --lib -- --nocapture journals_stay` measures more
//! rounds than the usual 60.

use protocol::codec;

use super::*;
use crate::environment::Journal;
use crate::needed::{is_final, needed};
use crate::record::JournalRecord;
use crate::testing::{MemoryJournal, virtually};
use crate::trimmed::{ROOM, TrimmedJournal};

fn rounds() -> u64 {
    let asked = std::env::var("ROTA_ROUNDS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(60)
}

fn bytes<'a>(records: impl IntoIterator<Item = &'a JournalRecord>) -> u64 {
    let size = |record: &JournalRecord| codec::encode(record).len() as u64;
    records.into_iter().map(size).sum()
}

/// Bytes of a final round that all of `n` members contributed to: `docs/reliability.md` has the formula.
fn of_round(epoch: &Epoch) -> u64 {
    let (n, q) = (epoch.roster.len() as u64, epoch.roster.quorum() as u64);
    300 + 66 * n + 67 * q
}

/// Most bytes of everything else that a silo keeps while rounds succeed.
fn besides(epoch: &Epoch) -> u64 {
    let n = epoch.roster.len() as u64;
    let kept = u64::from(epoch.protocol.keep_rounds);
    (2 * kept + 10) * (600 + 100 * n) + ROOM as u64 * (200 + 50 * n)
}

/// Members take turns at dying: one is killed every few rounds and comes back some rounds later.
fn long_run(n: u16, keep: u32) {
    virtually(async {
        let rounds = rounds();
        let table = TestSilos::new(n, rounds, keep);
        let mut silos: Vec<_> = (0..n).map(|i| table.live(i)).collect();
        let (mut largest, mut turn) = (0, 0);
        let mut dead: Option<u16> = None;
        let mut next = 5;
        while next < rounds {
            let alive = (0..n).find(|i| Some(*i) != dead).unwrap();
            table.until(alive, next).await;
            for rig in &table.rigs {
                let records = rig.journal.records();
                let end: Vec<_> = records.iter().filter(|record| !is_final(record)).collect();
                largest = largest.max(end.len());
                let most = next * of_round(&table.epoch) + besides(&table.epoch);
                let found = bytes(&records);
                assert!(
                    found <= most,
                    "round {next}: {found} bytes, expected {most}"
                );
            }
            match dead.take() {
                Some(i) => silos[usize::from(i)] = table.live(i),
                None => {
                    kill(&mut silos[usize::from(turn)]).await;
                    (dead, turn) = (Some(turn), (turn + 1) % n);
                }
            }
            next += 5;
        }
        if let Some(i) = dead {
            silos[usize::from(i)] = table.live(i);
        }
        for i in 0..n {
            table.until(i, rounds).await;
        }
        for (i, rig) in table.rigs.iter().enumerate() {
            let records = rig.journal.records();
            let chain: Vec<_> = records.iter().filter(|record| is_final(record)).collect();
            let committed = bytes(rig.journal.transactions().iter().flatten());
            let (all, chain) = (bytes(&records), bytes(chain));
            println!(
                "n = {n}, silo {i}: {committed} bytes written in {rounds} rounds, {all} are there: \
                 {chain} of final blocks ({} a round, expected at most {}), {} of others (at most \
                 {}), most records besides: {largest}",
                chain / rounds,
                of_round(&table.epoch),
                all - chain,
                besides(&table.epoch),
            );
            assert!(chain <= rounds * of_round(&table.epoch));
            // Without trimming everything that was written would be there.
            assert!(rounds < 60 || 2 * all < committed);
        }
        for silo in &mut silos {
            kill(silo).await;
        }
    });
}

#[test]
fn journals_stay_under_the_stated_bound_while_members_die_and_restart() {
    long_run(4, 2);
    long_run(7, 3);
}

#[test]
fn a_silo_that_slept_longer_than_anything_is_kept_catches_up_and_contributes() {
    virtually(async {
        let table = TestSilos::new(4, 60, 1);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        table.until(2, 3).await;
        kill(&mut silos[2]).await;
        table.until(0, 45).await;
        let trimmed = table.rigs[0].journal.records();
        let votes = |record: &&JournalRecord| matches!(record, JournalRecord::Protocol(protocol::Record::Vote(message)) if message.view < 20);
        assert_eq!(trimmed.iter().filter(votes).count(), 0, "they are removed");
        silos[2] = table.live(2);
        for i in 0..4 {
            table.until(i, 60).await;
        }
        let finals = |i: usize| {
            let records = table.rigs[i].journal.records().into_iter();
            let blocks = records.filter_map(|record| match record {
                JournalRecord::Protocol(protocol::Record::Final { blocks, .. }) => Some(blocks),
                _ => None,
            });
            blocks.flatten().collect::<Vec<_>>()
        };
        // It has the whole chain, and what it signed is in the last round.
        assert_eq!(finals(2), finals(0));
        let last = finals(0).pop().unwrap();
        let authors = last.learning().unwrap().inclusions.iter();
        assert!(authors.clone().any(|(by, _)| *by == MemberIndex(2)));
        for silo in &mut silos {
            kill(silo).await;
        }
    });
}

/// After every transaction of a silo that was killed twice, a restart finds in the trimmed journal what
/// it would find in one from which nothing was ever removed.
#[test]
fn trimming_removes_nothing_that_a_restart_needs() {
    let (rounds, keep) = (40, 2);
    let transactions = virtually(async {
        let table = TestSilos::new(4, rounds, keep);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        for round in [12, 25] {
            table.until(1, round).await;
            kill(&mut silos[1]).await;
            silos[1] = table.live(1);
        }
        table.until(1, rounds).await;
        for silo in &mut silos {
            kill(silo).await;
        }
        table.rigs[1].journal.transactions()
    });
    let keep = keep as usize;
    let needed = |records: Vec<JournalRecord>| needed(records, keep, rounds);
    let mut whole = Vec::new();
    let journal = MemoryJournal::default();
    let mut trimmed = TrimmedJournal::new(Box::new(journal.clone()), Vec::new(), keep);
    let mut most = 0;
    for (nth, records) in transactions.into_iter().enumerate() {
        whole.extend(records.clone());
        trimmed.commit(records).unwrap();
        let left = journal.records();
        let besides = left.iter().filter(|record| !is_final(record)).count();
        most = most.max(besides);
        assert_eq!(needed(left), needed(whole.clone()), "transaction {nth}");
        if nth % 50 == 49 {
            // A restart removes what is superseded, and continues.
            let left = needed(journal.records());
            journal.clone().replace(0, left.clone()).unwrap();
            trimmed = TrimmedJournal::new(Box::new(journal.clone()), left, keep);
        }
    }
    assert!(whole.len() > 300 && most < 120, "{} {most}", whole.len());
}

/// A loss in the middle of the journal, and the end of an epoch, supersede what was before them.
#[test]
fn trimming_leaves_the_records_of_a_loss_where_they_are() {
    use crate::testing::{adopted, applied};
    let journal = MemoryJournal::default();
    let mut trimmed = TrimmedJournal::new(Box::new(journal.clone()), Vec::new(), 1);
    trimmed
        .commit(vec![JournalRecord::Begun, applied(0)])
        .unwrap();
    trimmed.commit(vec![JournalRecord::Lost]).unwrap();
    for round in 1..=100 {
        let records = vec![adopted(round), applied(round)];
        trimmed.commit(records).unwrap();
        let left = journal.records();
        assert_eq!(left[0], JournalRecord::Begun);
        assert!(left.contains(&JournalRecord::Lost) && left.contains(&applied(round)));
        assert!(left.len() < 2 * 5 + ROOM + 2, "{}", left.len());
    }
}
