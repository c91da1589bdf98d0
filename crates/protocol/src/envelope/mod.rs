//! Envelopes: how a message is laid out and signed, and the one way in for bytes from outside.
//!
//! ```text
//! version 1 │ federation 32 │ epoch 32 │ round 8 │ view 8 │ sender 2 │ kind 1 │ signature 64 │ body
//! ```
//!
//! The numbers are bytes; integers are little-endian. The signature covers header and body.
//! [`open`] reads the header without decoding anything, so that bytes of strangers are refused
//! before anything is built from them.

use bytes::Bytes;

use crate::certificate::{Certificate, CertificateError};
use crate::change::PassageError;
use crate::codec::{self, CodecError};
use crate::evidence::{Evidence, EvidenceError};
use crate::format::Formats;
use crate::frame::{Frame, FrameParts, assemble, unsigned};
use crate::hash::Hash;
use crate::identity::{SecretKey, Signature, SignatureClaim, Verifier};
use crate::message::{Body, Content, Kind, Message, Passage};
use crate::parameters::Epoch;
use crate::roster::MemberIndex;
use crate::verify::{approvals_hold, inclusions_hold, keys_hold, message_holds};

pub use crate::frame::{Header, OVERHEAD};
pub use crate::statement::{VERSION, statement};
pub use crate::verify::{Known, KnownVotes};

/// The content of bytes that [`open`] accepted.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// A message of a member.
    Message(Message),
    /// A certificate; anybody may have sent it.
    Certificate(Certificate),
    /// Evidence against a member; anybody may have sent it.
    Evidence(Box<Evidence>),
    /// Proof that the epoch is over; anybody may have sent it.
    Passage(Box<Passage>),
    /// A certificate or evidence that proves only what is [`Known`]. It was not verified, so its
    /// content is left out.
    Known,
}

impl Opened {
    /// A copy of this, or [`Opened::Known`] if it proves only what is in `known`.
    pub fn unless_in(&self, known: &Known) -> Self {
        match self {
            Self::Certificate(certificate) if known.covers(certificate) => Self::Known,
            Self::Evidence(evidence) if known.accused.contains(&evidence.member) => Self::Known,
            opened => opened.clone(),
        }
    }
}

