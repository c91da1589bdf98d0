//! A member of a federation, as a function: inputs in, effects out.
//!
//! | file | holds |
//! |---|---|
//! | `chain` | final blocks, certificates above them, finality (R3, R4) |
//! | `ballots` | one's own votes and the votes collected for others (R1–R3, R5) |
//! | `round` | one's own part of a round: plan, training, scores, inclusion |
//! | `entries` | which entries a round may have, and when they are enough |
//! | `signing` | holding a sheet's models and signing for it |
//! | `lead` | the lead's part: collecting, bundle, sheet, proposal |
//! | `judge` | whether to vote for a proposal (R1, R2) |
//! | `sheets` | the sheets of a round that are kept |
//! | `sync` | catching up, and listening only where one's own past is not known (R5) |
//! | `clock` | the timers |
//!
//! Every input changes some of this; then [`Member::drive`] does whatever has become possible or
//! due, as a function of the state alone, until nothing more is. Nothing depends on which message
//! came first, so whatever is lost and said again later has the same effect.

mod absences;
mod adoption;
mod ballots;
mod chain;
mod clock;
mod entries;
mod inbox;
mod judge;
mod lead;
mod own;
mod round;
mod scoring;
mod sheets;
mod signing;
mod sync;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::certificate::Verdict;
use crate::charter::Epoch;
use crate::effects::{Effect, Input, Record, Report};
use crate::envelope::{self, Known, Opened};
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::identity::SecretKey;
use crate::message::{Body, Kind, Message};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

use absences::Absences;
use adoption::Adoption;
use ballots::Ballots;
use chain::Chain;
use judge::Judged;
use lead::Lead;
use round::Round;
use sync::{Journal, Sync};

/// How a member comes to life.
#[derive(Debug, Clone)]
pub enum Start {
    /// For the first time in this federation.
    New,
    /// Again, with everything it made durable, oldest first.
    Kept(Vec<Record>),
    /// Again, without its journal: it may have voted and cannot know for what (R5).
    Lost,
}

/// Who a member is.
#[derive(Debug, Clone)]
pub struct Config {
    /// Roster and charter in force.
    pub epoch: Arc<Epoch>,
    /// Its position in the roster.
    pub me: MemberIndex,
    /// Its signing key.
    pub key: SecretKey,
    /// Where the nonces of its questions come from: random, and another in every life, so that
    /// nobody can have an answer ready.
    pub seed: [u8; 32],
    #[cfg(feature = "mutations")]
    mutation: Option<Mutation>,
}

impl Config {
    /// A member of this epoch. `seed`: 32 random bytes, drawn again for every life.
    pub fn new(epoch: Arc<Epoch>, me: MemberIndex, key: SecretKey, seed: [u8; 32]) -> Self {
        Self {
            epoch,
            me,
            key,
            seed,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }

    /// The nth number drawn for one use.
    fn draw(&self, label: &str, nth: u64) -> u64 {
        let Hash(drawn) = Hash::labelled(label, &[&self.seed, &nth.to_le_bytes()]);
        let (first, _) = drawn.split_first_chunk().expect("32 bytes hold 8");
        u64::from_le_bytes(*first)
    }

    /// The same member with one rule broken.
    #[cfg(feature = "mutations")]
    pub fn breaking(self, rule: Mutation) -> Self {
        Self {
            mutation: Some(rule),
            ..self
        }
    }
}

/// A rule that can be broken, to prove that the checkers of the properties can fail. Takes effect
/// only in builds with the feature `mutations`, which only tests turn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutation {
    /// Certificates of one vote too few are formed.
    QuorumMinusOne,
    /// Votes are not remembered over a restart.
    VotesForgotten,
    /// Finalize after Nullify.
    FinalizeAfterNullify,
    /// A proposal needs no proof of the views it skips.
    SkippedWithoutProof,
    /// Notarize every proposal of a view.
    NotarizeTwice,
    /// A proposal may have one inclusion less than entries.
    InclusionMissing,
    /// The lead invents a score, and nobody looks at their own row.
    ForgedScore,
    /// One's own receipt does not matter.
    ReceiptIgnored,
    /// A round may start from a block that is only notarised.
    RoundFromNotarised,
}

