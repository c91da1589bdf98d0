//! Members that are gone, so that no quorum is left, and institutions that go on without them.

use std::time::Duration;

use bytes::Bytes;
use protocol::effects::Input;
use protocol::message::{Kind, Passage};
use protocol::{MemberIndex, Record, Time};

use crate::invariants::kind;
use crate::random::Random;

use super::{BareEvent, FailureKind, Simulator};

/// Longest time until a member is gone, until the others decide to go on without it, between the
/// decisions of two institutions, and until one that was thought gone is back.
const LONGEST: Duration = Duration::from_secs(20);
/// Probability that a word of a recovery is sent again later to one member.
const REPLAYED: f64 = 0.3;
/// Shortest and longest time until then.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// Shortest time until institutions go back on what their nodes have confirmed with a member that is
/// gone: until then what it sent last may be under way.
const SURE: Duration = Duration::from_secs(5);

/// Last statement of an institution about members that are gone.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// The epoch in which it said so.
    epoch: usize,
    /// The nodes.
    lost: Vec<usize>,
    /// True if it says so in every epoch, also if its node has confirmed to go on with some of them.
    abandon: bool,
}

impl Wish {
    /// Returns whether it holds in this epoch.
    pub(super) fn holds_in(&self, epoch: usize) -> bool {
        self.abandon || self.epoch == epoch
    }
}

