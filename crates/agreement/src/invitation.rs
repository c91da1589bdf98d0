//! An invitation: an agreement as one line of text that goes into a mail.
//!
//! ```text
//! rota-invite-1-BASE64URL(checksum 8 │ whom │ hash of what is carried │ compressed federation.toml)
//! ```
//!
//! The checksum finds damage on the way, the hash is compared with that of the agreement that was
//! read. What mail programs put into long lines and around them does not count.
//!
//! An invitation to a federation that runs is of version 2: the agreement in force goes with the first
//! one. The hashes prove who is meant and not that it is in force: that, the newcomer's node learns from
//! the members, with the signatures of a quorum for every change.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use protocol::Hash;
use serde::{Deserialize, Serialize};
use task::file::CONFIGURATION;

use crate::agreement::Agreement;
use crate::config_error::ConfigError;
use crate::draft::Draft;
use crate::token::{TokenFault, TokenKind, decode};

/// Begins every token.
const KIND: TokenKind = TokenKind {
    mark: "rota-invite-",
    label: "rota invitation",
};
/// The version of an invitation to a federation that has not begun.
const VERSION: u64 = 1;
/// The version of an invitation to one that runs.
const RUNNING: u64 = 2;
/// The file as errors in it name it.
const FILE: &str = "the invitation's federation.toml";

/// An agreement on its way to the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The member that it is for; `None`: for all.
    pub to: Option<String>,
    /// The text of `federation.toml`. Members may still be missing in it.
    pub text: String,
    /// The agreement in force, of a federation that runs.
    pub in_force: Option<InForce>,
}

/// The agreement that the member who invites has in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InForce {
    /// Number of changes so far.
    pub changes: u64,
    /// The text of the agreement after them.
    pub text: String,
}

/// Why a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Not a token.
    #[error(
        "this is no invitation: a token of `rota federation invite` begins with {}{VERSION}- or {}{RUNNING}-",
        KIND.mark, KIND.mark
    )]
    Form,
    /// A token of another version of the program.
    #[error(
        "this invitation has version {0}, and this program reads versions {VERSION} and {RUNNING}: use the version of Rota that its sender has"
    )]
    Version(String),
    /// Some of its characters were lost or changed.
    #[error(
        "this invitation is damaged, its checksum does not match: copy the whole line again, or ask for it once more"
    )]
    Damaged,
    /// The token carries an agreement that does not have the hash that its sender saw.
    #[error(
        "this invitation carries another agreement than its hash says, {found} and not {expected}: do not use it, and ask its sender"
    )]
    Hash {
        /// The hash of what was read, shortened.
        found: Hash,
        /// The hash in the token, shortened.
        expected: Hash,
    },
    /// The file that it carries.
    #[error(transparent)]
    Agreement(#[from] ConfigError),
}

/// What is encoded.
#[derive(Serialize, Deserialize)]
struct Payload {
    to: Option<String>,
    hash: Hash,
    packed: Vec<u8>,
}

/// What is encoded of a federation that runs. The agreement in force is empty where it is the first.
#[derive(Serialize, Deserialize)]
struct RunningFederation {
    first: Payload,
    changes: u64,
    hash: Hash,
    packed: Vec<u8>,
}

impl From<TokenFault> for TokenError {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Form => Self::Form,
            TokenFault::Version(version) => Self::Version(version),
            TokenFault::Damaged => Self::Damaged,
        }
    }
}

impl Invitation {
    /// The token.
    ///
    /// # Errors
    /// [`ConfigError`]: a text that is neither an agreement nor a draft of one.
    pub fn token(&self) -> Result<String, ConfigError> {
        let first = Payload {
            to: self.to.clone(),
            hash: hash(&self.text)?,
            packed: pack(&self.text),
        };
        let Some(InForce { changes, text }) = &self.in_force else {
            return Ok(KIND.write(VERSION, &first));
        };
        let running = RunningFederation {
            first,
            changes: *changes,
            hash: hash(text)?,
            packed: if *text == self.text {
                Vec::new()
            } else {
                pack(text)
            },
        };
        Ok(KIND.write(RUNNING, &running))
    }

