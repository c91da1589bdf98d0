//! One line of the audit log.

use data_encoding::HEXLOWER;
use protocol::identity::{Signature, SignatureClaim, Strict, Verifier, VerifyingKey};
use protocol::{Hash, PublicKey, SecretKey};
use serde::{Deserialize, Serialize};

/// One line: what was sent, or what happened to the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AuditLine {
    /// Number of the line, from 1.
    pub line: u64,
    /// Time at which it was written, in UTC.
    pub at: String,
    /// Event of the line.
    #[serde(flatten)]
    pub event: AuditEvent,
    /// Hash of the bytes of the line before it; of the first line, a hash of the federation and the
    /// silo.
    pub before: String,
}

/// Event of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    tag = "event"
)]
pub enum AuditEvent {
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
        /// Size of the message in bytes.
        bytes: u64,
        /// Hash of the message.
        hash: String,
    },
    /// A model, an outcome or a sheet was given to a member that asked for it.
    Blob {
        /// The receiver's name.
        to: String,
        /// Size of the blob in bytes.
        bytes: u64,
        /// Hash of the blob.
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
    /// The log was put back from a backup: what was sent after it was made is not in the log.
    Restored {
        /// Time at which the backup was made, in UTC.
        made: String,
    },
    /// Lines were in the log when it was last signed, and were gone when the node started again.
    Missing {
        /// Number of lines.
        lines: u64,
    },
    /// A line that the silo had signed was another one when the node started again: the log was put back
    /// from elsewhere, or changed.
    Changed {
        /// Number of that line.
        signed: u64,
    },
    /// Lines could not be written, because the disk was full or failed.
    Lost {
        /// Number of lines.
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

impl AuditLine {
    /// The bytes of the line, without the line break.
    pub(super) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("strings and numbers are JSON")
    }
}

/// Returns what the first line follows.
pub(super) fn start(federation: &Hash, key: &PublicKey) -> Hash {
    Hash::labelled("audit", &[&federation.0, &key.0])
}

/// A hash in hexadecimal digits.
pub(super) fn hex(hash: &Hash) -> String {
    HEXLOWER.encode(&hash.0)
}

/// Number of lines, and the hash of the last: signed by the silo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct LogHead {
    /// The federation's id.
    pub(super) federation: String,
    /// The silo's public key.
    pub(super) key: String,
    /// Number of lines.
    pub(super) lines: u64,
    /// Hash of the last.
    pub(super) hash: String,
    /// The silo's signature over all of this.
    pub(super) signature: String,
}

impl LogHead {
    pub(super) fn signed(key: &SecretKey, federation: &Hash, (lines, last): (u64, &Hash)) -> Self {
        let public = key.public();
        let signature = key.sign(&statement(federation, &public, lines, last));
        Self {
            federation: hex(federation),
            key: format!("{public}"),
            lines,
            hash: hex(last),
            signature: HEXLOWER.encode(&signature.to_bytes()),
        }
    }

    /// The bytes of a head, if the silo with this key signed it for a log of this federation.
    pub(super) fn read(bytes: &[u8], federation: &Hash, key: &PublicKey) -> Option<Self> {
        let head: Self = serde_json::from_slice(bytes).ok()?;
        let signed = head.signer() == Some(*key) && head.federation == hex(federation);
        signed.then_some(head)
    }

    /// The key that signed it; `None` if the signature does not verify.
    pub(super) fn signer(&self) -> Option<PublicKey> {
        let array = |hex: &str| -> Option<[u8; 32]> {
            let bytes = HEXLOWER.decode(hex.as_bytes()).ok()?;
            bytes.try_into().ok()
        };
        let public = PublicKey(array(&self.key)?);
        let key = VerifyingKey::new(&public)?;
        let (federation, last) = (Hash(array(&self.federation)?), Hash(array(&self.hash)?));
        let signature = HEXLOWER.decode(self.signature.as_bytes()).ok()?;
        let signed = Strict.verify(&SignatureClaim {
            key: &key,
            message: &statement(&federation, &public, self.lines, &last),
            signature: Signature::from_bytes(&signature.try_into().ok()?),
        });
        signed.then_some(public)
    }
}

/// Returns what is signed. No message between members begins like this.
fn statement(federation: &Hash, key: &PublicKey, lines: u64, last: &Hash) -> Vec<u8> {
    [
        &b"rota audit head"[..],
        &federation.0,
        &key.0,
        &lines.to_le_bytes(),
        &last.0,
    ]
    .concat()
}
