//! Frames of other epochs, and neighbours that are no members of this one.
//!
//! A frame of another epoch is not opened; its neighbour is answered with what leads it to the present
//! epoch. An honest neighbour that is behind sends what it repeats with every beat, until it has the
//! answer. A former member that waits to be admitted again asks now and then in the present epoch,
//! where it gets no answer.

use super::bucket::{Bucket, Offences, Rate};
use super::{Budget, Denied, EXCESS, Neighbour, OFFENCE, OFFENCES};
use crate::roster::MemberIndex;
use crate::time::Time;

use std::time::Duration;

/// Answers to all former members in one beat.
const GUESTS: u64 = 4;

impl Budget {
    /// Whether a frame of another epoch may be looked at.
    ///
    /// # Errors
    /// [`Denied`], to be passed to [`denied`](Self::denied).
    pub fn admit_elsewhere(&mut self, now: Time, from: MemberIndex) -> Result<(), Denied> {
        let rate = self.elsewhere_rate();
        let neighbour = self.neighbour(now, from);
        if neighbour.is_muted(now) {
            return Err(Denied::Muted);
        }
        neighbour.elsewhere.refill(&rate, now, 0);
        if !neighbour.elsewhere.is_open() {
            return Err(Denied::Elsewhere);
        }
        neighbour.elsewhere.take(&rate, 1);
        Ok(())
    }

    /// Whether a neighbour in another epoch may be answered now: about once a beat, and former members
    /// a few times a beat all together.
    pub fn may_answer(&mut self, now: Time, to: MemberIndex) -> bool {
        let (own, all) = (self.answer_rate(1), self.answer_rate(GUESTS));
        let guest = to.at() >= self.members;
        let neighbour = self.neighbour(now, to);
        neighbour.led.refill(&own, now, 0);
        if !neighbour.led.is_open() {
            return false;
        }
        if guest {
            self.guests.refill(&all, now, 0);
            if !self.guests.is_open() {
                return false;
            }
            self.guests.take(&all, 1);
        }
        self.neighbour(now, to).led.take(&own, 1);
        true
    }

    /// The budgets of a neighbour. Former members get theirs when they come.
    pub(super) fn neighbour(&mut self, now: Time, of: MemberIndex) -> &mut Neighbour {
        while self.neighbours.len() <= of.at() {
            let new = self.new_neighbour(now);
            self.neighbours.push(new);
        }
        &mut self.neighbours[of.at()]
    }

    /// Full budgets.
    pub(super) fn new_neighbour(&self, now: Time) -> Neighbour {
        Neighbour {
            checks: Bucket::full(&self.check_rate(), now),
            evidence: Bucket::full(&self.evidence_rate(), now),
            blobs: Bucket::full(&self.blob_rate(), now),
            elsewhere: Bucket::full(&self.elsewhere_rate(), now),
            led: Bucket::full(&self.answer_rate(1), now),
            answers: 0,
            offences: Offences::tolerating(OFFENCES, 1, OFFENCE, now),
            excess: Offences::tolerating(EXCESS.0, EXCESS.1, Duration::from_secs(1), now),
        }
    }

    /// Frames of other epochs by neighbour: what one member repeats with every beat to one other.
    fn elsewhere_rate(&self) -> Rate {
        let n = self.members as u64;
        Rate {
            burst: 128 + 8 * n,
            tokens: 16 + 4 * n,
            span: self.beat,
            per_view: 0,
        }
    }

    /// Answers to neighbours in other epochs.
    pub(super) fn answer_rate(&self, tokens: u64) -> Rate {
        Rate {
            burst: tokens,
            tokens,
            span: self.beat,
            per_view: 0,
        }
    }

    /// Full budget of answers to former members.
    pub(super) fn fill_guests(&mut self, now: Time) {
        self.guests = Bucket::full(&self.answer_rate(GUESTS), now);
    }
}
