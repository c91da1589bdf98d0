//! A silo starts with an older copy of its journal.

use protocol::member::Start;
use protocol::{Forgotten, Report};

use super::*;
use crate::Notice;
use crate::record::JournalRecord;
use crate::restore::restore;
use crate::testing::{MemoryJournal, virtually};

/// The reports that a silo's journal is an older copy, since notice `from`.
fn outdated(rig: &Rig, from: usize) -> Vec<Forgotten> {
    let notices = rig.notices.borrow();
    let reports = notices[from..]
        .iter()
        .filter_map(|(_, notice)| match notice {
            Notice::Protocol(Report::Outdated(what)) => Some(*what),
            _ => None,
        });
    reports.collect()
}

/// The number of records with which a silo bound itself.
fn signed(journal: &MemoryJournal) -> usize {
    let transactions = journal.transactions();
    let binds = |record: &&JournalRecord| {
        use protocol::Record::{Contributed, Proposed, Vote};
        matches!(
            record,
            JournalRecord::Protocol(Vote(_) | Proposed(_) | Contributed(_))
        )
    };
    transactions.iter().flatten().filter(binds).count()
}

#[test]
fn an_older_journal_is_noticed_and_signs_nothing_until_lost() {
    virtually(async {
        let rounds = 200;
        let mut table = TestSilos::new(4, rounds, 2);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        table.until(2, 4).await;
        let copy = table.rigs[2].journal.records();
        table.until(2, 9).await;
        kill(&mut silos[2]).await;
        let newest = table.rigs[2].journal.records();
        // An operator puts the copy back.
        table.rigs[2].journal = MemoryJournal::of(copy);
        let from = table.rigs[2].notices.borrow().len();
        silos[2] = table.live(2);
        table.until(2, 14).await;
        let noticed = outdated(&table.rigs[2], from);
        assert_eq!(noticed.len(), 1, "{noticed:?}");
        let journal = table.rigs[2].journal.clone();
        assert!(
            journal
                .records()
                .contains(&JournalRecord::Protocol(protocol::Record::Outdated(
                    noticed[0]
                )))
        );
        let before = signed(&journal);
        // It goes on to adopt what is final, and signs nothing.
        table.until(2, 30).await;
        assert_eq!(signed(&journal), before);
        // Nor does it after a restart, which says so again.
        kill(&mut silos[2]).await;
        let from = table.rigs[2].notices.borrow().len();
        silos[2] = table.live(2);
        table.until(2, 60).await;
        assert_eq!(outdated(&table.rigs[2], from), noticed);
        assert_eq!(signed(&journal), before);
        // Declared lost, it listens until that is safe, and takes part again.
        kill(&mut silos[2]).await;
        let from = table.rigs[2].notices.borrow().len();
        silos[2] = table.live_with(2, |config| config.journal_lost = true);
        table.until(2, 90).await;
        assert_eq!(outdated(&table.rigs[2], from), []);
        let back = Notice::Protocol(Report::TakingPart);
        let notices = table.rigs[2].notices.borrow()[from..].to_vec();
        assert!(notices.iter().any(|(_, notice)| *notice == back));
        assert!(signed(&journal) > before);
        // The others never accused it: it had signed nothing with the copy.
        for rig in &table.rigs {
            let notices = rig.notices.borrow();
            let fault = |notice: &Notice| matches!(notice, Notice::Protocol(Report::Fault(_)));
            assert!(!notices.iter().any(|(_, notice)| fault(notice)));
        }
        // The newest journal, put back in time, is as good as before.
        let mut newest = MemoryJournal::of(newest);
        let config = config(&table.epoch, 2);
        let restored = restore(&config, &mut newest, &*table.rigs[2].blobs).unwrap();
        let Start::Kept(records) = restored.start else {
            panic!("a journal")
        };
        let outdated = |record: &protocol::Record| matches!(record, protocol::Record::Outdated(_));
        assert!(!records.iter().any(outdated));
        for silo in &mut silos {
            kill(silo).await;
        }
    });
}

#[test]
fn the_newest_journal_restored_over_an_older_one_participates() {
    virtually(async {
        let mut table = TestSilos::new(4, 60, 2);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        table.until(2, 3).await;
        let copy = table.rigs[2].journal.records();
        table.until(2, 8).await;
        kill(&mut silos[2]).await;
        let newest = table.rigs[2].journal.clone();
        table.rigs[2].journal = MemoryJournal::of(copy);
        silos[2] = table.live(2);
        table.until(2, 12).await;
        kill(&mut silos[2]).await;
        assert_eq!(outdated(&table.rigs[2], 0).len(), 1);
        let signed_with_copy = signed(&table.rigs[2].journal);
        let (from, before) = (table.rigs[2].notices.borrow().len(), signed(&newest));
        table.rigs[2].journal = newest.clone();
        silos[2] = table.live(2);
        table.until(2, 60).await;
        // It signed nothing in between, so its newest journal is whole.
        assert_eq!(
            (signed_with_copy, outdated(&table.rigs[2], from)),
            (0, vec![])
        );
        assert!(signed(&newest) > before);
        for silo in &mut silos {
            kill(silo).await;
        }
    });
}

/// One of four was restored and only listens, and another one is away, as for a new key: of the quorum of three two are
/// left, so that nothing becomes final, not even the new key. That ends when the one that is away comes back, and at
/// once.
#[test]
fn a_restored_silo_waits_for_one_that_is_away_and_no_longer() {
    virtually(async {
        let mut table = TestSilos::new(4, 200, 2);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        table.until(0, 3).await;
        for silo in &mut silos[2..] {
            kill(silo).await;
        }
        table.rigs[2].journal = MemoryJournal::default();
        let from = table.rigs[2].notices.borrow().len();
        silos[2] = table.live_with(2, |config| config.journal_lost = true);
        sleep(Duration::from_secs(60)).await;
        let stood = table.round(0);
        sleep(LONG).await;
        assert_eq!((table.round(0), table.round(1)), (stood, stood));
        let takes_part = |table: &TestSilos| {
            let notices = &table.rigs[2].notices.borrow()[from..];
            let back = Notice::Protocol(Report::TakingPart);
            notices.iter().any(|(_, notice)| *notice == back)
        };
        assert!(!takes_part(&table));
        let back = Instant::now();
        silos[3] = table.live(3);
        table.until(0, stood + 1).await;
        let first = back.elapsed();
        while !takes_part(&table) {
            assert!(back.elapsed() < LONG, "it still listens");
            sleep(Duration::from_millis(10)).await;
        }
        let (takes, patience) = (back.elapsed(), Duration::from_secs(60));
        assert!(
            first < patience && takes < patience,
            "{first:?} to the next round, {takes:?} until it takes part"
        );
        for silo in &mut silos {
            kill(silo).await;
        }
    });
}
