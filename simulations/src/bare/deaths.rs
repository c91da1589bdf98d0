//! Deaths for good: at which moment of a round, and after which part of a step.

use protocol::certificate::Verdict;
use protocol::effects::{Effect, Report};
use protocol::message::Kind;

use crate::invariants::kind;
use crate::random::Random;

/// A moment of a round at which a member may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeathMoment {
    /// It sends a message of this kind. With a Contribution its training is done; with a Bundle, a
    /// Sheet or a Proposal it leads.
    Sends(Kind),
    /// It leads and has decided.
    Decides,
    /// It learns that a block is notarised.
    Notarised,
    /// It learns that a round is final.
    Final,
}

impl DeathMoment {
    /// All moments, in the order of a round.
    pub const ALL: [Self; 15] = [
        Self::Sends(Kind::Progress),
        Self::Sends(Kind::Contribution),
        Self::Sends(Kind::Receipt),
        Self::Sends(Kind::Bundle),
        Self::Sends(Kind::Scores),
        Self::Sends(Kind::Sheet),
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

    /// Whether an effect shows that its member has reached this moment.
    pub(super) fn reached_by(self, effect: &Effect, leads: bool) -> bool {
        match (self, effect) {
            (Self::Sends(sent), Effect::Send { frame, .. } | Effect::Publish { frame }) => {
                kind(frame) == Some(sent)
            }
            (Self::Decides, Effect::Settle { .. }) => leads,
            (Self::Notarised, Effect::Report(Report::Certified(certificate))) => {
                matches!(certificate.verdict, Verdict::Notarised(_))
            }
            (Self::Final, Effect::Report(Report::Final { .. })) => true,
            _ => false,
        }
    }
}

/// How much of a step is carried out before its member dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepCut {
    /// Nothing.
    Before,
    /// Its records are durable.
    Persisted,
    /// Its records are durable, and everything up to the effect that showed the moment is done.
    UpToMoment,
    /// Everything.
    After,
}

/// A death at a moment of a round, of the member that reaches it first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) moment: DeathMoment,
    pub(super) round: u64,
    pub(super) cut: StepCut,
    /// How many members that reach it are spared before.
    pub(super) skip: usize,
}

impl Death {
    /// A death at this moment; round, cut and skip are drawn.
    pub(super) fn at(random: &mut Random, moment: DeathMoment, n: usize) -> Self {
        let cuts = [
            StepCut::Before,
            StepCut::Persisted,
            StepCut::UpToMoment,
            StepCut::After,
        ];
        Self {
            moment,
            round: 1 + random.below(3) as u64,
            cut: cuts[random.below(cuts.len())],
            skip: if random.chance(0.6) {
                0
            } else {
                random.below(n)
            },
        }
    }
}

/// Which deaths may happen in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// None.
    None,
    /// At any moment.
    Any,
    /// At this moment, of the member that reaches it first.
    At(DeathMoment),
}
