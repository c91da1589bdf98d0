//! Runs one silo over the real network and the real disk, from its start to an orderly end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use mesh::Program;
use methods::Learner;
use protocol::{Epoch, Epochs, Hash, Record, Time, envelope, member};
use silo::{Checks, Journal, Network, Notice, Stopped, Surroundings};
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::admission;
use super::amendments::{Amendments, HeardOf};
use super::asking::{Asking, Telling};
use super::audited;
use super::before::Before;
use super::columns::Columns;
use super::config::{Configured, Institution, SetupError};
use super::error::NodeError;
use super::farewell;
use super::formats;
use super::given::{WithStart, fetch};
use super::health::{Health, ROUNDS};
use super::knocks;
use super::leaving::Leaving;
use super::links::Links;
use super::living::{Living, examine, living};
use super::locked;
use super::news::News;
use super::opening::{keep_in_force, print_note, serve_status};
use super::output::Output;
use super::present::{Place, Present, place, protocol_records};
use super::recovery::{Recoveries, Wish};
use super::reporter::Reporter;
use super::role::{Role, serving, silo_config};
use super::signals::{Signal, Signals};
use super::signature::{Owed, Signature};
use super::unreachable::Unreachable;
use super::waiting::Waiting;
use super::watch::Watch;
use super::weaknesses::weaknesses;
use crate::audit::{Questions, Tap};
use crate::events::NodeEvent;
use crate::identity;
use crate::model::{self, Held};
use crate::pool::Workers;
use crate::status::document::Round;
use crate::store::{self, OpenError, Opened, Owner};

/// Size in bytes of the cache of blobs in memory.
const CACHE: usize = 64 << 20;
/// Threads of the network.
const NETWORK_THREADS: usize = 2;
/// How long the node waits for the end of each part.
const GOODBYE: Duration = Duration::from_secs(10);
/// Most events that wait between the network and the silo.
const EVENTS: usize = 64;
/// Most commands that wait between the silo and the audit log.
const COMMANDS: usize = 1024;

/// Options of a run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Whether to end when no member needs this node any more, instead of at a signal only.
    pub until_done: bool,
    /// How long the node then waits for a member that cannot be reached; `None`: 30 seconds or 20
    /// beats, whichever is longer.
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

