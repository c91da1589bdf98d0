//! One member under test. The test plays all others with their keys, and asserts all effects of
//! every step in order.

use std::cell::RefCell;

use super::prelude::*;
use super::table::{BLOB, epoch, key, trained};
use crate::certificate::{Certificate, Checked, Verdict, Vote};
use crate::effects::{Case, Planned, Trained, WorkError};
use crate::identity::{Signature, Strict};
use crate::message::{
    Block, Content, Contribution, ContributionList, Entry, Learning, Proposal, RoundManifest,
    SyncResponse,
};
use crate::parameters::privacy::Voids;
use crate::parameters::{Epoch, Verification};

pub(super) const SEED: [u8; 32] = [7; 32];
/// What a vote for a learning block says was checked.
pub(super) const CHECKED: Checked = Checked::Outcome(Verification::Full);

thread_local! {
    /// The refusals that members reported in this thread, for `refusals`.
    pub(super) static REPORTED: RefCell<Vec<Refusal>> = const { RefCell::new(Vec::new()) };
}

/// The member under test.
pub(super) struct One {
    pub(super) epoch: Arc<Epoch>,
    pub(super) me: MemberIndex,
    pub(super) member: Member,
    pub(super) now: Time,
}

/// Keeps the refusal that a member reports, for `refusals`.
pub(super) fn note(report: &Report) {
    if let Report::Refused { reason, .. } | Report::Nullifying { reason, .. } = report {
        REPORTED.with_borrow_mut(|said| said.push(reason.clone()));
    }
}

impl One {
    /// Starts a member. Gives its first effects.
    pub(super) fn start(epoch: Arc<Epoch>, me: MemberIndex, start: Start) -> (Self, Vec<Effect>) {
        let mut effects = Vec::new();
        let config = Config::new(epoch.clone(), me, key(me.0), SEED);
        let member = Member::new(config, start, Time::ZERO, &mut effects);
        let now = Time::ZERO;
        let one = Self {
            epoch,
            me,
            member,
            now,
        };
        (one, effects)
    }

    /// Starts a member that took part before: its journal holds something that it signed for a round that is
    /// over, and these records besides. Gives its first effects.
    pub(super) fn restart(
        epoch: Arc<Epoch>,
        me: MemberIndex,
        records: Vec<Record>,
    ) -> (Self, Vec<Effect>) {
        let (before, _) = envelope::sign(&epoch, &key(me.0), 0, 0, me, Body::Nullify);
        let records = [Record::Contributed(before)].into_iter().chain(records);
        let records = records.collect();
        Self::start(epoch, me, Start::Kept(records))
    }

    /// A member that took part before, has asked another one and learned nothing new.
    pub(super) fn of(epoch: Arc<Epoch>, me: MemberIndex) -> Self {
        let (mut one, _) = Self::restart(epoch, me, vec![]);
        let peer = one.others()[0];
        let round_trip = Duration::from_millis(20);
        one.step(Input::Up { peer, round_trip });
        one.hear(peer, 0, 0, one.nothing_new(1));
        one
    }

    /// A member of n that does not lead before view n.
    pub(super) fn follower(n: u16) -> Self {
        let epoch = epoch(n, 5);
        let me = epoch.lead(0);
        Self::of(epoch, me)
    }

    /// A member of n as [`follower`](Self::follower) gives it, in an epoch of this message format.
    pub(super) fn in_format(format: u8, n: u16) -> Self {
        let mut epoch = (*epoch(n, 5)).clone();
        epoch.format = format;
        let me = epoch.lead(0);
        Self::of(Arc::new(epoch), me)
    }

    /// A member of n that leads this view.
    pub(super) fn leading(n: u16, view: u64) -> Self {
        let epoch = epoch(n, 5);
        let me = epoch.lead(view);
        Self::of(epoch, me)
    }

    /// Contributes to a round with all members and without scores.
    pub(super) fn contributed(mut self) -> Self {
        self.plan();
        self.train();
        self
    }

    /// Signs for the manifest of all entries, and holds all models of round 1.
    pub(super) fn signed(self) -> Self {
        let mut one = self.contributed();
        one.hold_all();
        one.hear_lead(1, one.contribution_list(&one.all()));
        one
    }

    /// Round 1 became final without a member, and it has contributed to round 2.
    pub(super) fn without_in_round_1(self, absent: MemberIndex) -> Self {
        let mut one = self.contributed();
        one.hold_all();
        let authors = one.without(absent);
        one.hear_lead(1, one.contribution_list(&authors));
        one.finish_round(&authors);
        one.contributed()
    }

