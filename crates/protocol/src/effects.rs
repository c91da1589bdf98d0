//! The inputs and effects of a member's state machine, the records of its journal, and its reports.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::codec;
use crate::envelope::Opened;
use crate::evidence::Evidence;
use crate::forgotten::Forgotten;
use crate::hash::Hash;
use crate::identity::{PublicKey, Signature};
use crate::message::{Amendment, Block, Message, Passage, Phase, Standing};
use crate::parameters::privacy::Circle;
use crate::refusal::{Omission, Refusal};
use crate::roster::MemberIndex;

pub use crate::work::{
    Answer, Case, FinalMasked, FinalRound, MaskedList, Planned, Request, Trained, WorkError,
};

/// Something that happened, for [`Member::step`](crate::Member::step).
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Bytes from outside were opened by [`envelope::open`](crate::envelope::open).
    Opened(Opened),
    /// A member can be reached. Comes again when the round trip changes much.
    Up {
        /// The member.
        peer: MemberIndex,
        /// The measured round trip.
        round_trip: Duration,
    },
    /// A member cannot be reached.
    Down {
        /// The member.
        peer: MemberIndex,
    },
    /// Answer to [`Effect::Work`].
    Done(Answer),
    /// This member's institution approves an amendment. Comes again after a restart.
    Approve {
        /// The amendment.
        amendment: Box<Amendment>,
        /// Counts up with every approval and withdrawal of this institution, through all epochs. The
        /// same number with the same amendment changes nothing.
        number: u64,
    },
    /// This member's institution does not approve an amendment any more. Comes again after a restart.
    Withdraw {
        /// Hash of the amendment.
        amendment: Hash,
        /// As that of [`Approve`](Self::Approve).
        number: u64,
    },
    /// A node has proved that it has this key, which [`Effect::Await`] named.
    Arrived {
        /// The key.
        key: PublicKey,
    },
    /// This member's institution has signed the agreement in force: a member that was
    /// [paused](crate::member::Config::paused) contributes again.
    Resume,
    /// This member's institution wants to go on without members that are gone for good. Comes again
    /// after a restart. Another one takes its place, any number of times.
    Recover {
        /// The members, ascending.
        lost: Vec<MemberIndex>,
        /// Whether the institution says that all members which may have completed an earlier recovery
        /// (their confirmations are not known here) are among the lost, and will never come back. Only
        /// then does a member go back on what it has confirmed without their word.
        abandon: bool,
    },
    /// This member's institution gives a final masked round up whose outcome no quorum certifies, without
    /// anybody being lost. All members have to; the round is then done again in a new epoch. Comes again
    /// after a restart, and takes the place of [`Recover`](Self::Recover) and the other way round.
    GiveUp {
        /// The round.
        round: u64,
    },
    /// Another process uses this member's key at the same time.
    KeyElsewhere,
    /// The deadline is reached or past.
    Time,
}

/// Something to carry out. The [`Effect::Persist`]s of one step are committed in one transaction
/// before any other effect of that step.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Send bytes to one member.
    Send {
        /// The receiver.
        to: MemberIndex,
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Send bytes to all other members.
    Publish {
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Do heavy work. → [`Input::Done`]
    Work(Request),
    /// Report when nodes with these keys connect; takes the place of earlier ones. They are new in
    /// amendments that are known. → [`Input::Arrived`]
    Await {
        /// The keys, ascending.
        keys: Vec<PublicKey>,
    },
    /// Write to the journal, durably.
    Persist(Record),
    /// The epoch is over: the agreement has changed. This member does nothing more. One of the next
    /// epoch, which the passage leads to, takes its place if its key is in that roster.
    EpochOver(Box<Passage>),
    /// Show to people, or measure.
    Report(Report),
}

/// What a member writes to its journal because it must never forget it (R5).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A block that this member is about to vote for: a voter can give it to others.
    Block(Block),
    /// An own vote.
    Vote(Message),
    /// An own proposal.
    Proposed(Message),
    /// An own contribution, with its nonce.
    Contributed(Message),
    /// A certificate that moved this member to another view.
    Certified(Certificate),
    /// Blocks that became final, in order, with the proof for the last.
    Final {
        /// The blocks.
        blocks: Vec<Block>,
        /// The final certificate of the last.
        proof: Certificate,
    },
    /// Outcomes were adopted up to this round.
    Applied {
        /// The round.
        round: u64,
    },
    /// An own standing, for going on without members that are gone.
    Standing(Message),
    /// An own confirmation of a set of standings.
    Confirmed(Box<OwnConfirmation>),
    /// This member's key has signed something that the journal does not hold: the journal is an older
    /// copy. It votes, proposes and contributes nothing more in this epoch.
    Outdated(Forgotten),
    /// The only sum that this member ever answers, in whatever epoch: it is about to answer it for the
    /// first time. None, without authors, if all concerned have agreed that it may answer another one from
    /// the next epoch on.
    Circle(Circle),
}

