//! Starts the nodes of one run, carries out the faults, and waits until all rounds are done or the time
//! is over.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use protocol::message::Phase;
use protocol::parameters::Rotation;
use simulations::Moment;

use super::DeployError;
use super::faults::{KillMoment, PlannedFault};
use super::hosting::Hosting;
use crate::demo::DemoMember;
use crate::history::StoppedNode;
use node::events::{Line, NodeEvent, phase_name};

/// How long nodes have to end when they are asked to.
const GOODBYE: Duration = Duration::from_secs(10);
/// Lines of a log that an error shows.
const TAIL: usize = 12;

/// What one run gave, besides the lines.
pub(super) struct Ran {
    pub(super) stops: Vec<StoppedNode>,
    pub(super) marks: Vec<RoundMark>,
    /// Bytes that every node sent.
    pub(super) sent: Option<Vec<u64>>,
    /// CPU seconds of every node.
    pub(super) cpu: Vec<f64>,
    /// True if every node that was not killed for good had all rounds.
    pub(super) complete: bool,
}

/// A round that became final, and what every node had sent and worked by then.
pub(super) struct RoundMark {
    pub(super) lead: usize,
    pub(super) sent: Option<Vec<u64>>,
    pub(super) cpu: Vec<f64>,
}

/// What the nodes printed.
pub(super) struct Logs {
    /// The silos' names, in roster order.
    pub(super) names: Vec<String>,
    /// Files with the lines of the nodes.
    pub(super) files: Vec<PathBuf>,
    /// By how many seconds their clocks are ahead.
    pub(super) ahead: Vec<f64>,
}

/// What the director waits for.
enum DirectorInput {
    /// A line of a node that was started for the n-th time; none: its output has ended.
    Line(usize, usize, Option<Box<NodeEvent>>),
    /// The user interrupts.
    Interrupt,
}

/// A node is killed.
#[derive(Debug, Clone, Copy)]
struct NodeKill {
    /// Position of the node; `None`: the lead of that moment.
    who: Option<usize>,
    /// Time until it is started again; `None`: never.
    back: Option<Duration>,
    /// True if the node is started without its journal and blobs.
    lost: bool,
}

/// What is scheduled for a time.
enum DeployAction {
    Kill(NodeKill),
    Start(usize, bool),
    Split(Vec<usize>, bool, bool),
}

/// One node.
#[derive(Default)]
struct DeployedNode {
    child: Option<Child>,
    starts: usize,
    /// CPU seconds of its processes that have ended, and of the present one as it says.
    cpu: (f64, f64),
    finished: bool,
    /// Killed without a restart.
    gone: bool,
}

/// Directs one run.
pub(super) struct DeployDirector<'a> {
    ground: &'a mut dyn Hosting,
    names: Vec<String>,
    folder: PathBuf,
    policy: Rotation,
    nodes: Vec<DeployedNode>,
    heard: Receiver<DirectorInput>,
    ears: Sender<DirectorInput>,
    actions: BTreeMap<(Instant, usize), DeployAction>,
    sequence: usize,
    /// Kills that wait for a moment of a round.
    kills: Vec<(u64, Moment, NodeKill)>,
    /// The newest view with its round and lead.
    newest: (u64, u64, usize),
    /// Round and lead of the views that came to a vote.
    voted: BTreeMap<u64, (u64, usize)>,
    final_rounds: BTreeSet<u64>,
    stops: Vec<(usize, StoppedNode)>,
    marks: Vec<RoundMark>,
}

