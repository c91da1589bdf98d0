//! A member of a federation as a state machine: inputs in, effects out. The rules R1–R5 stand in
//! `docs/protocol.md`.
//!
//! | file | holds |
//! |---|---|
//! | `round` | the round under way: its plan, and what the next four files keep of it |
//! | `own` | this member's own part: training, contributing, when others may have its model |
//! | `scoring` | scoring the entries of a bundle on this member's data |
//! | `inbox` | contributions and scores of others, kept in case this member leads |
//! | `sheets` | the sheets of the round that are kept |
//! | `signing` | keeping a sheet's models and signing for it |
//! | `entries` | the entries that a round may have, and when they are enough |
//! | `lead` | the lead's part: collecting, bundle, sheet, proposal |
//! | `judge` | whether to vote for a proposal (R1, R2) |
//! | `ballots` | this member's votes, and votes collected into certificates (R1–R3, R5) |
//! | `chain` | final blocks, later certificates, making blocks final (R3, R4) |
//! | `adoption` | adopting final outcomes (R4) |
//! | `amendments` | changes of the agreement: approvals, and the end of the epoch |
//! | `approvals` | what members say of amendments: the last word of each counts |
//! | `recovery` | going on without members that are gone for good |
//! | `recoveries` | who has signed and confirmed that, and when a member may sign anew |
//! | `presence` | which members can be reached, and how fast |
//! | `absences` | members that are not waited for |
//! | `outbox` | what leaves this member in a step |
//! | `sync` | catching up with what became final elsewhere |
//! | `participation` | only listening, while this member cannot know what it has signed (R5) |
//! | `completion` | the end: the last round is adopted here, and at others |
//! | `clock` | the timers |
//! | `reporting` | evidence and refusals, in bounded number |
//!
//! Every input changes some of this state. Then `Member::drive` takes all steps that have become possible
//! or due, as a function of the state alone, until nothing is left to do. So the order of messages
//! does not matter, and a message that was lost has the same effect when it is sent again.

mod absences;
mod adoption;
mod amendments;
mod approvals;
mod ballots;
mod chain;
mod clock;
mod completion;
mod config;
mod entries;
mod inbox;
mod judge;
mod lead;
mod outbox;
mod own;
mod participation;
mod presence;
mod proposals;
mod recoveries;
mod recovery;
mod reporting;
mod round;
mod scoring;
mod sheets;
mod signing;
mod sync;
#[cfg(test)]
mod tests;
mod timers;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::certificate::Verdict;
use crate::effects::{Effect, Input, Record, Report};
use crate::envelope::{Known, Opened};
use crate::hash::Hash;
use crate::message::{Body, Message};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

pub use approvals::KEPT;
pub use config::{Config, Examine, Start};

pub use crate::mutation::Mutation;

use adoption::Adoption;
use amendments::Amendments;
use ballots::Ballots;
use chain::Chain;
use completion::Completion;
use entries::Waiting;
use inbox::Again;
use judge::Judged;
use lead::Lead;
use outbox::Outbox;
use participation::{Journal, Participation};
use presence::Presence;
use recoveries::Recoveries;
use round::Round;
use sync::Sync;
use timers::Timing;

/// The state machine of one member: its whole behaviour towards the others.
pub struct Member {
    config: Config,
    now: Time,
    chain: Chain,
    ballots: Ballots,
    view: View,
    round: Round,
    adoption: Adoption,
    lead: Option<Lead>,
    sync: Sync,
    participation: Participation,
    presence: Presence,
    next_beat: Time,
    /// Members against whom there is evidence.
    accused: BTreeSet<MemberIndex>,
    completion: Completion,
    amendments: Amendments,
    recoveries: Recoveries,
    /// The agreement has changed: this member does nothing more.
    over: bool,
    out: Outbox,
}

