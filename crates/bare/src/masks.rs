//! Toy mathematics of secure-aggregation rounds: the formulas of the design on numbers of 64 bits, with hashes in
//! place of curves. Who could learn what is not decided by its strength, but by
//! [`super::symbolic`].

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use protocol::effects::MaskedList;
use protocol::message::{Blob, MaskedManifest, MaskedVector, PublicKeys};
use protocol::{Hash, MemberIndex};

/// The prime field of the shares: 2⁶¹ − 1.
pub(super) const PRIME: u64 = (1 << 61) - 1;

/// What a member must keep for a secure-aggregation round.
#[derive(Debug, Clone, Copy)]
pub(super) struct BareSecret {
    secret: Hash,
    /// The vector of the member: one number.
    pub(super) value: u64,
    /// The draw of noise in the vector, if there is noise.
    pub(super) draw: Hash,
}

/// A rule of secure-aggregation rounds that is broken outside of the protocol, where secrets and vectors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenMasks {
    /// The secret of a round stays after its adoption (M8).
    SecretKept,
    /// A restart finds another secret than the one behind the keys that were sent (M1).
    SecretNotDurable,
    /// A restart finds another vector than the one that was masked (M1).
    VectorNotDurable,
    /// Shares are not compared with those that their authors locked.
    FalseSharesAccepted,
    /// Noise is drawn again for every further list of a round.
    DrawnAgain,
    /// A round that is done again in another epoch has the noise of the first time.
    DrawKept,
    /// The ledger may have another line for the epoch and round already.
    LedgerIgnored,
}

/// The coordinates of a vector: the number, and the check coordinate, which is zero.
type Words = [u64; 2];

/// Everything that members made in secure-aggregation rounds, by hash. Stores say who has which of it.
#[derive(Debug, Default)]
pub(super) struct BareMasks {
    vectors: BTreeMap<Hash, Words>,
    transcripts: BTreeMap<Hash, BareTranscript>,
    pub(super) lists: BTreeMap<Hash, Arc<MaskedList>>,
    pub(super) manifests: BTreeMap<Hash, Arc<MaskedManifest>>,
    /// The plain value of every masked vector.
    plain: BTreeMap<Hash, u64>,
    /// The secrets behind public keys: with them a toy unlocks shares.
    secrets: BTreeMap<PublicKeys, BareSecret>,
    /// True if shares are accepted unproven, which breaks a rule on purpose.
    unproven: bool,
}

/// Locked shares: a hash of each, by which it is recognised.
#[derive(Debug, Clone)]
struct BareTranscript {
    root: Hash,
    author: MemberIndex,
    locked: Vec<Hash>,
}

/// A number below 2⁶¹ − 1 from a hash.
fn element(hash: &Hash) -> u64 {
    word(hash) % PRIME
}

fn word(hash: &Hash) -> u64 {
    let (first, _) = hash.0.split_first_chunk().expect("32 bytes hold 8");
    u64::from_le_bytes(*first)
}

/// The product of two numbers of the field.
pub(super) fn multiply(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) % u128::from(PRIME)) as u64
}

/// The inverse of a number that is not zero, by Fermat's little theorem.
pub(super) fn inverse(a: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1, a, PRIME - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = multiply(power, base);
        }
        base = multiply(base, base);
        exponent >>= 1;
    }
    power
}

impl BareSecret {
    /// Drawn for one node, epoch and round; the value follows from these, too.
    pub(super) fn new(drawn: [u8; 32], node: usize, epoch: &Hash, round: u64) -> Self {
        let (node, round) = ((node as u64).to_le_bytes(), round.to_le_bytes());
        let value = Hash::labelled("value", &[&node, &epoch.0, &round]);
        Self {
            secret: Hash(drawn),
            value: word(&value) >> 32,
            draw: Hash::labelled("draw", &[&drawn]),
        }
    }

    /// What a restart finds if the secret, or else the vector, was not durable.
    pub(super) fn forgotten(&mut self, drawn: [u8; 32], secret: bool) {
        if secret {
            self.secret = Hash(drawn);
        } else {
            self.value = word(&Hash(drawn)) >> 32;
            self.draw = Hash::labelled("draw", &[&drawn]);
        }
    }

    /// The public keys.
    pub(super) fn public(&self) -> PublicKeys {
        let key = |label| Hash::labelled(label, &[&self.secret.0]).0;
        PublicKeys {
            exchange: key("exchange"),
            share: key("share"),
        }
    }

    /// The polynomial whose value at 0 hides the own stream, at x.
    fn polynomial(&self, list: &MaskedList, x: u64) -> u64 {
        let coefficient = |k: usize| {
            let k = (k as u64).to_le_bytes();
            element(&Hash::labelled("poly", &[&self.secret.0, &list.root.0, &k]))
        };
        let powers = (0..list.threshold).rev();
        powers.fold(0, |sum, k| (multiply(sum, x) + coefficient(k)) % PRIME)
    }
}

