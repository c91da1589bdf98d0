//! The effects that tests expect of the member under test.

use super::one::*;
use super::prelude::*;
use crate::certificate::{Certificate, Checked};
use crate::evidence::Evidence;
use crate::message::{Block, Phase, Proposal};

impl One {
    /// Effect: the member under test sends a message to another member.
    pub(super) fn sends(&self, to: MemberIndex, round: u64, view: u64, body: Body) -> Effect {
        let (_, frame) = self.sealed(self.me, round, view, body);
        Effect::Send { to, frame }
    }

    pub(super) fn publishes(&self, round: u64, view: u64, body: Body) -> Effect {
        let (_, frame) = self.sealed(self.me, round, view, body);
        Effect::Publish { frame }
    }

    pub(super) fn proposes(&self, view: u64, proposal: &Proposal) -> Vec<Effect> {
        let body = Body::Proposal(Box::new(proposal.clone()));
        let (message, frame) = self.sealed(self.me, 0, view, body);
        let proposed = Effect::Persist(Record::Proposed(message));
        vec![proposed, Effect::Publish { frame }]
    }

    pub(super) fn asks(&self, nth: u64, to: MemberIndex, after: u64, from: u64) -> Effect {
        self.asks_for(nth, to, (after, from), None)
    }

    /// Effect: the member under test asks for what it missed, and also names a block that it misses
    /// before a final one.
    pub(super) fn asks_for(
        &self,
        nth: u64,
        to: MemberIndex,
        (after, from): (u64, u64),
        missing: Option<Hash>,
    ) -> Effect {
        let nonce = self.nonce(nth);
        let question = Body::SyncRequest {
            after,
            from,
            missing,
            nonce,
        };
        self.sends(to, 0, 0, question)
    }

    pub(super) fn plans(&self, round: u64, state: Hash) -> Effect {
        Effect::Work(Request::Plan { round, state })
    }

    pub(super) fn contributes(&self, to: MemberIndex) -> Effect {
        let contribution = Body::Contribution(self.contribution(self.me));
        self.sends(to, self.member.rounds.round.number, 0, contribution)
    }

    pub(super) fn persists_vote(&self, view: u64, body: Body) -> Effect {
        let (message, _) = self.sealed(self.me, 0, view, body);
        Effect::Persist(Record::Vote(message))
    }

    /// Effects: the member under test votes for a block in a view of which it is no collector.
    pub(super) fn notarizes(&self, block: &Block, checked: Checked) -> Vec<Effect> {
        let (view, hash) = (block.view, block.hash());
        let body = Body::Notarize {
            block: hash,
            checked,
        };
        vec![
            Effect::Persist(Record::Block(block.clone())),
            self.persists_vote(view, body.clone()),
            self.sends(self.epoch.lead(view), 0, view, body.clone()),
            self.sends(self.epoch.lead(view + 1), 0, view, body),
        ]
    }

    pub(super) fn finalizes(&self, view: u64, block: Hash) -> Vec<Effect> {
        let body = Body::Finalize { block };
        vec![
            self.persists_vote(view, body.clone()),
            self.sends(self.epoch.lead(view), 0, view, body.clone()),
            self.sends(self.epoch.lead(view + 1), 0, view, body),
        ]
    }

    /// Effects: the member under test votes against a view.
    pub(super) fn nullifies(&self, view: u64, reason: Refusal) -> Vec<Effect> {
        vec![
            Effect::Report(Report::Nullifying { view, reason }),
            self.persists_vote(view, Body::Nullify),
            self.publishes(0, view, Body::Nullify),
        ]
    }

    /// Effects: the member under test refuses a message of the view's lead, and votes against the view.
    pub(super) fn refuses_lead(&self, view: u64, reason: Refusal) -> Vec<Effect> {
        let (lead, round) = (self.epoch.lead(view), self.member.round());
        let mut effects = vec![refused(lead, round, reason.clone())];
        effects.extend(self.nullifies(view, reason));
        effects
    }

    /// Effects: the member under test publishes and reports a certificate.
    pub(super) fn passes_on(&self, certificate: &Certificate) -> Vec<Effect> {
        let frame = envelope::sign_certificate(&self.epoch, certificate);
        vec![
            Effect::Publish { frame },
            Effect::Report(Report::Certified(certificate.clone())),
        ]
    }

    /// Effects: the member under test publishes a certificate and enters the next view.
    pub(super) fn leaves_by(&self, certificate: &Certificate) -> Vec<Effect> {
        let mut effects = self.passes_on(certificate);
        effects.push(Effect::Persist(Record::Certified(certificate.clone())));
        effects.push(self.entered(certificate.view + 1, self.member.rounds.round.number));
        effects
    }

    pub(super) fn entered(&self, view: u64, round: u64) -> Effect {
        let lead = self.epoch.lead(view);
        Effect::Report(Report::Entered { view, lead, round })
    }

    pub(super) fn leading_report(&self, view: u64, phase: Phase) -> Effect {
        let round = self.member.rounds.round.number;
        Effect::Report(Report::Leading { view, round, phase })
    }

    pub(super) fn progress(&self, view: u64, phase: Phase, counter: u64) -> Effect {
        self.publishes(0, view, Body::Progress { phase, counter })
    }

    /// Effects: the member under test publishes and reports evidence.
    pub(super) fn accuses(&self, first: &Message, second: &Message) -> Vec<Effect> {
        let evidence = Evidence::of(first, second).unwrap();
        let frame = envelope::sign_evidence(&self.epoch, &evidence);
        let fault = Report::Fault(Box::new(evidence));
        vec![Effect::Publish { frame }, Effect::Report(fault)]
    }
}