/// The current view.
struct View {
    number: u64,
    lead: MemberIndex,
    entered: Time,
    /// When the lead's progress counter last grew, and its value.
    last_progress: Time,
    progress_counter: Option<u64>,
    /// This member's entry, once the lead has given a receipt for it.
    receipt: Option<Hash>,
    /// The lead's proposal, once it is here.
    judged: Option<Judged>,
    /// Messages by the leads of later views.
    early: VecDeque<Message>,
}

impl Member {
    /// Starts a member. Its first effects are added to `effects`, in the order in which to carry them
    /// out.
    pub fn new(config: Config, start: Start, now: Time, effects: &mut Vec<Effect>) -> Self {
        let epoch = &config.epoch;
        let (past, records) = match start {
            Start::New => (Journal::Empty, Vec::new()),
            // In an epoch in which it has signed nothing yet, as far as its journal knows, a member
            // asks others like a new one.
            Start::Kept(records) if epoch.number > 0 && records.iter().all(Record::is_adoption) => {
                (Journal::Empty, records)
            }
            Start::Kept(records) => (Journal::Kept, records),
            Start::Lost => (Journal::Lost, Vec::new()),
        };
        let mut member = Self {
            chain: Chain::new(epoch),
            ballots: Ballots::default(),
            view: View::new(1, epoch.lead(1), now),
            round: Round::new(epoch.began.round + 1, now),
            adoption: Adoption::default(),
            lead: None,
            sync: Sync::new(past),
            participation: Participation::new(past),
            presence: Presence::new(epoch),
            next_beat: now + epoch.beat(),
            accused: BTreeSet::new(),
            completion: Completion::default(),
            amendments: Amendments::default(),
            recoveries: Recoveries::default(),
            over: false,
            out: Outbox::new(config.me),
            config,
            now,
        };
        let applied = member.restore(records);
        member.begin(applied);
        member.try_to_take_part();
        member.run_until_quiet();
        member.out.move_to(effects);
        member
    }

    /// Takes one input. Its effects are added to `effects`, in the order in which to carry them out.
    /// A time before that of an earlier step counts as that earlier time.
    pub fn step(&mut self, now: Time, input: Input, effects: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        if self.over || self.recoveries.signed() && !self.heeds(&input) {
            return;
        }
        match input {
            Input::Opened(Opened::Message(message)) if message.sender == self.config.me => {
                self.own_message_from_outside(&message);
            }
            Input::Opened(Opened::Message(message)) => self.receive(message),
            Input::Opened(Opened::Certificate(certificate)) => self.add_certificate(certificate),
            Input::Opened(Opened::Evidence(evidence)) => self.accuse(*evidence),
            Input::Opened(Opened::Passage(passage)) => self.pass(*passage),
            Input::Opened(Opened::Known) | Input::Time => {}
            Input::Approve { amendment, number } => self.approve(*amendment, number),
            Input::Withdraw { amendment, number } => self.withdraw(amendment, number),
            Input::Arrived { key } => self.arrived(key),
            Input::Resume => self.config.paused = false,
            Input::Recover { lost, abandon } => self.recover(lost, abandon),
            Input::KeyElsewhere => self.own_key().elsewhere(),
            Input::Up { peer, round_trip } => self.peer_up(peer, round_trip),
            Input::Down { peer } => self.peer_down(peer),
            Input::Planned(planned) => self.planned(planned),
            Input::Trained { round, result } => self.contributing().trained(round, result),
            Input::Admitted {
                round,
                from,
                fields,
                result,
            } => self.leading().admitted(round, from, &fields, result),
            Input::Evaluated { round, result } => {
                let kept = self.signing().evaluated(round, result);
                self.against_lead(round, kept);
            }
            Input::Held {
                round,
                blobs,
                result,
            } => self.signing().held(round, &blobs, result),
            Input::Decided { sheet, result } => {
                if let Err(reason) = self.leading().decided(sheet, result) {
                    self.voting().nullify(reason);
                }
            }
            Input::Checked { case, result } => {
                let kept = self.judging().checked(case, result);
                self.against_lead(self.round.number, kept);
            }
            Input::Settled { case, result } => self.judging().settled(case, result),
            Input::Kept {
                round,
                outcome,
                result,
            } => {
                let kept = self.judging().kept(round, outcome, result);
                self.against_lead(round, kept);
            }
            Input::Applied {
                round,
                ends,
                result,
            } => self.applied(round, ends, result),
        }
        self.run_until_quiet();
        self.out.move_to(effects);
    }

