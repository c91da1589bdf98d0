//! Decodes frames without verifying signatures: the monitor knows the true sender of each.

use protocol::MemberIndex;
use protocol::codec;
use protocol::envelope::OVERHEAD;
use protocol::evidence::Evidence;
use protocol::identity::Signature;
use protocol::message::{Body, Kind, Message};

/// Length of a frame before its signature, as `protocol::envelope` lays it out.
const HEADER: usize = OVERHEAD - 64;

/// A decoded frame, as far as the properties need it.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A member's own message.
    Message(Box<Message>),
    /// Evidence against a member.
    Evidence(Box<Evidence>),
    /// Anything else: certificates, whose votes were recorded when they were signed, and garbage.
    Other,
}

/// The kind in a frame's header, if there is one.
pub(crate) fn kind(frame: &[u8]) -> Option<Kind> {
    Kind::from_number(*frame.get(HEADER - 1)?)
}

/// Decodes a frame.
pub(crate) fn read_frame(frame: &[u8]) -> Frame {
    match kind(frame) {
        None | Some(Kind::Certificate) => Frame::Other,
        Some(Kind::Evidence) => frame
            .get(OVERHEAD..)
            .and_then(|body| codec::decode(body, frame.len()).ok())
            .map_or(Frame::Other, |evidence| Frame::Evidence(Box::new(evidence))),
        Some(_) => message(frame).map_or(Frame::Other, |message| Frame::Message(Box::new(message))),
    }
}

fn message(frame: &[u8]) -> Option<Message> {
    let (head, rest) = frame.split_at_checked(HEADER)?;
    let (signature, body) = rest.split_at_checked(64)?;
    let number = |at: usize| Some(u64::from_le_bytes(head[at..at + 8].try_into().ok()?));
    let body: Body = codec::decode(body, frame.len()).ok()?;
    Some(Message {
        round: number(65)?,
        view: number(73)?,
        sender: MemberIndex(u16::from_le_bytes([head[81], head[82]])),
        body,
        signature: Signature::from_bytes(signature.try_into().ok()?),
    })
}
