//! Comparison of what this member's key has signed with its journal (R5).

use crate::certificate::Certificate;
use crate::effects::{Effect, Record, Report};
use crate::evidence::Evidence;
use crate::forgotten::Forgotten;
use crate::member::Config;
use crate::member::consensus::ballots::Ballots;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::payload::BlockPayload;
use crate::member::consensus::stage::Lead;
use crate::message::{Block, Body, Kind, Message, Scope};

use crate::member::consensus::participation::ParticipationState;
/// Comparing what this member's key has signed with its journal, and what follows for taking part.
/// Borrows what that depends on.
pub(in crate::member) struct OwnKey<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) ballots: &'a mut Ballots,
    pub(in crate::member) payload: &'a dyn BlockPayload,
    pub(in crate::member) participation: &'a mut ParticipationState,
    pub(in crate::member) lead: &'a mut Option<Lead>,
}

impl OwnKey<'_> {
    /// Returns what a message under this member's key shows and its journal does not hold, if it still binds this
    /// member. What was signed in views up to the last final block, or in earlier rounds, binds it no more.
    fn forgotten(&mut self, round: u64, view: u64, body: &Body) -> Option<Forgotten> {
        let kind = body.kind();
        let unknown = match kind.scope() {
            _ if !kind.binds() => false,
            Scope { round: true, .. } => {
                round >= self.payload.round() && !self.payload.has_signed(round, body)
            }
            _ if kind == Kind::Outcome => {
                view >= self.chain.learned.view && !self.payload.has_signed(round, body)
            }
            _ => view > self.chain.tip.view && !self.ballots.remembers(view, body),
        };
        unknown.then_some(Forgotten { kind, round, view })
    }

    /// Looks whether the journal holds a message that may be this member's own.
    pub(in crate::member) fn look_at(&mut self, message: &Message) {
        if message.sender != self.config.me {
            return;
        }
        if let Some(what) = self.forgotten(message.round, message.view, &message.body) {
            self.has_forgotten(what);
        }
    }

    /// Blocks became final: looks for signatures of this member in them that its journal does not hold.
    pub(in crate::member) fn look_for_signatures(&mut self, blocks: &[Block], proof: &Certificate) {
        let (me, round) = (self.config.me, self.payload.round());
        let contributed = self.payload.contributed();
        let learned = blocks.iter().filter_map(Block::round);
        let mut unknown = learned.filter(|of| of.round >= round && Some(of.round) != contributed);
        let included = unknown.find(|of| of.members().contains(&me));
        let included = included.map(|of| Forgotten {
            kind: Kind::Inclusion,
            round: of.round,
            view: 0,
        });
        if let Some(what) = included.or_else(|| self.forgotten_vote(proof)) {
            self.has_forgotten(what);
        }
    }

    /// Looks for a vote of this member in a certificate that its journal does not hold.
    pub(in crate::member) fn look_for_vote(&mut self, certificate: &Certificate) {
        if let Some(what) = self.forgotten_vote(certificate) {
            self.has_forgotten(what);
        }
    }

    fn forgotten_vote(&mut self, certificate: &Certificate) -> Option<Forgotten> {
        let me = self.config.me;
        let own = certificate.votes.iter().find(|vote| vote.member == me)?;
        let body = Body::vote(certificate.verdict, own.checked);
        self.forgotten(0, certificate.view, &body)
    }

    /// Looks for a message of this member in evidence against it that its journal does not hold.
    pub(in crate::member) fn look_for_messages(&mut self, evidence: &Evidence) {
        if evidence.member != self.config.me {
            return;
        }
        for signed in [&evidence.first, &evidence.second] {
            if let Some(what) = self.forgotten(signed.round, signed.view, &signed.body) {
                self.has_forgotten(what);
            }
        }
    }

    /// This member's key signed what its journal does not hold. A member with an empty journal behaves as
    /// one that lost its journal. With any other, its newer journal may still exist, and it may have
    /// contradicted itself: it votes, proposes and contributes nothing more in this epoch.
    fn has_forgotten(&mut self, what: Forgotten) {
        match *self.participation {
            ParticipationState::JournalLost { .. }
            | ParticipationState::Outdated
            | ParticipationState::Doubled => return,
            ParticipationState::KeyCheck { empty: true, .. } => {
                *self.participation = ParticipationState::journal_lost();
                self.out.push(Effect::Report(Report::KeyUsedBefore));
            }
            ParticipationState::KeyCheck { empty: false, .. } | ParticipationState::Full => {
                self.out.push(Effect::Persist(Record::Outdated(what)));
                self.stop_signing(what);
            }
        }
        *self.lead = None;
    }

    /// From now on this member votes, proposes and contributes nothing more in this epoch.
    pub(in crate::member) fn stop_signing(&mut self, what: Forgotten) {
        *self.participation = ParticipationState::Outdated;
        self.out.push(Effect::Report(Report::Outdated(what)));
    }

    /// Another process uses this member's key: two that sign would contradict each other. Its
    /// votes, proposals and contributions end here; what the institution wants is still signed.
    pub(in crate::member) fn elsewhere(&mut self) {
        if !self.participation.outdated() {
            *self.participation = ParticipationState::Doubled;
            *self.lead = None;
            self.out.push(Effect::Report(Report::KeyElsewhere));
        }
    }

    /// Returns true if a member that only listens may take part now.
    ///
    /// With a journal that holds nothing it signed it may when f + 1 others, at least one of them honest,
    /// know of nothing that it signed. With a lost journal it may when q others have proved how far views had come,
    /// and a block two cycles later is final: no vote that it may have forgotten counts then. In masked
    /// rounds that has to be the block of a round.
    pub(in crate::member) fn may_take_part(&mut self) -> bool {
        let roster = &self.config.epoch.roster;
        let n = roster.len() as u64;
        match &mut *self.participation {
            ParticipationState::Full
            | ParticipationState::Outdated
            | ParticipationState::Doubled => false,
            ParticipationState::KeyCheck { answers, .. } => {
                let needed = (roster.faulty() + 1).min(roster.len() - 1);
                answers.len() >= needed
            }
            ParticipationState::JournalLost { answers, reported } => {
                let needed = roster.quorum();
                let highest = answers.values().max().copied().unwrap_or(0);
                let until = (highest / n + 2) * n;
                let enough = answers.len() >= needed;
                let last = self.payload.renewed_in(self.chain);
                // While an outcome is not certified, it may have voted for one before.
                if enough && last >= until && self.chain.settled() {
                    self.out.push(Effect::Report(Report::TakingPart));
                    return true;
                }
                let now = (answers.len(), enough.then_some(until));
                if *reported != Some(now) {
                    *reported = Some(now);
                    self.out.push(Effect::Report(Report::Listening {
                        answers: now.0,
                        needed,
                        until: now.1,
                    }));
                }
                false
            }
        }
    }
}
