//! Tests of whole silos.

use std::time::Duration;

use protocol::member::Start;
use protocol::net::{Command, Event};
use protocol::{Hash, MemberIndex, Report};
use tokio::time::sleep;

use super::LONG;
use crate::environment::{Blobs, Journal};
use crate::restore::restore;
use crate::testing::*;
use crate::{Checks, JournalRecord, Notice, SpawnError, Stopped, genesis_outcome, spawn};

/// A federation of one, driven to its end.
fn alone(rounds: u64) -> Rig {
    virtually(async {
        let (rig, hub, epoch) = (
            Rig::new(Checks::new(false)),
            Hub::default(),
            epoch(1, rounds),
        );
        let (environment, ends) = rig.environment();
        hub.join(MemberIndex(0), ends);
        let mut silo = spawn(config(&epoch, 0), environment).unwrap();
        sleep(LONG).await;
        silo.stop();
        assert_eq!(silo.stopped().await, Stopped::Asked);
        rig
    })
}

#[test]
fn a_federation_of_one_completes_its_rounds() {
    let rig = alone(2);
    // Its optimum is where it starts.
    let adopted: Vec<_> = rig
        .adopted()
        .into_iter()
        .map(|(round, _, w)| (round, w))
        .collect();
    assert_eq!(adopted, [(1, 0.0), (2, 0.0)]);
    let complete = Notice::Protocol(Report::Complete { last: 2 });
    assert!(
        rig.notices
            .borrow()
            .iter()
            .any(|(_, notice)| *notice == complete)
    );
    assert_eq!(
        rig.notices.borrow().last().unwrap().1,
        Notice::Stopped(Stopped::Asked)
    );
}

#[test]
fn an_outcome_is_adopted_in_one_transaction_and_old_blobs_are_removed() {
    let rig = alone(2);
    let transactions = rig.journal.transactions();
    let adopted: Vec<_> = transactions
        .iter()
        .filter_map(|transaction| match &transaction[..] {
            [
                JournalRecord::Adopted(adopted),
                JournalRecord::Protocol(protocol::Record::Applied { round }),
            ] => {
                assert_eq!(adopted.round, *round);
                Some(adopted.clone())
            }
            other => {
                assert!(
                    !other
                        .iter()
                        .any(|record| matches!(record, JournalRecord::Adopted(_))),
                    "{other:?}"
                );
                None
            }
        })
        .collect();
    assert_eq!(
        adopted
            .iter()
            .map(|adopted| adopted.round)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    // keep_rounds = 1: the blobs of the last round and the personal state are all that is left.
    let last = adopted.last().unwrap();
    let mut kept: Vec<_> = last.blobs.iter().copied().map(Hash).collect();
    kept.push(Hash(last.personal));
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(rig.blobs.hashes(), kept);
    // Two trainings, both adopted.
    assert_eq!(Hash(last.personal), Hash(trained(2.0).hash()));
}

#[test]
fn after_a_kill_no_effect_runs() {
    virtually(async {
        let (rig, hub, epoch) = (Rig::new(Checks::new(false)), Hub::default(), epoch(1, 2));
        let (environment, ends) = rig.environment();
        hub.join(MemberIndex(0), ends);
        let mut silo = spawn(config(&epoch, 0), environment).unwrap();
        sleep(Duration::from_millis(150)).await;
        let before = (
            hub.frames(),
            rig.journal.records(),
            rig.notices.borrow().clone(),
        );
        assert!(!before.2.is_empty());
        silo.kill();
        assert_eq!(silo.stopped().await, Stopped::Killed);
        sleep(LONG).await;
        assert_eq!(
            (
                hub.frames(),
                rig.journal.records(),
                rig.notices.borrow().clone()
            ),
            before
        );
    });
}

#[test]
fn a_silo_stops_when_its_network_ends() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(1, 2));
        let (environment, ends) = rig.environment();
        let mut silo = spawn(config(&epoch, 0), environment).unwrap();
        drop(ends);
        assert_eq!(silo.stopped().await, Stopped::Network);
    });
}

