//! How a message is signed, and the only door through which bytes come in.
//!
//! ```text
//! version 1 │ federation 32 │ epoch 32 │ round 8 │ view 8 │ sender 2 │ kind 1 │ signature 64 │ body
//! ```
//!
//! The fixed part is read without decoding, so a stranger's bytes are refused before anything is
//! built from them: size, federation, epoch, membership, signature, then the body.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use crate::certificate::{Certificate, CertificateError, Verdict, Vote};
use crate::charter::Epoch;
use crate::codec::{self, CodecError};
use crate::evidence::{Evidence, EvidenceError};
use crate::identity::{Claim, SecretKey, Signature, Verifier};
use crate::message::{Body, Kind, Message};
use crate::roster::MemberIndex;

/// The format of envelopes and of everything in them. A program reads this one alone.
pub const VERSION: u8 = 1;
const HEADER: usize = 1 + 32 + 32 + 8 + 8 + 2 + 1;
/// Bytes before the body.
pub const OVERHEAD: usize = HEADER + 64;
/// Who signs what stands alone.
const NOBODY: u16 = u16::MAX;

/// Bytes that were let in.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// A member's message.
    Message(Message),
    /// A proof of a quorum, from anybody.
    Certificate(Certificate),
    /// A proof of a member's fault, from anybody.
    Evidence(Box<Evidence>),
    /// A certificate that says what is already known; not verified again.
    Known,
}

impl Opened {
    /// A copy of it, or that it says what is known.
    pub fn unless_in(&self, known: &Known) -> Self {
        match self {
            Self::Certificate(certificate) if known.says(certificate) => Self::Known,
            Self::Evidence(evidence) if known.accused.contains(&evidence.member) => Self::Known,
            opened => opened.clone(),
        }
    }
}

/// What is already proven to the reader, so that it is not verified again.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// Verified certificates, by what they say, with their votes.
    pub certificates: BTreeMap<(u64, Verdict), Arc<[Vote]>>,
    /// Members whose fault is proven: one proof is enough.
    pub accused: BTreeSet<MemberIndex>,
}

impl Known {
    /// Whether this certificate says what is known. Its own votes may still be forged: nothing of
    /// it may be used.
    fn says(&self, certificate: &Certificate) -> bool {
        let key = (certificate.view, certificate.verdict);
        self.certificates.contains_key(&key)
    }

    /// Whether this very certificate, vote by vote, was verified before.
    fn verified(&self, certificate: &Certificate) -> bool {
        let key = (certificate.view, certificate.verdict);
        let votes = self.certificates.get(&key);
        votes.is_some_and(|votes| *votes == certificate.votes)
    }
}

/// Why bytes were not let in.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// Too short for an envelope, or longer than a message of this federation can be.
    #[error("{got} bytes cannot be a message (between {OVERHEAD} and {limit})")]
    Size {
        /// Bytes received.
        got: usize,
        /// Most that are allowed.
        limit: usize,
    },
    /// Another message format than [`VERSION`].
    #[error("{}", another_format(*.0))]
    Version(u8),
    /// Another federation.
    #[error("a message of another federation")]
    Federation,
    /// Another roster or charter.
    #[error("a message of another epoch: its sender works under another roster or charter")]
    Epoch,
    /// Not a kind of message.
    #[error("message kind {0} does not exist")]
    Kind(u8),
    /// A round or a view where this kind of message has none, or none where it has one.
    #[error("a {kind:?} message cannot belong to round {round} and view {view}")]
    Header {
        /// The kind.
        kind: Kind,
        /// The round in the header.
        round: u64,
        /// The view in the header.
        view: u64,
    },
    /// Signed by nobody in the roster.
    #[error("the sender {0} is not in the roster")]
    Stranger(MemberIndex),
    /// Not signed by whom it names.
    #[error("the signature is not {0}'s")]
    Signature(MemberIndex),
    /// The body does not decode.
    #[error("the body of a message: {0}")]
    Body(#[from] CodecError),
    /// The body is of another kind than the envelope says.
    #[error("the body is not of the kind that the envelope names")]
    Mislabelled,
    /// A certificate inside proves nothing.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// Inclusions of a proposal that do not hold.
    #[error("the inclusions of a proposal are not signed by distinct members")]
    Inclusions,
    /// Evidence that shows no fault.
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
}

