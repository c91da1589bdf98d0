//! The format of journal records on disk: framed, and authenticated by a chain of MACs.
//!
//! ```text
//! record   sequence (u64 LE) │ length (u32 LE) │ payload │ mac
//! head     format (u32 LE) │ JournalHead │ mac
//! ```
//!
//! A MAC is BLAKE3 with a key that only this member can derive. The MAC of a record covers the MAC of
//! the record before it; the MAC of the head covers the number of records and the MAC of the last one.
//! So a changed, removed, swapped, added or truncated record is detected. A complete older copy of
//! the journal is not detected here; the other members notice it when its silo runs.

use protocol::{Hash, MemberIndex, PublicKey, SecretKey, codec};
use serde::{Deserialize, Serialize};

/// The format that is written, and the newest that is read.
pub(super) const FORMAT: u32 = 2;

/// Bytes of a MAC.
const MAC: usize = 32;
/// Bytes before the payload.
const FRONT: usize = 12;

/// The owner of a journal.
#[derive(Debug, Clone)]
pub struct Owner {
    /// The federation.
    pub federation: Hash,
    /// The silo's position in its roster.
    pub me: MemberIndex,
    /// The silo's identity; the key of the records' MACs is derived from it.
    pub key: SecretKey,
}

/// A BLAKE3 MAC.
pub(super) type Mac = [u8; MAC];

/// The head of a journal, which changes with every transaction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct JournalHead {
    /// The owner's federation, member and key.
    pub(super) federation: Hash,
    pub(super) member: MemberIndex,
    pub(super) key: PublicKey,
    /// Number of records.
    pub(super) records: u64,
    /// The MAC of the last record; of an empty journal, [`Framer::start`].
    pub(super) last: Mac,
    /// End of the audit log beside it, as that log reports it; empty where there is none.
    pub(super) log: Vec<u8>,
}

/// Reason for which bytes cannot be read as a head.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// A newer format.
    Newer(u32),
    /// Damaged.
    Damaged(&'static str),
}

/// Writes and verifies frames with the key of the owner.
pub(super) struct Framer(Mac);

impl Framer {
    /// A framer with the key of this owner.
    pub(super) fn new(owner: &Owner) -> Self {
        Self(owner.key.derive("journal", &[&owner.federation.0]))
    }

    /// The MAC that the first record follows.
    pub(super) fn start(&self) -> Mac {
        self.mac(&[b"start"])
    }

    /// The frame of a record after the one with the MAC `before`, and its own MAC.
    pub(super) fn record(&self, sequence: u64, before: &Mac, payload: &[u8]) -> (Vec<u8>, Mac) {
        let mut frame = Vec::with_capacity(FRONT + payload.len() + MAC);
        frame.extend(sequence.to_le_bytes());
        frame.extend((payload.len() as u32).to_le_bytes());
        frame.extend(payload);
        let mac = self.mac(&[b"record", before, &frame]);
        frame.extend(mac);
        (frame, mac)
    }

    /// Verifies that a record was written at this position, and returns its payload and its MAC.
    pub(super) fn open<'a>(
        &self,
        sequence: u64,
        before: &Mac,
        frame: &'a [u8],
    ) -> Result<(&'a [u8], Mac), &'static str> {
        let (framed, mac) = split(frame)?;
        let Some((front, payload)) = framed.split_at_checked(FRONT) else {
            return Err("it is too short");
        };
        if mac != self.mac(&[b"record", before, framed]) {
            return Err("it is not the record that was written at its position");
        }
        let length = payload.len() as u32;
        if front[..8] != sequence.to_le_bytes() || front[8..] != length.to_le_bytes() {
            return Err("its sequence number or length is wrong");
        }
        Ok((payload, mac))
    }

    /// The frame of a head.
    pub(super) fn head(&self, head: &JournalHead) -> Vec<u8> {
        let mut bytes = FORMAT.to_le_bytes().to_vec();
        bytes.extend(codec::encode(head));
        let mac = self.mac(&[b"head", &bytes]);
        bytes.extend(mac);
        bytes
    }

    /// Returns whether the owner wrote this head.
    pub(super) fn wrote(&self, head: &JournalHead, bytes: &[u8]) -> bool {
        self.head(head) == bytes
    }

    fn mac(&self, parts: &[&[u8]]) -> Mac {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    }
}

/// The payload of a record, checked only for its sequence number and length. Its author cannot be
/// verified without the key.
pub(super) fn unproven(sequence: u64, frame: &[u8]) -> Result<&[u8], &'static str> {
    let (framed, _) = split(frame)?;
    let Some((front, payload)) = framed.split_first_chunk::<FRONT>() else {
        return Err("it is too short");
    };
    let length = payload.len() as u32;
    if front[..8] != sequence.to_le_bytes() || front[8..] != length.to_le_bytes() {
        return Err("its sequence number or length is wrong");
    }
    Ok(payload)
}

