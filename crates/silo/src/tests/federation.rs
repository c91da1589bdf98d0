//! Tests of federations of four silos.

use std::time::Duration;

use protocol::envelope::{self, Known, Opened};
use protocol::identity::Strict;
use protocol::message::Body;
use protocol::{Epoch, Hash, MemberIndex};
use tokio::time::{Instant, sleep};

use super::LONG;
use crate::testing::*;
use crate::{Blobs, Checks, JournalRecord, Notice, Stopped, Totals, spawn};

/// The fault of the third of four silos.
enum Third {
    Lives,
    /// The silo is killed in the middle of a round and restarts.
    IsKilled,
    /// The disk of the silo is full after this number of transactions.
    Has(usize),
    /// The commit of the silo panics after this number of transactions.
    Panics(usize),
}

/// Four silos and three rounds. Returns their rigs, the hub with all sent frames, and the checks done.
fn four(cache: bool, third: Third) -> (Vec<Rig>, Hub, Totals) {
    virtually(async {
        let (epoch, hub, checks) = (epoch(4, 3), Hub::default(), Checks::new(cache));
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
        match third {
            Third::Has(room) => rigs[2].journal.fail_after(room),
            Third::Panics(room) => rigs[2].journal.panic_after(room),
            Third::Lives | Third::IsKilled => {}
        }
        let mut silos: Vec<_> = (0..4).map(live).collect();
        if let Third::IsKilled = third {
            sleep(Duration::from_millis(350)).await;
            silos[2].kill();
            assert_eq!(silos[2].stopped().await, Stopped::Killed);
            assert!(!rigs[2].journal.records().is_empty());
            silos[2] = live(2);
        }
        sleep(LONG).await;
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        (rigs.clone(), hub.clone(), checks.totals())
    })
}

/// Checks that every vote, proposal and contribution that the third silo sent is in its journal.
fn is_durable(epoch: &Epoch, rig: &Rig, hub: &Hub, room: usize) -> usize {
    let promised = |record| match record {
        JournalRecord::Protocol(
            protocol::Record::Vote(message)
            | protocol::Record::Proposed(message)
            | protocol::Record::Contributed(message),
        ) => Some(message),
        _ => None,
    };
    let records = rig.journal.records().into_iter();
    let durable: Vec<_> = records.filter_map(promised).collect();
    let mut promises = 0;
    for (from, frame) in hub.frames() {
        let opened = envelope::open(epoch, &Strict, &Known::default(), &frame).unwrap();
        let Opened::Message(message) = opened else {
            continue;
        };
        let promise = matches!(
            message.body,
            Body::Contribution(_)
                | Body::Proposal(_)
                | Body::Notarize { .. }
                | Body::Finalize { .. }
                | Body::Nullify
        );
        if promise && from == MemberIndex(2) {
            let said = &message.body;
            assert!(durable.contains(&message), "room {room}: {said:?}");
            promises += 1;
        }
    }
    promises
}

#[test]
fn every_sent_promise_is_durable_and_a_full_disk_stops_the_silo() {
    let epoch = epoch(4, 3);
    let (whole, _, _) = four(true, Third::Lives);
    let commits = whole[2].journal.transactions().len();
    assert!(commits > 12);
    for room in 0..=commits {
        let (rigs, hub, _) = four(true, Third::Has(room));
        let rig = &rigs[2];
        assert_eq!(
            rig.journal.transactions()[..],
            whole[2].journal.transactions()[..room]
        );
        let promises = is_durable(&epoch, rig, &hub, room);
        // A lead's messages to itself are durable and not sent; enough others are sent.
        assert!(promises > 0 || room < commits, "room {room}");
        let notices = rig.notices.borrow();
        let full = Stopped::Journal(full());
        let expected = if room < commits { full } else { Stopped::Asked };
        assert_eq!(notices.last().unwrap().1, Notice::Stopped(expected));
        let adopted = |record: &JournalRecord| matches!(record, JournalRecord::Adopted(_));
        let durable = rig
            .journal
            .records()
            .iter()
            .filter(|record| adopted(record))
            .count();
        assert_eq!(rig.adopted().len(), durable);
    }
}

