//! All silos of a federation in one process, over real libp2p on this machine's own network.
//!
//! What the silos live by is real here: the clock, the sockets, the threads of the pool. Simulated
//! are the disks, in memory, and the faults of the script: kills, failing commits, and members that
//! misbehave.
//!
//! ```text
//! silos, one thread ──commands──► tap ──► mesh of the silo ══ QUIC or TCP ══ the other meshes
//!                   ◄──events───  tap ◄──
//! ```
//!
//! A tap records what passes through it, for the invariants and the traffic, and holds the tamper
//! of a Byzantine member.
//! Meshes and taps share one runtime of several threads, apart from the silos' own.

mod tap;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc as std_mpsc};

use mesh::{Config, Contact, Transport};
use protocol::{Hash, MemberIndex, envelope};
use silo::{Checks, Feed, Pool, Surroundings};
use simulations::network::Traffic;
use simulations::scenario::Fault;
use simulations::{
    Disk, Environment, EnvironmentConfig, Mesh, Recorder, Scenario, StepCut, Tamper,
};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use self::tap::Tap;

/// Events and commands that wait between a silo and its tap.
const ROOM: usize = 1024;
/// The same between a tap and its mesh: the silo's own channel is the long one.
const SHORT: usize = 16;

/// Why a scenario cannot run over real sockets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: {what}, which the sockets of one machine cannot be told to do: take it out of the \
     scenario, or run it with --mesh virtual"
)]
pub struct Refused {
    file: String,
    what: &'static str,
}

/// Whether everything that goes wrong in a scenario can be carried out over real sockets.
///
/// # Errors
/// [`Refused`]: it cuts links, or wants messages lost or doubled.
pub fn check(scenario: &Scenario) -> Result<(), Refused> {
    let what = if scenario.faults.iter().any(cuts) {
        "a [[fault]] cuts links"
    } else if scenario.network.loss > 0.0 {
        "[network] loses messages"
    } else if scenario.network.duplication > 0.0 {
        "[network] doubles messages"
    } else {
        return Ok(());
    };
    let file = scenario.file.clone();
    Err(Refused { file, what })
}

fn cuts(fault: &Fault) -> bool {
    matches!(fault, Fault::Split { .. })
}

/// The environment of one run over real sockets.
pub struct Loopback {
    /// Taken when it ends.
    runtime: Option<Runtime>,
    transport: Transport,
    federation: Hash,
    /// Most bytes of a message.
    frame: usize,
    /// Every member, with its addresses once it has been there.
    contacts: Vec<Contact>,
    places: Vec<Place>,
    recorder: Recorder,
    checks: Arc<Checks>,
    pool: Arc<dyn Pool>,
}

/// What belongs to one member.
struct Place {
    key: [u8; 32],
    disk: Disk,
    tamper: Option<Arc<Mutex<Tamper>>>,
    /// Bytes of messages that others got from it.
    messages: Arc<AtomicU64>,
    /// Bytes of blobs that others got from it, after each of its starts.
    blobs: Vec<Arc<AtomicU64>>,
    /// Its ends of the network, until it comes for the first time.
    ready: Option<silo::Network>,
    running: Option<Running>,
}

/// What runs for a member while it is there.
struct Running {
    taps: [JoinHandle<()>; 2],
    /// Done when the mesh has closed its ports.
    ended: JoinHandle<()>,
}

