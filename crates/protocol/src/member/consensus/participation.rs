//! Whether a member takes part, or only listens because it cannot know what it has signed (R5).

use std::collections::BTreeSet;

use crate::member::ByMember;
use crate::roster::MemberIndex;

/// Whether a member takes part, or only listens.
pub(in crate::member) enum ParticipationState {
    /// The member knows what it has signed, and takes part.
    Full,
    /// The member's journal holds nothing that it signed, and it asks others whether its key was used before.
    KeyCheck {
        /// Members that answered and know of nothing that it signed.
        answers: BTreeSet<MemberIndex>,
        /// Whether the journal is empty. If not, it may be an older copy.
        empty: bool,
    },
    /// The member lost its journal.
    JournalLost {
        /// The highest view that each member proved by a certificate.
        answers: ByMember<u64>,
        /// The numbers in the last report of this state.
        reported: Option<(usize, Option<u64>)>,
    },
    /// The member's journal lacks something that its key has signed. In this epoch that cannot change:
    /// what else is missing is not known, and the newer journal may still exist.
    Outdated,
    /// Another process uses the member's key at the same time. That cannot be undone while this one
    /// runs: what the other has signed is not known. After a restart the journal is compared with what
    /// others hold, as always.
    Doubled,
}

/// The journal that a member starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::member) enum JournalState {
    /// Nothing was written in this epoch: the member is new, or its journal was lost unnoticed.
    Empty,
    /// It holds what others sent in this epoch, and nothing that shows that the member took part: it was
    /// stopped while it asked, or an older copy was put back.
    Unsigned,
    /// Everything that was written is there.
    Kept,
    /// There was a journal, and it is lost.
    Lost,
}

impl ParticipationState {
    pub(in crate::member) fn new(journal: JournalState) -> Self {
        match journal {
            JournalState::Kept => Self::Full,
            JournalState::Lost => Self::journal_lost(),
            JournalState::Empty | JournalState::Unsigned => Self::KeyCheck {
                answers: BTreeSet::new(),
                empty: journal == JournalState::Empty,
            },
        }
    }

    pub(in crate::member) fn journal_lost() -> Self {
        Self::JournalLost {
            answers: ByMember::new(),
            reported: None,
        }
    }

    /// Whether this member only listens: it neither votes, proposes, contributes nor signs for
    /// manifests.
    pub(in crate::member) fn listening(&self) -> bool {
        !matches!(self, Self::Full)
    }

    /// Whether this member's journal lacks what its key has signed, or may: it is lost, or an older
    /// copy, or another process signs too. Such a member does not train either.
    pub(in crate::member) fn lost_journal(&self) -> bool {
        matches!(self, Self::JournalLost { .. }) || self.outdated()
    }

    /// Whether this member's journal is an older copy, or may be one because another process signs too.
    pub(in crate::member) fn outdated(&self) -> bool {
        matches!(self, Self::Outdated | Self::Doubled)
    }

    /// A member has answered: it proved a certificate of view `highest`, and may know `more`.
    pub(in crate::member) fn answered(&mut self, by: MemberIndex, highest: u64, more: bool) {
        match self {
            Self::JournalLost { answers, .. } => {
                let answer = answers.entry(by).or_default();
                *answer = highest.max(*answer);
            }
            Self::KeyCheck { answers, .. } if !more => {
                answers.insert(by);
            }
            Self::Full | Self::KeyCheck { .. } | Self::Outdated | Self::Doubled => {}
        }
    }

    /// Whether no answer of `peer` is needed: there is one, there are enough, or this member takes
    /// part.
    pub(in crate::member) fn is_answered_by(&self, peer: MemberIndex, quorum: usize) -> bool {
        match self {
            Self::Full | Self::Outdated | Self::Doubled => true,
            Self::KeyCheck { answers, .. } => answers.contains(&peer),
            Self::JournalLost { answers, .. } => {
                answers.len() >= quorum || answers.contains_key(&peer)
            }
        }
    }
}
