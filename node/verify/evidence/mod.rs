//! Evidence against a member as a file that proves itself: both messages, as they were sent and signed,
//! and everything that ties the accused's key to the federation's id.
//!
//! The file is JSON, so that a person can read what it says. What it proves stands in bytes alone: the
//! two sealed messages with their headers, signatures and bodies; the genesis of the federation, whose
//! hash is the federation's id; and the proofs of all changes of the agreement up to the epoch of the
//! messages. So anybody who knows the federation's id can check it, also against a member that was
//! admitted after the agreement that they have at hand.

mod receipt;
mod transcript;

use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER_PERMISSIVE;
use protocol::accusation::{Lineage, contradiction};
use protocol::envelope;
use protocol::evidence::{Evidence, Signed};
use protocol::identity::{Strict, VerifyingKey};
use protocol::message::Message;
use protocol::{Epoch, Hash, MemberIndex};
use serde::{Deserialize, Serialize};
use task::file;

use crate::store::{self, StoreOpenError};
use formatting::numbers::plain;

pub use transcript::TranscriptBlobs;

/// The folder of evidence in a node's state folder.
pub const EVIDENCE: &str = "evidence";
/// The format that is written and read.
const FORMAT: &str = "rota evidence 2";
/// The format of evidence of a single message with blobs that it names.
const FORMAT_OF_ONE: &str = "rota evidence 3";
/// Most bytes of a file. It holds two messages and the agreements before them in hexadecimal.
const LIMIT: u64 = 1 << 30;

/// Evidence as it stands in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EvidenceFile {
    /// The format.
    pub format: String,
    /// The federation's name.
    pub federation_name: String,
    /// The federation's id.
    pub federation: String,
    /// The accused member.
    pub member: Accused,
    /// How many changes of the agreement there had been when it signed the messages.
    pub epoch: u64,
    /// What the member did, in words. Only for people: the messages show it.
    pub charge: String,
    /// What the member did, in a few words without blanks.
    pub kind: String,
    /// The two messages, or the one, as they were sent, in hexadecimal.
    pub messages: Vec<String>,
    /// What the one message names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<TranscriptBlobs>,
    /// The format and the genesis of the federation, whose hash is its id, in hexadecimal.
    pub genesis: String,
    /// The proofs of all changes of the agreement up to that epoch, oldest first, in hexadecimal.
    pub changes: Vec<String>,
}

/// The accused member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Accused {
    /// Name of the member in the roster.
    pub name: String,
    /// Position of the member in the roster, from 0.
    pub position: u16,
    /// Public key of the member.
    pub key: String,
}

/// What evidence proves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct EvidenceProof {
    /// The federation's name.
    pub federation_name: String,
    /// The federation's id.
    pub federation: String,
    /// The accused member, as the agreement of that epoch names it.
    pub member: String,
    /// Public key of the accused member.
    pub key: String,
    /// How many changes of the agreement there had been when it signed the messages.
    pub epoch: u64,
    /// What the member did.
    pub charge: String,
    /// True if the federation is that of an agreement at hand.
    pub by_agreement: bool,
    /// True if one message proves it, with what it names.
    #[serde(skip)]
    pub by_one: bool,
    /// True if it is a receipt, which proves what a lead said and no fault.
    #[serde(skip)]
    pub by_receipt: bool,
}

