//! A second implementation of all formulas of a round, as slow and as literal as can be: powers instead
//! of Horner's rule, one word of a stream at a time, hashes over whole byte strings. It shares no code
//! with the first but the group's arithmetic. Its rules can be broken on purpose.

use std::collections::BTreeMap;

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT as G;
use curve25519_dalek::{RistrettoPoint, Scalar};
use sha2::{Digest, Sha512};

use crate::masks::testing;

/// The rules of a round; [`Rules::RIGHT`] are those of the design.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Added to t.
    pub(crate) more_shares: i32,
    /// Place of the share of position 0.
    pub(crate) first_place: u16,
    /// True if all masks are bound to the list.
    pub(crate) bound: bool,
}

impl Rules {
    pub(crate) const RIGHT: Self = Self {
        more_shares: 0,
        first_place: 1,
        bound: true,
    };
}

/// Setting of a round.
#[derive(Debug, Clone)]
pub(crate) struct RoundSetting {
    pub(crate) members: u16,
    pub(crate) quorum: u16,
    pub(crate) epoch: [u8; 32],
    pub(crate) round: u64,
    /// Position and secret.
    pub(crate) ready: Vec<(u16, [u8; 32])>,
    pub(crate) root: [u8; 32],
    pub(crate) block: [u8; 32],
    /// Authors of the one sum.
    pub(crate) authors: Vec<u16>,
    pub(crate) rules: Rules,
}

pub(crate) fn kdf(label: &str, parts: &[&[u8]]) -> [u8; 32] {
    blake3::derive_key(&format!("rota masks 1 {label}"), &material(parts))
}

fn material(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

pub(crate) fn scalar(label: &str, parts: &[&[u8]]) -> Scalar {
    let mut hasher = blake3::Hasher::new_derive_key(&format!("rota masks 1 {label}"));
    hasher.update(&material(parts));
    let mut wide = [0; 64];
    hasher.finalize_xof().fill(&mut wide);
    Scalar::from_bytes_mod_order_wide(&wide)
}

pub(crate) fn bytes(point: &RistrettoPoint) -> [u8; 32] {
    point.compress().to_bytes()
}

/// Σ c_k·x^k.
fn at(coefficients: &[Scalar], x: Scalar) -> Scalar {
    let mut sum = Scalar::ZERO;
    for (k, coefficient) in coefficients.iter().enumerate() {
        let power: Scalar = std::iter::repeat_n(x, k).product();
        sum += power * coefficient;
    }
    sum
}

/// Polynomial and proof that an author deals.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) polynomial: Vec<Scalar>,
    pub(crate) nonces: Vec<Scalar>,
    pub(crate) locked: Vec<RistrettoPoint>,
    pub(crate) commitments: Vec<RistrettoPoint>,
    pub(crate) challenge: Scalar,
    pub(crate) response: Vec<Scalar>,
}

impl Deal {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all: Vec<[u8; 32]> = self.locked.iter().map(bytes).collect();
        all.push(self.challenge.to_bytes());
        all.extend(self.response.iter().map(Scalar::to_bytes));
        all.concat()
    }
}

/// Shares and proof that a member opens.
#[derive(Debug, Clone)]
pub(crate) struct Unlocked {
    pub(crate) shares: Vec<RistrettoPoint>,
    pub(crate) hash: [u8; 64],
    pub(crate) random: Scalar,
    pub(crate) challenge: Scalar,
    pub(crate) response: Scalar,
}

impl Unlocked {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut all: Vec<[u8; 32]> = self.shares.iter().map(bytes).collect();
        all.extend([self.challenge.to_bytes(), self.response.to_bytes()]);
        all.concat()
    }
}

impl RoundSetting {
    fn root(&self) -> [u8; 32] {
        if self.rules.bound { self.root } else { [0; 32] }
    }

    pub(crate) fn threshold(&self) -> usize {
        let right = self.ready.len() as i32 - i32::from(self.members - self.quorum);
        (right + self.rules.more_shares) as usize
    }

    pub(crate) fn place(&self, position: u16) -> u16 {
        position + self.rules.first_place
    }

    fn secret(&self, position: u16) -> [u8; 32] {
        let found = self.ready.iter().find(|(ready, _)| *ready == position);
        found.unwrap().1
    }

    /// a or β.
    pub(crate) fn key(&self, label: &str, position: u16) -> Scalar {
        let (round, place) = (self.round.to_le_bytes(), position.to_le_bytes());
        scalar(
            label,
            &[&self.secret(position), &self.epoch, &round, &place],
        )
    }

