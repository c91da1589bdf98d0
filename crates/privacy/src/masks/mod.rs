//! Masked sums: the sum of all vectors can be opened, and no single one.
//!
//! # The idea
//!
//! Every silo adds a mask, a stream of numbers that look random, to its vector before it sends it. The
//! masks are made so that the sum of all vectors can be freed of them. There are two kinds:
//!
//! - **Streams of pairs.** Two silos agree on a secret key by Diffie and Hellman's method, from one
//!   public key of each. Both expand it to the same stream; the one with the lower position adds it, the
//!   other one subtracts it. In the sum of all they cancel. If a vector is missing, they do not.
//! - **Own streams.** Every silo adds one more stream, whose key only it knows at first. So even the
//!   sum of all vectors tells nothing until those keys are known: until then the set of authors may
//!   still change, and two sums that differ by one author would show that author's vector.
//!
//! The key of an own stream hangs on a point S of a group (ristretto255). Its author cuts S into shares,
//! one for each member that is ready in this round, before it masks anything. **Any t shares give S, and
//! fewer than t tell nothing about it** (Shamir's secret sharing). With n members of which a quorum q
//! agree, t = ready − (n − q): every quorum has t of the ready, so what is left of any quorum can open a
//! final round. Members give their shares away only once the block with the authors is final for them.
//! At most one such block is final in a round, so at most one set is ever opened.
//!
//! # The steps of a round
//!
//! | step | who | here |
//! |---|---|---|
//! | draw a secret, derive two public keys | every member | [`MemberKeys::derive`] |
//! | read the list of the ready, refuse bad keys | every member | [`ReadyList::new`] |
//! | lock a share for every ready member, and prove that they fit together | author | [`Transcript::deal`] |
//! | mask the vector | author | [`Mask::derive`], [`Mask::vector`] |
//! | check every author's transcript | every member | [`Transcript::check`] |
//! | *the block becomes final* | | |
//! | unlock the own share of every author's S, and prove that they are the right ones | ready member | [`Opening::unlock`] |
//! | check the openings of others | every member | [`Opening::check`] |
//! | compute S of every author, and from it the key of its own stream | every member | [`Seeds::recover`] |
//! | add the vectors, take the own streams off, judge the sum | every member | [`Seeds::combine`] |
//!
//! A silo needs to keep 32 secret bytes and its vector. All else follows from these and the list, so a
//! silo that starts again sends the same bytes as before.
//!
//! ```
//! use privacy::masks::*;
//!
//! // Four members, of which three are a quorum. All are ready. `rand` stands for the system's generator.
//! let rand = |position: u16| blake3::derive_key("example", &position.to_le_bytes());
//! let keys: Vec<MemberKeys> = (0..4)
//!     .map(|position| MemberKeys::derive(Secret::new(rand(position)), &[1; 32], 1, position))
//!     .collect::<Result<_, _>>()?;
//! let list: Vec<Listed> = keys
//!     .iter()
//!     .map(|keys| Listed {
//!         position: keys.position(),
//!         exchange: keys.public().exchange.bytes(),
//!         share: keys.public().share.bytes(),
//!     })
//!     .collect();
//! let root = Root::of(b"the list", b"one sum of all, equal weights");
//! let ready = ReadyList::new(root, 4, 3, &list)?;
//! assert_eq!(ready.threshold(), 3);
//!
//! // Every author deals its transcript and masks its model; here the model has two numbers.
//! let sum = SumAuthors::new(&ready, &[0, 1, 2, 3])?;
//! let shape = Shape::new(2, Reach::of(&[1; 4], Fixed::MODEL)?)?;
//! let (mut transcripts, mut vectors) = (Vec::new(), Vec::new());
//! for (author, keys) in (0..).zip(&keys) {
//!     let transcript = Transcript::deal(&ready, keys)?;
//!     transcripts.push(Transcript::check(&ready, author, &transcript)?);
//!     let (start, model) = ([0.5, 0.5], [0.5 + f32::from(author), 0.25]);
//!     let mask = Mask::derive(&ready, keys, &sum)?;
//!     let masked = mask.vector::<u32>(shape, Fixed::MODEL, 1, &start, &model)?;
//!     vectors.push(masked.bytes);
//! }
//!
//! // The block is final. Member 1 has fallen silent; three openings are enough.
//! let (transcripts, block) = (Transcripts::new(&ready, transcripts)?, BlockHash([2; 32]));
//! let mut openings = Vec::new();
//! for from in [0, 2, 3] {
//!     let bytes = Opening::unlock(&ready, &keys[usize::from(from)], &transcripts, block)?;
//!     openings.push(Opening::check(&ready, &transcripts, block, from, &bytes)?);
//! }
//! let seeds = Seeds::recover(&ready, &transcripts, &openings.iter().collect::<Vec<_>>())?;
//! let vectors: Vec<&[u8]> = vectors.iter().map(Vec::as_slice).collect();
//! let opened = seeds.combine::<u32>(shape, &sum, &vectors)?;
//! assert_eq!(opened.void, None);
//! let mean = |at: usize| Fixed::MODEL.mean(opened.words[at].signed(), 4);
//! assert_eq!((mean(0), mean(1)), (1.5, -0.25));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why false messages are noticed
//!
//! An author could lock shares that do not fit together, so that different members would compute
//! different sums. So it proves that the locked shares lie on one polynomial of degree below t
//! ([`Transcript`]). A member could open a wrong share. So it proves that it unlocked with the key that it
//! had announced ([`Opening`]). Both proofs are checked before anything is used: only [`Transcript::check`]
//! makes a [`Transcript`], and only [`Opening::check`] makes an [`Opening`].
//!
//! An author can still send a vector that is not what it should be; nobody sees it. If its streams do not
//! cancel, the check coordinates of the sum are not zero, and if its numbers are too large, a coordinate
//! is beyond reach. Then the sum is [void](Void). Who it was can be [found out](examine) from the secrets of
//! authors that disclose them, for such a round alone. A wrong vector within reach is poison as in any other
//! federation, and masks make it harder to find.
//!
//! # What is bound to what
//!
//! Every mask is bound to the [`Root`], a hash of the list and of the decision what is added with which
//! weights. With another list all streams are others, so nothing that is opened for one list opens
//! vectors of another. The opening of a member holds for one block. A transcript holds for one author.
//! The secret shares lie at x = position + 1, because at 0 lies the secret itself.
//!
//! # The formulas
//!
//! KDF(label; parts) is BLAKE3 in derive-key mode with the context `rota masks 1 ` + label, over the
//! parts, each behind its length. Integers are little-endian; positions and places have two bytes, other
//! numbers eight; an epoch is its id, 32 bytes. A list in brackets is one part. Scalars are 64 derived
//! bytes modulo the order of the group; a silo for which one is zero sits the round out.
//!
//! ```text
//! a = KDF(dh; secret, epoch, round, i)       A = a·G
//! β = KDF(share; secret, epoch, round, i)    B = β·G
//!
//! p_k = KDF(poly; secret, root, k)                        Y_j = p(x_j)·B_j
//! r_k = KDF(nonce; secret, root, [all B], [all Y], k)     W_j = r(x_j)·B_j
//! e   = KDF(transcript; root, i, t, [all x_j, B_j, Y_j, W_j])
//! u_k = r_k + e·p_k                                       transcript: all Y, e, all u
//!
//! D_ij = β_j⁻¹·Y_ij = p_i(x_j)·G                          opening: all D, the proof
//! S_i  = p_i(0)·G = Σ λ_j·D_ij
//! b_i  = KDF(self; root, i, S_i)
//! s_ij = KDF(pair; root, min(i,j), max(i,j), A_min, A_max, a_i·A_j)
//! y_i  = w_i·v_i + PRG(b_i) + Σ_{j>i} PRG(s_ij) − Σ_{j<i} PRG(s_ij)   modulo 2^k
//! Σ w_i·v_i = Σ y_i − Σ PRG(b_i)
//! ```
//!
//! PRG is ChaCha20 (RFC 8439) with nonce 0 from counter 0, as words of k bits. The proof of an opening is
//! the batched one of RFC 9497, section 2.2, whose context holds SHA-512(root, block, x_j, B_j, all x_i,
//! D_ij, Y_ij). The proof of a transcript is that of ALBATROSS (Cascudo & David, ASIACRYPT 2020).
//! `golden/round.txt` has every value of one round.
//!
//! # Secrets
//!
//! Secrets are overwritten when they are dropped and are never shown by `Debug`. What is computed with
//! them takes the same time for all values; checks of public values do not. Copies that the compiler
//! makes on the stack or in registers are not overwritten.
//!
//! # What it costs
//!
//! `cargo run --release -p privacy --example measure`, one core, 10⁶ parameters, words of 32 bits; best of
//! five:
//!
//! | milliseconds for each member and round | n = 10 | n = 100 | n = 200 |
//! |---|---|---|---|
//! | mask, with transcript | 28 | 260 | 520 |
//! | check all transcripts | 3.5 | 410 | 1,900 |
//! | unlock the own shares | 0.4 | 3 | 6 |
//! | check t openings | 1.7 | 100 | 530 |
//! | interpolate, add, take streams off | 28 | 290 | 660 |
//! | bytes of all transcripts and t openings | 8 kB | 0.76 MB | 3.0 MB |
//!
//! (AMD EPYC with AVX2, Rust 1.95, while two other builds ran.) Nearly all of masking and adding is ChaCha20:
//! 2.5 ms for a stream of 4 MB. Checking the proofs grows with the square of n.
//!
//! Masking and adding go through the vectors in blocks that stay in the cache: beside the vector itself
//! they need some KiB and a few hundred bytes for each author (`tests/memory.rs`).