#[test]
fn no_effect_of_a_step_runs_before_its_records_are_durable() {
    // A panic during the write leaves the effects that ran before it.
    let epoch = epoch(4, 3);
    let (whole, _, _) = four(true, Third::Lives);
    let commits = whole[2].journal.transactions().len();
    for room in 0..commits {
        let (rigs, hub, _) = four(true, Third::Panics(room));
        let transactions = rigs[2].journal.transactions();
        assert_eq!(
            transactions[..],
            whole[2].journal.transactions()[..room],
            "room {room}"
        );
        is_durable(&epoch, &rigs[2], &hub, room);
    }
}

#[test]
fn four_silos_learn_the_same_with_and_without_the_cache() {
    let (with, hub, shared) = four(true, Third::Lives);
    let (without, again, own) = four(false, Third::Lives);
    // Every round moves half the way to the mean of the optima, 1.5.
    for rig in with.iter().chain(&without) {
        let weights: Vec<_> = rig.adopted().iter().map(|(_, _, weight)| *weight).collect();
        assert_eq!(weights, [0.75, 1.125, 1.3125]);
        assert_eq!(rig.adopted(), with[0].adopted());
    }
    assert_eq!(hub.frames(), again.frames());
    for (one, other) in with.iter().zip(&without) {
        assert_eq!(*one.notices.borrow(), *other.notices.borrow());
    }
    // With the cache one check and one outcome a round, otherwise one per silo. A lead proposes what it
    // has computed, so it settles but need not check.
    assert_eq!((shared.cache, own.cache), (true, false));
    assert_eq!((shared.settles, own.settles), (3, 12));
    assert_eq!(shared.checks, 3);
    assert!(own.checks >= 9, "{own:?}");
    assert!(shared.signatures * 2 < own.signatures, "{shared:?} {own:?}");
    assert!(shared.bytes_hashed < own.bytes_hashed, "{shared:?} {own:?}");
}

#[test]
fn a_killed_silo_continues_from_its_journal() {
    let (rigs, _, _) = four(false, Third::IsKilled);
    for rig in &rigs {
        let rounds: Vec<_> = rig.adopted().iter().map(|(round, _, _)| *round).collect();
        assert_eq!(rounds, [1, 2, 3]);
        // Three trainings, all adopted, also the one before the kill.
        let personal = rig
            .notices
            .borrow()
            .iter()
            .rev()
            .find_map(|(_, notice)| match notice {
                Notice::Adopted { personal, .. } => Some(personal.clone()),
                _ => None,
            });
        assert_eq!(personal, Some(trained(3.0)));
    }
    assert!(rigs.iter().all(|rig| rig.adopted() == rigs[0].adopted()));
}

#[test]
fn what_a_silo_computes_is_kept_and_used_where_it_was_laid_down() {
    let (rigs, ..) = four(false, Third::Lives);
    let rig = &rigs[0];
    let notices = rig.notices.borrow();
    let mut rounds = 0;
    for (_, notice) in &*notices {
        if let Notice::Adopted { model, state, .. } = notice {
            let (model, first) = (model.document(), state.models[0].document());
            assert!(rig.blobs.is_laid_down(&model) && rig.blobs.is_laid_down(&first));
            rounds += 1;
        }
    }
    assert_eq!(rounds, 3);
    // The models of the last round that are kept: three were fetched, its own was computed.
    let trained = rig
        .journal
        .records()
        .into_iter()
        .filter_map(|record| match record {
            JournalRecord::Trained { blob, .. } => Some(Hash(blob)),
            _ => None,
        });
    let own = trained.last().and_then(|blob| rig.blobs.get(&blob));
    assert!(own.is_some_and(|own| rig.blobs.is_laid_down(&own)));
}
