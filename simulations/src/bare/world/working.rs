//! The work that members ask for.

use protocol::effects::{Effect, Input};
use protocol::{Hash, MemberIndex, Record};

use super::super::byzantine::Liar;
use super::super::work;
use super::{World, Wrong, violated};

impl World<'_> {
    /// Does a piece of work, now that its time has passed.
    pub(super) fn work(&mut self, at: usize, effect: &Effect) -> Result<(), Wrong> {
        let me = MemberIndex(at as u16);
        let mut shelf = std::mem::take(&mut self.nodes[at].shelf);
        let fetch = |blob: &Hash, holders: &[MemberIndex]| {
            let liar = self.nodes[at].liar.as_ref();
            liar.is_some_and(|liar| liar.invents(blob))
                || holders.iter().any(|&holder| self.gives(holder, me, blob))
        };
        let input = work::answer(me, &mut shelf, self.options, effect, &fetch);
        self.nodes[at].shelf = shelf;
        let Some(mut input) = input else {
            return Ok(());
        };
        match (&mut input, effect) {
            (Input::Planned(planned), _) => {
                let liar = self.nodes[at].liar.as_ref();
                let invited = liar.is_some_and(Liar::invites);
                if let (Some(some), true) = (&mut planned.participants, invited) {
                    some.push(me);
                    some.sort();
                    some.dedup();
                    self.ended.faults += 1;
                }
            }
            (Input::Trained { round, .. }, _) if self.nodes[at].liar.is_none() => {
                self.ended.trainings[*round as usize - 1] += 1;
            }
            (
                Input::Decided {
                    result: Ok(decision),
                    ..
                },
                _,
            ) => {
                if let Some(liar) = self.nodes[at].liar.as_mut() {
                    *decision = liar.decide(std::mem::take(decision));
                }
            }
            (
                Input::Applied {
                    round,
                    result: Ok(()),
                },
                Effect::Apply { rounds, .. },
            ) => {
                self.watch.applied(self.now, me, rounds).map_err(violated)?;
                self.nodes[at]
                    .journal
                    .push(Record::Applied { round: *round });
            }
            _ => {}
        }
        self.feed(at, input)
    }

    /// Whether a member gives a blob to another that asks for it now.
    fn gives(&self, holder: MemberIndex, to: MemberIndex, blob: &Hash) -> bool {
        let (from, asker) = (holder.at(), to.at());
        let reached = self.links.open(from, asker) && self.links.open(asker, from);
        let node = &self.nodes[from];
        let Some(member) = node.member.as_ref().filter(|_| reached && holder != to) else {
            return false;
        };
        let liar = node.liar.as_ref();
        liar.is_none_or(|liar| liar.gives(to, blob))
            && (liar.is_some_and(|liar| liar.invents(blob))
                || node.shelf.outcomes.contains(blob)
                || node.shelf.blobs.contains(blob) && member.may_serve(to, blob))
    }
}
