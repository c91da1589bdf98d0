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
                self.decided = self.decided.max(Time::ZERO + after);
                self.schedule(after, BareEvent::Recover { node: at, lost });
                after += random.span(Duration::ZERO, LONGEST);
            }
        }
    }

    /// A member stops, perhaps for good.
    pub(super) fn vanish(&mut self, at: usize) -> Result<(), FailureKind> {
        self.ended.faults += 1;
        self.nodes[at].away = true;
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
        let Some((epoch, wish)) = &self.nodes[at].wish else {
            return Ok(());
        };
        let Some((run, _)) = self.seat(at).filter(|_| self.nodes[at].epoch == *epoch) else {
            return Ok(());
        };
        let seats = run.nodes.iter().enumerate();
        let lost = seats.filter(|(_, node)| wish.contains(node));
        let lost: Vec<_> = lost.map(|(seat, _)| MemberIndex(seat as u16)).collect();
        if lost.is_empty() {
            Ok(())
        } else {
            self.feed(
                at,
                Input::Recover {
                    lost,
                    abandon: false,
                },
            )
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
                    "a member has adopted round {adopted:?}, and the recovery goes on from round {}",
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