    // Inputs.

    pub(super) fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.member.step(self.now, input, &mut effects);
        for effect in &effects {
            if let Effect::Report(report) = effect {
                note(report);
            }
        }
        effects
    }

    /// A message of another member is opened and taken.
    pub(super) fn hear(
        &mut self,
        from: MemberIndex,
        round: u64,
        view: u64,
        body: Body,
    ) -> Vec<Effect> {
        let (_, frame) = self.sealed(from, round, view, body);
        self.read(&frame)
    }

    /// Bytes are opened and taken.
    pub(super) fn read(&mut self, frame: &Bytes) -> Vec<Effect> {
        let opened = envelope::open(&self.epoch, &Strict, &self.member.known(), frame).unwrap();
        self.step(Input::Opened(opened))
    }

    /// The lead of a view sends a message of the current round.
    pub(super) fn hear_lead(&mut self, view: u64, body: Body) -> Vec<Effect> {
        let round = u64::from(body.kind().scope().round) * self.member.round();
        self.hear(self.epoch.lead(view), round, view, body)
    }

    /// The lead of a view proposes.
    pub(super) fn propose(&mut self, view: u64, proposal: &Proposal) -> Vec<Effect> {
        self.hear_lead(view, Body::Proposal(Box::new(proposal.clone())))
    }

    pub(super) fn add_certificate(&mut self, certificate: &Certificate) -> Vec<Effect> {
        self.read(&envelope::sign_certificate(&self.epoch, certificate))
    }

    /// The nullification of a view arrives.
    pub(super) fn skip(&mut self, view: u64) -> Vec<Effect> {
        let certificate = self.certificate(view, Verdict::Nullified);
        self.add_certificate(&certificate)
    }

    pub(super) fn plan(&mut self) -> Vec<Effect> {
        self.plan_with(|_| {})
    }

    pub(super) fn plan_with(&mut self, change: impl FnOnce(&mut Planned)) -> Vec<Effect> {
        let mut planned = Planned {
            round: self.member.rounds.round.number,
            plan: plan(),
            participants: None,
            cross_evaluate: false,
            weights: false,
            blob_size: BLOB,
            voids: Voids::default(),
        };
        change(&mut planned);
        self.step(Input::Done(Answer::Planned(planned)))
    }

    pub(super) fn train(&mut self) -> Vec<Effect> {
        let result = Ok(self.trained(self.me));
        let round = self.member.rounds.round.number;
        self.step(Input::Done(Answer::Trained { round, result }))
    }

    /// Tells the member under test that the models of these members are kept here.
    pub(super) fn hold(&mut self, members: &[MemberIndex]) -> Vec<Effect> {
        let (round, result) = (self.member.rounds.round.number, Ok(()));
        let blobs = members.iter().map(|&member| blob(member)).collect();
        self.step(Input::Done(Answer::Held {
            round,
            blobs,
            result,
        }))
    }

    pub(super) fn hold_all(&mut self) -> Vec<Effect> {
        self.hold(&self.all())
    }

    /// The check of a contributed model ends.
    pub(super) fn admit(
        &mut self,
        member: MemberIndex,
        result: Result<(), WorkError>,
    ) -> Vec<Effect> {
        let (round, fields) = (self.member.rounds.round.number, self.trained(member).fields);
        self.step(Input::Done(Answer::Admitted {
            round,
            from: member,
            fields,
            result,
        }))
    }

    /// A member contributes, and its model is usable.
    pub(super) fn take_in(&mut self, member: MemberIndex) -> Vec<Effect> {
        let contribution = Body::Contribution(self.contribution(member));
        self.hear(member, self.member.round(), 0, contribution);
        self.admit(member, Ok(()))
    }

    pub(super) fn check(
        &mut self,
        proposal: &Proposal,
        result: Result<(), WorkError>,
    ) -> Vec<Effect> {
        let case = self.case(proposal).id();
        self.step(Input::Done(Answer::Checked { case, result }))
    }

    pub(super) fn settle(
        &mut self,
        proposal: &Proposal,
        result: Result<Hash, WorkError>,
    ) -> Vec<Effect> {
        let case = self.case(proposal).id();
        self.step(Input::Done(Answer::Settled { case, result }))
    }

    /// Time jumps to this millisecond.
    pub(super) fn at(&mut self, millis: u64) -> Vec<Effect> {
        self.now = Time::since_start(Duration::from_millis(millis));
        self.step(Input::Time)
    }

    /// Time passes to this millisecond, timer by timer. Gives all effects.
    pub(super) fn pass(&mut self, millis: u64) -> Vec<Effect> {
        let (end, mut effects) = (Duration::from_millis(millis), Vec::new());
        for _ in 0..1000 {
            match self.member.deadline() {
                Some(due) if due.elapsed() <= end => {
                    self.now = due;
                    effects.extend(self.step(Input::Time));
                }
                _ => {
                    self.now = Time::since_start(end);
                    return effects;
                }
            }
        }
        panic!("a thousand timers before {end:?}");
    }

    /// The round becomes final in the current view, which another member leads.
    pub(super) fn finish_round(&mut self, authors: &[MemberIndex]) -> Vec<Effect> {
        let view = self.member.view();
        let proposal = self.proposal(view, authors);
        self.propose(view, &proposal);
        let block = proposal.block.hash();
        let proof = self.certificate(view, Verdict::Final(block));
        self.has_cast(&proof);
        let mut effects = self.add_certificate(&proof);
        let (round, result) = (self.member.rounds.round.number - 1, Ok(()));
        effects.extend(self.step(Input::Done(Answer::Applied {
            round,
            ends: false,
            result,
        })));
        effects
    }

    /// Notes that the member under test has cast its own vote in a certificate, if there is one.
    pub(super) fn has_cast(&mut self, certificate: &Certificate) {
        let (me, view) = (self.me, certificate.view);
        for vote in certificate.votes.iter().filter(|vote| vote.member == me) {
            let body = Body::vote(certificate.verdict, vote.checked);
            let (message, frame) = self.sealed(me, 0, view, body);
            self.member.consensus.ballots.remember(message, frame);
        }
    }

    // Members, messages and entries.

    pub(super) fn all(&self) -> Vec<MemberIndex> {
        self.epoch.roster.members().collect()
    }

    pub(super) fn others(&self) -> Vec<MemberIndex> {
        self.without(self.me)
    }

    pub(super) fn without(&self, member: MemberIndex) -> Vec<MemberIndex> {
        let others = self.all().into_iter();
        others.filter(|&other| other != member).collect()
    }

    /// The order in which members are asked for blobs in a view.
    pub(super) fn holders(&self, view: u64) -> Vec<MemberIndex> {
        let lead = self.epoch.lead(view);
        let mut holders = self.others();
        holders.sort_by_key(|&member| member != lead);
        holders
    }

    pub(super) fn name(&self, view: u64) -> String {
        self.epoch.roster.name(self.epoch.lead(view)).to_owned()
    }

    pub(super) fn trained(&self, member: MemberIndex) -> Trained {
        let mut trained = trained(blob(member));
        let shown = self.epoch.protocol.shows_names();
        trained.fields.member = shown.then_some(member);
        trained
    }

    /// The contribution of a member.
    pub(super) fn contribution(&self, member: MemberIndex) -> Contribution {
        let round = self.member.rounds.round.number.to_le_bytes();
        Contribution {
            plan: plan(),
            fields: self.trained(member).fields,
            nonce: key(member.0).derive("nonce", &[&self.epoch.federation.0, &round]),
            metrics: Vec::new(),
        }
    }

    pub(super) fn entry(&self, member: MemberIndex) -> Entry {
        let contribution = self.contribution(member);
        contribution.entry(&self.epoch.federation, self.member.rounds.round.number)
    }

    /// Entries of members, in the order of their ids.
    pub(super) fn entries(&self, authors: &[MemberIndex]) -> Vec<Entry> {
        let mut entries: Vec<_> = authors.iter().map(|&author| self.entry(author)).collect();
        entries.sort_by_key(|entry| entry.id);
        entries
    }

    pub(super) fn contribution_list(&self, authors: &[MemberIndex]) -> Body {
        let entries = self.entries(authors);
        Body::ContributionList(ContributionList { entries })
    }

    pub(super) fn manifest(&self, authors: &[MemberIndex]) -> RoundManifest {
        let (entries, scores) = (self.entries(authors), None);
        RoundManifest { entries, scores }
    }

    /// The inclusions of these members.
    pub(super) fn inclusions(
        &self,
        manifest: &RoundManifest,
        signers: &[MemberIndex],
    ) -> Inclusions {
        let (round, manifest) = (self.member.rounds.round.number, manifest.root());
        let sign = |&by: &MemberIndex| -> (MemberIndex, Signature) {
            let (message, _) = self.sealed(by, round, 0, Body::Inclusion { manifest });
            (by, message.signature)
        };
        signers.iter().map(sign).collect()
    }

    /// A proposal that stands on the last final block, with the entries of these members.
    pub(super) fn proposal(&self, view: u64, authors: &[MemberIndex]) -> Proposal {
        self.proposal_of(view, &self.manifest(authors), authors)
    }

    pub(super) fn proposal_of(
        &self,
        view: u64,
        manifest: &RoundManifest,
        signers: &[MemberIndex],
    ) -> Proposal {
        let round = self.member.rounds.round.number;
        let learning = Learning {
            round,
            plan: plan(),
            manifest: manifest.root(),
            inclusions: self.inclusions(manifest, signers),
            decision: b"decision".to_vec(),
            outcome: outcome(),
        };
        let content = Content::Learning(learning);
        let tip = &self.member.consensus.chain.tip;
        Proposal {
            block: self.block(view, tip.hash, content),
            parent: tip.proof.clone(),
            skipped: Vec::new(),
        }
    }

    /// A proposal of an empty block on a notarised one.
    pub(super) fn empty(&self, view: u64, notarised: &Certificate) -> Proposal {
        let parent = notarised.verdict.block().unwrap();
        Proposal {
            block: self.block(view, parent, Content::Empty),
            parent: Some(notarised.clone()),
            skipped: Vec::new(),
        }
    }

    pub(super) fn block(&self, view: u64, parent: Hash, content: Content) -> Block {
        Block {
            epoch: self.epoch.id,
            view,
            parent,
            content,
        }
    }

    /// The case of a proposal without scores.
    pub(super) fn case(&self, proposal: &Proposal) -> Case {
        let learning = proposal.block.learning().unwrap();
        let manifest = self
            .member
            .rounds
            .round
            .manifests
            .get(&learning.manifest)
            .unwrap();
        let decision = learning.decision.clone().into();
        Case::new(
            learning.round,
            learning.manifest,
            manifest.clone(),
            decision,
        )
    }

    /// A certificate with votes of others where there are enough.
    pub(super) fn certificate(&self, view: u64, verdict: Verdict) -> Certificate {
        let mut voters = self.others();
        voters.push(self.me);
        voters.truncate(self.epoch.roster.quorum());
        voters.sort_unstable();
        self.certificate_by(view, verdict, &voters)
    }

    pub(super) fn certificate_by(
        &self,
        view: u64,
        verdict: Verdict,
        voters: &[MemberIndex],
    ) -> Certificate {
        let checked = match verdict {
            Verdict::Notarised(_) => CHECKED,
            _ => Checked::Structure,
        };
        let vote = |&member: &MemberIndex| Vote {
            member,
            checked,
            signature: self
                .sealed(member, 0, view, Body::vote(verdict, checked))
                .0
                .signature,
        };
        let votes = voters.iter().map(vote).collect();
        Certificate {
            view,
            verdict,
            votes,
        }
    }

    pub(super) fn sealed(
        &self,
        by: MemberIndex,
        round: u64,
        view: u64,
        body: Body,
    ) -> (Message, Bytes) {
        envelope::sign(&self.epoch, &key(by.0), round, view, by, body)
    }

    /// The nonce of its nth question.
    pub(super) fn nonce(&self, nth: u64) -> u64 {
        self.member.config.draw("question", nth)
    }

    /// An empty answer to its nth question.
    pub(super) fn answer(&self, nth: u64) -> SyncResponse {
        SyncResponse::nothing(0, self.nonce(nth))
    }

    pub(super) fn nothing_new(&self, nth: u64) -> Body {
        Body::SyncResponse(Box::new(self.answer(nth)))
    }
}

pub(super) fn refused(member: MemberIndex, round: u64, reason: Refusal) -> Effect {
    Effect::Report(Report::Refused {
        member,
        round,
        reason,
    })
}

/// The model of a member.
pub(super) fn blob(member: MemberIndex) -> Hash {
    Hash::labelled("model of", &[&member.0.to_le_bytes()])
}

pub(super) fn plan() -> Hash {
    Hash::of(b"plan")
}

pub(super) fn outcome() -> Hash {
    Hash::of(b"outcome")
}

pub(super) fn no(reason: &str) -> WorkError {
    WorkError::Refused(reason.into())
}
