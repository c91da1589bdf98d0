//! All Byzantine behaviours.

use serde::Deserialize;

use super::accusing::{FalseEvidence, SelfEvidence};
use super::blobs::Withhold;
use super::certificates::{ForgedProofs, WithholdCertificates};
use super::entries::{
    DoubleContribution, ForgedEntry, ForgedRow, IgnoredReceipt, MissingSignature,
    RepeatedContribution, Uninvited,
};
use super::flooding::{Flood, FloodAhead, FloodManifests};
use super::headers::{WrongHeader, WrongKey};
use super::leading::{BadDecision, BadOutcome, DoubleProposal, PartialLead, SilentLead};
use super::masking::{FalseLists, FalseOpening, FalseVector, HiddenVector, WrongStreams};
use super::models::{Corrupt, CorruptedModel};
use super::proposing::{EarlyEmptyBlock, Impostor, StaleParent, WrongInclusions, WrongParent};
use super::syncing::{ForgedAnswers, Forgery, ReplayAttack, UnrequestedAnswers};
use super::votes::DoubleVote;
use super::{Attacker, Deviation};

/// One Byzantine behaviour, for both simulators.
///
/// A scenario keeps messages from a member, and changes what it sends and serves. Behaviours that need
/// more (messages that it never got, decisions of its own, or what it does from time to time) are those of
/// the [bare simulator](crate) alone, and cannot be named in a scenario. The bare simulator has no models, so that those of models, labels and
/// losses do nothing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// Contributes a model with a value that is not a number (NaN).
    Nan,
    /// Contributes a model whose tensors have other shapes.
    WrongShape,
    /// Contributes its update reversed and three times as long. This and the following are no faults
    /// that a check can find: the member follows the protocol and lies about what it learned.
    SignFlip,
    /// Contributes its update with normal noise, three times as long as the update.
    Noise,
    /// Trains on its rows with their labels shuffled.
    ShuffledLabels,
    /// Trains as it should, and says that every model loses ten times as much on its rows as it does.
    FalseLosses,
    /// Claims that its model was trained on 9·10¹⁵ rows, which are its weight where models are averaged
    /// by rows.
    FalseRows,
    /// All members of this behaviour contribute the same model: the update of the first of them,
    /// reversed and three times as long.
    Collusion,
    /// Sends nothing while it leads.
    SilentLead,
    /// Sends only Progress messages while it leads.
    StallingLead,
    /// As a lead, sends its messages to some members only, drawn for every view.
    PartialLead,
    /// Sends conflicting votes: two Notarize, Finalize and Nullify of one view.
    DoubleVote,
    /// Sends two valid proposals: each to half of the members, or the second to members that voted for
    /// the first.
    DoubleProposal,
    /// Sends two different contributions in a round.
    DoubleContribution,
    /// Sends its first contribution again in place of every later one.
    RepeatedContribution,
    /// As a lead, changes the scores of another member's row.
    #[serde(skip)]
    ForgedRow,
    /// As a lead, gives a Receipt and leaves the entry out.
    IgnoredReceipt,
    /// As a lead, makes a decision that no check accepts.
    BadDecision,
    /// As a lead, claims an outcome that does not follow from the manifest.
    BadOutcome,
    /// As a lead, groups silos worse than it could, with an objective and an outcome that are true of
    /// the worse grouping. For strategies that group silos by the coalition program, as `cs-rcfl` does.
    WorseCoalition,
    /// As a lead, replaces another member's entry by a synthetic one.
    #[serde(skip)]
    ForgedEntry,
    /// Contributes, but sends no Scores, or no Inclusion.
    MissingSignature,
    /// Proposes an empty block on an old notarised block.
    StaleParent,
    /// Proposes an empty block at once and a valid learning block in the same view.
    #[serde(skip)]
    EarlyEmptyBlock,
    /// Proposes a valid round on a block that is not the last final one.
    WrongParent,
    /// Proposes with inclusions that are duplicated, reordered, or assigned to another member.
    WrongInclusions,
    /// Sends the messages of a lead in views that others lead.
    Impostor,
    /// Takes part in rounds whose plan does not name it.
    #[serde(skip)]
    Uninvited,
    /// Signs three of ten messages, drawn, with a key that is not in the roster.
    WrongKey,
    /// Signs messages of one kind, or of every kind, with a wrong round, view or both, instead of
    /// the right message or in addition.
    WrongHeader,
    /// Withholds its local models from all or some members, for a time or for good.
    WithholdOwn,
    /// Withholds all blobs from all or some members, for a time or for good. As a lead it holds
    /// blobs that no other member has.
    WithholdAll,
    /// Answers with certificates whose votes are another member's, of no member, or synthetic.
    SyncForgedVotes,
    /// Answers with a proof that does not belong to the last block.
    SyncWrongProof,
    /// Answers with blocks that do not form a chain.
    SyncBrokenLinks,
    /// Answers without the first or the last block.
    SyncCut,
    /// Answers that it knows no final block.
    SyncNothing,
    /// Claims a certificate of a view that will never be reached.
    SyncHugeClaim,
    /// Claims that no view is certified yet.
    SyncSmallClaim,
    /// Reminds members that catch up of something old, of another member's message, or of nothing,
    /// instead of the last message that they signed.
    SyncReminder,
    /// Replays messages that it received, above all old answers, to any member.
    #[serde(skip)]
    Replay,
    /// Sends answers that were not requested.
    #[serde(skip)]
    SyncUnrequested,
    /// Does not forward certificates, or only to some members.
    WithholdCertificates,
    /// Changes the votes in certificates that it forwards or proposes with.
    ForgedProofs,
    /// As a lead, sends far more contribution lists and manifests than a view may have.
    #[serde(skip)]
    FloodManifests,
    /// Sends messages of future views, and of views that it does not lead.
    #[serde(skip)]
    FloodAhead,
    /// Votes in views far ahead, for blocks that do not exist.
    #[serde(skip)]
    FloodVotes,
    /// Contributes to future rounds, repeatedly.
    FloodContributions,
    /// Sends Scores and Inclusions for entries and manifests that do not exist.
    #[serde(skip)]
    FloodScores,
    /// Floods with Complete and SyncRequest.
    #[serde(skip)]
    FloodComplete,
    /// Floods with true evidence against itself, ever new.
    #[serde(skip)]
    SelfEvidence,
    /// Sends false evidence against honest members.
    #[serde(skip)]
    FalseEvidence,
    /// Floods with amendments.
    #[serde(skip)]
    FloodAmendments,
    /// Floods with approvals and withdrawals of amendments that nobody knows.
    #[serde(skip)]
    FloodApprovals,
    /// Floods with words that others are lost.
    #[serde(skip)]
    FloodStandings,
    /// Floods with confirmations of standings that nobody knows.
    #[serde(skip)]
    FloodConfirmations,
    /// As the lead of a secure-aggregation round, sends lists of which none follows another.
    #[serde(skip)]
    ManyLists,
    /// As the lead of a secure-aggregation round, sends another list to each member.
    #[serde(skip)]
    ListToEach,
    /// As the lead of a secure-aggregation round, puts keys of its own into the list in place of another member's.
    #[serde(skip)]
    ForeignKeys,
    /// As the lead of a secure-aggregation round, acts as if it had not received a member's vector.
    #[serde(skip)]
    HiddenVector,
    /// Sends a masked vector whose transcript does not fit.
    #[serde(skip)]
    WrongTranscript,
    /// Sends two masked vectors for one list.
    #[serde(skip)]
    TwoVectors,
    /// Adds wrong streams to its vector, so that the sum is void.
    #[serde(skip)]
    WrongStreams,
    /// Does that in every second round, so that no two void sums follow each other.
    #[serde(skip)]
    WrongStreamsByTurns,
    /// Gives no shares of the masks of a final round away.
    #[serde(skip)]
    NoShares,
    /// Gives false shares of the masks of a final round away.
    #[serde(skip)]
    FalseShares,
    /// Votes for an outcome of a secure-aggregation round that it synthetic.
    #[serde(skip)]
    FalseOutcome,
    /// Votes for two outcomes of a secure-aggregation round.
    #[serde(skip)]
    TwoOutcomes,
}

