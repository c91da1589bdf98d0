//! Evidence against a member as a file that proves itself: both messages, as they were sent and signed.
//!
//! The file is JSON, so that a person can read what it says. What it proves stands in the two messages
//! alone: each is the sealed message, with its header, its signature and its body.

use std::path::{Path, PathBuf};

use agreement::public_key;
use data_encoding::HEXLOWER_PERMISSIVE;
use learn::file;
use protocol::envelope;
use protocol::evidence::Evidence;
use protocol::identity::{Claim, Strict, Verifier, VerifyingKey};
use protocol::message::Message;
use protocol::{Epoch, Hash, MemberIndex, PublicKey};
use serde::{Deserialize, Serialize};

use crate::store::{self, OpenError};

/// The folder of evidence in a node's state folder.
pub const EVIDENCE: &str = "evidence";
/// The format that is written and read.
const FORMAT: &str = "rota evidence 1";
/// Most bytes of a file. It holds two messages in hexadecimal.
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
    /// What it did, in words. Only for people: the messages show it.
    pub charge: String,
    /// The two messages, as they were sent, in hexadecimal.
    pub messages: [String; 2],
}

/// The accused member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Accused {
    /// Its name in the roster.
    pub name: String,
    /// Its position in the roster, from 0.
    pub position: u16,
    /// Its public key.
    pub key: String,
}

/// What evidence proves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Proof {
    /// The federation's id.
    pub federation: String,
    /// The accused member, by name if the agreement names it.
    pub member: String,
    /// Its public key.
    pub key: String,
    /// What it did.
    pub charge: String,
    /// Whether an agreement says that the key is that member's.
    pub by_agreement: bool,
}

/// Why a file proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// It cannot be read.
    #[error("cannot read {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// It is not evidence.
    #[error("{} is not a file of evidence: {why}", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// It proves nothing.
    #[error("{} proves nothing: {why}", file.display())]
    Nothing {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
}

impl EvidenceFile {
    /// The file of evidence that was found in this epoch.
    pub fn of(epoch: &Epoch, evidence: &Evidence) -> Self {
        let member = evidence.member;
        let frame = |signed: &protocol::evidence::Signed| {
            let message = Message {
                round: signed.round,
                view: signed.view,
                sender: member,
                body: signed.body.clone(),
                signature: signed.signature,
            };
            HEXLOWER_PERMISSIVE.encode(&envelope::reseal(epoch, &message))
        };
        let key = epoch.roster.key(member).map(VerifyingKey::public);
        Self {
            format: FORMAT.into(),
            federation_name: epoch.charter.name.clone(),
            federation: format!("{:#}", epoch.federation),
            member: Accused {
                name: epoch.roster.name(member).into(),
                position: member.0,
                key: key.map(|key| format!("{key}")).unwrap_or_default(),
            },
            charge: evidence.charge(),
            messages: [frame(&evidence.first), frame(&evidence.second)],
        }
    }

