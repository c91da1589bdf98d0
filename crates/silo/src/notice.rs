//! What a silo tells people and measurements.

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
    /// A blob could not be kept or removed.
    Store {
        /// Why, in a sentence.
        reason: String,
    },
    /// The silo stopped; the last notice.
    Stopped(Stopped),
}
