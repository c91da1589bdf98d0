//! Evidence for those who stand outside: what two sealed messages prove against a member, in any epoch
//! of a federation of which nothing is known but its id.
//!
//! A [`Lineage`] binds the roster of every epoch to that id: the federation's id is the hash of its
//! genesis, and a [`Passage`](crate::message::Passage) proves how one epoch follows another.
//! [`contradiction`] then checks both messages against the roster of their epoch.

use bytes::Bytes;

use crate::codec::CodecError;
use crate::envelope::{self, OpenError, Opened};
use crate::epochs::Epochs;
use crate::evidence::Evidence;
use crate::format::Formats;
use crate::frame::Frame;
use crate::hash::Hash;
use crate::identity::{SignatureClaim, Verifier};
use crate::message::Message;
use crate::parameters::{Epoch, Genesis, ParametersError};
use crate::roster::MemberIndex;
use crate::verify::Known;

/// Where an epoch comes from: the genesis of its federation, and the proofs of all changes of the
/// agreement since. Anybody can check it without a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The format and the genesis that the federation's id is a hash of: [`Genesis::encode`].
    pub genesis: Vec<u8>,
    /// The sealed [`Passage`](crate::message::Passage)s from one epoch to the next, oldest first.
    pub passages: Vec<Bytes>,
}

/// Why a lineage proves nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LineageError {
    /// The genesis does not decode.
    #[error("the genesis of the federation cannot be read: {0}")]
    Genesis(#[from] CodecError),
    /// A format that this program does not read.
    #[error(
        "the federation began with message format {0}, this program reads {spoken}",
        spoken = Formats::SPOKEN
    )]
    Unspoken(u32),
    /// A genesis that no federation can have.
    #[error("the genesis of the federation cannot be used: {0}")]
    ProtocolParameters(#[from] ParametersError),
    /// A passage that does not follow the epoch before it.
    #[error("change {nth} of the agreement is not proven: {why}")]
    Passage {
        /// Number of the change, from 1.
        nth: usize,
        /// Why the passage does not follow.
        why: Box<OpenError>,
    },
    /// Sealed bytes of something else.
    #[error("change {0} of the agreement is not proven: its bytes are no passage to another epoch")]
    NoPassage(usize),
}

impl Lineage {
    /// The lineage of the present one of these epochs.
    pub fn of(epochs: &Epochs) -> Self {
        let first = epochs
            .former
            .first()
            .map_or(&epochs.now, |(epoch, _)| epoch);
        let genesis = Genesis {
            silos: first.roster.silos().to_vec(),
            protocol: first.protocol.clone(),
        };
        let sealed = epochs.answers().into_iter();
        Self {
            genesis: genesis.encode(first.format),
            passages: sealed.map(|(_, passage)| passage).collect(),
        }
    }

    /// The epochs, oldest first, after every proof is verified.
    ///
    /// # Errors
    /// [`LineageError`]: the first thing that is not proven.
    pub fn epochs(&self, verifier: &dyn Verifier) -> Result<Vec<Epoch>, LineageError> {
        let (format, genesis) = Genesis::decode(&self.genesis)?;
        let spoken = u8::try_from(format).ok();
        let spoken = spoken.filter(|format| Formats::SPOKEN.contains(*format));
        let format = spoken.ok_or(LineageError::Unspoken(format))?;
        let mut now = Epoch::first_in(format, &genesis)?;
        let mut epochs = Vec::with_capacity(1 + self.passages.len());
        for (at, sealed) in self.passages.iter().enumerate() {
            let nth = at + 1;
            let unproven = |why| LineageError::Passage {
                nth,
                why: Box::new(why),
            };
            let opened = envelope::open(&now, verifier, &Known::default(), sealed);
            let Opened::Passage(passage) = opened.map_err(unproven)? else {
                return Err(LineageError::NoPassage(nth));
            };
            let next = passage.verify(&now, verifier);
            let next = next.map_err(|why| unproven(why.into()))?;
            epochs.push(std::mem::replace(&mut now, next));
        }
        epochs.push(now);
        Ok(epochs)
    }
}

