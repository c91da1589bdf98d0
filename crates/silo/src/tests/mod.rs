//! Whole silos in virtual time, and a worker alone.
#![allow(clippy::unwrap_used)]

mod asked;
mod bench;
mod blamed;
mod bystanders;
mod contributions;
mod decided;
mod durable;
mod epochs;
mod federation;
mod golden;
mod gone;
mod leftovers;
mod limits;
mod masked;
mod measure;
mod neighbours;
mod noised;
mod put_back;
mod recovery;
mod searched;
mod silo;
mod site;
mod spent;
mod statistics;
mod steps;
mod trimmed;
mod wire;
mod worker;

use std::sync::Arc;
use std::time::Duration;

use protocol::{Epoch, MemberIndex};
use tokio::time::{Instant, sleep};

use crate::testing::{Hub, Rig, config, epoch};
use crate::{Checks, SiloConfig, SiloHandle, spawn};

/// More virtual time than any of these federations needs.
const LONG: Duration = Duration::from_secs(600);

/// A federation in one epoch, whose silos the test starts and kills.
struct TestSilos {
    epoch: Arc<Epoch>,
    hub: Hub,
    rigs: Vec<Rig>,
}

impl TestSilos {
    /// `n` silos that keep this many rounds.
    fn new(n: u16, rounds: u64, keep: u32) -> Self {
        let mut epoch = (*epoch(n, rounds)).clone();
        epoch.protocol.keep_rounds = keep;
        Self::of(Arc::new(epoch))
    }

    /// The silos of an epoch.
    fn of(epoch: Arc<Epoch>) -> Self {
        let n = epoch.roster.len() as u16;
        let (origin, checks) = (Instant::now(), Checks::new(true));
        let rig = |_| Rig {
            origin,
            ..Rig::new(checks.clone())
        };
        Self {
            epoch,
            hub: Hub::default(),
            rigs: (0..n).map(rig).collect(),
        }
    }

    fn live(&self, i: u16) -> SiloHandle {
        self.live_with(i, |_| {})
    }

    /// A silo with another configuration.
    fn live_with(&self, i: u16, change: impl FnOnce(&mut SiloConfig)) -> SiloHandle {
        let (environment, ends) = self.rigs[usize::from(i)].environment();
        self.hub.join(MemberIndex(i), ends);
        let mut config = config(&self.epoch, i);
        change(&mut config);
        spawn(config, environment).unwrap()
    }

    /// The last round that a silo has adopted.
    fn round(&self, i: u16) -> u64 {
        let notices = self.rigs[usize::from(i)].notices.borrow();
        let adopted = notices.iter().rev().find_map(|(_, notice)| match notice {
            crate::Notice::Adopted { round, .. } => Some(*round),
            _ => None,
        });
        adopted.unwrap_or(0)
    }

    /// Waits until a silo has adopted this round.
    async fn until(&self, i: u16, round: u64) {
        let end = Instant::now() + LONG * (1 + round as u32 / 10);
        while self.round(i) < round {
            assert!(
                Instant::now() < end,
                "silo {i} is in round {}",
                self.round(i)
            );
            sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn kill(silo: &mut SiloHandle) {
    silo.kill();
    silo.stopped().await;
}
