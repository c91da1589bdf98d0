//! Frames: sealed messages as they travel, with the header read once.
//!
//! The layout of a header stands in this file alone: `Header::to_bytes` writes it, `Header::read` reads
//! it.

use bytes::Bytes;

use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Kind, SignatureChecks};
use crate::parameters::Epoch;
use crate::roster::MemberIndex;

/// Bytes of the header: format 1, federation 32, epoch 32, round 8, view 8, sender 2, kind 1.
pub(crate) const HEADER: usize = 1 + 32 + 32 + 8 + 8 + 2 + 1;
/// Bytes before the body: the header and the signature.
pub const OVERHEAD: usize = HEADER + SIGNATURE;
/// Bytes of a signature.
const SIGNATURE: usize = 64;
/// Stands for the sender in the header of certificates and evidence, which are not signed as a whole.
const NO_SENDER: u16 = u16::MAX;

/// What the header of a frame says. Nothing in it is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The message format.
    pub format: u8,
    /// The federation's id.
    pub federation: Hash,
    /// The epoch's id.
    pub epoch: Hash,
    /// The round; 0 where the kind has none.
    pub round: u64,
    /// The view; 0 where the kind has none.
    pub view: u64,
    /// The sender; none of certificates and evidence.
    pub sender: Option<MemberIndex>,
    /// The number of the kind.
    pub number: u8,
    /// The kind, if there is one of that number.
    pub kind: Option<Kind>,
}

impl Header {
    /// The header of a message of this epoch.
    pub(crate) fn new(
        epoch: &Epoch,
        round: u64,
        view: u64,
        sender: Option<MemberIndex>,
        kind: Kind,
    ) -> Self {
        Self {
            format: epoch.format,
            federation: epoch.federation,
            epoch: epoch.id,
            round,
            view,
            sender,
            number: kind as u8,
            kind: Some(kind),
        }
    }

    /// The bytes of the header, with room for a signature and a small body behind them.
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let sender = self.sender.map_or(NO_SENDER, |sender| sender.0);
        let mut bytes = Vec::with_capacity(HEADER + 128);
        bytes.push(self.format);
        bytes.extend_from_slice(&self.federation.0);
        bytes.extend_from_slice(&self.epoch.0);
        bytes.extend_from_slice(&self.round.to_le_bytes());
        bytes.extend_from_slice(&self.view.to_le_bytes());
        bytes.extend_from_slice(&sender.to_le_bytes());
        bytes.push(self.number);
        bytes
    }

    /// Reads a header; `None` if the bytes are too few for one and a signature.
    fn read(bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes.get(..HEADER).filter(|_| bytes.len() >= OVERHEAD)?;
        let [format] = take(rest)?;
        let (federation, epoch) = (Hash(take(rest)?), Hash(take(rest)?));
        let round = u64::from_le_bytes(take(rest)?);
        let view = u64::from_le_bytes(take(rest)?);
        let sender = u16::from_le_bytes(take(rest)?);
        let [number] = take(rest)?;
        Some(Self {
            format,
            federation,
            epoch,
            round,
            view,
            sender: (sender != NO_SENDER).then_some(MemberIndex(sender)),
            number,
            kind: Kind::from_number(number),
        })
    }

    /// The sender as a message names it.
    pub fn sender_or_none(&self) -> MemberIndex {
        self.sender.unwrap_or(MemberIndex(NO_SENDER))
    }
}

/// The first bytes of a slice, which begins behind them afterwards.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// The bytes of a sealed message, and their header. Nothing is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// `None` if the bytes are too few for a header and a signature.
    header: Option<Header>,
    bytes: Bytes,
}

impl Frame {
    /// The header; `None` if the bytes are too few for one and a signature.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// All bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The kind in the header, if there is such a kind.
    pub fn kind(&self) -> Option<Kind> {
        self.header.as_ref()?.kind
    }