/// A member's own confirmation, with the set that it confirms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OwnConfirmation {
    /// The signed [`Confirmation`](crate::message::Confirmation).
    pub message: Message,
    /// The last standings of all that remain, ascending, with their signatures.
    pub standings: Vec<(MemberIndex, Standing, Signature)>,
}

/// News for people and for measurements. Holds neither models nor data.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// This member entered a view.
    Entered {
        /// The view.
        view: u64,
        /// Lead of the view.
        lead: MemberIndex,
        /// The round under way.
        round: u64,
    },
    /// This member leads and entered another phase.
    Leading {
        /// The view.
        view: u64,
        /// The round.
        round: u64,
        /// The phase.
        phase: Phase,
    },
    /// This member contributed.
    Contributed {
        /// The round.
        round: u64,
        /// Hash of the model.
        blob: Hash,
    },
    /// Training failed, so this member does not contribute in this round.
    TrainingFailed {
        /// The round.
        round: u64,
        /// Why.
        reason: String,
    },
    /// Another member contributes nothing to this round, so nobody waits for it.
    Nothing {
        /// The member.
        member: MemberIndex,
        /// The round.
        round: u64,
    },
    /// A round that names this member became final without its contribution, though it did not fail: the
    /// training, or its model, came too late. Times are from the end of the round before here, from which
    /// patience counts, too.
    Late {
        /// The round.
        round: u64,
        /// After how long the contribution was ready; `None`: it is not.
        ready: Option<Duration>,
        /// After how long the round was final.
        over: Duration,
    },
    /// A round became final without this member's contribution, although the lead of its view had signed that it
    /// has it. A lead that follows the rules does that where the author's signature for the manifest does not reach
    /// it in time, and nowhere else.
    ReceiptUnkept {
        /// The round.
        round: u64,
        /// The [`Body::Receipt`](crate::message::Body::Receipt) of the lead, as it signed it.
        receipt: Box<Message>,
        /// Whether this member had signed for a manifest of that view with its entry.
        signed: bool,
    },
    /// A message of a member was not accepted.
    Refused {
        /// The member.
        member: MemberIndex,
        /// The round that it belongs to; 0 if to none.
        round: u64,
        /// Why.
        reason: Refusal,
    },
    /// This member votes against a view.
    Nullifying {
        /// The view.
        view: u64,
        /// Why.
        reason: Refusal,
    },
    /// A certificate became known.
    Certified(Certificate),
    /// A lead went on without some participants.
    LeftOut {
        /// The view.
        view: u64,
        /// The round.
        round: u64,
        /// The participants.
        members: Vec<MemberIndex>,
        /// What the participants did not send.
        reason: Omission,
    },
    /// A round became final.
    Final {
        /// The round.
        round: u64,
        /// The view of its block.
        view: u64,
        /// The lead of that view.
        lead: MemberIndex,
        /// The block.
        block: Hash,
        /// The members whose contributions are in it. Their signatures are on the chain; which entry
        /// is whose is not.
        authors: Vec<MemberIndex>,
    },
    /// One entry of a round that became final has more than half of the weight of all: it sets the
    /// model almost alone. Reported by members that hold the Manifest.
    HeavyEntry {
        /// The round.
        round: u64,
        /// Training rows that the entry claims.
        rows: u64,
        /// Training rows that all entries together claim.
        total: u128,
        /// Author of the entry, where the parameter set shows names.
        member: Option<MemberIndex>,
    },
    /// An amendment is known, or another member approved it.
    Amendment {
        /// The amendment.
        amendment: Box<Amendment>,
        /// The members that approved it, ascending.
        approved: Vec<MemberIndex>,
        /// How many approvals it needs.
        needed: usize,
        /// New keys in it whose nodes have not answered here. This member signs its approval when all
        /// of them have.
        awaits: Vec<PublicKey>,
        /// Why this institution's node cannot follow it, so that this member neither approves nor
        /// proposes it, nor votes for it.
        objection: Option<String>,
    },
    /// This amendment, of which [`Amendment`](Self::Amendment) was reported, is not known any more: nobody approved
    /// it, and it made room for another one of the same member.
    AmendmentForgotten {
        /// Hash of the amendment.
        amendment: Hash,
    },
    /// Members want to go on without others; this member signed or confirmed, or another one did.
    Recovery {
        /// The members declared lost.
        lost: Vec<MemberIndex>,
        /// Members whose last standing names the lost ones, ascending.
        signed: Vec<MemberIndex>,
        /// Members that have confirmed the set of these standings, ascending.
        confirmed: Vec<MemberIndex>,
        /// How many have to sign.
        needed: usize,
        /// The newest round that one of them has adopted.
        round: u64,
        /// A view after the last final block that one of them knows to be notarised: its block may be
        /// final for a member that is lost.
        notarised: Option<u64>,
    },
    /// This member's institution corrected whom it holds for lost, and this member cannot sign that yet:
    /// it has confirmed to go on without others. As soon as one of the members that are named has
    /// corrected itself too, or all of them have confirmed, it goes on.
    RecoveryHeld {
        /// The members declared lost in what was confirmed.
        confirmed: Vec<MemberIndex>,
        /// The members whose confirmations are not known here.
        awaits: Vec<MemberIndex>,
    },
    /// Others have gone on without this member, which they declared lost. It does not follow.
    LeftBehind {
        /// The block with the recovery.
        recovery: Hash,
        /// The members that signed it.
        by: Vec<MemberIndex>,
        /// The round that they went on from.
        round: u64,
    },
    /// There is evidence against a member.
    Fault(Box<Evidence>),
    /// This member began with an empty journal, and its key has signed messages in this federation
    /// before: the journal was lost, or another process uses the key. From now on this member behaves
    /// as one that lost its journal.
    KeyUsedBefore,
    /// Another process uses this member's key at the same time. Until it is started again, this one
    /// votes, proposes and contributes nothing.
    KeyElsewhere,
    /// This member's key has signed something that its journal does not hold: an older copy of the
    /// journal was put back, or another process uses the key. From now on, also after a restart, this
    /// member votes, proposes and contributes nothing more in this epoch. Reported again at every start.
    Outdated(Forgotten),
    /// This member lost its journal and only listens: it neither votes, proposes nor contributes,
    /// because it cannot know what it has signed (R5). Reported again when the numbers change.
    Listening {
        /// Others that have answered how far views have come.
        answers: usize,
        /// Answers that are needed.
        needed: usize,
        /// A block of this view or a later one must become final; known once enough have answered.
        until: Option<u64>,
    },
    /// A member that only listened takes part again.
    TakingPart,
    /// The last round is final and adopted.
    Complete {
        /// The last round: that of the parameter set, or an earlier one with which the strategy ended the
        /// federation.
        last: u64,
    },
    /// This member computed another outcome of a masked round than the one that a quorum voted for. It
    /// adopts the latter.
    OtherOutcome {
        /// The round.
        round: u64,
        /// Hash of the outcome that it computed.
        computed: Hash,
        /// Hash of the outcome that is certified.
        certified: Hash,
    },
    /// This member leads and cannot make a list: no group of the agreement is complete, or too few members
    /// are ready.
    GroupsIncomplete {
        /// The round.
        round: u64,
        /// The members of groups that are not ready, ascending.
        members: Vec<MemberIndex>,
    },
    /// A masked vector was wrong: this lead had it checked before it put it on a manifest. With the blobs that
    /// it names, it may be evidence.
    WrongVector {
        /// The [`Body::MaskedVector`](crate::message::Body::MaskedVector), as its author signed it.
        vector: Box<Message>,
    },
    /// This member has answered a sum of other members, or with other weights, and so does not answer this
    /// one: the difference of two sums may be the vector of a single silo.
    OtherCircle {
        /// The sum that it has answered.
        before: Circle,
        /// The sum that is asked for.
        now: Circle,
    },
    /// Another member has adopted the last round and needs nothing more from this one.
    MemberComplete {
        /// The member.
        member: MemberIndex,
    },
}

