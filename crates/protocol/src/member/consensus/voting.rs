//! Voting, and making certificates of votes (R1–R3, R5).

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;

use crate::certificate::{Certificate, Checked, Verdict, Vote};
use crate::effects::{Effect, Record, Report};
use crate::envelope;
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::member::consensus::ballots::Ballots;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::consensus::stage::BlockDraft;
use crate::member::consensus::views::View;
use crate::member::{ByMember, Config};
use crate::message::{Block, Body, Message, Proposal};
use crate::parameters::Verification;
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

/// Voting and counting votes. Borrows what that depends on.
pub(in crate::member) struct Voting<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) ballots: &'a mut Ballots,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) participation: &'a ParticipationState,
    /// Nothing is left to agree on.
    pub(in crate::member) at_rest: bool,
}

/// What follows from a vote that was counted.
pub(in crate::member) struct CountedVote {
    /// A contradiction to an earlier vote of its sender.
    pub(in crate::member) fault: Option<Evidence>,
    /// The verdict that the vote is for.
    pub(in crate::member) verdict: Verdict,
}

impl Voting<'_> {
    /// Votes Notarize, at most once per view (R1).
    pub(in crate::member) fn notarize(&mut self, block: Hash, checked: Checked) {
        let view = self.view.number;
        let once = self.ballots.has_notarized(view);
        if self.participation.listening() || once {
            return;
        }
        if let Some(block) = self.chain.block(&block).cloned() {
            self.out.push(Effect::Persist(Record::Block(block)));
        }
        self.cast(view, Body::Notarize { block, checked });
    }

    /// Votes Finalize, unless this member voted Nullify in that view (R2, R3).
    pub(in crate::member) fn finalize(&mut self, view: u64, block: Hash) {
        let against = self.ballots.has_nullified(view);
        let done = self
            .ballots
            .own
            .get(&view)
            .is_some_and(|own| own.finalize.is_some());
        if !(self.participation.listening() || against || done || view <= self.chain.tip.view) {
            self.cast(view, Body::Finalize { block });
        }
    }

    /// Votes against the current view, unless this member voted Finalize in it (R2).
    pub(in crate::member) fn nullify(&mut self, reason: Refusal) {
        let view = self.view.number;
        let finalized = self
            .ballots
            .own
            .get(&view)
            .is_some_and(|own| own.finalize.is_some());
        if self.participation.listening()
            || self.at_rest
            || self.ballots.has_nullified(view)
            || finalized
        {
            return;
        }
        self.out
            .push(Effect::Report(Report::Nullifying { view, reason }));
        let (message, frame) = self.config.sign(0, view, Body::Nullify);
        self.out
            .push(Effect::Persist(Record::Vote(message.clone())));
        self.ballots.remember(message.clone(), frame.clone());
        self.out.publish(message, frame);
    }

    /// Signs a vote and sends it to the collectors.
    fn cast(&mut self, view: u64, body: Body) {
        let (message, frame) = self.config.sign(0, view, body);
        self.out
            .push(Effect::Persist(Record::Vote(message.clone())));
        self.ballots.remember(message.clone(), frame.clone());
        for to in self.collectors(view) {
            self.out.send(to, &message, &frame);
        }
    }

    /// The collectors of a view, who make certificates of its votes.
    fn collectors(&self, view: u64) -> Vec<MemberIndex> {
        self.chain.turns.collectors(&self.config.epoch, view)
    }

    /// Proposes a block. It is durable before anybody sees it (R5).
    /// `None` if it may not be proposed: this member votes against the view instead.
    pub(in crate::member) fn propose(&mut self, draft: BlockDraft) -> Option<(Message, Bytes)> {
        let BlockDraft {
            content,
            parent,
            proof,
        } = draft;
        let view = self.view.number;
        let from = proof.as_ref().map_or(0, |proof| proof.view);
        if self.chain.gap(from, view).is_some() {
            self.nullify(Refusal::ViewsUnknown);
            return None;
        }
        let skipped = self.chain.last_skipped(from, view);
        let block = Block {
            epoch: self.config.epoch.id,
            view,
            parent,
            content,
        };
        let proposal = Proposal {
            block,
            parent: proof,
            skipped,
        };
        let (message, frame) = self
            .config
            .sign(0, view, Body::Proposal(Box::new(proposal)));
        self.out
            .push(Effect::Persist(Record::Proposed(message.clone())));
        self.ballots.remember(message.clone(), frame.clone());
        self.out.publish(message.clone(), frame.clone());
        Some((message, frame))
    }

    /// This member's proposal in the present view.
    pub(in crate::member) fn proposal(&self) -> Option<(Message, Bytes)> {
        self.ballots.proposal(self.view.number).cloned()
    }

    /// The members that are known to have voted Notarize or Nullify in the present view.
    pub(in crate::member) fn voters(&self) -> BTreeSet<MemberIndex> {
        self.ballots.voters(self.view.number)
    }

    /// Counts a vote of any member; `None` if it is of no use.
    pub(in crate::member) fn count(&mut self, message: Message) -> Option<CountedVote> {
        let (view, sender) = (message.view, message.sender);
        let furthest = self.view.number + 2 * self.config.epoch.roster.len() as u64;
        if self.answer_late_vote(&message) || view <= self.chain.tip.view || view > furthest {
            return None;
        }
        let tally = self.ballots.tallies.entry(view).or_default();
        let earlier = match &message.body {
            Body::Notarize { .. } => tally.notarize.get(&sender),
            Body::Finalize { .. } => tally.finalize.get(&sender).or(tally.nullify.get(&sender)),
            _ => tally.finalize.get(&sender),
        };
        let fault = earlier.and_then(|earlier| Evidence::of(earlier, &message));
        let votes = match &message.body {
            Body::Notarize { .. } => &mut tally.notarize,
            Body::Finalize { .. } => &mut tally.finalize,
            _ => &mut tally.nullify,
        };
        votes.entry(sender).or_insert_with(|| message.clone());
        let gave_up = message.body == Body::Nullify
            && (view, sender) == (self.view.number, self.view.lead)
            && self.view.judged.is_none();
        if gave_up && sender != self.config.me {
            let lead = self.config.epoch.roster.name(sender).to_owned();
            self.nullify(Refusal::GaveUp { lead });
        }
        let verdict = match message.body {
            Body::Notarize { block, .. } => Verdict::Notarised(block),
            Body::Finalize { block } => Verdict::Final(block),
            _ => Verdict::Nullified,
        };
        Some(CountedVote { fault, verdict })
    }

    /// Answers a vote with the certificate that its sender seems to have missed. A vote that arrives
    /// within half a heartbeat of the certificate was probably sent before its sender got it. Gives
    /// whether the vote is of no use any more.
    fn answer_late_vote(&mut self, message: &Message) -> bool {
        let wanted = |certificate: &Certificate| match (&message.body, certificate.verdict) {
            (_, Verdict::Final(_)) | (Body::Nullify, _) => true,
            (Body::Notarize { .. }, _) => true,
            (_, verdict) => verdict == Verdict::Nullified,
        };
        if self.at_rest && message.view > self.chain.tip.view && message.sender != self.config.me {
            // This member sends nothing else any more that the voter could learn this from.
            if let Some(proof) = &self.chain.tip.proof {
                let frame = envelope::sign_certificate(&self.config.epoch, proof);
                self.out.push(Effect::Send {
                    to: message.sender,
                    frame,
                });
            }
            return true;
        }
        let pause = self.config.epoch.heartbeat() / 2;
        let known: Vec<_> = self
            .chain
            .of_view(message.view)
            .filter(|(certificate, _)| wanted(certificate))
            .map(|(certificate, since)| (certificate.clone(), since))
            .collect();
        let late = known.iter().any(|(_, since)| self.now - *since > pause);
        if late && message.sender != self.config.me {
            for (certificate, _) in &known {
                let frame = envelope::sign_certificate(&self.config.epoch, certificate);
                self.out.push(Effect::Send {
                    to: message.sender,
                    frame,
                });
            }
        }
        // While the view is only notarised or nullified, Finalize votes still count.
        known
            .iter()
            .any(|(certificate, _)| matches!(certificate.verdict, Verdict::Final(_)))
    }

    /// The certificate of a verdict on a block that is not certified yet, once there is a quorum of votes.
    pub(in crate::member) fn certificate(
        &self,
        view: u64,
        verdict: Verdict,
    ) -> Option<Certificate> {
        let tally = self.ballots.tallies.get(&view)?;
        let cast = match verdict {
            Verdict::Notarised(_) => &tally.notarize,
            Verdict::Final(_) => &tally.finalize,
            Verdict::Nullified => &tally.nullify,
            // Its votes are not counted by view.
            Verdict::Outcome { .. } => return None,
        };
        certify(self.config, self.chain, (view, verdict), cast)
    }

    /// Once per heartbeat: sends again the votes that no certificate has answered.
    pub(in crate::member) fn repeat(&mut self) {
        if self.participation.outdated() {
            // They may contradict those that its journal does not hold.
            return;
        }
        let current = self.view.lead;
        let mut again = Vec::new();
        for (&view, own) in &self.ballots.own {
            let certified = self.chain.of_view(view);
            let ended = |wanted: fn(&Verdict) -> bool| {
                let mut certified = certified.clone();
                certified.any(|(certificate, _)| wanted(&certificate.verdict))
            };
            let notarize = own.notarize.as_ref().filter(|_| !ended(|_| true));
            let is_final = |verdict: &Verdict| matches!(verdict, Verdict::Final(_));
            let finalize = own.finalize.as_ref().filter(|_| !ended(is_final));
            // Of a view long ago nothing is left to say, and there may be many.
            if notarize.is_some() || finalize.is_some() {
                let mut to = self.collectors(view);
                if !to.contains(&current) {
                    to.push(current);
                }
                let votes = notarize.into_iter().chain(finalize);
                again.extend(votes.map(|vote| (to.clone(), vote.clone())));
            }
            if let Some(vote) = own.nullify.as_ref().filter(|_| !ended(|_| true)) {
                // To this member too: a restart has emptied its tally.
                again.push((self.config.epoch.roster.members().collect(), vote.clone()));
            }
        }
        let stuck = self.ballots.has_nullified(self.view.number);
        for (members, (message, frame)) in again {
            for to in members {
                self.out.send(to, &message, &frame);
            }
        }
        if stuck {
            // The best certificates bring members of other views to this one.
            let mut best: Vec<_> = self.chain.tip.proof.iter().cloned().collect();
            best.extend(self.chain.newest_notarised().cloned());
            best.extend(
                self.chain
                    .nullification(self.view.number.saturating_sub(1))
                    .cloned(),
            );
            for certificate in best {
                let frame = envelope::sign_certificate(&self.config.epoch, &certificate);
                for to in self.config.others() {
                    self.out.push(Effect::Send {
                        to,
                        frame: frame.clone(),
                    });
                }
            }
        }
    }
}