/// The member sends and receives as it should: it lies about what it learns, or decides worse than it could.
struct ByTheProtocol;

impl Deviation for ByTheProtocol {}

impl Behaviour {
    /// The behaviours that the bare simulator draws from. Their number and order decide what a seed
    /// stands for.
    pub const DRAWN: [Self; 42] = [
        Self::SilentLead,
        Self::StallingLead,
        Self::PartialLead,
        Self::DoubleVote,
        Self::DoubleProposal,
        Self::DoubleContribution,
        Self::ForgedRow,
        Self::IgnoredReceipt,
        Self::BadDecision,
        Self::BadOutcome,
        Self::ForgedEntry,
        Self::MissingSignature,
        Self::StaleParent,
        Self::EarlyEmptyBlock,
        Self::WrongParent,
        Self::WrongInclusions,
        Self::Impostor,
        Self::Uninvited,
        Self::WrongKey,
        Self::WrongHeader,
        Self::WithholdOwn,
        Self::WithholdAll,
        Self::SyncForgedVotes,
        Self::SyncWrongProof,
        Self::SyncBrokenLinks,
        Self::SyncCut,
        Self::SyncNothing,
        Self::SyncHugeClaim,
        Self::SyncSmallClaim,
        Self::SyncReminder,
        Self::Replay,
        Self::SyncUnrequested,
        Self::WithholdCertificates,
        Self::ForgedProofs,
        Self::FloodManifests,
        Self::FloodAhead,
        Self::FloodVotes,
        Self::FloodContributions,
        Self::FloodScores,
        Self::FloodComplete,
        Self::SelfEvidence,
        Self::FalseEvidence,
    ];