impl<'a> DeployDirector<'a> {
    pub(super) fn new(
        ground: &'a mut dyn Hosting,
        members: &[DemoMember],
        folder: &Path,
        policy: Rotation,
    ) -> Result<Self, DeployError> {
        let (ears, heard) = channel();
        let director = Self {
            ground,
            names: members.iter().map(|member| member.name.clone()).collect(),
            folder: folder.into(),
            policy,
            nodes: members.iter().map(|_| DeployedNode::default()).collect(),
            heard,
            ears,
            actions: BTreeMap::new(),
            sequence: 0,
            kills: Vec::new(),
            newest: (0, 0, 0),
            voted: BTreeMap::new(),
            final_rounds: BTreeSet::new(),
            stops: Vec::new(),
            marks: Vec::new(),
        };
        for node in 0..members.len() {
            for file in [director.lines(node), director.log(node)] {
                File::create(&file).map_err(|reason| DeployError::Write { path: file, reason })?;
            }
        }
        Ok(director)
    }

    fn lines(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{node}.jsonl"))
    }

    fn log(&self, node: usize) -> PathBuf {
        self.folder.join(format!("{node}.log"))
    }

    /// Runs until all rounds are done at every node that was not killed for good, or the time is over.
    pub(super) fn run(
        &mut self,
        faults: &[PlannedFault],
        limit: Duration,
        rounds: u64,
    ) -> Result<Ran, DeployError> {
        let end = Instant::now() + limit;
        faults.iter().for_each(|fault| self.plan(fault));
        let _interrupts = interrupts(&self.ears);
        for node in 0..self.nodes.len() {
            self.start(node, false)?;
        }
        while !self.complete() && Instant::now() < end {
            let next = self.actions.first_key_value();
            let due = next.map_or(end, |((at, _), _)| (*at).min(end));
            match self
                .heard
                .recv_timeout(due.saturating_duration_since(Instant::now()))
            {
                Ok(DirectorInput::Line(node, start, line)) => self.line(node, start, line)?,
                Ok(DirectorInput::Interrupt) => return Err(DeployError::Interrupted),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            while let Some(first) = self.actions.first_entry()
                && first.key().0 <= Instant::now()
            {
                let action = first.remove();
                self.perform(action)?;
            }
        }
        let complete = self.complete() && self.final_rounds.len() as u64 >= rounds;
        let sent = self.ground.sent();
        let cpu = self.cpu();
        let mut stops = std::mem::take(&mut self.stops);
        stops.sort_by_key(|(_, stop)| stop.at);
        Ok(Ran {
            stops: stops.into_iter().map(|(_, stop)| stop).collect(),
            marks: std::mem::take(&mut self.marks),
            sent,
            cpu,
            complete,
        })
    }

    /// Ends all nodes, and gives what they printed.
    pub(super) fn end(mut self) -> Result<Logs, DeployError> {
        self.stop();
        let nodes = 0..self.nodes.len();
        for node in nodes.clone() {
            let (lines, log) = (self.lines(node), self.log(node));
            self.ground.fetch(node, &lines, &log)?;
        }
        Ok(Logs {
            names: self.names.clone(),
            files: nodes.clone().map(|node| self.lines(node)).collect(),
            ahead: nodes.map(|node| self.ground.ahead(node)).collect(),
        })
    }

    /// Asks all nodes to end, and kills those that do not.
    fn stop(&mut self) {
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(child) = &node.child {
                self.ground.terminate(at, child);
            }
        }
        let end = Instant::now() + GOODBYE;
        let mut open: BTreeMap<usize, usize> = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.child.is_some())
            .map(|(at, node)| (at, node.starts))
            .collect();
        while !open.is_empty() {
            match self
                .heard
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(DirectorInput::Line(node, start, None)) if open.get(&node) == Some(&start) => {
                    open.remove(&node);
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if let Some(mut child) = node.child.take() {
                if open.contains_key(&at) {
                    self.ground.kill(at, &mut child);
                }
                // It has ended, or was killed.
                let _ = child.wait();
            }
        }
    }

