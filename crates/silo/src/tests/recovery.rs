//! Federations in which a quorum is gone for good: those that remain go on, and the others, when they
//! come back, are told and do no harm.

use std::sync::Arc;
use std::time::Duration;

use protocol::{Epoch, MemberIndex, Report};
use tokio::time::{Instant, sleep};

use super::LONG;
use super::epochs::{epochs, live, with_one_more};
use crate::testing::*;
use crate::{Checks, Journal, JournalRecord, Notice, SiloConfig, SiloHandle, Stopped, spawn};

/// A federation in virtual time.
struct RecoveringSilos {
    first: Arc<Epoch>,
    hub: Hub,
    rigs: Vec<Rig>,
}

impl RecoveringSilos {
    fn new(n: u16, rounds: u64) -> Self {
        let (origin, checks) = (Instant::now(), Checks::new(true));
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        Self {
            first: epoch(n, rounds),
            hub: Hub::default(),
            rigs: (0..n).map(rig).collect(),
        }
    }

    /// A silo in the epoch that its journal has reached.
    fn live(&self, i: u16) -> SiloHandle {
        live(&self.first, &self.rigs[usize::from(i)], &self.hub, i)
    }

    /// A silo in the epoch that its journal has reached, with a changed configuration.
    fn live_with(&self, i: u16, change: impl FnOnce(&mut SiloConfig)) -> SiloHandle {
        let rig = &self.rigs[usize::from(i)];
        let epochs = epochs(&self.first, rig);
        let (environment, ends) = rig.environment();
        self.hub.join(MemberIndex(i), ends);
        let mut config = SiloConfig {
            former: epochs.answers(),
            past: epochs.former.iter().map(|(over, _)| over.clone()).collect(),
            ..config(&epochs.now, i)
        };
        change(&mut config);
        spawn(config, environment).unwrap()
    }

    fn rounds(&self, i: u16) -> Vec<u64> {
        let adopted = self.rigs[usize::from(i)].adopted();
        adopted.iter().map(|(round, ..)| *round).collect()
    }

    fn now(&self, i: u16) -> Arc<Epoch> {
        epochs(&self.first, &self.rigs[usize::from(i)]).now
    }

