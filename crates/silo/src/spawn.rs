//! How a silo comes to life.

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, System};
use methods::strategy::{Names, largest_contribution};
use protocol::member::Start;
use protocol::{Hash, Member};
use tokio::sync::oneshot;

use crate::actors::mesh::{Door, MeshActor};
use crate::actors::observer::{Notices, ObserverActor};
use crate::actors::silo::SiloActor;
use crate::actors::worker::{OnRound, Waiting, WorkerActor};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::handle::{Counters, Life, SiloHandle};
use crate::notice::Notice;
use crate::outcome::FORMAT;
use crate::restore::restore;
use crate::surroundings::{StoreError, Surroundings};

/// Why a silo does not come to life.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpawnError {
    /// Outside an actix system.
    #[error("a silo needs a running actix system: call `silo::spawn` inside `silo::block_on`")]
    NoSystem,
    /// Not the member that it says it is.
    #[error("the key is not that of member {0} in the roster: check the identity file")]
    Identity(protocol::MemberIndex),
    /// The strategy and the charter disagree on names.
    #[error(
        "strategy {0:?} keeps state per member, but the charter removes names: \
         set names = \"shown\" in the charter, or choose another strategy"
    )]
    Names(&'static str),
    /// The agreed model is larger than the agreed limit.
    #[error(
        "a contribution of this model has {size} bytes, the charter allows {limit}: raise \
         blob-limit in the charter, or agree on a smaller model"
    )]
    Limit {
        /// Bytes of a contribution.
        size: u64,
        /// The charter's `blob_limit`.
        limit: u64,
    },
    /// The initial model is not the agreed one.
    #[error(
        "the federation starts from {agreed}, this silo's model family and seed give {ours}: \
         the task, the model or the version of the program differs from what was agreed"
    )]
    Start {
        /// The charter's `start`.
        agreed: Hash,
        /// What this silo has.
        ours: Hash,
    },
    /// The journal cannot be read or begun.
    #[error("the journal: {0}")]
    Journal(#[from] StoreError),
    /// A blob that the journal relies on is gone, and nobody else has it.
    #[error(
        "the journal is at round {round}, but its blob {hash} is gone or damaged, and there is no \
         other member to fetch it from: restore the blobs from a backup"
    )]
    Missing {
        /// The round.
        round: u64,
        /// The blob.
        hash: Hash,
    },
    /// A later version of the program wrote the adopted outcome.
    #[error(
        "the outcome of round {round} has document format {found}, this program reads format \
         {FORMAT}: use the program that wrote it, or a newer one"
    )]
    Newer {
        /// The round.
        round: u64,
        /// Its format.
        found: u32,
    },
    /// What the journal relies on does not fit together.
    #[error(
        "what was kept of round {round} does not fit together ({why}): start once with \
         --journal-lost, which keeps the journal under another name, begins a new one and listens \
         until it is safe to vote again"
    )]
    Damaged {
        /// The round.
        round: u64,
        /// What is wrong.
        why: String,
    },
}

/// Brings a silo to life on the calling thread: the only way there is. Everything it does to the
/// world goes through `surroundings`.
///
/// # Errors
/// [`SpawnError`]: no actix system, a key, strategy or start that is not the charter's, a journal
/// or blobs from which it cannot go on.
pub fn spawn(config: SiloConfig, surroundings: Surroundings) -> Result<SiloHandle, SpawnError> {
    if System::try_current().is_none() {
        return Err(SpawnError::NoSystem);
    }
    let epoch = config.member.epoch.clone();
    let me = config.member.me;
    let key = epoch.roster.key(me).map(|key| key.public());
    if key != Some(config.member.key.public()) {
        return Err(SpawnError::Identity(me));
    }
    if config.strategy.names() == Names::Shown && !epoch.charter.names_shown {
        return Err(SpawnError::Names(config.strategy.name()));
    }
    let size = largest_contribution(&*config.strategy, &*config.learner);
    let limit = epoch.charter.blob_limit;
    if size > limit {
        return Err(SpawnError::Limit { size, limit });
    }
    let Surroundings {
        network,
        mut journal,
        blobs,
        pool,
        checks,
        feed,
        origin,
    } = surroundings;
    let restored = restore(&config, &mut *journal, &*blobs)?;
    let listening = matches!(restored.start, Start::Lost).then_some(Notice::Listening);
    let begins = restored.begins;
    let gone = restored.gone.into_iter().map(Notice::Gone);
    let found: Vec<_> = listening.into_iter().chain(gone).collect();
    let clock = Clock(origin);
    let mut effects = Vec::new();
    let member = Member::new(
        config.member.clone(),
        restored.start,
        clock.now(),
        &mut effects,
    );

    let (gone, waits) = oneshot::channel();
    let life = Life::new(gone);
    let counters = Rc::<Counters>::default();
    let progress = Arc::default();
    let span = tracing::error_span!("silo", name = epoch.roster.name(me), member = %me);
    let observer = ObserverActor::new(span, feed, life.clone()).start();
    if !found.is_empty() {
        observer.do_send(Notices {
            at: clock.now(),
            list: found,
        });
    }
    let told = observer.clone().recipient();
    let door = Door {
        epoch,
        checks: checks.clone(),
        pool: pool.clone(),
    };
    let mesh = MeshActor::new(network, door, told, clock, life.clone(), counters.clone()).start();
    let worker = WorkerActor {
        config: Arc::new(config),
        blobs: blobs.clone(),
        pool,
        checks,
        mesh: mesh.clone().recipient(),
        clock,
        life: life.clone(),
        progress: Arc::clone(&progress),
        ground: restored.ground,
        own: restored.own,
        trained: restored.trained,
        applying: false,
        kept: restored.kept,
        again: restored.again,
        round: OnRound::default(),
        wants: Waiting::default(),
    }
    .start();
    let weak = Rc::downgrade(&life);
    let silo = SiloActor {
        member,
        journal,
        begins,
        blobs,
        mesh,
        worker,
        observer,
        clock,
        life,
        counters: counters.clone(),
        effects,
        timer: None,
    }
    .start();
    Ok(SiloHandle {
        silo,
        life: weak,
        gone: waits,
        reason: None,
        counters,
        progress,
    })
}

/// Runs `future` inside an actix system on `runtime`, which decides what time is. The runtime must
/// be a current-thread one if its clock is paused.
pub fn block_on<F: Future>(runtime: tokio::runtime::Runtime, future: F) -> F::Output {
    System::with_tokio_rt(move || runtime).block_on(future)
}