    fn plan(&mut self, fault: &PlannedFault) {
        let now = Instant::now();
        match fault {
            PlannedFault::Kill {
                who,
                when,
                back,
                journal_lost,
            } => {
                let kill = NodeKill {
                    who: *who,
                    back: *back,
                    lost: *journal_lost,
                };
                match *when {
                    KillMoment::At(at) => self.schedule(now + at, DeployAction::Kill(kill)),
                    KillMoment::Round(round, moment) => self.kills.push((round, moment, kill)),
                }
            }
            PlannedFault::Split {
                apart,
                at,
                lasts,
                one_way,
            } => {
                let split = |cut| DeployAction::Split(apart.clone(), *one_way, cut);
                self.schedule(now + *at, split(true));
                self.schedule(now + *at + *lasts, split(false));
            }
        }
    }

    fn schedule(&mut self, at: Instant, action: DeployAction) {
        self.sequence += 1;
        self.actions.insert((at, self.sequence), action);
    }

    fn perform(&mut self, action: DeployAction) -> Result<(), DeployError> {
        match action {
            DeployAction::Kill(kill) => {
                self.kill(self.newest.2, kill);
                Ok(())
            }
            DeployAction::Start(node, lost) => {
                if lost {
                    self.ground.forget(node)?;
                }
                let now = SystemTime::now();
                let mut stops = self.stops.iter_mut().rev();
                if let Some((_, stop)) = stops.find(|(of, _)| *of == node) {
                    stop.back = Some(now);
                }
                self.start(node, lost)
            }
            DeployAction::Split(apart, one_way, cut) => self.ground.split(&apart, one_way, cut),
        }
    }

