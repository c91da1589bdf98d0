//! Consensus on blocks, in views with rotating leads (R1–R3, R5): proposals, votes, certificates, and
//! catching up. What it has to know of what the blocks hold, a [`payload::BlockPayload`] answers. It names no other
//! side of a member.
//!
//! | file | holds |
//! |---|---|
//! | `judge` | `Placing`: whether the block of a proposal stands where it may (R1) |
//! | `ballots` | own votes and proposals, and the votes of others (R1–R3, R5) |
//! | `voting` | `Voting`: votes of this member, and certificates of all votes |
//! | `chain` | final blocks and later certificates |
//! | `finality` | `Extending`: what follows for the chain from certificates and final blocks (R3) |
//! | `views` | the current view |
//! | `stage`, `leading` | `LeadingView`: how far this member is with leading the view, and progress |
//! | `links` | which members can be reached, and how fast |
//! | `sync` | `Syncing`: catching up with what became final elsewhere |
//! | `participation` | only listening, while this member cannot know what it has signed (R5) |
//! | `own_key` | `OwnKey`: what this member's key has signed, compared with the journal |
//! | `timers` | `Timing`: how long phases and views may take |
//! | `payload` | what consensus asks of the side whose blocks it agrees on |
//! | `outbox` | what leaves this member in a step |

pub(in crate::member) mod ballots;
pub(in crate::member) mod chain;
pub(in crate::member) mod finality;
pub(in crate::member) mod judge;
pub(in crate::member) mod leading;
pub(in crate::member) mod links;
pub(in crate::member) mod outbox;
pub(in crate::member) mod own_key;
pub(in crate::member) mod participation;
pub(in crate::member) mod payload;
pub(in crate::member) mod stage;
pub(in crate::member) mod sync;
pub(in crate::member) mod timers;
pub(in crate::member) mod views;
pub(in crate::member) mod voting;

use std::collections::BTreeSet;

use crate::parameters::Epoch;
use crate::roster::MemberIndex;
use crate::time::Time;

use ballots::Ballots;
use chain::Chain;
use links::Presence;
use participation::{JournalState, ParticipationState};
use stage::Lead;
use sync::Sync;
use views::View;

/// What consensus on blocks keeps.
pub(in crate::member) struct Consensus {
    pub(in crate::member) chain: Chain,
    pub(in crate::member) ballots: Ballots,
    pub(in crate::member) view: View,
    pub(in crate::member) lead: Option<Lead>,
    pub(in crate::member) sync: Sync,
    pub(in crate::member) participation: ParticipationState,
    pub(in crate::member) presence: Presence,
    pub(in crate::member) next_heartbeat: Time,
    /// Members against whom there is evidence.
    pub(in crate::member) accused: BTreeSet<MemberIndex>,
    /// The agreement has changed: this member does nothing more.
    pub(in crate::member) over: bool,
}

impl Consensus {
    /// The beginning of an epoch, with this journal.
    pub(in crate::member) fn new(epoch: &Epoch, past: JournalState, now: Time) -> Self {
        Self {
            chain: Chain::new(epoch),
            ballots: Ballots::default(),
            view: View::new(1, epoch.lead(1), now),
            lead: None,
            sync: Sync::new(past),
            participation: ParticipationState::new(past),
            presence: Presence::new(epoch),
            next_heartbeat: now + epoch.heartbeat(),
            accused: BTreeSet::new(),
            over: false,
        }
    }
}