    /// What this member has verified, for [`envelope::open`].
    pub fn known(&self) -> Known {
        Known {
            accused: self.accused.clone(),
            ..self.chain.known()
        }
    }

    /// Whether a member may have this blob of this member now. Until the bundle is here, only the lead of
    /// the view may have this member's own model.
    pub fn may_serve(&self, by: MemberIndex, blob: &Hash) -> bool {
        self.round.own.may_serve(blob)
            || by == self.view.lead
            || self.config.broken(Mutation::ModelGivenEarly)
    }

    /// The current view.
    pub fn view(&self) -> u64 {
        self.view.number
    }

    /// The lead of the current view, as far as this member knows the final rounds.
    pub fn lead_now(&self) -> MemberIndex {
        self.view.lead
    }

    /// The round under way; one more than the charter's rounds when all are final.
    pub fn round(&self) -> u64 {
        self.round.number
    }

    /// Whether the last round is final and adopted.
    pub fn complete(&self) -> bool {
        self.completion.reached
    }

    /// Takes back the records of the journal. Gives the last round that was adopted.
    fn restore(&mut self, records: Vec<Record>) -> u64 {
        let mut applied = 0;
        let mut own = None;
        for record in records {
            match record {
                Record::Final { .. } if self.config.broken(Mutation::FinalForgotten) => {}
                Record::Final { blocks, proof } => {
                    self.chain.advance(&self.config.epoch, blocks, proof);
                }
                Record::Certified(_) if self.config.broken(Mutation::CertificatesForgotten) => {}
                Record::Certified(certificate) => {
                    if matches!(certificate.verdict, Verdict::Final(_)) {
                        // A final block is recorded like this while an ancestor is missing.
                        self.chain.unresolved = Some(certificate.clone());
                    }
                    self.chain.insert(certificate, self.now);
                }
                Record::Block(block) => self.chain.keep(block.hash(), block),
                Record::Vote(message) => {
                    if !self.config.broken(Mutation::VotesForgotten) {
                        self.ballots.restore(&self.config.epoch, message);
                    }
                }
                Record::Proposed(_) if self.config.broken(Mutation::ProposalForgotten) => {}
                Record::Proposed(message) => self.ballots.restore(&self.config.epoch, message),
                Record::Contributed(_) if self.config.broken(Mutation::ContributionForgotten) => {}
                Record::Contributed(message) => own = Some(message),
                Record::Applied { .. } if self.config.broken(Mutation::AdoptionForgotten) => {}
                Record::Applied { round } => applied = round,
                Record::Standing(_) if self.config.broken(Mutation::StandingForgotten) => {}
                Record::Standing(message) => self.recoveries.restore(message),
                Record::Confirmed(_) if self.config.broken(Mutation::ConfirmationForgotten) => {}
                Record::Confirmed(confirmed) => self.recoveries.restore_confirmed(*confirmed),
                Record::Outdated(what) => self.own_key().stop_signing(what),
            }
        }
        let tip = self.chain.tip.view;
        self.chain.unresolved.take_if(|proof| proof.view <= tip);
        self.round = Round::new(self.chain.learned.round + 1, self.now);
        if let Some(message) = own.filter(|message| message.round == self.round.number) {
            self.contributing().restore(message);
        }
        applied
    }

