//! Reads what members say without checking who signed it: the watch sees every sender itself.

use protocol::MemberIndex;
use protocol::codec;
use protocol::envelope::OVERHEAD;
use protocol::evidence::Evidence;
use protocol::identity::Signature;
use protocol::message::{Body, Kind, Message};

/// Length of what stands before the signature; the layout is `protocol::envelope`'s.
const HEADER: usize = OVERHEAD - 64;

/// What a frame says, as far as properties depend on it.
#[derive(Debug)]
pub(crate) enum Spoken {
    /// A member's own message.
    Message(Box<Message>),
    /// An accusation.
    Evidence(Box<Evidence>),
    /// Anything else: certificates (their votes were seen when they were signed), garbage.
    Other,
}

/// The kind of a frame, if it is one.
pub(crate) fn kind(frame: &[u8]) -> Option<Kind> {
    Kind::from_number(*frame.get(HEADER - 1)?)
}

/// Reads a frame.
pub(crate) fn read(frame: &[u8]) -> Spoken {
    match kind(frame) {
        None | Some(Kind::Certificate) => Spoken::Other,
        Some(Kind::Evidence) => frame
            .get(OVERHEAD..)
            .and_then(|body| codec::decode(body, frame.len()).ok())
            .map_or(Spoken::Other, |evidence| {
                Spoken::Evidence(Box::new(evidence))
            }),
        Some(_) => {
            message(frame).map_or(Spoken::Other, |message| Spoken::Message(Box::new(message)))
        }
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
