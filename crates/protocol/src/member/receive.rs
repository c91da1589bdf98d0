//! Receiving messages of members: which belong to the present view, and who takes them.

use crate::member::Member;
use crate::member::rounds::contributing::Again;
use crate::message::{Body, Message};
use crate::refusal::Refusal;

impl Member {
    /// Takes a verified message of any member, this one included.
    pub(in crate::member) fn receive(&mut self, message: Message) {
        let kind = message.body.kind();
        let of_view = kind.is_of_lead();
        if let Body::Proposal(proposal) = &message.body {
            // The certificates inside may bring this member to the proposal's view.
            for certificate in proposal.parent.iter().chain(&proposal.skipped) {
                if !self
                    .consensus
                    .chain
                    .has(certificate.view, certificate.verdict)
                {
                    self.add_certificate(certificate.clone());
                }
            }
        }
        let furthest = self.consensus.view.number + 2 * self.config.epoch.roster.len() as u64;
        if of_view && !(self.consensus.view.number..=furthest).contains(&message.view) {
            return;
        }
        let by_lead = || match &message.body {
            Body::Proposal(proposal) if message.view == self.consensus.view.number => {
                let epoch = &self.config.epoch;
                self.consensus
                    .chain
                    .may_propose(epoch, message.view, message.sender, proposal)
            }
            _ => message.sender == self.consensus.chain.lead(&self.config.epoch, message.view),
        };
        if of_view && !by_lead() {
            if self.config.epoch.protocol.rotation.follows_rounds() {
                // Its sender may know a final round that this member does not know yet, or the
                // other way round. An honest lead sends it again.
                return;
            }
            let view = message.view;
            let lead = self.consensus.chain.lead(&self.config.epoch, view);
            let lead = self.config.epoch.roster.name(lead).to_owned();
            let reason = Refusal::NotTheLead { kind, view, lead };
            return self.out.refuse(message.sender, message.round, reason);
        }
        if of_view && message.view != self.consensus.view.number {
            return self.consensus.view.keep_early(message);
        }
        self.take(message);
    }

    /// Gives a message to whom it concerns.
    fn take(&mut self, message: Message) {
        let (round, sender) = (message.round, message.sender);
        match message.body {
            Body::Contribution(_) | Body::Keys(_) => match self.contributing().take(message) {
                Some(Again::Contradiction(evidence)) => self.accuse(*evidence),
                Some(Again::WithoutReceipt(sender)) => self.leading().repeat_receipt(sender),
                None => {}
            },
            Body::Receipt { .. } => self.contributing().receipt(&message),
            Body::ContributionList(contribution_list) => {
                let kept = self.signing().contribution_list(round, contribution_list);
                self.against_lead(round, kept);
            }
            Body::Scores(scores) => self.leading().scores(sender, round, scores),
            Body::Manifest(manifest) => {
                let kept = self.signing().manifest(round, manifest);
                self.against_lead(round, kept);
            }
            Body::Inclusion { manifest } => self.leading().inclusion(&message, manifest),
            Body::Proposal(_) => self.proposal(message),
            Body::Notarize { .. } | Body::Finalize { .. } | Body::Nullify => {
                self.receive_vote(message)
            }
            Body::Progress { counter, .. } => {
                self.consensus.view.progressed(self.now, counter);
            }
            Body::SyncRequest {
                after,
                from,
                missing,
                nonce,
            } => self.syncing().answer(sender, (after, from), missing, nonce),
            Body::SyncResponse(response) => self.receive_sync_response(sender, *response),
            Body::Complete => {
                if self.adopting().receive_complete(sender, round) {
                    self.syncing().is_behind(sender);
                }
            }
            Body::Abstain => self.contributing().has_nothing(sender, round),
            Body::KeyList(keys) => {
                let kept = self.masking().list(round, keys);
                self.against_lead(round, kept);
            }
            Body::MaskedVector(_) => {
                if let Some(evidence) = self.leading().vector(message) {
                    self.accuse(evidence);
                }
            }
            Body::MaskedManifest(manifest) => {
                let kept = self.masking().manifest(round, manifest);
                self.against_lead(round, kept);
            }
            Body::Unmasking(_) => self.settling().unmasking(message),
            Body::Outcome { .. } => {
                if let Some(evidence) = self.settling().outcome_vote(message) {
                    self.accuse(evidence);
                }
            }
            Body::Amendment(amendment) => self.receive_amendment(sender, *amendment),
            Body::Standing(standing) => {
                self.recovering()
                    .receive(sender, *standing, message.signature);
            }
            Body::Confirmation(confirmation) => {
                self.recovering()
                    .confirmed(sender, *confirmation, message.signature);
            }
            Body::Approval {
                amendment,
                number,
                stands,
            } => {
                let said = (number, stands);
                let known =
                    self.amending()
                        .receive_approval(sender, amendment, said, message.signature);
                self.follow(known);
            }
        }
    }
}
