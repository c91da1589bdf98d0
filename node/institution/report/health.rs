//! The present state of a running node, from which its status is made.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use agreement::Agreement;
use learn::export::HeldOut;
use ledger::LedgerContents;
use mesh::{PeerState, Peers};
use methods::serving::Candidate;
use methods::strategy::Memory;
use protocol::message::Phase;
use protocol::{Epoch, MemberIndex, Report};
use silo::{Activities, Activity, Counts, Notice};

use crate::answers::over;
use crate::corrupters;
use crate::events::phase_name;
use crate::federation::{brief, officer};
use crate::institution::config::Institution;
use crate::model::served_note;
use crate::paths::free;
use crate::policy::{LedgerStatus, SitePolicy, SourceLimits};
use crate::spending::{ContributionHistory, Spending};
use crate::status::Status;
use crate::status::document::{
    FORMAT, FederationFacts, HeldOutMetrics, NodeFacts, PeerStatus, RoundStatus, ServedStatus,
    SpentSeconds, TrafficTotals, TrainingProgress, Warning, time,
};
use formatting::numbers::short;

/// Rounds that are kept.
pub(in crate::institution) const ROUNDS: usize = 100;
/// Warnings that are kept.
const WARNINGS: usize = 20;
/// Characters of a text from elsewhere.
const TEXT: usize = 300;

/// Facts about the node. Filled in by the parts of the node while they run.
pub(in crate::institution) struct Health {
    epoch: Arc<Epoch>,
    me: MemberIndex,
    started: SystemTime,
    addresses: Vec<String>,
    peers: Peers,
    state: PathBuf,
    agreement: Agreement,
    site: SitePolicy,
    http: OnceLock<String>,
    activities: OnceLock<Activities>,
    changing: Mutex<Changing>,
}

#[derive(Default)]
struct Changing {
    round: u64,
    view: u64,
    lead: Option<MemberIndex>,
    /// This silo's phase as the lead of this view, and since when.
    leading: Option<(Phase, Instant)>,
    /// Seconds in each phase as lead, since the last adopted round.
    phases: BTreeMap<String, f64>,
    waiting: Option<String>,
    /// Findings of void sums about the members that corrupt them.
    void_sums: Option<String>,
    complete: bool,
    /// Loss of the last training, with its round.
    loss: Option<(u64, f64)>,
    /// Rounds that are final and not adopted yet: round, view, lead, authors.
    finals: Vec<(u64, u64, MemberIndex, Vec<MemberIndex>)>,
    rounds: VecDeque<RoundStatus>,
    done: BTreeSet<MemberIndex>,
    counts: Counts,
    warnings: VecDeque<Warning>,
    /// The rounds to which the institution contributed.
    contributed: Option<ContributionHistory>,
    /// Numbers that the strategy keeps after the last adopted round.
    memory: Option<Memory>,
}

/// Returns what others learn of what an institution contributes, and that nothing counts it where a person decided so,
/// in sentences without full stops.
pub(in crate::institution) fn learned(
    site: &SitePolicy,
    agreement: &Agreement,
    spending: &Spending,
) -> Vec<String> {
    let learned = brief(agreement, spending).into_iter();
    learned.chain(site.uncounted(agreement)).collect()
}

impl Health {
    /// Of a node that starts now under the agreement in force, of an institution that contributed so far as this
    /// history says. It listens at these addresses.
    pub(in crate::institution) fn new(
        institution: &Institution,
        contributed: ContributionHistory,
        addresses: Vec<String>,
        peers: Peers,
    ) -> Arc<Self> {
        let agreement = institution.agreement.clone();
        Arc::new(Self {
            epoch: agreement.epoch.clone(),
            me: institution.me,
            started: SystemTime::now(),
            addresses,
            peers,
            state: institution.state.clone(),
            agreement,
            site: institution.site.clone(),
            http: OnceLock::new(),
            activities: OnceLock::new(),
            changing: Mutex::new(Changing {
                contributed: Some(contributed),
                ..Changing::default()
            }),
        })
    }

    /// This institution's place in the roster.
    pub(super) fn me(&self) -> MemberIndex {
        self.me
    }

    /// The page and the metrics are served here.
    pub(in crate::institution) fn serves(&self, http: String) {
        // It is set once, at the start.
        let _ = self.http.set(http);
    }

    /// The silo runs.
    pub(in crate::institution) fn runs(&self, activities: Activities) {
        // It is set once, at the start.
        let _ = self.activities.set(activities);
    }