    /// The parts of a frame that has a header: the header with its bytes, the signature and the body.
    pub(crate) fn parts(&self) -> Option<FrameParts<'_>> {
        let header = self.header.as_ref()?;
        let (head, rest) = self.bytes.split_at_checked(HEADER)?;
        let (signature, body) = rest.split_first_chunk::<SIGNATURE>()?;
        Some(FrameParts {
            header,
            head,
            signature,
            body,
        })
    }

    /// The bytes of the body; `None` if there are too few for a header and a signature.
    pub fn body(&self) -> Option<&[u8]> {
        Some(self.parts()?.body)
    }

    /// The signature; `None` if the bytes are too few for a header and a signature.
    pub fn signature(&self) -> Option<Signature> {
        Some(Signature::from_bytes(self.parts()?.signature))
    }

    /// The id of the epoch that the bytes name; `None` if they are too few to name one. They may be too
    /// few for a header.
    pub fn epoch(&self) -> Option<Hash> {
        let mut rest = self.bytes.get(1 + 32..)?;
        take(&mut rest).map(Hash)
    }

    /// Whether this is laid out as a message of this federation in another epoch, in whatever format.
    pub fn is_of_other_epoch(&self, epoch: &Epoch) -> bool {
        let header = self.header.as_ref();
        header
            .is_some_and(|header| header.federation == epoch.federation && header.epoch != epoch.id)
    }

    /// The sender in the header, the bytes that it would have signed, and the signature. `None` for
    /// certificates and evidence, and for bytes that are too few.
    pub fn claimed(&self) -> Option<(MemberIndex, Vec<u8>, Signature)> {
        let parts = self.parts()?;
        let signature = Signature::from_bytes(parts.signature);
        Some((parts.header.sender?, parts.statement(), signature))
    }

    /// The number of signatures that opening this is expected to check, as kind and size tell. A
    /// [budget](crate::budget) charges it beforehand, and the true number afterwards.
    pub fn cost(&self, members: usize, quorum: usize) -> usize {
        // What is signed holds a signature of 64 bytes.
        let held = 1 + self.bytes.len() / SIGNATURE;
        match self.kind().map(Kind::checks) {
            None => 0,
            Some(SignatureChecks::One) => 1,
            Some(SignatureChecks::Two) => 2,
            Some(SignatureChecks::Quorum) => quorum,
            Some(SignatureChecks::MembersAndQuorum) => members + quorum,
            Some(SignatureChecks::Held) => held,
        }
    }
}

/// The parts of a [`Frame`] that has a header.
pub(crate) struct FrameParts<'a> {
    pub(crate) header: &'a Header,
    /// The bytes of the header.
    head: &'a [u8],
    pub(crate) signature: &'a [u8; SIGNATURE],
    pub(crate) body: &'a [u8],
}

impl FrameParts<'_> {
    /// The bytes that the sender would have signed.
    pub(crate) fn statement(&self) -> Vec<u8> {
        [self.head, self.body].concat()
    }
}

/// The bytes of a signed message, from what was signed and the signature.
pub(crate) fn assemble(statement: &[u8], signature: Signature) -> Bytes {
    let (head, body) = statement.split_at(HEADER);
    [head, &signature.to_bytes(), body].concat().into()
}

/// The bytes of a message without a sender: its body proves itself.
pub(crate) fn unsigned(epoch: &Epoch, view: u64, kind: Kind, body: &[u8]) -> Bytes {
    let head = Header::new(epoch, 0, view, None, kind).to_bytes();
    [&head, &[0; SIGNATURE][..], body].concat().into()
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        let header = Header::read(&bytes);
        Self { header, bytes }
    }
}

impl From<&Bytes> for Frame {
    fn from(bytes: &Bytes) -> Self {
        bytes.clone().into()
    }
}

impl From<&Frame> for Frame {
    fn from(frame: &Frame) -> Self {
        frame.clone()
    }
}

/// Copies the bytes.
impl From<&[u8]> for Frame {
    fn from(bytes: &[u8]) -> Self {
        Bytes::copy_from_slice(bytes).into()
    }
}

/// Copies the bytes.
impl From<&Vec<u8>> for Frame {
    fn from(bytes: &Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for kind in Kind::ALL {
            for sender in [None, Some(MemberIndex(513))] {
                let header = Header {
                    format: 9,
                    federation: Hash::of(b"federation"),
                    epoch: Hash::of(b"epoch"),
                    round: u64::MAX - 1,
                    view: 1 << 40,
                    sender,
                    number: kind as u8,
                    kind: Some(kind),
                };
                let mut bytes = header.to_bytes();
                assert_eq!(bytes.len(), HEADER);
                bytes.extend([7; SIGNATURE]);
                let frame = Frame::from(&bytes);
                assert_eq!(frame.header(), Some(&header));
                assert_eq!(frame.epoch(), Some(header.epoch));
                let too_few = Frame::from(&bytes[..OVERHEAD - 1]);
                assert_eq!((too_few.header(), too_few.kind()), (None, None));
            }
        }
    }
}
