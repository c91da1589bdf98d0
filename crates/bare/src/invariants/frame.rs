//! Decodes frames without verifying signatures: the monitor knows the true sender of each.

use protocol::codec;
use protocol::envelope::OVERHEAD;
use protocol::evidence::Evidence;
use protocol::message::{Kind, Message};

/// A decoded frame, as far as the properties need it.
#[derive(Debug)]
pub enum DecodedFrame {
    /// A member's own message.
    Message(Box<Message>),
    /// Evidence against a member.
    Evidence(Box<Evidence>),
    /// Anything else: certificates, whose votes were recorded when they were signed, and garbage.
    Other,
}

/// The kind in a frame's header, if there is one.
pub fn kind(frame: &[u8]) -> Option<Kind> {
    Kind::from_number(*frame.get(OVERHEAD - 64 - 1)?)
}

/// Decodes a frame.
pub fn read_frame(frame: impl Into<protocol::Frame>) -> DecodedFrame {
    read(&frame.into()).unwrap_or(DecodedFrame::Other)
}

fn read(frame: &protocol::Frame) -> Option<DecodedFrame> {
    let (header, body, limit) = (frame.header()?, frame.body()?, frame.bytes().len());
    match header.kind? {
        Kind::Certificate => None,
        Kind::Evidence => {
            let evidence = codec::decode(body, limit).ok()?;
            Some(DecodedFrame::Evidence(Box::new(evidence)))
        }
        _ => Some(DecodedFrame::Message(Box::new(Message {
            round: header.round,
            view: header.view,
            sender: header.sender_or_none(),
            body: codec::decode(body, limit).ok()?,
            signature: frame.signature()?,
        }))),
    }
}