    /// Starts a node. Its lines and its log are appended to its files.
    fn start(&mut self, node: usize, lost: bool) -> Result<(), DeployError> {
        let append = |path: PathBuf| {
            let file = OpenOptions::new().append(true).open(&path);
            file.map_err(|reason| DeployError::Write { path, reason })
        };
        let (mut copy, log) = (append(self.lines(node))?, append(self.log(node))?);
        let mut command = self.ground.command(node, lost);
        let child = command
            .stdin(self.ground.stdin())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn();
        let mut child = child.map_err(|error| DeployError::Program {
            program: command.get_program().to_string_lossy().into_owned(),
            why: error.to_string(),
        })?;
        let own = &mut self.nodes[node];
        own.starts += 1;
        let (start, ears) = (own.starts, self.ears.clone());
        if let Some(printed) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(printed).lines().map_while(Result::ok) {
                    // A full disk does not end the run: the line is heard all the same.
                    let _ = writeln!(copy, "{line}");
                    let event = serde_json::from_str::<Line>(&line);
                    let event = event.map_or(NodeEvent::Unknown, |line| line.event);
                    let _ = ears.send(DirectorInput::Line(node, start, Some(Box::new(event))));
                }
                let _ = ears.send(DirectorInput::Line(node, start, None));
            });
        }
        own.child = Some(child);
        Ok(())
    }

    /// Kills a node, if it runs.
    fn kill(&mut self, lead: usize, kill: NodeKill) {
        let NodeKill { who, back, lost } = kill;
        let node = who.unwrap_or(lead);
        let Some(mut child) = self.nodes[node].child.take() else {
            return;
        };
        let used = self.ground.cpu(node, &child);
        let at = self.ground.kill(node, &mut child);
        let _ = child.wait();
        let own = &mut self.nodes[node];
        own.cpu = (own.cpu.0 + used.unwrap_or(own.cpu.1), 0.0);
        own.gone = back.is_none();
        own.finished = false;
        let stop = StoppedNode {
            silo: self.names[node].clone(),
            at,
            back: None,
        };
        self.stops.push((node, stop));
        if let Some(back) = back {
            self.schedule(Instant::now() + back, DeployAction::Start(node, lost));
        }
    }

    fn line(
        &mut self,
        node: usize,
        start: usize,
        line: Option<Box<NodeEvent>>,
    ) -> Result<(), DeployError> {
        if start != self.nodes[node].starts {
            return Ok(());
        }
        let Some(event) = line else {
            return match self.nodes[node].child.take() {
                Some(child) => Err(self.ended(node, child)),
                None => Ok(()),
            };
        };
        let place = |lead: &String| self.names.iter().position(|name| name == lead);
        match *event {
            NodeEvent::View { view, lead, round } => {
                if let Some(lead) = place(&lead) {
                    self.newest = self.newest.max((view, round, lead));
                }
            }
            NodeEvent::Leading {
                view,
                round,
                phase: name,
            } => {
                let Some(phase) = phase(&name) else {
                    return Ok(());
                };
                if phase == Phase::Voting {
                    self.voted.insert(view, (round, node));
                }
                self.reached(node, round, Moment::Phase(phase));
            }
            NodeEvent::Notarised { view } => {
                if let Some(&(round, lead)) = self.voted.get(&view)
                    && lead == node
                {
                    self.reached(node, round, Moment::Notarised);
                }
            }
            NodeEvent::Final {
                round,
                lead,
                cpu_seconds,
                ..
            } => {
                if let Some(cpu) = cpu_seconds {
                    self.nodes[node].cpu.1 = cpu;
                }
                if let Some(lead) = place(&lead)
                    && self.final_rounds.insert(round)
                {
                    let mark = RoundMark {
                        lead,
                        sent: self.ground.sent(),
                        cpu: self.cpu(),
                    };
                    self.marks.push(mark);
                }
            }
            NodeEvent::Finished { .. } => self.nodes[node].finished = true,
            _ => {}
        }
        Ok(())
    }

    /// A lead reached a moment of a round: kills the nodes that are to be killed then.
    fn reached(&mut self, lead: usize, round: u64, moment: Moment) {
        while let Some(at) = self
            .kills
            .iter()
            .position(|kill| (kill.0, kill.1) == (round, moment))
        {
            let (_, _, kill) = self.kills.remove(at);
            self.kill(lead, kill);
        }
    }

    /// CPU seconds of every node so far.
    fn cpu(&self) -> Vec<f64> {
        let nodes = self.nodes.iter().enumerate();
        let used = nodes.map(|(at, node)| {
            let running = node.child.as_ref();
            let now = running.and_then(|child| self.ground.cpu(at, child));
            node.cpu.0 + now.unwrap_or(node.cpu.1)
        });
        used.collect()
    }

    fn complete(&self) -> bool {
        self.nodes.iter().all(|node| node.finished || node.gone)
    }

    /// A node ended by itself.
    fn ended(&mut self, node: usize, mut child: Child) -> DeployError {
        let status = match child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        let log = self.log(node);
        // What it wrote elsewhere says why.
        let _ = self
            .ground
            .fetch(node, &self.folder.join(format!("{node}.jsonl")), &log);
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        DeployError::Ended {
            silo: self.names[node].clone(),
            status: format!("{status}, with the rotation {}", self.policy),
            tail: lines[lines.len().saturating_sub(TAIL)..].join("\n"),
            log,
        }
    }
}

impl Drop for DeployDirector<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn phase(name: &str) -> Option<Phase> {
    let all = [
        Phase::Waiting,
        Phase::Collecting,
        Phase::Scoring,
        Phase::Including,
        Phase::Deciding,
        Phase::Voting,
        Phase::Masking,
    ];
    all.into_iter().find(|phase| name == phase_name(*phase))
}

/// Tells of SIGINT and SIGTERM for as long as what it returns is kept, so that nodes and networks can be
/// removed.
#[cfg(unix)]
fn interrupts(ears: &Sender<DirectorInput>) -> Option<tokio::runtime::Runtime> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("signals")
        .enable_all()
        .build()
        .ok()?;
    for kind in [SignalKind::interrupt(), SignalKind::terminate()] {
        let ears = ears.clone();
        let _entered = runtime.enter();
        let mut signal = signal(kind).ok()?;
        runtime.spawn(async move {
            signal.recv().await;
            let _ = ears.send(DirectorInput::Interrupt);
        });
    }
    Some(runtime)
}

#[cfg(not(unix))]
fn interrupts(_: &Sender<DirectorInput>) {}
