//! Rounds of learning: this member's part, the lead's part, and adopting outcomes (R1, R4).
//!
//! [`clear`] has what only rounds in clear need, [`masked`] what only masked rounds need. Each is a [`RoundKind`];
//! what is the same for both stands here.
//!
//! | file | holds |
//! |---|---|
//! | `round` | the round under way: its plan, and what `own`, `inbox` and the two folders keep of it |
//! | `own` | how far this member's own part is: training, contributing, when others may have its model |
//! | `inbox` | contributions and scores of others, kept in case this member leads |
//! | `contributing` | `Contributing`: training, contributing, what others contribute |
//! | `entries` | the entries that a round may have; `EntriesAwaited`, whom it waits for |
//! | `absences` | members that are not waited for |
//! | `judging` | `Judging`: whether to vote for what a block holds |
//! | `lead` | `Leading`: collecting contributions, and the stages after them |
//! | `adoption`, `completion` | how far outcomes are adopted (R4), and who has adopted the last round |
//! | `finishing` | `Finishing`: what follows from final blocks and certified outcomes |
//! | `payload` | what consensus asks of the rounds |
//! | `adopting` | `Adopting`: plans and outcomes, and the end after the last round |

pub(in crate::member) mod absences;
pub(in crate::member) mod adopting;
pub(in crate::member) mod adoption;
pub(in crate::member) mod clear;
pub(in crate::member) mod completion;
pub(in crate::member) mod contributing;
pub(in crate::member) mod entries;
pub(in crate::member) mod finishing;
pub(in crate::member) mod inbox;
pub(in crate::member) mod judging;
pub(in crate::member) mod lead;
pub(in crate::member) mod masked;
pub(in crate::member) mod own;
pub(in crate::member) mod payload;
pub(in crate::member) mod round;

use crate::hash::Hash;
use crate::member::Member;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::judge::{Opinion, Ruling};
use crate::member::consensus::stage::BlockDraft;
use crate::message::{Body, Content, Message};
use crate::parameters::privacy::Circle;
use crate::parameters::{Epoch, ProtocolParameters};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::Request;

use absences::Absences;
use adoption::Adoption;
use clear::ClearRounds;
use completion::Completion;
use judging::{Judging, JudgingState};
use lead::collect::Admission;
use lead::gathered::Gathered;
use lead::{LeadTiming, Leading};
use masked::MaskedRounds;
use masked::outcomes::Outcomes;
use masked::settling::Settlement;
use round::Round;

/// What rounds of learning keep.
pub(in crate::member) struct Rounds {
    pub(in crate::member) kind: &'static dyn RoundKind,
    pub(in crate::member) round: Round,
    /// This member's entry, once the lead of the view has given a receipt for it.
    pub(in crate::member) receipt: Option<Hash>,
    /// How far judging the proposal of the view is.
    pub(in crate::member) judging: JudgingState,
    pub(in crate::member) absences: Absences,
    pub(in crate::member) adoption: Adoption,
    pub(in crate::member) completion: Completion,
    /// The only sum that this member ever answers, once it has answered one (M3).
    pub(in crate::member) circle: Option<Circle>,
    /// What this member has gathered for a block, while it leads a view.
    pub(in crate::member) gathered: Gathered,
    pub(in crate::member) settlement: Settlement,
    pub(in crate::member) outcomes: Outcomes,
}

impl Rounds {
    /// The spans of patience and of D that a view takes at the most.
    pub(in crate::member) fn spans(&self, epoch: &Epoch) -> (u32, u32) {
        self.kind.spans(epoch.roster.faulty() as u32 + 4)
    }

    /// The beginning of an epoch. A strategy may have ended the federation with a round.
    pub(in crate::member) fn new(epoch: &Epoch, ended: Option<u64>, now: Time) -> Self {
        Self {
            kind: of(&epoch.protocol),
            round: Round::new(epoch.began.round + 1, now),
            receipt: None,
            judging: JudgingState::default(),
            absences: Absences::default(),
            adoption: Adoption::default(),
            completion: Completion {
                ended,
                ..Completion::default()
            },
            circle: None,
            gathered: Gathered::default(),
            settlement: Settlement::default(),
            outcomes: Outcomes::default(),
        }
    }
}

/// What one kind of round does in its own way. Everything else is the same for all kinds.
pub(in crate::member) trait RoundKind: Sync {
    /// The work with which a member's part of a round begins.
    fn work(&self, round: u64) -> Request;

    /// Whether members contribute to a round with this body.
    fn takes(&self, body: &Body) -> bool;

    /// What a lead needs to know of a contribution.
    fn admission(&self, leading: &Leading<'_>, message: &Message) -> Option<Admission>;

    /// Whether a lead may close the set with these members, ascending.
    fn may_close(&self, leading: &mut Leading<'_>, ready: &[MemberIndex]) -> bool;

    /// Closes the set with these members, ascending.
    fn close(&self, leading: &mut Leading<'_>, ready: &[MemberIndex]);

    /// Goes on as lead once the set is closed. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    fn go_on(&self, leading: &mut Leading<'_>) -> Result<Option<BlockDraft>, Refusal>;

    /// What this lead sent once the set was closed, and the members that have not answered it.
    fn unanswered(&self, leading: &Leading<'_>) -> Option<(Body, Vec<MemberIndex>)>;

    /// When the spans end that a lead waits for once the set is closed.
    fn deadlines(&self, timing: &LeadTiming<'_>) -> Vec<Time>;

    /// What a block with this content rests on, for members that may not have it.
    fn rests_on(&self, leading: &Leading<'_>, content: &Content) -> Vec<Body>;

    /// Gives the view's lead what is possible or due now, after the contribution.
    fn answer(&self, member: &mut Member);

    /// Why a block with this content is refused wherever it stands.
    fn objection(&self, content: &Content) -> Option<Refusal>;

    /// Judges the block of a round whose place is right.
    ///
    /// # Errors
    /// What R1 demands instead of a vote for it.
    fn judge(&self, judging: &mut Judging<'_>) -> Result<Ruling, Opinion>;

    /// The spans of patience and of D that a view takes at the most, where a round has these phases.
    fn spans(&self, phases: u32) -> (u32, u32);

    /// The view of the last final block after which a member may take part again that has forgotten what it signed.
    fn renewed_in(&self, chain: &Chain) -> u64;
}

/// The kind of the rounds of a parameter set.
fn of(protocol: &ProtocolParameters) -> &'static dyn RoundKind {
    match protocol.privacy.masked() {
        Some(_) => &MaskedRounds,
        None => &ClearRounds,
    }
}