    /// Behaviours of the bare simulator that are not drawn: floods of what is said about changes of the
    /// agreement and about going on without others.
    pub const OF_CHANGES: [Self; 4] = [
        Self::FloodAmendments,
        Self::FloodApprovals,
        Self::FloodStandings,
        Self::FloodConfirmations,
    ];

    /// Behaviours of the bare simulator in secure-aggregation rounds.
    pub const OF_MASKS: [Self; 11] = [
        Self::ManyLists,
        Self::ListToEach,
        Self::ForeignKeys,
        Self::HiddenVector,
        Self::WrongTranscript,
        Self::TwoVectors,
        Self::WrongStreams,
        Self::NoShares,
        Self::FalseShares,
        Self::FalseOutcome,
        Self::TwoOutcomes,
    ];

    /// Returns whether the behaviour is of what a member learns, not of what it sends: no check can find it.
    pub fn is_of_learning(self) -> bool {
        matches!(
            self,
            Self::SignFlip
                | Self::Noise
                | Self::ShuffledLabels
                | Self::FalseLosses
                | Self::FalseRows
                | Self::Collusion
        )
    }

    /// The implementation of the behaviour; its free parameters are drawn.
    pub(super) fn deviation(self, attacker: &mut Attacker) -> Box<dyn Deviation> {
        match self {
            Self::Nan => Box::new(CorruptedModel::new(Corrupt::Nan)),
            Self::WrongShape => Box::new(CorruptedModel::new(Corrupt::Shape)),
            Self::SignFlip
            | Self::Noise
            | Self::ShuffledLabels
            | Self::FalseLosses
            | Self::FalseRows
            | Self::Collusion
            | Self::WorseCoalition => Box::new(ByTheProtocol),
            Self::SilentLead => Box::new(SilentLead { stalling: false }),
            Self::StallingLead => Box::new(SilentLead { stalling: true }),
            Self::PartialLead => Box::new(PartialLead::new(attacker)),
            Self::DoubleVote => Box::<DoubleVote>::default(),
            Self::DoubleProposal => Box::new(DoubleProposal::new(attacker)),
            Self::DoubleContribution => Box::new(DoubleContribution),
            Self::RepeatedContribution => Box::<RepeatedContribution>::default(),
            Self::ForgedRow => Box::new(ForgedRow),
            Self::IgnoredReceipt => Box::new(IgnoredReceipt),
            Self::BadDecision => Box::new(BadDecision),
            Self::BadOutcome => Box::<BadOutcome>::default(),
            Self::ForgedEntry => Box::<ForgedEntry>::default(),
            Self::MissingSignature => Box::new(MissingSignature::new(attacker)),
            Self::StaleParent => Box::<StaleParent>::default(),
            Self::EarlyEmptyBlock => Box::<EarlyEmptyBlock>::default(),
            Self::WrongParent => Box::<WrongParent>::default(),
            Self::WrongInclusions => Box::new(WrongInclusions),
            Self::Impostor => Box::new(Impostor),
            Self::Uninvited => Box::new(Uninvited),
            Self::WrongKey => Box::new(WrongKey),
            Self::WrongHeader => Box::new(WrongHeader::new(attacker)),
            Self::WithholdOwn => Box::new(Withhold::new(attacker, true)),
            Self::WithholdAll => Box::new(Withhold::new(attacker, false)),
            Self::SyncForgedVotes => Box::new(ForgedAnswers::new(Forgery::Votes)),
            Self::SyncWrongProof => Box::new(ForgedAnswers::new(Forgery::Proof)),
            Self::SyncBrokenLinks => Box::new(ForgedAnswers::new(Forgery::Links)),
            Self::SyncCut => Box::new(ForgedAnswers::new(Forgery::Cut)),
            Self::SyncNothing => Box::new(ForgedAnswers::new(Forgery::Nothing)),
            Self::SyncHugeClaim => Box::new(ForgedAnswers::new(Forgery::Huge)),
            Self::SyncSmallClaim => Box::new(ForgedAnswers::new(Forgery::Small)),
            Self::SyncReminder => Box::new(ForgedAnswers::new(Forgery::Reminder)),
            Self::Replay => Box::<ReplayAttack>::default(),
            Self::SyncUnrequested => Box::<UnrequestedAnswers>::default(),
            Self::WithholdCertificates => Box::new(WithholdCertificates::new(attacker)),
            Self::ForgedProofs => Box::new(ForgedProofs),
            Self::FloodManifests => Box::<FloodManifests>::default(),
            Self::FloodAhead => Box::new(FloodAhead),
            Self::FloodVotes => Box::new(Flood::Votes),
            Self::FloodContributions => Box::new(Flood::Contributions),
            Self::FloodScores => Box::new(Flood::MemberScores),
            Self::FloodComplete => Box::new(Flood::Complete),
            Self::FloodAmendments => Box::new(Flood::Amendments),
            Self::FloodApprovals => Box::new(Flood::Approvals),
            Self::FloodStandings => Box::new(Flood::Standings),
            Self::FloodConfirmations => Box::new(Flood::Confirmations),
            Self::SelfEvidence => Box::new(SelfEvidence),
            Self::FalseEvidence => Box::<FalseEvidence>::default(),
            Self::ManyLists => Box::new(FalseLists::Many),
            Self::ListToEach => Box::new(FalseLists::ToEach),
            Self::ForeignKeys => Box::new(FalseLists::ForeignKeys),
            Self::HiddenVector => Box::new(HiddenVector),
            Self::WrongTranscript => Box::new(FalseVector::transcript()),
            Self::TwoVectors => Box::new(FalseVector::second()),
            Self::WrongStreams => Box::new(WrongStreams { every: 1 }),
            Self::WrongStreamsByTurns => Box::new(WrongStreams { every: 2 }),
            Self::NoShares => Box::new(FalseOpening::NoShares),
            Self::FalseShares => Box::new(FalseOpening::FalseShares),
            Self::FalseOutcome => Box::new(FalseOpening::FalseOutcome),
            Self::TwoOutcomes => Box::new(FalseOpening::TwoOutcomes),
        }
    }
}
