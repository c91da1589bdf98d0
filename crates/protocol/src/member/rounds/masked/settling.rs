//! What follows the finality of a masked round: opening its sums, voting for the outcome, and its
//! certificate (M5, M6). Nobody leads here.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::certificate::{Certificate, Verdict};
use crate::effects::{Effect, FinalMasked, Record, Report};
use crate::envelope;
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::rounds::masked::outcomes::Outcomes;
use crate::member::{ByMember, Config, Member};
use crate::message::{Body, Message, Unmasking};
use crate::parameters::Masked;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{Request, WorkError};

/// What this member has of the sums of the last final masked round.
#[derive(Default)]
pub(in crate::member) struct Settlement {
    /// The round, until its outcome is certified here.
    open: Option<Arc<FinalMasked>>,
    /// This member's own unmasking.
    own: WorkState<(Message, Bytes)>,
    /// The shares and proofs of ready members.
    openings: ByMember<Vec<u8>>,
    /// Members whose proofs did not hold.
    unproven: BTreeSet<MemberIndex>,
    /// The outcome, as this member computed it, and with how many unmaskings it tried last.
    outcome: WorkState<Hash>,
    tried: usize,
    /// Messages and a certificate of a block that is not known to be final yet: the last of each member
    /// and kind.
    early: Vec<Message>,
    certified: Option<Certificate>,
}

/// How far a piece of work is.
#[derive(Default)]
enum WorkState<T> {
    #[default]
    Due,
    Running,
    /// The work failed; tried again after a heartbeat.
    Stalled,
    /// The work cannot be done here.
    Never,
    Done(T),
}

/// Opening the sums of a final round, and voting for its outcome. Borrows what that depends on.
pub(in crate::member) struct Settling<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    outcomes: &'a mut Outcomes,
    participation: &'a ParticipationState,
    settlement: &'a mut Settlement,
}

impl Member {
    /// Lends what the outcome of a final masked round depends on.
    pub(in crate::member) fn settling(&mut self) -> Settling<'_> {
        Settling {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            outcomes: &mut self.rounds.outcomes,
            participation: &self.consensus.participation,
            settlement: &mut self.rounds.settlement,
        }
    }
}

impl<T> WorkState<T> {
    /// Whether the work has to be done now; it is under way then.
    fn begin(&mut self) -> bool {
        let due = matches!(self, Self::Due);
        if due {
            *self = Self::Running;
        }
        due
    }

    fn failed(&mut self, error: &WorkError) {
        *self = match error {
            WorkError::Unavailable => Self::Stalled,
            WorkError::Refused(_) => Self::Never,
        };
    }

    fn retry(&mut self) {
        if matches!(self, Self::Stalled) {
            *self = Self::Due;
        }
    }
}

