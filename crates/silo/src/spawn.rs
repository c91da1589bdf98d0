//! Starts a silo.

use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr, System};
use bytes::Bytes;
use methods::strategy::{Names, largest_contribution};
use protocol::member::{Config, Start};
use protocol::{Hash, Member};
use tokio::sync::oneshot;

use crate::activity::Activities;
use crate::actors::mesh::{MeshActor, Opener};
use crate::actors::messages::Notices;
use crate::actors::observer::ObserverActor;
use crate::actors::silo::{MemberAndJournal, SiloActor};
use crate::actors::worker::{CurrentRound, WaitingWork, WorkerActor};
use crate::clock::Clock;
use crate::config::SiloConfig;
use crate::environment::{SiloEnvironment, Site};
use crate::error::SpawnError;
use crate::handle::SiloHandle;
use crate::notice::Notice;
use crate::record::JournalRecord;
use crate::restore::{Restored, restore, restore_bystander};
use crate::run_state::{Counters, RunState};
use crate::secrets::RoundSecrets;
use crate::site::{LedgerReminders, OwnContributions, SiteRules};
use crate::spans::Spans;
use crate::trimmed::TrimmedJournal;

/// Starts a silo on the calling thread. All its input and output goes through `environment`.
///
/// # Errors
/// [`SpawnError`]: no actix system, a key, strategy or initial state other than the parameter set's, a
/// journal or blobs that cannot be used.
pub fn spawn(config: SiloConfig, environment: SiloEnvironment) -> Result<SiloHandle, SpawnError> {
    at_home(&config.member)?;
    let epoch = config.member.epoch.clone();
    if config.strategy.names() == Names::Shown && !epoch.protocol.shows_names() {
        return Err(SpawnError::Names(config.strategy.name()));
    }
    let size = largest_contribution(&*config.strategy, &*config.learner);
    let limit = epoch.protocol.blob_limit;
    if size > limit {
        return Err(SpawnError::Limit { size, limit });
    }
    let SiloEnvironment {
        network,
        mut journal,
        blobs,
        pool,
        checks,
        feed,
        origin,
        site,
        secrets,
    } = environment;
    let restored = restore(&config, &mut *journal, &*blobs)?;
    let last = &restored.base;
    let mut rules = config.member.clone();
    rules.ended = config.strategy.ends(&last.state).then_some(last.round);
    let contributions = OwnContributions::of(&config);
    let site = SiteRules::new(site, &contributions, &restored.records);
    let found = found(&restored);
    let silo = RestoredSilo {
        rules,
        start: restored.start,
        begins: restored.begins,
        records: restored.records,
        found,
        former: config.former.clone(),
        reminders: site.reminders(contributions),
    };
    let (checked, pooled, stored) = (checks.clone(), pool.clone(), blobs.clone());
    let worker = move |around: &Around, secrets: Box<dyn RoundSecrets>| {
        WorkerActor {
            config: Arc::new(config),
            blobs: stored,
            pool: pooled,
            checks: checked,
            mesh: around.mesh.clone().recipient(),
            clock: around.clock,
            run_state: around.run_state.clone(),
            activities: around.activities.clone(),
            base: restored.base,
            own: restored.own,
            trained: restored.trained,
            prepared: restored.prepared,
            secrets,
            opening: None,
            rest: None,
            applying: false,
            kept: restored.kept,
            void: restored.void,
            again: restored.again,
            round: CurrentRound::default(),
            wants: WaitingWork::default(),
            site,
        }
        .start()
    };
    let environment = SiloEnvironment {
        network,
        journal,
        blobs,
        pool,
        checks,
        feed,
        origin,
        site: Site::default(),
        secrets,
    };
    Ok(start(silo, environment, Some(worker)))
}

/// Starts a silo that takes no part in rounds, because it cannot live under the agreement in force
/// (`member.bystander` says why): it needs neither rows nor a strategy, adopts no model, and votes on
/// changes of the agreement. `lost` and `former` are those of [`SiloConfig`].
///
/// # Errors
/// [`SpawnError`]: no actix system, a key other than the roster's, a journal that cannot be used.
pub fn bystand(
    member: Config,
    lost: bool,
    former: Vec<(Hash, Bytes)>,
    mut environment: SiloEnvironment,
) -> Result<SiloHandle, SpawnError> {
    at_home(&member)?;
    let past = restore_bystander(
        &member,
        lost,
        &mut *environment.journal,
        &*environment.blobs,
    )?;
    let silo = RestoredSilo {
        rules: member,
        start: past.start,
        begins: past.begins,
        records: past.records,
        found: Vec::new(),
        former,
        reminders: None,
    };
    let worker = None::<fn(&Around, Box<dyn RoundSecrets>) -> Addr<WorkerActor>>;
    Ok(start(silo, environment, worker))
}

