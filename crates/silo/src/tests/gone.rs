//! Missing blobs that an intact journal names.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::member::Start;
use protocol::{Hash, MemberIndex, Report};
use tokio::time::{Instant, sleep};

use super::LONG;
use crate::environment::{Blobs, Journal};
use crate::outcome::Document;
use crate::testing::*;
use crate::{Adopted, Checks, JournalRecord, Missing, Notice, spawn};

const ROUNDS: u64 = 6;

/// Selects the blobs of a silo to remove, given its last adoption.
type BlobSelection = fn(&Rig, &Adopted) -> Vec<Hash>;

fn last(rig: &Rig) -> Adopted {
    let records = rig.journal.records().into_iter().rev();
    let adopted = |record| match record {
        JournalRecord::Adopted(adopted) => Some(adopted),
        _ => None,
    };
    records.into_iter().find_map(adopted).unwrap()
}

fn models(rig: &Rig, adopted: &Adopted) -> Vec<Hash> {
    let document = rig.blobs.get(&Hash(adopted.outcome)).unwrap();
    Document::read(&document).unwrap().all_models().collect()
}

/// Four silos; the third is killed after three rounds, loses blobs, and restarts at once, or when the
/// others are two rounds further.
fn four(which: BlobSelection, keep: u32, late: bool) -> Vec<Rig> {
    virtually(async {
        let (hub, checks) = (Hub::default(), Checks::new(false));
        let mut epoch = (*epoch(4, ROUNDS)).clone();
        epoch.protocol.keep_rounds = keep;
        let epoch = Arc::new(epoch);
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let rigs: Vec<_> = (0..4).map(rig).collect();
        let live = |i: u16| {
            let (environment, ends) = rigs[usize::from(i)].environment();
            hub.join(MemberIndex(i), ends);
            spawn(config(&epoch, i), environment).unwrap()
        };
        let until = async |of: usize, rounds: usize| {
            let end = Instant::now() + LONG;
            while rigs[of].adopted().len() < rounds {
                assert!(Instant::now() < end);
                sleep(Duration::from_millis(10)).await;
            }
        };
        let mut silos: Vec<_> = (0..4).map(live).collect();
        until(2, 3).await;
        silos[2].kill();
        silos[2].stopped().await;
        let gone = which(&rigs[2], &last(&rigs[2]));
        assert!(!gone.is_empty());
        rigs[2].blobs.forget(&gone);
        if late {
            until(0, 5).await;
        }
        silos[2] = live(2);
        sleep(LONG).await;
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        rigs.clone()
    })
}

/// The notices of the third silo about missing blobs.
fn reported(rig: &Rig) -> Vec<Missing> {
    let notices = rig.notices.borrow();
    let gone = notices.iter().filter_map(|(_, notice)| match notice {
        Notice::Missing(gone) => Some(*gone),
        _ => None,
    });
    gone.collect()
}

/// Checks that all silos finished with the same outcomes, and that the third adopted and signed nothing
/// twice.
fn whole(rigs: &[Rig]) -> f32 {
    let third = &rigs[2];
    let all = rigs[0].adopted();
    assert_eq!(all.len() as u64, ROUNDS);
    for rig in rigs {
        let adopted = rig.adopted();
        assert!(adopted.iter().all(|own| all.contains(own)), "{adopted:?}");
        assert_eq!(adopted.last(), all.last());
    }
    let (mut blocks, mut contributed, mut voted) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for record in third.journal.records() {
        match record {
            JournalRecord::Adopted(adopted) => {
                assert!(blocks.insert(adopted.block), "adopted twice")
            }
            JournalRecord::Protocol(protocol::Record::Contributed(message)) => {
                assert!(contributed.insert(message.round), "contributed twice");
            }
            JournalRecord::Protocol(protocol::Record::Vote(message)) => {
                let kind = format!("{:?}", message.body.kind());
                assert!(voted.insert((message.view, kind)), "voted twice");
            }
            _ => {}
        }
    }
    let notices = third.notices.borrow();
    let personal = notices.iter().rev().find_map(|(_, notice)| match notice {
        Notice::Adopted { personal, .. } => Some(personal.values()[0]),
        _ => None,
    });
    personal.unwrap()
}

#[test]
fn missing_blobs_of_an_adopted_outcome_are_fetched_again_and_rounds_continue() {
    // The number of rounds whose blobs are kept, and the newest round with all its blobs.
    let cases: [(&str, u32, u64, BlobSelection); 5] = [
        ("document", 1, 0, |_, adopted| vec![Hash(adopted.outcome)]),
        ("document", 2, 2, |_, adopted| vec![Hash(adopted.outcome)]),
        ("models", 2, 2, models),
        ("both", 1, 0, |rig, adopted| {
            [models(rig, adopted), vec![Hash(adopted.outcome)]].concat()
        }),
        ("all", 2, 0, |rig, adopted| {
            let mut all = rig.blobs.hashes();
            all.retain(|hash| hash.0 != adopted.personal);
            all
        }),
    ];
    for (name, keep, standing, which) in cases {
        let rigs = four(which, keep, false);
        let round = 3;
        assert!(
            reported(&rigs[2]).contains(&Missing::Outcome { round, standing }),
            "{name}: {:?}",
            reported(&rigs[2])
        );
        let here = Notice::Recovered { round };
        let notices = rigs[2].notices.borrow();
        let count = notices.iter().filter(|(_, notice)| *notice == here).count();
        drop(notices);
        assert_eq!(count, 1, "{name}");
        // The personal state counts all trainings, because it was never lost.
        assert_eq!(whole(&rigs), ROUNDS as f32, "{name}");
    }
}

