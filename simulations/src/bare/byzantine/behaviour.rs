//! The list of all ways to misbehave, and how a faulty member gets some of them.

use crate::random::Random;

use super::accusing::{Confess, FalseEvidence};
use super::blobs::Withhold;
use super::certificates::{ForgedProofs, Hoard};
use super::entries::{DoubleContribution, ForgedRow, IgnoredReceipt, Stuffed, Uninvited, Unsigned};
use super::flooding::{Flood, StuffAhead, StuffSheets};
use super::headers::{Misheaded, WrongKey};
use super::leading::{BadDecision, BadOutcome, DoubleProposal, Partial, Silent};
use super::proposing::{Hasty, Impostor, Stale, WrongInclusions, WrongParent};
use super::syncing::{Forge, Forgery, Replay, Unasked};
use super::votes::DoubleVote;
use super::{Lie, Who};

/// One way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Behaviour {
    /// Says nothing while it leads.
    Silent,
    /// Says that it makes progress while it leads, and nothing else.
    Stalling,
    /// As a lead it speaks to some members only, others in every view.
    Partial,
    /// Votes for everything at once.
    DoubleVote,
    /// Proposes one thing to some and another to the others, or to whoever voted for the one; both
    /// are good.
    DoubleProposal,
    /// Contributes twice.
    DoubleContribution,
    /// Writes scores of its own into another's row.
    ForgedRow,
    /// Gives a receipt and leaves the entry out.
    IgnoredReceipt,
    /// Decides what no check accepts.
    BadDecision,
    /// Claims an outcome that nobody computes.
    BadOutcome,
    /// Puts an entry of its own in another's place.
    Stuffed,
    /// Contributes, but sends no scores, or does not sign for the sheet.
    Unsigned,
    /// Proposes to go on from long ago.
    Stale,
    /// Proposes an empty block at once, and a good round in the same view.
    Hasty,
    /// Proposes a good round on a block that is not the last final one.
    WrongParent,
    /// Proposes with inclusions that are doubled, in another order, or another member's.
    WrongInclusions,
    /// Says in views that others lead what only a lead may say.
    Impostor,
    /// Takes part in rounds whose plan does not name it.
    Uninvited,
    /// Signs with a key of its own making.
    WrongKey,
    /// Signs some kind of message, or every kind, under a round, a view or both that it does not
    /// belong to, in place of the right message or beside it.
    Misheaded,
    /// Gives its own model to nobody, or to some members only, for a time or for good.
    WithholdOwn,
    /// Gives no blob at all, or none to some members, for a time or for good: as a lead it has
    /// blobs that nobody else has.
    WithholdAll,
    /// Answers with certificates whose votes are another member's, a stranger's or invented.
    SyncForgedVotes,
    /// Answers with a proof that is not the last block's.
    SyncWrongProof,
    /// Answers with blocks that do not follow on one another.
    SyncBrokenLinks,
    /// Answers without the first or the last blocks.
    SyncCut,
    /// Answers that it knows of nothing.
    SyncNothing,
    /// Claims that a view is certified that nobody will ever reach.
    SyncHugeClaim,
    /// Claims that hardly any view is certified.
    SyncSmallClaim,
    /// Reminds members that catch up of something old, of something that another signed, or of
    /// nothing, in place of the last that they signed.
    SyncReminder,
    /// Repeats what it heard others say, old answers before all, to anybody.
    Replay,
    /// Answers who did not ask.
    SyncUnasked,
    /// Does not pass certificates on, or only to some.
    Hoard,
    /// Changes the votes of certificates that it passes on or proposes with.
    ForgedProofs,
    /// As a lead it sends far more bundles and sheets than a view can have.
    StuffSheets,
    /// Sends messages of views that are yet to come, and of views that it does not lead.
    StuffAhead,
    /// Votes in views far ahead, for blocks that do not exist.
    FloodVotes,
    /// Contributes to rounds that are yet to come, again and again.
    FloodContributions,
    /// Scores and signs for entries and sheets that do not exist.
    FloodScores,
    /// Says that it has all rounds, and asks for blocks, without end.
    FloodComplete,
    /// Proves its own guilt again and again, with ever new messages.
    Confess,
    /// Accuses honest members of what they did not do.
    FalseEvidence,
}

/// What the faulty members of a run may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// There are no faulty members.
    None,
    /// Anything.
    Any,
    /// One to three of these.
    Only(&'static [Behaviour]),
}

