//! Frames of other epochs, and neighbours that are no members of this one.
//!
//! A frame of another epoch is not opened; its neighbour is answered with what leads it to the present
//! epoch. An honest neighbour that is behind sends what it repeats with every heartbeat, until it has the
//! answer. A former member that waits to be admitted again asks now and then in the present epoch,
//! where it gets no answer.

use super::bucket::{Bucket, Rate};
use super::{Budget, Denied, Purse};
use crate::roster::MemberIndex;
use crate::time::Time;

/// Answers to all former members in one heartbeat.
const GUESTS: u64 = 4;

impl Budget {
    /// Whether a frame of another epoch may be looked at.
    ///
    /// # Errors
    /// [`Denied`], to be passed to [`denied`](Self::denied).
    pub fn admit_elsewhere(&mut self, now: Time, from: MemberIndex) -> Result<(), Denied> {
        if self.peer(from).is_muted(now) {
            return Err(Denied::Muted);
        }
        let (left, rate) = self.refilled(now, from, Purse::Elsewhere);
        if !left.is_open() {
            return Err(Denied::Elsewhere);
        }
        left.take(&rate, 1);
        Ok(())
    }

    /// Whether a neighbour in another epoch may be answered now: about once a heartbeat, and former members
    /// a few times a heartbeat all together.
    pub fn may_answer(&mut self, now: Time, to: MemberIndex) -> bool {
        let all = self.answer_rate(GUESTS);
        let (own, _) = self.refilled(now, to, Purse::Led);
        if !own.is_open() {
            return false;
        }
        if to.at() >= self.members {
            self.guests.refill(&all, now, 0);
            if !self.guests.is_open() {
                return false;
            }
            self.guests.take(&all, 1);
        }
        let (own, rate) = self.bucket(to, Purse::Led);
        own.take(&rate, 1);
        true
    }

    /// Frames of other epochs by neighbour: what one member repeats with every heartbeat to one other.
    pub(super) fn elsewhere_rate(&self) -> Rate {
        let n = self.members as u64;
        Rate {
            burst: 128 + 8 * n,
            tokens: 16 + 4 * n,
            span: self.heartbeat,
            per_view: 0,
        }
    }

    /// Answers to neighbours in other epochs.
    pub(super) fn answer_rate(&self, tokens: u64) -> Rate {
        Rate {
            burst: tokens,
            tokens,
            span: self.heartbeat,
            per_view: 0,
        }
    }

    /// Full budget of answers to former members.
    pub(super) fn fill_guests(&mut self, now: Time) {
        self.guests = Bucket::full(&self.answer_rate(GUESTS), now);
    }
}
