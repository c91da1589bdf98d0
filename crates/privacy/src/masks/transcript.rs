//! Transcripts: an author gives every ready member a share of its own mask, and proves that it did.
//!
//! The author draws a polynomial p of degree below t. Its own mask hangs on S = p(0)·G, and the member
//! at place x gets p(x)·G, locked under that member's key: Y = p(x)·B. Anybody can check that the
//! locked shares lie on *one* polynomial of degree below t, without unlocking any. So any t shares
//! give the same S, and fewer give nothing.
//!
//! The proof is the one of ALBATROSS for low-degree exponent interpolation (Cascudo & David, ASIACRYPT
//! 2020), made non-interactive: with a second polynomial r it commits to W = r(x)·B, hashes
//! everything into a challenge e, and shows the polynomial u = r + e·p. The checker computes
//! W = u(x)·B − e·Y. If the Y do not lie on such a polynomial, no u fits for more than one e.

use std::sync::{Arc, LazyLock};

use curve25519_dalek::{RistrettoPoint, Scalar};
use zeroize::Zeroizing;

use super::group::{ENCODED, Point, PointError, combination, decode_scalar};
use super::kdf::{Kdf, Label, ZeroScalar};
use super::keys::MemberKeys;
use super::polynomial::{Secrets, value};
use super::ready::{OwnKeysError, ReadyList, Root};

/// Reason for which a member cannot make its transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DealError {
    /// The list does not fit the own keys.
    #[error(transparent)]
    Keys(#[from] OwnKeysError),
    /// A derived scalar or a share is zero.
    #[error(
        "a number derived from this round's secret is zero, which happens once in 2^252 secrets: the \
         silo has to sit this round out"
    )]
    Zero,
}

impl From<ZeroScalar> for DealError {
    fn from(_: ZeroScalar) -> Self {
        Self::Zero
    }
}

/// Reason for which a transcript is refused. With the signed MaskedVector it is evidence against its author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptError {
    /// The author of the transcript is not on the list.
    #[error("position {0} is not on the list, so it has no transcript")]
    Author(u16),
    /// The transcript has another length.
    #[error(
        "a transcript of {found} bytes, expected {expected} for {ready} ready members and {threshold} \
         shares"
    )]
    Length {
        /// Bytes that came.
        found: usize,
        /// Bytes that it must have.
        expected: usize,
        /// Members of the list.
        ready: usize,
        /// Shares that open the round.
        threshold: usize,
    },
    /// A locked share that is no point.
    #[error("the locked share for position {position} is refused: {why}")]
    Share {
        /// Position of the member for whom the share is locked.
        position: u16,
        /// Fault of the share.
        why: PointError,
    },
    /// e or a coefficient of u that is no scalar.
    #[error(
        "scalar {0} of the proof (0 is the challenge) is refused: it is not below the group's order"
    )]
    Scalar(usize),
    /// The shares are on no polynomial of the agreed degree, or the transcript is that of another
    /// author or list.
    #[error(
        "the locked shares of position {0} do not lie on one polynomial of the agreed degree for this \
         list: its transcript is refused"
    )]
    Proof(u16),
}

/// The locked shares of one author, proven to lie on one polynomial of degree below t. Copies share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    root: Root,
    author: u16,
    shares: Arc<[Point]>,
}

