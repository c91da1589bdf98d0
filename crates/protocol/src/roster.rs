//! The roster: the members of a federation, and the sizes f and q that follow from their number.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::identity::{PublicKey, VerifyingKey};
use crate::name::{self, NameError};

/// A member's position in the roster, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberIndex(pub u16);

impl MemberIndex {
    /// The position as an index into lists that are ordered like the roster.
    pub fn at(self) -> usize {
        usize::from(self.0)
    }
}

impl std::fmt::Display for MemberIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// One institution in the roster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silo {
    /// Name of the institution, unique and valid for [`name::check`].
    pub name: String,
    /// Public key of the institution, unique.
    pub key: PublicKey,
    /// Most training rows that the institution may claim, which are its weight where a strategy weighs
    /// by rows; between 1 and [`MOST_ROWS`]. `None`: it declared none, and may claim up to
    /// [`MOST_ROWS`].
    pub rows: Option<u64>,
}

/// Most training rows that any member may claim: 2⁵³, the largest number up to which an `f64` holds
/// every whole number.
pub const MOST_ROWS: u64 = 1 << 53;

/// Most members of a federation.
pub const MOST_MEMBERS: usize = 1000;

/// Reason for which a list of institutions is not a roster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RosterError {
    /// No member, or more than [`MOST_MEMBERS`].
    #[error("a roster has 1 to {MOST_MEMBERS} members, this one has {0}")]
    Size(usize),
    /// An unusable name.
    #[error("the name of member {member} {why}")]
    BadName {
        /// The member's place in the list, from 1.
        member: usize,
        /// Fault of the name.
        why: NameError,
    },
    /// Two members with names that are equal, or differ only in case or blanks.
    #[error(
        "two members are named {0:?} (case and blanks do not count): give each institution its own name"
    )]
    Name(String),
    /// Two members with one key.
    #[error("{0:?} has the same key as another member: create an identity for each institution")]
    SharedKey(String),
    /// A key that is no point of the curve, or a weak one.
    #[error("the key of {0:?} is not a usable Ed25519 key: create a new identity")]
    WeakKey(String),
    /// A number of declared rows that no contribution can have.
    #[error(
        "member {member} declares {rows} training rows, they must be between 1 and {MOST_ROWS}"
    )]
    Rows {
        /// The member's place in the list, from 1.
        member: usize,
        /// Training rows that the member declares.
        rows: u64,
    },
}

/// The members of a federation in a fixed order, with their keys ready for use.
#[derive(Debug, Clone)]
pub struct Roster {
    silos: Vec<Silo>,
    keys: Vec<VerifyingKey>,
}

impl Roster {
    /// Checks names and keys.
    ///
    /// # Errors
    /// [`RosterError`]: size, names or keys that are not unique, unusable keys.
    pub fn new(silos: Vec<Silo>) -> Result<Self, RosterError> {
        if silos.len() > MOST_MEMBERS {
            return Err(RosterError::Size(silos.len()));
        }
        Self::simulated(silos)
    }

    /// Checks names and keys of a roster for a simulation in which nobody votes: it may have as many
    /// members as a [`MemberIndex`] can name.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn simulated(silos: Vec<Silo>) -> Result<Self, RosterError> {
        if silos.is_empty() || silos.len() > usize::from(u16::MAX) {
            return Err(RosterError::Size(silos.len()));
        }
        for (at, silo) in silos.iter().enumerate() {
            let member = at + 1;
            name::check(&silo.name).map_err(|why| RosterError::BadName { member, why })?;
            if let Some(rows) = silo.rows.filter(|rows| !(1..=MOST_ROWS).contains(rows)) {
                return Err(RosterError::Rows { member, rows });
            }
        }
        let (mut names, mut seen, mut keys) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        for silo in &silos {
            if !names.insert(name::folded(&silo.name)) {
                return Err(RosterError::Name(silo.name.clone()));
            }
            if !seen.insert(silo.key) {
                return Err(RosterError::SharedKey(silo.name.clone()));
            }
            let key = VerifyingKey::new(&silo.key);
            keys.push(key.ok_or_else(|| RosterError::WeakKey(silo.name.clone()))?);
        }
        Ok(Self { silos, keys })
    }

    /// The members.
    pub fn silos(&self) -> &[Silo] {
        &self.silos
    }

    /// The name of a member.
    pub fn name(&self, member: MemberIndex) -> &str {
        self.silos.get(member.at()).map_or("?", |silo| &silo.name)
    }

    /// The key of a member; `None` if there is no such position.
    pub fn key(&self, member: MemberIndex) -> Option<&VerifyingKey> {
        self.keys.get(member.at())
    }

    /// Most training rows that a member may claim: what it declared, or [`MOST_ROWS`].
    pub fn rows(&self, member: MemberIndex) -> u64 {
        let silo = self.silos.get(member.at());
        silo.and_then(|silo| silo.rows).unwrap_or(MOST_ROWS)
    }

    /// The names of the members that declared no rows.
    pub fn undeclared(&self) -> Vec<&str> {
        let silos = self.silos.iter().filter(|silo| silo.rows.is_none());
        silos.map(|silo| &*silo.name).collect()
    }

    /// The position of the member with this key.
    pub fn position(&self, key: &PublicKey) -> Option<MemberIndex> {
        let at = self.silos.iter().position(|silo| silo.key == *key)?;
        Some(MemberIndex(at as u16))
    }

    /// The position of the institution that has this key in the roster `present` of another epoch: the member here
    /// with the key or, because keys are replaced, with the institution's present name.
    pub fn position_of(&self, key: &PublicKey, present: &Self) -> Option<MemberIndex> {
        self.position(key).or_else(|| {
            let name = present.name(present.position(key)?);
            let mut members = self.members();
            members.find(|member| self.name(*member) == name)
        })
    }

    /// All positions, ascending.
    pub fn members(&self) -> impl DoubleEndedIterator<Item = MemberIndex> + use<> {
        (0..self.silos.len() as u16).map(MemberIndex)
    }

    /// n, the number of members.
    pub fn len(&self) -> usize {
        self.silos.len()
    }

    /// Always false: a roster has at least one member.
    pub fn is_empty(&self) -> bool {
        self.silos.is_empty()
    }

    /// f = ⌊(n−1)/3⌋, the number of members that may be faulty in any way. With fewer than four
    /// members it is 0: there is no protection against a Byzantine member.
    pub fn faulty(&self) -> usize {
        faulty(self.len())
    }

    /// q = ⌊(n+f)/2⌋+1, the number of votes in a certificate. Two quorums share an honest member.
    pub fn quorum(&self) -> usize {
        quorum(self.len())
    }
}

