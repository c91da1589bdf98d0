//! A member's signed consent to an agreement.
//!
//! It is a small TOML file that goes back to whoever drafted the agreement, and stays beside the
//! member's own `federation.toml`. The signature covers the federation's id and that of the epoch, so it
//! holds for this agreement and no other, the name, the key and the time.
//!
//! An institution that joins a federation that runs signs before the members admit it, so it knows the
//! agreement, with itself in it, and not the epoch that will bring it into force. Its signature covers
//! the [contents](Agreement::contents), and holds under whichever change brings these.

use std::path::Path;
use std::time::{Duration, SystemTime};

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use protocol::identity::{Signature, SignatureClaim, Strict, Verifier, VerifyingKey};
use protocol::{Hash, MemberIndex, PublicKey, SecretKey};
use serde::{Deserialize, Serialize};

use crate::agreement::{Agreement, public_key, read_configuration};
use crate::config_error::ConfigError;
use crate::date::{seconds, utc};
use crate::source::TomlText;

/// Version of the format, and of what is signed.
const FORMAT: u32 = 1;
/// Keeps these signatures apart from all others that a member's key makes.
const LABEL: &str = "rota: consent to the agreement of a federation, 1";
/// Label of a signature under the agreement of a later epoch.
const CHANGED: &str = "rota: consent to the changed agreement of a federation, 1";

/// Label of a signature under the contents of an agreement, whichever change brings them into force.
const CONTENTS: &str = "rota: consent to the contents of an agreement of a federation, 1";

/// A signed consent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consent {
    /// The id of the federation whose agreement it is.
    pub federation: Hash,
    /// The id of the epoch in which the agreement is in force; `None` for the first agreement.
    pub epoch: Option<Hash>,
    /// The hash of the agreement's contents, where they were signed instead of an epoch.
    pub contents: Option<Hash>,
    /// The member's name.
    pub name: String,
    /// The key that signed.
    pub key: PublicKey,
    /// Time of the signature by the signer's clock, in whole seconds.
    pub at: SystemTime,
    signature: Signature,
}

/// Reason for which a consent does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConsentError {
    /// To another agreement.
    #[error(
        "it is the consent of {name} to another agreement, {found} and not {expected}: sign this one with `rota federation sign`"
    )]
    Federation {
        /// Name of the signer.
        name: String,
        /// The id that was signed, shortened.
        found: Hash,
        /// The id of this agreement, shortened.
        expected: Hash,
    },
    /// To the agreement of another epoch of this federation.
    #[error(
        "it is the consent of {name} to the agreement as it was before or after a change, and not to this \
         one: sign this one with `rota federation sign`"
    )]
    Epoch {
        /// Name of the signer.
        name: String,
    },
    /// By a key that is not in the roster.
    #[error("it is signed by {name} with the key {key}, which is not in the agreement")]
    Stranger {
        /// Name of the signer.
        name: String,
        /// With which key.
        key: PublicKey,
    },
    /// The name of another member than the key's.
    #[error("it has the name {written:?}, and its key belongs to {member:?}")]
    Name {
        /// The name in the consent.
        written: String,
        /// The member with that key.
        member: String,
    },
    /// The signature does not hold.
    #[error("the signature of {0} does not hold: the file was changed; ask for it again")]
    Signature(String),
}

/// A consent as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ConsentFile {
    format: u32,
    federation: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    contents: Option<String>,
    name: String,
    key: String,
    signed_at: String,
    signature: String,
}

impl Consent {
    /// Signs an agreement as the member whose key this is; `None` if it is no member's.
    pub fn sign(agreement: &Agreement, key: &SecretKey, at: SystemTime) -> Option<Self> {
        let about = ConsentSubject {
            federation: agreement.epoch.federation,
            epoch: changed(agreement),
            contents: None,
        };
        Self::signed(&about, agreement, key, at)
    }

    /// Signs the contents of an agreement that is to come into force in this federation, as the member in
    /// it whose key this is; `None` if it is no member's.
    pub fn sign_contents(
        federation: Hash,
        agreement: &Agreement,
        key: &SecretKey,
        at: SystemTime,
    ) -> Option<Self> {
        let about = ConsentSubject {
            federation,
            epoch: None,
            contents: Some(agreement.contents()?),
        };
        Self::signed(&about, agreement, key, at)
    }

