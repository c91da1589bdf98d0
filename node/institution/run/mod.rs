//! Runs one silo over the real network and the real disk, from its start to an orderly end.

mod beside;
mod connection;
mod epoch;
mod farewell;
mod leaving;
mod member_links;
mod part;
mod running;
mod shared;
mod tick;
mod told;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use methods::Learner;
use protocol::{Epoch, Epochs, Hash, Record};
use silo::Journal;
use tokio::runtime::{self, Runtime};

use crate::events::NodeEvent;
use crate::identity;
use crate::institution::agreement::in_force::{Membership, Present, place, protocol_records};
use crate::institution::config::{Configured, Institution, SetupError};
use crate::institution::error::NodeError;
use crate::institution::report::format_texts;
use crate::institution::report::health::ROUNDS;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::Signals;
use crate::institution::start::admission;
use crate::institution::start::former_rounds::FormerJournal;
use crate::model::HeldRounds;
use crate::status::document::RoundStatus;
use crate::store::{self, OpenedStore, Owner, StoreOpenError};

/// Size in bytes of the cache of blobs in memory.
const CACHE: usize = 64 << 20;
/// Threads of the network.
const NETWORK_THREADS: usize = 2;
/// How long the node waits for the end of each part.
const GOODBYE: Duration = Duration::from_secs(10);

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct NodeOptions {
    /// Whether to end when no member needs this node any more, instead of at a signal only.
    pub until_done: bool,
    /// How long the node then waits for a member that cannot be reached; `None`: 30 seconds or 20
    /// heartbeats, whichever is longer.
    pub grace: Option<Duration>,
    /// Begin a new journal after the old one was lost or damaged. The silo may have voted before, so
    /// it only listens until it is safe to vote. What is left of the old journal is kept under
    /// another name.
    pub journal_lost: bool,
    /// Whether to wait until the members admit this institution, if its key is in no agreement.
    pub wait_for_admission: bool,
    /// The id of a recovery to follow that this institution did not sign.
    pub follow_recovery: Option<Hash>,
    /// Where to serve the page and the metrics, instead of where the configuration says.
    pub http: Option<SocketAddr>,
}

/// What a node begins an epoch with.
struct Begin<'a> {
    /// The institution with the first agreement.
    first: &'a Institution,
    /// The institution in the epoch in force.
    present: &'a Present,
    /// The rounds that its status shows from before.
    rounds: Vec<RoundStatus>,
    /// The model that its state holds, where it has one.
    held: Option<HeldRounds>,
    /// True if its journal was lost.
    lost: bool,
    options: &'a NodeOptions,
}

/// How an epoch ended for a node.
enum EpochEnd {
    /// A signal, or it was done.
    Left,
    /// The agreement has changed.
    EpochOver,
}

/// Runs the node of the configuration in `file` with this learner, as [`run`] does: for institutions
/// whose training is Rust code of their own (`examples/own_node.rs`). The learner trains and measures
/// the model that the members agreed on; what a strategy needs beyond models are the learner's
/// [capabilities](methods::learner::Capabilities).
///
/// # Errors
/// [`NodeError`]: a wrong configuration, a learner with another model or without what the strategy
/// needs, and as [`run`].
pub fn run_with(
    file: &Path,
    learner: Arc<dyn Learner>,
    options: &NodeOptions,
    output: &OutputLines,
) -> Result<(), NodeError> {
    let configured = Configured::load_with(file, learner).map_err(SetupError::from)?;
    run(&configured.with_any_key()?, options, output)
}