/// The share of a member stands at its position plus one: at 0 lies the secret.
fn place(member: MemberIndex) -> u64 {
    u64::from(member.0) + 1
}

fn locked(share: u64) -> Hash {
    Hash::labelled("locked", &[&share.to_le_bytes()])
}

/// The words of a stream from its key.
fn stream(key: &Hash) -> Words {
    [word(key), word(&Hash::labelled("next", &[&key.0]))]
}

fn add(a: Words, b: Words) -> Words {
    [a[0].wrapping_add(b[0]), a[1].wrapping_add(b[1])]
}

fn subtract(a: Words, b: Words) -> Words {
    [a[0].wrapping_sub(b[0]), a[1].wrapping_sub(b[1])]
}

fn own_stream(root: &Hash, author: MemberIndex, s: u64) -> Words {
    let author = author.0.to_le_bytes();
    stream(&Hash::labelled(
        "self",
        &[&root.0, &author, &s.to_le_bytes()],
    ))
}

fn pair_stream(list: &MaskedList, i: MemberIndex, j: MemberIndex) -> Words {
    let (low, high) = (i.min(j), i.max(j));
    let key = |of: MemberIndex| {
        let ready = list.keys.ready.iter().find(|ready| ready.member == of);
        ready.map_or([0; 32], |ready| ready.keys.public.exchange)
    };
    let (a, b) = (low.0.to_le_bytes(), high.0.to_le_bytes());
    stream(&Hash::labelled(
        "pair",
        &[&list.root.0, &a, &b, &key(low), &key(high)],
    ))
}

impl BareMasks {
    /// Nothing yet, with this rule broken.
    pub(super) fn new(broken: Option<BrokenMasks>) -> Self {
        Self {
            unproven: broken == Some(BrokenMasks::FalseSharesAccepted),
            ..Self::default()
        }
    }

    /// Masks a vector for a list and locks its shares. What is `corrupted` has wrong streams.
    pub(super) fn mask(
        &mut self,
        secret: &BareSecret,
        me: MemberIndex,
        list: &MaskedList,
        corrupted: bool,
    ) -> MaskedVector {
        let ready = list.keys.members();
        let shares = ready.iter().map(|by| secret.polynomial(list, place(*by)));
        let transcript = BareTranscript {
            root: list.root,
            author: me,
            locked: shares.map(locked).collect(),
        };
        let parts: Vec<&[u8]> = transcript.locked.iter().map(|hash| &hash.0[..]).collect();
        let transcript_hash = Hash::labelled("transcript", &[&list.root.0, &parts.concat()]);
        let mut masked = own_stream(&list.root, me, secret.polynomial(list, 0));
        let sum = list.sums.iter().find(|sum| sum.has(me));
        for (author, weight) in sum.iter().flat_map(|sum| &sum.authors) {
            masked = match author.cmp(&me) {
                Ordering::Greater => add(masked, pair_stream(list, me, *author)),
                Ordering::Less => subtract(masked, pair_stream(list, me, *author)),
                Ordering::Equal => add(masked, [weight * secret.value, 0]),
            };
        }
        if corrupted {
            masked = add(masked, stream(&list.root));
        }
        let author = me.0.to_le_bytes();
        let bytes = masked.map(u64::to_le_bytes).concat();
        let vector = Hash::labelled("vector", &[&list.root.0, &author, &bytes]);
        self.vectors.insert(vector, masked);
        self.plain.insert(vector, secret.value);
        self.transcripts.insert(transcript_hash, transcript);
        self.secrets.insert(secret.public(), *secret);
        let blob = |hash| Blob { hash, size: 8 };
        MaskedVector {
            list: list.root,
            vector: blob(vector),
            transcript: blob(transcript_hash),
        }
    }

    /// The secret of a member of a list that has masked a vector for it.
    pub(super) fn secret_of(&self, list: &MaskedList, member: MemberIndex) -> Option<BareSecret> {
        let ready = list
            .keys
            .ready
            .iter()
            .find(|ready| ready.member == member)?;
        self.secrets.get(&ready.keys.public).copied()
    }

    /// Returns whether the transcripts of a manifest are those of its authors for this list.
    pub(super) fn verify(&self, list: &MaskedList, manifest: &MaskedManifest) -> bool {
        manifest.entries.iter().all(|entry| {
            let known = self.transcripts.get(&entry.transcript.hash);
            known.is_some_and(|known| {
                let fits = known.locked.len() == list.keys.ready.len();
                (known.root, known.author) == (list.root, entry.member) && fits
            })
        })
    }