/// How an epoch ended for a node.
enum Ended {
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
    options: &Options,
    output: &Output,
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
pub fn run(institution: &Institution, options: &Options, output: &Output) -> Result<(), NodeError> {
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
        let before = Before::of(&institution.state, &records, ROUNDS);
        let first = institution.agreement.epoch.clone();
        let epochs = Epochs::replay(first, protocol_records(records))?;
        formats::check(&epochs.now)?;
        match place(institution, &epochs) {
            Place::Member(present) => {
                was_member = true;
                let ended = run_epoch(
                    institution,
                    &present,
                    opened,
                    (before.rounds(&epochs), before.held),
                    (lost, options),
                    signals.signal(),
                    output,
                )?;
                if let Ended::Left = ended {
                    return Ok(());
                }
            }
            place @ (Place::Outside | Place::Left)
                if options.wait_for_admission
                    && !(was_member
                        && options.follow_recovery.is_none()
                        && matches!(place, Place::Left)) =>
            {
                let runtime = network_runtime()?;
                let follow = options.follow_recovery;
                let signal = signals.signal();
                let passages =
                    admission::wait(institution, &epochs, &runtime, (signal, follow), output)?;
                let Some(passages) = passages else {
                    return Ok(());
                };
                let record = |passage: protocol::message::Passage| {
                    silo::Record::Protocol(Record::Final {
                        blocks: passage.blocks,
                        proof: passage.proof,
                    })
                };
                opened
                    .journal
                    .commit(passages.into_iter().map(record).collect())?;
            }
            Place::Outside => return Err(outside(institution)),
            Place::Left => {
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

fn outside(institution: &Institution) -> NodeError {
    NodeError::Outside {
        key: institution.key.public(),
        identity: institution.identity.clone(),
        federation: institution.agreement.epoch.charter.name.clone(),
    }
}

fn open_state(institution: &Institution, lost: bool) -> Result<Opened, OpenError> {
    let owner = Owner {
        federation: institution.agreement.epoch.federation,
        me: institution.me,
        key: institution.key.clone(),
    };
    let open = match lost {
        true => store::open_lost,
        false => store::open,
    };
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

/// Runs a node in one epoch.
fn run_epoch(
    first: &Institution,
    present: &Present,
    opened: Opened,
    (rounds, held): (Vec<Round>, Option<Held>),
    (lost, options): (bool, &Options),
    mut signal: Signal,
    output: &Output,
) -> Result<Ended, NodeError> {
    let institution = &present.institution;
    let epoch = institution.agreement.epoch.clone();
    // After a change the node runs without a signature, and contributes nothing.
    if epoch.number == 0 && first.is_first_member() {
        first.consented()?;
    }
    if !fetch(present, network_runtime, &mut signal, output)? {
        return Ok(Ended::Left);
    }
    let (living, bystander) = match living(present)? {
        Ok(living) => (Some(living), None),
        Err(why) => (None, Some(why)),
    };
    let owed = match &present.signature {
        Signature::Owed(owed) if bystander.is_none() => Some((**owed).clone()),
        _ => None,
    };
    let Opened {
        journal,
        blobs,
        notes,
    } = opened;
    let amendments = Amendments::of(&institution.state);
    amendments.only_of(epoch.id, &present.in_force);
    match first.agreement.to_toml() {
        Ok(agreed) => store::keep_agreement(&institution.state, &agreed)?,
        Err(why) => tracing::warn!("the agreement is not kept beside the journal: {why}"),
    }
    let mut warnings = Vec::new();
    for note in &notes {
        warnings.push(print_note(output, note));
    }
    if let Some(Living {
        start, equipment, ..
    }) = &living
    {
        if let Some(preparation) = &equipment.plain.preparation {
            model::keep_preparation(&institution.state, preparation)?;
        }
        if let Some(start) = start {
            model::keep_start(&institution.state, start)?;
        }
    }
    let outer = network_runtime()?;
    let mut config = mesh::Config::new(epoch.federation, institution.listen.clone());
    config.epoch = epoch.id;
    config.guests = present.guests.clone();
    config.stay = config.stay.max(8 * epoch.beat());
    config.witnesses = epoch.roster.faulty() + 1;
    config.program = Program::this(Some(epoch.format));
    config.discovery = epoch.charter.discovery;
    config.frame = envelope::limit(&epoch);
    config.spool = Some(blobs.spool());
    let telling = Telling::default();
    config.tells = telling.tells(institution.agreement.status);
    (config.relay, config.dials_only) = (institution.relay, !institution.reachable);
    let (secret, roster) = (institution.key.to_bytes(), institution.roster.clone());
    let mesh = outer.block_on(mesh::spawn(outer.handle(), config, secret, roster))?;
    let name = epoch.roster.name(institution.me);
    let event = NodeEvent::Start {
        silo: name.into(),
        member: institution.me.0,
        members: epoch.roster.len(),
        rounds: epoch.charter.rounds,
        federation: format!("{:#}", epoch.federation),
        addresses: mesh.addresses.clone(),
        byzantine_members_tolerated: epoch.roster.faulty(),
        epoch: epoch.number,
    };
    let line = format!(
        "{name}, one of {} in the federation {} ({}), listens at {}",
        epoch.roster.len(),
        epoch.charter.name,
        epoch.federation,
        mesh.addresses.join(", "),
    );
    output.print(SystemTime::now(), 0.0, event, &line);
    output.begin();
    if epoch.number > 0 {
        keep_in_force(institution, output);
    }
    outer.spawn(knocks::print(mesh.notices, epoch.clone(), output.clone()));
    let own = living.as_ref();
    let own = own.map_or(0, |living| living.equipment.equipped.samples());
    for (event, line) in weaknesses(&institution.agreement, institution.me, own) {
        output.print(SystemTime::now(), 0.0, event, &format!("warning: {line}"));
        warnings.push(line);
    }
    let peers = mesh.peers.clone();
    let (addresses, state) = (mesh.addresses.clone(), institution.state.clone());
    let health = Health::new(epoch.clone(), institution.me, addresses, peers, state);
    health.resumes(rounds);
    telling.begins(&health);
    let shown = institution.agreement.status;
    let asking = Asking::new(health.clone(), mesh.asker.clone(), shown);
    let now = SystemTime::now();
    warnings.iter().for_each(|text| health.warning(now, text));
    let address = options.http.or(institution.http);
    let sockets = serve_status(institution, address, (&health, &asking), &outer, output)?;
    let news = News::new(
        output.clone(),
        epoch.clone(),
        living.as_ref().map(|living| living.equipment.clone()),
        health.clone(),
        (
            institution.state.clone(),
            present.lineage.clone(),
            institution.agreement.max_weight,
        ),
    );
    let goes_on = held.clone().map(|held| (held, institution.agreement.seed));
    let (reporter, ending) = Reporter::start(news, goes_on, output.clone());

    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let (key, me) = (institution.key.clone(), institution.me);
    let mut member = member::Config::new(epoch.clone(), me, key, seed);
    member.follow = options.follow_recovery;
    member.examine = examine(&institution.agreement);
    member.bystander = bystander.clone();
    member.paused = owed.is_some();
    let serving = living
        .as_ref()
        .map(|living| serving(institution, living.equipment.clone(), held.as_ref()));
    let mut columns = living
        .as_ref()
        .map(|living| Columns::new(institution, living.equipment.equipped.clone()));
    let role = match &living {
        Some(living) => Role::Learner(Box::new(silo_config(present, living, member, lost))),
        None => Role::Bystander(Box::new(member), lost, present.former.clone()),
    };
    let leaving = Leaving::new(&epoch, options.grace, Instant::now());
    let leaving = Arc::new(Mutex::new(leaving));
    let (events, to_silo) = mpsc::channel(EVENTS);
    let (commands, sent) = mpsc::channel(COMMANDS);
    let questions = Questions::default();
    let log = audited::open(institution, journal.log_note(), (output, &health))?;
    let tap = Tap {
        log,
        questions: questions.clone(),
        names: names(&epoch),
        me: institution.me,
    };
    let logged = outer.spawn(tap.pass(sent, mesh.commands));
    let links = Links {
        leaving: leaving.clone(),
        reporter: reporter.clone(),
        names: names(&epoch),
        peers: mesh.peers.clone(),
        questions,
        began: Instant::now(),
    };
    outer.spawn(links.pass(mesh.events, events));
    let network = Network {
        commands,
        events: to_silo,
    };
    let lines = output.clone();
    let heard = leaving.clone();
    let waiting = Arc::new(Mutex::new(
        Waiting::new(&epoch).with(bystander, owed.as_ref().map(|owed: &Owed| owed.line())),
    ));
    let waits = waiting.clone();
    let (serves, seen, told) = (serving.clone(), health.clone(), reporter.clone());
    let mut heard_of = HeardOf {
        amendments: amendments.clone(),
        institution: institution.clone(),
        output: output.clone(),
    };
    let recoveries = Recoveries {
        institution: institution.clone(),
        output: output.clone(),
    };
    let feed = Box::new(move |at: Time, notice: &Notice| {
        let now = SystemTime::now();
        locked(&heard).observe(notice, Instant::now());
        locked(&waits).observe(notice);
        seen.observe(now, notice);
        told.notice(now, at, notice);
        if let Some(serves) = &serves {
            serves.observe(notice);
        }
        heard_of.observe(at, notice);
        recoveries.observe(at, notice);
        if let Some(columns) = &mut columns {
            columns.notice(at.elapsed().as_secs_f64(), notice, &lines);
        }
    });
    let start = living.as_ref().and_then(|living| living.start.as_ref());
    let start = start.map(|start| (Hash(start.hash()), start.document()));
    let pool = Workers::all_cores();
    let inner = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let watch = Watch {
        leaving,
        until_done: options.until_done,
        waiting,
        serving,
        health,
        reporter: reporter.clone(),
        unreachable: Unreachable::default(),
        sockets,
        names: names(&epoch),
        amendments,
        given: BTreeMap::new(),
        unused: BTreeSet::new(),
        wish: Wish::of(&institution.state, &epoch),
        wanted: None,
        owed,
        epoch: epoch.clone(),
    };
    let (beat, print_work) = (epoch.beat(), output.clone());
    let ended = silo::block_on(inner, async move {
        let surroundings = Surroundings {
            network,
            journal: Box::new(journal),
            blobs: Arc::new(WithStart { blobs, start }),
            pool,
            checks: Checks::new(false),
            feed,
            origin: tokio::time::Instant::now(),
        };
        run_silo(role, surroundings, watch, signal, (beat, print_work)).await
    });
    reporter.end(&ending, GOODBYE);
    goodbye(outer, logged, mesh.ended);
    ended
}

/// Runs the silo until a signal, its own end, or the end that `watch` decides on.
async fn run_silo(
    role: Role,
    surroundings: Surroundings,
    mut watch: Watch,
    mut signal: Signal,
    (beat, output): (Duration, Output),
) -> Result<Ended, NodeError> {
    let began = Instant::now();
    let mut handle = role.spawn(surroundings)?;
    let activities = handle.activities();
    activities.heard_by(move |activity, took| {
        let work = activity.name().to_owned();
        let event = match took {
            None => NodeEvent::WorkBegins { work },
            Some(took) => NodeEvent::WorkEnds {
                work,
                seconds: took.as_secs_f64(),
            },
        };
        output.print(SystemTime::now(), began.elapsed().as_secs_f64(), event, "");
    });
    watch.health.runs(activities);
    let mut tick = interval(beat.clamp(Duration::from_millis(50), Duration::from_secs(1)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        tokio::select! {
            stopped = handle.stopped() => return match stopped {
                Stopped::EpochOver => Ok(Ended::EpochOver),
                other => Err(NodeError::Stopped(other)),
            },
            signal = signal.received() => break signal,
            _ = tick.tick() => {
                watch.approve(&handle, began);
                watch.resume(&handle, began);
                watch.recover(&handle);
                watch.health.tick(handle.counts(), locked(&watch.waiting).reason());
                watch.report_waiting(began);
                watch.report_unreachable(began);
                watch.report_serving();
                if let Some(why) = watch.why_leave() {
                    break why;
                }
            }
        }
    };
    let event = NodeEvent::Leaving { why: why.into() };
    let at = began.elapsed().as_secs_f64();
    watch.reporter.print(at, event, format!("ending: {why}"));
    // Before the state folder is free for another process.
    watch.sockets.clear();
    handle.stop();
    match timeout(GOODBYE, handle.stopped()).await {
        Ok(Stopped::Asked | Stopped::EpochOver) | Err(_) => Ok(Ended::Left),
        Ok(other) => Err(NodeError::Stopped(other)),
    }
}

/// Waits for the network to close its connections. Work that still runs is abandoned.
fn goodbye(outer: Runtime, log: JoinHandle<()>, mesh: JoinHandle<()>) {
    outer.block_on(async {
        let ending = log.abort_handle();
        if timeout(GOODBYE, log).await.is_err() {
            // It shares the journal, which the next epoch opens again.
            ending.abort();
            tracing::warn!("the end of the audit log was not written in time");
        }
        if timeout(GOODBYE, mesh).await.is_err() {
            tracing::warn!("the network did not end in time");
        }
    });
    outer.shutdown_timeout(Duration::from_secs(1));
}

/// The members' names, in the order of the roster.
fn names(epoch: &Epoch) -> Vec<String> {
    let silos = epoch.roster.silos().iter();
    silos.map(|silo| silo.name.clone()).collect()
}
