//! Rounds of learning: this member's part, the lead's part, and adopting outcomes (R1, R4).
//!
//! [`clear`] has what only rounds in clear need, [`masked`] what only masked rounds need.
//!
//! | file | holds |
//! |---|---|
//! | `round` | the round under way: its plan, and what `own`, `inbox` and the two folders keep of it |
//! | `own` | how far this member's own part is: training, contributing, when others may have its model |
//! | `inbox` | contributions and scores of others, kept in case this member leads |
//! | `contributing` | `Contributing`: training, contributing, what others contribute |
//! | `entries` | the entries that a round may have; `Waiting`, whom it waits for |
//! | `absences` | members that are not waited for |
//! | `judging` | `Judging`: whether to vote for what a block holds |
//! | `lead` | `Leading`: collecting, bundle, sheet, and the draft of a proposal |
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

use crate::charter::Epoch;
use crate::charter::privacy::Circle;
use crate::hash::Hash;
use crate::member::Config;
use crate::time::Time;

use absences::Absences;
use adoption::Adoption;
use completion::Completion;
use judging::JudgingState;
use lead::gathered::Gathered;
use masked::outcomes::Outcomes;
use masked::settling::Settlement;
use round::Round;

/// What rounds of learning keep.
pub(in crate::member) struct Rounds {
    /// Rounds are masked.
    masked: bool,
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
    /// The beginning of an epoch. A strategy may have ended the federation with a round.
    pub(in crate::member) fn new(epoch: &Epoch, ended: Option<u64>, now: Time) -> Self {
        Self {
            masked: epoch.charter.privacy.masked().is_some(),
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

    /// The spans of patience and of D that a view takes at the most.
    pub(in crate::member) fn spans(config: &Config) -> (u32, u32) {
        let phases = config.epoch.roster.faulty() as u32 + 4;
        // Contributions, scores and inclusions may each be waited for until patience is over; in masked
        // rounds contributions, vectors and inclusions, and then up to three later lists.
        match config.masked() {
            Some(_) => (4, phases.max(10)),
            None => (3, phases),
        }
    }
}
