//! What an institution lets its own node do, below the agreement: the table `[policy]` of `node.toml`.
//!
//! The agreement says what all members do. The policy says under which agreements, and in which rounds,
//! this institution takes part. No agreement and no change of one overrides it. A node whose policy
//! refuses goes on voting, and contributes nothing.
//!
//! - Before the first round under an agreement: `SitePolicy::refusals`, in `rota check` and at the
//!   start of the node.
//! - In every round: the hours of the day, and the bytes of a contribution.

mod hours;
mod making;
mod refusals;
mod room;
mod rounds;
mod source;
mod status;
mod table;

#[cfg(test)]
mod tests;

pub use ledger::LedgerError;
pub use making::make_ledger;
pub(crate) use making::{ledger_beside, with_ledger};
pub(crate) use refusals::ProposedRounds;
pub use room::LedgerRoom;
pub(crate) use source::SourceLimits;
pub use status::LedgerStatus;
pub(crate) use table::{LedgerKey, PolicyTable};

use std::path::Path;
use std::sync::Arc;

use agreement::Agreement;
use ledger::LedgerContents;
use questions::disclosure::AnswerRules;
use silo::Site;

use rounds::RoundRules;

use crate::spending::{ContributionHistory, Spending};

/// Returns whether a table of the policy says nothing of its own.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The policy of an institution, checked.
#[derive(Debug, Clone, Default)]
pub(crate) struct SitePolicy {
    table: PolicyTable,
    /// The ledger and its limits, where one is named.
    pub(crate) source: Option<SourceLimits>,
}

impl SitePolicy {
    /// Checks a table whose paths are relative to a folder, of a node with this state folder.
    ///
    /// # Errors
    /// The first key that is wrong, and what is wrong with it.
    pub(crate) fn new(
        table: PolicyTable,
        beside: &Path,
        state: &Path,
    ) -> Result<Self, (&'static str, String)> {
        let source = SourceLimits::of(&table, beside, state)?;
        Ok(Self { table, source })
    }

    /// Returns what the institution contributed, as `history` and its ledger show, and what is to come. A ledger that
    /// cannot be read shows nothing.
    pub(crate) fn spending(
        &self,
        agreement: &Agreement,
        history: &ContributionHistory,
    ) -> Spending {
        self.spending_by(self.read_ledger().as_ref(), agreement, history)
    }

    /// As [`spending`](Self::spending), where the ledger has just been read.
    pub(crate) fn spending_by(
        &self,
        ledger: Option<&LedgerContents>,
        agreement: &Agreement,
        history: &ContributionHistory,
    ) -> Spending {
        let delta = self.source.as_ref().map(|source| source.limits.delta);
        let mut spending = Spending::of(agreement, history, ledger.zip(delta));
        spending.uncounted = self.declines_ledger();
        spending
    }

    /// Returns what the ledger holds, where there is one that can be read.
    pub(crate) fn read_ledger(&self) -> Option<LedgerContents> {
        self.source.as_ref()?.read().ok()
    }

    /// Returns whether a person wrote that there is no ledger.
    pub(crate) fn declines_ledger(&self) -> bool {
        self.table.ledger == Some(LedgerKey::Counts(false))
    }

    /// That nothing counts what rounds with noise tell about the institution's rows, in a sentence without a full
    /// stop; `None` where something does, or there is no noise.
    pub(crate) fn uncounted(&self, agreement: &Agreement) -> Option<String> {
        let noised = agreement.epoch.protocol.privacy.is_noised();
        (noised && self.declines_ledger()).then(|| {
            "no ledger counts what this institution discloses (`ledger = false` in [policy] of its node.toml): \
             epsilon is that of this federation alone, whatever else was learned from the same rows"
                .into()
        })
    }

    /// Returns what questions of the agreement may read.
    pub(crate) fn answer_rules(&self) -> &AnswerRules {
        &self.table.questions
    }

    /// Returns what the silo needs of it.
    pub(crate) fn site(&self) -> Site {
        let source = self.source.as_ref();
        // Whoever waits for the ledger holds the silo up: it rather sits the round out.
        let ledger = |source: &SourceLimits| -> Arc<dyn ledger::Ledger> {
            Arc::new(source.file().briefly())
        };
        let ledger = source.map(ledger);
        let rules = RoundRules {
            hours: self.table.hours.clone(),
            bytes: self.table.bytes_a_round,
        };
        Site {
            ledger,
            rounds: Some(Arc::new(rules)),
        }
    }
}
