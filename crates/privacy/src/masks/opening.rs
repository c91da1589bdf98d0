//! Openings: what a ready member sends once a block is final here, and the proof that it is right.
//!
//! The member at place x unlocks its share of every author, D = β⁻¹·Y = p(x)·G, and proves for all of
//! them at once that it divided by the β of its key. With t openings anybody interpolates S = p(0)·G of
//! every author, and from it the key of that author's own stream.

use curve25519_dalek::Scalar;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use super::dleq::{self, BatchError, DleqProof, Statement};
use super::group::{ENCODED, Point, PointError, Ristretto, decode_scalar, generator};
use super::kdf::{Kdf, Label, ZeroScalar};
use super::keys::MemberKeys;
use super::ready::{OwnKeysError, ReadyList, Root};
use super::transcript::Transcripts;

/// The hash of the final block of a secure-aggregation round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub [u8; 32]);

/// Beginning of the context of a proof.
const CONTEXT: &[u8] = b"rota opening 1";

/// Reason for which a member cannot open its shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnlockError {
    /// The list does not fit the own keys.
    #[error(transparent)]
    Keys(#[from] OwnKeysError),
    /// The transcripts belong to another list.
    #[error("the transcripts were checked with another list than this one")]
    List,
    /// The random scalar is zero.
    #[error(
        "the random number of the proof is zero, which happens once in 2^252 blocks: this silo cannot \
         help to open this one"
    )]
    Zero,
    /// The batch cannot be proven.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl From<ZeroScalar> for UnlockError {
    fn from(_: ZeroScalar) -> Self {
        Self::Zero
    }
}

/// Reason for which an opening is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The sender of the opening is not on the list.
    #[error("position {0} is not on the list, so it has no shares to open")]
    Sender(u16),
    /// The transcripts belong to another list.
    #[error("the transcripts were checked with another list than this one")]
    List,
    /// The opening has another length.
    #[error("an opening of {found} bytes, expected {expected} for {authors} authors")]
    Length {
        /// Bytes that came.
        found: usize,
        /// Bytes that it must have.
        expected: usize,
        /// Authors of the block.
        authors: usize,
    },
    /// A share that is no point.
    #[error("the share of author {author} is refused: {why}")]
    Share {
        /// The author whose mask the share opens.
        author: u16,
        /// Fault of the share.
        why: PointError,
    },
    /// A scalar of the proof that is no scalar.
    #[error("a scalar of the proof is not below the group's order")]
    Scalar,
    /// A false share, or the opening of another block, list or member.
    #[error(
        "the proof of position {0} does not show that its shares are those it was given, for this \
         block: the opening is refused"
    )]
    Proof(u16),
    /// The batch cannot be checked.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// The proven shares of one member, one for each author of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    root: Root,
    block: BlockHash,
    /// The transcripts that it unlocks shares of.
    transcripts: [u8; 32],
    from: u16,
    place: Scalar,
    shares: Vec<Point>,
}

impl Opening {
    /// Bytes of an opening for a block with so many authors: all shares, then the proof.
    pub fn bytes(authors: usize) -> usize {
        ENCODED * (authors + 2)
    }

    /// The bytes of the own opening of a block. Call it only for a block that is final, durably. The
    /// same block always gives the same bytes.
    ///
    /// # Errors
    ///
    /// If the list does not have the own keys, or the transcripts are those of another list.
    pub fn unlock(
        ready: &ReadyList,
        keys: &MemberKeys,
        transcripts: &Transcripts,
        block: BlockHash,
    ) -> Result<Vec<u8>, UnlockError> {
        let own = ready.own(keys)?;
        if !of(ready, transcripts) {
            return Err(UnlockError::List);
        }
        let inverse = Zeroizing::new(keys.share().invert());
        let locked = locked(transcripts, own);
        let unlocked = locked
            .iter()
            .map(|share| Point::new(*inverse * share.point()));
        let unlocked: Vec<_> = unlocked.collect();
        let hash = hash(ready, own, transcripts, block, &unlocked, &locked);
        let random = Kdf::new(Label::Opening)
            .part(keys.secret())
            .part(&hash)
            .scalar()?;
        let context = [CONTEXT, &hash].concat();
        let statement = statement(keys.public().share, &unlocked, &locked, &context);
        let proof = dleq::prove(&statement, keys.share(), &random)?;
        let mut bytes = Vec::with_capacity(Self::bytes(transcripts.count()));
        bytes.extend(unlocked.iter().flat_map(Point::bytes));
        bytes.extend(proof.challenge.as_bytes());
        bytes.extend(proof.response.as_bytes());
        Ok(bytes)
    }

