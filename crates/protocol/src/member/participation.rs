//! Whether a member takes part, or only listens because it cannot know what it has signed (R5).

use std::collections::BTreeSet;

use super::{ByMember, Member};
use crate::certificate::Certificate;
use crate::effects::{Effect, Report};
use crate::message::{Block, Body, Message};
use crate::roster::MemberIndex;

/// Whether a member takes part, or only listens.
pub(super) enum Participation {
    /// It knows what it has signed, and takes part.
    Full,
    /// It has an empty journal, and asks others whether its key was used before.
    KeyCheck {
        /// Members that answered and know of nothing that it signed.
        answers: BTreeSet<MemberIndex>,
    },
    /// It lost its journal.
    JournalLost {
        /// The highest view that each member proved by a certificate.
        answers: ByMember<u64>,
        /// The numbers in the last report of it.
        reported: Option<(usize, Option<u64>)>,
    },
}

/// The journal that a member starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journal {
    /// Nothing was ever written.
    Empty,
    /// Everything that was written is there.
    Kept,
    /// There was a journal, and it is lost.
    Lost,
}

impl Participation {
    pub(super) fn new(journal: Journal) -> Self {
        match journal {
            Journal::Kept => Self::Full,
            Journal::Lost => Self::journal_lost(),
            Journal::Empty => Self::KeyCheck {
                answers: BTreeSet::new(),
            },
        }
    }

    fn journal_lost() -> Self {
        Self::JournalLost {
            answers: ByMember::new(),
            reported: None,
        }
    }

    /// Whether this member only listens: it neither votes, proposes, contributes nor signs for
    /// sheets.
    pub(super) fn listening(&self) -> bool {
        !matches!(self, Self::Full)
    }

    /// Whether this member lost its journal. Such a member does not train either.
    pub(super) fn lost_journal(&self) -> bool {
        matches!(self, Self::JournalLost { .. })
    }

    /// A member has answered: it proved a certificate of view `highest`, and may know `more`.
    pub(super) fn answered(&mut self, by: MemberIndex, highest: u64, more: bool) {
        match self {
            Self::JournalLost { answers, .. } => {
                let answer = answers.entry(by).or_default();
                *answer = highest.max(*answer);
            }
            Self::KeyCheck { answers } if !more => {
                answers.insert(by);
            }
            Self::Full | Self::KeyCheck { .. } => {}
        }
    }
}

impl Member {
    /// Whether a message under this member's key is unknown to it and still binds it. What was
    /// signed in views up to the last final block, or in earlier rounds, binds it no more.
    pub(super) fn is_forgotten(&mut self, own: &Message) -> bool {
        own.sender == self.me()
            && match own.body {
                Body::Contribution(_) => {
                    own.round >= self.round.number && !self.round.own.is_contribution(own)
                }
                Body::Notarize { .. }
                | Body::Finalize { .. }
                | Body::Nullify
                | Body::Proposal(_) => {
                    own.view > self.chain.tip.view && !self.ballots.remembers(own)
                }
                _ => false,
            }
    }

    /// A message under this member's own key came from outside.
    pub(super) fn own_message_from_outside(&mut self, message: &Message) {
        if self.participation.lost_journal() || !self.is_forgotten(message) {
            return;
        }
        if self.participation.listening() {
            self.key_was_used_before();
            self.try_to_take_part();
        } else if !std::mem::replace(&mut self.key_used_elsewhere, true) {
            self.out.push(Effect::Report(Report::KeyUsedElsewhere));
        }
    }

    /// Blocks became final: a member with an empty journal looks for its own signatures in them.
    pub(super) fn look_for_own_signatures(&mut self, blocks: &[Block], proof: &Certificate) {
        if !matches!(self.participation, Participation::KeyCheck { .. }) {
            return;
        }
        let me = self.me();
        let learned = blocks.iter().filter_map(Block::learning);
        let signers = learned.flat_map(|learning| learning.inclusions.iter().map(|(by, _)| *by));
        let voters = proof.votes.iter().map(|vote| vote.member);
        if signers.chain(voters).any(|by| by == me) {
            self.key_was_used_before();
        }
    }

    /// This member's key signed what its journal does not hold: it behaves as one that lost its
    /// journal.
    pub(super) fn key_was_used_before(&mut self) {
        if !self.participation.lost_journal() {
            self.participation = Participation::journal_lost();
            self.lead = None;
            self.out.push(Effect::Report(Report::KeyUsedBefore));
        }
    }

    /// Lets a member that only listens take part, if it may.
    ///
    /// With an empty journal it may when f + 1 others, at least one of them honest, know of nothing
    /// that it signed. With a lost journal it may when q others have proved how far views had come,
    /// and a block two cycles later is final: no vote that it may have forgotten counts then.
    pub(super) fn try_to_take_part(&mut self) {
        let roster = &self.config.epoch.roster;
        let n = roster.len() as u64;
        match &mut self.participation {
            Participation::Full => {}
            Participation::KeyCheck { answers } => {
                let needed = (roster.faulty() + 1).min(roster.len() - 1);
                if answers.len() >= needed {
                    self.take_part();
                }
            }
            Participation::JournalLost { answers, reported } => {
                let needed = roster.quorum();
                let highest = answers.values().max().copied().unwrap_or(0);
                let until = (highest / n + 2) * n;
                let enough = answers.len() >= needed;
                if enough && self.chain.tip.view >= until {
                    self.out.push(Effect::Report(Report::TakingPart));
                    return self.take_part();
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
            }
        }
    }

    /// From now on this member votes, proposes and contributes.
    fn take_part(&mut self) {
        self.participation = Participation::Full;
        self.begin_to_lead();
    }

    /// Whether this member only listens and needs an answer of `peer` now.
    pub(super) fn needs_answer_of(&self, peer: MemberIndex) -> bool {
        if self.answered_by(peer) || self.sync.asked.contains_key(&peer) {
            return false;
        }
        let Participation::KeyCheck { answers } = &self.participation else {
            return true;
        };
        // Votes, proposals and contributions may have reached only the leads of these views.
        let view = self.view.number;
        let leads = [view, view + 1].map(|view| self.lead_of(view));
        let under_way = answers.len() + self.sync.asked.len();
        under_way <= self.config.epoch.roster.faulty() || leads.contains(&peer)
    }

    /// Whether no answer of `peer` is needed: there is one, there are enough, or this member takes
    /// part.
    pub(super) fn answered_by(&self, peer: MemberIndex) -> bool {
        match &self.participation {
            Participation::Full => true,
            Participation::KeyCheck { answers } => answers.contains(&peer),
            Participation::JournalLost { answers, .. } => {
                answers.len() >= self.config.epoch.roster.quorum() || answers.contains_key(&peer)
            }
        }
    }
}