    fn signed(
        about: &ConsentSubject,
        agreement: &Agreement,
        key: &SecretKey,
        at: SystemTime,
    ) -> Option<Self> {
        let roster = &agreement.epoch.roster;
        let name = roster.name(roster.position(&key.public())?).to_owned();
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs();
        // One that no file can say is none.
        utc(seconds)?;
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let public = key.public();
        let statement = statement(about, &name, &public, seconds);
        Some(Self {
            federation: about.federation,
            epoch: about.epoch,
            contents: about.contents,
            name,
            key: public,
            at,
            signature: key.sign(&statement.0),
        })
    }

    /// Checks that this is a member's consent to `agreement`, and returns that member's position.
    ///
    /// # Errors
    /// [`ConsentError`]: why it does not count.
    pub fn check(&self, agreement: &Agreement) -> Result<MemberIndex, ConsentError> {
        let (epoch, name) = (&agreement.epoch, self.name.clone());
        if self.federation != epoch.federation {
            return Err(ConsentError::Federation {
                name,
                found: self.federation,
                expected: epoch.federation,
            });
        }
        let meant = match self.contents {
            Some(_) => epoch.number > 0 && self.contents == agreement.contents(),
            None => self.epoch == changed(agreement),
        };
        if !meant {
            return Err(ConsentError::Epoch { name });
        }
        let member = epoch.roster.position(&self.key);
        let key = self.key;
        let member = member.ok_or(ConsentError::Stranger { name, key })?;
        let own = epoch.roster.name(member);
        if self.name != own {
            return Err(ConsentError::Name {
                written: self.name.clone(),
                member: own.into(),
            });
        }
        let seconds = seconds(self.at);
        let about = ConsentSubject {
            federation: self.federation,
            epoch: self.epoch,
            contents: self.contents,
        };
        let signed = statement(&about, &self.name, &self.key, seconds);
        let holds = VerifyingKey::new(&self.key).is_some_and(|key| {
            Strict.verify(&SignatureClaim {
                key: &key,
                message: &signed.0,
                signature: self.signature,
            })
        });
        if holds {
            Ok(member)
        } else {
            Err(ConsentError::Signature(self.name.clone()))
        }
    }

    /// Returns when it was signed, in UTC: `2026-03-01T12:00:00Z`.
    pub fn time(&self) -> String {
        let seconds = seconds(self.at);
        utc(seconds).unwrap_or_else(|| format!("{seconds} s after 1970"))
    }

    /// The text of the file.
    ///
    /// # Errors
    /// A value that cannot be written in TOML.
    pub fn to_toml(&self) -> Result<String, String> {
        let raw = ConsentFile {
            format: FORMAT,
            federation: HEXLOWER.encode(&self.federation.0),
            epoch: self.epoch.map(|epoch| HEXLOWER.encode(&epoch.0)),
            contents: self.contents.map(|contents| HEXLOWER.encode(&contents.0)),
            name: self.name.clone(),
            key: self.key.to_string(),
            signed_at: self.time(),
            signature: HEXLOWER.encode(&self.signature.to_bytes()),
        };
        let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
        Ok(format!(
            "# A member's consent to the agreement of a federation, signed with its key. Beside \
             federation.toml,\n# `rota federation show` and `check` list it.\n{text}"
        ))
    }

    /// Reads the text of a file; errors name `file`. The signature is not checked.
    ///
    /// # Errors
    /// [`ConfigError`]: the first error in the text.
    pub fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let source = TomlText { file, text };
        source.check_format(FORMAT)?;
        let raw: ConsentFile = toml::from_str(text).map_err(|error| source.toml(&error))?;
        let wrong = |key: &str, what: &str| ConfigError::At(source.key_of(key, what));
        let digits = "must be 64 hexadecimal digits";
        let federation = public_key(&raw.federation).ok_or_else(|| wrong("federation", digits))?;
        let hash = |key: &str, text: Option<&str>| {
            let read = text.map(|text| public_key(text).ok_or_else(|| wrong(key, digits)));
            Ok::<_, ConfigError>(read.transpose()?.map(|read| Hash(read.0)))
        };
        let epoch = hash("epoch", raw.epoch.as_deref())?;
        let contents = hash("contents", raw.contents.as_deref())?;
        let key = public_key(&raw.key).ok_or_else(|| wrong("key", digits))?;
        protocol::name::check(&raw.name).map_err(|why| wrong("name", &why.to_string()))?;
        let at = humantime::parse_rfc3339(&raw.signed_at).ok();
        let at = at.filter(|at| *at >= SystemTime::UNIX_EPOCH);
        let at = at.ok_or_else(|| wrong("signed-at", "must be like \"2026-03-01T12:00:00Z\""))?;
        let signature = HEXLOWER_PERMISSIVE.decode(raw.signature.as_bytes()).ok();
        let signature = signature.and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        let signature =
            signature.ok_or_else(|| wrong("signature", "must be 128 hexadecimal digits"))?;
        Ok(Self {
            federation: Hash(federation.0),
            epoch,
            contents,
            name: raw.name,
            key,
            at,
            signature: Signature::from_bytes(&signature),
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`ConfigError`]: the file cannot be read, or the first error in it.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::parse(&file.display().to_string(), &read_configuration(file)?)
    }
}

