//! The epoch that an institution is in: the agreement in force, its own place in it, and whom its
//! node lets in.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use agreement::Agreement;
use bytes::Bytes;
use mesh::Contact;
use protocol::accusation::Lineage;
use protocol::{Epoch, Epochs, Hash, PublicKey, Record};
use silo::JournalRecord;

use super::history::agreements;
use super::signed::{Owed, SignatureState, signature};
use crate::institution::config::{Configured, Institution, SetupError};
use crate::spending::{ContributionHistory, Spending};
use crate::store;

/// An institution in the epoch in force.
pub struct Present {
    /// Configuration of the institution, with the agreement in force, its position in it, and all members
    /// with their addresses.
    pub institution: Institution,
    /// Former members, which may still have to learn that they are none any more; without those whose
    /// key was stolen.
    pub guests: Vec<PublicKey>,
    /// What members of former epochs are answered.
    pub former: Vec<(Hash, Bytes)>,
    /// The epochs before, oldest first.
    pub past: Vec<Arc<Epoch>>,
    /// Where the epoch comes from.
    pub lineage: Lineage,
    /// The amendments that came into force, by hash.
    pub in_force: BTreeSet<Hash>,
    /// The agreements of the epochs before, oldest first.
    pub earlier: Vec<Agreement>,
    /// Whether the institution has signed it.
    pub signature: SignatureState,
    /// The rounds to which it contributed.
    pub contributed: ContributionHistory,
}

impl Present {
    /// Returns what the institution told and will tell under the agreement in force, as far as its journal and its
    /// ledger know.
    pub fn spending(&self) -> Spending {
        let institution = &self.institution;
        institution
            .site
            .spending(&institution.agreement, &self.contributed)
    }
}

/// Where an institution stands.
pub enum Membership {
    /// The institution is a member.
    Member(Box<Present>),
    /// The institution was a member and is none any more.
    Left,
    /// The institution was never a member.
    Outside,
}

/// Returns where an institution stands in the epoch that its journal, with these records, has reached. `institution`
/// has the first agreement.
pub fn place(institution: &Institution, epochs: &Epochs, records: &[JournalRecord]) -> Membership {
    let key = institution.key.public();
    let Some(me) = epochs.now.roster.position(&key) else {
        let was = |epoch: &protocol::Epoch| epoch.roster.position(&key).is_some();
        return if epochs.former.iter().any(|(epoch, _)| was(epoch)) {
            Membership::Left
        } else {
            Membership::Outside
        };
    };
    let mut past = agreements(&institution.agreement, epochs);
    let signature = signature(institution, epochs, &past);
    let agreement = past.pop().expect("there is always one");
    let roster = contacts(institution, &agreement);
    let mut institution = institution.under(agreement, me);
    institution.roster = roster;
    Membership::Member(Box::new(Present {
        institution,
        guests: guests(epochs),
        former: epochs.answers(),
        past: epochs.former.iter().map(|(over, _)| over.clone()).collect(),
        lineage: Lineage::of(epochs),
        in_force: epochs
            .former
            .iter()
            .filter_map(|(_, passage)| Some(passage.change()?.amendment.hash()))
            .collect(),
        earlier: past,
        signature,
        contributed: ContributionHistory::of(epochs, records, &key),
    }))
}

/// Former members that are told that they are none any more. One whose key was stolen is not: whoever
/// has the key would be told.
fn guests(epochs: &Epochs) -> Vec<PublicKey> {
    let changes = epochs
        .former
        .iter()
        .flat_map(|(_, passage)| &passage.blocks);
    let amendments = changes.filter_map(|block| Some(&block.change()?.amendment));
    let stolen = amendments.flat_map(|amendment| amendment.stolen.iter().copied());
    let mut known: BTreeSet<_> = keys(&epochs.now).chain(stolen).collect();
    let former = epochs.former.iter().flat_map(|(epoch, _)| keys(epoch));
    former.filter(|key| known.insert(*key)).collect()
}

/// The keys of the members of an epoch.
fn keys(epoch: &protocol::Epoch) -> impl Iterator<Item = PublicKey> {
    epoch.roster.silos().iter().map(|silo| silo.key)
}

/// An institution with the agreement in force as far as its journal knows, which a running node may
/// be writing. One that has left has the first agreement.
///
/// # Errors
/// A sentence: an unusable configuration, a journal that cannot be read, or a key of no member.
pub fn present(file: &Path) -> Result<Institution, PresentError> {
    present_and_contributed(file).map(|(institution, ..)| institution)
}

