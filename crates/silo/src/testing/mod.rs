//! Environment for tests: everything in memory, virtual time, a learner with a known optimum.
#![allow(clippy::unwrap_used)]

mod answering;
mod hub;
mod learner;
mod records;
mod stores;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use methods::Strategy;
use methods::learner::{Optimiser, Training};
use methods::strategy::{FedAvg, OwnRadius, WeightRule};
use protocol::member::Config;
use protocol::net::{Command, Event};
use protocol::roster::Silo;
use protocol::{Epoch, Genesis, MemberIndex, ProtocolParameters, SecretKey, Time};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub(crate) use answering::with_answers;
pub(crate) use hub::Hub;
pub(crate) use learner::{learner, model, trained};
pub(crate) use records::{adopted, applied};
pub(crate) use stores::{MemoryBlobs, MemoryJournal, TestPool, full};

use crate::{
    Checks, Network, Notice, SeededSecrets, SiloConfig, SiloEnvironment, Site, genesis_outcome,
};

/// Runs a test in virtual time.
pub(crate) fn virtually<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    crate::block_on(runtime, future)
}

/// The epoch of a federation for tests.
pub(crate) fn epoch(n: u16, rounds: u64) -> Arc<Epoch> {
    epoch_with(n, rounds, |_| {})
}

/// The same with a changed parameter set.
pub(crate) fn epoch_with(
    n: u16,
    rounds: u64,
    change: impl FnOnce(&mut ProtocolParameters),
) -> Arc<Epoch> {
    epoch_declaring(n, rounds, None, change)
}

/// The same, in which every silo declares these rows.
pub(crate) fn epoch_declaring(
    n: u16,
    rounds: u64,
    rows: Option<u64>,
    change: impl FnOnce(&mut ProtocolParameters),
) -> Arc<Epoch> {
    let silo = |i| Silo {
        name: format!("silo {i}"),
        key: key(i).public(),
        rows,
    };
    let mut protocol = ProtocolParameters {
        start: genesis_outcome(&*strategy(), &learner(0.0), 0).0,
        rounds,
        patience: 4,
        view_timeout: 60,
        min_contributions: (n + (n - 1) / 3) / 2 + 1,
        blob_limit: 1 << 20,
        keep_rounds: 1,
        // With this name silo 2 does not lead the first view, in which a test kills it.
        ..ProtocolParameters::small("a")
    };
    change(&mut protocol);
    if let Some(masked) = protocol.privacy.masked() {
        protocol.min_contributions = protocol.min_contributions.max(masked.smallest_sum);
    }
    let genesis = Genesis {
        silos: (0..n).map(silo).collect(),
        protocol,
    };
    Arc::new(Epoch::first(&genesis).unwrap())
}

pub(crate) fn key(i: u16) -> SecretKey {
    SecretKey::from_bytes(&[i as u8 + 1; 32])
}

/// FedAvg with equal weights.
pub(crate) fn strategy() -> Arc<dyn Strategy> {
    let training = Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.5,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    Arc::new(FedAvg::new(training, WeightRule::Equal))
}

/// A silo whose optimum is its number.
pub(crate) fn config(epoch: &Arc<Epoch>, me: u16) -> SiloConfig {
    SiloConfig {
        member: Config::new(epoch.clone(), MemberIndex(me), key(me), [0; 32]),
        learner: Arc::new(learner(f64::from(me))),
        strategy: strategy(),
        initial_seed: 0,
        max_model_norm: f64::INFINITY,
        max_weight: None,
        encoding: Default::default(),
        radius: OwnRadius::default(),
        seed: u64::from(me),
        journal_lost: false,
        personal: None,
        former: Vec::new(),
        past: Vec::new(),
    }
}

/// One silo's environment, which the test can inspect and change.
#[derive(Clone)]
pub(crate) struct Rig {
    pub(crate) journal: MemoryJournal,
    pub(crate) blobs: Arc<MemoryBlobs>,
    pub(crate) checks: Arc<Checks>,
    pub(crate) notices: Rc<RefCell<Vec<(Time, Notice)>>>,
    pub(crate) origin: Instant,
    pub(crate) site: Site,
    /// Number of starts of the silo. Every start draws other secrets.
    pub(crate) starts: Rc<Cell<u8>>,
}

/// The network's ends.
pub(crate) struct NetworkEnds {
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) events: mpsc::Sender<Event>,
}

impl Rig {
    pub(crate) fn new(checks: Arc<Checks>) -> Self {
        Self {
            journal: MemoryJournal::default(),
            blobs: Arc::default(),
            checks,
            notices: Rc::default(),
            origin: Instant::now(),
            site: Site::default(),
            starts: Rc::default(),
        }
    }

    /// Environment for a restart, with the disk of earlier starts.
    pub(crate) fn environment(&self) -> (SiloEnvironment, NetworkEnds) {
        let (commands, ends_commands) = mpsc::channel(256);
        let (ends_events, events) = mpsc::channel(16);
        let notices = self.notices.clone();
        let start = self.starts.get();
        self.starts.set(start.wrapping_add(1));
        let environment = SiloEnvironment {
            network: Network { commands, events },
            journal: Box::new(self.journal.clone()),
            blobs: self.blobs.clone(),
            pool: Arc::new(TestPool::default()),
            checks: self.checks.clone(),
            feed: Box::new(move |at, notice| notices.borrow_mut().push((at, notice.clone()))),
            origin: self.origin,
            site: self.site.clone(),
            secrets: Box::new(SeededSecrets::new(&[start; 32])),
        };
        (
            environment,
            NetworkEnds {
                commands: ends_commands,
                events: ends_events,
            },
        )
    }

    /// Models adopted so far, with their rounds and outcomes.
    pub(crate) fn adopted(&self) -> Vec<(u64, protocol::Hash, f32)> {
        let notices = self.notices.borrow();
        notices
            .iter()
            .filter_map(|(_, notice)| match notice {
                Notice::Adopted {
                    round,
                    outcome,
                    model,
                    ..
                } => Some((*round, *outcome, model.values()[0])),
                _ => None,
            })
            .collect()
    }
}