#[test]
fn a_silo_with_another_initial_state_strategy_or_key_does_not_start() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(2, 1));
        let mut other_seed = config(&epoch, 0);
        other_seed.initial_seed = 7;
        let ours = genesis_outcome(&*strategy(), &learner(0.0), 7).0;
        let error = spawn(other_seed, rig.environment().0).err().unwrap();
        assert_eq!(
            error,
            SpawnError::Start {
                agreed: epoch.protocol.start,
                ours
            }
        );
        let mut other_key = config(&epoch, 0);
        other_key.member.key = key(1);
        let error = spawn(other_key, rig.environment().0).err().unwrap();
        assert_eq!(error, SpawnError::Identity(MemberIndex(0)));
    });
}

#[test]
fn a_model_larger_than_the_charter_allows_is_named_at_once() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(1, 1));
        let mut small = (*epoch).clone();
        small.protocol.blob_limit = 8;
        let error = spawn(config(&small.into(), 0), rig.environment().0).err();
        let size = model(0.0).document().len() as u64;
        assert_eq!(error, Some(SpawnError::Limit { size, limit: 8 }));
    });
}

#[test]
fn spawn_outside_an_actix_system_is_an_error() {
    let rig = Rig::new(Checks::new(false));
    let error = spawn(config(&epoch(1, 1), 0), rig.environment().0).err();
    assert_eq!(error, Some(SpawnError::NoSystem));
}

#[test]
fn without_other_members_a_journal_without_its_blobs_is_refused() {
    let rig = alone(1);
    virtually(async {
        let empty = Rig {
            blobs: Default::default(),
            ..rig
        };
        let error = spawn(config(&epoch(1, 1), 0), empty.environment().0)
            .err()
            .unwrap();
        assert!(
            matches!(error, SpawnError::Missing { round: 1, .. }),
            "{error}"
        );
        assert!(error.to_string().contains("no other member"), "{error}");
    });
}

#[test]
fn the_own_contribution_is_served_to_the_lead_alone_until_the_bundle_is_out() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let lead = epoch.lead(1);
        let mut members = epoch.roster.members().filter(|&member| member != lead);
        let (me, other) = (members.next().unwrap(), members.next().unwrap());
        let (environment, mut ends) = rig.environment();
        let silo = spawn(config(&epoch, me.0), environment).unwrap();
        sleep(Duration::from_millis(500)).await;
        // It has trained, and its model is among its blobs.
        let trained = model(f32::from(me.0) / 2.0);
        let hash = Hash(trained.hash());
        assert!(rig.blobs.get(&hash).is_some());
        let asked = [(lead, hash), (other, hash), (lead, Hash::of(b"nothing"))];
        for (ticket, (by, hash)) in asked.into_iter().enumerate() {
            let ticket = ticket as u64;
            ends.events
                .send(Event::Wanted {
                    by,
                    blobs: vec![hash],
                    ticket,
                })
                .await
                .unwrap();
        }
        sleep(Duration::from_millis(1)).await;
        let mut served = Vec::new();
        while let Ok(command) = ends.commands.try_recv() {
            if let Command::Serve { ticket, blobs } = command {
                served.push((ticket, blobs));
            }
        }
        assert_eq!(
            served,
            [
                (0, vec![Some(trained.document())]),
                (1, vec![None]),
                (2, vec![None])
            ]
        );
        assert_eq!((silo.counts().served, silo.counts().unserved), (1, 2));
    });
}

#[test]
fn commands_that_do_not_fit_are_lost_and_reported() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let (environment, mut ends) = rig.environment();
        // The network reads no commands for a long time.
        let silo = spawn(config(&epoch, 0), environment).unwrap();
        sleep(LONG).await;
        let lost = silo.counts().lost;
        assert!(lost > 0);
        let said = |(_, notice): &(_, Notice)| match notice {
            Notice::Lost { messages } => *messages,
            _ => 0,
        };
        assert_eq!(rig.notices.borrow().iter().map(said).sum::<u64>(), lost);
        let mut waiting = 0;
        while ends.commands.try_recv().is_ok() {
            waiting += 1;
        }
        assert_eq!(waiting, ends.commands.max_capacity());
        let counts = silo.counts();
        assert_eq!(counts.sent + counts.published, waiting as u64);
    });
}