/// An institution under the agreement in force, what it contributed so far, and the signature that it owes.
pub(crate) type PresentAndContributed =
    (Institution, Option<ContributionHistory>, Option<Box<Owed>>);

/// As [`present`], with the rounds to which the institution contributed, `None` where it is no member now, and the
/// signature that is missing, if one is.
///
/// # Errors
/// As [`present`].
pub fn present_and_contributed(file: &Path) -> Result<PresentAndContributed, PresentError> {
    let configured = Configured::load(file).map_err(SetupError::from)?;
    let federation = configured.federation.clone();
    let (institution, place) = standing(configured)?;
    match place {
        Membership::Member(present) => {
            let owed = match present.signature {
                SignatureState::Owed(owed) => Some(owed),
                _ => None,
            };
            Ok((present.institution, Some(present.contributed), owed))
        }
        Membership::Left | Membership::Outside if institution.is_first_member() => {
            Ok((institution, None, None))
        }
        Membership::Left | Membership::Outside => Err(SetupError::NotAMember {
            key: institution.key.public(),
            identity: institution.configured.identity,
            federation,
        }
        .into()),
    }
}

/// An institution with the first agreement, and where it stands now as far as its journal knows, which a
/// running node may be writing.
///
/// # Errors
/// A sentence: a key that cannot be read, or a journal that cannot.
pub fn standing(configured: Configured) -> Result<(Institution, Membership), PresentError> {
    let institution = configured.with_any_key()?;
    let state = &institution.state;
    let records = if store::has_journal(state) {
        store::snapshot(state)?.records
    } else {
        // A node that has not run yet.
        Vec::new()
    };
    let first = institution.agreement.epoch.clone();
    let epochs = Epochs::replay(first, protocol_records(records.clone()))?;
    let place = place(&institution, &epochs, &records);
    Ok((institution, place))
}

/// Why the agreement in force cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum PresentError {
    /// The configuration, or the key.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The journal.
    #[error(transparent)]
    Store(#[from] store::StoreOpenError),
    /// A change in the journal.
    #[error(transparent)]
    Change(#[from] protocol::change::ChangeError),
}

/// The members of the agreement in force. Where node.toml names other addresses than the first
/// agreement, they count.
pub(in crate::institution) fn contacts(
    institution: &Institution,
    agreement: &Agreement,
) -> Vec<Contact> {
    let first = &institution.agreement;
    let roster = &agreement.epoch.roster;
    let members = roster
        .members()
        .zip(roster.silos())
        .zip(&agreement.addresses);
    members
        .map(|((member, silo), addresses)| {
            let before = first.epoch.roster.silos().iter();
            let before = before.zip(&first.addresses).zip(&institution.roster);
            let mut before = before.filter(|((old, _), _)| old.name == silo.name);
            let own = before
                .next()
                .filter(|((_, agreed), own)| **agreed != own.addresses);
            Contact {
                member,
                key: silo.key,
                addresses: own.map_or_else(|| addresses.clone(), |(_, own)| own.addresses.clone()),
            }
        })
        .collect()
}

/// The records of the protocol in a journal.
pub fn protocol_records(records: Vec<silo::JournalRecord>) -> impl Iterator<Item = Record> {
    records.into_iter().filter_map(|record| match record {
        silo::JournalRecord::Protocol(record) => Some(record),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use protocol::message::Amendment;
    use protocol::{MemberIndex, SecretKey};

    use super::*;
    use crate::fixture;

    fn key(number: u8) -> PublicKey {
        SecretKey::from_bytes(&[number; 32]).public()
    }

    #[test]
    fn former_members_are_guests_and_those_whose_key_was_stolen_are_not() {
        let first = Arc::new(fixture::epoch(fixture::silos(4, 0), fixture::protocol()));
        // One leaves; the key of another one was lost, that of a third stolen.
        let mut amendment = Amendment::leaving(&first, MemberIndex(3));
        (amendment.silos[1].key, amendment.silos[2].key) = (key(11), key(12));
        amendment.stolen = vec![key(2)];
        let epochs = fixture::amended(&first, [amendment]);
        assert_eq!(guests(&epochs), [key(1), key(3)]);
    }
}
