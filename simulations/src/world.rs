//! What a federation lives in: simulated by default, or handed in.

use std::sync::Arc;

use protocol::MemberIndex;
use silo::{Checks, Feed, Surroundings};

use crate::disk::{Cut, Disk};
use crate::federation::Federation;
use crate::network::{LinkConfig, SimulatedNetwork, Traffic};
use crate::pool::{Costs, Threads, VirtualPool};
use crate::recorder::Ear;
use crate::scenario::Fault;
use crate::tamper::Tamper;

/// Gives silos their surroundings, and takes them away again.
pub trait World {
    /// Surroundings for another life of a member; what it kept is still there.
    ///
    /// # Errors
    /// Why there are none, in a sentence.
    fn enter(&mut self, member: MemberIndex, feed: Feed) -> Result<Surroundings, String>;

    /// That life is over, like in a power cut; what the member kept is gone too if `emptied`.
    fn leave(&mut self, member: MemberIndex, emptied: bool);

    /// Cuts links, each from one place in the roster to another.
    fn cut(&mut self, links: &[(usize, usize)]);

    /// Mends links that were cut.
    fn mend(&mut self, links: &[(usize, usize)]);

    /// Lets a member's `nth` commit from now fail.
    fn fail(&mut self, member: MemberIndex, nth: u64, cut: Cut);

    /// What every member sent so far.
    fn traffic(&self) -> Vec<Traffic>;
}

/// The simulated world: network, disks and pool in virtual time.
pub(crate) struct Virtual {
    network: SimulatedNetwork,
    disks: Vec<Disk>,
    pool: Arc<VirtualPool>,
    checks: Arc<Checks>,
    ear: Ear,
}

impl Virtual {
    pub(crate) fn new(
        federation: &Federation,
        links: LinkConfig,
        costs: Costs,
        ear: &Ear,
        checks: Arc<Checks>,
        threads: Arc<Threads>,
    ) -> Self {
        let n = federation.members.len();
        let pool = VirtualPool::new(threads.clone(), costs);
        let network = SimulatedNetwork::start(
            links,
            n,
            federation.seed,
            ear.clone(),
            checks.clone(),
            threads,
        );
        let disks = federation
            .epoch
            .roster
            .members()
            .map(|me| Disk::new(me, ear.clone()));
        Self {
            network,
            disks: disks.collect(),
            pool,
            checks,
            ear: ear.clone(),
        }
    }

    /// Puts liars between misbehaving members and the network.
    pub(crate) fn corrupt(&self, federation: &Federation, faults: &[Fault]) {
        for fault in faults {
            if let Fault::Byzantine { member, sends } = fault
                && let Ok(me) = federation.member(member)
            {
                let key = federation.members[me.at()].member.key.clone();
                let blobs = self.disks[me.at()].blobs();
                let epoch = federation.epoch.clone();
                self.network
                    .tamper(me, Tamper::new(*sends, epoch, me, key, blobs));
            }
        }
    }
}

impl World for Virtual {
    fn enter(&mut self, member: MemberIndex, feed: Feed) -> Result<Surroundings, String> {
        let disk = &self.disks[member.at()];
        Ok(Surroundings {
            network: self.network.connect(member),
            journal: disk.journal(),
            blobs: disk.blobs(),
            pool: self.pool.clone(),
            checks: self.checks.clone(),
            feed,
            origin: self.ear.origin(),
        })
    }

    fn leave(&mut self, member: MemberIndex, emptied: bool) {
        self.network.disconnect(member);
        let disk = &self.disks[member.at()];
        disk.close();
        if emptied {
            disk.wipe();
        }
    }

    fn cut(&mut self, links: &[(usize, usize)]) {
        self.network.cut(links);
    }

    fn mend(&mut self, links: &[(usize, usize)]) {
        self.network.mend(links);
    }

    fn fail(&mut self, member: MemberIndex, nth: u64, cut: Cut) {
        self.disks[member.at()].fail(nth, cut);
    }

    fn traffic(&self) -> Vec<Traffic> {
        self.network.traffic()
    }
}
