//! When a member stops: at which moment of a round, and after which part of a step. Both simulators
//! use these words; not each of them plays all.

use protocol::message::{Kind, Phase};
use serde::Deserialize;

/// A moment of a round at which a member may stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The member leads and enters this phase.
    Phase(Phase),
    /// The member sends a message of this kind. With a Contribution its training is done; with a
    /// Contribution list, a Manifest or a Proposal it leads. In the [bare simulator](crate) alone: a scenario
    /// names what the silos report, and they report no messages.
    Sends(Kind),
    /// The member leads and has decided. In the bare simulator alone, as [`Sends`](Self::Sends).
    Decides,
    /// The member learns that a block is notarised; in a scenario, that its own block is.
    Notarised,
    /// The member learns that a round is final. In the bare simulator alone, as [`Sends`](Self::Sends).
    Final,
}

impl Moment {
    /// The moments that the bare simulator draws from, in the order of a round. Their number and
    /// order decide what a seed stands for.
    pub const DRAWN: [Self; 15] = [
        Self::Sends(Kind::Progress),
        Self::Sends(Kind::Contribution),
        Self::Sends(Kind::Receipt),
        Self::Sends(Kind::ContributionList),
        Self::Sends(Kind::Scores),
        Self::Sends(Kind::Manifest),
        Self::Sends(Kind::Inclusion),
        Self::Decides,
        Self::Sends(Kind::Proposal),
        Self::Sends(Kind::Notarize),
        Self::Notarised,
        Self::Sends(Kind::Finalize),
        Self::Sends(Kind::Nullify),
        Self::Sends(Kind::Certificate),
        Self::Final,
    ];
}

/// How much of a step is carried out before its member stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepCut {
    /// Nothing of the step is carried out.
    Before,
    /// All records of the step are durable, and nothing is sent.
    Persisted,
    /// The records are durable, and everything up to the effect that showed the moment is done. In
    /// the bare simulator alone: a scenario stops a silo at a commit of its journal.
    #[serde(skip)]
    UpToMoment,
    /// Everything. In the bare simulator alone, as [`UpToMoment`](Self::UpToMoment).
    #[serde(skip)]
    After,
}
