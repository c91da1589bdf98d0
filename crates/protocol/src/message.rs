//! What members say to each other. Every message travels in an [`Envelope`](crate::envelope).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::certificate::{Certificate, Verdict};
use crate::charter::Verification;
use crate::codec;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::roster::MemberIndex;

/// A verified message: membership and signature hold, the body decoded canonically.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The round it belongs to; 0 for messages of a view or of none.
    pub round: u64,
    /// The view it belongs to; 0 for messages of a round or of none.
    pub view: u64,
    /// Who signed it.
    pub sender: MemberIndex,
    /// What it says.
    pub body: Body,
    /// The sender's signature over federation, epoch, round, view, sender, kind and body.
    pub signature: Signature,
}

/// The kinds of messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Body {
    /// Member → lead (round): a trained model, by hash.
    Contribution(Contribution),
    /// Lead → member (view): the entry of that id is in.
    Receipt {
        /// The entry's id.
        entry: Hash,
    },
    /// Lead → all (round, view): the set is closed; entries without names.
    Bundle(Bundle),
    /// Member → lead (round): its losses of every entry.
    Scores(Scores),
    /// Lead → all (round, view): entries and score rows.
    Sheet(Sheet),
    /// Member → lead (round, no view): one's entry and row are in this sheet unchanged.
    Inclusion {
        /// The sheet's root.
        sheet: Hash,
    },
    /// Lead → all (view): a block to vote on.
    Proposal(Box<Proposal>),
    /// Member → collectors (view): a vote for a block.
    Notarize {
        /// The block.
        block: Hash,
        /// What the voter checked.
        checked: Checked,
    },
    /// Member → collectors (view): a vote that a block is final.
    Finalize {
        /// The block.
        block: Hash,
    },
    /// Member → all (view): a vote against the view.
    Nullify,
    /// Lead → all (view): still here.
    Progress {
        /// How far the round is.
        phase: Phase,
        /// Counts up with every beat; 0 says "I lead".
        counter: u64,
    },
    /// Any → any: what has become final after this view?
    SyncRequest {
        /// View of the asker's last final block.
        after: u64,
        /// The first view after that whose end the asker does not know.
        from: u64,
        /// The first block, going back from one that is final, that the asker does not have.
        missing: Option<Hash>,
        /// Drawn for this question; the answer repeats it, so that no old answer can be replayed.
        nonce: u64,
    },
    /// The answer.
    SyncResponse(Box<SyncResponse>),
    /// Any → all (last round): the last round is adopted here; nothing more is needed from anybody.
    Complete,
}

/// Kinds on the wire; the number is signed and stands before the body is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// [`Body::Contribution`].
    Contribution = 1,
    /// [`Body::Receipt`].
    Receipt = 2,
    /// [`Body::Bundle`].
    Bundle = 3,
    /// [`Body::Scores`].
    Scores = 4,
    /// [`Body::Sheet`].
    Sheet = 5,
    /// [`Body::Inclusion`].
    Inclusion = 6,
    /// [`Body::Proposal`].
    Proposal = 7,
    /// [`Body::Notarize`].
    Notarize = 8,
    /// [`Body::Finalize`].
    Finalize = 9,
    /// [`Body::Nullify`].
    Nullify = 10,
    /// [`Body::Progress`].
    Progress = 11,
    /// [`Body::SyncRequest`].
    SyncRequest = 12,
    /// [`Body::SyncResponse`].
    SyncResponse = 13,
    /// A certificate: stands alone, signed by its voters.
    Certificate = 14,
    /// Evidence: stands alone, signed by whom it names.
    Evidence = 15,
    /// [`Body::Complete`].
    Complete = 16,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 16] = [
        Self::Contribution,
        Self::Receipt,
        Self::Bundle,
        Self::Scores,
        Self::Sheet,
        Self::Inclusion,
        Self::Proposal,
        Self::Notarize,
        Self::Finalize,
        Self::Nullify,
        Self::Progress,
        Self::SyncRequest,
        Self::SyncResponse,
        Self::Certificate,
        Self::Evidence,
        Self::Complete,
    ];

    /// The kind of that number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }

    /// Whether a message of this kind belongs to a round, and whether it belongs to a view. The
    /// header has a number from 1 where it does, and 0 where it does not. Anything else is refused
    /// before the signature is looked at, so that one signed statement has one meaning.
    pub fn belongs(self) -> Belongs {
        let (round, view) = match self {
            Self::Contribution | Self::Scores | Self::Inclusion | Self::Complete => (true, false),
            Self::Bundle | Self::Sheet => (true, true),
            Self::Receipt
            | Self::Proposal
            | Self::Notarize
            | Self::Finalize
            | Self::Nullify
            | Self::Progress
            | Self::Certificate => (false, true),
            Self::SyncRequest | Self::SyncResponse | Self::Evidence => (false, false),
        };
        Belongs { round, view }
    }
}