/// Reason for which [`open`] refused bytes.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// Shorter than a header with a signature, or longer than a message of this federation can be.
    #[error("a message has between {OVERHEAD} and {limit} bytes, this one has {got}")]
    Size {
        /// Bytes received.
        got: usize,
        /// Most that are allowed.
        limit: usize,
    },
    /// Another message format than that of the epoch.
    #[error("message format {found}, the agreement in force has format {agreed}")]
    Format {
        /// Format of the message.
        found: u8,
        /// Format of the epoch.
        agreed: u8,
    },
    /// A message format that this program does not read.
    #[error("message format {0}, this program reads {spoken}", spoken = Formats::SPOKEN)]
    Unspoken(u8),
    /// A message of another federation.
    #[error("the message belongs to another federation")]
    Federation,
    /// A message of another epoch.
    #[error(
        "the message belongs to another epoch: its sender has another roster or other protocol parameters"
    )]
    Epoch,
    /// A number that is no kind of message.
    #[error("message kind {0} does not exist: kinds are 1 to {kinds}", kinds = Kind::ALL.len())]
    Kind(u8),
    /// A round or view where messages of this kind have none, or none where they have one.
    #[error("a {kind:?} message cannot have round {round} and view {view} in its header")]
    Header {
        /// The kind.
        kind: Kind,
        /// The round in the header.
        round: u64,
        /// The view in the header.
        view: u64,
    },
    /// A sender that is not in the roster.
    #[error("the sender is member {0}, which is not in the roster")]
    Stranger(MemberIndex),
    /// A signature that does not verify under the sender's key.
    #[error("the signature is not that of member {0}")]
    Signature(MemberIndex),
    /// A body that does not decode.
    #[error("the body of the message is unreadable: {0}")]
    Body(#[from] CodecError),
    /// The body contradicts the header.
    #[error("the body of the message is not what its header says")]
    Mislabelled,
    /// A certificate that proves nothing.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Inclusions of a proposal that do not verify.
    #[error(
        "the inclusions of a proposal are not signatures of distinct members in ascending order"
    )]
    Inclusions,
    /// Keys in a list that do not verify.
    #[error("the keys in a list are not signed by distinct members in ascending order")]
    Keys,
    /// Approvals of a proposed change that do not verify.
    #[error("the approvals of a proposed change are not signatures of members")]
    Approvals,
    /// A passage to another epoch that proves nothing.
    #[error(transparent)]
    Passage(#[from] PassageError),
    /// Evidence that shows no fault.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

/// Signs `body`. Gives the message, and its bytes for the wire.
pub fn sign(
    epoch: &Epoch,
    key: &SecretKey,
    round: u64,
    view: u64,
    sender: MemberIndex,
    body: Body,
) -> (Message, Bytes) {
    let statement = statement(epoch, round, view, sender, &body);
    let signature = key.sign(&statement);
    let message = Message {
        round,
        view,
        sender,
        body,
        signature,
    };
    (message, assemble(&statement, signature))
}

/// The bytes for the wire of a message that was signed before.
pub fn reseal(epoch: &Epoch, message: &Message) -> Bytes {
    let statement = statement(
        epoch,
        message.round,
        message.view,
        message.sender,
        &message.body,
    );
    assemble(&statement, message.signature)
}

/// The bytes for the wire of a certificate. They do not depend on who sends it.
pub fn sign_certificate(epoch: &Epoch, certificate: &Certificate) -> Bytes {
    unsigned(
        epoch,
        certificate.view,
        Kind::Certificate,
        &codec::encode(certificate),
    )
}

/// The bytes for the wire of evidence.
pub fn sign_evidence(epoch: &Epoch, evidence: &Evidence) -> Bytes {
    unsigned(epoch, 0, Kind::Evidence, &codec::encode(evidence))
}

/// The bytes for the wire of the proof that an epoch is over.
pub fn sign_passage(epoch: &Epoch, passage: &Passage) -> Bytes {
    unsigned(epoch, 0, Kind::Passage, &codec::encode(passage))
}

/// Bytes that name an epoch and hold nothing else: a member that hears of an epoch that it does not
/// know sends them, and is answered with the passage to it. They do not [`open`].
pub fn hail(epoch: &Epoch) -> Bytes {
    unsigned(epoch, 0, Kind::Passage, &[])
}

/// Returns true if a frame is laid out as a message of this federation in another epoch, in whatever format.
/// Nothing else is checked.
pub fn is_of_other_epoch(epoch: &Epoch, frame: impl Into<Frame>) -> bool {
    frame.into().is_of_other_epoch(epoch)
}

/// The id of the epoch that a frame names; None for bytes that are too few. Nothing is checked.
pub fn epoch_of(frame: impl Into<Frame>) -> Option<Hash> {
    frame.into().epoch()
}

/// The sender that a frame names, the bytes that it would have signed, and the signature. None for
/// certificates and evidence, and for bytes that are too few. Nothing is checked.
pub fn claimed(frame: impl Into<Frame>) -> Option<(MemberIndex, Vec<u8>, Signature)> {
    frame.into().claimed()
}

/// The message in sealed bytes. Neither its signature nor anything else in it is checked.
///
/// # Errors
/// [`OpenError`]: too short, another format, a kind that has no sender, an unreadable body.
pub fn read(frame: impl Into<Frame>) -> Result<Message, OpenError> {
    let frame = frame.into();
    let (got, limit) = (frame.bytes().len(), codec::LIMIT);
    let parts = frame.parts().ok_or(OpenError::Size { got, limit })?;
    let header = parts.header;
    if !Formats::SPOKEN.contains(header.format) {
        return Err(OpenError::Unspoken(header.format));
    }
    let sender = header.sender.ok_or(OpenError::Mislabelled)?;
    let body: Body = codec::decode(parts.body, limit)?;
    if Some(body.kind()) != header.kind {
        return Err(OpenError::Mislabelled);
    }
    Ok(Message {
        round: header.round,
        view: header.view,
        sender,
        body,
        signature: Signature::from_bytes(parts.signature),
    })
}

/// The header of a frame; `None` if the bytes are too few. Nothing is checked.
pub fn heading(frame: impl Into<Frame>) -> Option<Header> {
    frame.into().header().copied()
}

/// The number of signatures that opening a frame is expected to check: see [`Frame::cost`].
pub fn cost(epoch: &Epoch, frame: impl Into<Frame>) -> usize {
    let (members, quorum) = (epoch.roster.len(), epoch.roster.quorum());
    frame.into().cost(members, quorum)
}

/// Opens bytes from outside. Checks, in this order: size, federation, epoch, format, kind, header,
/// membership, signature, encoding; at last every certificate and signature in the body that is not
/// `known`.
///
/// # Errors
/// [`OpenError`]: the first check that fails.
pub fn open(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    known: &Known,
    frame: impl Into<Frame>,
) -> Result<Opened, OpenError> {
    let frame = frame.into();
    let (got, limit) = (frame.bytes().len(), limit(epoch));
    let parts = frame
        .parts()
        .filter(|_| got <= limit)
        .ok_or(OpenError::Size { got, limit })?;
    let header = parts.header;
    if header.federation != epoch.federation {
        return Err(OpenError::Federation);
    }
    if header.epoch != epoch.id {
        return Err(OpenError::Epoch);
    }
    let (found, agreed) = (header.format, epoch.format);
    if found != agreed {
        return Err(OpenError::Format { found, agreed });
    }
    let kind = header.kind.filter(|kind| kind.since() <= epoch.format);
    let kind = kind.ok_or(OpenError::Kind(header.number))?;
    let (round, view) = (header.round, header.view);
    if !kind.scope().allows(round, view) {
        return Err(OpenError::Header { kind, round, view });
    }
    if !kind.has_sender() {
        return open_unsigned(epoch, verifier, known, kind, &parts);
    }
    let sender = header.sender_or_none();
    let key = epoch
        .roster
        .key(sender)
        .ok_or(OpenError::Stranger(sender))?;
    let signature = Signature::from_bytes(parts.signature);
    let valid = verifier.verify(&SignatureClaim {
        key,
        message: &parts.statement(),
        signature,
    });
    if !valid {
        return Err(OpenError::Signature(sender));
    }
    let body: Body = codec::decode(parts.body, limit)?;
    if body.kind() != kind {
        return Err(OpenError::Mislabelled);
    }
    verify_inside(epoch, verifier, known, round, &body)?;
    Ok(Opened::Message(Message {
        round,
        view,
        sender,
        body,
        signature,
    }))
}

/// Opens a frame of a kind that has no sender: its body proves itself.
fn open_unsigned(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    known: &Known,
    kind: Kind,
    parts: &FrameParts<'_>,
) -> Result<Opened, OpenError> {
    let (header, body, limit) = (parts.header, parts.body, limit(epoch));
    let unsigned = header.sender.is_none() && *parts.signature == [0; 64];
    if !unsigned {
        return Err(OpenError::Mislabelled);
    }
    if kind == Kind::Evidence {
        let evidence: Evidence = codec::decode(body, limit)?;
        if known.accused.contains(&evidence.member) {
            return Ok(Opened::Known);
        }
        evidence.verify(epoch, verifier)?;
        return Ok(Opened::Evidence(Box::new(evidence)));
    }
    if kind == Kind::Passage {
        let passage: Passage = codec::decode(body, limit)?;
        passage.verify(epoch, verifier)?;
        return Ok(Opened::Passage(Box::new(passage)));
    }
    let certificate: Certificate = codec::decode(body, limit)?;
    if certificate.view != header.view {
        return Err(OpenError::Mislabelled);
    }
    if known.covers(&certificate) {
        return Ok(Opened::Known);
    }
    certificate.verify(epoch, verifier)?;
    Ok(Opened::Certificate(certificate))
}

/// Checks everything inside a body that claims to be signed by others.
fn verify_inside(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    known: &Known,
    round: u64,
    body: &Body,
) -> Result<(), OpenError> {
    let check = |certificate: &Certificate| {
        if known.verified(certificate) {
            return Ok(());
        }
        certificate.verify(epoch, verifier)
    };
    match body {
        Body::Proposal(proposal) => {
            let mut certificates = proposal.parent.iter().chain(&proposal.skipped);
            certificates.try_for_each(check)?;
            let round = proposal.block.round();
            if round.is_some_and(|round| !inclusions_hold(epoch, verifier, round)) {
                return Err(OpenError::Inclusions);
            }
            match &proposal.block.content {
                Content::Change(change) if !approvals_hold(epoch, verifier, change) => {
                    Err(OpenError::Approvals)
                }
                _ => Ok(()),
            }
        }
        Body::KeyList(list) if !keys_hold(epoch, verifier, round, list) => Err(OpenError::Keys),
        Body::SyncResponse(response) => {
            let certificates = response.highest.iter().chain(&response.proof);
            certificates
                .chain(&response.certificates)
                .try_for_each(check)?;
            match &response.yours {
                Some(own) if !message_holds(epoch, verifier, &own.message()) => {
                    Err(OpenError::Signature(own.member))
                }
                _ => Ok(()),
            }
        }
        // Nobody but the sender signs anything in these. A further one has to be looked at.
        Body::Contribution(_)
        | Body::Receipt { .. }
        | Body::ContributionList(_)
        | Body::Scores(_)
        | Body::Manifest(_)
        | Body::Inclusion { .. }
        | Body::Notarize { .. }
        | Body::Finalize { .. }
        | Body::Nullify
        | Body::Progress { .. }
        | Body::SyncRequest { .. }
        | Body::Complete
        | Body::Amendment(_)
        | Body::Approval { .. }
        | Body::Standing(_)
        | Body::Confirmation(_)
        | Body::Abstain
        | Body::Keys(_)
        | Body::KeyList(_)
        | Body::MaskedVector(_)
        | Body::MaskedManifest(_)
        | Body::Unmasking(_)
        | Body::Outcome { .. } => Ok(()),
    }
}

/// Size of the largest message of this federation, in bytes: 1 MiB + 272 n². That holds a manifest of
/// all members' entries and scores, or a page of blocks. Nothing larger is read from the network.
pub fn limit(epoch: &Epoch) -> usize {
    let n = epoch.roster.len();
    (1 << 20) + 16 * n * n + 256 * n * n
}

#[cfg(test)]
pub(crate) mod tests;
