//! A request to be admitted to a federation that runs: one line of text, which the newcomer sends to the
//! member that invited it.
//!
//! ```text
//! rota-join-2-BASE64URL(checksum 8 │ name, key, addresses, rows, time │ signature)
//! ```
//!
//! Its signature covers the contents of the agreement with the newcomer in it, so that the members know
//! before they admit it that it has signed what they will bring into force. Of its rows it says only the number
//! that it declares. Requests of version 1 also had the exact number of rows that fit, which is not read.

use protocol::identity::{Signature, SignatureClaim, Strict, Verifier, VerifyingKey};
use protocol::name::{self, NameError};
use protocol::{Hash, PublicKey, SecretKey, codec};
use serde::{Deserialize, Serialize};

use crate::agreement::Agreement;
use crate::amend::AmendError;
use crate::date::utc;
use crate::token::{TokenFault, TokenKind, decode};

const KIND: TokenKind = TokenKind {
    mark: "rota-join-",
    label: "rota request",
};
const VERSION: u64 = 2;
/// That of requests with the exact number of rows.
const COUNTED: u64 = 1;
/// Begins a line of a text that is no part of what it means.
const COMMENT: &str = "# ";
/// Stands above the request in the text of an amendment.
const SIGNED: &str = "# The newcomer has signed the agreement above, with this request:";
/// Keeps these signatures apart from all others that a key makes.
const LABEL: &str = "rota: asks to be admitted, 2";
const COUNTED_LABEL: &str = "rota: asks to be admitted, 1";

/// Statement of an institution that asks to join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinRequest {
    /// Name of the institution.
    pub name: String,
    /// Key of the institution, which signed the request.
    pub key: PublicKey,
    /// Addresses at which its node is reached.
    pub addresses: Vec<String>,
    /// Most training rows that its contributions may claim; `None`: any number.
    pub rows: Option<u64>,
    /// The federation's id.
    pub federation: Hash,
    /// The contents of the agreement with it as a member.
    pub contents: Hash,
    /// Time of the signature by its clock, in seconds since 1970.
    pub at: u64,
}

/// A request with its signature.
#[derive(Serialize, Deserialize)]
struct Signed<Request> {
    request: Request,
    signature: Signature,
}

/// A request of the first version.
#[derive(Serialize, Deserialize)]
struct CountedRequest {
    name: String,
    key: PublicKey,
    addresses: Vec<String>,
    rows: Option<u64>,
    fit: u64,
    federation: Hash,
    contents: Hash,
    at: u64,
}

impl From<CountedRequest> for JoinRequest {
    fn from(counted: CountedRequest) -> Self {
        Self {
            name: counted.name,
            key: counted.key,
            addresses: counted.addresses,
            rows: counted.rows,
            federation: counted.federation,
            contents: counted.contents,
            at: counted.at,
        }
    }
}

/// Reason for which a request does not count.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// Not a request.
    #[error(
        "this is no request to be admitted: the line that `rota federation join` prints begins with {}{VERSION}-",
        KIND.mark
    )]
    Form,
    /// A line of another version of the program.
    #[error(
        "this request has version {0}, and this program reads version {VERSION}: use the version of Rota \
         that its sender has"
    )]
    Version(String),
    /// Some of its characters were lost or changed.
    #[error("this request is damaged, its checksum does not match: copy the whole line again")]
    Damaged,
    /// The signature does not hold.
    #[error(
        "the signature of {0} under this request does not hold: do not use it, and ask its sender"
    )]
    Signature(String),
    /// A name that no member can have.
    #[error("the name in this request {0}: ask its sender for another one")]
    Name(#[from] NameError),
    /// A time that no file can say.
    #[error(
        "the request of {name} is dated {at} s after the beginning of 1970, which is after the year 9999: its \
         clock is wrong, or somebody wrote that on purpose; ask its sender for another one"
    )]
    Time {
        /// Name of the institution that asks.
        name: String,
        /// Time of the signature, in seconds since 1970.
        at: u64,
    },
    /// The request is for another federation.
    #[error("{name} asks to be admitted to another federation, {found} and not {expected}")]
    Federation {
        /// Name of the institution that asks.
        name: String,
        /// The federation of the request, shortened.
        found: Hash,
        /// This one, shortened.
        expected: Hash,
    },
    /// The agreement was changed since.
    #[error(
        "{0} has signed another agreement than the one that its admission would bring into force: it was \
         changed since the invitation. Invite it again, with `rota federation invite --config node.toml`"
    )]
    Changed(String),
    /// The institution cannot be a member.
    #[error(transparent)]
    Amend(#[from] AmendError),
}