mod blame;
mod dleq;
mod group;
mod kdf;
mod keys;
mod mask;
mod numbers;
mod opening;
mod polynomial;
mod ready;
mod rehearsal;
mod seeds;
mod stream;
mod sum;
mod transcript;
mod vector;
mod words;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use blame::{ExamineError, MaskDeviation, SentParts, examine};
pub use dleq::{BatchError, MOST_CONTEXT, MOST_PAIRS};
pub use group::{ENCODED, Point, PointError};
pub use keys::{KeysError, MemberKeys, PublicPoints, Secret};
pub use mask::{Mask, MaskError, StreamFault};
pub use numbers::{CHECKS, EncodeError, Fixed, FixedError, Reach, ReachError};
pub use opening::{BlockHash, Opening, OpeningError, UnlockError};
pub use ready::{Listed, MOST_MEMBERS, OwnKeysError, ReadyError, ReadyList, Root};
pub use rehearsal::{RehearsalError, rehearse};
pub use seeds::{Seeds, SeedsError, UnmaskError};
pub use stream::{MOST_BYTES, StreamError};
pub use sum::{SumAuthors, SumError};
pub use transcript::{DealError, Transcript, TranscriptError, Transcripts, TranscriptsError};
pub use vector::{
    BLOCK, CombineError, MaskedBytes, OpenedSum, Shape, ShapeError, VectorError, Void,
};
pub use words::{Width, Word};