impl Transcript {
    /// The bytes of the own transcript. The same list and keys always give the same bytes.
    ///
    /// # Errors
    ///
    /// If the list does not have the own keys, or a derived number is zero.
    pub fn deal(ready: &ReadyList, keys: &MemberKeys) -> Result<Vec<u8>, DealError> {
        ready.own(keys)?;
        let polynomial = coefficients(ready, |k| coefficient(keys, ready.root(), k))?;
        let shares = locked(ready, &polynomial);
        if shares.iter().any(|share| share.bytes() == [0; ENCODED]) {
            return Err(DealError::Zero);
        }
        let drawn = Kdf::new(Label::Nonce)
            .part(keys.secret())
            .part(&ready.root().0)
            .pieces(
                ready
                    .members()
                    .iter()
                    .map(|member| member.keys.share.bytes()),
            )
            .pieces(shares.iter().map(Point::bytes));
        let nonces = coefficients(ready, |k| drawn.clone().number(k).scalar())?;
        let commitments: Vec<_> = locked(ready, &nonces).iter().map(Point::bytes).collect();
        let challenge = challenge(ready, keys.position(), &shares, &commitments)?;

        let mut bytes = Vec::with_capacity(ready.transcript_bytes());
        bytes.extend(shares.iter().flat_map(Point::bytes));
        bytes.extend(challenge.as_bytes());
        for (nonce, coefficient) in nonces.all().iter().zip(polynomial.all()) {
            bytes.extend((nonce + *challenge * coefficient).as_bytes());
        }
        Ok(bytes)
    }

    /// Checks the transcript that came from the member at position `author`.
    ///
    /// # Errors
    ///
    /// If the author is not on the list, the length is another, a point or scalar is not canonical, a
    /// share is the identity, or the proof does not hold.
    pub fn check(ready: &ReadyList, author: u16, bytes: &[u8]) -> Result<Self, TranscriptError> {
        if ready.index(author).is_none() {
            return Err(TranscriptError::Author(author));
        }
        let expected = ready.transcript_bytes();
        if bytes.len() != expected {
            return Err(TranscriptError::Length {
                found: bytes.len(),
                expected,
                ready: ready.count(),
                threshold: ready.threshold(),
            });
        }
        let (encoded, _) = bytes.as_chunks::<ENCODED>();
        let (points, scalars) = encoded.split_at(ready.count());
        let scalars = scalars.iter().enumerate();
        let scalars: Vec<_> = scalars
            .map(|(at, bytes)| decode_scalar(*bytes).map_err(|_| TranscriptError::Scalar(at)))
            .collect::<Result<_, _>>()?;
        let (claimed, response) = (scalars[0], &scalars[1..]);
        let shares = ready.positions().zip(points);
        let shares: Vec<_> = shares
            .map(|(position, bytes)| {
                Point::decode(*bytes).map_err(|why| TranscriptError::Share { position, why })
            })
            .collect::<Result<_, _>>()?;
        let commitments = commitments(ready, &shares, &claimed, response);
        let computed = challenge(ready, author, &shares, &commitments);
        if computed.is_ok_and(|computed| *computed == claimed) {
            let root = ready.root();
            return Ok(Self {
                root,
                author,
                shares: shares.into(),
            });
        }
        Err(TranscriptError::Proof(author))
    }

    /// Position of the author.
    pub fn author(&self) -> u16 {
        self.author
    }

    /// The list that it was made for.
    pub fn root(&self) -> Root {
        self.root
    }

    /// The locked share of the member at this place of the list.
    pub(crate) fn share(&self, index: usize) -> &Point {
        &self.shares[index]
    }
}

/// p_k = KDF(poly; secret, root, k).
pub(crate) fn coefficient(
    keys: &MemberKeys,
    root: Root,
    k: u64,
) -> Result<Zeroizing<Scalar>, ZeroScalar> {
    Kdf::new(Label::Poly)
        .part(keys.secret())
        .part(&root.0)
        .number(k)
        .scalar()
}

/// The t coefficients of a secret polynomial.
fn coefficients(
    ready: &ReadyList,
    scalar: impl Fn(u64) -> Result<Zeroizing<Scalar>, ZeroScalar>,
) -> Result<Secrets, ZeroScalar> {
    let mut all = Secrets::with_capacity(ready.threshold());
    for k in 0..ready.threshold() as u64 {
        all.push(&*scalar(k)?);
    }
    Ok(all)
}

/// The values of a secret polynomial at every member's place, times that member's key.
fn locked(ready: &ReadyList, polynomial: &Secrets) -> Vec<Point> {
    let members = ready.members().iter();
    let locked = members.map(|member| {
        let value = value(polynomial.all(), &member.place);
        Point::new(*value * member.keys.share.point())
    });
    locked.collect()
}