impl From<TokenFault> for RequestError {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Form => Self::Form,
            TokenFault::Version(version) => Self::Version(version),
            TokenFault::Damaged => Self::Damaged,
        }
    }
}

impl JoinRequest {
    /// Returns whether a text is meant as one.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with(KIND.mark)
    }

    /// Signs the request and gives the line.
    pub fn token(&self, key: &SecretKey) -> String {
        let signed = Signed {
            request: self.clone(),
            signature: key.sign(&statement(LABEL, self).0),
        };
        KIND.write(VERSION, &signed)
    }

    /// Reads a line. Who sent it is proven; [`text`](Self::text) compares it with an agreement.
    ///
    /// # Errors
    /// [`RequestError`]: not a request, damage, a name that no member can have, a signature that does not hold, or a
    /// time after the year 9999.
    pub fn read(token: &str) -> Result<Self, RequestError> {
        let (version, payload) = KIND.open(token, &[VERSION, COUNTED])?;
        let (request, signed, signature) = if version == COUNTED {
            let Signed { request, signature } = decode::<Signed<CountedRequest>>(&payload)?;
            let signed = statement(COUNTED_LABEL, &request);
            (Self::from(request), signed, signature)
        } else {
            let Signed { request, signature } = decode::<Signed<Self>>(&payload)?;
            let signed = statement(LABEL, &request);
            (request, signed, signature)
        };
        name::check(&request.name)?;
        let holds = VerifyingKey::new(&request.key).is_some_and(|key| {
            Strict.verify(&SignatureClaim {
                key: &key,
                message: &signed.0,
                signature,
            })
        });
        let (name, at) = (request.name.clone(), request.at);
        match utc(at) {
            _ if !holds => Err(RequestError::Signature(name)),
            None => Err(RequestError::Time { name, at }),
            Some(_) => Ok(request),
        }
    }

    /// The text of `agreement`, which is in force, with the institution as a member: what it signed.
    ///
    /// # Errors
    /// [`RequestError`]: it asked another federation, signed another agreement, or cannot be a member.
    pub fn text(&self, agreement: &Agreement) -> Result<String, RequestError> {
        let expected = agreement.epoch.federation;
        if self.federation != expected {
            return Err(RequestError::Federation {
                name: self.name.clone(),
                found: self.federation,
                expected,
            });
        }
        let text = agreement.admitting(&self.name, self.key, self.rows, self.addresses.clone())?;
        let new = Agreement::parse("the amended agreement", &text);
        let new = new.map_err(|error| AmendError::Text(error.to_string()))?;
        if new.contents() == Some(self.contents) {
            Ok(text)
        } else {
            Err(RequestError::Changed(self.name.clone()))
        }
    }

    /// The text of an amendment with the line of a request at its end, as a comment: so all who are asked
    /// to approve it see that the newcomer has signed.
    pub fn beside(text: &str, token: &str) -> String {
        format!(
            "{}\n\n{SIGNED}\n{COMMENT}{}\n",
            text.trim_end(),
            token.trim()
        )
    }

    /// The request of the institution with this key that stands in the text of an amendment, compared
    /// with what the amendment makes of `agreement`, which is in force. `None`: there is none.
    ///
    /// # Errors
    /// [`RequestError`]: it is damaged, or the institution has signed another agreement.
    pub fn of(
        text: &str,
        key: &PublicKey,
        agreement: &Agreement,
        new: &Agreement,
    ) -> Option<Result<Self, RequestError>> {
        let marked = text.lines().filter_map(|line| line.strip_prefix(COMMENT));
        let tokens = marked.filter(|rest| Self::is_meant(rest));
        let mut damaged = None;
        for token in tokens {
            let request = match Self::read(token) {
                Ok(request) => request,
                Err(error) => {
                    damaged.get_or_insert(error);
                    continue;
                }
            };
            if request.key == *key {
                let same = |_| {
                    if new.contents() == Some(request.contents) {
                        Ok(())
                    } else {
                        Err(RequestError::Changed(request.name.clone()))
                    }
                };
                let signed = request.text(agreement).and_then(same);
                return Some(signed.map(|()| request));
            }
        }
        damaged.map(Err)
    }

    /// Returns when it was signed, in UTC: `2026-03-01T12:00:00Z`.
    pub fn time(&self) -> String {
        utc(self.at).unwrap_or_else(|| format!("{} s after 1970", self.at))
    }
}

