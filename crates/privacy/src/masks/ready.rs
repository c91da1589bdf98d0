//! The list of a round: who is ready, with which keys, and how many shares open it.

use curve25519_dalek::Scalar;

use super::group::{ENCODED, Point, PointError};
use super::keys::{MemberKeys, PublicPoints};
use super::polynomial::place;

/// Members of a federation with secure-aggregation rounds, at most. Work grows with the square of it.
pub const MOST_MEMBERS: usize = 1000;

/// The hash that binds all masks of a round to its list and to its decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Root(pub [u8; 32]);

impl Root {
    /// The hash "masked list" of the canonical bytes of a list and of its decision: label and parts are
    /// hashed behind their lengths, like all labelled hashes of the protocol.
    pub fn of(list: &[u8], decision: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [&b"masked list"[..], list, decision] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }
}

/// One member of a list, as its signed Contribution says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// Place of the member in the roster, from 0.
    pub position: u16,
    /// The bytes of A.
    pub exchange: [u8; ENCODED],
    /// The bytes of B.
    pub share: [u8; ENCODED],
}

/// Reason for which there can be no secure-aggregation round with a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadyError {
    /// Too many members.
    #[error("{0} members, a federation with secure-aggregation rounds has at most {MOST_MEMBERS}")]
    Members(u16),
    /// A quorum that is no quorum.
    #[error(
        "a quorum of {quorum} among {members} members: it must be more than half and at most all"
    )]
    Quorum {
        /// Members that are enough to agree.
        quorum: u16,
        /// Members of the roster.
        members: u16,
    },
    /// Fewer than a quorum.
    #[error("{ready} members are ready, a secure-aggregation round needs {quorum}")]
    Few {
        /// Members of the list.
        ready: usize,
        /// Members that a list needs.
        quorum: u16,
    },
    /// Not ascending, or twice the same.
    #[error("position {0} does not come after the one before it: the list must ascend")]
    Order(u16),
    /// Nobody in the roster has this position.
    #[error("position {position} is on the list, but the roster has {members} members")]
    Position {
        /// The position.
        position: u16,
        /// Members of the roster.
        members: u16,
    },
    /// A key that is no key.
    #[error("a key of the member at position {position} is refused: {why}")]
    Key {
        /// The member's position.
        position: u16,
        /// Fault of the key.
        why: PointError,
    },
}

/// Reason for which a member's own keys do not fit a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OwnKeysError {
    /// The member is not on the list.
    #[error("the own position {0} is not on the list: there is nothing to do in this round")]
    Absent(u16),
    /// The list has other keys for the member.
    #[error(
        "the list has other keys for the own position {0} than this silo has signed: it is refused"
    )]
    Foreign(u16),
}

/// One ready member, with its keys read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadyMember {
    pub(crate) position: u16,
    pub(crate) keys: PublicPoints,
    /// x, where its share lies.
    pub(crate) place: Scalar,
}

/// The list of a round, checked: the ready members in ascending order.
#[derive(Debug, Clone)]
pub struct ReadyList {
    root: Root,
    members: Vec<ReadyMember>,
    threshold: usize,
}

impl ReadyList {
    /// Reads the list with this root, in a roster of `members` of which `quorum` agree.
    ///
    /// # Errors
    ///
    /// If fewer than a quorum are ready, the list does not ascend, a position is not in the roster, or
    /// a key is not canonical or the identity.
    pub fn new(root: Root, members: u16, quorum: u16, list: &[Listed]) -> Result<Self, ReadyError> {
        if usize::from(members) > MOST_MEMBERS {
            return Err(ReadyError::Members(members));
        }
        if quorum > members || u32::from(quorum) * 2 <= u32::from(members) {
            return Err(ReadyError::Quorum { quorum, members });
        }
        if list.len() < usize::from(quorum) {
            let ready = list.len();
            return Err(ReadyError::Few { ready, quorum });
        }
        for pair in list.windows(2) {
            if pair[0].position >= pair[1].position {
                return Err(ReadyError::Order(pair[1].position));
            }
        }
        if let Some(last) = list.last().filter(|last| last.position >= members) {
            let position = last.position;
            return Err(ReadyError::Position { position, members });
        }
        let read = |listed: &Listed| {
            let position = listed.position;
            let key = |bytes| Point::decode(bytes).map_err(|why| ReadyError::Key { position, why });
            Ok(ReadyMember {
                position,
                keys: PublicPoints {
                    exchange: key(listed.exchange)?,
                    share: key(listed.share)?,
                },
                place: place(position),
            })
        };
        Ok(Self {
            root,
            threshold: list.len() - usize::from(members - quorum),
            members: list.iter().map(read).collect::<Result<_, _>>()?,
        })
    }

    /// The hash of list and decision.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Returns the number of members that are ready.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The positions of the ready, ascending.
    pub fn positions(&self) -> impl ExactSizeIterator<Item = u16> {
        self.members.iter().map(|member| member.position)
    }

    /// t = |ready| − (n − q): so many shares open the round, and every quorum has so many of the ready.
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// Bytes of a transcript: all Y, e, all u.
    pub fn transcript_bytes(&self) -> usize {
        ENCODED * (self.count() + self.threshold + 1)
    }

    pub(crate) fn members(&self) -> &[ReadyMember] {
        &self.members
    }

    /// The place on the list of the member with this position in the roster.
    pub(crate) fn index(&self, position: u16) -> Option<usize> {
        let found = self
            .members
            .binary_search_by_key(&position, |member| member.position);
        found.ok()
    }

    /// The place of the owner of `keys` on the list.
    pub(crate) fn own(&self, keys: &MemberKeys) -> Result<usize, OwnKeysError> {
        let position = keys.position();
        let index = self.index(position).ok_or(OwnKeysError::Absent(position))?;
        if self.members[index].keys != *keys.public() {
            return Err(OwnKeysError::Foreign(position));
        }
        Ok(index)
    }
}
