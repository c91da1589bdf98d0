//! Why a message is not accepted, or why a member votes against a view.

use std::time::Duration;

use crate::change::ChangeError;
use crate::hash::Hash;
use crate::message::{Kind, METRIC_NAME, METRICS};
use crate::roster::MemberIndex;
use crate::work::WorkError;

/// Why a message is not accepted, or why this member votes against a view. The text says what was
/// expected and what was found; who sent it and for which round stands in the
/// [`Report`](crate::Report).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A kind that only the lead of a view may send came from another member.
    #[error("only {lead}, the lead of view {view}, may send a {kind:?} in it")]
    NotTheLead {
        /// What was sent.
        kind: Kind,
        /// The view.
        view: u64,
        /// The name of its lead.
        lead: String,
    },
    /// Two signed messages of which an honest member signs at most one.
    #[error("it sent {0}: the first one counts")]
    Contradiction(String),
    /// A proposed block names another view or epoch than its proposal.
    #[error("the proposed block names another view or epoch than the message that carries it")]
    BlockMisplaced,
    /// An amendment, or a proposed change, that breaks a rule.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An empty block without the notarisation of its parent.
    #[error("the proposed empty block comes without the notarisation of its parent")]
    NothingNotarised,
    /// The certificate of the parent is about another block.
    #[error("the certificate in the proposal does not notarise the parent of the block")]
    ParentUnproven,
    /// The parent's view is not an earlier one.
    #[error("the parent of the proposed block is not of an earlier view")]
    SkipUnproven,
    /// The parent of a learning block is not the last final block.
    #[error("the parent of the proposed round is not the last final block")]
    ParentNotFinal,
    /// A proposal of another round than the one under way.
    #[error("it proposes round {got}, round {now} is under way")]
    WrongRound {
        /// The proposed round.
        got: u64,
        /// The round under way.
        now: u64,
    },
    /// Another plan than the one that follows from the state.
    #[error("it follows plan {got}, this round has plan {ours}")]
    WrongPlan {
        /// The plan that it follows.
        got: Hash,
        /// The plan of this round.
        ours: Hash,
    },
    /// Not one signature for each entry.
    #[error(
        "{signers} members signed for a sheet of {entries} entries: there must be one for each"
    )]
    Signers {
        /// Inclusions.
        signers: usize,
        /// Entries of the manifest.
        entries: usize,
    },
    /// A contribution or inclusion of a member that the plan does not name.
    #[error("member {0} takes part and the plan of the round does not name it")]
    NotAParticipant(MemberIndex),
    /// Fewer entries than the round needs.
    #[error("it has {entries} entries, the round needs at least {needed}")]
    TooFewEntries {
        /// Entries of the manifest.
        entries: usize,
        /// Fewest that this plan allows.
        needed: usize,
    },
    /// The names in the entries are not those of the signers.
    #[error("the members that its entries name are not those that signed for them")]
    WrongNames,
    /// The lead gave this member a receipt and proposes a manifest without its entry.
    #[error("this member's entry is missing although the lead gave a receipt for it")]
    LeftOut,
    /// Another outcome than the one that follows from manifest and decision.
    #[error("claimed outcome {claimed}, recomputed {recomputed}")]
    WrongOutcome {
        /// What the proposal says.
        claimed: Hash,
        /// What this member computed.
        recomputed: Hash,
    },
    /// A check of the models or of the decision failed; the text is the check's own.
    #[error("{0}")]
    Work(String),
    /// More entries than participants, or fewer than the round needs.
    #[error(
        "it lists {listed} entries, a round of {participants} participants has {fewest} to {participants}"
    )]
    EntryCount {
        /// Entries listed.
        listed: usize,
        /// Fewest entries of this round.
        fewest: usize,
        /// Members that the plan names.
        participants: usize,
    },
    /// Entries that are not strictly ascending by id.
    #[error("its entries are not in strictly ascending order of their ids")]
    EntryOrder,
    /// A model of another size than the plan's.
    #[error(
        "a model of {got} bytes, models of this plan have {needed}: its tensors have other names or shapes"
    )]
    ModelSize {
        /// Bytes announced.
        got: u64,
        /// Bytes of a model of the agreed shape.
        needed: u64,
    },
    /// A model larger than the parameter set allows.
    #[error("a model of {got} bytes, the charter's blob-limit is {limit}")]
    ModelTooLarge {
        /// Bytes announced.
        got: u64,
        /// The parameter set's limit.
        limit: u64,
    },
    /// A weight where the plan asks for none, or none where it does.
    #[error("an entry has a weight where the plan asks for none, or none where it asks for one")]
    EntryFields,
    /// A contribution, or an entry with a name, that claims more rows than its author declared.
    #[error("it claims {got} training rows, its author may claim {most} by the agreement")]
    TooManyRows {
        /// The claimed rows.
        got: u64,
        /// What its author declared, or the most that anybody may claim.
        most: u64,
    },
    /// Entries without names that claim more rows than their authors can have declared: the nth
    /// largest claim is above the nth largest of what they declared.
    #[error(
        "one of its entries claims {got} training rows, where the members that can have sent it may \
         claim {most} by the agreement"
    )]
    ImpossibleRows {
        /// The claimed rows.
        got: u64,
        /// The most that fits.
        most: u64,
    },
    /// A name where the parameter set removes names, or not the sender's where it shows them.
    #[error(
        "it names a member where the charter removes names, or not its author where names are shown"
    )]
    EntryName,
    /// Not exactly one finite score of every entry by the author of every entry; or scores where
    /// the plan does not cross-evaluate.
    #[error(
        "its scores are not a square of finite numbers with one row and one column for each entry"
    )]
    ManifestShape,
    /// Scores that are not finite, not in ascending order of models, or too many.
    #[error(
        "its scores are not finite numbers in ascending order of models, at most one for each participant"
    )]
    Scores,
    /// Metrics that are too many, named too long or not finite.
    #[error(
        "its metrics are not at most {METRICS} finite numbers with names of at most {METRIC_NAME} bytes"
    )]
    Metrics,
    /// A contribution to a round that is over.
    #[error("it contributes to round {got}, round {now} is under way")]
    StaleContribution {
        /// The round it belongs to.
        got: u64,
        /// The round under way.
        now: u64,
    },
    /// The lead sent no progress for too long.
    #[error("{lead} led and sent no progress for {:.1} s", silence.as_secs_f64())]
    Silent {
        /// The lead's name.
        lead: String,
        /// How long a lead may be silent.
        silence: Duration,
    },
    /// The view took too long although its lead sent progress.
    #[error("{lead} led for {:.1} s, the longest that a view may take", timeout.as_secs_f64())]
    Slow {
        /// The lead's name.
        lead: String,
        /// How long a view may take.
        timeout: Duration,
    },
    /// The lead voted against its own view before it proposed anything.
    #[error("{lead} led and voted against its own view before it proposed a block")]
    GaveUp {
        /// The lead's name.
        lead: String,
    },
    /// This member leads and could not do a piece of work.
    #[error("{}", could_not(work, error))]
    CouldNot {
        /// The work that this member could not do: "decide" or "compute the outcome".
        work: &'static str,
        /// Why the work failed.
        error: WorkError,
    },
    /// This member leads and may not leave out as many members as failed to answer.
    #[error(
        "{missing} member{} {reason}, and without them the round cannot reach its minimum or too many were left \
         out before",
        if *missing == 1 { "" } else { "s" }
    )]
    TooFewLeft {
        /// How many did not answer.
        missing: usize,
        /// What these members did not send.
        reason: Omission,
    },
    /// A message of masked rounds where models are in clear, or the other way round.
    #[error(
        "it belongs to secure-aggregation rounds where the agreement has models in clear, or the other way round"
    )]
    OtherMode,
    /// A list of ready members with too few of them, or without a complete group.
    #[error(
        "its list has {ready} members: {fewest} are needed, and all members of a group of the agreement"
    )]
    ListTooSmall {
        /// Members in the list.
        ready: usize,
        /// Fewest that are needed.
        fewest: usize,
    },
    /// A list with other keys for this member than it has signed.
    #[error("its list has keys for this member that it has not signed in this round")]
    ForeignKeys,
    /// A list that may not follow the ones before it in the view.
    #[error(
        "its list may not follow the one before: a view has four at most, each without some of the members \
         that the one before had"
    )]
    ListFollows,
    /// A manifest with other authors than the sums of its list have.
    #[error("its sheet does not have exactly the authors of the sums of its list")]
    OtherAuthors,
    /// A masked round with other ready members than its list has.
    #[error("the members that it calls ready are not those of its list")]
    OtherReady,
    /// A masked round that starts from another state than the certified outcome.
    #[error("it starts from state {got}, the certified outcome of the round before is {ours}")]
    WrongState {
        /// The state that it names.
        got: Hash,
        /// The certified outcome.
        ours: Hash,
    },
    /// Shares of masks of a member that is not ready in the round, of a wrong size, or unproven.
    #[error(
        "its shares of the masks are not those of a ready member, or their proof does not hold"
    )]
    Unmasking,
    /// This member leads and lacks nullifications of views that its block would skip.
    #[error(
        "this member lacks nullifications of views since the parent of the block that it would propose"
    )]
    ViewsUnknown,
}

/// What a member did not send in time, so that the lead went on without its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Omission {
    /// The scores of the member are missing.
    #[error("sent no scores")]
    Scores,
    /// The masked vector of the member is missing or wrong.
    #[error("sent no masked vector, or a wrong one")]
    Vector,
    /// The member's signature for the manifest is missing; it may not have all models yet.
    #[error("did not sign for the sheet")]
    Inclusion,
}

fn could_not(what: &str, error: &WorkError) -> String {
    match error {
        WorkError::Unavailable => {
            format!("this member leads and could not fetch a model that it needs to {what}")
        }
        WorkError::Refused(reason) => format!("this member leads and could not {what}: {reason}"),
    }
}
