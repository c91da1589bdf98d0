//! The epoch that an institution is in: the agreement in force, its own place in it, and whom its
//! node lets in.

use std::collections::BTreeSet;

use agreement::{Agreement, AmendError};
use bytes::Bytes;
use mesh::Contact;
use protocol::{Epochs, Hash, MemberIndex, PublicKey, Record};

use super::config::Institution;

/// An institution in the epoch in force.
pub struct Present {
    /// Its configuration, with the agreement in force, its position in it, and all members with their
    /// addresses. Behind them stand guests: former members, which may still have to learn that they
    /// are none any more.
    pub institution: Institution,
    /// What members of former epochs are answered.
    pub former: Vec<(Hash, Bytes)>,
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
///
/// # Errors
/// [`AmendError`]: the agreement in force cannot be read.
pub fn place(institution: &Institution, epochs: &Epochs) -> Result<Place, AmendError> {
    let key = institution.key.public();
    let Some(me) = epochs.now.roster.position(&key) else {
        let was = |epoch: &protocol::Epoch| epoch.roster.position(&key).is_some();
        return Ok(match epochs.former.iter().any(|(epoch, _)| was(epoch)) {
            true => Place::Left,
            false => Place::Outside,
        });
    };
    let first = &institution.agreement;
    let agreement = first.in_force(epochs)?;
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
    Ok(Place::Member(Box::new(Present {
        institution: Institution {
            agreement,
            me,
            roster,
            ..institution.clone()
        },
        former: epochs.answers(),
    })))
}

/// The members of the agreement in force. Where silo.toml names other addresses than the first
/// agreement, they count.
fn contacts(institution: &Institution, agreement: &Agreement) -> Vec<Contact> {
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