/// The whole behaviour of a silo towards the others.
pub struct Member {
    config: Config,
    now: Time,
    chain: Chain,
    ballots: Ballots,
    view: View,
    round: Round,
    adoption: Adoption,
    absences: Absences,
    lead: Option<Lead>,
    sync: Sync,
    round_trips: Vec<Option<Duration>>,
    /// The shortest D, as it follows from the round trips.
    shortest_phase: Duration,
    next_beat: Time,
    /// Messages to oneself: a lead contributes to and votes for itself like for anybody.
    loopback: VecDeque<Message>,
    /// Messages of views that are about to begin here.
    early: VecDeque<Message>,
    /// Who was shown to break the rules.
    accused: BTreeSet<MemberIndex>,
    /// Who cannot be reached.
    unreachable: BTreeSet<MemberIndex>,
    /// Another process was heard that signs with this member's key.
    key_used_elsewhere: bool,
    complete: bool,
    /// Who said that the last round is applied at its place.
    complete_members: BTreeSet<MemberIndex>,
    out: Vec<Effect>,
}

/// The current view.
struct View {
    number: u64,
    lead: MemberIndex,
    entered: Time,
    /// When its lead last showed progress, and how often it had.
    last_progress: Time,
    progress_counter: Option<u64>,
    /// The entry that its lead gave a receipt for.
    receipt: Option<Hash>,
    /// Its lead's proposal, and how far judging it is.
    judged: Option<Judged>,
    /// How often something that a member said was refused.
    refused: ByMember<usize>,
}

/// Refusals of one member that are reported in a view.
const REFUSALS: usize = 8;

impl Member {
    /// Comes to life. What is to be done first is added to `effects`.
    pub fn new(config: Config, start: Start, now: Time, effects: &mut Vec<Effect>) -> Self {
        let epoch = &config.epoch;
        let n = epoch.roster.len();
        let (past, records) = match start {
            Start::New => (Journal::Empty, Vec::new()),
            Start::Kept(records) => (Journal::Kept, records),
            Start::Lost => (Journal::Lost, Vec::new()),
        };
        let mut member = Self {
            chain: Chain::new(epoch),
            ballots: Ballots::default(),
            view: View::new(1, epoch.lead(1), now),
            round: Round::new(1, now),
            adoption: Adoption::default(),
            absences: Absences::default(),
            lead: None,
            sync: Sync::new(past),
            round_trips: vec![None; n],
            shortest_phase: epoch.beat() / 2,
            next_beat: now + epoch.beat(),
            loopback: VecDeque::new(),
            early: VecDeque::new(),
            accused: BTreeSet::new(),
            unreachable: BTreeSet::new(),
            key_used_elsewhere: false,
            complete: false,
            complete_members: BTreeSet::new(),
            out: Vec::new(),
            config,
            now,
        };
        let applied = member.restore(records);
        member.begin(applied);
        member.try_to_take_part();
        member.run_until_quiet();
        effects.append(&mut member.out);
        member
    }