/// The certificate of a verdict that is not certified yet, once a quorum of these votes is for it.
pub(in crate::member) fn certify(
    config: &Config,
    chain: &Chain,
    (view, verdict): (u64, Verdict),
    cast: &ByMember<Message>,
) -> Option<Certificate> {
    let quorum = config.epoch.roster.quorum();
    if chain.has(view, verdict) {
        return None;
    }
    let mut votes: Vec<_> = cast
        .iter()
        .filter_map(|(&member, message)| {
            let checked = match message.body {
                Body::Notarize { checked, .. } => checked,
                _ => Checked::Structure,
            };
            (message.body == Body::vote(verdict, checked)).then_some(Vote {
                member,
                checked,
                signature: message.signature,
            })
        })
        .collect();
    if votes.len() < quorum {
        return None;
    }
    // Honest votes for an empty block or a change all say that there was no outcome to check. A false
    // vote beside them must not make the certificate ask for auditors.
    let plain = |vote: &Vote| vote.checked == Checked::Structure;
    if votes.iter().filter(|vote| plain(vote)).count() >= quorum {
        votes.retain(plain);
    }
    // Those of auditors first: a notarisation needs some of them.
    let auditors = match verdict {
        Verdict::Notarised(_) => chain.auditors(&config.epoch, view),
        Verdict::Final(_) | Verdict::Nullified | Verdict::Outcome { .. } => Vec::new(),
    };
    let full = Checked::Outcome(Verification::Full);
    votes.sort_by_key(|vote: &Vote| {
        let audited = vote.checked == full && auditors.binary_search(&vote.member).is_ok();
        (!audited, vote.member)
    });
    votes.truncate(quorum);
    votes.sort_by_key(|vote| vote.member);
    let votes: Arc<[Vote]> = votes.into();
    Some(Certificate {
        view,
        verdict,
        votes,
    })
}