    /// Takes note of what the silo reports.
    pub(in crate::institution) fn observe(&self, now: SystemTime, notice: &Notice) {
        let mut changing = self.changing();
        match notice {
            Notice::Protocol(report) => {
                changing.report(report);
                if let Report::Final { round, authors, .. } = report {
                    changing.is_final(*round, authors.contains(&self.me));
                }
            }
            Notice::Searched { voids, .. } => {
                changing.void_sums = corrupters::said(voids, &self.epoch, Some(self.me));
            }
            Notice::Trained { round, loss, .. } => {
                if let Some(contributed) = &mut changing.contributed {
                    contributed.prepares(*round);
                }
                if loss.is_finite() {
                    changing.loss = Some((*round, *loss));
                }
            }
            Notice::Adopted {
                round,
                outcome,
                state,
                coalition,
                ..
            } => {
                changing.memory = Some(state.memory.clone());
                let spent = self.spent(&mut changing);
                let finals = std::mem::take(&mut changing.finals);
                let last = finals.into_iter().find(|(of, ..)| of == round);
                let loss = changing.loss.filter(|(of, _)| of == round);
                if changing.rounds.len() == ROUNDS {
                    changing.rounds.pop_front();
                }
                changing.rounds.push_back(RoundStatus {
                    round: *round,
                    time: time(now),
                    view: last.as_ref().map(|(_, view, ..)| *view),
                    lead: last.as_ref().map(|(_, _, lead, _)| self.name(*lead)),
                    models: last.as_ref().map(|(.., authors)| authors.len() as u64),
                    authors: last.map_or_else(Vec::new, |(.., authors)| {
                        authors.into_iter().map(|by| self.name(by)).collect()
                    }),
                    coalition: *coalition,
                    coalitions: state.models.len() as u64,
                    outcome: format!("{outcome:#}"),
                    loss: loss.map(|(_, loss)| loss),
                    held_out: None,
                    spent,
                });
            }
            _ => {}
        }
    }

    /// Returns what the time since the last adopted round was spent on.
    fn spent(&self, changing: &mut Changing) -> Option<SpentSeconds> {
        changing.leave_phase();
        let leading = std::mem::take(&mut changing.phases);
        let spent = self.activities.get()?.take_spent();
        let seconds = |of: Duration| of.as_secs_f64();
        let waiting = spent.whole.saturating_sub(spent.busy + spent.disk);
        let work = spent.work.iter();
        Some(SpentSeconds {
            seconds: seconds(spent.whole),
            waiting: seconds(waiting),
            disk: seconds(spent.disk),
            work: work
                .map(|(of, took)| (of.name().to_owned(), seconds(*took)))
                .collect(),
            leading,
        })
    }

    /// Returns whether the questions of the agreement from this place on, from 0, are over.
    pub(in crate::institution) fn questions_over(&self, from: usize) -> bool {
        let memory = self.changing().memory.clone();
        memory.is_some_and(|memory| over(&memory, &self.agreement, from))
    }

    /// Returns what an adopted round took, where it is known.
    pub(super) fn took(&self, round: u64) -> Option<SpentSeconds> {
        let changing = self.changing();
        let mut rounds = changing.rounds.iter().rev();
        rounds.find(|adopted| adopted.round == round)?.spent.clone()
    }

    /// The rounds that the silo adopted before this start, oldest first.
    pub(in crate::institution) fn resumes(&self, rounds: Vec<RoundStatus>) {
        let mut changing = self.changing();
        let last = rounds.last().map(|round| round.round);
        changing.round = changing.round.max(last.map_or(0, |last| last + 1));
        changing.rounds = rounds.into();
    }

    /// The model of a round was measured.
    pub(super) fn measured(&self, round: u64, held_out: HeldOutMetrics) {
        let mut changing = self.changing();
        let mut rounds = changing.rounds.iter_mut();
        if let Some(adopted) = rounds.find(|adopted| adopted.round == round) {
            adopted.held_out = Some(held_out);
        }
    }

    /// Takes what is looked at now and then: traffic, and why the silo takes no part.
    pub(in crate::institution) fn tick(&self, counts: Counts, waiting: Option<String>) {
        let mut changing = self.changing();
        (changing.counts, changing.waiting) = (counts, waiting);
    }

