//! Notices: what a silo reports to its operator and to measurements.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use methods::{Params, State};
use protocol::privacy::{CorrupterSearch, Voids};
use protocol::{Hash, MemberIndex, Report, Time};

use crate::error::Stopped;
use crate::outcome::VoidSum;

/// Receives the notices of a silo, in order, on the silo's own thread. Must not block.
pub type Feed = Box<dyn FnMut(Time, &Notice)>;

/// One notice. Notices are not sent to other members.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A report of the protocol.
    Protocol(Report),
    /// A training ended.
    Trained {
        /// The round.
        round: u64,
        /// Mean training loss of the last epoch.
        loss: f64,
        /// Training rows.
        samples: u64,
        /// Duration in seconds, by the silo's clock.
        seconds: f64,
        /// What else the learner says of its training, by name.
        metrics: BTreeMap<String, f64>,
    },
    /// A final round was adopted, and everything of it is durable.
    Adopted {
        /// The round.
        round: u64,
        /// Hash of the outcome.
        outcome: Hash,
        /// The adopted state: models by coalition, and what the strategy keeps between rounds.
        state: Arc<State>,
        /// Coalition of every entry. Entries have no names.
        assignment: Arc<[u32]>,
        /// The silo's own coalition.
        coalition: u32,
        /// The model of that coalition, from which the silo trains next.
        model: Params,
        /// The silo's personal state.
        personal: Params,
    },
    /// Numbers of the silo's local model went beyond what a masked vector holds, and were clipped to it.
    Clipped {
        /// The round.
        round: u64,
        /// How many.
        coordinates: u64,
    },
    /// A sum of a secure-aggregation round tells nothing. The models of its authors are not in the outcome.
    VoidSum {
        /// The round.
        round: u64,
        /// Its authors, ascending.
        authors: Vec<MemberIndex>,
        /// The reason.
        why: VoidSum,
    },
    /// What is known of who corrupts sums has changed with the adoption of a round. Sent at the start, too, if something
    /// is known.
    Searched {
        /// The round.
        round: u64,
        /// What the void sums of the epoch have shown.
        voids: Voids,
    },
    /// The transcript of a single masked vector is wrong: a lead checks it before it makes a manifest. The
    /// [`Report::WrongVector`] with the signed vector follows.
    WrongTranscript {
        /// The list that the vector was masked for, as a blob.
        list: Bytes,
        /// The transcript.
        transcript: Bytes,
    },
    /// Messages were lost because the queue to the network was full. The protocol sends them again.
    Lost {
        /// How many.
        messages: u64,
    },
    /// Frames that could not be opened.
    Unopened {
        /// The member that passed them on, not necessarily their author.
        from: MemberIndex,
        /// The reason.
        reason: String,
        /// How many since the last such notice: there is at most one a minute about a member.
        times: u64,
    },
    /// Frames that were dropped unread: over the budget of their neighbour or signer, or of a kind
    /// that no honest member sends.
    Dropped {
        /// The member that passed them on.
        from: MemberIndex,
        /// The reason.
        reason: String,
        /// How many for that reason since the last such notice: there is at most one a minute about
        /// a member and reason.
        times: u64,
    },
    /// A member kept breaking the rules: its frames are ignored for a while.
    Muted {
        /// The member.
        member: MemberIndex,
        /// For how long.
        span: Duration,
    },
    /// A blob that the journal names is missing or damaged. Sent at the start.
    Missing(Missing),
    /// All missing blobs of the last adopted round are here again.
    Recovered {
        /// The round.
        round: u64,
    },
    /// The silo starts without its journal. It only listens, and neither votes nor contributes, until
    /// that is safe (R5).
    Listening,
    /// A blob could not be stored or removed.
    Store {
        /// The reason.
        reason: String,
    },
    /// The silo stopped. The last notice.
    Stopped(Stopped),
}

impl Notice {
    /// Returns what these void sums show after a round of who corrupts them, if that is searched.
    pub(crate) fn searched(round: u64, voids: &Voids) -> Option<Self> {
        let searched = voids.search != CorrupterSearch::Idle;
        let voids = voids.clone();
        searched.then_some(Self::Searched { round, voids })
    }
}

/// A missing blob that the journal names, and what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The last adopted outcome, or a model of it. It is fetched from other members.
    Outcome {
        /// The round adopted.
        round: u64,
        /// The last round whose outcome is complete here; 0 for the agreed start.
        standing: u64,
    },
    /// The silo's personal state, which exists nowhere else.
    Personal {
        /// The round adopted.
        round: u64,
    },
    /// The personal state after a training.
    Trained {
        /// The round of the training.
        round: u64,
    },
    /// The model contributed to the round under way.
    Contribution {
        /// The round.
        round: u64,
    },
}

impl Missing {
    /// The name of what is missing, in JSON.
    pub fn what(&self) -> &'static str {
        match self {
            Self::Outcome { .. } => "outcome",
            Self::Personal { .. } => "personal",
            Self::Trained { .. } => "trained-personal",
            Self::Contribution { .. } => "contribution",
        }
    }

    /// The round it belongs to.
    pub fn round(&self) -> u64 {
        match self {
            Self::Outcome { round, .. }
            | Self::Personal { round }
            | Self::Trained { round }
            | Self::Contribution { round } => *round,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome { round, standing } => {
                let before = match standing {
                    0 => "the agreed start".to_owned(),
                    round => format!("round {round}"),
                };
                write!(
                    f,
                    "blobs of the adopted round {round} are missing or damaged: this silo goes back to \
                     {before}, fetches them from other members, and neither trains nor votes until \
                     they are here"
                )
            }
            Self::Personal { round } => write!(
                f,
                "the personal state of round {round} is missing or damaged, and no other copy \
                 exists: this silo continues from the initial personal state; to keep it, stop now \
                 and restore the folder of blobs from a backup"
            ),
            Self::Trained { round } => write!(
                f,
                "the personal state after the training of round {round} is missing or damaged: \
                 this silo continues from the one before that training"
            ),
            Self::Contribution { round } => write!(
                f,
                "the model contributed to round {round} is missing or damaged: the signed \
                 contribution stands, and the round continues without the model unless another \
                 member has it already"
            ),
        }
    }
}