#[test]
fn a_silo_that_was_away_long_skips_outcomes_that_no_member_keeps() {
    let rigs = four(|_, adopted| vec![Hash(adopted.outcome)], 1, true);
    let third: Vec<_> = rigs[2].adopted().iter().map(|(round, ..)| *round).collect();
    assert_eq!(third[..3], [1, 2, 3]);
    assert!(!third[3..].contains(&4), "{third:?}");
    whole(&rigs);
}

#[test]
fn missing_models_of_a_sheet_stop_no_silo() {
    let entries: BlobSelection = |rig, adopted| {
        let models = models(rig, adopted);
        let kept = |hash: &Hash| !models.contains(hash) && hash.0 != adopted.outcome;
        adopted
            .blobs
            .iter()
            .copied()
            .map(Hash)
            .filter(kept)
            .collect()
    };
    let rigs = four(entries, 2, false);
    assert_eq!(whole(&rigs), ROUNDS as f32);
}

#[test]
fn a_missing_personal_state_starts_from_the_initial_one_with_a_notice() {
    let rigs = four(|_, adopted| vec![Hash(adopted.personal)], 1, false);
    assert!(reported(&rigs[2]).contains(&Missing::Personal { round: 3 }));
    // It counts trainings. Those before the loss are gone, and the one that was under way counted
    // from them if it had ended.
    let personal = whole(&rigs);
    assert!(
        personal == ROUNDS as f32 || personal == ROUNDS as f32 - 3.0,
        "{personal}"
    );
}

#[test]
fn a_journal_lost_by_a_used_key_stays_lost_after_a_restart() {
    virtually(async {
        let (hub, checks, epoch) = (Hub::default(), Checks::new(false), epoch(4, 60));
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let mut rigs: Vec<_> = (0..4).map(rig).collect();
        let live = |rig: &Rig, i: u16| {
            let (environment, ends) = rig.environment();
            hub.join(MemberIndex(i), ends);
            spawn(config(&epoch, i), environment).unwrap()
        };
        let mut silos: Vec<_> = (0..4).map(|i| live(&rigs[usize::from(i)], i)).collect();
        while rigs[2].adopted().len() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        silos[2].kill();
        silos[2].stopped().await;
        rigs[2] = rig(2);
        silos[2] = live(&rigs[2], 2);
        let used = Notice::Protocol(Report::KeyUsedBefore);
        let end = Instant::now() + LONG;
        while !rigs[2]
            .notices
            .borrow()
            .iter()
            .any(|(_, notice)| *notice == used)
        {
            assert!(Instant::now() < end);
            sleep(Duration::from_millis(10)).await;
        }
        silos[2].kill();
        silos[2].stopped().await;
        let records = rigs[2].journal.records();
        assert_eq!(records[0], JournalRecord::Begun);
        assert!(records.contains(&JournalRecord::Lost));
        let (mut journal, blobs) = (rigs[2].journal.clone(), rigs[2].blobs.clone());
        let restored = crate::restore::restore(&config(&epoch, 2), &mut journal, &*blobs);
        assert!(matches!(restored.unwrap().start, Start::Lost));
    });
}

#[test]
fn a_new_silo_that_has_not_acted_is_new_again_after_a_restart() {
    let rigs = four(|_, adopted| vec![Hash(adopted.outcome)], 1, false);
    let learned = |record: &JournalRecord| {
        matches!(
            record,
            JournalRecord::Adopted(_)
                | JournalRecord::Protocol(
                    protocol::Record::Final { .. } | protocol::Record::Applied { .. }
                )
        )
    };
    let mut journal = MemoryJournal::default();
    let records = rigs[0].journal.records().into_iter().filter(learned);
    let records = [JournalRecord::Begun].into_iter().chain(records).collect();
    journal.commit(records).unwrap();
    let restored = |rounds, journal: &mut MemoryJournal| {
        let config = config(&epoch(4, rounds), 0);
        let restored = crate::restore::restore(&config, journal, &*rigs[0].blobs);
        restored.unwrap().start
    };
    // With all rounds done there is nothing to sign, and it keeps what it has.
    assert!(matches!(restored(ROUNDS, &mut journal), Start::Kept(_)));
    let mut journal = MemoryJournal::default();
    let records = rigs[0].journal.records().into_iter().filter(learned);
    journal
        .commit([JournalRecord::Begun].into_iter().chain(records).collect())
        .unwrap();
    assert!(matches!(restored(ROUNDS + 1, &mut journal), Start::New));
    assert_eq!(journal.records(), [JournalRecord::Begun]);
}
