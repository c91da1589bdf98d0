//! Blobs that a good journal names and that are gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::member::Start;
use protocol::{Hash, MemberIndex, Report};
use tokio::time::{Instant, sleep};

use super::LONG;
use crate::outcome::Document;
use crate::surroundings::{Adopted, Blobs, Journal};
use crate::testing::*;
use crate::{Checks, Gone, Notice, Record, spawn};

const ROUNDS: u64 = 6;

/// Which blobs of a silo to take away, given what it adopted last.
type Which = fn(&Rig, &Adopted) -> Vec<Hash>;

fn last(rig: &Rig) -> Adopted {
    let records = rig.journal.records().into_iter().rev();
    let adopted = |record| match record {
        Record::Adopted(adopted) => Some(adopted),
        _ => None,
    };
    records.into_iter().find_map(adopted).unwrap()
}

fn models(rig: &Rig, adopted: &Adopted) -> Vec<Hash> {
    let document = rig.blobs.get(&Hash(adopted.outcome)).unwrap();
    Document::read(&document).unwrap().all_models().collect()
}

/// Four silos; the third is killed after three rounds, loses blobs, and comes back, at once or
/// when the others are two rounds further.
fn four(which: Which, keep: u32, late: bool) -> Vec<Rig> {
    virtually(async {
        let (hub, checks) = (Hub::default(), Checks::new(false));
        let mut epoch = (*epoch(4, ROUNDS)).clone();
        epoch.charter.keep = keep;
        let epoch = Arc::new(epoch);
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let rigs: Vec<_> = (0..4).map(rig).collect();
        let live = |i: u16| {
            let (surroundings, ends) = rigs[usize::from(i)].surroundings();
            hub.join(MemberIndex(i), ends);
            spawn(config(&epoch, i), surroundings).unwrap()
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

/// What the third was told of what is gone.
fn told(rig: &Rig) -> Vec<Gone> {
    let told = rig.told.borrow();
    let gone = told.iter().filter_map(|(_, notice)| match notice {
        Notice::Gone(gone) => Some(*gone),
        _ => None,
    });
    gone.collect()
}

/// Everybody came to the end with the same outcomes, and the third adopted and signed nothing twice.
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
            Record::Adopted(adopted) => assert!(blocks.insert(adopted.block), "adopted twice"),
            Record::Protocol(protocol::Record::Contributed(message)) => {
                assert!(contributed.insert(message.round), "contributed twice");
            }
            Record::Protocol(protocol::Record::Vote(message)) => {
                let kind = format!("{:?}", message.body.kind());
                assert!(voted.insert((message.view, kind)), "voted twice");
            }
            _ => {}
        }
    }
    let told = third.told.borrow();
    let personal = told.iter().rev().find_map(|(_, notice)| match notice {
        Notice::Adopted { personal, .. } => Some(personal.values()[0]),
        _ => None,
    });
    personal.unwrap()
}

#[test]
fn what_is_gone_of_an_adopted_outcome_is_fetched_again_and_the_federation_goes_on() {
    // How many rounds' blobs are kept, and the round that is still whole then.
    let cases: [(&str, u32, u64, Which); 5] = [
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
            told(&rigs[2]).contains(&Gone::Outcome { round, standing }),
            "{name}: {:?}",
            told(&rigs[2])
        );
        let here = Notice::Whole { round };
        let told = rigs[2].told.borrow();
        let count = told.iter().filter(|(_, notice)| *notice == here).count();
        drop(told);
        assert_eq!(count, 1, "{name}");
        // Every training counted: the personal state was here all the time.
        assert_eq!(whole(&rigs), ROUNDS as f32, "{name}");
    }
}

#[test]
fn a_silo_that_was_away_long_passes_over_what_nobody_keeps_any_more() {
    let rigs = four(|_, adopted| vec![Hash(adopted.outcome)], 1, true);
    let third: Vec<_> = rigs[2].adopted().iter().map(|(round, ..)| *round).collect();
    assert_eq!(third[..3], [1, 2, 3]);
    assert!(!third[3..].contains(&4), "{third:?}");
    whole(&rigs);
}

#[test]
fn entries_that_are_gone_keep_nobody_from_going_on() {
    let entries: Which = |rig, adopted| {
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
fn a_personal_state_that_is_gone_begins_anew_and_that_is_said() {
    let rigs = four(|_, adopted| vec![Hash(adopted.personal)], 1, false);
    assert!(told(&rigs[2]).contains(&Gone::Personal { round: 3 }));
    // It counts trainings. Those before the loss are gone, and the one that was under way counted
    // from them if it had ended.
    let personal = whole(&rigs);
    assert!(
        personal == ROUNDS as f32 || personal == ROUNDS as f32 - 3.0,
        "{personal}"
    );
}

#[test]
fn a_used_key_without_its_journal_is_lost_for_the_next_life_too() {
    virtually(async {
        let (hub, checks, epoch) = (Hub::default(), Checks::new(false), epoch(4, 60));
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let mut rigs: Vec<_> = (0..4).map(rig).collect();
        let live = |rig: &Rig, i: u16| {
            let (surroundings, ends) = rig.surroundings();
            hub.join(MemberIndex(i), ends);
            spawn(config(&epoch, i), surroundings).unwrap()
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
            .told
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
        assert_eq!(records[0], Record::Begun);
        assert!(records.contains(&Record::Lost));
        let (mut journal, blobs) = (rigs[2].journal.clone(), rigs[2].blobs.clone());
        let restored = crate::restore::restore(&config(&epoch, 2), &mut journal, &*blobs);
        assert!(matches!(restored.unwrap().start, Start::Lost));
    });
}

#[test]
fn a_silo_that_came_as_new_and_has_not_acted_comes_as_new_again() {
    let rigs = four(|_, adopted| vec![Hash(adopted.outcome)], 1, false);
    let learned = |record: &Record| {
        matches!(
            record,
            Record::Adopted(_)
                | Record::Protocol(
                    protocol::Record::Final { .. } | protocol::Record::Applied { .. }
                )
        )
    };
    let mut journal = MemoryJournal::default();
    let records = rigs[0].journal.records().into_iter().filter(learned);
    let records = [Record::Begun].into_iter().chain(records).collect();
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
        .commit([Record::Begun].into_iter().chain(records).collect())
        .unwrap();
    assert!(matches!(restored(ROUNDS + 1, &mut journal), Start::New));
    assert_eq!(journal.records(), [Record::Begun]);
}
