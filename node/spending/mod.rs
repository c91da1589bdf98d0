//! What a federation tells about one unit of an institution's rows: by all that the institution contributed,
//! under whatever agreement, and by the agreed rounds that are to come. All pages and the ledger have the same
//! number, because all of them ask for it here.

mod history;
#[cfg(test)]
mod tests;

pub use history::ContributionHistory;
use history::EpochRound;

use std::collections::{BTreeMap, BTreeSet};

use agreement::Agreement;
use ledger::{Cost, LedgerContents};
use privacy::accountant::{Accountant, Bound, Delta};

/// What an institution contributed to a federation so far, and what it will under its agreement.
#[derive(Debug, Clone, PartialEq)]
pub struct Spending {
    /// How many contributions there were, of what kind; `None` where nothing is known but the agreement.
    pub so_far: Option<SoFar>,
    /// Rounds of the agreement that are to come.
    pub to_come: u64,
    /// All rounds of the agreement.
    pub agreed: u64,
    /// True if a person wrote that no ledger counts.
    pub uncounted: bool,
    /// What all contributions so far cost.
    spent: Accountant,
    /// What a contribution costs under the agreement.
    cost: Cost,
    /// The ledger of the institution, if it can be read.
    ledger: Option<LedgerTotals>,
}

/// The contributions of an institution so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SoFar {
    /// All of them; no fewer.
    pub contributions: u64,
    /// Of these, the ones that cannot be excluded, and are not known.
    pub assumed: u64,
    /// Of these, the ones to this federation before the last change of its agreement.
    pub earlier: u64,
    /// Of these, the ones without noise.
    pub without_noise: u64,
    /// Of these, the ones that the institution's ledger has no line of.
    pub unlisted: u64,
    /// Of these, the ones to the federation that this one continues; `None` if it continues none, or if it is
    /// not known what that one told.
    pub continued: Option<u64>,
}

/// What the ledger of an institution holds, of all federations.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LedgerTotals {
    all: Accountant,
    delta: Delta,
}

/// ε and ε_alone by a ledger, of all federations that learn from its rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LedgerBounds {
    /// So far.
    pub now: Bound,
    /// After the rounds to come of the present federation.
    pub then: Bound,
}

impl Spending {
    /// By an agreement alone: what was told under another one is not known.
    pub fn under(agreement: &Agreement) -> Self {
        let protocol = &agreement.epoch.protocol;
        Self {
            so_far: None,
            to_come: protocol.rounds,
            agreed: protocol.rounds,
            uncounted: false,
            spent: Accountant::new(),
            // No parameter set has noise that bounds nothing.
            cost: Cost::of(&protocol.privacy).unwrap_or(Cost::NoBound),
            ledger: None,
        }
    }

    /// Of an institution that contributed as `history` shows, and whose ledger, if it can be read, holds
    /// `ledger` and counts for δ.
    ///
    /// The ledger has a line of everything that was prepared since its first line of this federation, so nothing
    /// has to be assumed beside it from there on. Before that, and without a ledger, a round may have been prepared
    /// whenever an epoch ended, and rounds whose blocks are missing count.
    pub fn of(
        agreement: &Agreement,
        history: &ContributionHistory,
        ledger: Option<(&LedgerContents, Delta)>,
    ) -> Self {
        let mut found: BTreeMap<EpochRound, Cost> = BTreeMap::new();
        let lines: BTreeMap<EpochRound, Cost> =
            ledger.map_or_else(BTreeMap::new, |(contents, _)| {
                let lines = contents.contributions(&history.federation);
                lines
                    .map(|(epoch, round, cost)| ((epoch, round), cost))
                    .collect()
            });
        let first = lines.keys().next();
        let before_lines = |at: &&EpochRound| first.is_none_or(|first| *at < first);
        let cost_in = |epoch: &u64| history.costs.get(epoch).cloned().unwrap_or(Cost::NoBound);
        let takes = |found: &mut BTreeMap<_, _>, all: &BTreeSet<EpochRound>| {
            let all = all.iter().filter(before_lines);
            found.extend(all.map(|at| (*at, cost_in(&at.0))));
        };
        // What others know of is not in doubt, whether it has a line or not.
        found.extend(history.shown.iter().map(|at| (*at, cost_in(&at.0))));
        // A ledger that lacks a line of an earlier contribution was not there at that time.
        let mut earlier = history.shown.iter().chain(&history.unseen);
        let was_without = ledger.is_none() || earlier.any(|at| before_lines(&at));
        if was_without {
            takes(&mut found, &history.prepared);
        }
        let known = found.len();
        takes(&mut found, &history.unseen);
        if was_without {
            takes(&mut found, &history.under_way);
        }
        let assumed = found.len() - known;
        let unlisted = match ledger {
            Some(_) => found.keys().filter(|at| !lines.contains_key(at)).count(),
            None => 0,
        };
        found.extend(lines);
        let mut so_far = SoFar {
            contributions: found.len() as u64,
            assumed: assumed as u64,
            earlier: found.keys().filter(|at| at.0 < history.now).count() as u64,
            unlisted: unlisted as u64,
            ..SoFar::default()
        };
        let own = found.keys().filter(|at| at.0 == history.now);
        let last = own.map(|at| at.1).max().unwrap_or(0);
        let mut costs: Vec<_> = found.into_values().collect();
        if let (Some(continues), Some((contents, _))) = (&agreement.continues, ledger) {
            let lines = contents.contributions(&continues.federation);
            let before = costs.len();
            costs.extend(lines.map(|(.., cost)| cost));
            let continued = (costs.len() - before) as u64;
            so_far.contributions += continued;
            so_far.continued = Some(continued).filter(|continued| *continued > 0);
        }
        let mut spending = Self::under(agreement);
        for cost in &costs {
            so_far.without_noise += u64::from(*cost == Cost::NoBound);
            cost.spend(&mut spending.spent, 1);
        }
        spending.so_far = Some(so_far);
        spending.to_come = spending.agreed.saturating_sub(history.over.max(last));
        spending.ledger = ledger.map(|(contents, delta)| LedgerTotals {
            all: contents.accountant,
            delta,
        });
        spending
    }

    /// Returns whether all contributions so far and to come are those of the agreed rounds, each done once under this
    /// agreement.
    pub fn is_of_agreed_rounds(&self) -> bool {
        let plain = |so_far: &SoFar| {
            (so_far.earlier, so_far.assumed, so_far.continued) == (0, 0, None)
                && so_far.contributions + self.to_come == self.agreed
        };
        self.so_far.as_ref().is_none_or(plain)
    }

    /// ε and ε_alone of all contributions so far and to come.
    pub fn together(&self, delta: Delta) -> Bound {
        self.after(self.spent, delta)
    }

    /// ε and ε_alone of the rounds to come alone.
    pub fn alone(&self, delta: Delta) -> Bound {
        self.after(Accountant::new(), delta)
    }

    /// Returns what the institution's ledger counts, of all federations; `None` without one that can be read.
    pub fn by_ledger(&self) -> Option<LedgerBounds> {
        let LedgerTotals { all, delta } = self.ledger?;
        Some(LedgerBounds {
            now: all.bound(delta),
            then: self.after(all, delta),
        })
    }

    fn after(&self, mut accountant: Accountant, delta: Delta) -> Bound {
        self.cost.spend(&mut accountant, self.to_come);
        accountant.bound(delta)
    }
}
