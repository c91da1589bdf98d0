//! The simulated network, which keeps the same promises as the libp2p mesh.
//!
//! One task owns all messages in flight, in a queue ordered by time and sequence number, on the
//! paused clock of the runtime. Messages are lost, duplicated, delayed and blocked as the scenario
//! says. Gossip delivers the same bytes to a member at most once, also around a cut link if a third
//! member accepted and forwards them. Blobs are requested from one holder after another. The
//! receiver really hashes them: hashing starts on the pool when a transfer begins, and its result
//! is awaited when the transfer ends.

mod core;
mod gossip;
mod model;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use protocol::{MemberIndex, SecretKey};
use serde::Serialize;
use silo::Checks;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use crate::pool::Threads;
use crate::recorder::Recorder;
use crate::tamper::Tamper;
use bare::genesis::epoch;
use bare::random::Random;

use self::core::Core;
pub use model::{LinkConfig, latencies};

/// Room for events that wait for a silo; the network holds back what does not fit.
pub(crate) const EVENTS: usize = 1024;
/// Room for commands that wait for the network.
const COMMANDS: usize = 4096;

/// Bytes that a silo sent. A gossiped message counts once for every member that got it from this
/// silo first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Messages.
    pub messages: u64,
    /// Models and outcomes.
    pub blobs: u64,
}

/// The network of one federation. Clones share it. Lives on one thread, inside a local task set.
#[derive(Clone)]
pub struct SimulatedNetwork {
    core: Rc<RefCell<Core>>,
    bell: Rc<Notify>,
}

impl SimulatedNetwork {
    /// Starts a network of `n` silos whose link latencies are drawn from `seed`.
    pub(crate) fn start(
        config: LinkConfig,
        n: usize,
        seed: u64,
        recorder: Recorder,
        checks: Arc<Checks>,
        threads: Arc<Threads>,
    ) -> Self {
        let core = Core::new(config, n, seed, recorder, checks, threads);
        let network = Self {
            core: Rc::new(RefCell::new(core)),
            bell: Rc::default(),
        };
        let (core, bell) = (Rc::downgrade(&network.core), network.bell.clone());
        tokio::task::spawn_local(async move {
            loop {
                let Some(next) = core.upgrade().map(|core| core.borrow_mut().run()) else {
                    return;
                };
                match next {
                    Some(next) => wait(&bell, next).await,
                    None => bell.notified().await,
                }
            }
        });
        network
    }

    /// A network of `n` silos without a federation, for tests of what every network promises. Must
    /// be called inside a local task set.
    ///
    /// # Panics
    /// Where `n` is 0 or more than a roster holds.
    pub fn alone(config: LinkConfig, n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed, "keys");
        let keys: Vec<_> = (0..n)
            .map(|_| SecretKey::from_bytes(&random.bytes()))
            .collect();
        let (epoch, now) = (
            Arc::new(epoch(&keys, 1, protocol::parameters::Rotation::EveryRound)),
            Instant::now(),
        );
        let recorder = Recorder::new(epoch, BTreeSet::new(), now, Duration::ZERO);
        Self::start(
            config,
            n,
            seed,
            recorder,
            Checks::new(false),
            Threads::new(1),
        )
    }

    /// Connects a silo that starts, with room for this number of waiting events.
    pub fn connect(&self, silo: MemberIndex, room: usize) -> silo::Network {
        let (commands, mut sent) = mpsc::channel(COMMANDS);
        let (inbox, events) = mpsc::channel(room);
        let restarts = self.core.borrow_mut().connect(silo.at(), inbox);
        self.bell.notify_one();
        let (core, bell) = (Rc::downgrade(&self.core), self.bell.clone());
        tokio::task::spawn_local(async move {
            while let Some(command) = sent.recv().await {
                let Some(core) = core.upgrade() else { return };
                if !core.borrow_mut().command(silo.at(), restarts, command) {
                    return;
                }
                bell.notify_one();
            }
        });
        silo::Network { commands, events }
    }

    /// Disconnects a silo that stopped: nothing reaches it any more, and the others notice.
    pub fn disconnect(&self, silo: MemberIndex) {
        self.core.borrow_mut().disconnect(silo.at());
        self.bell.notify_one();
    }

    /// Cuts links, each given as sender and receiver.
    pub fn cut(&self, links: &[(usize, usize)]) {
        self.core.borrow_mut().cut(links);
        self.bell.notify_one();
    }

    /// Restores links that were cut.
    pub fn mend(&self, links: &[(usize, usize)]) {
        self.core.borrow_mut().mend(links);
        self.bell.notify_one();
    }

    /// Puts a tamper between a silo and the network.
    pub(crate) fn tamper(&self, silo: MemberIndex, tamper: Tamper) {
        self.core.borrow_mut().tamper(silo.at(), tamper);
    }

    /// Returns what every silo sent so far.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.core.borrow().traffic()
    }
}

/// Waits for a notification, or until the given time.
async fn wait(bell: &Notify, until: Instant) {
    tokio::select! {
        biased;
        () = bell.notified() => {}
        () = sleep_until(until) => {}
    }
}

#[cfg(test)]
mod tests;
