//! Which changes of an agreement an institution follows without signing the new one.

mod costs;

use std::sync::Arc;

use protocol::parameters::Genesis;
use protocol::roster::Silo;
use protocol::{Epoch, Roster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;
use crate::difference::{Changed, Difference};
use costs::{SilentCost, cost_of};

/// A kind of change that an institution may follow without a new signature, as far as it neither weakens
/// anything nor spends more of the bound that noise gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routine {
    /// Fewer rounds, or more where they have no noise.
    Rounds,
    /// Addresses of members.
    Addresses,
    /// Epochs of the training in a round.
    #[serde(rename = "training-epochs")]
    Epochs,
    /// Members that come or go, if f, the number of faulty members that is tolerated, does not fall. Where
    /// contributions are masked, only members that go.
    Members,
    /// Questions about the rows of all members. The institution answers those that its own rules of disclosure
    /// allow.
    Questions,
}

impl Routine {
    /// Those that an institution follows if it says nothing else. It answers no question that it has not seen.
    pub const ALL: [Self; 4] = [Self::Rounds, Self::Addresses, Self::Epochs, Self::Members];
}

impl Agreement {
    /// Why an institution that has said nothing to a change from this agreement to the next one does not follow
    /// it, in a clause; `None` where all that changes is of these kinds and costs it nothing.
    ///
    /// What weakens anything, or spends more of the bound, is never followed in silence, whatever the kinds:
    /// that is asked of the [difference](Self::difference), and not of the names of keys. Addresses are the one
    /// exception. What is of these kinds is computed as what they alone would lead to, so that a change of
    /// anything else, of a key that does not exist yet too, is none of them.
    pub fn needs_signature(&self, next: &Self, kinds: &[Routine]) -> Option<String> {
        let difference = self.difference(next);
        if difference.lowers_protection() {
            let Difference { before, after, .. } = difference;
            return Some(format!(
                "fewer members may break the rules than before: {} in place of {}",
                after.faulty, before.faulty
            ));
        }
        let mut changes = difference.changes.iter();
        changes
            .find_map(|change| costs(change, kinds))
            .or_else(|| self.unknown_colluder(next))
            .or_else(|| {
                let other = || "it changes more than what its [policy] accepts in silence".into();
                (!self.leads_to(next, kinds)).then(other)
            })
    }

    /// That somebody comes in who may collude. Nobody but the institution can say whether it trusts the newcomer
    /// not to, and what masks and noise protect rests on that.
    fn unknown_colluder(&self, next: &Self) -> Option<String> {
        next.epoch.protocol.privacy.masked()?;
        let known = |silo: &&Silo| self.epoch.roster.position(&silo.key).is_some();
        let new = next.epoch.roster.silos().iter().find(|silo| !known(silo))?;
        Some(format!(
            "{:?} comes in, and masked contributions are protected only as long as no more than the agreed number of \
             members collude",
            new.name
        ))
    }

    /// Returns whether changes of these kinds alone lead to the next agreement.
    fn leads_to(&self, next: &Self, kinds: &[Routine]) -> bool {
        let expected = self.changed_by(next, kinds);
        expected.is_some_and(|expected| {
            expected.epoch.roster.silos() == next.epoch.roster.silos()
                && expected.epoch.protocol == next.epoch.protocol
                && expected.epoch.format == next.epoch.format
                && expected.addresses == next.addresses
        })
    }

    /// This agreement with what is of these kinds as in the next one.
    fn changed_by(&self, next: &Self, kinds: &[Routine]) -> Option<Self> {
        let may = |kind| kinds.contains(&kind);
        let (before, after) = (&self.epoch.roster, &next.epoch.roster);
        let roster = if may(Routine::Members) { after } else { before };
        let of = |agreement: &Self, roster: &Roster, silo: &Silo| {
            let at = roster.position(&silo.key)?.at();
            agreement.addresses.get(at).cloned()
        };
        let addresses = |silo: &Silo| {
            let (old, new) = (of(self, before, silo), of(next, after, silo));
            if may(Routine::Addresses) {
                new.or(old)
            } else {
                old.or(new)
            }
        };
        let addresses: Option<Vec<_>> = roster.silos().iter().map(addresses).collect();
        let mut protocol = if before.len() == roster.len() {
            self.epoch.protocol.clone()
        } else {
            self.epoch.protocol.for_members(before.len(), roster.len())
        };
        if may(Routine::Rounds) {
            protocol.rounds = next.epoch.protocol.rounds;
        }
        let mut strategy_config = self.strategy_config.clone();
        if may(Routine::Epochs) {
            strategy_config.training.epochs = next.strategy_config.training.epochs;
        }
        if may(Routine::Questions) {
            protocol.blob_limit = self.blob_limit_with(&next.questions);
        }
        let questions = match may(Routine::Questions) {
            true => next.questions.clone(),
            false => self.questions.clone(),
        };
        strategy_config.set_rounds(protocol.rounds);
        let silos = roster.silos().to_vec();
        let epoch = Epoch::first_in(self.epoch.format, &Genesis { silos, protocol }).ok()?;
        let changed = Self {
            epoch: Arc::new(epoch),
            strategy_config,
            questions,
            addresses: addresses?,
            ..self.clone()
        };
        // Reading it computes everything that follows from the keys anew.
        Self::parse("the agreement that is expected", &changed.to_toml().ok()?).ok()
    }
}

/// Returns what a change costs an institution that says nothing, or that it is of no kind that it follows.
fn costs(change: &Changed, kinds: &[Routine]) -> Option<String> {
    let row = cost_of(&change.listed);
    let excepted = row.is_some_and(|row| row.cost == SilentCost::Excepted);
    let set = |value: &Option<String>| value.clone().unwrap_or_else(|| "not set".into());
    let (key, before, after) = (&change.key, set(&change.before), set(&change.after));
    if let Some(why) = change.weaker.filter(|_| !excepted) {
        return Some(format!("`{key}` changes from {before} to {after}: {why}"));
    }
    let kind = row.and_then(|row| row.kind);
    if kind.is_some_and(|kind| kinds.contains(&kind)) {
        return None;
    }
    Some(format!(
        "its [policy] does not accept in silence that `{key}` changes"
    ))
}

#[cfg(test)]
mod tests;
