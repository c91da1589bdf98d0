//! One line of the audit log.

use data_encoding::HEXLOWER;
use protocol::identity::{Claim, Signature, Strict, Verifier, VerifyingKey};
use protocol::{Hash, MemberIndex, PublicKey, SecretKey};
use serde::{Deserialize, Serialize};

/// One line: what was sent, or what happened to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Line {
    /// Its number, from 1.
    pub line: u64,
    /// When it was written, in UTC.
    pub at: String,
    /// What it says.
    #[serde(flatten)]
    pub event: Event,
    /// Hash of the bytes of the line before it; of the first line, a hash of the federation and the
    /// silo.
    pub before: String,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "event"
)]
pub enum Event {
    /// A message was sent.
    Message {
        /// The receiver's name; `all` for a message to all other members.
        to: String,
        /// The kind of the message.
        kind: String,
        /// The round in its header, if its kind has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// The view in its header, if its kind has one.
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<u64>,
        /// Its size in bytes.
        bytes: u64,
        /// Its hash.
        hash: String,
    },
    /// A model, an outcome or a sheet was given to a member that asked for it.
    Blob {
        /// The receiver's name.
        to: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its hash.
        hash: String,
    },
    /// A member was asked for a blob: the first of these that has it.
    Request {
        /// The names of the members, separated by commas; `all` for all others.
        to: String,
        /// The blob's hash.
        hash: String,
    },
    /// The node started.
    Started {
        /// Version of the program.
        program: String,
    },
    /// Lines were in the log when it was last signed, and were gone when the node started again.
    Missing {
        /// How many.
        lines: u64,
    },
    /// Lines could not be written, because the disk was full or failed.
    Lost {
        /// How many.
        lines: u64,
    },
    /// The oldest file was removed, because the log had its full size.
    Removed {
        /// The number of the last line in it.
        last: u64,
        /// Hash of that line.
        hash: String,
    },
}

impl Line {
    /// The bytes of the line, without the line break.
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are JSON")
    }
}

/// What the first line follows.
pub(super) fn start(federation: &Hash, member: MemberIndex) -> Hash {
    Hash::labelled("audit", &[&federation.0, &member.0.to_le_bytes()])
}

/// A hash in hexadecimal digits.
pub(super) fn hex(hash: &Hash) -> String {
    HEXLOWER.encode(&hash.0)
}

/// How many lines there are, and the hash of the last: signed by the silo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Head {
    /// The federation's id.
    pub(super) federation: String,
    /// The silo's position in the roster, from 0.
    pub(super) member: u16,
    /// Number of lines.
    pub(super) lines: u64,
    /// Hash of the last.
    pub(super) hash: String,
    /// The silo's signature over all of this.
    pub(super) signature: String,
}

impl Head {
    pub(super) fn signed(
        key: &SecretKey,
        federation: &Hash,
        member: MemberIndex,
        (lines, last): (u64, &Hash),
    ) -> Self {
        let signature = key.sign(&statement(federation, member, lines, last));
        Self {
            federation: hex(federation),
            member: member.0,
            lines,
            hash: hex(last),
            signature: HEXLOWER.encode(&signature.to_bytes()),
        }
    }

    /// Whether the owner of this key signed it.
    pub(super) fn verify(&self, key: &PublicKey) -> bool {
        let hash = |hex: &str| -> Option<Hash> {
            let bytes = HEXLOWER.decode(hex.as_bytes()).ok()?;
            Some(Hash(bytes.try_into().ok()?))
        };
        let verified = || {
            let key = VerifyingKey::new(key)?;
            let (federation, last) = (hash(&self.federation)?, hash(&self.hash)?);
            let signature = HEXLOWER.decode(self.signature.as_bytes()).ok()?;
            let member = MemberIndex(self.member);
            Some(Strict.verify(&Claim {
                key: &key,
                message: &statement(&federation, member, self.lines, &last),
                signature: Signature::from_bytes(&signature.try_into().ok()?),
            }))
        };
        verified().unwrap_or(false)
    }
}

/// What is signed. No message between members begins like this.
fn statement(federation: &Hash, member: MemberIndex, lines: u64, last: &Hash) -> Vec<u8> {
    [
        &b"rota audit head"[..],
        &federation.0,
        &member.0.to_le_bytes(),
        &lines.to_le_bytes(),
        &last.0,
    ]
    .concat()
}