/// f of this many members: see [`Roster::faulty`].
pub fn faulty(members: usize) -> usize {
    members.saturating_sub(1) / 3
}

/// q of this many members: see [`Roster::quorum`].
pub fn quorum(members: usize) -> usize {
    (members + faulty(members)) / 2 + 1
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::identity::SecretKey;

    fn roster(n: u8) -> Roster {
        let silo = |i: u8| Silo {
            name: format!("silo {i}"),
            key: SecretKey::from_bytes(&[i; 32]).public(),
            rows: None,
        };
        Roster::new((0..n).map(silo).collect()).unwrap()
    }

    #[test]
    fn faulty_members_and_quorums_equal_the_table_in_the_docs() {
        let sizes = |n| (roster(n).faulty(), roster(n).quorum());
        assert_eq!(sizes(4), (1, 3));
        assert_eq!(sizes(7), (2, 5));
        assert_eq!(sizes(10), (3, 7));
        assert_eq!(sizes(100), (33, 67));
        assert_eq!([sizes(1), sizes(2), sizes(3)], [(0, 1), (0, 2), (0, 2)]);
    }

    #[test]
    fn an_institution_is_known_by_key_and_else_by_its_present_name() {
        let (before, key) = (roster(4), SecretKey::from_bytes(&[9; 32]).public());
        let mut silos = before.silos().to_vec();
        silos.remove(0);
        silos[1].key = key;
        let now = Roster::new(silos).unwrap();
        assert_eq!(before.position_of(&key, &now), Some(MemberIndex(2)));
        let same = now.silos()[2].key;
        assert_eq!(before.position_of(&same, &now), Some(MemberIndex(3)));
        // No member now, and none before.
        let other = SecretKey::from_bytes(&[8; 32]).public();
        assert_eq!(before.position_of(&other, &now), None);
        assert_eq!(roster(2).position_of(&key, &now), None);
    }

    #[test]
    fn names_and_keys_are_unique() {
        let mut silos = roster(3).silos().to_vec();
        silos[2].name = "silo 0".into();
        assert_eq!(
            Roster::new(silos.clone()).unwrap_err(),
            RosterError::Name("silo 0".into())
        );
        silos[2].name = "Silo  0".into();
        assert_eq!(
            Roster::new(silos.clone()).unwrap_err(),
            RosterError::Name("Silo  0".into())
        );
        silos[2].name = "silo\nround 9 final".into();
        let why = NameError::Unprintable(10);
        assert_eq!(
            Roster::new(silos.clone()).unwrap_err(),
            RosterError::BadName { member: 3, why }
        );
        silos[2] = Silo {
            name: "other".into(),
            key: silos[1].key,
            rows: None,
        };
        assert_eq!(
            Roster::new(silos).unwrap_err(),
            RosterError::SharedKey("other".into())
        );
        assert_eq!(Roster::new(Vec::new()).unwrap_err(), RosterError::Size(0));
    }

    #[test]
    fn declared_rows_are_between_one_and_the_largest_exact_number() {
        let mut silos = roster(3).silos().to_vec();
        for rows in [0, MOST_ROWS + 1, u64::MAX] {
            silos[1].rows = Some(rows);
            let error = Roster::new(silos.clone()).unwrap_err();
            assert_eq!(error, RosterError::Rows { member: 2, rows });
        }
        for rows in [1, MOST_ROWS] {
            silos[1].rows = Some(rows);
            let roster = Roster::new(silos.clone()).unwrap();
            assert_eq!(roster.rows(MemberIndex(1)), rows);
            assert_eq!(roster.rows(MemberIndex(0)), MOST_ROWS);
            assert_eq!(roster.undeclared(), ["silo 0", "silo 2"]);
        }
        // One more than the most is not told apart from it as an `f64`.
        assert_eq!((MOST_ROWS + 1) as f64, MOST_ROWS as f64);
        assert_ne!((MOST_ROWS - 1) as f64, MOST_ROWS as f64);
    }
}
