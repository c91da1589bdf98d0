//! This member's own part of a round: training, contributing, and when others may have its model.

use bytes::Bytes;

use super::scoring::Scoring;
use crate::hash::Hash;
use crate::message::{Body, Entry, Message};
use crate::time::Time;
use crate::work::Trained;

/// This member's own part of a round.
#[derive(Default)]
pub(super) struct OwnPart {
    pub(super) training: Training,
    /// The bundle with this member's entry was seen: any member may have its model now.
    pub(super) model_released: bool,
    pub(super) scoring: Scoring,
}

/// How far training is.
#[derive(Default)]
pub(super) enum Training {
    #[default]
    Due,
    Running,
    /// Finished, and not signed: this member may not sign yet.
    Finished(Trained),
    /// This member has nothing to contribute. Whether the others have been told, and beats since then.
    Failed {
        told: bool,
        beats: u32,
    },
    Contributed(Box<Contributed>),
}

/// Whether this member's contribution comes too late for a round that is over.
pub(super) enum Lateness {
    /// It is not ready.
    NotReady,
    /// It was ready at this time.
    Ready(Time),
}

/// A signed contribution, its bytes for the wire, and the entry that it becomes.
pub(super) struct Contributed {
    pub(super) message: Message,
    pub(super) frame: Bytes,
    pub(super) entry: Entry,
    /// When it was signed here, or found in the journal.
    pub(super) at: Time,
}

impl OwnPart {
    /// How late this member is if the round is over without it; `None` where it had nothing to contribute.
    pub(super) fn lateness(&self) -> Option<Lateness> {
        match &self.training {
            Training::Running => Some(Lateness::NotReady),
            Training::Contributed(own) => Some(Lateness::Ready(own.at)),
            Training::Due | Training::Finished(_) | Training::Failed { .. } => None,
        }
    }

    /// The entry of this member's contribution, if it has contributed.
    pub(super) fn entry(&self) -> Option<&Entry> {
        match &self.training {
            Training::Contributed(own) => Some(&own.entry),
            _ => None,
        }
    }

    /// Whether this member's entry is among these, unchanged.
    pub(super) fn listed(&self, entries: &[Entry]) -> bool {
        self.entry().is_some_and(|own| {
            entries
                .binary_search_by(|entry| entry.id.cmp(&own.id))
                .is_ok_and(|at| entries[at] == *own)
        })
    }

    /// Whether this member has contributed.
    pub(super) fn has_contributed(&self) -> bool {
        self.entry().is_some()
    }

    /// Whether any member may have this blob: all but this member's own model before it is
    /// released.
    pub(super) fn may_serve(&self, blob: &Hash) -> bool {
        let model = match &self.training {
            Training::Finished(trained) => Some(trained.fields.blob),
            Training::Contributed(own) => Some(own.entry.fields.blob),
            Training::Due | Training::Running | Training::Failed { .. } => None,
        };
        self.model_released || model != Some(*blob)
    }

    /// Whether this body, of this round, is that of this member's own contribution.
    pub(super) fn is_contribution(&self, round: u64, body: &Body) -> bool {
        let Training::Contributed(own) = &self.training else {
            return false;
        };
        match (&own.message.body, body) {
            (Body::Contribution(a), Body::Contribution(b)) => {
                own.message.round == round && a.same(b)
            }
            _ => false,
        }
    }
}
