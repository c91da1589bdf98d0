//! The messages that members send each other. Each travels in an [`envelope`](crate::envelope).

mod block;
mod change;
mod entries;
mod kind;
mod masked;
mod passage;
mod standing;
mod sync;

use serde::{Deserialize, Serialize};

use crate::certificate::{Checked, Verdict};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::roster::MemberIndex;

pub use block::{Block, Confirmed, Content, Learning, Proposal, Recovery, RoundBlock};
pub use change::{Amendment, Approval, Change};
pub use entries::{
    Contribution, ContributionList, Entry, EntryFields, METRIC_NAME, METRICS, MemberScores,
    RoundManifest,
};
pub(crate) use kind::{Allowance, SignatureChecks};
pub use kind::{Kind, Scope};
pub use masked::{
    Blob, KeyList, Keys, ListDocument, MaskedEntry, MaskedManifest, MaskedRound, MaskedVector,
    PublicKeys, Ready, Unmasking,
};
pub use passage::Passage;
pub use standing::{Confirmation, Standing};
pub use sync::{Reminder, ReminderContent, SyncResponse};

/// A message whose sender, signature and encoding were checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The round that it belongs to; 0 if its kind belongs to none.
    pub round: u64,
    /// The view that it belongs to; 0 if its kind belongs to none.
    pub view: u64,
    /// The member that signed it.
    pub sender: MemberIndex,
    /// Content of the message.
    pub body: Body,
    /// The sender's signature over federation, epoch, round, view, sender, kind and body.
    pub signature: Signature,
}

/// The content of a message. In brackets: what its header names, besides the sender.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// Participant → lead (round): a trained model, by hash.
    Contribution(Contribution),
    /// Lead → participant (view): the lead has the model, and will list this entry.
    Receipt {
        /// The entry's id.
        entry: Hash,
    },
    /// Lead → all (round, view): the entries of the round, without names. No more are taken.
    ContributionList(ContributionList),
    /// Author → lead (round): its loss of every entry's model on its own data.
    Scores(MemberScores),
    /// Lead → all (round, view): the entries with their scores.
    Manifest(RoundManifest),
    /// Author → lead (round): its entry and row are in this manifest unchanged, and an auditor keeps every
    /// model of the manifest.
    Inclusion {
        /// The manifest's root.
        manifest: Hash,
    },
    /// Lead → all (view): a block to vote on.
    Proposal(Box<Proposal>),
    /// Member → collectors (view): a vote to notarise a block.
    Notarize {
        /// The block.
        block: Hash,
        /// What the voter checked.
        checked: Checked,
    },
    /// Member → collectors (view): a vote to make a notarised block final.
    Finalize {
        /// The block.
        block: Hash,
    },
    /// Member → all (view): a vote against the view.
    Nullify,
    /// Lead → all (view): the lead is at work.
    Progress {
        /// How far it has come.
        phase: Phase,
        /// Counts up with every heartbeat; 0 announces the lead.
        counter: u64,
    },
    /// Any → any: asks what became final, and how later views ended.
    SyncRequest {
        /// View of the asker's last final block.
        after: u64,
        /// The first later view of which the asker knows no certificate.
        from: u64,
        /// The first block, going back from a final one, that the asker does not have.
        missing: Option<Hash>,
        /// Drawn for this question. The answer repeats it, so that no old answer can be replayed.
        nonce: u64,
    },
    /// Any → any: the answer to a SyncRequest.
    SyncResponse(Box<SyncResponse>),
    /// Member → each other (last round): the sender has adopted the last round, and needs nothing
    /// more from anybody.
    Complete,
    /// Member → each other: an amendment that the sender's institution approves.
    Amendment(Box<Amendment>),
    /// Member → each other: the sender's institution approves an amendment, or does not any more.
    Approval {
        /// Hash of the amendment.
        amendment: Hash,
        /// Counts up: of what a member says of one amendment, the highest number counts.
        number: u64,
        /// False: an approval with a lower number is withdrawn.
        stands: bool,
    },
    /// Member → each other that remains: the sender wants to go on without members that are gone.
    Standing(Box<Standing>),
    /// Member → each other that remains: the sender goes on from this set of standings, and from no
    /// other unless one that signed in the set has given it up.
    Confirmation(Box<Confirmation>),
    /// Member → each other (round): the sender contributes nothing to this round, for instance because
    /// its training failed. Nobody waits for it. It is no promise: a contribution counts all the same.
    Abstain,
    /// Participant → lead (round): its public keys for a masked round, in place of a model.
    Keys(Keys),
    /// Lead → all (round, view): the members that are ready for a masked round. No more are taken.
    KeyList(KeyList),
    /// Author → lead (round): its vector, masked for a list.
    MaskedVector(MaskedVector),
    /// Lead → all (round, view): the vectors of all authors of the list's sums.
    MaskedManifest(MaskedManifest),
    /// Ready member → each other (round): its shares of the masks of a final round.
    Unmasking(Box<Unmasking>),
    /// Member → each other (view): a vote for the outcome of a final masked round.
    Outcome {
        /// The block.
        block: Hash,
        /// Hash of the outcome.
        outcome: Hash,
    },
}

impl Body {
    /// The vote for `verdict` by a member that checked this much.
    pub fn vote(verdict: Verdict, checked: Checked) -> Self {
        match verdict {
            Verdict::Nullified => Self::Nullify,
            Verdict::Notarised(block) => Self::Notarize { block, checked },
            Verdict::Final(block) => Self::Finalize { block },
            Verdict::Outcome { block, outcome } => Self::Outcome { block, outcome },
        }
    }
}

/// How far the lead of a view has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Waiting for the last notarised block to become final.
    Waiting,
    /// Taking contributions.
    Collecting,
    /// The contribution list is sent; waiting for scores.
    Scoring,
    /// The manifest is sent; waiting for inclusions.
    Including,
    /// Deciding on the manifest and computing the outcome.
    Deciding,
    /// The proposal is sent; waiting for votes.
    Voting,
    /// The list of a masked round is sent; waiting for masked vectors.
    Masking,
}
