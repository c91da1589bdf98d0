//! How members die for good.

use protocol::MemberIndex;
use protocol::effects::Effect;

use super::super::deaths::{Cut, Death};
use super::{World, Wrong, living};

/// A death that strikes now, and which effect of the step showed its moment.
pub(super) struct Doom {
    death: Death,
    at: usize,
}

impl World<'_> {
    /// The death that this step of a member brings, if one does.
    pub(super) fn doom(&mut self, at: usize, effects: &[Effect]) -> Option<Doom> {
        let me = MemberIndex(at as u16);
        let node = &self.nodes[at];
        let member = node.member.as_ref()?;
        // Those that something else is wrong with are counted already.
        if self.deaths.is_empty() || !node.counts() || node.lost || self.amnesiac.contains(&me) {
            return None;
        }
        let leads = self.epoch.lead(member.view()) == me;
        let round = member.round();
        let mut struck = None;
        for (which, death) in self.deaths.iter_mut().enumerate() {
            if round < death.round {
                continue;
            }
            let shown = |effect: &Effect| death.moment.shown(effect, leads);
            let Some(at) = effects.iter().position(shown) else {
                continue;
            };
            if death.spared > 0 {
                death.spared -= 1;
            } else {
                struck = Some((which, at));
                break;
            }
        }
        let (which, at) = struck?;
        let death = self.deaths.remove(which);
        Some(Doom { death, at })
    }

    /// A member dies in the middle of a step.
    pub(super) fn perish(
        &mut self,
        at: usize,
        effects: Vec<Effect>,
        doom: Doom,
    ) -> Result<(), Wrong> {
        let Doom { death, at: shown } = doom;
        let life = self.nodes[at].life;
        let done = |index: usize, effect: &Effect| match death.cut {
            Cut::Before => false,
            Cut::Kept => living::durable(effect),
            Cut::Said => living::durable(effect) || index <= shown,
            Cut::After => true,
        };
        let (kept, rest): (Vec<_>, Vec<_>) = effects
            .into_iter()
            .enumerate()
            .filter(|(index, effect)| done(*index, effect))
            .partition(|(_, effect)| living::durable(effect));
        for (_, effect) in kept.into_iter().chain(rest) {
            self.effect(at, life, effect)?;
        }
        let Death { moment, cut, .. } = death;
        self.die(at, &format!("{cut:?} {moment:?}"))
    }

    /// A member stops for good.
    pub(super) fn die(&mut self, at: usize, when: &str) -> Result<(), Wrong> {
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
        if node.member.is_some() {
            self.stop(at)
        } else {
            Ok(())
        }
    }
}