    /// All B, of the ready in order.
    fn share_keys(&self) -> Vec<RistrettoPoint> {
        let ready = self.ready.iter();
        ready
            .map(|(position, _)| self.key("share", *position) * G)
            .collect()
    }

    pub(crate) fn polynomial(&self, author: u16) -> Vec<Scalar> {
        let secret = self.secret(author);
        let coefficient = |k: u64| scalar("poly", &[&secret, &self.root(), &k.to_le_bytes()]);
        (0..self.threshold() as u64).map(coefficient).collect()
    }

    pub(crate) fn deal(&self, author: u16) -> Deal {
        self.deal_with(author, self.polynomial(author))
    }

    /// With a polynomial of the author's choice, and as many coefficients in the proof.
    pub(crate) fn deal_with(&self, author: u16, polynomial: Vec<Scalar>) -> Deal {
        let (secret, keys) = (self.secret(author), self.share_keys());
        let places: Vec<u16> = self.ready.iter().map(|(p, _)| self.place(*p)).collect();
        let lock = |coefficients: &[Scalar]| -> Vec<RistrettoPoint> {
            let pairs = places.iter().zip(&keys);
            pairs
                .map(|(x, key)| at(coefficients, Scalar::from(*x)) * key)
                .collect()
        };
        let locked = lock(&polynomial);
        let all = |points: &[RistrettoPoint]| points.iter().map(bytes).collect::<Vec<_>>().concat();
        let nonce = |k: usize| {
            let k = (k as u64).to_le_bytes();
            scalar(
                "nonce",
                &[&secret, &self.root(), &all(&keys), &all(&locked), &k],
            )
        };
        let nonces: Vec<_> = (0..polynomial.len()).map(nonce).collect();
        let commitments = lock(&nonces);
        let mut rows = Vec::new();
        for (index, place) in places.iter().enumerate() {
            rows.extend(place.to_le_bytes());
            rows.extend(bytes(&keys[index]));
            rows.extend(bytes(&locked[index]));
            rows.extend(bytes(&commitments[index]));
        }
        let t = (self.threshold() as u64).to_le_bytes();
        let parts: [&[u8]; 4] = [&self.root(), &author.to_le_bytes(), &t, &rows];
        let challenge = scalar("transcript", &parts);
        let pairs = nonces.iter().zip(&polynomial);
        let response = pairs.map(|(r, p)| r + challenge * p).collect();
        Deal {
            polynomial,
            nonces,
            locked,
            commitments,
            challenge,
            response,
        }
    }

    /// The share of `from` of each deal, given by author.
    pub(crate) fn unlock(&self, from: u16, deals: &BTreeMap<u16, Deal>) -> Unlocked {
        let index = self.ready.iter().position(|(p, _)| *p == from).unwrap();
        let beta = self.key("share", from);
        let locked: Vec<_> = deals.values().map(|deal| deal.locked[index]).collect();
        let shares: Vec<_> = locked.iter().map(|share| beta.invert() * share).collect();
        self.prove(from, deals, shares)
    }

    /// The proof of a member for shares of its choice.
    pub(crate) fn prove(
        &self,
        from: u16,
        deals: &BTreeMap<u16, Deal>,
        shares: Vec<RistrettoPoint>,
    ) -> Unlocked {
        let index = self.ready.iter().position(|(p, _)| *p == from).unwrap();
        let beta = self.key("share", from);
        let locked: Vec<_> = deals.values().map(|deal| deal.locked[index]).collect();
        let mut hashed = [self.root(), self.block].concat();
        hashed.extend(self.place(from).to_le_bytes());
        hashed.extend(bytes(&(beta * G)));
        for (at, author) in deals.keys().enumerate() {
            hashed.extend(self.place(*author).to_le_bytes());
            hashed.extend(bytes(&shares[at]));
            hashed.extend(bytes(&locked[at]));
        }
        let hash: [u8; 64] = Sha512::digest(&hashed).into();
        let random = scalar("opening", &[&self.secret(from), &hash]);
        let context = [&b"rota opening 1"[..], &hash].concat();
        let (challenge, response) = dleq(&beta, &random, &shares, &locked, &context);
        Unlocked {
            shares,
            hash,
            random,
            challenge,
            response,
        }
    }

    /// Σ λ_x·D_x over these members' shares of one author.
    pub(crate) fn interpolate(&self, shares: &[(u16, RistrettoPoint)]) -> RistrettoPoint {
        let places: Vec<_> = shares
            .iter()
            .map(|(p, _)| Scalar::from(self.place(*p)))
            .collect();
        let mut sum = RistrettoPoint::default();
        for (j, (_, share)) in shares.iter().enumerate() {
            let mut weight = Scalar::ONE;
            for (m, x) in places.iter().enumerate().filter(|(m, _)| *m != j) {
                assert_ne!(m, j);
                weight *= x * (x - places[j]).invert();
            }
            sum += weight * share;
        }
        sum
    }

