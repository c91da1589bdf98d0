//! Starts a silo.

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, System};
use methods::strategy::{Names, largest_contribution};
use protocol::Member;
use protocol::member::Start;
use tokio::sync::oneshot;

use crate::activity::Activities;
use crate::actors::mesh::{MeshActor, Opener};
use crate::actors::messages::Notices;
use crate::actors::observer::ObserverActor;
use crate::actors::silo::{Seat, SiloActor};
use crate::actors::worker::{CurrentRound, Waiting, WorkerActor};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::error::SpawnError;
use crate::handle::SiloHandle;
use crate::notice::Notice;
use crate::restore::restore;
use crate::run_state::{Counters, RunState};
use crate::spans::Spans;
use crate::surroundings::Surroundings;
use crate::trimmed::TrimmedJournal;

/// Starts a silo on the calling thread. All its input and output goes through `surroundings`.
///
/// # Errors
/// [`SpawnError`]: no actix system, a key, strategy or initial state other than the charter's, a
/// journal or blobs that cannot be used.
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
    let keep = epoch.charter.keep_rounds as usize;
    let journal = TrimmedJournal::new(journal, restored.records, keep);
    let listening = matches!(restored.start, Start::Lost).then_some(Notice::Listening);
    let begins = restored.begins;
    let missing = restored.missing.into_iter().map(Notice::Missing);
    let found: Vec<_> = listening.into_iter().chain(missing).collect();
    let clock = Clock(origin);
    let mut effects = Vec::new();
    let mut rules = config.member.clone();
    let last = &restored.base;
    rules.ended = config.strategy.ends(&last.state).then_some(last.round);
    let member = Member::new(rules, restored.start, clock.now(), &mut effects);

    let (end, ended) = oneshot::channel();
    let run_state = RunState::new(end);
    let counters = Rc::<Counters>::default();
    let activities = Activities::default();
    let span = tracing::error_span!("silo", name = epoch.roster.name(me), member = %me);
    let spans = Rc::new(Spans::new(span));
    let observer = ObserverActor::new(spans.clone(), feed, run_state.clone()).start();
    if !found.is_empty() {
        observer.do_send(Notices {
            at: clock.now(),
            list: found,
        });
    }
    let notices = observer.clone().recipient();
    let opener = Opener {
        epoch,
        checks: checks.clone(),
        pool: pool.clone(),
        former: config.former.clone().into(),
    };
    let mesh = MeshActor::new(
        network,
        opener,
        notices,
        clock,
        run_state.clone(),
        counters.clone(),
    )
    .start();
    let steps = pool.clone();
    let worker = WorkerActor {
        config: Arc::new(config),
        blobs: blobs.clone(),
        pool,
        checks,
        mesh: mesh.clone().recipient(),
        clock,
        run_state: run_state.clone(),
        activities: activities.clone(),
        base: restored.base,
        own: restored.own,
        trained: restored.trained,
        rest: None,
        applying: false,
        kept: restored.kept,
        again: restored.again,
        round: CurrentRound::default(),
        wants: Waiting::default(),
    }
    .start();
    let weak = Rc::downgrade(&run_state);
    let silo = SiloActor {
        seat: Some(Seat::new(member, journal, begins, effects)),
        pool: steps,
        blobs,
        mesh,
        worker,
        observer,
        clock,
        run_state,
        counters: counters.clone(),
        activities: activities.clone(),
        spans,
        timer: None,
    }
    .start();
    Ok(SiloHandle {
        silo,
        run_state: weak,
        ended,
        reason: None,
        counters,
        activities,
    })
}

/// Runs `future` inside an actix system on `runtime`, whose clock the silos use. The runtime must be
/// a current-thread one if its clock is paused.
pub fn block_on<F: Future>(runtime: tokio::runtime::Runtime, future: F) -> F::Output {
    System::with_tokio_rt(move || runtime).block_on(future)
}