/// Returns whether there is an actix system, and the key is that of the member.
fn at_home(member: &Config) -> Result<(), SpawnError> {
    if System::try_current().is_none() {
        return Err(SpawnError::NoSystem);
    }
    let key = member.epoch.roster.key(member.me).map(|key| key.public());
    if key == Some(member.key.public()) {
        Ok(())
    } else {
        Err(SpawnError::Identity(member.me))
    }
}

/// Returns what a silo that was restored tells of its past.
fn found(restored: &Restored) -> Vec<Notice> {
    let missing = restored.missing.iter().copied().map(Notice::Missing);
    let base = &restored.base;
    let searched = Notice::searched(base.round, &base.voids);
    missing.chain(searched).collect()
}

/// A silo as it was restored.
struct RestoredSilo {
    rules: Config,
    start: Start,
    begins: bool,
    records: Vec<JournalRecord>,
    /// What is to be told of that.
    found: Vec<Notice>,
    former: Vec<(Hash, Bytes)>,
    reminders: Option<LedgerReminders>,
}

/// What a worker needs of the other actors.
struct Around {
    mesh: Addr<MeshActor>,
    clock: Clock,
    run_state: Rc<RunState>,
    activities: Activities,
}

/// Starts the actors of a silo.
fn start(
    silo: RestoredSilo,
    environment: SiloEnvironment,
    worker: Option<impl FnOnce(&Around, Box<dyn RoundSecrets>) -> Addr<WorkerActor>>,
) -> SiloHandle {
    let (epoch, me) = (silo.rules.epoch.clone(), silo.rules.me);
    let keep = epoch.protocol.keep_rounds as usize;
    let journal = TrimmedJournal::new(environment.journal, silo.records, keep);
    let listening = matches!(silo.start, Start::Lost).then_some(Notice::Listening);
    let found: Vec<_> = listening.into_iter().chain(silo.found).collect();
    let clock = Clock(environment.origin);
    let mut effects = Vec::new();
    let member = Member::new(silo.rules, silo.start, clock.now(), &mut effects);

    let (end, ended) = oneshot::channel();
    let run_state = RunState::new(end);
    let counters = Rc::<Counters>::default();
    let activities = Activities::default();
    let span = tracing::error_span!("silo", name = epoch.roster.name(me), member = %me);
    let spans = Rc::new(Spans::new(span));
    let observer = ObserverActor::new(spans.clone(), environment.feed, run_state.clone()).start();
    if !found.is_empty() {
        observer.do_send(Notices {
            at: clock.now(),
            list: found,
        });
    }
    let notices = observer.clone().recipient();
    let opener = Opener {
        epoch,
        checks: environment.checks,
        pool: environment.pool.clone(),
        former: silo.former.into(),
    };
    let mesh = MeshActor::new(
        environment.network,
        opener,
        notices,
        clock,
        run_state.clone(),
        counters.clone(),
    )
    .start();
    let around = Around {
        mesh: mesh.clone(),
        clock,
        run_state: run_state.clone(),
        activities: activities.clone(),
    };
    let worker = worker.map(|start| start(&around, environment.secrets));
    let weak = Rc::downgrade(&run_state);
    let silo = SiloActor {
        seat: Some(MemberAndJournal::new(
            member,
            journal,
            silo.begins,
            effects,
            silo.reminders,
        )),
        pool: environment.pool,
        blobs: environment.blobs,
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
    SiloHandle {
        silo,
        run_state: weak,
        ended,
        reason: None,
        counters,
        activities,
    }
}

/// Runs `future` inside an actix system on `runtime`, whose clock the silos use. The runtime must be
/// a current-thread one if its clock is paused.
pub fn block_on<F: Future>(runtime: tokio::runtime::Runtime, future: F) -> F::Output {
    System::with_tokio_rt(move || runtime).block_on(future)
}
