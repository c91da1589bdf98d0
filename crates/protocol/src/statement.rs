//! The bytes that a member signs for a message: a fixed header and the encoded body.

use crate::charter::Epoch;
use crate::codec;
use crate::format::Formats;
use crate::message::{Body, Kind};
use crate::roster::MemberIndex;

/// Format of messages, of the header and of everything in the body, that a new federation begins
/// with. An amendment may raise it: see [`Formats`].
pub const VERSION: u8 = Formats::SPOKEN.newest;
/// Bytes of the header: format 1, federation 32, epoch 32, round 8, view 8, sender 2, kind 1.
pub(crate) const HEADER: usize = 1 + 32 + 32 + 8 + 8 + 2 + 1;
/// Stands for the sender in the header of certificates and evidence, which are not signed as a whole.
pub(crate) const NO_SENDER: u16 = u16::MAX;

/// The bytes that `sender` signs for `body`.
pub fn statement(
    epoch: &Epoch,
    round: u64,
    view: u64,
    sender: MemberIndex,
    body: &Body,
) -> Vec<u8> {
    let mut bytes = header(epoch, round, view, sender.0, body.kind());
    bytes.extend_from_slice(&codec::encode(body));
    bytes
}

/// The header of a message, with room for a signature and a small body behind it.
pub(crate) fn header(epoch: &Epoch, round: u64, view: u64, sender: u16, kind: Kind) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 128);
    bytes.push(epoch.format);
    bytes.extend_from_slice(&epoch.federation.0);
    bytes.extend_from_slice(&epoch.id.0);
    bytes.extend_from_slice(&round.to_le_bytes());
    bytes.extend_from_slice(&view.to_le_bytes());
    bytes.extend_from_slice(&sender.to_le_bytes());
    bytes.push(kind as u8);
    bytes
}
