//! A federation whose agreement changes: its silos end, and those of the next epoch go on.

use std::sync::Arc;

use protocol::message::Amendment;
use protocol::roster::Silo;
use protocol::{Epoch, Epochs, MemberIndex};
use tokio::time::{Instant, sleep};

use super::LONG;
use crate::testing::*;
use crate::{Checks, Journal, JournalRecord, SiloConfig, SiloHandle, Stopped, spawn};

/// The epochs that a journal has reached.
pub(super) fn epochs(first: &Arc<Epoch>, rig: &Rig) -> Epochs {
    let protocol = |record| match record {
        JournalRecord::Protocol(record) => Some(record),
        _ => None,
    };
    let records = rig.journal.records().into_iter().filter_map(protocol);
    Epochs::replay(first.clone(), records).unwrap()
}

/// A silo in the epoch that its journal has reached.
pub(super) fn live(first: &Arc<Epoch>, rig: &Rig, hub: &Hub, i: u16) -> SiloHandle {
    let epochs = epochs(first, rig);
    let (environment, ends) = rig.environment();
    hub.join(MemberIndex(i), ends);
    let config = SiloConfig {
        former: epochs.answers(),
        past: epochs.former.iter().map(|(over, _)| over.clone()).collect(),
        ..config(&epochs.now, i)
    };
    spawn(config, environment).unwrap()
}

/// The amendment that admits one more member, until the round `rounds`.
pub(super) fn with_one_more(epoch: &Epoch, silo: Silo, rounds: u64) -> Amendment {
    let mut silos = epoch.roster.silos().to_vec();
    let before = silos.len();
    silos.push(silo);
    let mut protocol = epoch.protocol.for_members(before, before + 1);
    protocol.rounds = rounds;
    Amendment {
        format: epoch.format,
        silos,
        protocol,
        text: b"text".to_vec(),
        stolen: Vec::new(),
    }
}

#[test]
fn a_member_joins_and_rounds_go_on_after_the_last() {
    virtually(async {
        let (first, hub, checks) = (epoch(4, 2), Hub::default(), Checks::new(true));
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let rigs: Vec<_> = (0..5).map(rig).collect();
        let start = |i: u16| live(&first, &rigs[usize::from(i)], &hub, i);
        let mut silos: Vec<_> = (0..4).map(start).collect();
        sleep(LONG).await;
        let fifth = Silo {
            name: "silo 4".into(),
            key: key(4).public(),
            rows: None,
        };
        let amendment = with_one_more(&first, fifth, 4);
        // Three of four are a quorum; the last learns of it from the block.
        for silo in &silos[..3] {
            silo.approve(amendment.clone(), 1);
        }
        for silo in &mut silos {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let reached: Vec<_> = rigs[..4].iter().map(|rig| epochs(&first, rig)).collect();
        assert!(
            reached
                .iter()
                .all(|epochs| epochs.now.id == reached[0].now.id)
        );
        let now = &reached[0].now;
        assert_eq!((now.number, now.began.round, now.roster.len()), (1, 2, 5));
        // The newcomer has the proof that the first epoch is over, and nothing else.
        let passage = &reached[0].former[0].1;
        let record = protocol::Record::Final {
            blocks: passage.blocks.clone(),
            proof: passage.proof.clone(),
        };
        let mut journal = rigs[4].journal.clone();
        journal
            .commit(vec![JournalRecord::Protocol(record)])
            .unwrap();
        let mut silos: Vec<_> = (0..5).map(start).collect();
        sleep(LONG).await;
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        let rounds =
            |rig: &Rig| -> Vec<u64> { rig.adopted().iter().map(|(round, ..)| *round).collect() };
        for rig in &rigs[..4] {
            assert_eq!(rounds(rig), [1, 2, 3, 4]);
            assert_eq!(rig.adopted()[2..], rigs[0].adopted()[2..]);
        }
        assert_eq!(rounds(&rigs[4]), [2, 3, 4]);
        assert_eq!(rigs[4].adopted()[..], rigs[0].adopted()[1..]);
        // Every round moves half the way to the mean of the optima: 1.5 of four, then 2 of five.
        let weights: Vec<_> = rigs[0]
            .adopted()
            .iter()
            .map(|(.., weight)| *weight)
            .collect();
        assert_eq!(weights, [0.75, 1.125, 1.5625, 1.78125]);
        // Whoever starts again is in the second epoch, and has nothing to adopt.
        for i in 0..5 {
            let mut silo = start(i);
            sleep(LONG).await;
            silo.stop();
            assert_eq!(silo.stopped().await, Stopped::Asked);
            assert_eq!(rounds(&rigs[usize::from(i)]).last(), Some(&4));
        }
        assert_eq!(rounds(&rigs[0]), [1, 2, 3, 4]);
    });
}

#[test]
fn a_silo_that_was_away_is_shown_the_way_to_the_present_epoch() {
    virtually(async {
        let (first, hub, checks) = (epoch(4, 3), Hub::default(), Checks::new(true));
        let origin = Instant::now();
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        let rigs: Vec<_> = (0..4).map(rig).collect();
        let start = |i: u16| live(&first, &rigs[usize::from(i)], &hub, i);
        // The last one is away from the start.
        let mut silos: Vec<_> = (0..3).map(start).collect();
        let mut protocol = first.protocol.clone();
        protocol.rounds = 4;
        let amendment = Amendment {
            format: first.format,
            silos: first.roster.silos().to_vec(),
            protocol,
            text: Vec::new(),
            stolen: Vec::new(),
        };
        for silo in &silos {
            silo.approve(amendment.clone(), 1);
        }
        for silo in &mut silos {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let mut silos: Vec<_> = (0..3).map(start).collect();
        let mut late = start(3);
        assert_eq!(late.stopped().await, Stopped::EpochOver);
        silos.push(start(3));
        sleep(LONG).await;
        for silo in &mut silos {
            silo.stop();
            silo.stopped().await;
        }
        for rig in &rigs {
            assert_eq!(rig.adopted().last(), rigs[0].adopted().last());
            assert_eq!(rig.adopted().last().map(|(round, ..)| *round), Some(4));
        }
    });
}