/// W = u(x)·B − e·Y for every member, in bytes: what the author has committed to.
pub(crate) fn commitments(
    ready: &ReadyList,
    shares: &[Point],
    challenge: &Scalar,
    response: &[Scalar],
) -> Vec<[u8; ENCODED]> {
    // Halves of the points: the doubles of many are encoded with one inversion.
    let against = -challenge * *HALF;
    let half = |(member, share): (&super::ready::ReadyMember, &Point)| {
        let scalars = [*value(response, &member.place) * *HALF, against];
        combination(&scalars, &[*member.keys.share.point(), *share.point()])
    };
    let halves: Vec<_> = ready.members().iter().zip(shares).map(half).collect();
    let encoded = RistrettoPoint::double_and_compress_batch(&halves);
    encoded.iter().map(|bytes| bytes.to_bytes()).collect()
}

/// The inverse of two.
static HALF: LazyLock<Scalar> = LazyLock::new(|| Scalar::from(2_u64).invert());

/// e = KDF(transcript; root, author, t, all (x, B, Y, W)).
fn challenge(
    ready: &ReadyList,
    author: u16,
    shares: &[Point],
    commitments: &[[u8; ENCODED]],
) -> Result<Zeroizing<Scalar>, ZeroScalar> {
    let rows = ready.members().iter().zip(shares).zip(commitments);
    let rows = rows.map(|((member, share), commitment)| {
        let mut row = [0; 2 + 3 * ENCODED];
        row[..2].copy_from_slice(&(member.position + 1).to_le_bytes());
        let (points, _) = row[2..].as_chunks_mut::<ENCODED>();
        points[0] = member.keys.share.bytes();
        points[1] = share.bytes();
        points[2] = *commitment;
        row
    });
    Kdf::new(Label::Transcript)
        .part(&ready.root().0)
        .position(author)
        .number(ready.threshold() as u64)
        .pieces(rows)
        .scalar()
}

/// Reason for which transcripts do not make the set of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptsError {
    /// Not ascending by author, or one author twice.
    #[error(
        "the transcript of position {0} does not come after the one before it: they must ascend"
    )]
    Order(u16),
    /// One was made for another list.
    #[error("the transcript of position {0} was checked with another list than this one")]
    List(u16),
    /// No transcript at all.
    #[error("there is no transcript, so there is nothing to open")]
    Empty,
}

/// The checked transcripts of all authors of a block, ascending by author.
#[derive(Debug, Clone)]
pub struct Transcripts {
    all: Vec<Transcript>,
    /// A hash of them, by which openings of others are told apart.
    id: [u8; 32],
}

impl Transcripts {
    /// Takes the transcripts of a block's authors.
    ///
    /// # Errors
    ///
    /// If there are none, they do not ascend, or one belongs to another list.
    pub fn new(ready: &ReadyList, transcripts: Vec<Transcript>) -> Result<Self, TranscriptsError> {
        if transcripts.is_empty() {
            return Err(TranscriptsError::Empty);
        }
        let foreign = transcripts.iter().find(|one| one.root != ready.root());
        if let Some(foreign) = foreign {
            return Err(TranscriptsError::List(foreign.author));
        }
        for pair in transcripts.windows(2) {
            if pair[0].author >= pair[1].author {
                return Err(TranscriptsError::Order(pair[1].author));
            }
        }
        let mut hasher = blake3::Hasher::new();
        for transcript in &transcripts {
            hasher.update(&transcript.author.to_le_bytes());
            for share in &*transcript.shares {
                hasher.update(&share.bytes());
            }
        }
        Ok(Self {
            all: transcripts,
            id: *hasher.finalize().as_bytes(),
        })
    }

    /// Returns how many authors there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The authors, ascending.
    pub fn authors(&self) -> impl ExactSizeIterator<Item = u16> {
        self.all.iter().map(Transcript::author)
    }

    pub(crate) fn all(&self) -> &[Transcript] {
        &self.all
    }

    pub(crate) fn id(&self) -> &[u8; 32] {
        &self.id
    }
}
