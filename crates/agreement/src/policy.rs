//! Which changes of an agreement an institution follows without signing the new one.

use std::sync::Arc;

use protocol::charter::Genesis;
use protocol::roster::Silo;
use protocol::{Epoch, Roster};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;

/// A kind of change that weakens nothing, so that an institution may follow it without a new signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Routine {
    /// More rounds, or fewer.
    Rounds,
    /// Addresses of members.
    Addresses,
    /// Epochs of the training in a round.
    Epochs,
    /// Members that come, go, or have another key, if f, the number of faulty members that is tolerated,
    /// stays the same.
    /// Counts only where contributions are not masked: nothing is today.
    Members,
}

impl Routine {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rounds, Self::Addresses, Self::Epochs, Self::Members];
}

impl Agreement {
    /// Whether all that changes from this agreement to the next one is of these kinds. Found by
    /// computing what they alone would lead to, so that a change of anything else, of a key that does
    /// not exist yet too, is none of them.
    pub fn changes_only(&self, next: &Self, kinds: &[Routine]) -> bool {
        let expected = self.changed_by(next, kinds);
        expected.is_some_and(|expected| {
            expected.epoch.roster.silos() == next.epoch.roster.silos()
                && expected.epoch.charter == next.epoch.charter
                && expected.epoch.format == next.epoch.format
                && expected.addresses == next.addresses
        })
    }

    /// This agreement with what is of these kinds as in the next one.
    fn changed_by(&self, next: &Self, kinds: &[Routine]) -> Option<Self> {
        let may = |kind| kinds.contains(&kind);
        let (before, after) = (&self.epoch.roster, &next.epoch.roster);
        let roster = if may(Routine::Members) && after.faulty() >= before.faulty() {
            after
        } else {
            before
        };
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
        let mut charter = if before.len() == roster.len() {
            self.epoch.charter.clone()
        } else {
            self.epoch.charter.for_members(before.len(), roster.len())
        };
        if may(Routine::Rounds) {
            charter.rounds = next.epoch.charter.rounds;
        }
        let mut strategy_config = self.strategy_config.clone();
        if may(Routine::Epochs) {
            strategy_config.training.epochs = next.strategy_config.training.epochs;
        }
        strategy_config.set_rounds(charter.rounds);
        let silos = roster.silos().to_vec();
        let epoch = Epoch::first_in(self.epoch.format, &Genesis { silos, charter }).ok()?;
        let changed = Self {
            epoch: Arc::new(epoch),
            strategy_config,
            addresses: addresses?,
            ..self.clone()
        };
        // Reading it computes everything that follows from the keys anew.
        Self::parse("the agreement that is expected", &changed.to_toml().ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::SecretKey;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn agreement() -> Agreement {
        let example = Agreement::parse("federation.toml", EXAMPLE).unwrap();
        // As it is written by the commands.
        Agreement::parse("federation.toml", &example.to_toml().unwrap()).unwrap()
    }

    /// The agreement with a text replaced, which must be there.
    fn with(from: &str, to: &str) -> Agreement {
        let text = agreement().to_toml().unwrap();
        assert!(text.contains(from), "{from:?} is in {text}");
        Agreement::parse("new", &text.replacen(from, to, 1)).unwrap()
    }

    fn without(kind: Routine) -> Vec<Routine> {
        let all = Routine::ALL.into_iter();
        all.filter(|other| *other != kind).collect()
    }

    #[test]
    fn every_kind_goes_on_where_the_policy_names_it_and_only_there() {
        let old = agreement();
        let epochs = format!("epochs = {}", old.strategy_config.training.epochs);
        let address = &old.addresses[0][0];
        let key = SecretKey::from_bytes(&[9; 32]).public();
        let parsed = |text: String| Agreement::parse("new", &text).unwrap();
        let rounds = format!("rounds = {}", old.epoch.charter.rounds);
        let changes = [
            (Routine::Rounds, with(&rounds, "rounds = 77")),
            (Routine::Epochs, with(&epochs, "epochs = 77")),
            (Routine::Addresses, with(address, "/ip4/192.0.2.7/tcp/4001")),
            (
                Routine::Members,
                parsed(old.admitting("new", key, None, Vec::new()).unwrap()),
            ),
            (
                Routine::Members,
                parsed(old.rekeyed(&old.epoch.roster.silos()[0].name, key).unwrap()),
            ),
        ];
        for (kind, new) in &changes {
            assert!(old.changes_only(new, &Routine::ALL), "{kind:?}");
            assert!(!old.changes_only(new, &without(*kind)), "{kind:?}");
        }
        assert!(old.changes_only(&old, &[]));
    }

    #[test]
    fn what_weakens_or_is_of_no_kind_never_goes_on() {
        let old = agreement();
        let charter = old.epoch.charter.clone();
        let set = |key: &str, value: &str| {
            let text = old.to_toml().unwrap();
            let written = |line: &&str| !line.starts_with(&format!("{key} = "));
            let lines: Vec<_> = text.lines().filter(written).collect();
            let with = format!("[charter]\n{key} = {value}");
            Agreement::parse("new", &lines.join("\n").replacen("[charter]", &with, 1)).unwrap()
        };
        let others = [
            set("verification", "\"inclusion\""),
            set("discovery", "true"),
            set("max-model-norm", "1e30"),
            set("blob-limit", &(charter.blob_limit + 1).to_string()),
        ];
        for (at, new) in others.iter().enumerate() {
            assert!(!old.changes_only(new, &Routine::ALL), "{at}");
        }
        // One of no kind beside one of a kind.
        let text = others[0].to_toml().unwrap();
        let rounds = format!("rounds = {}", charter.rounds);
        let both = Agreement::parse("new", &text.replacen(&rounds, "rounds = 77", 1)).unwrap();
        assert_eq!(both.epoch.charter.rounds, 77);
        assert!(!old.changes_only(&both, &Routine::ALL));
    }

    #[test]
    fn members_that_go_need_a_signature_where_fewer_may_break_the_rules() {
        let mut four = agreement();
        while four.epoch.roster.len() < 4 {
            let nth = four.epoch.roster.len() as u8;
            let key = SecretKey::from_bytes(&[nth + 1; 32]).public();
            let text = four.admitting(&format!("new {nth}"), key, None, Vec::new());
            four = Agreement::parse("more", &text.unwrap()).unwrap();
        }
        while four.epoch.roster.len() > 4 {
            let last = four.epoch.roster.silos().last().unwrap().name.clone();
            four = Agreement::parse("fewer", &four.without(&last).unwrap()).unwrap();
        }
        let key = SecretKey::from_bytes(&[200; 32]).public();
        let five = four.admitting("fifth", key, None, Vec::new()).unwrap();
        let five = Agreement::parse("five", &five).unwrap();
        assert!(four.changes_only(&five, &[Routine::Members]));
        assert!(five.changes_only(&four, &[Routine::Members]));
        let three = four.without(&four.epoch.roster.silos()[0].name).unwrap();
        let three = Agreement::parse("three", &three).unwrap();
        assert!(!four.changes_only(&three, &Routine::ALL));
    }
}
