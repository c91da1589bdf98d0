//! Answers to members that ask what became final.

use serde::{Deserialize, Serialize};

use super::{Block, Body, Contribution, Keys, Message, Proposal};
use crate::certificate::{Certificate, Checked, Verdict};
use crate::identity::Signature;
use crate::roster::MemberIndex;

/// Blocks that became final, and certificates of how later views ended, as far as the answering member knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncResponse {
    /// `after` of the request.
    pub after: u64,
    /// `nonce` of the request.
    pub nonce: u64,
    /// The certificate of the highest view that the answering member knows; none if it knows no
    /// certificate. A height counts only with this proof.
    pub highest: Option<Certificate>,
    /// Final blocks after the asker's last one, in order, each the parent of the next.
    pub blocks: Vec<Block>,
    /// The final certificate of the last of them.
    pub proof: Option<Certificate>,
    /// The block that the asker misses and the known blocks before it, final or not, each the
    /// parent of the one before.
    pub missing: Vec<Block>,
    /// `true` if more final blocks, or more certificates, follow after these.
    pub more: bool,
    /// Certificates of views after the last of these blocks, by ascending view. With them the asker
    /// can enter the current view.
    pub certificates: Vec<Certificate>,
    /// The newest vote, proposal or contribution that the asker is known to have signed. A member
    /// that takes itself for new learns from it that its key was used before.
    pub yours: Option<Reminder>,
}

impl SyncResponse {
    /// The answer of a member that knows nothing new.
    pub fn nothing(after: u64, nonce: u64) -> Self {
        Self {
            after,
            nonce,
            highest: None,
            blocks: Vec::new(),
            proof: None,
            missing: Vec::new(),
            more: false,
            certificates: Vec::new(),
            yours: None,
        }
    }
}

/// A message that a member signed and must not forget, as another member returns it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reminder {
    /// The member that signed it.
    pub member: MemberIndex,
    /// Content that the member signed.
    pub content: ReminderContent,
    /// Signature of the member.
    pub signature: Signature,
}

/// The signed content of a [`Reminder`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ReminderContent {
    /// A contribution to this round.
    Contribution(u64, Contribution),
    /// A vote in this view.
    Vote(u64, Verdict, Checked),
    /// A proposal in this view.
    Proposal(u64, Box<Proposal>),
    /// A contribution to this masked round.
    Keys(u64, Keys),
}

impl Reminder {
    /// The reminder of a vote, a proposal or a contribution; none of other messages.
    pub fn of(message: &Message) -> Option<Self> {
        let vote = |verdict, checked| ReminderContent::Vote(message.view, verdict, checked);
        let content = match &message.body {
            Body::Contribution(own) => ReminderContent::Contribution(message.round, own.clone()),
            &Body::Notarize { block, checked } => vote(Verdict::Notarised(block), checked),
            &Body::Finalize { block } => vote(Verdict::Final(block), Checked::Structure),
            Body::Nullify => vote(Verdict::Nullified, Checked::Structure),
            &Body::Outcome { block, outcome } => {
                vote(Verdict::Outcome { block, outcome }, Checked::Structure)
            }
            Body::Proposal(proposal) => ReminderContent::Proposal(message.view, proposal.clone()),
            &Body::Keys(keys) => ReminderContent::Keys(message.round, keys),
            _ => return None,
        };
        Some(Self {
            member: message.sender,
            content,
            signature: message.signature,
        })
    }

    /// The message as it was sent.
    pub fn message(&self) -> Message {
        let (round, view, body) = match &self.content {
            ReminderContent::Contribution(round, own) => {
                (*round, 0, Body::Contribution(own.clone()))
            }
            ReminderContent::Vote(view, verdict, checked) => {
                (0, *view, Body::vote(*verdict, *checked))
            }
            ReminderContent::Proposal(view, proposal) => {
                (0, *view, Body::Proposal(proposal.clone()))
            }
            ReminderContent::Keys(round, keys) => (*round, 0, Body::Keys(*keys)),
        };
        Message {
            round,
            view,
            sender: self.member,
            body,
            signature: self.signature,
        }
    }
}
