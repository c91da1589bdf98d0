//! The epoch that an institution is in: the agreement in force, its own place in it, and whom its
//! node lets in.

use std::collections::BTreeSet;
use std::path::Path;

use agreement::Agreement;
use bytes::Bytes;
use mesh::Contact;
use protocol::accusation::Lineage;
use protocol::{Epochs, Hash, MemberIndex, PublicKey, Record};

use super::config::{Configured, Institution, SetupError};
use super::past::agreements;
use super::signature::{Signature, signature};
use crate::store;

/// An institution in the epoch in force.
pub struct Present {
    /// Its configuration, with the agreement in force, its position in it, and all members with their
    /// addresses. Behind them stand guests: former members, which may still have to learn that they
    /// are none any more.
    pub institution: Institution,
    /// What members of former epochs are answered.
    pub former: Vec<(Hash, Bytes)>,
    /// Where the epoch comes from.
    pub lineage: Lineage,
    /// The amendments that came into force, by hash.
    pub in_force: BTreeSet<Hash>,
    /// The agreements of the epochs before, oldest first.
    pub earlier: Vec<Agreement>,
    /// Whether the institution has signed it.
    pub signature: Signature,
}

/// Where an institution stands.
pub enum Place {
    /// It is a member.
    Member(Box<Present>),
    /// It was a member and is none any more.
    Left,
    /// It was never one.
    Outside,
}

/// Where an institution stands in the epoch that its journal has reached. `institution` has the
/// first agreement.
pub fn place(institution: &Institution, epochs: &Epochs) -> Place {
    let key = institution.key.public();
    let Some(me) = epochs.now.roster.position(&key) else {
        let was = |epoch: &protocol::Epoch| epoch.roster.position(&key).is_some();
        return match epochs.former.iter().any(|(epoch, _)| was(epoch)) {
            true => Place::Left,
            false => Place::Outside,
        };
    };
    let mut past = agreements(&institution.agreement, epochs);
    let signature = signature(institution, epochs, &past);
    let agreement = past.pop().expect("there is always one");
    let mut roster = contacts(institution, &agreement);
    let mut known: BTreeSet<PublicKey> = roster.iter().map(|contact| contact.key).collect();
    let former = epochs.former.iter();
    let silos = former.flat_map(|(epoch, _)| epoch.roster.silos());
    for silo in silos {
        if known.insert(silo.key) {
            roster.push(Contact {
                member: MemberIndex(roster.len() as u16),
                key: silo.key,
                // It finds the members.
                addresses: Vec::new(),
            });
        }
    }
    Place::Member(Box::new(Present {
        institution: Institution {
            agreement,
            me,
            roster,
            ..institution.clone()
        },
        former: epochs.answers(),
        lineage: Lineage::of(epochs),
        in_force: epochs
            .former
            .iter()
            .filter_map(|(_, passage)| Some(passage.change()?.amendment.hash()))
            .collect(),
        earlier: past,
        signature,
    }))
}

/// An institution with the agreement in force as far as its journal knows, which a running node may
/// be writing. One that has left has the first agreement.
///
/// # Errors
/// A sentence: an unusable configuration, a journal that cannot be read, or a key of no member.
pub fn present(file: &Path) -> Result<Institution, PresentError> {
    let configured = Configured::load(file).map_err(SetupError::from)?;
    let federation = configured.federation.clone();
    let (institution, place) = standing(configured)?;
    match place {
        Place::Member(present) => Ok(present.institution),
        Place::Left | Place::Outside if institution.is_first_member() => Ok(institution),
        Place::Left | Place::Outside => Err(SetupError::NotAMember {
            key: institution.key.public(),
            identity: institution.identity,
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
pub fn standing(configured: Configured) -> Result<(Institution, Place), PresentError> {
    let institution = configured.with_any_key()?;
    let state = &institution.state;
    let records = match store::has_journal(state) {
        true => store::snapshot(state)?.records,
        // A node that has not run yet.
        false => Vec::new(),
    };
    let first = institution.agreement.epoch.clone();
    let epochs = Epochs::replay(first, protocol_records(records))?;
    let place = place(&institution, &epochs);
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
    Store(#[from] store::OpenError),
    /// A change in the journal.
    #[error(transparent)]
    Change(#[from] protocol::change::ChangeError),
}

/// The members of the agreement in force. Where silo.toml names other addresses than the first
/// agreement, they count.
pub(super) fn contacts(institution: &Institution, agreement: &Agreement) -> Vec<Contact> {
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
pub fn protocol_records(records: Vec<silo::Record>) -> impl Iterator<Item = Record> {
    records.into_iter().filter_map(|record| match record {
        silo::Record::Protocol(record) => Some(record),
        _ => None,
    })
}