impl Simulator<'_> {
    /// Draws who is gone from when on, who of them comes back, and when the others decide to go on.
    pub(super) fn plan_recovery(&mut self) {
        let mut random = Random::new(self.seed, "recovery");
        let n = self.nodes.len();
        let quorum = self.epochs[0].epoch.roster.quorum();
        let mut all: Vec<_> = (0..n).collect();
        random.shuffle(&mut all);
        let fewest = n - quorum + 1;
        let remaining = all.split_off(fewest + random.below(n - fewest));
        let gone = all.clone();
        let others = remaining.clone();
        let mut last = Duration::ZERO;
        let (mut decided, mut back) = (Duration::ZERO, 0);
        for at in all {
            let from = random.span(Duration::ZERO, LONGEST);
            decided = decided.max(from);
            self.nodes[at].given_up = true;
            self.schedule(from, BareEvent::Vanish(at));
            // A quorum of them would go on by itself.
            if back + 1 < quorum && random.chance(0.3) {
                back += 1;
                let again = from + random.span(Duration::ZERO, 3 * LONGEST);
                self.schedule(again, BareEvent::Return(at));
            }
        }
        decided += random.span(Duration::ZERO, LONGEST);
        for at in remaining {
            let mut after = decided + random.span(Duration::ZERO, LONGEST);
            let mut says = vec![gone.clone()];
            if self.options.errors {
                let before = random.below(3);
                says.splice(0..0, (0..before).map(|_| wrong(&mut random, n, at, &gone)));
                if random.chance(0.3) {
                    says.extend([wrong(&mut random, n, at, &gone), gone.clone()]);
                }
            }
            for lost in says {
                last = last.max(after);
                self.tell_later(after, at, (lost, false));
                after += random.span(Duration::ZERO, LONGEST);
            }
        }
        if self.options.errors && others.len() > 1 && random.chance(0.3) {
            self.plan_another_loss(&mut random, (gone, others), (decided, last));
        }
    }

    /// One more member is gone for good, while the others say whom they go on without from `decided` to
    /// `last`. Perhaps they have confirmed to go on with it, and it has not, so they go back on that.
    fn plan_another_loss(
        &mut self,
        random: &mut Random,
        (gone, mut others): (Vec<usize>, Vec<usize>),
        (decided, last): (Duration, Duration),
    ) {
        let late = others.swap_remove(random.below(others.len()));
        let from = random.span(decided, last + LONGEST / 4);
        self.schedule(from, BareEvent::Vanish(late));
        let lost = [gone, vec![late]].concat();
        for at in others {
            let after = last.max(from) + SURE + random.span(Duration::ZERO, LONGEST);
            self.tell_later(after, at, (lost.clone(), true));
        }
    }

    /// An institution will tell its node to go on without others.
    fn tell_later(&mut self, after: Duration, node: usize, (lost, abandon): (Vec<usize>, bool)) {
        self.decided = self.decided.max(Time::ZERO + after);
        let told = BareEvent::Recover {
            node,
            lost,
            abandon,
        };
        self.schedule(after, told);
    }

    /// An institution tells its node to go on without others.
    pub(super) fn told_to_recover(
        &mut self,
        node: usize,
        lost: Vec<usize>,
        abandon: bool,
    ) -> Result<(), FailureKind> {
        self.tell(Some(node), || {
            format!("is told to continue without {lost:?}")
        });
        let epoch = self.nodes[node].epoch;
        // Where a node has gone on, its institution sees that, and says only who is gone since then.
        if epoch == 0 || abandon {
            let wish = Wish {
                epoch,
                lost,
                abandon,
            };
            self.nodes[node].wish = Some(wish);
        }
        self.recover(node)
    }

    /// A member stops, perhaps for good.
    pub(super) fn vanish(&mut self, at: usize) -> Result<(), FailureKind> {
        self.ended.faults += 1;
        (self.nodes[at].away, self.nodes[at].given_up) = (true, true);
        match self.nodes[at].member {
            Some(_) => self.stop(at),
            None => Ok(()),
        }
    }

    /// One that was thought gone is back.
    pub(super) fn come_back(&mut self, at: usize) -> Result<(), FailureKind> {
        self.nodes[at].away = false;
        self.start(at)?;
        self.relink()
    }

    /// An institution wants to go on without others, and says so again at each restart in this epoch.
    pub(super) fn recover(&mut self, at: usize) -> Result<(), FailureKind> {
        let Some(wish) = &self.nodes[at].wish else {
            return Ok(());
        };
        let (abandon, holds) = (wish.abandon, wish.holds_in(self.nodes[at].epoch));
        let Some((run, _)) = self.seat(at).filter(|_| holds) else {
            return Ok(());
        };
        let seats = run.nodes.iter().enumerate();
        let lost = seats.filter(|(_, node)| wish.lost.contains(node));
        let lost: Vec<_> = lost.map(|(seat, _)| MemberIndex(seat as u16)).collect();
        if lost.is_empty() {
            Ok(())
        } else {
            self.feed(at, Input::Recover { lost, abandon })
        }
    }

    /// Somebody keeps a word about members that are gone, and sends it again to one member: perhaps long
    /// after it was withdrawn, after restarts, or when the epoch is over.
    pub(super) fn replay(&mut self, from: usize, frame: &Bytes) {
        let of_recovery = matches!(kind(frame), Some(Kind::Standing | Kind::Confirmation));
        if !of_recovery || !self.options.errors {
            return;
        }
        let mut random = Random::new(self.seed, &format!("replay {}", self.sequence));
        let to = random.below(self.nodes.len());
        if to == from || !random.chance(REPLAYED) {
            return;
        }
        let frame = frame.clone();
        let after = random.span(AGAIN.0, AGAIN.1);
        self.ended.faults += 1;
        self.schedule(after, BareEvent::Deliver { from, to, frame });
    }

    /// A recovery goes on from the newest round that one of those that remain has adopted. None of
    /// them is in the next epoch yet.
    pub(super) fn check_recovery(&self, passage: &Passage) -> Result<(), FailureKind> {
        let Some(recovery) = passage.recovery() else {
            return Ok(());
        };
        for node in self.nodes.iter().filter(|node| !node.given_up) {
            let mut records = node.journal.iter().rev();
            let adopted = records.find_map(|record| match record {
                Record::Applied { round } => Some(*round),
                _ => None,
            });
            if adopted > Some(recovery.after.round) {
                return Err(FailureKind::Chains(format!(
                    "a member has adopted round {adopted:?}, and the recovery continues from round {}",
                    recovery.after.round
                )));
            }
        }
        Ok(())
    }
}

/// Whom somebody names by mistake: some members, not itself, and not all of those that are gone. What is
/// wrong can so never be completed, because one that is gone does not sign for it.
fn wrong(random: &mut Random, n: usize, at: usize, gone: &[usize]) -> Vec<usize> {
    let forgotten = gone[random.below(gone.len())];
    let others = (0..n).filter(|other| *other != at && *other != forgotten);
    others.filter(|_| random.chance(0.5)).collect()
}