    /// Writes the evidence into a node's state folder, unless there is some against this member
    /// already. Gives the file.
    ///
    /// # Errors
    /// [`OpenError`]: an error of the system.
    pub fn keep(&self, state: &Path) -> Result<PathBuf, OpenError> {
        let folder = store::subfolder(state, EVIDENCE)?;
        let name = format!("member-{}.json", self.member.position);
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
    /// [`EvidenceError`].
    pub fn read(path: &Path) -> Result<Self, EvidenceError> {
        let file = path.to_owned();
        let bytes = file::read(path, LIMIT).map_err(|error| EvidenceError::Unreadable {
            file: file.clone(),
            why: error.to_string(),
        })?;
        let malformed = |why: String| EvidenceError::Malformed {
            file: file.clone(),
            why,
        };
        let read: Self =
            serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        match read.format == FORMAT {
            true => Ok(read),
            false => Err(malformed(format!(
                "expected the format {FORMAT:?}, found {:?}",
                read.format
            ))),
        }
    }

    /// Checks what the file proves: against the agreement of its federation, if it is given, and
    /// otherwise under the key that it names itself.
    ///
    /// # Errors
    /// [`EvidenceError::Nothing`]: why it proves nothing.
    pub fn check(&self, path: &Path, epoch: Option<&Epoch>) -> Result<Proof, EvidenceError> {
        let nothing = |why: String| EvidenceError::Nothing {
            file: path.to_owned(),
            why,
        };
        self.proof(epoch).map_err(nothing)
    }

    fn proof(&self, epoch: Option<&Epoch>) -> Result<Proof, String> {
        let frame = |nth: usize| {
            let hex = self.messages[nth].as_bytes();
            let bytes = HEXLOWER_PERMISSIVE.decode(hex);
            bytes.map_err(|error| format!("message {} is not hexadecimal: {error}", nth + 1))
        };
        let (first, second) = (frame(0)?, frame(1)?);
        let mut messages = Vec::new();
        let key = self.key(epoch)?;
        for (nth, bytes) in [(1, &first), (2, &second)] {
            let (sender, statement, signature) = envelope::claimed(bytes)
                .ok_or_else(|| format!("message {nth} is too short, or nobody signed it"))?;
            if sender != MemberIndex(self.member.position) {
                return Err(format!(
                    "message {nth} is of member {sender}, and the accused is member #{}",
                    self.member.position
                ));
            }
            if statement[1..33] != self.federation()?.0 {
                return Err(format!("message {nth} belongs to another federation"));
            }
            let verified = Strict.verify(&Claim {
                key: &key,
                message: &statement,
                signature,
            });
            if !verified {
                return Err(format!(
                    "message {nth} is not signed with the key of {}: {}",
                    self.member.name, self.member.key
                ));
            }
            let message = envelope::read(bytes);
            let message = message.map_err(|error| format!("message {nth}: {error}"))?;
            messages.push(message);
        }
        let same_epoch = first[33..65] == second[33..65];
        let [one, other] = &messages[..] else {
            return Err("expected two messages".into());
        };
        let evidence = Evidence::of(one, other).filter(|_| same_epoch);
        let evidence = evidence.ok_or("an honest member may sign both of its messages")?;
        Ok(Proof {
            federation: self.federation.clone(),
            member: epoch.map_or_else(
                || self.member.name.clone(),
                |epoch| epoch.roster.name(evidence.member).to_owned(),
            ),
            key: self.member.key.clone(),
            charge: evidence.charge(),
            by_agreement: epoch.is_some(),
        })
    }

    fn federation(&self) -> Result<Hash, String> {
        let bytes = HEXLOWER_PERMISSIVE.decode(self.federation.as_bytes());
        let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        let why = "the federation's id is not 64 hexadecimal digits";
        bytes.map(Hash).ok_or_else(|| why.into())
    }

    /// The key of the accused: as the agreement says, or else as the file says.
    fn key(&self, epoch: Option<&Epoch>) -> Result<VerifyingKey, String> {
        let named: PublicKey =
            public_key(&self.member.key).ok_or("the key is not 64 hexadecimal digits")?;
        let key = VerifyingKey::new(&named).ok_or("the key is not a usable Ed25519 key")?;
        let Some(epoch) = epoch else { return Ok(key) };
        let (federation, agreed) = (self.federation()?, epoch.federation);
        if federation != agreed {
            return Err(format!(
                "it is about the federation {federation}, and the agreement is that of {agreed}"
            ));
        }
        let member = MemberIndex(self.member.position);
        match epoch.roster.key(member) {
            Some(of) if of.public() == named => Ok(key),
            _ => Err(format!(
                "the key {} is not that of member {member} in the agreement",
                self.member.key
            )),
        }
    }
}

impl Proof {
    /// What is proven against whom, as a sentence.
    pub fn sentence(&self) -> String {
        let Self {
            member,
            key,
            charge,
            federation,
            ..
        } = self;
        let whose = match self.by_agreement {
            true => format!("with the key of {member}, as the agreement has it"),
            false => format!(
                "with the key {key}; that it is the key of {member}, only the agreement can say: give it \
                 with --federation"
            ),
        };
        format!(
            "{member} broke the rules of the federation {federation:.16}: {charge}. Both messages are signed \
             {whose}, and no member that follows the rules signs both."
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::charter::{Rotation, Verification};
    use protocol::message::Body;
    use protocol::{Genesis, SecretKey};

    use super::*;

    fn key(member: u8) -> SecretKey {
        SecretKey::from_bytes(&[member + 1; 32])
    }

    fn epoch(name: &str) -> Epoch {
        let silos = (0..4).map(|member| protocol::roster::Silo {
            name: format!("silo {member}"),
            key: key(member).public(),
        });
        let charter = protocol::Charter {
            name: name.into(),
            work: Vec::new(),
            start: Hash([0; 32]),
            rounds: 1,
            beat_ms: 1000,
            patience: 4,
            view_timeout: 20,
            min_contributions: 4,
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            names_shown: false,
            blob_limit: 1,
            keep_rounds: 1,
            discovery: false,
        };
        let silos = silos.collect();
        Epoch::first(&Genesis { silos, charter }).unwrap()
    }

    fn evidence(epoch: &Epoch, of: u8) -> EvidenceFile {
        let vote = |body| {
            let me = MemberIndex(of.into());
            envelope::seal(epoch, &key(of), 0, 7, me, body).0
        };
        let block = Hash([3; 32]);
        let (one, other) = (vote(Body::Nullify), vote(Body::Finalize { block }));
        EvidenceFile::of(epoch, &Evidence::of(&one, &other).unwrap())
    }

    #[test]
    fn evidence_is_read_back_and_proves_its_charge_with_and_without_the_agreement() {
        let epoch = epoch("north");
        let folder = tempfile::tempdir().unwrap();
        let written = evidence(&epoch, 2);
        let path = written.keep(folder.path()).unwrap();
        assert_eq!(path, folder.path().join("evidence/member-2.json"));
        let read = EvidenceFile::read(&path).unwrap();
        assert_eq!(read, written);
        let proof = read.check(&path, Some(&epoch)).unwrap();
        let said = proof.sentence();
        let expected = "silo 2 broke the rules of the federation ";
        assert!(said.starts_with(expected), "{said}");
        assert!(said.contains("Nullify and Finalize in view 7"), "{said}");
        let alone = read.check(&path, None).unwrap().sentence();
        assert!(alone.contains("give it with --federation"), "{alone}");
        // A second piece against the same member is not needed.
        let mut more = written.clone();
        more.charge.clear();
        more.keep(folder.path()).unwrap();
        assert_eq!(EvidenceFile::read(&path).unwrap(), written);
    }

    #[test]
    fn changed_evidence_proves_nothing() {
        let epoch = epoch("north");
        let path = Path::new("x.json");
        let why = |file: EvidenceFile, epoch: &Epoch| {
            let error = file.check(path, Some(epoch)).unwrap_err();
            error.to_string()
        };
        let good = evidence(&epoch, 2);
        // Every byte of a message counts.
        let length = good.messages[1].len() / 2;
        for at in 0..length {
            let mut bytes = HEXLOWER_PERMISSIVE
                .decode(good.messages[1].as_bytes())
                .unwrap();
            bytes[at] ^= 1;
            let mut bad = good.clone();
            bad.messages[1] = HEXLOWER_PERMISSIVE.encode(&bytes);
            why(bad, &epoch);
        }
        let mut twice = good.clone();
        twice.messages[1] = twice.messages[0].clone();
        assert!(why(twice, &epoch).contains("may sign both"));
        // Another member, a key that is not in the roster, another federation.
        let mut other = good.clone();
        other.member.position = 1;
        assert!(why(other, &epoch).contains("is not that of member #1"));
        let mut stranger = good.clone();
        stranger.member.key = format!("{}", key(9).public());
        assert!(why(stranger.clone(), &epoch).contains("is not that of member"));
        let alone = stranger.check(path, None).unwrap_err().to_string();
        assert!(alone.contains("is not signed with the key"), "{alone}");
        assert!(why(good, &self::epoch("south")).contains("the agreement is that of"));
    }
}
