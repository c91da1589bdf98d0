//! Runs one silo over the real network and the real disk, from its start to an orderly end.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agreement::silo_seed;
use learn::DataError;
use mesh::MeshError;
use methods::learner::Task;
use protocol::net::Event;
use protocol::{Epoch, Time, envelope, member};
use serde_json::json;
use silo::{Checks, Network, Notice, SiloConfig, SpawnError, Stopped, Surroundings};
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::columns::Columns;
use super::config::Institution;
use super::consent::Unsigned;
use super::health::Health;
use super::knocks;
use super::leaving::Leaving;
use super::news::News;
use super::output::Output;
use super::reporter::Reporter;
use super::serving::{Job, Serving};
use super::signals::Signals;
use super::unreachable::Unreachable;
use super::waiting::{Change, Waiting};
use crate::audit::{AuditLog, LogError, Questions, Sizes, Tap};
use crate::identity::{self, IdentityError};
use crate::model::{self, Held};
use crate::pool::Workers;
use crate::status::http::{self, HttpError};
use crate::status::{Source, socket};
use crate::store::{self, Note, OpenError, Opened, Owner};

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
    /// Where to serve the page and the metrics, instead of where the configuration says.
    pub http: Option<SocketAddr>,
}

/// Why a node did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The silo's data.
    #[error(transparent)]
    Data(#[from] DataError),
    /// Its journal or blobs.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The log of what it sends.
    #[error(transparent)]
    Audit(#[from] LogError),
    /// Its key.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Its signed consent.
    #[error(transparent)]
    Unsigned(#[from] Unsigned),
    /// Its network.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The page and the metrics.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The silo itself.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It stopped by itself.
    #[error(transparent)]
    Stopped(Stopped),
    /// The operating system refused threads or signals.
    #[error("the node cannot start: {0}")]
    System(#[from] io::Error),
}

impl NodeError {
    /// Whether the files or the command line have to be changed.
    pub fn is_configuration(&self) -> bool {
        match self {
            Self::Data(error) => {
                matches!(error, DataError::Config(_) | DataError::TooManySilos { .. })
            }
            Self::Store(error) => matches!(
                error,
                OpenError::Federation { .. } | OpenError::Member { .. } | OpenError::Key { .. }
            ),
            Self::Mesh(error) => !matches!(error, MeshError::Listen { .. } | MeshError::Start(_)),
            Self::Spawn(error) => matches!(
                error,
                SpawnError::Identity(_)
                    | SpawnError::Names(_)
                    | SpawnError::Limit { .. }
                    | SpawnError::Start { .. }
            ),
            Self::Unsigned(_) => true,
            Self::Http(error) => !matches!(error, HttpError::Listen { .. }),
            Self::Audit(_) | Self::Identity(_) | Self::Stopped(_) | Self::System(_) => false,
        }
    }
}

/// Runs a node until a signal, or until it is done. When it returns, every step that was begun is
/// durable, and the connections to other members are closed in order.
///
/// # Errors
/// [`NodeError`]: why it did not start, or what stopped it.
pub fn run(institution: &Institution, options: &Options, output: &Output) -> Result<(), NodeError> {
    let epoch = institution.agreement.epoch.clone();
    let consent = institution.consented()?;
    let start = institution.start()?;
    let equipment = institution.equipment(start.as_ref())?;
    let owner = Owner {
        federation: epoch.federation,
        me: institution.me,
        key: institution.key.clone(),
    };
    let open = match options.journal_lost {
        true => store::open_lost,
        false => store::open,
    };
    let Opened {
        journal,
        blobs,
        notes,
    } = open(&institution.state, &owner, CACHE)?;
    let _in_use = identity::hold(&institution.identity)?;
    match institution.agreement.to_toml() {
        Ok(agreed) => store::keep_agreement(&institution.state, &agreed)?,
        Err(why) => tracing::warn!("the agreement is not kept beside the journal: {why}"),
    }
    let mut warnings = Vec::new();
    for note in &notes {
        warnings.push(print_note(output, note));
    }
    if let Some(preparation) = &equipment.plain.preparation {
        model::keep_preparation(&institution.state, preparation)?;
    }
    if let Some(start) = &start {
        model::keep_start(&institution.state, start)?;
    }
    let outer = runtime::Builder::new_multi_thread()
        .worker_threads(NETWORK_THREADS)
        // Resolves names.
        .max_blocking_threads(4)
        .enable_all()
        .build()?;
    let mut config = mesh::Config::new(epoch.federation, institution.listen.clone());
    config.discovery = epoch.charter.discovery;
    config.frame = envelope::limit(&epoch);
    let (secret, roster) = (institution.key.to_bytes(), institution.roster.clone());
    let mesh = outer.block_on(mesh::spawn(outer.handle(), config, secret, roster))?;
    let name = epoch.roster.name(institution.me);
    let document = json!({
        "event": "start", "at": 0.0, "silo": name, "member": institution.me.0,
        "members": epoch.roster.len(), "rounds": epoch.charter.rounds,
        "federation": format!("{:#}", epoch.federation), "addresses": mesh.addresses,
        "byzantine-members-tolerated": epoch.roster.faulty(),
    });
    let line = format!(
        "{name}, one of {} in the federation {} ({}), listens at {}",
        epoch.roster.len(),
        epoch.charter.name,
        epoch.federation,
        mesh.addresses.join(", "),
    );
    output.print(SystemTime::now(), document, &line);
    if consent.is_none() {
        let line = "silo.toml names no signed consent of this institution to the agreement; \
                    `rota federation sign` makes one";
        let document = json!({ "event": "no-consent", "at": 0.0, "why": line });
        output.print(SystemTime::now(), document, &format!("note: {line}"));
    }
    outer.spawn(knocks::print(mesh.notices, epoch.clone(), output.clone()));
    if let Some(weakness) = weakness(&epoch) {
        let document = json!({ "event": "weakness", "at": 0.0, "why": weakness });
        output.print(SystemTime::now(), document, &format!("warning: {weakness}"));
        warnings.push(weakness.to_owned());
    }
    let peers = mesh.peers.clone();
    let health = Health::new(epoch.clone(), institution.me, mesh.addresses.clone(), peers);
    let now = SystemTime::now();
    warnings.iter().for_each(|text| health.warning(now, text));
    let address = options.http.or(institution.http);
    let socket = serve_status(institution, address, &health, &outer, output)?;
    let news = News::new(
        output.clone(),
        epoch.clone(),
        equipment.clone(),
        health.clone(),
        institution.state.clone(),
    );
    let (reporter, ending) = Reporter::start(news, output.clone());

    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(io::Error::other)?;
    let config = SiloConfig {
        member: member::Config::new(epoch.clone(), institution.me, institution.key.clone(), seed),
        learner: equipment.equipped.clone(),
        strategy: institution.agreement.strategy.clone(),
        initial_seed: institution.agreement.seed,
        max_model_norm: institution
            .agreement
            .max_model_norm
            .unwrap_or(f64::INFINITY),
        radius: institution.radius.clone().into(),
        seed: silo_seed(institution.seed, institution.me),
        journal_lost: options.journal_lost,
    };
    let strategy = &institution.agreement.strategy_config;
    let job = Job {
        equipment,
        task: Task::Train(strategy.training.clone()),
        initial_seed: config.initial_seed,
        seed: config.seed,
        first: 1 + u64::from(strategy.standardise),
        last: epoch.charter.rounds,
        folds: institution.serve.folds,
        state: institution.state.clone(),
        began: Instant::now(),
    };
    let serving = Serving::new(job);
    match Held::read(&institution.state, &institution.agreement) {
        Ok(held) => serving
            .resume(&held)
            .unwrap_or_else(|why| tracing::warn!("no model is chosen to be served: {why}")),
        // A new node has no round yet.
        Err(why) => tracing::debug!("no earlier round: {why}"),
    }
    let leaving = Leaving::new(&epoch, options.grace, Instant::now());
    let leaving = Arc::new(Mutex::new(leaving));
    let (events, to_silo) = mpsc::channel(EVENTS);
    let (commands, sent) = mpsc::channel(COMMANDS);
    let questions = Questions::default();
    let tap = Tap {
        log: AuditLog::open(
            &institution.state,
            &epoch,
            institution.me,
            &institution.key,
            Sizes::default(),
        )?,
        questions: questions.clone(),
        names: names(&epoch),
        me: institution.me,
    };
    let logged = outer.spawn(tap.pass(sent, mesh.commands));
    let links = Links {
        leaving: leaving.clone(),
        reporter: reporter.clone(),
        names: names(&epoch),
        questions,
        began: Instant::now(),
    };
    outer.spawn(links.pass(mesh.events, events));
    let network = Network {
        commands,
        events: to_silo,
    };
    let mut columns = Columns::new(institution, config.learner.clone());
    let lines = output.clone();
    let heard = leaving.clone();
    let waiting = Arc::new(Mutex::new(Waiting::new(&epoch)));
    let waits = waiting.clone();
    let (serves, seen, told) = (serving.clone(), health.clone(), reporter.clone());
    let feed = Box::new(move |at: Time, notice: &Notice| {
        let now = SystemTime::now();
        locked(&heard).observe(notice, Instant::now());
        locked(&waits).observe(notice);
        seen.observe(now, notice);
        told.notice(now, at, notice);
        serves.observe(notice);
        columns.notice(at.elapsed().as_secs_f64(), notice, &lines);
    });
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
        socket,
        names: names(&epoch),
    };
    let beat = epoch.beat();
    let ended = silo::block_on(inner, async move {
        let surroundings = Surroundings {
            network,
            journal: Box::new(journal),
            blobs: Arc::new(blobs),
            pool,
            checks: Checks::new(false),
            feed,
            origin: tokio::time::Instant::now(),
        };
        run_silo(config, surroundings, watch, beat).await
    });
    reporter.end(&ending, GOODBYE);
    goodbye(outer, logged, mesh.ended);
    ended
}

/// Runs the silo until a signal, its own end, or the end that `watch` decides on.
async fn run_silo(
    config: SiloConfig,
    surroundings: Surroundings,
    mut watch: Watch,
    beat: Duration,
) -> Result<(), NodeError> {
    let began = Instant::now();
    let mut signals = Signals::new()?;
    let mut handle = silo::spawn(config, surroundings)?;
    watch.health.runs(handle.activities());
    let mut tick = interval(beat.clamp(Duration::from_millis(50), Duration::from_secs(1)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        tokio::select! {
            stopped = handle.stopped() => return Err(NodeError::Stopped(stopped)),
            signal = signals.next() => break signal,
            _ = tick.tick() => {
                watch.report_waiting(began);
                watch.report_unreachable(began);
                watch.serving.report(&watch.reporter);
                watch.health.tick(handle.counts(), locked(&watch.waiting).reason());
                if let Some(why) = watch.why_leave() {
                    break why;
                }
            }
        }
    };
    let document = json!({ "event": "leaving", "at": began.elapsed().as_secs_f64(), "why": why });
    watch.reporter.print(document, format!("ending: {why}"));
    // Before the state folder is free for another process.
    watch.socket = None;
    handle.stop();
    match timeout(GOODBYE, handle.stopped()).await {
        Ok(Stopped::Asked) | Err(_) => Ok(()),
        Ok(other) => Err(NodeError::Stopped(other)),
    }
}

/// Waits for the network to close its connections. Work that still runs is abandoned.
fn goodbye(outer: Runtime, log: JoinHandle<()>, mesh: JoinHandle<()>) {
    outer.block_on(async {
        if timeout(GOODBYE, log).await.is_err() {
            tracing::warn!("the end of the audit log was not written in time");
        }
        if timeout(GOODBYE, mesh).await.is_err() {
            tracing::warn!("the network did not end in time");
        }
    });
    outer.shutdown_background();
}

/// What is checked at every tick of the node.
struct Watch {
    leaving: Arc<Mutex<Leaving>>,
    until_done: bool,
    waiting: Arc<Mutex<Waiting>>,
    serving: Serving,
    health: Arc<Health>,
    reporter: Reporter,
    unreachable: Unreachable,
    socket: Option<socket::Listening>,
    names: Vec<String>,
}

impl Watch {
    fn why_leave(&self) -> Option<&'static str> {
        let why = || locked(&self.leaving).reason(Instant::now());
        let done = self.until_done && self.serving.is_idle();
        done.then(why).flatten()
    }

    fn report_waiting(&self, began: Instant) {
        let reachable = locked(&self.leaving).reachable();
        let at = began.elapsed().as_secs_f64();
        match locked(&self.waiting).change(reachable, Instant::now()) {
            Some(Change::Waits(why)) => {
                let document = json!({ "event": "waiting", "at": at, "why": why });
                self.reporter.print(document, why);
            }
            Some(Change::Back) => {
                let document = json!({ "event": "taking-part", "at": at });
                self.reporter.print(document, "taking part again".into());
            }
            None => {}
        }
    }

    fn report_unreachable(&mut self, began: Instant) {
        let now = SystemTime::now();
        for report in self.unreachable.due(&self.health.peers(), now) {
            let name = &self.names[report.member.at()];
            let document = json!({
                "event": "peer-unreachable", "at": began.elapsed().as_secs_f64(), "member": name,
                "why": report.why, "seconds": report.lasting.as_secs(),
                "attempts": report.attempts, "again-in-seconds": report.pause.as_secs(),
            });
            self.health.warning(now, &format!("{name} {}", report.why));
            self.reporter.print(document, report.line(name));
        }
    }
}

/// The members' names, in the order of the roster.
fn names(epoch: &Epoch) -> Vec<String> {
    let silos = epoch.roster.silos().iter();
    silos.map(|silo| silo.name.clone()).collect()
}

/// What a federation too small to tolerate a Byzantine member cannot protect against.
fn weakness(epoch: &Epoch) -> Option<&'static str> {
    match epoch.roster.len() {
        1 => Some(
            "this federation has one member: it learns alone, and no other member checks its work",
        ),
        2 => Some(
            "with 2 members this federation has no protection against a Byzantine member, and \
             no round becomes final while one of the two is down",
        ),
        3 => Some(
            "with 3 members this federation has no protection against a Byzantine member, and \
             no round becomes final while two of them are down",
        ),
        _ => None,
    }
}

fn print_note(output: &Output, note: &Note) -> String {
    let what = match note {
        Note::Closed(_) => "closed",
        Note::SetAside { .. } => "set-aside",
        Note::Gone(_) => "journal-gone",
    };
    let why = note.to_string();
    let document = json!({ "event": "state", "at": 0.0, "what": what, "why": why });
    output.print(SystemTime::now(), document, &format!("warning: {why}"));
    why
}

/// Serves the status of the node over its socket, and at `address` as page and metrics.
fn serve_status(
    institution: &Institution,
    address: Option<SocketAddr>,
    health: &Arc<Health>,
    runtime: &Runtime,
    output: &Output,
) -> Result<Option<socket::Listening>, NodeError> {
    let asked = health.clone();
    let source: Source = Arc::new(move || asked.status());
    let print = |document, line: &str| output.print(SystemTime::now(), document, line);
    if let Some(address) = address {
        let bound = runtime.block_on(http::serve(address, source.clone()))?;
        let url = format!("http://{bound}/");
        let line = format!("the page is at {url}, the metrics for Prometheus at {url}metrics");
        print(json!({ "event": "http", "at": 0.0, "url": url }), &line);
        health.serves(url);
    }
    let _entered = runtime.enter();
    match socket::serve(&institution.state, source) {
        Ok(listening) => Ok(Some(listening)),
        // A node that cannot be asked still learns.
        Err(error) => {
            let document = json!({ "event": "no-status", "at": 0.0, "why": error.to_string() });
            print(document, &format!("warning: {error}"));
            health.warning(SystemTime::now(), &error.to_string());
            Ok(None)
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // No code panics while it holds this lock.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Passes events from the network to the silo, and notes which members can be reached.
struct Links {
    leaving: Arc<Mutex<Leaving>>,
    reporter: Reporter,
    names: Vec<String>,
    /// What members ask for, for the audit log.
    questions: Questions,
    began: Instant,
}

impl Links {
    async fn pass(self, mut from: mpsc::Receiver<Event>, to: mpsc::Sender<Event>) {
        let mut up = vec![false; self.names.len()];
        loop {
            // The network ends when the silo has ended, even without events.
            let event = tokio::select! {
                event = from.recv() => event,
                () = to.closed() => None,
            };
            let Some(event) = event else { return };
            self.questions.observe(&event);
            let link = match &event {
                Event::Up { peer, round_trip } => Some((*peer, Some(*round_trip))),
                Event::Down { peer } => Some((*peer, None)),
                _ => None,
            };
            if let Some((peer, round_trip)) = link {
                locked(&self.leaving).reach(peer, round_trip.is_some(), Instant::now());
                if std::mem::replace(&mut up[peer.at()], round_trip.is_some())
                    != round_trip.is_some()
                {
                    self.print(&self.names[peer.at()], round_trip);
                }
            }
            if to.send(event).await.is_err() {
                return;
            }
        }
    }

    fn print(&self, name: &str, round_trip: Option<Duration>) {
        let at = self.began.elapsed().as_secs_f64();
        match round_trip {
            Some(trip) => self.reporter.print(
                json!({
                    "event": "peer-up", "at": at, "member": name,
                    "round-trip-ms": trip.as_secs_f64() * 1e3,
                }),
                format!("{name} can be reached"),
            ),
            None => self.reporter.print(
                json!({ "event": "peer-down", "at": at, "member": name }),
                format!("{name} cannot be reached"),
            ),
        }
    }
}