    /// Checks the opening of `block` that came from the member at position `from`.
    ///
    /// # Errors
    ///
    /// If the sender is not on the list, the length is another, a point or scalar is not canonical, a
    /// share is the identity, or the proof does not hold for this block.
    pub fn check(
        ready: &ReadyList,
        transcripts: &Transcripts,
        block: BlockHash,
        from: u16,
        bytes: &[u8],
    ) -> Result<Self, OpeningError> {
        let index = ready.index(from).ok_or(OpeningError::Sender(from))?;
        if !of(ready, transcripts) {
            return Err(OpeningError::List);
        }
        let authors = transcripts.count();
        let (found, expected) = (bytes.len(), Self::bytes(authors));
        if found != expected {
            return Err(OpeningError::Length {
                found,
                expected,
                authors,
            });
        }
        let (encoded, _) = bytes.as_chunks::<ENCODED>();
        let (points, scalars) = encoded.split_at(authors);
        let scalar = |bytes| decode_scalar(bytes).map_err(|_| OpeningError::Scalar);
        let proof = DleqProof {
            challenge: scalar(scalars[0])?,
            response: scalar(scalars[1])?,
        };
        let shares = transcripts.authors().zip(points);
        let shares: Vec<_> = shares
            .map(|(author, bytes)| {
                Point::decode(*bytes).map_err(|why| OpeningError::Share { author, why })
            })
            .collect::<Result<_, _>>()?;
        let locked = locked(transcripts, index);
        let hash = hash(ready, index, transcripts, block, &shares, &locked);
        let context = [CONTEXT, &hash].concat();
        let member = ready.members()[index];
        let statement = statement(member.keys.share, &shares, &locked, &context);
        if !dleq::verify(&statement, &proof)? {
            return Err(OpeningError::Proof(from));
        }
        Ok(Self {
            root: ready.root(),
            block,
            transcripts: *transcripts.id(),
            from,
            place: member.place,
            shares,
        })
    }

    /// Position of the member whose shares these are.
    pub fn from(&self) -> u16 {
        self.from
    }

    /// The block that it opens.
    pub fn block(&self) -> BlockHash {
        self.block
    }

    /// The list of that block.
    pub fn root(&self) -> Root {
        self.root
    }

    /// Returns whether this opening unlocks shares of these transcripts, for this list.
    pub(crate) fn unlocks(&self, ready: &ReadyList, transcripts: &Transcripts) -> bool {
        self.root == ready.root() && self.transcripts == *transcripts.id()
    }

    /// x.
    pub(crate) fn place(&self) -> &Scalar {
        &self.place
    }

    /// The shares, in the order of the authors.
    pub(crate) fn shares(&self) -> &[Point] {
        &self.shares
    }
}

/// Returns whether the transcripts are those of a list.
fn of(ready: &ReadyList, transcripts: &Transcripts) -> bool {
    let all = transcripts.all();
    all.iter()
        .all(|transcript| transcript.root() == ready.root())
}

/// The locked shares of the member at this place of the list, in the order of the authors.
fn locked(transcripts: &Transcripts, index: usize) -> Vec<Point> {
    let all = transcripts.all().iter();
    all.map(|transcript| *transcript.share(index)).collect()
}

/// β·G = B, and β·D = Y for every author.
fn statement<'a>(
    key: Point,
    unlocked: &'a [Point],
    locked: &'a [Point],
    context: &'a [u8],
) -> Statement<'a, Ristretto> {
    Statement {
        base: generator(),
        key,
        before: unlocked,
        after: locked,
        context,
    }
}

/// SHA-512(root, block, x, B, all (x of the author, D, Y)): it binds every weight of the batch to all
/// shares. Without it a member could look for false shares whose errors cancel.
fn hash(
    ready: &ReadyList,
    index: usize,
    transcripts: &Transcripts,
    block: BlockHash,
    unlocked: &[Point],
    locked: &[Point],
) -> [u8; 64] {
    let member = ready.members()[index];
    let mut hasher = Sha512::new()
        .chain_update(ready.root().0)
        .chain_update(block.0)
        .chain_update((member.position + 1).to_le_bytes())
        .chain_update(member.keys.share.bytes());
    for ((author, share), locked) in transcripts.authors().zip(unlocked).zip(locked) {
        hasher.update((author + 1).to_le_bytes());
        hasher.update(share.bytes());
        hasher.update(locked.bytes());
    }
    hasher.finalize().into()
}