    /// b, from S.
    pub(crate) fn own_seed(&self, author: u16, opened: &RistrettoPoint) -> [u8; 32] {
        kdf(
            "self",
            &[&self.root(), &author.to_le_bytes(), &bytes(opened)],
        )
    }

    /// s of two authors.
    pub(crate) fn pair_seed(&self, one: u16, other: u16) -> [u8; 32] {
        let (low, high) = (one.min(other), one.max(other));
        let (a, b) = (self.key("dh", low), self.key("dh", high));
        let (low, high) = (low.to_le_bytes(), high.to_le_bytes());
        let keys = [bytes(&(a * G)), bytes(&(b * G)), bytes(&(a * b * G))];
        kdf(
            "pair",
            &[&self.root(), &low, &high, &keys[0], &keys[1], &keys[2]],
        )
    }

    /// All streams of an author's mask, and whether they are added.
    pub(crate) fn streams(&self, author: u16) -> Vec<([u8; 32], bool)> {
        let opened = self.polynomial(author)[0] * G;
        let mut streams = vec![(self.own_seed(author, &opened), true)];
        let others = self.authors.iter().filter(|other| **other != author);
        streams.extend(others.map(|other| (self.pair_seed(author, *other), author < *other)));
        streams
    }

    /// y of words that already have their weight and their checks.
    pub(crate) fn mask32(&self, author: u16, words: &[u32]) -> Vec<u32> {
        let mut masked = words.to_vec();
        for (seed, added) in self.streams(author) {
            for (word, key) in masked
                .iter_mut()
                .zip(testing::words32(&seed, 0, words.len()))
            {
                let key = if added { key } else { key.wrapping_neg() };
                *word = word.wrapping_add(key);
            }
        }
        masked
    }

    /// y of words of 64 bits that already have their weight and their checks.
    pub(crate) fn mask64(&self, author: u16, words: &[u64]) -> Vec<u64> {
        let mut masked = words.to_vec();
        for (seed, added) in self.streams(author) {
            for (word, key) in masked
                .iter_mut()
                .zip(testing::words64(&seed, 0, words.len()))
            {
                let key = if added { key } else { key.wrapping_neg() };
                *word = word.wrapping_add(key);
            }
        }
        masked
    }
}

/// The batched proof of RFC 9497, section 2.2, with base G.
fn dleq(
    k: &Scalar,
    r: &Scalar,
    before: &[RistrettoPoint],
    after: &[RistrettoPoint],
    context: &[u8],
) -> (Scalar, Scalar) {
    let element = |point: &RistrettoPoint| [&[0, 32], &bytes(point)[..]].concat();
    let key = k * G;
    let tag = [b"Seed-", context].concat();
    let mut seeded = element(&key);
    seeded.extend((tag.len() as u16).to_be_bytes());
    seeded.extend(&tag);
    let seed = Sha512::digest(&seeded);
    let mut sum = RistrettoPoint::default();
    for (i, (c, d)) in before.iter().zip(after).enumerate() {
        let mut message = vec![0, 64];
        message.extend(&seed);
        message.extend((i as u16).to_be_bytes());
        message.extend(element(c));
        message.extend(element(d));
        message.extend(b"Composite");
        sum += hash_to_scalar(&message, context) * c;
    }
    let parts = [key, sum, k * sum, r * G, r * sum];
    let mut message: Vec<u8> = parts.iter().flat_map(element).collect();
    message.extend(b"Challenge");
    let challenge = hash_to_scalar(&message, context);
    (challenge, r - challenge * k)
}

/// `expand_message_xmd` of RFC 9380 with SHA-512 for 64 bytes, step by step.
fn hash_to_scalar(message: &[u8], context: &[u8]) -> Scalar {
    let mut tag = b"HashToScalar-".to_vec();
    tag.extend(context);
    let length = tag.len() as u8;
    tag.push(length);
    let mut first = vec![0; 128];
    first.extend(message);
    first.extend([0, 64, 0]);
    first.extend(&tag);
    let mut second = Sha512::digest(&first).to_vec();
    second.push(1);
    second.extend(&tag);
    let wide: [u8; 64] = Sha512::digest(&second).into();
    Scalar::from_bytes_mod_order_wide(&wide)
}