    /// Waits until a silo has adopted this many rounds.
    async fn until(&self, i: u16, rounds: usize) {
        for _ in 0..100_000 {
            if self.rounds(i).len() >= rounds {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("silo {i} has adopted {:?} only", self.rounds(i));
    }

    /// Returns how often a silo was told that others have gone on without it.
    fn left_behind(&self, i: u16) -> usize {
        let notices = self.rigs[usize::from(i)].notices.borrow();
        let told = |notice: &Notice| matches!(notice, Notice::Protocol(Report::LeftBehind { .. }));
        notices.iter().filter(|(_, notice)| told(notice)).count()
    }

    /// Makes these silos go on without the others, and returns them, each in the same new epoch.
    async fn recover(&self, silos: Vec<SiloHandle>, lost: &[u16]) -> Vec<SiloHandle> {
        let lost: Vec<_> = lost.iter().map(|&i| MemberIndex(i)).collect();
        let mut new = Vec::new();
        for silo in &silos {
            silo.recover(lost.clone(), false);
        }
        for (i, mut silo) in silos.into_iter().enumerate() {
            assert_eq!(silo.stopped().await, Stopped::EpochOver, "silo {i}");
            new.push(self.live(i as u16));
        }
        new
    }
}

async fn stop(silos: &mut [SiloHandle]) {
    for silo in silos {
        silo.stop();
        assert_eq!(silo.stopped().await, Stopped::Asked);
    }
}

#[test]
fn one_of_two_goes_on_alone_and_misses_no_round() {
    virtually(async {
        let table = RecoveringSilos::new(2, 8);
        let mut silos: Vec<_> = (0..2).map(|i| table.live(i)).collect();
        table.until(0, 2).await;
        silos[1].kill();
        silos[1].stopped().await;
        // Nothing becomes final any more.
        sleep(LONG).await;
        let before = table.rounds(0);
        assert!(before.len() < 8, "{before:?}");
        sleep(LONG).await;
        assert_eq!(table.rounds(0), before);
        silos.truncate(1);
        let mut silos = table.recover(silos, &[1]).await;
        let now = table.now(0);
        let last = before.last().copied().unwrap_or(0);
        assert_eq!(
            (now.number, now.roster.len(), now.began.round),
            (1, 1, last)
        );
        sleep(LONG).await;
        stop(&mut silos).await;
        assert_eq!(table.rounds(0), (1..=8).collect::<Vec<_>>());
    });
}

#[test]
fn two_of_three_go_on_of_which_one_had_lost_its_journal() {
    virtually(async {
        let mut table = RecoveringSilos::new(3, 40);
        let mut silos: Vec<_> = (0..3).map(|i| table.live(i)).collect();
        table.until(0, 2).await;
        for silo in &mut silos[1..] {
            silo.kill();
            silo.stopped().await;
        }
        // The disk of silo 1 is gone too. With silo 2 down it would listen for ever.
        table.rigs[1] = Rig {
            origin: table.rigs[1].origin,
            notices: table.rigs[1].notices.clone(),
            ..Rig::new(table.rigs[1].checks.clone())
        };
        table.rigs[1].notices.borrow_mut().clear();
        let lost = table.live_with(1, |config| config.journal_lost = true);
        sleep(LONG).await;
        let before = table.rounds(0);
        sleep(LONG).await;
        assert_eq!(table.rounds(0), before);
        let silos = vec![silos.remove(0), lost];
        let mut silos = table.recover(silos, &[2]).await;
        assert_eq!(table.now(0).id, table.now(1).id);
        assert_eq!(table.now(0).roster.len(), 2);
        sleep(LONG).await;
        stop(&mut silos).await;
        assert_eq!(table.rounds(0), (1..=40).collect::<Vec<_>>());
        assert_eq!(table.rounds(1).last(), Some(&40));
        let last = |i: usize| table.rigs[i].adopted().last().copied();
        assert_eq!(last(0), last(1));
    });
}

#[test]
fn two_of_four_go_on_and_those_that_come_back_are_told_and_may_be_admitted_again() {
    virtually(async {
        let table = RecoveringSilos::new(4, 12);
        let mut silos: Vec<_> = (0..4).map(|i| table.live(i)).collect();
        table.until(0, 2).await;
        for silo in &mut silos[2..] {
            silo.kill();
            silo.stopped().await;
        }
        sleep(LONG).await;
        let stood = table.rounds(0);
        assert!(stood.len() < 12, "{stood:?}");
        silos.truncate(2);
        let mut silos = table.recover(silos, &[2, 3]).await;
        let recovery = table.now(0);
        assert_eq!(recovery.id, table.now(1).id);
        sleep(LONG).await;
        assert_eq!(table.rounds(0), (1..=12).collect::<Vec<_>>());
        assert_eq!(
            table.rigs[0].adopted().last(),
            table.rigs[1].adopted().last()
        );
        // Both lost members come back: too few to go on by themselves, and told once.
        let before = [table.rounds(2), table.rounds(3)];
        let mut back: Vec<_> = (2..4).map(|i| table.live(i)).collect();
        sleep(LONG).await;
        assert_eq!([table.left_behind(2), table.left_behind(3)], [1, 1]);
        stop(&mut back).await;
        assert_eq!(table.now(2).id, table.first.id);
        // What was final before the recovery they still learn; of later rounds they have none.
        for (i, before) in (2..4).zip(before) {
            let after = table.rounds(i);
            assert!(after.len() <= stood.len().max(before.len()), "{after:?}");
        }
        // The others admit one of them again, which follows because its institution said so.
        let epoch = table.now(0);
        let again = table.first.roster.silos()[2].clone();
        let amendment = with_one_more(&epoch, again, 16);
        for silo in &silos {
            silo.approve(amendment.clone(), 1);
        }
        for silo in &mut silos {
            assert_eq!(silo.stopped().await, Stopped::EpochOver);
        }
        let mut silos: Vec<_> = (0..2).map(|i| table.live(i)).collect();
        let id = recovery.id;
        let mut follower = table.live_with(2, |config| config.member.follow = Some(id));
        assert_eq!(follower.stopped().await, Stopped::EpochOver);
        assert_eq!(table.now(2).id, recovery.id);
        // While it is no member, its node waits to be shown the way to where it is one again.
        let passage = epochs(&table.first, &table.rigs[0]).former[1].1.clone();
        let record = protocol::Record::Final {
            blocks: passage.blocks,
            proof: passage.proof,
        };
        let mut journal = table.rigs[2].journal.clone();
        journal
            .commit(vec![JournalRecord::Protocol(record)])
            .unwrap();
        silos.push(table.live(2));
        sleep(LONG).await;
        stop(&mut silos).await;
        for i in 0..3 {
            assert_eq!(table.rounds(i).last(), Some(&16), "silo {i}");
            let last = table.rigs[usize::from(i)].adopted().last().copied();
            assert_eq!(last, table.rigs[0].adopted().last().copied());
        }
        assert_eq!(table.left_behind(2), 1);
    });
}
