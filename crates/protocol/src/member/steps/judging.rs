//! Proposals: the first one of a view is kept, and judged: its place by consensus, a change by governance,
//! everything else by the rounds.

use crate::certificate::Checked;
use crate::evidence::Evidence;
use crate::member::Member;
use crate::member::consensus::judge::{Judged, Opinion, Placing, Ruling, structure};
use crate::member::rounds::judging::JudgingState;
use crate::message::{Body, Content, Message};
use crate::refusal::Refusal;

impl Member {
    /// A proposal by the lead of its view.
    pub(in crate::member) fn proposal(&mut self, message: Message) {
        let Body::Proposal(proposal) = &message.body else {
            return;
        };
        let block = proposal.block.hash();
        if let Some(judged) = &self.consensus.view.judged {
            if judged.block == block {
                return;
            }
            if let Some(evidence) = Evidence::of(&judged.message, &message) {
                let reason = Refusal::Contradiction(evidence.charge());
                self.accuse(evidence);
                self.out.refuse(message.sender, 0, reason.clone());
                self.voting().nullify(reason);
            }
            return;
        }
        let structure = structure(&proposal.block, message.view, self.config.epoch.id);
        if structure.is_ok() {
            self.consensus.chain.keep(block, proposal.block.clone());
        }
        if let Some(waiting) = self.consensus.chain.unresolved.take() {
            self.make_final(waiting);
        }
        if message.view != self.consensus.view.number {
            return;
        }
        let voted = self.consensus.ballots.has_notarized(message.view);
        let sender = message.sender;
        self.rounds.judging = JudgingState::default();
        self.consensus.view.judged = Some(Judged::new(message, block, voted || structure.is_err()));
        if let Err(reason) = structure {
            self.out.refuse(sender, 0, reason.clone());
            self.voting().nullify(reason);
        }
    }

    /// Judges the proposal as far as that is possible now, and votes.
    pub(in crate::member) fn judge(&mut self) {
        match self.ruling() {
            Ruling::Wait => {}
            Ruling::Notarize(block, checked) => self.voting().notarize(block, checked),
            Ruling::Structure(block) => {
                let amendment = self.amending().note_change(block);
                self.follow(amendment);
                self.voting().notarize(block, Checked::Structure);
            }
            Ruling::Nullify(reason) => self.voting().nullify(reason),
            Ruling::Ask(proposer, view) => self.syncing().ask_from(proposer, view),
        }
    }

    /// Returns the ruling on the proposal, as of now.
    fn ruling(&mut self) -> Ruling {
        let judged = self.consensus.view.judged.as_ref();
        let Some(block) = judged
            .filter(|judged| !judged.voted)
            .map(|judged| judged.block)
        else {
            return Ruling::Wait;
        };
        if let Some(ruling) = self.judging().under_way() {
            return ruling;
        }
        let opinion = match self.opinion() {
            Opinion::Content => match self.judging().judge() {
                Ok(ruling) => return ruling,
                Err(opinion) => opinion,
            },
            opinion => opinion,
        };
        match opinion {
            Opinion::Wait | Opinion::Content => Ruling::Wait,
            Opinion::UnknownView(view) => {
                let judged = self.consensus.view.judged.as_mut();
                judged.map_or(Ruling::Wait, |judged| judged.ask_for_skipped(view))
            }
            Opinion::Refuse(reason) => self.judging().refuse(reason),
            Opinion::Structure => {
                self.judging().has_voted();
                Ruling::Structure(block)
            }
        }
    }

    /// Returns the demand of R1 on the proposal, apart from what the block of a round holds.
    fn opinion(&self) -> Opinion {
        let judged = self.consensus.view.judged.as_ref();
        let Some(proposal) = judged.and_then(Judged::proposal) else {
            return Opinion::Wait;
        };
        let chain = &self.consensus.chain;
        if let Some(reason) = self.rounds.kind.objection(&proposal.block.content) {
            return Opinion::Refuse(reason);
        }
        let placing = Placing {
            config: &self.config,
            chain,
        };
        match (placing.opinion(proposal), &proposal.block.content) {
            (Opinion::Content, Content::Change(change)) => {
                if !chain.settled() {
                    return Opinion::Wait;
                }
                let accepted = self.governance.amendments.accepts(&self.config, change);
                let checked = change.check(&self.config.epoch, &chain.checkpoint());
                match checked.and(accepted) {
                    Ok(()) => Opinion::Structure,
                    Err(why) => Opinion::Refuse(why.into()),
                }
            }
            (opinion, _) => opinion,
        }
    }
}
