//! What goes into a member's state machine and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::codec;
use crate::envelope::Opened;
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::message::{Block, Entry, EntryFields, Message, Phase, Sheet};
use crate::refusal::{Omission, Refusal};
use crate::roster::MemberIndex;

pub use crate::work::{Case, Planned, Trained, WorkError};

/// Something happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Bytes from outside were let in.
    Opened(Opened),
    /// A member can be reached, with the measured round trip.
    Up {
        /// Which.
        peer: MemberIndex,
        /// Round trip.
        round_trip: Duration,
    },
    /// A member cannot be reached.
    Down {
        /// Which.
        peer: MemberIndex,
    },
    /// Answer to [`Effect::Plan`].
    Planned(Planned),
    /// Answer to [`Effect::Train`].
    Trained {
        /// The round.
        round: u64,
        /// The contribution, or why there is none this round.
        result: Result<Trained, String>,
    },
    /// Answer to [`Effect::Admit`].
    Admitted {
        /// The round.
        round: u64,
        /// Its author.
        from: MemberIndex,
        /// What was said of it.
        fields: EntryFields,
        /// Whether it is a usable model.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Effect::Evaluate`].
    Evaluated {
        /// The round.
        round: u64,
        /// Loss by blob.
        result: Result<Vec<(Hash, f64)>, WorkError>,
    },
    /// Answer to [`Effect::Hold`].
    Held {
        /// The round.
        round: u64,
        /// The blobs asked for.
        blobs: Vec<Hash>,
        /// Whether all of them are kept here now.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Effect::Decide`].
    Decided {
        /// The sheet's root.
        sheet: Hash,
        /// The decision.
        result: Result<Vec<u8>, WorkError>,
    },
    /// Answer to [`Effect::Check`].
    Checked {
        /// [`Case::id`].
        case: Hash,
        /// Whether the decision is acceptable.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Effect::Settle`].
    Settled {
        /// [`Case::id`].
        case: Hash,
        /// Hash of the outcome.
        result: Result<Hash, WorkError>,
    },
    /// Answer to [`Effect::Apply`].
    Applied {
        /// The last round applied.
        round: u64,
        /// Unavailable: asked for again after a beat.
        result: Result<(), WorkError>,
    },
    /// Time has passed, to the deadline or beyond.
    Time,
}

/// Something to do. The [`Effect::Persist`]s of one step are committed in one transaction before
/// anything else of that step is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Hand bytes to one member.
    Send {
        /// The reader.
        to: MemberIndex,
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Hand bytes to all other members.
    Publish {
        /// A sealed envelope.
        frame: Bytes,
    },
    /// Work out the plan of a round from the state before it. → [`Input::Planned`]
    Plan {
        /// The round.
        round: u64,
        /// Hash of the outcome that is the state; the charter's `start` for the first round.
        state: Hash,
    },
    /// Carry out one's part of the plan. → [`Input::Trained`]
    Train {
        /// The round.
        round: u64,
    },
    /// Lead: fetch a contributed blob from its author and see whether it is a usable model.
    /// → [`Input::Admitted`]
    Admit {
        /// The round.
        round: u64,
        /// What is said of it.
        fields: EntryFields,
        /// Its author.
        from: MemberIndex,
    },
    /// Measure one's own loss of these entries. → [`Input::Evaluated`]
    Evaluate {
        /// The round.
        round: u64,
        /// The entries not scored yet.
        entries: Vec<Entry>,
        /// Who has their blobs.
        holders: Vec<MemberIndex>,
    },
    /// Fetch these entries' blobs and keep them until the round is over: who signs for a sheet can
    /// give others everything that it consists of. → [`Input::Held`]
    Hold {
        /// The round.
        round: u64,
        /// The entries whose blobs are not held yet.
        entries: Vec<Entry>,
        /// Who has their blobs.
        holders: Vec<MemberIndex>,
    },
    /// Lead: choose. → [`Input::Decided`]
    Decide {
        /// The round.
        round: u64,
        /// What to choose from.
        sheet: Arc<Sheet>,
        /// Who has the blobs.
        holders: Vec<MemberIndex>,
    },
    /// See whether a decision is acceptable. → [`Input::Checked`]
    Check {
        /// The case.
        case: Case,
        /// Who has the blobs.
        holders: Vec<MemberIndex>,
    },
    /// Compute the outcome and keep it. → [`Input::Settled`]
    Settle {
        /// The case.
        case: Case,
        /// Who has the blobs.
        holders: Vec<MemberIndex>,
    },
    /// Make durable.
    Persist(Record),
    /// Adopt final outcomes: model, personal state, strategy state and round number, in one
    /// transaction that also holds `Record::Applied`. → [`Input::Applied`]
    Apply {
        /// The rounds that became final, oldest first. Only the last outcome is adopted; earlier
        /// ones are passed over by a member that was away.
        rounds: Vec<FinalRound>,
        /// Who has the last outcome.
        holders: Vec<MemberIndex>,
    },
    /// Tell people.
    Report(Report),
}

/// A learning round that became final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalRound {
    /// The round.
    pub round: u64,
    /// The final block that says so: what an adoption is keyed by.
    pub block: Hash,
    /// Hash of its outcome.
    pub outcome: Hash,
    /// Where one's own entry stands in the sheet; `None` if it is not in it, or not known.
    pub position: Option<usize>,
}

/// What a member must never forget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// A block that one is about to vote for: whoever votes for it can give it to others.
    Block(Block),
    /// A vote of one's own.
    Vote(Message),
    /// A proposal of one's own.
    Proposed(Message),
    /// A contribution of one's own, with its nonce.
    Contributed(Message),
    /// A certificate that moved one to another view.
    Certified(Certificate),
    /// Blocks that became final, in order, with the proof for the last.
    Final {
        /// The blocks.
        blocks: Vec<Block>,
        /// A Final certificate of the last.
        proof: Certificate,
    },
    /// Outcomes were adopted up to this round.
    Applied {
        /// The round.
        round: u64,
    },
}

