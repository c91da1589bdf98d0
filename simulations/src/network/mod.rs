//! The simulated network: the other implementation of what a mesh does.
//!
//! One task owns everything that is under way, in a queue ordered by time and sequence, on the
//! paused clock of the runtime. Messages are lost, doubled, late and kept apart as the scenario
//! says. Gossip brings the same bytes to a member at most once, around cut links where a third
//! member can pass them on and accepted them. Blobs are asked for one holder after another, and hashed for real by
//! the receiving side: started in the pool when a transfer begins, and waited for when it ends.

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

use crate::genesis::epoch;
use crate::pool::Threads;
use crate::random::Random;
use crate::recorder::Ear;
use crate::tamper::Tamper;

use self::core::Core;
pub use model::LinkConfig;

/// Events that usually wait for a silo; the network holds back what does not fit.
pub(crate) const EVENTS: usize = 1024;
/// Commands that wait for the network; what does not fit is lost.
const COMMANDS: usize = 4096;

/// What a silo sent, in bytes. Gossip counts once for every member that it reached first.
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
    /// Links between `n` silos, drawn from `seed`; starts the task that delivers.
    pub(crate) fn start(
        config: LinkConfig,
        n: usize,
        seed: u64,
        recorder: Ear,
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

    /// A network of `n` silos that nobody watches, for tests of what every network promises. To be
    /// called inside a local task set.
    ///
    /// # Panics
    /// Where `n` is 0 or more than a roster holds.
    pub fn alone(config: LinkConfig, n: usize, seed: u64) -> Self {
        let mut random = Random::new(seed, "keys");
        let keys: Vec<_> = (0..n)
            .map(|_| SecretKey::from_bytes(&random.bytes()))
            .collect();
        let (epoch, now) = (Arc::new(epoch(&keys, 1)), Instant::now());
        let ear = Ear::new(epoch, BTreeSet::new(), now, Duration::ZERO);
        Self::start(config, n, seed, ear, Checks::new(false), Threads::new(1))
    }

    /// Connects a silo that comes to life, with room for so many events.
    pub fn connect(&self, silo: MemberIndex, room: usize) -> silo::Network {
        let (commands, mut said) = mpsc::channel(COMMANDS);
        let (inbox, events) = mpsc::channel(room);
        let life = self.core.borrow_mut().connect(silo.at(), inbox);
        self.bell.notify_one();
        let (core, bell) = (Rc::downgrade(&self.core), self.bell.clone());
        tokio::task::spawn_local(async move {
            while let Some(command) = said.recv().await {
                let Some(core) = core.upgrade() else { return };
                if !core.borrow_mut().command(silo.at(), life, command) {
                    return;
                }
                bell.notify_one();
            }
        });
        silo::Network { commands, events }
    }

    /// A silo is gone: nothing reaches it, and the others notice.
    pub fn disconnect(&self, silo: MemberIndex) {
        self.core.borrow_mut().disconnect(silo.at());
        self.bell.notify_one();
    }

    /// Cuts links, each from one to another.
    pub fn cut(&self, links: &[(usize, usize)]) {
        self.core.borrow_mut().cut(links);
        self.bell.notify_one();
    }

    /// Mends links that were cut.
    pub fn mend(&self, links: &[(usize, usize)]) {
        self.core.borrow_mut().mend(links);
        self.bell.notify_one();
    }

    /// Puts a liar between a silo and the network.
    pub(crate) fn tamper(&self, silo: MemberIndex, tamper: Tamper) {
        self.core.borrow_mut().tamper(silo.at(), tamper);
    }

    /// What every silo sent so far.
    pub fn traffic(&self) -> Vec<Traffic> {
        self.core.borrow().traffic()
    }
}

/// Until the bell rings or the time has come.
async fn wait(bell: &Notify, until: Instant) {
    tokio::select! {
        biased;
        () = bell.notified() => {}
        () = sleep_until(until) => {}
    }
}

#[cfg(test)]
mod tests;