/// Why two sealed messages prove nothing. Messages are counted from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unproven {
    /// No signed message.
    #[error("message {0} is too short, or nobody signed it")]
    Unsigned(usize),
    /// A message of another federation.
    #[error("message {0} belongs to another federation")]
    Federation(usize),
    /// Messages of two epochs.
    #[error(
        "the two messages are of different epochs, and what a member signed in one does not count in \
         another: they accuse nobody"
    )]
    Epochs,
    /// A message of an epoch that is not among those that are proven.
    #[error("the messages are of an epoch that the changes of the agreement do not lead to: {0}")]
    Unknown(Hash),
    /// Two senders.
    #[error("the messages are of two members, {0} and {1}: they accuse nobody")]
    Senders(MemberIndex, MemberIndex),
    /// A sender that is not in the roster of its epoch.
    #[error("message {nth} is of member {member}, and its epoch has no such member")]
    Stranger {
        /// Number of the message.
        nth: usize,
        /// Sender of the message.
        member: MemberIndex,
    },
    /// A message in another format than the agreement of its epoch says.
    #[error("message {nth} has format {found}, and the agreement of its epoch has format {agreed}")]
    Format {
        /// Number of the message.
        nth: usize,
        /// Format of the message.
        found: u8,
        /// Format that the agreement of its epoch says.
        agreed: u8,
    },
    /// A signature of somebody else.
    #[error("message {nth} is not signed with the key of {name}")]
    Signature {
        /// Number of the message.
        nth: usize,
        /// The name of its sender in the roster.
        name: String,
    },
    /// A message that does not decode.
    #[error("message {nth}: {why}")]
    Unreadable {
        /// Number of the message.
        nth: usize,
        /// Why the message does not decode.
        why: Box<OpenError>,
    },
    /// Two messages that the rules allow together.
    #[error("an honest member may sign both of its messages")]
    NoConflict,
}

/// What two sealed messages prove against their sender, and the epoch in which it signed them: one of
/// `epochs`, which are those of one federation.
///
/// # Errors
/// [`Unproven`]: the first reason for which they prove nothing.
pub fn contradiction<'a>(
    epochs: &'a [Epoch],
    verifier: &dyn Verifier,
    frames: [&[u8]; 2],
) -> Result<(&'a Epoch, Evidence), Unproven> {
    let (epoch, messages) = signed(epochs, verifier, &frames)?;
    let (one, other) = (&messages[0], &messages[1]);
    if one.sender != other.sender {
        return Err(Unproven::Senders(one.sender, other.sender));
    }
    let evidence = Evidence::of(one, other).ok_or(Unproven::NoConflict)?;
    Ok((epoch, evidence))
}

/// What a member of these epochs said in a sealed message, and in which of them.
///
/// # Errors
/// [`Unproven`]: nobody of them signed it.
pub fn statement<'a>(
    epochs: &'a [Epoch],
    verifier: &dyn Verifier,
    frame: &[u8],
) -> Result<(&'a Epoch, Message), Unproven> {
    let (epoch, mut messages) = signed(epochs, verifier, &[frame])?;
    let message = messages.pop().ok_or(Unproven::Unsigned(1))?;
    Ok((epoch, message))
}

/// The messages in these sealed ones, which members of one epoch signed.
fn signed<'a>(
    epochs: &'a [Epoch],
    verifier: &dyn Verifier,
    frames: &[&[u8]],
) -> Result<(&'a Epoch, Vec<Message>), Unproven> {
    let frames: Vec<_> = frames.iter().map(|frame| Frame::from(*frame)).collect();
    let mut claims = Vec::with_capacity(frames.len());
    for (at, frame) in frames.iter().enumerate() {
        let nth = at + 1;
        let (Some(claimed), Some(header)) = (frame.claimed(), frame.header()) else {
            return Err(Unproven::Unsigned(nth));
        };
        let ours = |epoch: &Epoch| header.federation == epoch.federation;
        if !epochs.iter().all(ours) {
            return Err(Unproven::Federation(nth));
        }
        claims.push((claimed, header));
    }
    let first = claims.first().map(|(_, header)| header.epoch);
    let first = first.ok_or(Unproven::Unsigned(1))?;
    let other = claims.iter().any(|(_, header)| header.epoch != first);
    if other {
        return Err(Unproven::Epochs);
    }
    let epoch = epochs.iter().find(|epoch| epoch.id == first);
    let epoch = epoch.ok_or(Unproven::Unknown(first))?;
    let mut messages = Vec::with_capacity(frames.len());
    for (at, ((claimed, header), frame)) in claims.into_iter().zip(&frames).enumerate() {
        let nth = at + 1;
        let (member, statement, signature) = claimed;
        let (found, agreed) = (header.format, epoch.format);
        if found != agreed {
            return Err(Unproven::Format { nth, found, agreed });
        }
        let key = epoch.roster.key(member);
        let key = key.ok_or(Unproven::Stranger { nth, member })?;
        let valid = verifier.verify(&SignatureClaim {
            key,
            message: &statement,
            signature,
        });
        if !valid {
            let name = epoch.roster.name(member).to_owned();
            return Err(Unproven::Signature { nth, name });
        }
        let message = envelope::read(frame).map_err(|why| Unproven::Unreadable {
            nth,
            why: Box::new(why),
        })?;
        messages.push(message);
    }
    Ok((epoch, messages))
}

#[cfg(test)]
mod tests;