impl Settling<'_> {
    /// Begins with the sums of a masked round that became final.
    pub(in crate::member) fn begin(&mut self) {
        let final_round = self.chain.unsettled();
        let block = final_round.map(|(block, _)| block);
        if self.settlement.open.as_ref().map(|of| of.block) == block {
            return;
        }
        let before = std::mem::take(self.settlement);
        let Some((block, round)) = final_round else {
            self.settlement.early = before.early;
            return;
        };
        let threshold = self.config.threshold(round.ready.len());
        let round = round.clone();
        let of = FinalMasked {
            block,
            round,
            threshold,
        };
        self.settlement.open = Some(Arc::new(of));
        self.settlement.certified = before.certified;
        self.outcomes.of_block(block);
        before
            .early
            .into_iter()
            .for_each(|message| self.out.deliver_to_self(message));
    }

    /// Requests what has to be done now, and votes for the outcome.
    pub(in crate::member) fn work(&mut self) {
        let Some(of) = self.settlement.open.clone() else {
            return;
        };
        let holders = self.config.others();
        let ready = of.round.ready.binary_search(&self.config.me).is_ok();
        // No honest member voted for a round of fewer authors. Whoever did, this member opens no sum of it.
        let fewest = self.config.masked().map_or(0, Masked::fewest_authors);
        let ready = ready && of.round.ready.len() >= fewest;
        if ready && !self.participation.lost_journal() && self.settlement.own.begin() {
            let (of, holders) = (of.clone(), holders.clone());
            self.out.push(Effect::Work(Request::Unmask { of, holders }));
        }
        let here = self.settlement.openings.len();
        if here >= of.threshold && here > self.settlement.tried && self.settlement.outcome.begin() {
            self.settlement.tried = here;
            let unmaskings = self.settlement.openings.clone().into_iter().collect();
            self.out.push(Effect::Work(Request::Combine {
                of,
                unmaskings,
                holders,
            }));
        }
        if let WorkState::Done(outcome) = self.settlement.outcome {
            self.vote(outcome);
        }
    }

    /// This member's shares were unlocked, or could not be.
    pub(in crate::member) fn unmasked(&mut self, block: Hash, result: Result<Vec<u8>, WorkError>) {
        let Some(of) = self.settlement.open.clone().filter(|of| of.block == block) else {
            return;
        };
        match result {
            Ok(opening) => {
                let unmasking = Unmasking { block, opening };
                let body = Body::Unmasking(Box::new(unmasking.clone()));
                let sealed = self.config.sign(of.round.round, 0, body);
                self.settlement.own = WorkState::Done(sealed);
                self.add(self.config.me, unmasking);
                self.send_unmasking();
            }
            Err(error) => self.settlement.own.failed(&error),
        }
    }

    fn send_unmasking(&mut self) {
        if let WorkState::Done((message, frame)) = &self.settlement.own {
            for to in self.config.others() {
                self.out.send(to, message, frame);
            }
        }
    }

    fn add(&mut self, by: MemberIndex, unmasking: Unmasking) {
        if !self.settlement.unproven.contains(&by) {
            self.settlement
                .openings
                .entry(by)
                .or_insert(unmasking.opening);
        }
    }

    /// Another member's shares of the masks of a round. A member that seems to lack the certificate of
    /// the outcome gets it.
    pub(in crate::member) fn unmasking(&mut self, message: Message) {
        let (by, Body::Unmasking(unmasking)) = (message.sender, &message.body) else {
            return;
        };
        let limit = 32 * self.config.epoch.roster.len() + 64;
        if unmasking.opening.len() > limit {
            return self.out.refuse(by, message.round, Refusal::Unmasking);
        }
        match self.relation(unmasking.block) {
            Relation::Open(of) if of.round.ready.binary_search(&by).is_ok() => {
                self.add(by, (**unmasking).clone());
            }
            Relation::Open(_) => {
                self.out.refuse(by, message.round, Refusal::Unmasking);
            }
            Relation::Settled => self.answer(by),
            Relation::Unknown => self.keep_early(message),
        }
    }

    /// The sums were opened, or could not be.
    pub(in crate::member) fn combined(
        &mut self,
        block: Hash,
        unproven: Vec<MemberIndex>,
        result: Result<Hash, WorkError>,
    ) {
        let Some(of) = self.settlement.open.clone().filter(|of| of.block == block) else {
            return;
        };
        for by in unproven {
            self.settlement.openings.remove(&by);
            self.settlement.unproven.insert(by);
            self.out.refuse(by, of.round.round, Refusal::Unmasking);
        }
        match result {
            Ok(outcome) => self.settlement.outcome = WorkState::Done(outcome),
            Err(error) => {
                // With other unmaskings it may be possible at once.
                self.settlement.tried = self.settlement.tried.min(self.settlement.openings.len());
                self.settlement.outcome.failed(&error);
            }
        }
    }

    /// Votes for the outcome, once for the round (M6). It is durable before it is sent.
    fn vote(&mut self, outcome: Hash) {
        let Some(of) = self.settlement.open.clone() else {
            return;
        };
        if self.participation.listening() || self.outcomes.own.is_some() {
            return;
        }
        let (block, view) = (of.block, self.chain.learned.view);
        let (message, frame) = self.config.sign(0, view, Body::Outcome { block, outcome });
        self.out
            .push(Effect::Persist(Record::Vote(message.clone())));
        self.outcomes.remember(message, frame);
        self.send_vote();
    }

    fn send_vote(&mut self) {
        if let Some((message, frame)) = &self.outcomes.own {
            for to in self.config.others() {
                self.out.send(to, message, frame);
            }
        }
    }

    /// A vote of any member for an outcome. Gives evidence against a member of two.
    pub(in crate::member) fn outcome_vote(&mut self, message: Message) -> Option<Evidence> {
        let (by, &Body::Outcome { block, .. }) = (message.sender, &message.body) else {
            return None;
        };
        match self.relation(block) {
            Relation::Open(_) if message.view == self.chain.learned.view => {
                let votes = &mut self.outcomes.votes;
                let earlier = votes.entry(by).or_insert_with(|| message.clone());
                return Evidence::of(earlier, &message);
            }
            Relation::Open(_) => {}
            Relation::Settled => self.answer(by),
            Relation::Unknown => self.keep_early(message),
        }
        None
    }

    /// Where a block stands.
    fn relation(&self, block: Hash) -> Relation {
        if let Some(of) = self.settlement.open.clone().filter(|of| of.block == block) {
            return Relation::Open(of);
        }
        if self.chain.learned.block == block && self.chain.settled() {
            Relation::Settled
        } else {
            Relation::Unknown
        }
    }

    fn keep_early(&mut self, message: Message) {
        let kind = message.body.kind();
        let same = |other: &Message| other.sender == message.sender && other.body.kind() == kind;
        self.settlement.early.retain(|other| !same(other));
        self.settlement.early.push(message);
    }

    /// Sends the certificate of the last outcome to a member that seems to lack it. What came within half
    /// a heartbeat of it was probably sent before.
    fn answer(&mut self, to: MemberIndex) {
        let pause = self.config.epoch.heartbeat() / 2;
        let Some((certificate, since)) = &self.chain.certified else {
            return;
        };
        if to != self.config.me && self.now > *since + pause {
            let frame = envelope::sign_certificate(&self.config.epoch, certificate);
            self.out.push(Effect::Send { to, frame });
        }
    }

    /// The view of the open round, and the outcomes that members voted for.
    pub(in crate::member) fn voted(&self) -> Vec<(u64, Verdict)> {
        let votes = self.outcomes.votes.values();
        let verdicts = votes.filter_map(|message| match message.body {
            Body::Outcome { block, outcome } => Some(Verdict::Outcome { block, outcome }),
            _ => None,
        });
        let open = self.settlement.open.iter();
        let verdicts: BTreeSet<_> = open.flat_map(|_| verdicts.clone()).collect();
        let view = self.chain.learned.view;
        verdicts
            .into_iter()
            .map(|verdict| (view, verdict))
            .collect()
    }

    /// A certificate of the open round's outcome that came before the round was known to be final.
    pub(in crate::member) fn early_certificate(&mut self) -> Option<Certificate> {
        self.settlement.open.as_ref()?;
        self.settlement.certified.take()
    }

    /// A certificate of an outcome whose block is not known to be final is kept.
    pub(in crate::member) fn keep_certificate(&mut self, certificate: Certificate) {
        if certificate.verdict.is_outcome() && certificate.view > self.chain.learned.view {
            self.settlement.certified = Some(certificate);
        }
    }

    /// The outcome is certified: says so if this member computed another one.
    pub(in crate::member) fn compare(&mut self, certified: Hash) {
        let Some(of) = self.settlement.open.take() else {
            return;
        };
        if let WorkState::Done(computed) = self.settlement.outcome
            && computed != certified
        {
            let round = of.round.round;
            let report = Report::OtherOutcome {
                round,
                computed,
                certified,
            };
            self.out.push(Effect::Report(report));
        }
    }

    /// Once per heartbeat: sends again what no certificate has answered, and tries again what failed.
    pub(in crate::member) fn repeat(&mut self) {
        self.settlement.own.retry();
        self.settlement.outcome.retry();
        self.settlement.tried = 0;
        if self.settlement.open.is_some() {
            self.send_unmasking();
            if !self.participation.outdated() {
                self.send_vote();
            }
        }
    }
}

/// Where a block stands whose outcome a message is about.
enum Relation {
    /// The block's sums are being opened here.
    Open(Arc<FinalMasked>),
    /// The block is the last final one, and its outcome is certified here.
    Settled,
    /// The block is not known to be final here, or it is an earlier one.
    Unknown,
}