impl Record {
    /// Whether this record proves that an epoch is over.
    pub fn ends_epoch(&self) -> bool {
        let Self::Final { blocks, .. } = self else {
            return false;
        };
        blocks.iter().any(Block::ends_epoch)
    }

    /// Whether this record says how far outcomes were adopted.
    pub fn is_adoption(&self) -> bool {
        matches!(self, Self::Applied { .. })
    }

    /// Whether this record counts in later epochs, too.
    pub fn outlives_epochs(&self) -> bool {
        matches!(self, Self::Applied { .. } | Self::Circle(_))
    }

    /// Whether this record shows that its member took part in the epoch: it keeps what the member signed,
    /// or that its journal is known to lack some of that.
    pub fn took_part(&self) -> bool {
        self.signed().is_some() || matches!(self, Self::Outdated(_))
    }

    /// The message of this member that it keeps, if it keeps one.
    pub fn signed(&self) -> Option<&Message> {
        match self {
            Self::Vote(message)
            | Self::Proposed(message)
            | Self::Contributed(message)
            | Self::Standing(message) => Some(message),
            Self::Confirmed(own) => Some(&own.message),
            Self::Block(_)
            | Self::Certified(_)
            | Self::Final { .. }
            | Self::Applied { .. }
            | Self::Circle(_)
            | Self::Outdated(_) => None,
        }
    }

    /// The bytes that a journal keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }
}
