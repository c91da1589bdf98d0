//! δ beside the rows that it is about: with probability δ the bound of a noised federation may not hold at all.
//!
//! A federation that gave away one row drawn at random of n would keep to a δ of 1/n. So δ has to be well below
//! one part in the number of rows that it protects: here all rows that the members declared together, the most
//! that a sum may have. A unit that is a person has one row or more, so that persons are no more than that.

use std::fmt;

use protocol::Epoch;
use protocol::parameters::RoundMode;

/// What is to be said of a δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeltaDoubt {
    delta: f64,
    rows: u64,
}

impl DeltaDoubt {
    /// That of an agreement on noise whose δ is above 1 / (10 · rows), with the declared rows of all members
    /// together; `None` of a smaller one, and where there is no noise.
    pub fn of(epoch: &Epoch) -> Option<Self> {
        let delta = match epoch.protocol.privacy.mode() {
            RoundMode::Noised(_, noise) => noise.delta.value(),
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => return None,
        };
        let rows = epoch.roster.silos().iter().filter_map(|silo| silo.rows);
        let rows = rows.fold(0_u64, u64::saturating_add);
        (10.0 * delta * rows as f64 > 1.0).then_some(Self { delta, rows })
    }

    /// Returns whether it is above 1 / rows: nobody signs or approves such an agreement any more. One that is in force
    /// stays.
    pub fn is_refused(&self) -> bool {
        self.delta * self.rows as f64 > 1.0
    }

    /// Returns whether an agreement with this δ may follow one with that: it may where the one before was as bad.
    pub fn may_follow(&self, before: &Epoch) -> bool {
        let as_bad = |before: Self| before.is_refused() && before.delta >= self.delta;
        !self.is_refused() || Self::of(before).is_some_and(as_bad)
    }
}

/// The next power of ten that nothing has to be said of, with so many rows.
pub(super) fn enough(rows: u64) -> f64 {
    10_f64.powf((0.1 / rows.max(1) as f64).log10().floor())
}

impl fmt::Display for DeltaDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (above, means) = match self.is_refused() {
            true => (
                format!("1 / {}", self.rows),
                "a federation that gives away a whole row would keep to such a bound",
            ),
            false => (
                format!("1 / (10 · {})", self.rows),
                "the bound of a row may fail with this probability",
            ),
        };
        write!(
            f,
            "`delta` of [privacy] is {:e}, which is above {above}, with the rows that all members declare together: \
             {means}. Choose at most {:e}",
            self.delta,
            enough(self.rows)
        )
    }
}
