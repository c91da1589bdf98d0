//! Deaths: members that stop and never restart.

use protocol::MemberIndex;
use protocol::effects::Effect;

use crate::moments::StepCut;

use super::super::deaths::{Death, reached};
use super::{FailureKind, Simulator, members};

/// A death that is due in this step, and the index of the effect that showed its moment.
pub(super) struct DueDeath {
    death: Death,
    at: usize,
}

impl Simulator<'_> {
    /// The death that is due in this step of a member, if one is.
    pub(super) fn due_death(&mut self, at: usize, effects: &[Effect]) -> Option<DueDeath> {
        let me = MemberIndex(at as u16);
        let node = &self.nodes[at];
        let member = node.member.as_ref()?;
        // Members with another fault already count among the faulty.
        if self.deaths.is_empty()
            || !node.must_finish()
            || node.lost
            || self.losing_journals.contains(&me)
        {
            return None;
        }
        let leads = member.lead_now() == self.me(at);
        let round = member.round();
        let mut struck = None;
        for (which, death) in self.deaths.iter_mut().enumerate() {
            if round < death.round {
                continue;
            }
            let shown = |effect: &Effect| reached(death.moment, effect, leads);
            let Some(at) = effects.iter().position(shown) else {
                continue;
            };
            if death.skip > 0 {
                death.skip -= 1;
            } else {
                struck = Some((which, at));
                break;
            }
        }
        let (which, at) = struck?;
        let death = self.deaths.remove(which);
        Some(DueDeath { death, at })
    }

    /// A member dies in the middle of a step.
    pub(super) fn die_within_step(
        &mut self,
        at: usize,
        effects: Vec<Effect>,
        due: DueDeath,
    ) -> Result<(), FailureKind> {
        let DueDeath { death, at: shown } = due;
        let restarts = self.nodes[at].restarts;
        let done = |index: usize, effect: &Effect| match death.cut {
            StepCut::Before => false,
            StepCut::Persisted => members::durable(effect),
            StepCut::UpToMoment => members::durable(effect) || index <= shown,
            StepCut::After => true,
        };
        let (kept, rest): (Vec<_>, Vec<_>) = effects
            .into_iter()
            .enumerate()
            .filter(|(index, effect)| done(*index, effect))
            .partition(|(_, effect)| members::durable(effect));
        for (_, effect) in kept.into_iter().chain(rest) {
            self.effect(at, restarts, effect)?;
        }
        let Death { moment, cut, .. } = death;
        self.die(at, &format!("{cut:?} {moment:?}"))
    }

    /// A member stops for good.
    pub(super) fn die(&mut self, at: usize, when: &str) -> Result<(), FailureKind> {
        let node = &mut self.nodes[at];
        if node.dead.is_some() {
            return Ok(());
        }
        let place = node
            .member
            .as_ref()
            .map(|member| (member.view(), member.round()));
        let (view, round) = place.unwrap_or_default();
        let second = self.now.elapsed().as_secs_f64();
        node.dead = Some(format!(
            "died after {second:.3} s in view {view}, round {round}: {when}"
        ));
        self.ended.dead += 1;
        self.miss_leaver(at);
        if self.nodes[at].member.is_some() {
            self.stop(at)
        } else {
            Ok(())
        }
    }
}