impl Loopback {
    /// Starts the meshes of all members of a federation.
    ///
    /// # Errors
    /// Why a mesh did not start, in a sentence.
    pub fn new(
        config: &EnvironmentConfig<'_>,
        transport: Transport,
        pool: Arc<dyn Pool>,
    ) -> Result<Self, String> {
        if config.faults.iter().any(cuts) {
            return Err("real sockets cannot be cut by a script".into());
        }
        let runtime = Builder::new_multi_thread()
            .thread_name("mesh")
            .enable_all()
            .build()
            .map_err(|error| format!("the threads of the network do not start: {error}"))?;
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
        let places = config.federation.members.iter().zip(disks);
        let places = places.map(|(config, disk)| {
            let me = config.member.me;
            let tamper = tampers.iter().position(|(tamper, _)| *tamper == me);
            Place {
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
            places: places.collect(),
            recorder: config.recorder.clone(),
            checks: config.checks.clone(),
            pool,
        };
        // A mesh knows the addresses of those that are there before it, and of two members the
        // first in the roster dials at once: so the last one comes first.
        for me in epoch.roster.members().collect::<Vec<_>>().into_iter().rev() {
            let network = environment.start(me)?;
            environment.places[me.at()].ready = Some(network);
        }
        Ok(environment)
    }

    /// Starts the mesh of a member, where it was before if it was there.
    fn start(&mut self, me: MemberIndex) -> Result<silo::Network, String> {
        let here = &self.contacts[me.at()].addresses;
        let listen = match here.is_empty() {
            true => self
                .transport
                .addresses(&Ipv4Addr::LOCALHOST.to_string(), 0),
            false => here.clone(),
        };
        let config = Config {
            transport: self.transport,
            frame: self.frame,
            commands: SHORT,
            events: SHORT,
            ..Config::new(self.federation, listen)
        };
        let place = &mut self.places[me.at()];
        let before = place.running.take();
        let (key, roster) = (place.key, self.contacts.clone());
        let runtime = self
            .runtime
            .as_ref()
            .expect("the runtime is there until the environment is dropped");
        let (tell, started) = std_mpsc::channel();
        let handle = runtime.handle().clone();
        runtime.spawn(async move {
            if let Some(before) = before {
                // Its ports are free then. A panic was reported where it happened.
                let _ = before.ended.await;
            }
            let _ = tell.send(mesh::spawn(&handle, config, key, roster).await);
        });
        // The silos stand still meanwhile, which takes milliseconds.
        let mesh = started
            .recv()
            .map_err(|_| "a mesh did not start".to_owned())?;
        let mesh = mesh.map_err(|error| error.to_string())?;
        self.contacts[me.at()].addresses = mesh.addresses;
        place.blobs.push(mesh.served);

        let (commands, outgoing) = mpsc::channel(ROOM);
        let (incoming, events) = mpsc::channel(ROOM);
        let messages = self.places.iter().map(|place| place.messages.clone());
        let tap = Tap {
            me,
            recorder: self.recorder.clone(),
            tamper: self.places[me.at()].tamper.clone(),
            messages: messages.collect(),
            mesh: mesh.commands,
        };
        let taps = [
            runtime.spawn(tap.clone().outgoing(outgoing)),
            runtime.spawn(tap.incoming(mesh.events, incoming)),
        ];
        let ended = mesh.ended;
        self.places[me.at()].running = Some(Running { taps, ended });
        Ok(silo::Network { commands, events })
    }
}

impl Environment for Loopback {
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

    fn start(&mut self, member: MemberIndex, feed: Feed) -> Result<Surroundings, String> {
        let network = match self.places[member.at()].ready.take() {
            Some(network) => network,
            None => self.start(member)?,
        };
        let disk = &self.places[member.at()].disk;
        Ok(Surroundings {
            network,
            journal: disk.journal(),
            blobs: disk.blobs(),
            pool: self.pool.clone(),
            checks: self.checks.clone(),
            feed,
            origin: self.recorder.origin(),
        })
    }

    fn stop(&mut self, member: MemberIndex, journal_lost: bool) {
        let place = &self.places[member.at()];
        // A mesh whose taps are gone ends.
        let taps = place.running.iter().flat_map(|running| &running.taps);
        taps.for_each(JoinHandle::abort);
        place.disk.close(journal_lost);
    }

    fn cut(&mut self, _: &[(usize, usize)]) {
        unreachable!("scenarios that cut links are refused before the environment is made");
    }

    fn mend(&mut self, _: &[(usize, usize)]) {
        unreachable!("scenarios that cut links are refused before the environment is made");
    }

    fn fail_commit(&mut self, member: MemberIndex, nth: u64, cut: StepCut) {
        self.places[member.at()].disk.fail(nth, cut);
    }

    fn traffic(&self) -> Vec<Traffic> {
        let read = |counter: &Arc<AtomicU64>| counter.load(Ordering::Relaxed);
        let sent = |place: &Place| Traffic {
            messages: read(&place.messages),
            blobs: place.blobs.iter().map(read).sum(),
        };
        self.places.iter().map(sent).collect()
    }

    fn disks(&self) -> Vec<Disk> {
        self.places.iter().map(|place| place.disk.clone()).collect()
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        // Called where waiting is not allowed; the sockets close with the tasks that own them.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