    /// The shares of a member of a list, for all authors of a manifest; the members' secrets are asked for by
    /// `secret`, as only the author knows how to make a share that its owner unlocks.
    pub(super) fn unlock(
        list: &MaskedList,
        manifest: &MaskedManifest,
        me: MemberIndex,
        secret: impl Fn(MemberIndex) -> Option<BareSecret>,
    ) -> Option<Vec<u8>> {
        let shares = manifest.entries.iter().map(|entry| {
            let secret = secret(entry.member)?;
            Some(secret.polynomial(list, place(me)).to_le_bytes())
        });
        Some(shares.collect::<Option<Vec<_>>>()?.concat())
    }

    /// The shares in an opening, if they are the ones that the authors locked for this member.
    fn proven(
        &self,
        list: &MaskedList,
        manifest: &MaskedManifest,
        by: MemberIndex,
        opening: &[u8],
    ) -> Option<Vec<u64>> {
        let at = list
            .keys
            .ready
            .iter()
            .position(|ready| ready.member == by)?;
        let shares: Vec<_> = opening
            .chunks(8)
            .map(|bytes| bytes.try_into().map(u64::from_le_bytes).ok())
            .collect::<Option<_>>()?;
        let right = |(entry, share): (&protocol::message::MaskedEntry, &u64)| {
            let known = self.transcripts.get(&entry.transcript.hash);
            self.unproven || known.and_then(|known| known.locked.get(at)) == Some(&locked(*share))
        };
        let all = manifest.entries.iter().zip(&shares).all(right);
        (all && shares.len() == manifest.entries.len()).then_some(shares)
    }

    /// The members whose openings do not hold, and the sums, if enough of them do. Void sums, whose check
    /// coordinates are not zero, are none.
    pub(super) fn combine(
        &self,
        list: &MaskedList,
        manifest: &MaskedManifest,
        openings: &[(MemberIndex, Vec<u8>)],
    ) -> (Vec<MemberIndex>, Option<Vec<Option<u64>>>) {
        let (mut held, mut unproven) = (Vec::new(), Vec::new());
        for (by, opening) in openings {
            match self.proven(list, manifest, *by, opening) {
                Some(shares) => held.push((*by, shares)),
                None => unproven.push(*by),
            }
        }
        if held.len() < list.threshold {
            return (unproven, None);
        }
        held.truncate(list.threshold);
        let secret = |at: usize| {
            let shares = held.iter().map(|(by, shares)| (place(*by), shares[at]));
            interpolate(&shares.collect::<Vec<_>>())
        };
        let sums = list.sums.iter().map(|sum| {
            let of = |(at, entry): (usize, &protocol::message::MaskedEntry)| {
                if !sum.has(entry.member) {
                    return [0; 2];
                }
                // What nobody has masked a Byzantine author synthetic.
                let invented = || stream(&entry.vector.hash);
                let masked = self.vectors.get(&entry.vector.hash).copied();
                let masked = masked.unwrap_or_else(invented);
                subtract(masked, own_stream(&list.root, entry.member, secret(at)))
            };
            let words = manifest.entries.iter().enumerate().map(of);
            let [sum, check] = words.fold([0; 2], add);
            (check == 0).then_some(sum)
        });
        (unproven, Some(sums.collect()))
    }

    /// The plain sums of a manifest.
    pub(super) fn plain_sums(&self, list: &MaskedList, manifest: &MaskedManifest) -> Vec<u64> {
        let of = |sum: &protocol::privacy::Sum| {
            let value = |author: MemberIndex| {
                let entry = manifest.entries.iter().find(|entry| entry.member == author);
                entry
                    .and_then(|entry| self.plain.get(&entry.vector.hash))
                    .copied()
            };
            let parts = sum
                .authors
                .iter()
                .map(|(by, weight)| weight * value(*by).unwrap_or(0));
            parts.fold(0u64, u64::wrapping_add)
        };
        list.sums.iter().map(of).collect()
    }
}

/// The value at 0 of the polynomial through these points.
fn interpolate(points: &[(u64, u64)]) -> u64 {
    let term = |(at, (x, y)): (usize, &(u64, u64))| {
        let others = points.iter().enumerate().filter(|(other, _)| *other != at);
        let weight = others.fold(1, |product, (_, (other, _))| {
            let difference = (PRIME + other - x) % PRIME;
            multiply(product, multiply(*other, inverse(difference)))
        });
        multiply(*y, weight)
    };
    points
        .iter()
        .enumerate()
        .fold(0, |sum, point| (sum + term(point)) % PRIME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_t_points_give_the_value_at_zero() {
        // 5 + 3x + 2x².
        let at = |x: u64| (x, 5 + 3 * x + 2 * x * x);
        for points in [[1, 2, 3], [2, 5, 9], [9, 1, 4]] {
            assert_eq!(interpolate(&points.map(at)), 5);
        }
        assert_eq!(multiply(inverse(7), 7), 1);
    }
}