/// Returns what is signed of a request.
fn statement(label: &str, request: &impl Serialize) -> Hash {
    Hash::labelled(label, &[&codec::encode(request)])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

    fn agreement() -> Agreement {
        Agreement::parse("federation.toml", EXAMPLE).unwrap()
    }

    fn request(agreement: &Agreement, key: &SecretKey) -> JoinRequest {
        let addresses = vec!["/dns/rota.archive.example/udp/4001/quic-v1".to_owned()];
        let text = agreement.admitting("archive", key.public(), Some(400), addresses.clone());
        let with = Agreement::parse("f", &text.unwrap()).unwrap();
        JoinRequest {
            name: "archive".into(),
            key: key.public(),
            addresses,
            rows: Some(400),
            federation: agreement.epoch.federation,
            contents: with.contents().unwrap(),
            at: 1_772_366_400,
        }
    }

    #[test]
    fn a_request_is_read_back_and_is_for_the_signed_agreement_only() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement();
        let request = request(&agreement, &key);
        let token = request.token(&key);
        assert!(JoinRequest::is_meant(&token));
        let read = JoinRequest::read(&token).unwrap();
        assert_eq!(read, request);
        assert_eq!(read.time(), "2026-03-01T12:00:00Z");
        assert!(read.text(&agreement).unwrap().contains("archive"));
        // The agreement was changed since.
        let text = agreement.to_toml().unwrap();
        let line = text.lines().find(|line| line.starts_with("rounds = "));
        let longer = text.replacen(line.unwrap(), "rounds = 77", 1);
        let longer = Agreement::parse("f", &longer).unwrap();
        let mut epoch = (*longer.epoch).clone();
        epoch.federation = agreement.epoch.federation;
        let longer = Agreement {
            epoch: epoch.into(),
            ..longer
        };
        assert!(matches!(read.text(&longer), Err(RequestError::Changed(_))));
        let mut foreign = read;
        foreign.federation = Hash([3; 32]);
        assert!(matches!(
            foreign.text(&agreement),
            Err(RequestError::Federation { .. })
        ));
    }

    #[test]
    fn a_request_in_an_amendment_counts_for_its_key_and_text_only() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement();
        let request = request(&agreement, &key);
        let bare = request.text(&agreement).unwrap();
        let text = JoinRequest::beside(&bare, &request.token(&key));
        let amended = |text: &str| Agreement::parse("f", text).unwrap();
        let new = amended(&text);
        // It changes nothing of what the text means.
        assert_eq!(new.contents(), amended(&bare).contents());
        assert!(agreement.amended("f", &text, learn::stand_in).is_ok());
        let of = |text: &str, key: &SecretKey, new: &Agreement| {
            JoinRequest::of(text, &key.public(), &agreement, new)
        };
        assert_eq!(of(&text, &key, &new).unwrap().unwrap(), request);
        assert!(of(&bare, &key, &new).is_none());
        let other = SecretKey::from_bytes(&[8; 32]);
        assert!(of(&text, &other, &new).is_none());
        // The proposer writes something else above it, or into it.
        let line = bare.lines().find(|line| line.starts_with("rounds = "));
        let longer = text.replacen(line.unwrap(), "rounds = 77", 1);
        assert!(matches!(
            of(&longer, &key, &amended(&longer)),
            Some(Err(RequestError::Changed(_)))
        ));
        let damaged = text.replacen("# rota-join-2-", "# rota-join-2-A", 1);
        assert!(matches!(
            of(&damaged, &key, &amended(&damaged)),
            Some(Err(RequestError::Damaged | RequestError::Form))
        ));
    }

    #[test]
    fn a_request_has_declared_rows_and_an_older_one_drops_counts() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let own = request(&agreement(), &key);
        let JoinRequest {
            name,
            key: public,
            addresses,
            rows,
            federation,
            contents,
            at,
        } = own.clone();
        let of = |fit| {
            let request = CountedRequest {
                name: name.clone(),
                key: public,
                addresses: addresses.clone(),
                rows,
                fit,
                federation,
                contents,
                at,
            };
            let signature = key.sign(&statement(COUNTED_LABEL, &request).0);
            KIND.write(COUNTED, &Signed { request, signature })
        };
        assert_eq!(JoinRequest::read(&of(412)).unwrap(), own);
        assert_eq!(JoinRequest::read(&of(411)).unwrap(), own);
    }

    #[test]
    fn requests_with_unprintable_times_or_names_are_refused() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement();
        let own = request(&agreement, &key);
        let bare = own.text(&agreement).unwrap();
        let new = Agreement::parse("f", &bare).unwrap();
        for at in [
            253_402_300_800,
            1 << 40,
            i64::MAX as u64,
            u64::MAX - 1,
            u64::MAX,
        ] {
            let late = JoinRequest { at, ..own.clone() };
            assert!(!late.time().is_empty());
            let token = late.token(&key);
            let why = JoinRequest::read(&token).unwrap_err().to_string();
            assert!(
                why.contains("archive") && why.contains("after the year 9999"),
                "{why}"
            );
            let text = JoinRequest::beside(&bare, &token);
            let found = JoinRequest::of(&text, &key.public(), &agreement, &new);
            assert!(matches!(found, Some(Err(RequestError::Time { .. }))));
        }
        for name in ["", " ", "\u{1b}[2J", "a\nb", &"x".repeat(100_000)] {
            let odd = JoinRequest {
                name: name.into(),
                ..own.clone()
            };
            let why = JoinRequest::read(&odd.token(&key)).unwrap_err();
            assert!(matches!(why, RequestError::Name(_)), "{why}");
        }
        let last = JoinRequest {
            at: 253_402_300_799,
            ..own
        };
        assert_eq!(
            JoinRequest::read(&last.token(&key)).unwrap().time(),
            "9999-12-31T23:59:59Z"
        );
    }

    #[test]
    fn nothing_in_a_request_can_be_changed_by_whoever_passes_it_on() {
        let key = SecretKey::from_bytes(&[9; 32]);
        let agreement = agreement();
        let own = request(&agreement, &key);
        let other = SecretKey::from_bytes(&[8; 32]);
        let signature = key.sign(&statement(LABEL, &own).0);
        let changes: [fn(&mut JoinRequest); 4] = [
            |of| of.rows = None,
            |of| of.addresses.clear(),
            |of| of.name.push('2'),
            |of| of.contents = Hash([1; 32]),
        ];
        for change in changes {
            let mut request = own.clone();
            change(&mut request);
            // With the old signature, and signed by somebody else with the first one's key in it.
            let kept = KIND.write(
                VERSION,
                &Signed {
                    request: request.clone(),
                    signature,
                },
            );
            for token in [kept, request.token(&other)] {
                let read = JoinRequest::read(&token);
                assert!(matches!(read, Err(RequestError::Signature(_))));
            }
        }
        assert!(matches!(
            JoinRequest::read("archive"),
            Err(RequestError::Form)
        ));
        let token = own.token(&key);
        let newer = token.replacen("rota-join-2-", "rota-join-3-", 1);
        assert!(matches!(
            JoinRequest::read(&newer),
            Err(RequestError::Version(_))
        ));
        let cut = &token[..token.len() - 3];
        assert!(matches!(JoinRequest::read(cut), Err(RequestError::Damaged)));
    }
}
