//! Deaths for good, at moments of a round.

use protocol::certificate::Verdict;
use protocol::effects::{Effect, Report, Request};

use crate::invariants::kind;
use crate::moments::{Moment, StepCut};
use crate::random::Random;

/// Returns whether an effect shows that its member has reached a moment.
pub(super) fn reached(moment: Moment, effect: &Effect, leads: bool) -> bool {
    match (moment, effect) {
        (Moment::Phase(phase), Effect::Report(Report::Leading { phase: entered, .. })) => {
            phase == *entered
        }
        (Moment::Sends(sent), Effect::Send { frame, .. } | Effect::Publish { frame }) => {
            kind(frame) == Some(sent)
        }
        (Moment::Decides, Effect::Work(Request::Settle { .. })) => leads,
        (Moment::Notarised, Effect::Report(Report::Certified(certificate))) => {
            matches!(certificate.verdict, Verdict::Notarised(_))
        }
        (Moment::Final, Effect::Report(Report::Final { .. })) => true,
        _ => false,
    }
}

/// A death at a moment of a round, of the member that reaches it first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) moment: Moment,
    pub(super) round: u64,
    pub(super) cut: StepCut,
    /// Number of members that reach it and are spared before.
    pub(super) skip: usize,
}

impl Death {
    /// A death at this moment; round, cut and skip are drawn.
    pub(super) fn at(random: &mut Random, moment: Moment, n: usize) -> Self {
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

/// The deaths that may happen in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// No member dies.
    None,
    /// Deaths at any moment.
    Any,
    /// At this moment, of the member that reaches it first.
    At(Moment),
}