/// What people and measurements want to know. Carries no model and nobody's data.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// A view began.
    Entered {
        /// The view.
        view: u64,
        /// Its lead.
        lead: MemberIndex,
        /// The round it works on.
        round: u64,
    },
    /// This member leads and came to another phase.
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
        /// The blob.
        blob: Hash,
    },
    /// This member cannot contribute this round.
    TrainingFailed {
        /// The round.
        round: u64,
        /// Why.
        reason: String,
    },
    /// Something said by a member was not accepted.
    Refused {
        /// Who said it.
        member: MemberIndex,
        /// The round it was about; 0 if about none.
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
        /// Who.
        members: Vec<MemberIndex>,
        /// What they failed to do.
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
        /// Whose contributions are in it. Authors' signatures are on the chain; which entry is
        /// whose is not.
        authors: Vec<MemberIndex>,
    },
    /// A member was shown to break the rules.
    Fault(Box<Evidence>),
    /// This member's key has signed things in this federation that its journal does not hold: its
    /// state was lost or is an old copy, or another process uses the key. From here on it behaves
    /// as a member without its journal.
    KeyUsedBefore,
    /// Another process signs with this member's key at this moment.
    KeyUsedElsewhere,
    /// This member came without its journal and only listens: it neither votes, proposes nor
    /// contributes, because it cannot know what it has signed (R5). Said again when the numbers
    /// change.
    Listening {
        /// Others that said how far views have come.
        answers: usize,
        /// How many of them are needed.
        needed: usize,
        /// A block of this view or a later one must become final, once enough have answered.
        until: Option<u64>,
    },
    /// A member that only listened takes part again.
    TakingPart,
    /// The last round is final and applied.
    Complete,
    /// Another member says that the last round is final and applied at its place: it needs nothing
    /// more from this one.
    MemberComplete {
        /// Which.
        member: MemberIndex,
    },
}

impl Record {
    /// The bytes that a journal keeps.
    pub fn to_bytes(&self) -> Vec<u8> {
        codec::encode(self)
    }
}
