//! What a silo tells people and measurements.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use methods::{Params, State};
use protocol::{Hash, MemberIndex, Report, Time};

use crate::handle::Stopped;

/// Where notices go. Called on the silo's own thread, in order; must not block.
pub type Feed = Box<dyn FnMut(Time, &Notice)>;

/// Something worth knowing. Stays with the operator of the silo.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// Of the protocol.
    Protocol(Report),
    /// A training came to its end.
    Trained {
        /// The round.
        round: u64,
        /// Mean training loss of the last epoch.
        loss: f64,
        /// Training rows.
        samples: u64,
        /// What it took, on the clock that the silo lives by.
        seconds: f64,
    },
    /// A final round was adopted; everything of it is durable.
    Adopted {
        /// The round.
        round: u64,
        /// Hash of the outcome.
        outcome: Hash,
        /// Everything that was adopted: models by coalition, what the strategy remembers.
        state: Arc<State>,
        /// Coalition of every entry; whose entry is whose, nobody knows.
        assignment: Arc<[u32]>,
        /// The silo's own coalition.
        coalition: u32,
        /// Its model, from which the silo goes on.
        model: Params,
        /// What is personal to the silo.
        personal: Params,
    },
    /// That many messages did not fit into the way out. The protocol says them again.
    Lost {
        /// Messages.
        messages: u64,
    },
    /// Bytes that were not let in.
    Unopened {
        /// Who passed them on; not necessarily who made them.
        from: MemberIndex,
        /// Why, in a sentence.
        reason: String,
        /// How often something of that member was not let in since the last such notice: there is
        /// at most one a minute about a member.
        times: u64,
    },
    /// Messages that were dropped unread, because their neighbour or signer said more than a member
    /// has to say, or what no member says.
    Dropped {
        /// Who passed them on.
        from: MemberIndex,
        /// Why, in a sentence.
        reason: String,
        /// How many for that reason since the last such notice: there is at most one a minute about
        /// a member and reason.
        times: u64,
    },
    /// A member went on against the rules: nothing is heard from it for a while.
    Muted {
        /// Which.
        member: MemberIndex,
        /// How long.
        span: Duration,
    },
    /// Something that the journal names is gone or damaged. Said when the silo comes to life.
    Gone(Gone),
    /// Everything of the last adopted round is here again after it was gone.
    Whole {
        /// The round.
        round: u64,
    },
    /// The silo begins without its journal: it listens, and neither votes nor contributes, until it
    /// is safe (R5).
    Listening,
    /// A blob could not be kept or removed.
    Store {
        /// Why, in a sentence.
        reason: String,
    },
    /// The silo stopped; the last notice.
    Stopped(Stopped),
}

/// What is gone of what a journal names, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// The outcome that was adopted last, or a model of it: fetched from the others.
    Outcome {
        /// The round adopted.
        round: u64,
        /// The last round whose outcome is whole; 0 for the agreed start.
        standing: u64,
    },
    /// The silo's personal state, which exists nowhere else.
    Personal {
        /// The round adopted.
        round: u64,
    },
    /// The personal state that a training ended with.
    Trained {
        /// The round of the training.
        round: u64,
    },
    /// The model that was contributed to the round under way.
    Contribution {
        /// The round.
        round: u64,
    },
}

impl Gone {
    /// Names it for machines.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Outcome { .. } => "outcome",
            Self::Personal { .. } => "personal",
            Self::Trained { .. } => "trained-personal",
            Self::Contribution { .. } => "contribution",
        }
    }

    /// The round that it belongs to.
    pub fn round(&self) -> u64 {
        match self {
            Self::Outcome { round, .. }
            | Self::Personal { round }
            | Self::Trained { round }
            | Self::Contribution { round } => *round,
        }
    }
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome { round, standing } => {
                let before = match standing {
                    0 => "the agreed start".to_owned(),
                    round => format!("round {round}"),
                };
                write!(
                    f,
                    "blobs of round {round}, adopted before, are gone or damaged: this silo stands \
                     on {before}, fetches them from the others, and neither trains nor votes for a \
                     round until they are here"
                )
            }
            Self::Personal { round } => write!(
                f,
                "the personal state of round {round} is gone or damaged and exists nowhere else: \
                 this silo goes on from the initial personal state; to keep it, stop now and \
                 restore the folder of blobs from a backup"
            ),
            Self::Trained { round } => write!(
                f,
                "the personal state after the training of round {round} is gone or damaged: this \
                 silo goes on from the one before that training"
            ),
            Self::Contribution { round } => write!(
                f,
                "the model contributed to round {round} is gone or damaged: what was signed stands, \
                 and the round goes on without the model where nobody else has it yet"
            ),
        }
    }
}