    /// Reads a token.
    ///
    /// # Errors
    /// [`TokenError`]: not a token, another version, damage, or an agreement that cannot be read.
    pub fn read(token: &str) -> Result<Self, TokenError> {
        let (version, payload) = KIND.open(token, &[VERSION, RUNNING])?;
        let (first, running) = match version {
            RUNNING => {
                let RunningFederation {
                    first,
                    changes,
                    hash,
                    packed,
                } = decode(&payload)?;
                (first, Some((changes, hash, packed)))
            }
            _ => (decode(&payload)?, None),
        };
        let text = unpack(&first.packed)?;
        compare(&text, first.hash)?;
        let in_force = running.map(|(changes, hash, packed)| {
            let text = if packed.is_empty() {
                text.clone()
            } else {
                unpack(&packed)?
            };
            compare(&text, hash)?;
            Ok::<_, TokenError>(InForce { changes, text })
        });
        Ok(Self {
            to: first.to,
            in_force: in_force.transpose()?,
            text,
        })
    }

    /// The agreement, if its members are complete.
    ///
    /// # Errors
    /// [`ConfigError`]: what is missing or wrong.
    pub fn agreement(&self) -> Result<Agreement, ConfigError> {
        Agreement::parse(FILE, &self.text)
    }

    /// The agreement in force with the number of changes so far; `None` in an invitation to a federation
    /// that has not begun.
    ///
    /// # Errors
    /// [`ConfigError`]: what is wrong.
    pub fn agreement_in_force(&self) -> Result<Option<(u64, Agreement)>, ConfigError> {
        let Some(InForce { changes, text }) = &self.in_force else {
            return Ok(None);
        };
        let agreement = Agreement::parse("the invitation's agreement in force", text)?;
        Ok(Some((*changes, agreement)))
    }
}

/// Returns what the hashes of a token are of: the agreement's contents, or the draft.
fn hash(text: &str) -> Result<Hash, ConfigError> {
    match Agreement::parse(FILE, text) {
        Ok(agreement) => Ok(agreement.epoch.federation),
        Err(_) => {
            Draft::parse(FILE, text)?;
            Ok(Hash::labelled("rota draft", &[text.as_bytes()]))
        }
    }
}

fn compare(text: &str, expected: Hash) -> Result<(), TokenError> {
    let found = hash(text)?;
    if found == expected {
        Ok(())
    } else {
        Err(TokenError::Hash { found, expected })
    }
}

fn pack(text: &str) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed
        .write_all(text.as_bytes())
        .and_then(|()| packed.finish())
        .expect("writing to memory does not fail")
}