impl Lies {
    /// One to three of what is allowed.
    pub(in crate::bare) fn some(self, random: &mut Random) -> Vec<Behaviour> {
        let all = match self {
            Self::None => &[],
            Self::Any => &Behaviour::ALL[..],
            Self::Only(some) => some,
        };
        let mut drawn: Vec<_> = (0..1 + random.below(3))
            .filter(|_| !all.is_empty())
            .map(|_| all[random.below(all.len())])
            .collect();
        drawn.sort();
        drawn.dedup();
        drawn
    }
}

impl Behaviour {
    /// All of them.
    pub const ALL: [Self; 42] = [
        Self::Silent,
        Self::Stalling,
        Self::Partial,
        Self::DoubleVote,
        Self::DoubleProposal,
        Self::DoubleContribution,
        Self::ForgedRow,
        Self::IgnoredReceipt,
        Self::BadDecision,
        Self::BadOutcome,
        Self::Stuffed,
        Self::Unsigned,
        Self::Stale,
        Self::Hasty,
        Self::WrongParent,
        Self::WrongInclusions,
        Self::Impostor,
        Self::Uninvited,
        Self::WrongKey,
        Self::Misheaded,
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
        Self::SyncUnasked,
        Self::Hoard,
        Self::ForgedProofs,
        Self::StuffSheets,
        Self::StuffAhead,
        Self::FloodVotes,
        Self::FloodContributions,
        Self::FloodScores,
        Self::FloodComplete,
        Self::Confess,
        Self::FalseEvidence,
    ];

    /// The behaviour at work; what it leaves open is drawn.
    pub(super) fn lie(self, who: &mut Who) -> Box<dyn Lie> {
        match self {
            Self::Silent => Box::new(Silent { stalling: false }),
            Self::Stalling => Box::new(Silent { stalling: true }),
            Self::Partial => Box::new(Partial::new(who)),
            Self::DoubleVote => Box::<DoubleVote>::default(),
            Self::DoubleProposal => Box::new(DoubleProposal::new(who)),
            Self::DoubleContribution => Box::new(DoubleContribution),
            Self::ForgedRow => Box::new(ForgedRow),
            Self::IgnoredReceipt => Box::new(IgnoredReceipt),
            Self::BadDecision => Box::new(BadDecision),
            Self::BadOutcome => Box::new(BadOutcome),
            Self::Stuffed => Box::<Stuffed>::default(),
            Self::Unsigned => Box::new(Unsigned::new(who)),
            Self::Stale => Box::<Stale>::default(),
            Self::Hasty => Box::<Hasty>::default(),
            Self::WrongParent => Box::<WrongParent>::default(),
            Self::WrongInclusions => Box::new(WrongInclusions),
            Self::Impostor => Box::new(Impostor),
            Self::Uninvited => Box::new(Uninvited),
            Self::WrongKey => Box::new(WrongKey),
            Self::Misheaded => Box::new(Misheaded::new(who)),
            Self::WithholdOwn => Box::new(Withhold::new(who, true)),
            Self::WithholdAll => Box::new(Withhold::new(who, false)),
            Self::SyncForgedVotes => Box::new(Forge::new(Forgery::Votes)),
            Self::SyncWrongProof => Box::new(Forge::new(Forgery::Proof)),
            Self::SyncBrokenLinks => Box::new(Forge::new(Forgery::Links)),
            Self::SyncCut => Box::new(Forge::new(Forgery::Cut)),
            Self::SyncNothing => Box::new(Forge::new(Forgery::Nothing)),
            Self::SyncHugeClaim => Box::new(Forge::new(Forgery::Huge)),
            Self::SyncSmallClaim => Box::new(Forge::new(Forgery::Small)),
            Self::SyncReminder => Box::new(Forge::new(Forgery::Reminder)),
            Self::Replay => Box::<Replay>::default(),
            Self::SyncUnasked => Box::<Unasked>::default(),
            Self::Hoard => Box::new(Hoard::new(who)),
            Self::ForgedProofs => Box::new(ForgedProofs),
            Self::StuffSheets => Box::<StuffSheets>::default(),
            Self::StuffAhead => Box::new(StuffAhead),
            Self::FloodVotes => Box::new(Flood::Votes),
            Self::FloodContributions => Box::new(Flood::Contributions),
            Self::FloodScores => Box::new(Flood::Scores),
            Self::FloodComplete => Box::new(Flood::Complete),
            Self::Confess => Box::new(Confess),
            Self::FalseEvidence => Box::<FalseEvidence>::default(),
        }
    }
}