    /// Takes one input. Effects are added to `effects`, in the order in which to do them.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        match input {
            Input::Opened(Opened::Message(message)) if message.sender == self.me() => {
                self.own_message_from_outside(&message);
            }
            Input::Opened(Opened::Message(message)) => self.receive(message),
            Input::Opened(Opened::Certificate(certificate)) => self.add_certificate(certificate),
            Input::Opened(Opened::Evidence(evidence)) => self.accuse(*evidence),
            Input::Opened(Opened::Known) | Input::Time => {}
            Input::Up { peer, round_trip } => self.peer_up(peer, round_trip),
            Input::Down { peer } => self.peer_down(peer),
            Input::Planned(planned) => self.planned(planned),
            Input::Trained { round, result } => self.trained(round, result),
            Input::Admitted {
                round,
                from,
                fields,
                result,
            } => self.admitted(round, from, &fields, result),
            Input::Evaluated { round, result } => self.evaluated(round, result),
            Input::Held {
                round,
                blobs,
                result,
            } => self.held(round, &blobs, result),
            Input::Decided { sheet, result } => self.decided(sheet, result),
            Input::Checked { case, result } => self.checked(case, result),
            Input::Settled { case, result } => self.settled(case, result),
            Input::Applied { round, result } => self.applied(round, result),
        }
        self.run_until_quiet();
        effects.append(&mut self.out);
    }

    /// What is proven already, for [`envelope::open`].
    pub fn known(&self) -> Known {
        Known {
            accused: self.accused.clone(),
            ..self.chain.known()
        }
    }

    /// Whether a member may have this blob of ours now: one's own contribution goes to the leads
    /// alone until the whole bundle is here.
    pub fn may_serve(&self, by: MemberIndex, blob: &Hash) -> bool {
        self.round.own.may_serve(blob) || by == self.view.lead
    }

    /// The view it is in.
    pub fn view(&self) -> u64 {
        self.view.number
    }

    /// The round it works on; one more than the charter's rounds when all are done.
    pub fn round(&self) -> u64 {
        self.round.number
    }

    /// Whether the last round is final and applied.
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Takes back what was made durable; the last round applied.
    fn restore(&mut self, records: Vec<Record>) -> u64 {
        let mut applied = 0;
        let mut own = None;
        for record in records {
            match record {
                Record::Final { blocks, proof } => {
                    self.chain.advance(blocks, proof);
                }
                Record::Certified(certificate) => {
                    if matches!(certificate.verdict, Verdict::Final(_)) {
                        // Its ancestors were not all here.
                        self.chain.unresolved = Some(certificate.clone());
                    }
                    self.chain.insert(certificate, self.now);
                }
                Record::Block(block) => self.chain.keep(block.hash(), block),
                Record::Vote(message) => {
                    if !self.broken(Mutation::VotesForgotten) {
                        self.ballots.restore(&self.config.epoch, message);
                    }
                }
                Record::Proposed(message) => self.ballots.restore(&self.config.epoch, message),
                Record::Contributed(message) => own = Some(message),
                Record::Applied { round } => applied = round,
            }
        }
        let tip = self.chain.tip.view;
        self.chain.unresolved.take_if(|proof| proof.view <= tip);
        self.round = Round::new(self.chain.learned.round + 1, self.now);
        if let Some(message) = own.filter(|message| message.round == self.round.number) {
            let epoch = self.config.epoch.clone();
            self.restore_contribution(&epoch, message);
        }
        applied
    }

    /// Enters the first view, or the one it was in when it stopped.
    fn begin(&mut self, applied: u64) {
        if applied >= self.config.epoch.charter.rounds {
            self.all_rounds_applied();
        }
        let view = (self.chain.tip.view + 1)
            .max(self.chain.highest() + 1)
            .max(self.ballots.highest());
        self.enter(view);
        self.adoption.applied = applied;
        if applied < self.chain.learned.round {
            let missing = self.chain.final_rounds(applied);
            self.adoption.waiting = missing;
        }
    }

    /// Does everything that has become possible or due, and hears oneself, until nothing is left.
    fn run_until_quiet(&mut self) {
        loop {
            self.drive();
            let Some(message) = self.loopback.pop_front() else {
                break;
            };
            self.receive(message);
        }
    }

    fn drive(&mut self) {
        self.adopt();
        self.request_plan();
        self.train();
        self.score();
        self.contribute();
        self.sign();
        self.lead();
        self.judge();
        self.check_lead_timers();
        self.each_beat();
    }

    /// A verified message of any member, oneself included.
    fn receive(&mut self, message: Message) {
        let kind = message.body.kind();
        let of_view = matches!(
            kind,
            Kind::Receipt | Kind::Bundle | Kind::Sheet | Kind::Progress | Kind::Proposal
        );
        if let Body::Proposal(proposal) = &message.body {
            // The certificates inside may be what brings this member to the proposal's view.
            for certificate in proposal.parent.iter().chain(&proposal.skipped) {
                if !self.chain.has(certificate.view, certificate.verdict) {
                    self.add_certificate(certificate.clone());
                }
            }
        }
        let near = self.view.number + 2 * self.config.epoch.roster.len() as u64;
        if of_view && !(self.view.number..=near).contains(&message.view) {
            return;
        }
        if of_view && message.sender != self.config.epoch.lead(message.view) {
            let view = message.view;
            let lead = self.config.epoch.lead(view);
            let lead = self.config.epoch.roster.name(lead).to_owned();
            let reason = Refusal::NotTheLead { kind, view, lead };
            return self.refuse(message.sender, message.round, reason);
        }
        if of_view && message.view != self.view.number {
            return self.keep_for_its_view(message);
        }
        let (round, sender) = (message.round, message.sender);
        match message.body {
            Body::Contribution(_) => self.contribution(message),
            Body::Receipt { entry } => self.receipt(entry),
            Body::Bundle(bundle) => self.bundle(round, bundle),
            Body::Scores(scores) => self.scores(sender, round, scores),
            Body::Sheet(sheet) => self.sheet(round, sheet),
            Body::Inclusion { sheet } => self.inclusion(&message, sheet),
            Body::Proposal(_) => self.proposal(message),
            Body::Notarize { .. } | Body::Finalize { .. } | Body::Nullify => {
                self.receive_vote(message)
            }
            Body::Progress { counter, .. } => self.progressed(counter),
            Body::SyncRequest {
                after,
                from,
                missing,
                nonce,
            } => self.answer_sync_request(sender, (after, from), missing, nonce),
            Body::SyncResponse(response) => self.receive_sync_response(sender, *response),
            Body::Complete => self.receive_complete(sender, round),
        }
    }

    /// Enters a view; there is no way back to an earlier one.
    fn enter(&mut self, number: u64) {
        let lead = self.config.epoch.lead(number);
        self.view = View::new(number, lead, self.now);
        self.lead = None;
        // What an earlier lead's sheet asked for may never come.
        self.round.models.fetching = false;
        if self.complete {
            return;
        }
        self.out.push(Effect::Report(Report::Entered {
            view: number,
            lead,
            round: self.round.number,
        }));
        self.begin_to_lead();
        let waiting = std::mem::take(&mut self.early);
        for message in waiting {
            if message.view == number {
                match message.body {
                    // Known before anything of this view is judged.
                    Body::Receipt { entry } if message.sender == lead => self.receipt(entry),
                    _ => self.loopback.push_back(message),
                }
            } else if message.view > number {
                self.early.push_back(message);
            }
        }
    }

    /// Leads the view, if it is this member's and it may; and sends its contribution to its lead.
    fn begin_to_lead(&mut self) {
        let leads = self.view.lead == self.me() && !self.complete;
        if leads && self.lead.is_none() && !self.sync.listening() {
            self.lead = Some(Lead::new());
            self.start_leading();
        }
        if self.chain.newest_notarised().is_none() {
            self.send_contribution();
        }
    }

    /// Of the lead of a view that is about to begin here, who alone may say it: the last of a kind.
    fn keep_for_its_view(&mut self, message: Message) {
        let same = |other: &Message| {
            other.sender == message.sender
                && other.view == message.view
                && other.body.kind() == message.body.kind()
        };
        self.early.retain(|other| !same(other));
        self.early.push_back(message);
    }

    /// A member was shown to break the rules. One proof is enough: more would let it fill logs.
    fn accuse(&mut self, evidence: Evidence) {
        if self.accused.insert(evidence.member) {
            let frame = envelope::seal_evidence(&self.config.epoch, &evidence);
            self.out.push(Effect::Publish { frame });
            self.out
                .push(Effect::Report(Report::Fault(Box::new(evidence))));
        }
    }

    /// Tells people that something is not accepted. Of one member at most a few times in a view, so
    /// that it cannot fill logs.
    fn refuse(&mut self, member: MemberIndex, round: u64, reason: Refusal) {
        let said = self.view.refused.entry(member).or_default();
        *said += 1;
        if *said > REFUSALS {
            return;
        }
        self.out.push(Effect::Report(Report::Refused {
            member,
            round,
            reason,
        }));
    }

    fn me(&self) -> MemberIndex {
        self.config.me
    }

    fn others(&self) -> Vec<MemberIndex> {
        self.config
            .epoch
            .roster
            .members()
            .filter(|&member| member != self.me())
            .collect()
    }

    /// Signs a message.
    fn seal(&self, round: u64, view: u64, body: Body) -> (Message, Bytes) {
        envelope::seal(
            &self.config.epoch,
            &self.config.key,
            round,
            view,
            self.me(),
            body,
        )
    }

    /// Hands a message to a member, oneself included.
    fn send(&mut self, to: MemberIndex, message: &Message, frame: &Bytes) {
        if to == self.me() {
            self.loopback.push_back(message.clone());
        } else {
            self.out.push(Effect::Send {
                to,
                frame: frame.clone(),
            });
        }
    }

    /// Hands a message to everybody, oneself included.
    fn publish(&mut self, message: Message, frame: Bytes) {
        self.out.push(Effect::Publish { frame });
        self.loopback.push_back(message);
    }

    #[cfg(feature = "mutations")]
    fn broken(&self, rule: Mutation) -> bool {
        self.config.mutation == Some(rule)
    }

    #[cfg(not(feature = "mutations"))]
    fn broken(&self, _: Mutation) -> bool {
        false
    }
}

impl View {
    fn new(number: u64, lead: MemberIndex, now: Time) -> Self {
        Self {
            number,
            lead,
            entered: now,
            last_progress: now,
            progress_counter: None,
            receipt: None,
            judged: None,
            refused: ByMember::new(),
        }
    }
}

/// Signatures over a sheet by the authors of its entries, ascending by member.
type Inclusions = Arc<[(MemberIndex, crate::identity::Signature)]>;
/// Members and what they sent.
type ByMember<T> = BTreeMap<MemberIndex, T>;