    /// A warning was printed.
    pub(in crate::institution) fn warning(&self, now: SystemTime, text: &str) {
        let mut changing = self.changing();
        if changing.warnings.len() == WARNINGS {
            changing.warnings.pop_front();
        }
        let (time, text) = (time(now), short(text, TEXT));
        changing.warnings.push_back(Warning { time, text });
    }

    /// Returns what others learn by now, in short, and the paragraph for the data protection officer.
    pub(in crate::institution) fn disclosed(&self) -> (Vec<String>, Vec<String>) {
        let Some(spending) = self.spending(self.site.read_ledger().as_ref()) else {
            return Default::default();
        };
        (
            learned(&self.site, &self.agreement, &spending),
            officer(&self.agreement, &spending),
        )
    }

    fn spending(&self, ledger: Option<&LedgerContents>) -> Option<Spending> {
        let contributed = self.changing().contributed.clone()?;
        let spending = self.site.spending_by(ledger, &self.agreement, &contributed);
        Some(spending)
    }

    /// The states of the connections.
    pub(in crate::institution) fn peers(&self) -> Vec<PeerState> {
        self.peers.list()
    }

    /// The status at this moment.
    pub(in crate::institution) fn status(&self) -> Status {
        let peers = self.peers();
        let connected = peers.iter().filter(|peer| peer.connected.is_some()).count();
        let activities = self.activities.get();
        let activity = activities.and_then(Activities::current);
        let roster = &self.epoch.roster;
        let read = self.site.source.as_ref().map(SourceLimits::read);
        let (contents, unread) = match read.transpose() {
            Ok(contents) => (contents, None),
            Err(why) => (None, Some(short(&why.to_string(), TEXT))),
        };
        let ledger = self.site.source.as_ref().zip(contents.as_ref());
        let ledger = ledger.map(|(source, contents)| LedgerStatus::of(source, contents));
        let spending = self.spending(contents.as_ref());
        let learned = spending.map(|spending| learned(&self.site, &self.agreement, &spending));
        let changing = self.changing();
        let progress = activities.and_then(Activities::progress);
        Status {
            format: FORMAT,
            time: time(SystemTime::now()),
            node: NodeFacts {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                pid: std::process::id(),
                started: time(self.started),
                addresses: self.addresses.clone(),
                http: self.http.get().cloned(),
                free: free(&self.state),
            },
            silo: self.name(self.me),
            member: self.me.0,
            federation: FederationFacts {
                name: self.epoch.protocol.name.clone(),
                id: format!("{:#}", self.epoch.federation),
                members: roster.len() as u64,
                rounds: self.epoch.protocol.rounds,
                quorum: roster.quorum() as u64,
                byzantine_members_tolerated: roster.faulty() as u64,
            },
            round: changing.round.min(self.epoch.protocol.rounds),
            view: changing.view,
            lead: changing.lead.map(|lead| self.name(lead)),
            leads: changing.lead == Some(self.me) && !changing.complete,
            phase: changing.phase(activity, connected, roster.quorum()),
            waiting: changing.waiting.clone(),
            void_sums: changing.void_sums.clone(),
            ledger,
            ledger_problem: unread,
            learned: learned.unwrap_or_default(),
            complete: changing.complete,
            training: progress.map(|progress| TrainingProgress {
                running: activity == Some(Activity::Train),
                step: progress.step,
                steps: progress.steps,
                loss: Some(progress.loss).filter(|loss| loss.is_finite()),
            }),
            rounds: changing.rounds.iter().cloned().collect(),
            serves: self.served(&changing),
            peers: peers
                .iter()
                .map(|peer| self.peer(peer, &changing))
                .collect(),
            traffic: traffic(&changing.counts),
            warnings: changing.warnings.iter().cloned().collect(),
        }
    }

    /// The model that the silo chose to serve after the last round that it adopted.
    fn served(&self, changing: &Changing) -> Option<ServedStatus> {
        let last = changing.rounds.back()?.round;
        let note = served_note(&self.state).filter(|note| note.round == last)?;
        let metrics = |held_out: HeldOut| HeldOutMetrics {
            rows: held_out.rows,
            metric: held_out.metric,
            unit: held_out.unit,
            metrics: held_out.metrics,
            not_finite: Vec::new(),
        };
        Some(ServedStatus {
            round: note.round,
            what: note.candidate.words().to_owned(),
            adopted: note.candidate == Candidate::Coalition,
            held_out: note.held_out.map(metrics),
        })
    }

