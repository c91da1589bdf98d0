//! What a federation lives in: simulated by default, or handed in.

use std::sync::Arc;

use protocol::MemberIndex;
use serde::Serialize;
use silo::{Checks, Feed, Surroundings};

use crate::disk::{Cut, Disk};
use crate::federation::Federation;
use crate::network::{EVENTS, LinkConfig, SimulatedNetwork, Traffic};
use crate::pool::{Costs, Threads, VirtualPool};
use crate::recorder::Ear;
use crate::scenario::Fault;
use crate::tamper::Tamper;

/// What carries the bytes of a federation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mesh {
    /// Its name, for example `"virtual"`.
    #[serde(rename = "mesh")]
    pub name: &'static str,
    /// Which transport, where there is a choice.
    pub transport: Option<&'static str>,
}

impl Mesh {
    /// The simulated network in virtual time.
    pub const VIRTUAL: Self = Self {
        name: "virtual",
        transport: None,
    };
}

/// What a world is made for, and from.
pub struct Stage<'a> {
    /// Who is going to live in it.
    pub federation: &'a Federation,
    /// Must hear every frame that is said, every frame before it reaches a silo, and every entry
    /// that becomes durable. Has the clock of the run.
    pub ear: &'a Ear,
    /// The checks of the run, to be handed to every silo.
    pub checks: &'a Arc<Checks>,
    /// The script. Kills are the director's business; the rest is the world's.
    pub faults: &'a [Fault],
}

impl Stage<'_> {
    /// An empty disk for every member, in roster order.
    pub fn disks(&self) -> Vec<Disk> {
        let members = self.federation.epoch.roster.members();
        members.map(|me| Disk::new(me, self.ear.clone())).collect()
    }

    /// The liars of the script, to be put between their silos, whose disks these are, and the
    /// network.
    pub fn liars(&self, disks: &[Disk]) -> Vec<(MemberIndex, Tamper)> {
        let mut liars = Vec::new();
        for fault in self.faults {
            if let Fault::Byzantine { member, sends } = fault
                && let Ok(me) = self.federation.member(member)
            {
                let key = self.federation.members[me.at()].member.key.clone();
                let (epoch, blobs) = (self.federation.epoch.clone(), disks[me.at()].blobs());
                liars.push((me, Tamper::new(*sends, epoch, me, key, blobs)));
            }
        }
        liars
    }
}

/// Gives silos their surroundings, and takes them away again.
pub trait World {
    /// What carries the bytes in it.
    fn mesh(&self) -> Mesh;

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

    /// The members' disks, in the order of the roster.
    fn disks(&self) -> Vec<Disk>;
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
        stage: &Stage<'_>,
        links: LinkConfig,
        costs: Costs,
        threads: Arc<Threads>,
    ) -> Self {
        let pool = VirtualPool::new(threads.clone(), costs);
        let network = SimulatedNetwork::start(
            links,
            stage.federation.members.len(),
            stage.federation.seed,
            stage.ear.clone(),
            stage.checks.clone(),
            threads,
        );
        let disks = stage.disks();
        for (me, liar) in stage.liars(&disks) {
            network.tamper(me, liar);
        }
        Self {
            network,
            disks,
            pool,
            checks: stage.checks.clone(),
            ear: stage.ear.clone(),
        }
    }
}

impl World for Virtual {
    fn mesh(&self) -> Mesh {
        Mesh::VIRTUAL
    }

    fn enter(&mut self, member: MemberIndex, feed: Feed) -> Result<Surroundings, String> {
        let disk = &self.disks[member.at()];
        Ok(Surroundings {
            network: self.network.connect(member, EVENTS),
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
        self.disks[member.at()].close(emptied);
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

    fn disks(&self) -> Vec<Disk> {
        self.disks.clone()
    }
}