/// Why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The file is not evidence.
    #[error("{} is not a file of evidence: {why}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The file is evidence that proves nothing.
    #[error("{} proves nothing: {why}", file.display())]
    Nothing {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

impl Accused {
    fn of(epoch: &Epoch, member: MemberIndex) -> Self {
        let key = epoch.roster.key(member).map(VerifyingKey::public);
        Self {
            name: epoch.roster.name(member).to_owned(),
            position: member.0,
            key: key.map(|key| format!("{key}")).unwrap_or_default(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER_PERMISSIVE.encode(bytes)
}

fn bytes(what: &str, text: &str) -> Result<Vec<u8>, String> {
    let bytes = HEXLOWER_PERMISSIVE.decode(text.as_bytes());
    bytes.map_err(|error| format!("{what} is not hexadecimal: {error}"))
}

impl EvidenceFile {
    /// The file of evidence that was found in this epoch, to which `lineage` leads.
    pub fn of(lineage: &Lineage, epoch: &Epoch, evidence: &Evidence) -> Self {
        let member = evidence.member;
        let frame = |signed: &Signed| {
            let message = Message {
                round: signed.round,
                view: signed.view,
                sender: member,
                body: signed.body.clone(),
                signature: signed.signature,
            };
            hex(&envelope::reseal(epoch, &message))
        };
        let messages = vec![frame(&evidence.first), frame(&evidence.second)];
        let charge = (evidence.charge(), evidence.kind());
        Self::new(lineage, epoch, member, charge, messages)
    }

    fn new(
        lineage: &Lineage,
        epoch: &Epoch,
        member: MemberIndex,
        (charge, kind): (String, &str),
        messages: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT.into(),
            federation_name: epoch.protocol.name.clone(),
            federation: format!("{:#}", epoch.federation),
            member: Accused::of(epoch, member),
            epoch: epoch.number,
            charge,
            kind: kind.into(),
            messages,
            transcript: None,
            genesis: hex(&lineage.genesis),
            changes: lineage.passages.iter().map(|bytes| hex(bytes)).collect(),
        }
    }

    /// The name of its file: whom it accuses, by key, and of what. A position in the roster may be
    /// another member's after a change.
    pub fn name(&self) -> String {
        format!("{}-{}.json", self.member.key, self.kind)
    }

    /// Writes the evidence into a node's state folder, unless there is some of this kind against this
    /// key already. Gives the file.
    ///
    /// # Errors
    /// [`StoreOpenError`]: an error of the system.
    pub fn keep(&self, state: &Path) -> Result<PathBuf, StoreOpenError> {
        let folder = store::subfolder(state, EVIDENCE)?;
        let name = self.name();
        let path = folder.join(&name);
        if !path.exists() {
            let json = serde_json::to_vec_pretty(self).expect("strings and numbers are JSON");
            store::keep_file(&folder, &name, &json)?;
        }
        Ok(path)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`EvidenceFileError`].
    pub fn read(path: &Path) -> Result<Self, EvidenceFileError> {
        let file = path.to_owned();
        let bytes = file::read(path, LIMIT).map_err(|error| EvidenceFileError::Unreadable {
            file: file.clone(),
            why: error.to_string(),
        })?;
        let malformed = |why: String| EvidenceFileError::Malformed {
            file: file.clone(),
            why,
        };
        // The format first: another one has other fields.
        let value: serde_json::Value =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match &value["format"] {
            serde_json::Value::String(format) if [FORMAT, FORMAT_OF_ONE].contains(&&**format) => {}
            serde_json::Value::String(other) => {
                return Err(malformed(format!(
                    "expected the format {FORMAT:?}, found {other:?}"
                )));
            }
            _ => return Err(malformed("it names no format".into())),
        }
        serde_json::from_value(value).map_err(|error| malformed(error.to_string()))
    }

    /// Checks what the file proves: that the accused, a member of the federation whose id it names,
    /// signed both messages. Only where `agreed`, an epoch of some agreement at hand, is given, it
    /// is known that it is the federation which is meant.
    ///
    /// # Errors
    /// [`EvidenceFileError::Nothing`]: why it proves nothing.
    pub fn check(
        &self,
        path: &Path,
        agreed: Option<&Epoch>,
    ) -> Result<EvidenceProof, EvidenceFileError> {
        let nothing = |why: String| EvidenceFileError::Nothing {
            file: path.to_owned(),
            why,
        };
        self.proof(agreed).map_err(nothing)
    }

    fn proof(&self, agreed: Option<&Epoch>) -> Result<EvidenceProof, String> {
        let changes = self.changes.iter().enumerate();
        let changes = changes.map(|(at, text)| bytes(&format!("change {}", at + 1), text));
        let lineage = Lineage {
            genesis: bytes("the genesis", &self.genesis)?,
            passages: changes
                .map(|bytes| bytes.map(Into::into))
                .collect::<Result<_, _>>()?,
        };
        let frames = self.messages.iter().enumerate();
        let frames = frames.map(|(at, text)| bytes(&format!("message {}", at + 1), text));
        let frames: Vec<_> = frames.collect::<Result<_, _>>()?;
        let epochs = lineage.epochs(&Strict).map_err(|why| why.to_string())?;
        let federation = self.federation()?;
        let first = epochs[0].federation;
        if first != federation {
            return Err(format!(
                "it names the federation {federation}, and its genesis is that of {first}"
            ));
        }
        if let Some(agreed) = agreed.map(|epoch| epoch.federation)
            && agreed != federation
        {
            return Err(format!(
                "it is about the federation {federation}, and the agreement is that of {agreed}"
            ));
        }
        let (epoch, sender, charge) = match (&frames[..], &self.transcript) {
            ([first, second], None) => {
                let proven = contradiction(&epochs, &Strict, [first, second]);
                let (epoch, evidence) = proven.map_err(|why| why.to_string())?;
                (epoch, evidence.member, evidence.charge())
            }
            ([only], Some(blobs)) => blobs.charge(&epochs, only)?,
            ([only], None) => receipt::charge(&epochs, only)?,
            _ => return Err("it has neither two messages, nor one".into()),
        };
        let member = Accused::of(epoch, sender);
        if self.member != member {
            return Err(format!(
                "it accuses {} with the key {}, and its messages are of {} with the key {}",
                plain(&self.member.name),
                plain(&self.member.key),
                plain(&member.name),
                member.key,
            ));
        }
        Ok(EvidenceProof {
            federation_name: epoch.protocol.name.clone(),
            federation: format!("{federation:#}"),
            member: member.name,
            key: member.key,
            epoch: epoch.number,
            charge,
            by_agreement: agreed.is_some(),
            by_one: self.transcript.is_some(),
            by_receipt: frames.len() == 1 && self.transcript.is_none(),
        })
    }

    fn federation(&self) -> Result<Hash, String> {
        let bytes = HEXLOWER_PERMISSIVE.decode(self.federation.as_bytes());
        let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        let why = "the federation's id is not 64 hexadecimal digits";
        bytes.map(Hash).ok_or_else(|| why.into())
    }
}

impl EvidenceProof {
    /// Returns what is proven against whom, as a sentence.
    pub fn sentence(&self) -> String {
        let Self {
            federation_name,
            federation,
            member,
            key,
            epoch,
            charge,
            by_agreement,
            by_one,
            by_receipt,
        } = self;
        let after = match epoch {
            0 => String::new(),
            1 => " after one change of the agreement".into(),
            more => format!(" after {more} changes of the agreement"),
        };
        let which = if *by_agreement {
            "That federation is the one of the agreement at hand.".into()
        } else {
            format!(
                "Whether that federation is the one that you mean, only an agreement of it can say: give it \
                 with --federation, or compare its whole id, {federation}."
            )
        };
        let signed =
            format!("signed with {key}, the key of {member} in the agreement that was in force,");
        if *by_receipt {
            return format!(
                "{member} said in the federation {federation_name} ({federation:.16}){after}: {charge}. The receipt is \
                 {signed} and whether the round of that view has the contribution says its block (`rota chain`). A \
                 lead may leave out what it has a receipt for only if its author's signature for the round does not \
                 come in time, so this is no proof of a fault. {which}"
            );
        }
        let proof = if *by_one {
            format!(
                "The message that names the transcript is {signed} and no member that follows the rules sends it"
            )
        } else {
            format!("Both messages are {signed} and no member that follows the rules signs both")
        };
        format!(
            "{member} broke the rules of the federation {federation_name} ({federation:.16}){after}: {charge}. \
             {proof}. {which}"
        )
    }
}

#[cfg(test)]
mod tests;
