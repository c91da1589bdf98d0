//! How many of the rounds of an agreement a ledger has room for.

use agreement::Agreement;
use ledger::{Cost, LedgerContents, Limits};
use privacy::accountant::{Accountant, Bound};

use super::SitePolicy;
use super::source::SourceLimits;
use crate::spending::{ContributionHistory, Spending};

/// Differentially private rounds that are still to come, beside what the institution's ledger has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerRoom {
    /// Agreed rounds to which the institution has not contributed yet.
    pub left: u64,
    /// How many of these the limits of the policy allow, beside all that the ledger holds.
    pub fits: u64,
}

/// What the rounds to come would cost, from a ledger that can be read.
pub(super) struct RoundsToCome<'a> {
    limits: &'a Limits,
    held: Accountant,
    cost: Cost,
    left: u64,
}

impl<'a> RoundsToCome<'a> {
    /// Those of an agreement; `None` where its rounds have no noise.
    pub(super) fn of(
        source: &'a SourceLimits,
        contents: &LedgerContents,
        agreement: &Agreement,
    ) -> Option<Self> {
        let epoch = &agreement.epoch;
        // The parameter set of an agreement has no noise that bounds nothing.
        let cost = Cost::of(&epoch.protocol.privacy).ok()?;
        if cost == Cost::NoBound {
            return None;
        }
        let (history, ledger) = (
            ContributionHistory::none(epoch),
            (contents, source.limits.delta),
        );
        let spending = Spending::of(agreement, &history, Some(ledger));
        Some(Self {
            limits: &source.limits,
            held: contents.accountant,
            cost,
            left: spending.to_come,
        })
    }

    /// Returns what would hold after so many of them.
    pub(super) fn after(&self, rounds: u64) -> Bound {
        let mut accountant = self.held;
        self.cost.spend(&mut accountant, rounds);
        accountant.bound(self.limits.delta)
    }

    /// Returns what would hold after all of them.
    pub(super) fn after_all(&self) -> Bound {
        self.after(self.left)
    }

    /// Returns how many there are, and how many are within the limits.
    pub(super) fn room(&self) -> LedgerRoom {
        let allowed = |rounds| self.limits.exceeded(&self.after(rounds)).is_none();
        let left = self.left;
        if allowed(left) {
            return LedgerRoom { left, fits: left };
        }
        // What holds only grows: so many are within the limits, or none; so many are not.
        let (mut fits, mut too_many) = (0, left);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if allowed(middle) {
                fits = middle;
            } else {
                too_many = middle;
            }
        }
        LedgerRoom { left, fits }
    }
}

impl SitePolicy {
    /// The room that the ledger has for the rounds of an agreement; `None` without noise, or without a
    /// ledger that can be read.
    pub(crate) fn room(&self, agreement: &Agreement) -> Option<LedgerRoom> {
        let source = self.source.as_ref()?;
        let contents = source.read().ok()?;
        Some(RoundsToCome::of(source, &contents, agreement)?.room())
    }
}