    fn peer(&self, state: &PeerState, changing: &Changing) -> PeerStatus {
        let problem = state.problem.as_ref();
        let since = state.connected.or(problem.map(|problem| problem.since));
        PeerStatus {
            name: self.name(state.member),
            member: state.member.0,
            connected: state.connected.is_some(),
            since: since.map(time),
            through: state.through.map(|relay| self.name(relay)),
            round_trip_ms: state.round_trip.map(|trip| trip.as_secs_f64() * 1e3),
            attempts: state.attempts,
            version: state
                .program
                .as_ref()
                .map(|program| program.version.clone()),
            problem: problem.map(|problem| short(&problem.why, TEXT)),
            complete: changing.done.contains(&state.member),
        }
    }

    fn name(&self, member: MemberIndex) -> String {
        self.epoch.roster.name(member).to_owned()
    }

    fn changing(&self) -> MutexGuard<'_, Changing> {
        // No code panics while it holds this lock.
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Changing {
    fn is_final(&mut self, round: u64, own: bool) {
        if let Some(contributed) = &mut self.contributed {
            contributed.is_final(round, own);
        }
    }

    fn report(&mut self, report: &Report) {
        match report {
            Report::Entered { view, lead, round } => {
                (self.view, self.lead) = (*view, Some(*lead));
                self.round = self.round.max(*round);
                self.leave_phase();
            }
            Report::Leading { phase, .. } => {
                self.leave_phase();
                self.leading = Some((*phase, Instant::now()));
            }
            Report::Final {
                round,
                view,
                lead,
                authors,
                ..
            } => {
                self.round = self.round.max(round + 1);
                self.finals.push((*round, *view, *lead, authors.clone()));
            }
            Report::Complete { .. } => self.complete = true,
            Report::MemberComplete { member } => {
                self.done.insert(*member);
            }
            _ => {}
        }
    }

    /// A phase as lead is over, or its time is taken: it counts.
    fn leave_phase(&mut self) {
        if let Some((phase, since)) = self.leading.take() {
            let name = phase_name(phase).to_owned();
            *self.phases.entry(name).or_default() += since.elapsed().as_secs_f64();
        }
    }

    /// Returns what the silo does now, in words.
    fn phase(&self, activity: Option<Activity>, connected: usize, quorum: usize) -> String {
        if self.complete {
            return "all rounds are done".to_owned();
        }
        if let Some(activity) = activity {
            return activity.to_string();
        }
        if connected + 1 < quorum {
            return format!(
                "waiting for members: {connected} connected, {} needed for a round",
                quorum - 1
            );
        }
        match self.leading.map(|(phase, _)| phase) {
            Some(Phase::Waiting) => "leading: waiting for the block before",
            Some(Phase::Collecting) => "leading: collecting contributions",
            Some(Phase::Scoring) => "leading: waiting for scores",
            Some(Phase::Including) => "leading: waiting for signatures on the manifest",
            Some(Phase::Deciding) => "leading: deciding",
            Some(Phase::Voting) => "leading: waiting for votes",
            Some(Phase::Masking) => "leading: waiting for masked vectors",
            None => "waiting for the lead",
        }
        .to_owned()
    }
}

fn traffic(counts: &Counts) -> TrafficTotals {
    TrafficTotals {
        received: counts.received,
        sent: counts.sent,
        published: counts.published,
        lost: counts.lost,
        unopened: counts.unopened,
        dropped: counts.dropped,
        mutes: counts.mutes,
        fetched: counts.fetched,
        fetched_bytes: counts.fetched_bytes,
        served: counts.served,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_phase_names_work_then_missing_members_then_the_lead() {
        let mut changing = Changing::default();
        let training = Some(Activity::Train);
        assert_eq!(changing.phase(training, 0, 3), "training");
        assert_eq!(
            changing.phase(None, 1, 3),
            "waiting for members: 1 connected, 2 needed for a round"
        );
        assert_eq!(changing.phase(None, 2, 3), "waiting for the lead");
        changing.report(&Report::Leading {
            view: 4,
            round: 2,
            phase: Phase::Scoring,
        });
        assert_eq!(changing.phase(None, 2, 3), "leading: waiting for scores");
        changing.report(&Report::Entered {
            view: 5,
            lead: MemberIndex(1),
            round: 2,
        });
        assert_eq!(changing.phase(None, 2, 3), "waiting for the lead");
        changing.report(&Report::Complete { last: 3 });
        assert_eq!(changing.phase(training, 0, 3), "all rounds are done");
    }
}
