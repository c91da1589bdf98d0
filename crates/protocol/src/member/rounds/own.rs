//! This member's own part of a round: training, contributing, and when others may have its model.

use bytes::Bytes;

use crate::hash::Hash;
use crate::member::rounds::clear::scoring::Scoring;
use crate::message::{Body, Entry, Message, PublicKeys, Ready};
use crate::time::Time;
use crate::work::Trained;

/// This member's own part of a round.
#[derive(Default)]
pub(in crate::member) struct OwnPart {
    pub(in crate::member) training: TrainingState,
    /// The contribution list with this member's entry was seen: any member may have its model now.
    pub(in crate::member) model_released: bool,
    pub(in crate::member) scoring: Scoring,
    /// Receipts for this member's contribution, at most one a view, the newest last.
    receipts: Vec<OwnReceipt>,
}

/// Most receipts that are kept: a block of an earlier view may become final while a later one is under way.
const RECEIPTS: usize = 4;

/// A lead's signed word that it has this member's contribution.
pub(in crate::member) struct OwnReceipt {
    pub(in crate::member) message: Message,
    /// Whether this member signed for a manifest of that view with its entry.
    pub(in crate::member) signed: bool,
}

/// How far training is.
#[derive(Default)]
pub(in crate::member) enum TrainingState {
    #[default]
    Due,
    Running,
    /// Finished, and not signed: this member may not sign yet.
    Finished(Trained),
    /// The keys of a masked round are prepared, and not signed: this member may not sign yet.
    Prepared(PublicKeys),
    /// This member has nothing to contribute. Whether the others have been told, and heartbeats since then.
    Failed {
        told: bool,
        heartbeats: u32,
    },
    Contributed(Box<OwnContribution>),
}

/// Whether this member's contribution comes too late for a round that is over.
pub(in crate::member) enum Lateness {
    /// The contribution is not ready.
    NotReady,
    /// The contribution was ready at this time.
    Ready(Time),
}

/// A signed contribution, its bytes for the wire, and what it becomes.
pub(in crate::member) struct OwnContribution {
    pub(in crate::member) message: Message,
    pub(in crate::member) frame: Bytes,
    /// The id by which the lead's receipt names it.
    pub(in crate::member) id: Hash,
    /// The entry in a contribution list; none in a masked round.
    pub(in crate::member) entry: Option<Entry>,
    /// When it was signed here, or found in the journal.
    pub(in crate::member) at: Time,
}

impl OwnPart {
    /// How late this member is if the round is over without it; `None` where it had nothing to contribute.
    pub(in crate::member) fn lateness(&self) -> Option<Lateness> {
        match &self.training {
            TrainingState::Running => Some(Lateness::NotReady),
            TrainingState::Contributed(own) => Some(Lateness::Ready(own.at)),
            TrainingState::Due
            | TrainingState::Finished(_)
            | TrainingState::Prepared(_)
            | TrainingState::Failed { .. } => None,
        }
    }

    fn contributed(&self) -> Option<&OwnContribution> {
        match &self.training {
            TrainingState::Contributed(own) => Some(own),
            _ => None,
        }
    }

    /// The entry of this member's contribution, if it has contributed a model in clear.
    pub(in crate::member) fn entry(&self) -> Option<&Entry> {
        self.contributed()?.entry.as_ref()
    }

    /// The id by which the lead's receipt names this member's contribution.
    pub(in crate::member) fn id(&self) -> Option<Hash> {
        Some(self.contributed()?.id)
    }

    /// Whether these are the keys that this member has signed.
    pub(in crate::member) fn signed_keys(&self, ready: &Ready) -> bool {
        let own = self.contributed().map(|own| &own.message);
        own.is_some_and(|own| {
            own.body == Body::Keys(ready.keys) && own.signature == ready.signature
        })
    }

    /// Keeps the receipt of a view's lead.
    pub(in crate::member) fn keep_receipt(&mut self, message: &Message) {
        if self.receipt_of(message.view).is_none() {
            self.receipts.push(OwnReceipt {
                message: message.clone(),
                signed: false,
            });
            let more = self.receipts.len().saturating_sub(RECEIPTS);
            self.receipts.drain(..more);
        }
    }

    /// The receipt of the lead of a view.
    pub(in crate::member) fn receipt_of(&self, view: u64) -> Option<&OwnReceipt> {
        self.receipts.iter().find(|held| held.message.view == view)
    }

    /// This member signed for a manifest of a view with its entry.
    pub(in crate::member) fn signed_in(&mut self, view: u64) {
        let of_view = |held: &&mut OwnReceipt| held.message.view == view;
        self.receipts
            .iter_mut()
            .filter(of_view)
            .for_each(|held| held.signed = true);
    }

    /// Whether this member's entry is among these, unchanged.
    pub(in crate::member) fn listed(&self, entries: &[Entry]) -> bool {
        self.entry().is_some_and(|own| {
            entries
                .binary_search_by(|entry| entry.id.cmp(&own.id))
                .is_ok_and(|at| entries[at] == *own)
        })
    }

    /// Whether this member has contributed.
    pub(in crate::member) fn has_contributed(&self) -> bool {
        self.contributed().is_some()
    }

    /// Whether any member may have this blob: all but this member's own model before it is
    /// released.
    pub(in crate::member) fn may_serve(&self, blob: &Hash) -> bool {
        let model = match &self.training {
            TrainingState::Finished(trained) => Some(trained.fields.blob),
            TrainingState::Contributed(own) => own.entry.as_ref().map(|entry| entry.fields.blob),
            TrainingState::Due
            | TrainingState::Running
            | TrainingState::Prepared(_)
            | TrainingState::Failed { .. } => None,
        };
        self.model_released || model != Some(*blob)
    }

    /// Whether this body, of this round, is that of this member's own contribution, or follows from it: a
    /// masked vector depends on the secret behind the contributed keys and on its list alone.
    pub(in crate::member) fn is_contribution(&self, round: u64, body: &Body) -> bool {
        let own = self.contributed().map(|own| &own.message);
        let Some(own) = own.filter(|own| own.round == round) else {
            return false;
        };
        match (&own.body, body) {
            (Body::Contribution(a), Body::Contribution(b)) => a.same(b),
            (Body::Keys(a), Body::Keys(b)) => a == b,
            (Body::Keys(_), Body::MaskedVector(_)) => true,
            _ => false,
        }
    }
}