#[test]
fn frames_that_are_no_messages_are_counted_and_dropped() {
    virtually(async {
        let (rig, epoch) = (Rig::new(Checks::new(false)), epoch(4, 1));
        let (environment, ends) = rig.environment();
        let silo = spawn(config(&epoch, 0), environment).unwrap();
        let from = MemberIndex(3);
        ends.events
            .send(Event::Received {
                from,
                frame: b"nonsense"[..].into(),
                ticket: None,
            })
            .await
            .unwrap();
        sleep(Duration::from_millis(1)).await;
        assert_eq!((silo.counts().received, silo.counts().unopened), (1, 1));
        let notices = rig.notices.borrow();
        let unopened = |notice: &Notice| {
            matches!(
                notice,
                Notice::Unopened {
                    from: MemberIndex(3),
                    ..
                }
            )
        };
        assert!(notices.iter().any(|(_, notice)| unopened(notice)));
    });
}

#[test]
fn a_lost_journal_stays_lost_until_the_silo_acts_again() {
    let vote = JournalRecord::Protocol({
        let votes = alone(1).journal.records();
        let vote = |record| match record {
            JournalRecord::Protocol(record @ protocol::Record::Vote(_)) => Some(record),
            _ => None,
        };
        votes.into_iter().find_map(vote).unwrap()
    });
    let mut config = config(&epoch(1, 1), 0);
    let (mut journal, blobs) = (MemoryJournal::default(), MemoryBlobs::default());
    let applied = JournalRecord::Protocol(protocol::Record::Applied { round: 1 });
    let start =
        |config: &_, journal: &mut MemoryJournal| restore(config, journal, &blobs).unwrap().start;
    assert!(matches!(start(&config, &mut journal), Start::New));
    config.journal_lost = true;
    assert!(matches!(start(&config, &mut journal), Start::Lost));
    // Further restarts need no flag, and a second flag changes nothing.
    config.journal_lost = false;
    assert!(matches!(start(&config, &mut journal), Start::Lost));
    journal.commit(vec![applied.clone()]).unwrap();
    assert!(matches!(start(&config, &mut journal), Start::Lost));
    assert_eq!(
        journal.records(),
        [JournalRecord::Lost],
        "declared lost again"
    );
    // A vote shows that it was safe: records since then are kept.
    journal.commit(vec![applied.clone(), vote.clone()]).unwrap();
    let Start::Kept(records) = start(&config, &mut journal) else {
        panic!()
    };
    let records: Vec<_> = records.into_iter().map(JournalRecord::Protocol).collect();
    assert_eq!(records, [applied, vote]);
}

#[test]
fn a_restart_drops_superseded_records_and_restores_the_same_state() {
    let (rig, config) = (alone(3), config(&epoch(1, 3), 0));
    let mut journal = rig.journal.clone();
    let before = journal.records();
    let restored = |journal: &mut MemoryJournal| {
        let restored = restore(&config, journal, &*rig.blobs).unwrap();
        let Start::Kept(records) = restored.start else {
            panic!()
        };
        (records, restored.base.outcome, restored.kept)
    };
    let first = restored(&mut journal);
    let after = journal.records();
    assert_eq!(restored(&mut journal), first);
    assert_eq!(journal.records(), after);
    // All rounds are final: what is left is the chain and where the silo stands on it.
    let count = |is: fn(&JournalRecord) -> bool| after.iter().filter(|record| is(record)).count();
    assert_eq!(
        count(|record| matches!(
            record,
            JournalRecord::Protocol(protocol::Record::Final { .. })
        )),
        before
            .iter()
            .filter(|record| matches!(
                record,
                JournalRecord::Protocol(protocol::Record::Final { .. })
            ))
            .count()
    );
    assert_eq!(
        count(|record| matches!(record, JournalRecord::Adopted(_))),
        1
    );
    let contributed = |record: &JournalRecord| {
        matches!(
            record,
            JournalRecord::Protocol(protocol::Record::Contributed(_))
        )
    };
    assert_eq!(count(contributed), 0);
    assert!(after.len() * 2 < before.len());
}

#[test]
fn an_adoption_without_a_final_block_is_refused() {
    let (rig, config) = (alone(1), config(&epoch(1, 1), 0));
    let mut records = rig.journal.records();
    for record in &mut records {
        if let JournalRecord::Adopted(adopted) = record {
            adopted.block = Hash::of(b"another").0;
        }
    }
    let mut journal = MemoryJournal::default();
    journal.commit(records).unwrap();
    let refused = restore(&config, &mut journal, &*rig.blobs).err();
    assert!(matches!(
        refused,
        Some(SpawnError::Damaged { round: 1, .. })
    ));
}
