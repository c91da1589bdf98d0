//! An invitation: an agreement as one line of text that goes into a mail.
//!
//! ```text
//! rota-invite-1-BASE64URL(checksum 8 │ whom │ hash of what is carried │ compressed federation.toml)
//! ```
//!
//! The checksum finds damage on the way, the hash is compared with that of the agreement that was
//! read. White space, which mail programs put into long lines, does not count.

use std::io::{Read, Write};

use data_encoding::BASE64URL_NOPAD;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use learn::file::CONFIGURATION;
use protocol::{Hash, codec};
use serde::{Deserialize, Serialize};

use crate::agreement::{Agreement, ConfigError};
use crate::draft::Draft;

/// Begins every token.
const MARK: &str = "rota-invite-";
/// The version that this program writes and reads.
const VERSION: u64 = 1;
/// Bytes of the checksum.
const CHECKSUM: usize = 8;
/// The file as errors in it name it.
const FILE: &str = "the invitation's federation.toml";

/// An agreement on its way to the members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The member that it is for; `None`: for all.
    pub to: Option<String>,
    /// The text of `federation.toml`. Members may still be missing in it.
    pub text: String,
}

/// Why a token cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Not a token.
    #[error(
        "this is no invitation: a token of `rota federation invite` begins with {MARK}{VERSION}-"
    )]
    Form,
    /// A token of another version of the program.
    #[error(
        "this invitation has version {0}, and this program reads version {VERSION}: use the version of Rota that its sender has"
    )]
    Version(String),
    /// Some of its characters were lost or changed.
    #[error(
        "this invitation is damaged, its checksum does not match: copy the whole line again, or ask for it once more"
    )]
    Damaged,
    /// What it carries is not what its sender saw.
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

impl Invitation {
    /// The token.
    ///
    /// # Errors
    /// [`ConfigError`]: a text that is neither an agreement nor a draft of one.
    pub fn token(&self) -> Result<String, ConfigError> {
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
        let packed = packed
            .write_all(self.text.as_bytes())
            .and_then(|()| packed.finish())
            .expect("writing to memory does not fail");
        let payload = codec::encode(&Payload {
            to: self.to.clone(),
            hash: self.hash()?,
            packed,
        });
        let mut bytes = checksum(&payload).to_vec();
        bytes.extend_from_slice(&payload);
        Ok(format!(
            "{MARK}{VERSION}-{}",
            BASE64URL_NOPAD.encode(&bytes)
        ))
    }

    /// Reads a token.
    ///
    /// # Errors
    /// [`TokenError`]: not a token, another version, damage, or an agreement that cannot be read.
    pub fn read(token: &str) -> Result<Self, TokenError> {
        let token: String = token.split_whitespace().collect();
        let rest = token.strip_prefix(MARK).ok_or(TokenError::Form)?;
        let (version, rest) = rest.split_once('-').ok_or(TokenError::Form)?;
        if version.is_empty() || !version.chars().all(|digit| digit.is_ascii_digit()) {
            return Err(TokenError::Form);
        }
        if version != VERSION.to_string() {
            return Err(TokenError::Version(version.into()));
        }
        let bytes = BASE64URL_NOPAD.decode(rest.as_bytes());
        let bytes = bytes.map_err(|_| TokenError::Damaged)?;
        let (sum, payload) = bytes
            .split_at_checked(CHECKSUM)
            .ok_or(TokenError::Damaged)?;
        if sum != checksum(payload) {
            return Err(TokenError::Damaged);
        }
        let payload: Payload =
            codec::decode(payload, CONFIGURATION as usize).map_err(|_| TokenError::Damaged)?;
        let mut text = String::new();
        let read = ZlibDecoder::new(payload.packed.as_slice())
            .take(CONFIGURATION + 1)
            .read_to_string(&mut text);
        if read.is_err() || text.len() as u64 > CONFIGURATION {
            return Err(TokenError::Damaged);
        }
        let invitation = Self {
            to: payload.to,
            text,
        };
        let (found, expected) = (invitation.hash()?, payload.hash);
        match found == expected {
            true => Ok(invitation),
            false => Err(TokenError::Hash { found, expected }),
        }
    }

    /// The agreement, if its members are complete.
    ///
    /// # Errors
    /// [`ConfigError`]: what is missing or wrong.
    pub fn agreement(&self) -> Result<Agreement, ConfigError> {
        Agreement::parse(FILE, &self.text)
    }

    /// What the hash of the token is of: the federation's id, or a hash of the draft.
    fn hash(&self) -> Result<Hash, ConfigError> {
        match self.agreement() {
            Ok(agreement) => Ok(agreement.epoch.federation),
            Err(_) => {
                Draft::parse(FILE, &self.text)?;
                Ok(Hash::labelled("rota draft", &[self.text.as_bytes()]))
            }
        }
    }
}

fn checksum(payload: &[u8]) -> [u8; CHECKSUM] {
    let hash = Hash::labelled("rota invitation", &[payload]);
    let mut sum = [0; CHECKSUM];
    sum.copy_from_slice(&hash.0[..CHECKSUM]);
    sum
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
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_token_is_read_back_also_with_white_space_in_it(
            to in prop::option::of("[a-zß ]{1,20}"), comment in "\\PC{0,60}", breaks in 20usize..200,
        ) {
            let text = format!("# {comment}\n{EXAMPLE}");
            let sent = Invitation { to, text };
            let token = sent.token().unwrap();
            prop_assert!(token.is_ascii() && !token.contains(char::is_whitespace));
            let lines: Vec<_> = token.as_bytes().chunks(breaks).map(|line| str::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(&Invitation::read(&lines.join("\r\n")).unwrap(), &sent);
            prop_assert_eq!(Invitation::read(&token).unwrap(), sent);
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
            said(&token.replacen("invite-1-", "invite-7-", 1))
                .starts_with("this invitation has version 7, and this program reads version 1")
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
        let payload = codec::encode(&Payload {
            to: None,
            hash: Hash::of(b"another"),
            packed: packed.finish().unwrap(),
        });
        let bytes = [&checksum(&payload)[..], &payload].concat();
        let token = format!("{MARK}{VERSION}-{}", BASE64URL_NOPAD.encode(&bytes));
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
        let payload = codec::encode(&Payload {
            to: None,
            hash: Hash::of(b""),
            packed: packed.finish().unwrap(),
        });
        let bytes = [&checksum(&payload)[..], &payload].concat();
        let token = format!("{MARK}{VERSION}-{}", BASE64URL_NOPAD.encode(&bytes));
        assert!(token.len() < 20_000);
        assert!(matches!(Invitation::read(&token), Err(TokenError::Damaged)));
    }
}
