//! The bytes that a member signs for a message: a fixed header and the encoded body.

use crate::codec;
use crate::format::Formats;
use crate::frame::Header;
use crate::message::Body;
use crate::parameters::Epoch;
use crate::roster::MemberIndex;

/// Format of messages, of the header and of everything in the body, that a new federation begins
/// with, unless its rounds are masked. An amendment may raise it: see [`Formats`].
pub const VERSION: u8 = Formats::FIRST;

/// The bytes that `sender` signs for `body`.
pub fn statement(
    epoch: &Epoch,
    round: u64,
    view: u64,
    sender: MemberIndex,
    body: &Body,
) -> Vec<u8> {
    let mut bytes = Header::new(epoch, round, view, Some(sender), body.kind()).to_bytes();
    bytes.extend_from_slice(&codec::encode(body));
    bytes
}