/// The MAC of a record's frame, which the next record's covers. It is not verified.
pub(super) fn mac_of(frame: &[u8]) -> Option<Mac> {
    split(frame).ok().map(|(_, mac)| mac)
}

/// Reads a head without verifying its author.
pub(super) fn read_head(bytes: &[u8]) -> Result<JournalHead, Unread> {
    let Some((format, rest)) = bytes.split_first_chunk() else {
        return Err(Unread::Damaged("the head is too short"));
    };
    let format = u32::from_le_bytes(*format);
    if format > FORMAT {
        return Err(Unread::Newer(format));
    }
    if format < FORMAT {
        return Err(Unread::Damaged(
            "it has the format of an earlier version of this program",
        ));
    }
    let (head, _) = split(rest).map_err(Unread::Damaged)?;
    codec::decode(head, codec::LIMIT).map_err(|_| Unread::Damaged("the head cannot be read"))
}

fn split(bytes: &[u8]) -> Result<(&[u8], Mac), &'static str> {
    let (front, mac) = bytes.split_last_chunk().ok_or("it is too short")?;
    Ok((front, *mac))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    fn owner(seed: u8) -> Owner {
        Owner {
            federation: Hash([7; 32]),
            me: MemberIndex(1),
            key: SecretKey::from_bytes(&[seed; 32]),
        }
    }

    #[test]
    fn a_record_is_refused_at_another_position_or_with_another_key() {
        let framer = Framer::new(&owner(1));
        let start = framer.start();
        let (first, mac) = framer.record(0, &start, b"vote");
        let (second, _) = framer.record(1, &mac, b"vote");
        assert_eq!(framer.open(0, &start, &first), Ok((&b"vote"[..], mac)));
        assert!(framer.open(1, &start, &first).is_err());
        assert!(framer.open(1, &start, &second).is_err());
        assert!(framer.open(1, &mac, &second).is_ok());
        let other = Framer::new(&owner(2));
        assert!(other.open(0, &start, &first).is_err());
    }

    #[test]
    fn a_change_of_any_bit_of_a_record_or_head_is_detected() {
        let framer = Framer::new(&owner(1));
        let start = framer.start();
        let (record, last) = framer.record(0, &start, b"nonce");
        let head = JournalHead {
            federation: Hash([7; 32]),
            member: MemberIndex(1),
            key: owner(1).key.public(),
            records: 1,
            last,
            log: b"12 lines".to_vec(),
        };
        let bytes = framer.head(&head);
        assert_eq!(read_head(&bytes), Ok(head.clone()));
        for bit in 0..8 * record.len() {
            let mut record = record.clone();
            record[bit / 8] ^= 1 << (bit % 8);
            assert!(framer.open(0, &start, &record).is_err());
        }
        for bit in 0..8 * bytes.len() {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let same = read_head(&bytes).is_ok_and(|head| framer.wrote(&head, &bytes));
            assert!(!same);
        }
        for cut in 0..record.len() {
            assert!(framer.open(0, &start, &record[..cut]).is_err());
        }
    }

    #[test]
    fn head_and_record_have_their_pinned_bytes() {
        let owner = owner(1);
        let framer = Framer::new(&owner);
        let (record, last) = framer.record(0, &framer.start(), b"payload");
        let head = framer.head(&JournalHead {
            federation: owner.federation,
            member: owner.me,
            key: owner.key.public(),
            records: 1,
            last,
            log: b"12 lines".to_vec(),
        });
        let start = framer.start().to_vec();
        let parts = [("start", start), ("record", record), ("head", head)];
        golden::check("store/golden/journal.hex", &golden::lines(parts));
    }

    #[test]
    fn a_journal_of_an_earlier_format_is_refused_with_a_remedy() {
        let mut head = (FORMAT - 1).to_le_bytes().to_vec();
        head.extend([0; 200]);
        let Err(Unread::Damaged(why)) = read_head(&head) else {
            panic!("it is not of this format")
        };
        let said = crate::store::error::damaged("journal.redb".as_ref(), why).to_string();
        let parts = [
            "journal.redb",
            "earlier version",
            "start once with --journal-lost",
        ];
        assert!(
            parts.iter().all(|part| said.contains(part)) && !said.contains(". "),
            "{said}"
        );
    }

    #[test]
    fn a_head_of_a_newer_format_is_refused_with_its_format() {
        let mut head = (FORMAT + 1).to_le_bytes().to_vec();
        head.extend([0; 200]);
        assert_eq!(read_head(&head), Err(Unread::Newer(FORMAT + 1)));
    }
}