fn unpack(packed: &[u8]) -> Result<String, TokenError> {
    let mut text = String::new();
    let read = ZlibDecoder::new(packed)
        .take(CONFIGURATION + 1)
        .read_to_string(&mut text);
    if read.is_ok() && text.len() as u64 <= CONFIGURATION {
        Ok(text)
    } else {
        Err(TokenError::Damaged)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn invitation() -> Invitation {
        Invitation {
            to: Some("south".into()),
            text: EXAMPLE.into(),
            in_force: None,
        }
    }

    /// To the federation of the example after one change, or none.
    fn running(changes: u64) -> Invitation {
        let text = match changes {
            0 => EXAMPLE.to_owned(),
            _ => EXAMPLE.replacen("\nrounds = ", "\nrounds = 1", 1),
        };
        Invitation {
            in_force: Some(InForce { changes, text }),
            ..invitation()
        }
    }

    #[test]
    fn an_invitation_to_a_federation_that_runs_carries_both_agreements() {
        for changes in [0, 1] {
            let sent = running(changes);
            let token = sent.token().unwrap();
            assert!(token.starts_with("rota-invite-2-"), "{token}");
            let read = Invitation::read(&token).unwrap();
            assert_eq!(read, sent);
            let first = read.agreement().unwrap();
            let (found, now) = read.agreement_in_force().unwrap().unwrap();
            assert_eq!(found, changes);
            let same = first.epoch.federation == now.epoch.federation;
            assert_eq!(same, changes == 0);
        }
        // The same agreement is not carried twice.
        let (plain, twice) = (invitation().token().unwrap(), running(0).token().unwrap());
        assert!(twice.len() < plain.len() + 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_token_is_read_back_also_with_white_space_in_it(
            to in prop::option::of("[a-zß ]{1,20}"), comment in "\\PC{0,60}", breaks in 20usize..200,
        ) {
            let text = format!("# {comment}\n{EXAMPLE}");
            let sent = Invitation { to, text, in_force: None };
            let token = sent.token().unwrap();
            prop_assert!(token.is_ascii() && !token.contains(char::is_whitespace));
            let lines: Vec<_> = token.as_bytes().chunks(breaks).map(|line| str::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(&Invitation::read(&lines.join("\r\n")).unwrap(), &sent);
            prop_assert_eq!(Invitation::read(&token).unwrap(), sent);
        }

        #[test]
        fn a_token_is_found_in_a_mail(
            width in 20usize..200, handshake in "[A-Za-z ,.!\n]{0,80}", signature in "[A-Za-z ,.\n-]{0,80}",
        ) {
            let sent = invitation();
            let token = sent.token().unwrap();
            let lines: Vec<_> = token.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            for between in ["\n", "\r\n", "\n> ", "\n>> ", "\n| > ", "\u{a0}\n", "=\r\n", "\n>", "\u{200b} \n\t"] {
                let mail = format!("{handshake}\n{between}{}\n\n{signature}", lines.join(between));
                prop_assert_eq!(&Invitation::read(&mail).unwrap(), &sent, "{:?}", between);
            }
            for around in [["<", ">"], ["\"", "\"."], ["(", ")"], ["`", "`, please"], ["Invitation: ", "\n--\nN. N."]] {
                let mail = format!("{}{token}{}", around[0], around[1]);
                prop_assert_eq!(&Invitation::read(&mail).unwrap(), &sent, "{:?}", around);
            }
            // Where it is spoken of before it comes.
            let mail = format!("It begins with rota-invite-1- and is long:\n\n{token}\n{signature}");
            prop_assert_eq!(Invitation::read(&mail).unwrap(), sent);
        }

        #[test]
        fn any_changed_character_is_refused(place in any::<prop::sample::Index>(), to in 0x21u8..0x7f) {
            let mut token = invitation().token().unwrap().into_bytes();
            let place = place.index(token.len());
            prop_assume!(token[place] != to);
            token[place] = to;
            let token = String::from_utf8(token).unwrap();
            prop_assert!(Invitation::read(&token).is_err(), "{}", place);
        }

        #[test]
        fn a_token_that_lost_its_end_is_refused(length in any::<prop::sample::Index>()) {
            let token = invitation().token().unwrap();
            prop_assert!(Invitation::read(&token[..length.index(token.len())]).is_err());
        }
    }

    #[test]
    fn every_wrong_token_says_what_is_wrong() {
        let token = invitation().token().unwrap();
        let said = |token: &str| Invitation::read(token).unwrap_err().to_string();
        assert!(said("hello").starts_with("this is no invitation: a token"));
        assert!(
            said(&token.replacen("invite-1-", "invite-7-", 1)).starts_with(
                "this invitation has version 7, and this program reads versions 1 and 2"
            )
        );
        let at = token.len() / 2;
        let other = if &token[at..=at] == "A" { "B" } else { "A" };
        let changed = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert!(said(&changed).starts_with("this invitation is damaged, its checksum"));
    }

    #[test]
    fn a_token_whose_hash_is_of_another_agreement_is_refused() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed.write_all(EXAMPLE.as_bytes()).unwrap();
        let payload = Payload {
            to: None,
            hash: Hash::of(b"another"),
            packed: packed.finish().unwrap(),
        };
        let token = KIND.write(VERSION, &payload);
        assert!(matches!(
            Invitation::read(&token),
            Err(TokenError::Hash { .. })
        ));
    }

    #[test]
    fn what_unpacks_to_more_than_a_configuration_is_refused() {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        packed
            .write_all(&vec![b'#'; CONFIGURATION as usize + 10])
            .unwrap();
        let payload = Payload {
            to: None,
            hash: Hash::of(b""),
            packed: packed.finish().unwrap(),
        };
        let token = KIND.write(VERSION, &payload);
        assert!(token.len() < 20_000);
        assert!(matches!(Invitation::read(&token), Err(TokenError::Damaged)));
    }
}