/// What a kind of message belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Belongs {
    /// To a round.
    pub round: bool,
    /// To a view.
    pub view: bool,
}

impl Belongs {
    /// Whether a header with this round and view fits.
    pub fn fits(self, round: u64, view: u64) -> bool {
        (round != 0) == self.round && (view != 0) == self.view
    }
}

impl Body {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Contribution(_) => Kind::Contribution,
            Self::Receipt { .. } => Kind::Receipt,
            Self::Bundle(_) => Kind::Bundle,
            Self::Scores(_) => Kind::Scores,
            Self::Sheet(_) => Kind::Sheet,
            Self::Inclusion { .. } => Kind::Inclusion,
            Self::Proposal(_) => Kind::Proposal,
            Self::Notarize { .. } => Kind::Notarize,
            Self::Finalize { .. } => Kind::Finalize,
            Self::Nullify => Kind::Nullify,
            Self::Progress { .. } => Kind::Progress,
            Self::SyncRequest { .. } => Kind::SyncRequest,
            Self::SyncResponse(_) => Kind::SyncResponse,
            Self::Complete => Kind::Complete,
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
    /// The bundle is out, scores come in.
    Scoring,
    /// The sheet is out, inclusions come in.
    Including,
    /// Deciding and computing the outcome.
    Deciding,
    /// The proposal is out, votes come in.
    Voting,
}

/// A silo's trained model, by hash, with what only the lead sees of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Contribution {
    /// Hash of the plan that was carried out.
    pub plan: Hash,
    /// The entry as everybody will see it, but for its id.
    pub fields: EntryFields,
    /// Makes the entry's id unguessable to everybody but author and lead.
    #[serde(with = "codec::bytes")]
    pub nonce: [u8; 32],
    /// Training metrics by name, ascending.
    pub metrics: Vec<(String, f64)>,
}

/// Training metrics that a contribution may carry.
pub const METRICS: usize = 64;
/// Bytes of a metric's name.
pub const METRIC_NAME: usize = 128;

impl Contribution {
    /// Whether its metrics are few, finite and named briefly. They are for people; what is kept of
    /// a member's must be bounded.
    pub fn has_sane_metrics(&self) -> bool {
        let sane = |(name, value): &(String, f64)| name.len() <= METRIC_NAME && value.is_finite();
        self.metrics.len() <= METRICS && self.metrics.iter().all(sane)
    }

    /// Whether it says the same, byte by byte.
    pub fn same(&self, other: &Self) -> bool {
        codec::encode(self) == codec::encode(other)
    }

    /// The nameless entry of this contribution.
    pub fn entry(&self, federation: &Hash, round: u64) -> Entry {
        let id = Hash::labelled(
            "entry",
            &[
                &federation.0,
                &round.to_le_bytes(),
                &self.nonce,
                &self.fields.blob.0,
            ],
        );
        Entry {
            id,
            fields: self.fields.clone(),
        }
    }
}

/// What everybody sees of a contribution.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryFields {
    /// The model's canonical document, by hash.
    pub blob: Hash,
    /// Its size in bytes.
    pub size: u64,
    /// The coalition whose model it started from, if it had one.
    pub coalition: Option<u32>,
    /// Training rows, where the plan asks for weights.
    pub weight: Option<u64>,
    /// Who contributed it, where the charter shows names.
    pub member: Option<MemberIndex>,
}

/// One contribution, name off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// BLAKE3 of federation, round, nonce and blob.
    pub id: Hash,
    /// The rest.
    pub fields: EntryFields,
}

/// The closed set of a round, names off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundle {
    /// Strictly ascending by id.
    pub entries: Vec<Entry>,
}

/// A member's losses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The member's own entry.
    pub entry: Hash,
    /// Loss of every entry's model on its own data, by blob, strictly ascending. A word of the
    /// member that nobody can verify.
    pub losses: Vec<(Hash, f64)>,
}

impl Scores {
    /// The row in the order of `entries`, if every one of them is scored.
    pub fn row(&self, entries: &[Entry]) -> Option<Vec<f64>> {
        let loss = |entry: &Entry| {
            let at = self
                .losses
                .binary_search_by(|(blob, _)| blob.cmp(&entry.fields.blob))
                .ok()?;
            Some(self.losses[at].1)
        };
        entries.iter().map(loss).collect()
    }
}

/// What a decision rests on: the entries and, if the plan cross-evaluates, their score rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Strictly ascending by id.
    pub entries: Vec<Entry>,
    /// Row = whose data, column = whose model, both in the order of the entries.
    pub scores: Option<Vec<Vec<f64>>>,
}

impl Sheet {
    /// The hash that inclusions are signed over.
    pub fn root(&self) -> Hash {
        Hash::labelled("sheet", &[&codec::encode(self)])
    }