fn another_format(found: u8) -> String {
    let outdated = match found > VERSION {
        true => "update it",
        false => "the sender's program has to be updated",
    };
    format!("message format {found}, this program reads format {VERSION}: {outdated}")
}

/// The bytes that a member signs for `body`.
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

/// Signs `body`; the message and its bytes for the wire.
pub fn seal(
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

/// The wire bytes of a message that was signed before.
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

/// The wire bytes of a certificate. The same certificate gives the same bytes, whoever sends it.
pub fn seal_certificate(epoch: &Epoch, certificate: &Certificate) -> Bytes {
    alone(
        epoch,
        certificate.view,
        Kind::Certificate,
        &codec::encode(certificate),
    )
}

/// The wire bytes of evidence.
pub fn seal_evidence(epoch: &Epoch, evidence: &Evidence) -> Bytes {
    alone(epoch, 0, Kind::Evidence, &codec::encode(evidence))
}

/// What the sender of a sealed message says that it signed: the member, the signed bytes, the
/// signature. None for what stands alone. Nothing is checked.
pub fn claimed(bytes: &[u8]) -> Option<(MemberIndex, Vec<u8>, Signature)> {
    let (head, rest) = bytes.split_at_checked(HEADER)?;
    let (signature, body) = rest.split_first_chunk::<64>()?;
    let sender = u16::from_le_bytes([head[81], head[82]]);
    let statement = [head, body].concat();
    (sender != NOBODY).then(|| {
        (
            MemberIndex(sender),
            statement,
            Signature::from_bytes(signature),
        )
    })
}

/// How many signatures opening these bytes may have to check: what it costs, before it is done.
pub fn cost(epoch: &Epoch, bytes: &[u8]) -> usize {
    match bytes
        .get(HEADER - 1)
        .and_then(|&kind| Kind::from_number(kind))
    {
        Some(Kind::Certificate) => epoch.roster.quorum(),
        Some(Kind::Proposal) => epoch.roster.len() + epoch.roster.quorum(),
        // Nothing in it is shorter than a signature.
        Some(Kind::SyncResponse) => 1 + bytes.len() / 64,
        Some(Kind::Evidence) => 2,
        Some(_) => 1,
        None => 0,
    }
}

/// Opens bytes from outside: size, federation, epoch, membership, signature, then decoding; at
/// last every certificate and signature that the body carries and that is not `known`.
///
/// # Errors
/// [`OpenError`]: the first check that fails.
pub fn open(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    known: &Known,
    bytes: &[u8],
) -> Result<Opened, OpenError> {
    let limit = limit(epoch);
    if bytes.len() < OVERHEAD || bytes.len() > limit {
        return Err(OpenError::Size {
            got: bytes.len(),
            limit,
        });
    }
    let (head, rest) = bytes.split_at(HEADER);
    let (signature, body) = rest.split_at(64);
    if head[0] != VERSION {
        return Err(OpenError::Version(head[0]));
    }
    if head[1..33] != epoch.federation.0 {
        return Err(OpenError::Federation);
    }
    if head[33..65] != epoch.id.0 {
        return Err(OpenError::Epoch);
    }
    let (round, view) = (number(&head[65..73]), number(&head[73..81]));
    let sender = MemberIndex(u16::from_le_bytes([head[81], head[82]]));
    let kind = Kind::from_number(head[83]).ok_or(OpenError::Kind(head[83]))?;
    if !kind.belongs().fits(round, view) {
        return Err(OpenError::Header { kind, round, view });
    }
    let mut signed = [0; 64];
    signed.copy_from_slice(signature);
    let signature = Signature::from_bytes(&signed);
    if matches!(kind, Kind::Certificate | Kind::Evidence) {
        if sender.0 != NOBODY || signed != [0; 64] {
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
        let certificate: Certificate = codec::decode(body, limit)?;
        if certificate.view != view {
            return Err(OpenError::Mislabelled);
        }
        if known.says(&certificate) {
            return Ok(Opened::Known);
        }
        certificate.verify(epoch, verifier)?;
        return Ok(Opened::Certificate(certificate));
    }
    let key = epoch
        .roster
        .key(sender)
        .ok_or(OpenError::Stranger(sender))?;
    let statement = [head, body].concat();
    if !verifier.verify(&Claim {
        key,
        message: &statement,
        signature,
    }) {
        return Err(OpenError::Signature(sender));
    }
    let body: Body = codec::decode(body, limit)?;
    if body.kind() != kind {
        return Err(OpenError::Mislabelled);
    }
    nested(epoch, verifier, known, &body)?;
    Ok(Opened::Message(Message {
        round,
        view,
        sender,
        body,
        signature,
    }))
}

/// Everything inside a body that claims to be signed by others.
fn nested(
    epoch: &Epoch,
    verifier: &dyn Verifier,
    known: &Known,
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
            proposal
                .parent
                .iter()
                .chain(&proposal.skipped)
                .try_for_each(check)?;
            if let Some(learning) = proposal.block.learning() {
                let distinct = learning
                    .inclusions
                    .windows(2)
                    .all(|pair| pair[0].0 < pair[1].0);
                let body = Body::Inclusion {
                    sheet: learning.sheet,
                };
                let statements: Vec<_> = learning
                    .inclusions
                    .iter()
                    .map(|&(member, _)| statement(epoch, learning.round, 0, member, &body))
                    .collect();
                let claims: Option<Vec<_>> = learning
                    .inclusions
                    .iter()
                    .zip(&statements)
                    .map(|(&(member, signature), message)| {
                        let key = epoch.roster.key(member)?;
                        Some(Claim {
                            key,
                            message,
                            signature,
                        })
                    })
                    .collect();
                let held = claims.is_some_and(|claims| verifier.verify_all(&claims));
                if !distinct || !held {
                    return Err(OpenError::Inclusions);
                }
            }
            Ok(())
        }
        Body::SyncResponse(response) => {
            let certificates = response.highest.iter().chain(&response.proof);
            certificates
                .chain(&response.certificates)
                .try_for_each(check)?;
            match &response.yours {
                Some(own) if !signed(epoch, verifier, &own.message()) => {
                    Err(OpenError::Signature(own.member))
                }
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Whether a message was signed by its sender, with a header that fits its kind.
fn signed(epoch: &Epoch, verifier: &dyn Verifier, message: &Message) -> bool {
    let Message {
        round,
        view,
        sender,
        ref body,
        signature,
    } = *message;
    let statement = statement(epoch, round, view, sender, body);
    let holds = |key| {
        verifier.verify(&Claim {
            key,
            message: &statement,
            signature,
        })
    };
    body.kind().belongs().fits(round, view) && epoch.roster.key(sender).is_some_and(holds)
}

/// The largest message of this federation, in bytes: a sheet of all members' entries and scores,
/// or a range of blocks; with room to spare. Nothing larger is read from the network.
pub fn limit(epoch: &Epoch) -> usize {
    let n = epoch.roster.len();
    (1 << 20) + 16 * n * n + 256 * n * n
}

fn header(epoch: &Epoch, round: u64, view: u64, sender: u16, kind: Kind) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(OVERHEAD + 64);
    bytes.push(VERSION);
    bytes.extend_from_slice(&epoch.federation.0);
    bytes.extend_from_slice(&epoch.id.0);
    bytes.extend_from_slice(&round.to_le_bytes());
    bytes.extend_from_slice(&view.to_le_bytes());
    bytes.extend_from_slice(&sender.to_le_bytes());
    bytes.push(kind as u8);
    bytes
}

fn assemble(statement: &[u8], signature: Signature) -> Bytes {
    let (head, body) = statement.split_at(HEADER);
    [head, &signature.to_bytes(), body].concat().into()
}

fn alone(epoch: &Epoch, view: u64, kind: Kind, body: &[u8]) -> Bytes {
    [&header(epoch, 0, view, NOBODY, kind), &[0; 64][..], body]
        .concat()
        .into()
}

fn number(bytes: &[u8]) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(bytes);
    u64::from_le_bytes(array)
}

#[cfg(test)]
mod tests;
