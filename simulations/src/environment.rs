//! The environment of a federation: what gives its silos a network, disks and a pool. It is
//! simulated unless another one is handed in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use protocol::MemberIndex;
use serde::Serialize;
use silo::{Checks, Feed, SeededSecrets, SiloEnvironment};

use crate::disk::{Disk, SharedBlobs};
use crate::federation::Federation;
use crate::network::{EVENTS, LinkConfig, SimulatedNetwork, Traffic};
use crate::pool::{Costs, Threads, VirtualPool};
use crate::recorder::Recorder;
use crate::scenario::Fault;
use crate::tamper::Tamper;
use bare::Behaviour;
use bare::StepCut;

/// The kind of network that carries a federation's messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Mesh {
    /// Name of the network, for example `"virtual"`.
    #[serde(rename = "mesh")]
    pub name: &'static str,
    /// The transport, for networks that have several.
    pub transport: Option<&'static str>,
}

impl Mesh {
    /// The simulated network in virtual time.
    pub const VIRTUAL: Self = Self {
        name: "virtual",
        transport: None,
    };

    /// No network: a loop over the silos.
    pub const DIRECT: Self = Self {
        name: "direct",
        transport: None,
    };
}

/// What an environment is made from.
pub struct EnvironmentConfig<'a> {
    /// The federation that runs in it.
    pub federation: &'a Federation,
    /// The recorder of the run, which also has its clock. The environment must report to it every
    /// frame that is sent, every frame before it is delivered, and every journal entry that becomes
    /// durable.
    pub recorder: &'a Recorder,
    /// The cache of checks, shared by all silos of the run.
    pub checks: &'a Arc<Checks>,
    /// The scripted faults. The director carries out kills, the environment all others.
    pub faults: &'a [Fault],
}

impl EnvironmentConfig<'_> {
    /// An empty disk for every member, in roster order.
    pub fn disks(&self) -> Vec<Disk> {
        let members = self.federation.epoch.roster.members();
        let shared = SharedBlobs::default();
        members
            .map(|me| Disk::new(me, self.recorder.clone(), shared.clone()))
            .collect()
    }

    /// The tampers of the scripted Byzantine members. The environment puts each between its silo,
    /// whose disk is in `disks`, and the network.
    pub fn tampers(&self, disks: &[Disk]) -> Vec<(MemberIndex, Tamper)> {
        let mut byzantine = BTreeMap::<MemberIndex, Vec<Behaviour>>::new();
        for fault in self.faults {
            if let Fault::Byzantine { member, behaviour } = fault
                && !behaviour.is_of_learning()
                && let Ok(me) = self.federation.member(member)
            {
                byzantine.entry(me).or_default().push(*behaviour);
            }
        }
        let tamper = |(me, behaviours): (MemberIndex, Vec<Behaviour>)| {
            let (silo, blobs) = (&self.federation.members[me.at()], disks[me.at()].blobs());
            let (seed, recorder) = (self.federation.seed, self.recorder.clone());
            (me, Tamper::new(silo, blobs, &behaviours, seed, recorder))
        };
        byzantine.into_iter().map(tamper).collect()
    }
}

/// What a silo brings along when it starts.
pub struct Own {
    /// Receives its notices.
    pub feed: Feed,
    /// Gives its secrets of secure-aggregation rounds.
    pub secrets: SeededSecrets,
}

/// Gives silos their environment, and withdraws them when a silo stops.
pub trait EnvironmentFactory {
    /// The kind of network in it.
    fn mesh(&self) -> Mesh;

    /// Environment for a member that starts or restarts. What it made durable before is still
    /// there.
    ///
    /// # Errors
    /// Why the environment cannot be set up, as a sentence.
    fn start(&mut self, member: MemberIndex, own: Own) -> Result<SiloEnvironment, String>;

    /// A member stops, as in a power cut. Its journal and blobs are lost too if `journal_lost`.
    fn stop(&mut self, member: MemberIndex, journal_lost: bool);

    /// Cuts links, each from one position in the roster to another.
    fn cut(&mut self, links: &[(usize, usize)]);

    /// Restores links that were cut.
    fn mend(&mut self, links: &[(usize, usize)]);

    /// Makes a member's `nth` commit from now fail, as [`Disk::fail`] does.
    fn fail_commit(&mut self, member: MemberIndex, nth: u64, cut: StepCut);

    /// The bytes that every member sent so far, in roster order.
    fn traffic(&self) -> Vec<Traffic>;

    /// The modelled time that every member has worked besides training, in roster order; empty where
    /// work takes real time.
    fn work(&self) -> Vec<Duration> {
        Vec::new()
    }

    /// The members' disks, in roster order.
    fn disks(&self) -> Vec<Disk>;
}

/// The simulated environment: network, disks and pool in virtual time.
pub(crate) struct VirtualEnvironment {
    network: SimulatedNetwork,
    disks: Vec<Disk>,
    pools: Vec<Arc<VirtualPool>>,
    checks: Arc<Checks>,
    recorder: Recorder,
}

impl VirtualEnvironment {
    pub(crate) fn new(
        config: &EnvironmentConfig<'_>,
        links: LinkConfig,
        costs: Costs,
        threads: Arc<Threads>,
    ) -> Self {
        let members = config.federation.members.iter();
        let pools = members.map(|_| VirtualPool::new(threads.clone(), costs));
        let pools = pools.collect();
        let network = SimulatedNetwork::start(
            links,
            config.federation.members.len(),
            config.federation.seed,
            config.recorder.clone(),
            config.checks.clone(),
            threads,
        );
        let disks = config.disks();
        for (me, tamper) in config.tampers(&disks) {
            network.tamper(me, tamper);
        }
        Self {
            network,
            disks,
            pools,
            checks: config.checks.clone(),
            recorder: config.recorder.clone(),
        }
    }
}

impl EnvironmentFactory for VirtualEnvironment {
    fn mesh(&self) -> Mesh {
        Mesh::VIRTUAL
    }

    fn start(&mut self, member: MemberIndex, own: Own) -> Result<SiloEnvironment, String> {
        let disk = &self.disks[member.at()];
        Ok(SiloEnvironment {
            network: self.network.connect(member, EVENTS),
            journal: disk.journal(),
            blobs: disk.blobs(),
            pool: self.pools[member.at()].clone(),
            checks: self.checks.clone(),
            feed: own.feed,
            origin: self.recorder.origin(),
            site: silo::Site::default(),
            secrets: Box::new(own.secrets),
        })
    }

    fn stop(&mut self, member: MemberIndex, journal_lost: bool) {
        self.network.disconnect(member);
        self.disks[member.at()].close(journal_lost);
    }

    fn cut(&mut self, links: &[(usize, usize)]) {
        self.network.cut(links);
    }

    fn mend(&mut self, links: &[(usize, usize)]) {
        self.network.mend(links);
    }

    fn fail_commit(&mut self, member: MemberIndex, nth: u64, cut: StepCut) {
        self.disks[member.at()].fail(nth, cut);
    }

    fn traffic(&self) -> Vec<Traffic> {
        self.network.traffic()
    }

    fn work(&self) -> Vec<Duration> {
        self.pools.iter().map(|pool| pool.worked()).collect()
    }

    fn disks(&self) -> Vec<Disk> {
        self.disks.clone()
    }
}