    /// Enters the first view, or the one in which this member stopped.
    fn begin(&mut self, applied: u64) {
        if applied >= self.config.last_round() {
            self.all_rounds_applied();
        }
        let view = (self.chain.tip.view + 1)
            .max(self.chain.highest() + 1)
            .max(self.ballots.highest());
        self.enter(view);
        self.adoption.applied = applied;
        if applied < self.chain.learned.round {
            let missing = self.chain.final_rounds(&self.config.epoch, applied);
            self.adoption.waiting = missing;
        }
    }

    /// Does everything that has become possible or due, and takes the messages to itself, until
    /// nothing is left.
    fn run_until_quiet(&mut self) {
        loop {
            if self.over {
                break;
            }
            self.drive();
            let Some(message) = self.out.next_own() else {
                break;
            };
            self.receive(message);
        }
    }

    /// Does everything that is possible or due in the present state.
    fn drive(&mut self) {
        self.sign_standing();
        if self.recoveries.signed() {
            self.go_on_without_the_lost();
            return self.each_beat();
        }
        if self.config.bystander.is_none() {
            self.adopt();
            self.request_plan();
        }
        self.contributing().train();
        self.signing().score();
        self.contributing().contribute();
        self.contributing().say_nothing();
        self.signing().sign();
        self.lead();
        if !self.participation.listening() {
            // Otherwise the proposal stays: this member may be allowed to vote later in this view.
            self.judge();
        }
        if let Some(reason) = self.timing().lead_fails() {
            self.voting().nullify(reason);
        }
        self.each_beat();
    }

    /// Takes a verified message of any member, this one included.
    fn receive(&mut self, message: Message) {
        let kind = message.body.kind();
        let of_view = kind.is_of_lead();
        if let Body::Proposal(proposal) = &message.body {
            // The certificates inside may bring this member to the proposal's view.
            for certificate in proposal.parent.iter().chain(&proposal.skipped) {
                if !self.chain.has(certificate.view, certificate.verdict) {
                    self.add_certificate(certificate.clone());
                }
            }
        }
        let furthest = self.view.number + 2 * self.config.epoch.roster.len() as u64;
        if of_view && !(self.view.number..=furthest).contains(&message.view) {
            return;
        }
        let by_lead = || match &message.body {
            Body::Proposal(proposal) if message.view == self.view.number => {
                let epoch = &self.config.epoch;
                self.chain
                    .may_propose(epoch, message.view, message.sender, proposal)
            }
            _ => message.sender == self.chain.lead(&self.config.epoch, message.view),
        };
        if of_view && !by_lead() && !self.config.broken(Mutation::AnyoneLeads) {
            if self.config.epoch.charter.rotation.follows_rounds() {
                // Its sender may know a final round that this member does not know yet, or the
                // other way round. An honest lead sends it again.
                return;
            }
            let view = message.view;
            let lead = self.chain.lead(&self.config.epoch, view);
            let lead = self.config.epoch.roster.name(lead).to_owned();
            let reason = Refusal::NotTheLead { kind, view, lead };
            return self.out.refuse(message.sender, message.round, reason);
        }
        if of_view && message.view != self.view.number {
            return self.keep_for_its_view(message);
        }
        let (round, sender) = (message.round, message.sender);
        match message.body {
            Body::Contribution(_) => match self.contributing().take(message) {
                Some(Again::Contradiction(evidence)) => self.accuse(evidence),
                Some(Again::WithoutReceipt(sender)) => self.leading().repeat_receipt(sender),
                None => {}
            },
            Body::Receipt { entry } => self.contributing().receipt(entry),
            Body::Bundle(bundle) => {
                let kept = self.signing().bundle(round, bundle);
                self.against_lead(round, kept);
            }
            Body::Scores(scores) => self.leading().scores(sender, round, scores),
            Body::Sheet(sheet) => {
                let kept = self.signing().sheet(round, sheet);
                self.against_lead(round, kept);
            }
            Body::Inclusion { sheet } => self.leading().inclusion(&message, sheet),
            Body::Proposal(_) => self.proposal(message),
            Body::Notarize { .. } | Body::Finalize { .. } | Body::Nullify => {
                self.receive_vote(message)
            }
            Body::Progress { counter, .. } => {
                self.view.progressed(&self.config, self.now, counter);
            }
            Body::SyncRequest {
                after,
                from,
                missing,
                nonce,
            } => self.answer_sync_request(sender, (after, from), missing, nonce),
            Body::SyncResponse(response) => self.receive_sync_response(sender, *response),
            Body::Complete => self.receive_complete(sender, round),
            Body::Nothing => self.contributing().has_nothing(sender, round),
            Body::Amendment(amendment) => self.receive_amendment(sender, *amendment),
            Body::Standing(standing) => {
                self.receive_standing(sender, *standing, message.signature);
            }
            Body::Confirmation(confirmation) => {
                self.receive_confirmation(sender, *confirmation, message.signature);
            }
            Body::Approval {
                amendment,
                number,
                stands,
            } => {
                self.receive_approval(sender, amendment, (number, stands), message.signature);
            }
        }
    }

