//! Why something that a member said, or a view, is not accepted.

use std::time::Duration;

use crate::hash::Hash;
use crate::message::Kind;
use crate::roster::MemberIndex;
use crate::work::WorkError;

/// Why a message is not accepted, or why this member votes against a view. Its text is one sentence
/// for people.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Only the lead of a view sends this kind.
    #[error("{kind:?} of view {view} comes from {lead}, its lead, alone")]
    NotTheLead {
        /// What was sent.
        kind: Kind,
        /// The view.
        view: u64,
        /// The name of its lead.
        lead: String,
    },
    /// Two signed messages that no honest member signs both.
    #[error("{0}; the first one counts")]
    Contradiction(String),
    /// A proposed block says another view or epoch than its proposal.
    #[error("its block belongs to another view or epoch")]
    BlockMisplaced,
    /// An empty block must carry the notarisation of its parent.
    #[error("an empty block stands on no notarised block")]
    NothingNotarised,
    /// The certificate is not about the parent.
    #[error("its parent is not the block that its certificate is about")]
    ParentUnproven,
    /// The proposer does not say how the views since its parent ended.
    #[error("it does not prove that it may skip views")]
    SkipUnproven,
    /// A learning block must stand on the last final block.
    #[error("its round starts from a block that is not the last final one")]
    ParentNotFinal,
    /// Another round than the one under way.
    #[error("it is about round {got}, this is round {now}")]
    WrongRound {
        /// The round it is about.
        got: u64,
        /// The round under way.
        now: u64,
    },
    /// Another plan than the state gives.
    #[error("it follows plan {got}, the state gives {ours}")]
    WrongPlan {
        /// The plan it follows.
        got: Hash,
        /// The plan of this round.
        ours: Hash,
    },
    /// Every entry needs its author's signature, and nobody else's.
    #[error("{signers} members signed for {entries} entries")]
    Signers {
        /// Inclusions.
        signers: usize,
        /// Entries of the sheet.
        entries: usize,
    },
    /// The plan does not name this member.
    #[error("{0} takes part though the plan does not name it")]
    NotAParticipant(MemberIndex),
    /// Fewer entries than a round may have.
    #[error("it has {entries} entries, a round of this plan needs {needed}")]
    TooFewEntries {
        /// Entries of the sheet.
        entries: usize,
        /// Fewest that this plan allows.
        needed: usize,
    },
    /// The names in the entries are not those of the signers.
    #[error("its entries name others than signed for them")]
    WrongNames,
    /// The lead gave this member a receipt and left its entry out.
    #[error("this member's entry, for which it has a receipt, is missing")]
    LeftOut,
    /// The outcome does not follow from the sheet and the decision.
    #[error("claimed outcome {claimed}, recomputed {recomputed}")]
    WrongOutcome {
        /// What the proposal says.
        claimed: Hash,
        /// What this member computed.
        recomputed: Hash,
    },
    /// Work on the models found it unacceptable.
    #[error("{0}")]
    Work(String),
    /// More entries than members take part, or none where that is not allowed.
    #[error("it lists {listed} entries, {participants} members take part")]
    EntryCount {
        /// Entries listed.
        listed: usize,
        /// Members that the plan names.
        participants: usize,
    },
    /// Entries are strictly ascending by id.
    #[error("its entries are not in strictly ascending order")]
    EntryOrder,
    /// Every model has the size that the plan gives.
    #[error("a model of {got} bytes where the plan has {needed}: wrong names or shapes")]
    ModelSize {
        /// Bytes that it says.
        got: u64,
        /// Bytes of a model of the agreed shape.
        needed: u64,
    },
    /// A model larger than the charter allows.
    #[error("its model has {got} bytes, the charter allows {limit}")]
    ModelTooLarge {
        /// Bytes that it says.
        got: u64,
        /// The charter's limit.
        limit: u64,
    },
    /// A weight where the plan asks for none, or none where it does.
    #[error("it does not carry exactly the fields that the plan asks for")]
    EntryFields,
    /// A name where the charter removes names, or not the sender's where it shows them.
    #[error("it does not say whose it is as the charter wants it")]
    EntryName,
    /// Scores are one finite number for every entry by every entry.
    #[error("its sheet has no finite score for every entry by every entry")]
    SheetShape,
    /// Scores are finite, in order, and at most one for each participant.
    #[error("its scores are not finite numbers in order, at most one for each participant")]
    Scores,
    /// Metrics that are too many, too long or not finite.
    #[error("its metrics are not a few finite numbers with short names")]
    Metrics,
    /// A contribution to a round that is over.
    #[error("its contribution belongs to round {got}, this is {now}")]
    StaleContribution {
        /// The round it belongs to.
        got: u64,
        /// The round under way.
        now: u64,
    },
    /// The lead showed no progress.
    #[error("{lead} led and showed no progress for {:.1} s", silence.as_secs_f64())]
    Silent {
        /// The lead's name.
        lead: String,
        /// How long a lead may be silent.
        silence: Duration,
    },
    /// The lead showed progress but no result.
    #[error("{lead} led for {:.1} s without a result", limit.as_secs_f64())]
    Slow {
        /// The lead's name.
        lead: String,
        /// How long a view may take.
        limit: Duration,
    },
    /// The lead voted against its own view before it proposed anything.
    #[error("{lead} led and gave up")]
    GaveUp {
        /// The lead's name.
        lead: String,
    },
    /// This member leads and could not do a piece of work.
    #[error("{}", could_not(work, error))]
    CouldNot {
        /// What.
        work: &'static str,
        /// Why.
        error: WorkError,
    },
    /// This member leads, and too few members are left for the round.
    #[error("too few members are left: {missing} {reason}")]
    TooFewLeft {
        /// How many fell out.
        missing: usize,
        /// What they failed to do.
        reason: Omission,
    },
    /// This member leads and lacks certificates.
    #[error("this member does not know how every view since the last block ended")]
    ViewsUnknown,
}

/// What a member failed to do in time, so that the lead went on without its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Omission {
    /// It did not score the entries.
    #[error("sent no scores")]
    Scores,
    /// It did not sign for the sheet: it may not have all models yet.
    #[error("did not sign for the sheet")]
    Inclusion,
}

fn could_not(what: &str, error: &WorkError) -> String {
    match error {
        WorkError::Unavailable => format!("a model needed to {what} could not be had"),
        WorkError::Refused(reason) => format!("could not {what}: {reason}"),
    }
}
