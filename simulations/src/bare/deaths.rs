//! Members that die for good: when, and how far into the step that they were in.

use protocol::certificate::Verdict;
use protocol::effects::{Effect, Report};
use protocol::message::Kind;

use crate::invariants::kind;
use crate::random::Random;

/// A moment of a round at which a member may die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// It says something of this kind. A contribution: its training is done; a Bundle, a Sheet or a
    /// Proposal: it leads.
    Says(Kind),
    /// It leads, and has decided.
    Decides,
    /// It learns that a block is notarised.
    Notarised,
    /// It learns that a round is final.
    Final,
}

impl Moment {
    /// All of them, in the order of a round.
    pub const ALL: [Self; 15] = [
        Self::Says(Kind::Progress),
        Self::Says(Kind::Contribution),
        Self::Says(Kind::Receipt),
        Self::Says(Kind::Bundle),
        Self::Says(Kind::Scores),
        Self::Says(Kind::Sheet),
        Self::Says(Kind::Inclusion),
        Self::Decides,
        Self::Says(Kind::Proposal),
        Self::Says(Kind::Notarize),
        Self::Notarised,
        Self::Says(Kind::Finalize),
        Self::Says(Kind::Nullify),
        Self::Says(Kind::Certificate),
        Self::Final,
    ];

    /// Whether an effect shows that a member has come to this moment.
    pub(super) fn shown(self, effect: &Effect, leads: bool) -> bool {
        match (self, effect) {
            (Self::Says(said), Effect::Send { frame, .. } | Effect::Publish { frame }) => {
                kind(frame) == Some(said)
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

/// How much of a step is done before its member dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// Nothing.
    Before,
    /// What the journal keeps.
    Kept,
    /// Everything up to what showed the moment.
    Said,
    /// Everything.
    After,
}

/// A death at a moment of a round, of whoever gets there first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Death {
    pub(super) moment: Moment,
    pub(super) round: u64,
    pub(super) cut: Cut,
    /// How many that came there are let go.
    pub(super) spared: usize,
}

impl Death {
    /// Draws the rest.
    pub(super) fn at(random: &mut Random, moment: Moment, n: usize) -> Self {
        let cuts = [Cut::Before, Cut::Kept, Cut::Said, Cut::After];
        Self {
            moment,
            round: 1 + random.below(3) as u64,
            cut: cuts[random.below(cuts.len())],
            spared: if random.chance(0.6) {
                0
            } else {
                random.below(n)
            },
        }
    }
}

/// Which deaths a run may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// None.
    None,
    /// At any moment.
    Any,
    /// At this moment, of whoever comes there first.
    At(Moment),
}
