//! All silos of a federation in one process, over real libp2p on this machine's own network.
//!
//! The clock, the sockets and the threads of the pool are real. Simulated are the disks, which are in
//! memory, and the faults of the scenario: kills, failing commits and Byzantine members.
//!
//! ```text
//! silos, one thread ──commands──► tap ──► mesh of the silo ══ QUIC or TCP ══ the other meshes
//!                   ◄──events───  tap ◄──
//! ```
//!
//! A tap records commands and events, for the invariants and the traffic, and changes what a
//! Byzantine member sends. Meshes and taps share one runtime of several threads; the silos have
//! another one.

mod recorded_link;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc as std_mpsc};

use mesh::{Config, Contact, Transport};
use protocol::{Hash, MemberIndex, envelope};
use silo::{Checks, Pool, SiloEnvironment};
use simulations::network::Traffic;
use simulations::scenario::Fault;
use simulations::{
    Disk, EnvironmentConfig, EnvironmentFactory, Mesh, Own, Recorder, Scenario, StepCut, Tamper,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::recorded_link::RecordedLink;

/// Capacity of the channels between a silo and its tap.
const SILO_QUEUE: usize = 1024;
/// Capacity of the channels between a tap and its mesh; commands and events wait in the longer ones.
const MESH_QUEUE: usize = 16;

/// Why a scenario cannot run over real sockets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: {what}, which is not possible with real sockets: remove it from the scenario, or \
     run it with --mesh virtual"
)]
pub struct LoopbackRefusal {
    file: String,
    what: &'static str,
}

/// Checks that all faults of a scenario can be carried out over real sockets.
///
/// # Errors
/// [`LoopbackRefusal`]: the scenario cuts links, or it loses or duplicates messages.
pub fn check(scenario: &Scenario) -> Result<(), LoopbackRefusal> {
    let what = if scenario.faults.iter().any(cuts) {
        "a [[fault]] cuts links"
    } else if scenario.network.loss > 0.0 {
        "[network] loses messages"
    } else if scenario.network.duplication > 0.0 {
        "[network] duplicates messages"
    } else {
        return Ok(());
    };
    let file = scenario.file.clone();
    Err(LoopbackRefusal { file, what })
}

fn cuts(fault: &Fault) -> bool {
    matches!(fault, Fault::Split { .. })
}

/// The environment of one run over real sockets.
pub struct Loopback {
    /// `None` once the environment has ended.
    runtime: Option<Runtime>,
    transport: Transport,
    federation: Hash,
    /// Largest message in bytes.
    frame: usize,
    /// All members, with the addresses of those that were started.
    contacts: Vec<Contact>,
    states: Vec<MemberState>,
    recorder: Recorder,
    checks: Arc<Checks>,
    pool: Arc<dyn Pool>,
}

/// The state of one member.
struct MemberState {
    key: [u8; 32],
    disk: Disk,
    tamper: Option<Arc<Mutex<Tamper>>>,
    /// Bytes of messages that it sent to others.
    messages: Arc<AtomicU64>,
    /// Bytes of blobs that it sent to others, for each of its starts.
    blobs: Vec<Arc<AtomicU64>>,
    /// Network of the member, until its silo is started for the first time.
    ready: Option<silo::Network>,
    running: Option<MemberTasks>,
}

/// The tasks of a running member.
struct MemberTasks {
    taps: [JoinHandle<()>; 2],
    /// Ends when the mesh has closed its ports.
    ended: JoinHandle<()>,
}

impl Loopback {
    /// Starts the meshes of all members of a federation.
    ///
    /// # Errors
    /// The reason why a mesh did not start.
    pub fn new(
        config: &EnvironmentConfig<'_>,
        transport: Transport,
        pool: Arc<dyn Pool>,
    ) -> Result<Self, String> {
        if config.faults.iter().any(cuts) {
            return Err("links over real sockets cannot be cut by a scenario".into());
        }
        let runtime = Builder::new_multi_thread()
            .thread_name("mesh")
            .enable_all()
            .build()
            .map_err(|error| format!("the threads of the network cannot start: {error}"))?;
        let epoch = &config.federation.epoch;
        let members = epoch.roster.members();
        let contacts = members
            .zip(epoch.roster.silos())
            .map(|(member, silo)| Contact {
                member,
                key: silo.key,
                addresses: Vec::new(),
            });
        let disks = config.disks();
        let mut tampers = config.tampers(&disks);
        let states = config.federation.members.iter().zip(disks);
        let states = states.map(|(config, disk)| {
            let me = config.member.me;
            let tamper = tampers.iter().position(|(tamper, _)| *tamper == me);
            MemberState {
                key: config.member.key.to_bytes(),
                disk,
                tamper: tamper.map(|at| Arc::new(Mutex::new(tampers.swap_remove(at).1))),
                messages: Arc::default(),
                blobs: Vec::new(),
                ready: None,
                running: None,
            }
        });
        let mut environment = Self {
            runtime: Some(runtime),
            transport,
            federation: epoch.id,
            frame: envelope::limit(epoch),
            contacts: contacts.collect(),
            states: states.collect(),
            recorder: config.recorder.clone(),
            checks: config.checks.clone(),
            pool,
        };
        // A mesh knows the addresses of the meshes that were started before it, and of two members the
        // first in the roster dials at once. So the last member is started first.
        for me in epoch.roster.members().collect::<Vec<_>>().into_iter().rev() {
            let network = environment.start(me)?;
            environment.states[me.at()].ready = Some(network);
        }
        Ok(environment)
    }

