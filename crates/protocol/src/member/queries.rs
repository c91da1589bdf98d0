//! What the environment of a member may ask it.

use crate::envelope::Known;
use crate::hash::Hash;
use crate::member::Member;
use crate::roster::MemberIndex;

impl Member {
    /// What this member has verified, for [`envelope::open`](crate::envelope::open).
    pub fn known(&self) -> Known {
        Known {
            accused: self.consensus.accused.clone(),
            ..self.consensus.chain.known()
        }
    }

    /// Whether a member may have this blob of this member now. Until the contribution list is here, only the lead of
    /// the view may have this member's own model.
    pub fn may_serve(&self, by: MemberIndex, blob: &Hash) -> bool {
        self.rounds.round.own.may_serve(blob) || by == self.consensus.view.lead
    }

    /// The current view.
    pub fn view(&self) -> u64 {
        self.consensus.view.number
    }

    /// The lead of the current view, as far as this member knows the final rounds.
    pub fn lead_now(&self) -> MemberIndex {
        self.consensus.view.lead
    }

    /// The round under way; one more than the parameter set's rounds when all are final.
    pub fn round(&self) -> u64 {
        self.rounds.round.number
    }

    /// Whether the last round is final and adopted.
    pub fn complete(&self) -> bool {
        self.rounds.completion.reached
    }
}
