//! The work that members request: training, checking, fetching.

use protocol::effects::{Answer, Input, Request};
use protocol::{Hash, MemberIndex, Record};

use crate::byzantine::ByzantineMember;

use super::super::work;
use super::{FailureKind, Simulator, violated};

impl Simulator<'_> {
    /// Performs a piece of work when its time has passed.
    pub(super) fn work(&mut self, at: usize, request: &Request) -> Result<(), FailureKind> {
        if let Some(answer) = self.masked_work(at, request)? {
            return self.feed(at, Input::Done(answer));
        }
        let me = self.me(at);
        let n = self.epoch_of(at).roster.len();
        let mut store = std::mem::take(&mut self.nodes[at].store);
        let fetch = |blob: &Hash, holders: &[MemberIndex]| {
            let byzantine = self.nodes[at].byzantine.as_ref();
            byzantine.is_some_and(|byzantine| byzantine.claims_blob(blob))
                || holders.iter().any(|&holder| self.serves(holder, at, blob))
        };
        let answer = work::perform((at, n), &mut store, self.options, request, &fetch);
        self.nodes[at].store = store;
        let Some(mut answer) = answer else {
            return Ok(());
        };
        match (&mut answer, request) {
            (Answer::Planned(planned), Request::Plan { state, .. }) => {
                planned.voids = self.voids.before(&self.epoch_of(at).id, state);
                let byzantine = self.nodes[at].byzantine.as_ref();
                let invited = byzantine.is_some_and(ByzantineMember::claims_invitation);
                if let (Some(some), true) = (&mut planned.participants, invited) {
                    some.push(me);
                    some.sort();
                    some.dedup();
                    self.ended.faults += 1;
                }
            }
            (Answer::Trained { round, .. }, _) if self.nodes[at].byzantine.is_none() => {
                self.ended.trainings[*round as usize - 1] += 1;
            }
            (
                Answer::Decided {
                    result: Ok(decision),
                    ..
                },
                _,
            ) => {
                if let Some(byzantine) = self.nodes[at].byzantine.as_mut() {
                    *decision = byzantine.decide(std::mem::take(decision));
                }
            }
            (
                Answer::Applied {
                    round,
                    result: Ok(()),
                    ..
                },
                Request::Apply { rounds, .. },
            ) => {
                let now = self.now;
                let applied = self.monitor(at).applied(now, me, rounds);
                applied.map_err(violated)?;
                self.nodes[at]
                    .journal
                    .push(Record::Applied { round: *round });
                self.forget(at, *round);
            }
            _ => {}
        }
        self.feed(at, Input::Done(answer))
    }

    /// Returns whether a member serves a blob to a node that requests it now.
    pub(super) fn serves(&self, holder: MemberIndex, asker: usize, blob: &Hash) -> bool {
        let run = &self.epochs[self.nodes[asker].epoch];
        let Some(&first) = run.nodes.get(holder.at()) else {
            return false;
        };
        let twin = self.twins.get(&first).copied();
        let mut processes = [Some(first), twin].into_iter().flatten();
        processes.any(|from| self.serves_from(from, holder, asker, blob))
    }

    fn serves_from(&self, from: usize, holder: MemberIndex, asker: usize, blob: &Hash) -> bool {
        let to = self.me(asker);
        if self.nodes[from].epoch != self.nodes[asker].epoch {
            return false;
        }
        let reached = self.links.cuts.open(from, asker) && self.links.cuts.open(asker, from);
        let node = &self.nodes[from];
        let Some(member) = node.member.as_ref().filter(|_| reached && holder != to) else {
            return false;
        };
        let byzantine = node.byzantine.as_ref();
        byzantine.is_none_or(|byzantine| byzantine.serves(to, blob))
            && (byzantine.is_some_and(|byzantine| byzantine.claims_blob(blob))
                || node.store.outcomes.contains(blob)
                || node.store.blobs.contains(blob) && member.may_serve(to, blob))
    }
}