/// The id of the epoch in which an agreement is in force, if it is not the first.
fn changed(agreement: &Agreement) -> Option<Hash> {
    let epoch = &agreement.epoch;
    (epoch.number > 0).then_some(epoch.id)
}

/// Subject of a consent: the agreement that is signed.
struct ConsentSubject {
    federation: Hash,
    epoch: Option<Hash>,
    contents: Option<Hash>,
}

/// The bytes that are signed.
fn statement(about: &ConsentSubject, name: &str, key: &PublicKey, seconds: u64) -> Hash {
    let seconds = seconds.to_le_bytes();
    let federation = &about.federation.0[..];
    let (name, key) = (name.as_bytes(), &key.0[..]);
    let to =
        |label, hash: &Hash| Hash::labelled(label, &[federation, &hash.0, name, key, &seconds]);
    match (&about.contents, &about.epoch) {
        (Some(contents), _) => to(CONTENTS, contents),
        (None, Some(epoch)) => to(CHANGED, epoch),
        (None, None) => Hash::labelled(LABEL, &[federation, name, key, &seconds]),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    /// The example with the first member's key replaced by that of `key`.
    fn agreement(key: &SecretKey) -> Agreement {
        let old = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
        let text = EXAMPLE.replace(old, &key.public().to_string());
        Agreement::parse("federation.toml", &text).unwrap()
    }

    #[test]
    fn a_consent_is_read_back_and_holds_for_its_agreement_alone() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement(&key);
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_772_366_400_987);
        let consent = Consent::sign(&agreement, &key, now).unwrap();
        assert_eq!(consent.time(), "2026-03-01T12:00:00Z");
        let read = Consent::parse("consent.toml", &consent.to_toml().unwrap()).unwrap();
        assert_eq!(read, consent);
        assert_eq!(read.check(&agreement), Ok(MemberIndex(0)));
        // Of a key that is not in the roster there is none.
        let stranger = SecretKey::from_bytes(&[8; 32]);
        assert!(Consent::sign(&agreement, &stranger, now).is_none());
        let other = self::agreement(&stranger);
        assert!(matches!(
            read.check(&other),
            Err(ConsentError::Federation { .. })
        ));
    }

    #[test]
    fn consent_to_the_agreement_of_one_epoch_is_not_to_another() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let first = agreement(&key);
        let later = |id: u8| {
            let mut epoch = (*first.epoch).clone();
            (epoch.id, epoch.number) = (Hash([id; 32]), 1);
            Agreement {
                epoch: epoch.into(),
                ..first.clone()
            }
        };
        let (second, third) = (later(2), later(3));
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400);
        let all = [&first, &second, &third];
        for (at_first, signed) in all.into_iter().enumerate() {
            let consent = Consent::sign(signed, &key, at).unwrap();
            let text = consent.to_toml().unwrap();
            assert_eq!(text.contains("epoch = "), at_first > 0, "{text}");
            let read = Consent::parse("consent.toml", &text).unwrap();
            assert_eq!(read, consent);
            for other in all {
                let found = read.check(other);
                if std::ptr::eq(other, signed) {
                    assert_eq!(found, Ok(MemberIndex(0)))
                } else {
                    assert!(matches!(found, Err(ConsentError::Epoch { .. })))
                }
            }
        }
        // Another epoch written into the file breaks the signature.
        let text = Consent::sign(&second, &key, at).unwrap().to_toml().unwrap();
        let moved = text.replace(&"02".repeat(32), &"03".repeat(32));
        assert_ne!(moved, text);
        let moved = Consent::parse("c.toml", &moved).unwrap();
        assert!(matches!(
            moved.check(&third),
            Err(ConsentError::Signature(_))
        ));
        let dropped: Vec<_> = text
            .lines()
            .filter(|line| !line.starts_with("epoch"))
            .collect();
        let dropped = Consent::parse("c.toml", &dropped.join("\n")).unwrap();
        assert!(matches!(
            dropped.check(&first),
            Err(ConsentError::Signature(_))
        ));
    }

    #[test]
    fn consent_to_contents_holds_under_every_change_that_has_them() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let first = agreement(&key);
        let federation = Hash([7; 32]);
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400);
        let in_force = |number: u64, agreement: &Agreement| {
            let mut epoch = (*agreement.epoch).clone();
            (epoch.federation, epoch.id, epoch.number) = (federation, Hash([8; 32]), number);
            Agreement {
                epoch: epoch.into(),
                ..agreement.clone()
            }
        };
        let consent = Consent::sign_contents(federation, &first, &key, at).unwrap();
        let text = consent.to_toml().unwrap();
        let read = Consent::parse("consent.toml", &text).unwrap();
        assert_eq!(read, consent);
        for number in [1, 5] {
            assert_eq!(read.check(&in_force(number, &first)), Ok(MemberIndex(0)));
        }
        // Where a node is reached is no content, the number of rounds is.
        let mut moved = first.clone();
        moved.addresses[0] = vec!["/ip4/192.0.2.9/udp/4001/quic-v1".into()];
        assert_eq!(read.check(&in_force(1, &moved)), Ok(MemberIndex(0)));
        let text_of = first.to_toml().unwrap();
        let old = text_of.lines().find(|line| line.starts_with("rounds = "));
        let longer = text_of.replacen(old.unwrap(), "rounds = 77", 1);
        let longer = Agreement::parse("federation.toml", &longer).unwrap();
        assert!(matches!(
            read.check(&in_force(1, &longer)),
            Err(ConsentError::Epoch { .. })
        ));
        // It is none to the first agreement of a federation, nor of another federation.
        assert!(read.check(&first).is_err());
        let other = Consent::sign_contents(Hash([6; 32]), &first, &key, at).unwrap();
        assert!(matches!(
            other.check(&in_force(1, &first)),
            Err(ConsentError::Federation { .. })
        ));
        // What was signed of one kind is nothing of another.
        let as_epoch = text.replace("contents = ", "epoch = ");
        let as_epoch = Consent::parse("c.toml", &as_epoch).unwrap();
        let mut at_epoch = in_force(1, &first);
        let mut epoch = (*at_epoch.epoch).clone();
        epoch.id = first.contents().unwrap();
        at_epoch.epoch = epoch.into();
        assert!(matches!(
            as_epoch.check(&at_epoch),
            Err(ConsentError::Signature(_))
        ));
    }

    #[test]
    fn a_changed_consent_does_not_hold() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement(&key);
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_772_366_400);
        let text = Consent::sign(&agreement, &key, at)
            .unwrap()
            .to_toml()
            .unwrap();
        let with = |from: &str, to: &str| {
            let text = text.replacen(from, to, 1);
            Consent::parse("c.toml", &text).unwrap().check(&agreement)
        };
        assert!(matches!(
            with("2026-03-01T12", "2026-03-01T13"),
            Err(ConsentError::Signature(_))
        ));
        assert!(matches!(
            with("name = \"north\"", "name = \"south\""),
            Err(ConsentError::Name { .. })
        ));
        let south = agreement.epoch.roster.silos()[1].key.to_string();
        let moved = text
            .replace(&key.public().to_string(), &south)
            .replace("\"north\"", "\"south\"");
        let moved = Consent::parse("c.toml", &moved).unwrap().check(&agreement);
        assert_eq!(moved, Err(ConsentError::Signature("south".into())));
        let short = text.replace("signature = \"", "signature = \"ab");
        let error = Consent::parse("c.toml", &short).unwrap_err().to_string();
        assert!(
            error.ends_with("`signature` must be 128 hexadecimal digits"),
            "{error}"
        );
    }
}