    /// Starts the mesh of a member, at its earlier addresses if it was started before.
    fn start(&mut self, me: MemberIndex) -> Result<silo::Network, String> {
        let here = &self.contacts[me.at()].addresses;
        let listen = if here.is_empty() {
            self.transport
                .addresses(&Ipv4Addr::LOCALHOST.to_string(), 0)
        } else {
            here.clone()
        };
        let config = Config {
            transport: self.transport,
            frame: self.frame,
            commands: MESH_QUEUE,
            events: MESH_QUEUE,
            ..Config::new(self.federation, listen)
        };
        let state = &mut self.states[me.at()];
        let before = state.running.take();
        let (key, roster) = (state.key, self.contacts.clone());
        let runtime = self
            .runtime
            .as_ref()
            .expect("the runtime is there until the environment is dropped");
        let (tell, started) = std_mpsc::channel();
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            if let Some(before) = before {
                // Then its ports are free. A panic was reported where it happened.
                let _ = before.ended.await;
            }
            let _ = tell.send(mesh::spawn(&handle, config, key, roster).await);
        });
        // The silos wait meanwhile, for some milliseconds.
        let mesh = started
            .recv()
            .map_err(|_| "a mesh did not start".to_owned())?;
        let mesh = mesh.map_err(|error| error.to_string())?;
        self.contacts[me.at()].addresses = mesh.addresses;
        state.blobs.push(mesh.served);

        let (commands, outgoing) = mpsc::channel(SILO_QUEUE);
        let (incoming, events) = mpsc::channel(SILO_QUEUE);
        let messages = self.states.iter().map(|state| state.messages.clone());
        let tap = RecordedLink {
            me,
            recorder: self.recorder.clone(),
            tamper: self.states[me.at()].tamper.clone(),
            messages: messages.collect(),
            mesh: mesh.commands,
        };
        let taps = [
            runtime.spawn(tap.clone().outgoing(outgoing)),
            runtime.spawn(tap.incoming(mesh.events, incoming)),
        ];
        let ended = mesh.ended;
        self.states[me.at()].running = Some(MemberTasks { taps, ended });
        Ok(silo::Network { commands, events })
    }
}

impl EnvironmentFactory for Loopback {
    fn mesh(&self) -> Mesh {
        let transport = match self.transport {
            Transport::Quic => "quic",
            Transport::Tcp => "tcp",
            Transport::Both => "quic, tcp",
        };
        Mesh {
            name: "loopback",
            transport: Some(transport),
        }
    }

    fn start(&mut self, member: MemberIndex, own: Own) -> Result<SiloEnvironment, String> {
        let network = match self.states[member.at()].ready.take() {
            Some(network) => network,
            None => self.start(member)?,
        };
        let disk = &self.states[member.at()].disk;
        Ok(SiloEnvironment {
            network,
            journal: disk.journal(),
            blobs: disk.blobs(),
            pool: self.pool.clone(),
            checks: self.checks.clone(),
            feed: own.feed,
            origin: self.recorder.origin(),
            site: silo::Site::default(),
            secrets: Box::new(own.secrets),
        })
    }

    fn stop(&mut self, member: MemberIndex, journal_lost: bool) {
        let state = &self.states[member.at()];
        // A mesh without taps ends.
        let taps = state.running.iter().flat_map(|running| &running.taps);
        taps.for_each(JoinHandle::abort);
        state.disk.close(journal_lost);
    }

    fn cut(&mut self, _: &[(usize, usize)]) {
        unreachable!("scenarios that cut links are refused before the environment is made");
    }

    fn mend(&mut self, _: &[(usize, usize)]) {
        unreachable!("scenarios that cut links are refused before the environment is made");
    }

    fn fail_commit(&mut self, member: MemberIndex, nth: u64, cut: StepCut) {
        self.states[member.at()].disk.fail(nth, cut);
    }

    fn traffic(&self) -> Vec<Traffic> {
        let read = |counter: &Arc<AtomicU64>| counter.load(Ordering::Relaxed);
        let sent = |state: &MemberState| Traffic {
            messages: read(&state.messages),
            blobs: state.blobs.iter().map(read).sum(),
        };
        self.states.iter().map(sent).collect()
    }

    fn disks(&self) -> Vec<Disk> {
        self.states.iter().map(|state| state.disk.clone()).collect()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        // Waiting is not allowed here; the sockets close with the tasks that own them.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