    /// Where the entry of that id stands.
    pub fn position(&self, entry: &Hash) -> Option<usize> {
        self.entries.binary_search_by(|e| e.id.cmp(entry)).ok()
    }
}

/// A block to vote on, with the proof that it may stand where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// The block.
    pub block: Block,
    /// The parent's final certificate (for an empty block: its notarisation). None on the epoch.
    pub parent: Option<Certificate>,
    /// Nullifications of every view between the parent's and this one.
    pub skipped: Vec<Certificate>,
}

/// One link of the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The epoch.
    pub epoch: Hash,
    /// The view it was proposed in.
    pub view: u64,
    /// The block before; the epoch's id for the first.
    pub parent: Hash,
    /// What it says.
    pub content: Content,
}

impl Block {
    /// The hash that is voted on.
    pub fn hash(&self) -> Hash {
        Hash::labelled("block", &[&codec::encode(self)])
    }

    /// The learning round, if it is one.
    pub fn learning(&self) -> Option<&Learning> {
        match &self.content {
            Content::Learning(learning) => Some(learning),
            Content::Empty => None,
        }
    }
}

/// What a block says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Content {
    /// One round of learning.
    Learning(Learning),
    /// Nothing: it only makes its ancestors final.
    Empty,
}

/// One round of learning, as everybody adopts it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Learning {
    /// The round, from 1.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Root of the sheet.
    pub sheet: Hash,
    /// Signatures over the sheet by the authors of its entries, ascending by member.
    #[serde(with = "crate::codec::shared")]
    pub inclusions: Arc<[(MemberIndex, Signature)]>,
    /// What the lead chose; read by the layers above.
    pub decision: Vec<u8>,
    /// Hash of the outcome.
    pub outcome: Hash,
}

/// What the signer of a Notarize vote checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Checked {
    /// An empty block: parent and skipped views. Also every vote that is not a Notarize.
    Structure,
    /// A learning block, to this level.
    Outcome(Verification),
}

/// What has become final, as far as one member knows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncResponse {
    /// `after` of the request.
    pub after: u64,
    /// `nonce` of the request.
    pub nonce: u64,
    /// The certificate of the highest view that the answering member knows: what it claims about
    /// how far views have come counts only with this proof. None before the first certificate.
    pub highest: Option<Certificate>,
    /// Final blocks after the asker's, in order, each the parent of the next.
    pub blocks: Vec<Block>,
    /// Finality of the last of them.
    pub proof: Option<Certificate>,
    /// The block that the asker misses, and blocks before it, each the parent of the one before:
    /// as far as they are known, final or not.
    pub missing: Vec<Block>,
    /// Whether there are more final blocks, or more certificates, after these.
    pub more: bool,
    /// Certificates above the last of these blocks, by ascending view, so that the asker can enter
    /// the current view.
    pub certificates: Vec<Certificate>,
    /// The newest vote, proposal or contribution that the asker is known to have signed: a member
    /// that believes to be new learns from it that its key is not.
    pub yours: Option<Reminder>,
}

impl SyncResponse {
    /// The answer of a member that knows nothing that the asker does not.
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

/// Something that a member signed and must not have forgotten, as another member gives it back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reminder {
    /// Who signed it.
    pub member: MemberIndex,
    /// What.
    pub said: Said,
    /// The signature.
    pub signature: Signature,
}

/// What a [`Reminder`] is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Said {
    /// A contribution to a round.
    Contribution(u64, Contribution),
    /// A vote in a view.
    Vote(u64, Verdict, Checked),
    /// A proposal in a view.
    Proposal(u64, Box<Proposal>),
}

impl Reminder {
    /// Of a vote, a proposal or a contribution; None of anything else.
    pub fn of(message: &Message) -> Option<Self> {
        let vote = |verdict, checked| Said::Vote(message.view, verdict, checked);
        let said = match &message.body {
            Body::Contribution(own) => Said::Contribution(message.round, own.clone()),
            &Body::Notarize { block, checked } => vote(Verdict::Notarised(block), checked),
            &Body::Finalize { block } => vote(Verdict::Final(block), Checked::Structure),
            Body::Nullify => vote(Verdict::Nullified, Checked::Structure),
            Body::Proposal(proposal) => Said::Proposal(message.view, proposal.clone()),
            _ => return None,
        };
        Some(Self {
            member: message.sender,
            said,
            signature: message.signature,
        })
    }

    /// The message as it was sent.
    pub fn message(&self) -> Message {
        let (round, view, body) = match &self.said {
            Said::Contribution(round, own) => (*round, 0, Body::Contribution(own.clone())),
            Said::Vote(view, verdict, checked) => (0, *view, verdict.vote(*checked)),
            Said::Proposal(view, proposal) => (0, *view, Body::Proposal(proposal.clone())),
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