/// Runs a node until a signal, or until it is done, through all changes of the agreement. When it
/// returns, every step that was begun is durable, and the connections to other members are closed in
/// order. `institution` has the agreement that its configuration names.
///
/// # Errors
/// [`NodeError`]: why it did not start, or what stopped it.
pub fn run(
    institution: &Institution,
    options: &NodeOptions,
    output: &OutputLines,
) -> Result<(), NodeError> {
    // A key of nobody leaves no trace in a folder that may be another's.
    let waits = institution.is_first_member() || options.wait_for_admission;
    if !waits && !store::has_journal(&institution.state) {
        return Err(outside(institution));
    }
    let signals = Signals::new()?;
    let mut lost = options.journal_lost;
    let mut in_use = None;
    // A member that leaves while its node runs is not waiting to come back, unless it was left behind
    // by a recovery that it follows.
    let mut was_member = false;
    loop {
        let mut opened = open_state(institution, lost)?;
        if in_use.is_none() {
            in_use = Some(identity::hold(&institution.identity)?);
        }
        let records = opened.journal.load()?;
        let before = FormerJournal::of(&institution.state, &records, ROUNDS);
        let first = institution.agreement.epoch.clone();
        let epochs = Epochs::replay(first, protocol_records(records.clone()))?;
        format_texts::check(&epochs.now)?;
        let place = place(institution, &epochs, &records);
        if let Membership::Left = place {
            silo::forget_ended(&mut opened.journal, &opened.blobs)?;
        }
        match place {
            Membership::Member(present) => {
                was_member = true;
                let begin = Begin {
                    first: institution,
                    present: &present,
                    rounds: before.rounds(&epochs),
                    held: before.held,
                    lost,
                    options,
                };
                let ended = epoch::run(begin, opened, signals.signal(), output)?;
                if let EpochEnd::Left = ended {
                    return Ok(());
                }
            }
            place @ (Membership::Outside | Membership::Left)
                if options.wait_for_admission
                    && !(was_member
                        && options.follow_recovery.is_none()
                        && matches!(place, Membership::Left)) =>
            {
                let runtime = network_runtime()?;
                let follow = options.follow_recovery;
                let signal = signals.signal();
                let passages =
                    admission::wait(institution, &epochs, &runtime, (signal, follow), output)?;
                let Some(passages) = passages else {
                    return Ok(());
                };
                opened
                    .journal
                    .commit(passages.into_iter().map(end_of_epoch).collect())?;
            }
            Membership::Outside => return Err(outside(institution)),
            Membership::Left => {
                let line =
                    "this institution is no member any more; its models stay in its state folder";
                let event = NodeEvent::Left { why: line.into() };
                output.print(SystemTime::now(), 0.0, event, line);
                drop(opened);
                let runtime = network_runtime()?;
                let grace = options.grace.unwrap_or(farewell::GRACE);
                let until = (signals.signal(), options.until_done.then_some(grace));
                return farewell::say(institution, &epochs, &runtime, until, output);
            }
        }
        // What was lost before an epoch ended is known to be lost from its journal.
        lost = false;
    }
}

/// The record of an epoch's last blocks, as a passage proves them.
fn end_of_epoch(passage: protocol::message::Passage) -> silo::JournalRecord {
    silo::JournalRecord::Protocol(Record::Final {
        blocks: passage.blocks,
        proof: passage.proof,
    })
}

fn outside(institution: &Institution) -> NodeError {
    NodeError::Outside {
        key: institution.key.public(),
        identity: institution.identity.clone(),
        federation: institution.agreement.epoch.protocol.name.clone(),
    }
}

fn open_state(institution: &Institution, lost: bool) -> Result<OpenedStore, StoreOpenError> {
    let owner = Owner {
        federation: institution.agreement.epoch.federation,
        me: institution.me,
        key: institution.key.clone(),
    };
    let open = if lost { store::open_lost } else { store::open };
    open(&institution.state, &owner, CACHE)
}

fn network_runtime() -> io::Result<Runtime> {
    runtime::Builder::new_multi_thread()
        .worker_threads(NETWORK_THREADS)
        // Resolves names.
        .max_blocking_threads(4)
        .enable_all()
        .build()
}

/// The members' names, in the order of the roster.
fn names(epoch: &Epoch) -> Vec<String> {
    let silos = epoch.roster.silos().iter();
    silos.map(|silo| silo.name.clone()).collect()
}