    /// The spans of the present view.
    fn timing(&self) -> Timing<'_> {
        Timing {
            config: &self.config,
            now: self.now,
            chain: &self.chain,
            view: &self.view,
            round: &self.round,
            presence: &self.presence,
            lead: self.lead.as_ref(),
        }
    }

    /// Whom the round waits for.
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            config: &self.config,
            now: self.now,
            round: &self.round,
            presence: &self.presence,
        }
    }

    /// Enters a view. The number never falls. It stays the same where a block that became final
    /// gives the view another lead.
    fn enter(&mut self, number: u64) {
        let lead = self.chain.lead(&self.config.epoch, number);
        let again = number == self.view.number;
        let early = std::mem::take(&mut self.view.early);
        self.view = View::new(number, lead, self.now);
        self.view.early = early;
        self.out.view_begins();
        // What this member proposed in a view stays its only proposal there, and is sent on.
        self.lead.take_if(|lead| !(again && lead.proposed()));
        // Models of an earlier lead's sheet may never arrive.
        self.round.models.fetching = false;
        if self.at_rest() {
            return;
        }
        self.out.push(Effect::Report(Report::Entered {
            view: number,
            lead,
            round: self.round.number,
        }));
        self.begin_to_lead();
        let waiting = std::mem::take(&mut self.view.early);
        for message in waiting {
            if message.view == number {
                match message.body {
                    // At once, so that no proposal of this view is judged without it.
                    Body::Receipt { entry } if message.sender == lead => {
                        self.contributing().receipt(entry)
                    }
                    _ => self.out.deliver_to_self(message),
                }
            } else if message.view > number {
                self.view.early.push_back(message);
            }
        }
    }

    /// Starts to lead the view if it is this member's and it may sign. Sends the contribution to the
    /// view's lead.
    fn begin_to_lead(&mut self) {
        let leads =
            self.view.lead == self.config.me && !self.at_rest() && !self.recoveries.signed();
        if leads && self.lead.is_none() && !self.participation.listening() {
            self.lead = Some(Lead::new());
            let durable = self.voting().proposal();
            self.leading().start(durable);
        }
        if self.chain.newest_notarised().is_none() {
            self.contributing().send_contribution();
        }
    }

    /// Keeps a message by the lead of a later view: the last one of each kind.
    fn keep_for_its_view(&mut self, message: Message) {
        let same = |other: &Message| {
            other.sender == message.sender
                && other.view == message.view
                && other.body.kind() == message.body.kind()
        };
        self.view.early.retain(|other| !same(other));
        self.view.early.push_back(message);
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
            early: VecDeque::new(),
        }
    }
}

/// Signatures over a sheet by the authors of its entries, ascending by member.
type Inclusions = Arc<[(MemberIndex, crate::identity::Signature)]>;
/// Something about each of some members.
type ByMember<T> = BTreeMap<MemberIndex, T>;
