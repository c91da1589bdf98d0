//! S5: every round is applied exactly once per member, in order, with the same outcome everywhere.
//!
//! Applying a round twice would, for instance, spend a privacy budget twice; skipping one would
//! leave a silo with another model than its coalition. It holds because outcome and round number
//! are adopted in one transaction, and only on finality (R4). A member that lost its journal lost
//! its model too and begins again.

use std::collections::BTreeMap;

use protocol::{Hash, MemberIndex};

use super::Property;
use super::ledger::{Fact, Ledger};

/// The last round that every member applied, and the outcome of every round.
#[derive(Default)]
pub(super) struct AppliedOnce {
    last: BTreeMap<MemberIndex, u64>,
    outcomes: BTreeMap<u64, Hash>,
}

impl Property for AppliedOnce {
    fn name(&self) -> &'static str {
        "S5 (every round applied exactly once)"
    }

    fn check(&mut self, fact: &Fact<'_>, ledger: &Ledger) -> Result<(), String> {
        match *fact {
            Fact::Begins { member, adopted } => {
                self.last.entry(member).or_insert(adopted);
            }
            Fact::JournalLost { member } => {
                self.last.remove(&member);
            }
            Fact::Applied { member, rounds } if ledger.honest(member) => {
                for applied in rounds {
                    let last = self.last.get(&member).copied().unwrap_or(0);
                    // What was final in earlier epochs is adopted at once.
                    let first = ledger.epoch.began.round;
                    if applied.round > last + 1 && applied.round != first {
                        let name = ledger.name(member);
                        return Err(format!(
                            "{name} applied round {} after {last}",
                            applied.round
                        ));
                    }
                    self.adopt(member, applied.round, applied.outcome, ledger)?;
                }
            }
            Fact::Adopted {
                member,
                round,
                outcome,
            } if ledger.honest(member) => {
                self.adopt(member, round, outcome, ledger)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl AppliedOnce {
    fn adopt(
        &mut self,
        member: MemberIndex,
        round: u64,
        outcome: Hash,
        ledger: &Ledger,
    ) -> Result<(), String> {
        let name = ledger.name(member);
        let last = self.last.entry(member).or_default();
        if round <= *last {
            return Err(format!("{name} applied round {round} after {last}"));
        }
        *last = round;
        let others = *self.outcomes.entry(round).or_insert(outcome);
        if outcome != others {
            return Err(format!(
                "{name} applied {outcome} as round {round}, others {others}"
            ));
        }
        if !ledger.is_settled(round, outcome) {
            return Err(format!("{name} applied round {round} before it was final"));
        }
        Ok(())
    }
}
