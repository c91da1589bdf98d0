//! A secure-aggregation round as functions of their arguments: what a silo sends in place of its model, and what
//! members make of the vectors of all. The formulas are those of [`privacy::masks`].

use bytes::Bytes;
use privacy::masks::{
    BlockHash, Fixed, Listed, Mask, MaskedBytes, MemberKeys, Opening, Point, PublicPoints,
    ReadyList, Root, Shape, SumAuthors, Transcript, Transcripts, Width, Word,
};
use protocol::message::{ListDocument, MaskedEntry, MaskedManifest, PublicKeys};
use protocol::privacy::{Sum, threshold};
use protocol::work::{FinalMasked, MaskedList, WorkError};
use protocol::{Epoch, Hash, MemberIndex, Roster, codec};

mod blame;
mod combine;
mod opened;
mod plain;

pub use blame::{NotVoid, VoidRound};
pub(crate) use combine::{Combined, combine};
pub use opened::OpenSum;
pub(crate) use opened::open_sums;
pub use plain::{
    NoiseDraws, NoisedPart, NoisedShare, noised_outcome, noised_part, noised_share, unit_vectors,
    vector_bytes,
};

use super::RoundBase;
use super::sums::{PreparedInput, PreparedRound, SumBasis, summand};
use crate::checks::HeldTranscripts;
use crate::config::SiloConfig;

/// Begins the blob of the unmaskings that a silo opened a round with.
const UNMASKINGS: &[u8] = b"rota unmaskings 1\n";

/// The public keys as they travel.
pub(crate) fn public(points: &PublicPoints) -> PublicKeys {
    PublicKeys {
        exchange: points.exchange.bytes(),
        share: points.share.bytes(),
    }
}

/// Returns whether public keys can be used.
///
/// # Errors
/// One is no point of the group, or the identity.
pub(crate) fn check_keys(keys: &PublicKeys) -> Result<(), String> {
    let known = [("exchange", keys.exchange), ("share", keys.share)];
    known.into_iter().try_for_each(|(name, bytes)| {
        let point = Point::decode(bytes);
        point
            .map(|_| ())
            .map_err(|why| format!("its {name} key is refused: {why}"))
    })
}

/// The list, as the mathematics reads it.
///
/// # Errors
/// The list cannot be used.
pub(crate) fn ready(epoch: &Epoch, list: &MaskedList) -> Result<ReadyList, String> {
    ready_of(&epoch.roster, list)
}

fn ready_of(roster: &Roster, list: &MaskedList) -> Result<ReadyList, String> {
    let listed = list.keys.ready.iter().map(|ready| Listed {
        position: ready.member.0,
        exchange: ready.keys.public.exchange,
        share: ready.keys.public.share,
    });
    let listed: Vec<_> = listed.collect();
    let (members, quorum) = (roster.len() as u16, roster.quorum() as u16);
    let ready = ReadyList::new(Root(list.root.0), members, quorum, &listed);
    ready.map_err(|error| error.to_string())
}

/// The shape of the vectors of a sum.
pub(crate) fn shape(config: &SiloConfig, base: &RoundBase, sum: &Sum) -> Result<Shape, String> {
    let of = SumBasis { config, base };
    summand(of)?.shape(of, sum)
}

/// The bytes of a transcript for a list.
pub(crate) fn transcript_bytes(list: &MaskedList) -> usize {
    32 * (list.keys.ready.len() + list.threshold + 1)
}

fn authors(ready: &ReadyList, sum: &Sum) -> Result<SumAuthors, String> {
    let authors: Vec<_> = sum.authors.iter().map(|(by, _)| by.0).collect();
    SumAuthors::new(ready, &authors).map_err(|error| error.to_string())
}

/// What a silo sends for a list.
pub(crate) struct MaskedVectorBytes {
    pub(crate) vector: Bytes,
    pub(crate) transcript: Bytes,
    /// Coordinates that were clipped.
    pub(crate) clipped: u64,
}

/// Masks the silo's local model for a list.
///
/// # Errors
/// The list does not fit the silo's keys, or the model cannot be masked.
pub(crate) fn mask(
    config: &SiloConfig,
    base: &RoundBase,
    list: &MaskedList,
    prepared: &PreparedRound,
) -> Result<MaskedVectorBytes, String> {
    let me = config.member.me;
    let own = list.sums.iter().find(|sum| sum.has(me));
    let sum = own.ok_or("this silo is no author of a sum of the list")?;
    let weight = sum.authors.iter().find(|(by, _)| *by == me);
    let weight = weight.map_or(0, |(_, weight)| *weight);
    let ready = ready(&config.member.epoch, list)?;
    let keys = prepared.keys(config)?;
    let transcript = Transcript::deal(&ready, &keys).map_err(|error| error.to_string())?;
    let mask = Mask::derive(&ready, &keys, &authors(&ready, sum)?);
    let mask = mask.map_err(|error| error.to_string())?;
    let shape = shape(config, base, sum)?;
    let start = base.start()?;
    let input = MaskInput {
        weight,
        start: start.values(),
        prepared: &prepared.input,
    };
    let (vector, clipped) = match shape.width() {
        Width::Bits32 => masked::<u32>(&mask, shape, &input)?,
        Width::Bits64 => masked::<u64>(&mask, shape, &input)?,
    };
    Ok(MaskedVectorBytes {
        vector,
        transcript: transcript.into(),
        clipped,
    })
}

/// What is masked, with its weight in the sum.
struct MaskInput<'a> {
    weight: u64,
    start: &'a [f32],
    prepared: &'a PreparedInput,
}

/// The masked vector as bytes, and how many coordinates were clipped.
fn masked<W: Word>(mask: &Mask, shape: Shape, of: &MaskInput<'_>) -> Result<(Bytes, u64), String> {
    let masked = match of.prepared {
        PreparedInput::Model(model) => {
            mask.vector::<W>(shape, Fixed::MODEL, of.weight, of.start, model.values())
        }
        PreparedInput::Noised(integers) => {
            let bytes = mask.integers::<W>(shape, integers.all());
            bytes.map(|bytes| MaskedBytes { bytes, clipped: 0 })
        }
    };
    let masked = masked.map_err(|error| error.to_string())?;
    Ok((masked.bytes.into(), masked.clipped))
}

/// Checks the transcripts of a manifest for its list, but those that are known to hold; `blob` gives the bytes
/// of an entry's transcript.
///
/// # Errors
/// [`WorkError::Unavailable`]: one is not here. [`WorkError::Refused`]: one does not fit, and whose it is.
pub(crate) fn check_transcripts(
    config: &SiloConfig,
    ready: &ReadyList,
    manifest: &MaskedManifest,
    held: &HeldTranscripts,
    blob: impl Fn(&MaskedEntry) -> Option<Bytes>,
) -> Result<Vec<Transcript>, WorkError> {
    let roster = &config.member.epoch.roster;
    let checked = manifest.entries.iter().map(|entry| {
        let bytes = blob(entry).ok_or(WorkError::Unavailable)?;
        let checked = held.check(ready, entry.member, entry.transcript.hash, &bytes);
        checked.map_err(|why| {
            let name = roster.name(entry.member);
            WorkError::Refused(format!("the transcript of {name:?} is refused: {why}"))
        })
    });
    checked.collect()
}

/// Why a transcript of a member for a list of this epoch is wrong; `None` if it is right, or if that cannot
/// be told because the list cannot be read.
pub fn wrong_transcript(
    epoch: &Epoch,
    author: MemberIndex,
    list: &[u8],
    transcript: &[u8],
) -> Option<String> {
    let document = ListDocument::read(list)?;
    let threshold = threshold(&epoch.roster, document.keys.ready.len());
    let list = MaskedList::new(document, threshold);
    let ready = ready(epoch, &list).ok()?;
    let checked = Transcript::check(&ready, author.0, transcript);
    checked.err().map(|why| why.to_string())
}

/// The list of a final round, read from its blob. `None` if the blob is something else.
pub(crate) fn read_list(blob: &[u8], threshold: usize) -> Option<MaskedList> {
    ListDocument::read(blob).map(|document| MaskedList::new(document, threshold))
}

/// A final secure-aggregation round with everything that opening it needs, but the vectors.
pub(crate) struct OpeningRound {
    pub(crate) of: FinalMasked,
    pub(crate) list: MaskedList,
    pub(crate) manifest: MaskedManifest,
    pub(crate) ready: ReadyList,
    pub(crate) transcripts: Transcripts,
}

impl OpeningRound {
    /// Reads a final round; `blob` returns list, manifest and transcripts by hash, and `held` knows transcripts
    /// that need not be checked again.
    ///
    /// # Errors
    /// [`WorkError::Unavailable`]: a blob is missing. [`WorkError::Refused`]: what is wrong with one.
    pub(crate) fn read(
        config: &SiloConfig,
        of: FinalMasked,
        held: &HeldTranscripts,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let found = |hash: &Hash| blob(hash).ok_or(WorkError::Unavailable);
        let other =
            |what: &str| WorkError::Refused(format!("what the block names as its {what} is none"));
        let list = read_list(&found(&of.round.list)?, of.threshold).ok_or_else(|| other("list"))?;
        let manifest =
            MaskedManifest::read(&found(&of.round.manifest)?).ok_or_else(|| other("sheet"))?;
        let ready = ready(&config.member.epoch, &list).map_err(WorkError::Refused)?;
        let transcript = |entry: &MaskedEntry| blob(&entry.transcript.hash);
        let transcripts = check_transcripts(config, &ready, &manifest, held, transcript)?;
        let transcripts = Transcripts::new(&ready, transcripts);
        let transcripts = transcripts.map_err(|why| WorkError::Refused(why.to_string()))?;
        Ok(Self {
            of,
            list,
            manifest,
            ready,
            transcripts,
        })
    }

    fn block(&self) -> BlockHash {
        BlockHash(self.of.block.0)
    }

    /// Everything that the round can be opened with again, besides unmaskings.
    fn blobs(&self) -> Vec<Hash> {
        let entries = self.manifest.entries.iter();
        let blobs = entries.flat_map(|entry| [entry.vector.hash, entry.transcript.hash]);
        blobs
            .chain([self.list.root, self.of.round.manifest])
            .collect()
    }

    /// This silo's shares of all authors' masks, with the proof that they are the right ones.
    ///
    /// # Errors
    /// The list has other keys than these.
    pub(crate) fn unlock(&self, keys: &MemberKeys) -> Result<Vec<u8>, String> {
        let opening = Opening::unlock(&self.ready, keys, &self.transcripts, self.block());
        opening.map_err(|error| error.to_string())
    }

    /// The unmaskings that hold, at most as many as are needed, and the members of those that do not.
    fn proven(
        &self,
        unmaskings: &[(MemberIndex, Vec<u8>)],
    ) -> (Vec<(MemberIndex, Opening)>, Vec<MemberIndex>) {
        let (mut held, mut unproven) = (Vec::new(), Vec::new());
        for (by, bytes) in unmaskings {
            if held.len() == self.list.threshold {
                break;
            }
            let (ready, transcripts) = (&self.ready, &self.transcripts);
            match Opening::check(ready, transcripts, self.block(), by.0, bytes) {
                Ok(opening) => held.push((*by, opening)),
                Err(_) => unproven.push(*by),
            }
        }
        (held, unproven)
    }
}

/// The unmaskings that a round was opened with, as a blob.
fn unmaskings_blob(used: &[(MemberIndex, Vec<u8>)]) -> Bytes {
    let mut blob = UNMASKINGS.to_vec();
    blob.extend(codec::encode(&used));
    blob.into()
}

/// Reads a blob of unmaskings; `None` for any other.
pub fn read_unmaskings(blob: &[u8]) -> Option<Vec<(MemberIndex, Vec<u8>)>> {
    codec::decode(blob.strip_prefix(UNMASKINGS)?, codec::LIMIT).ok()
}

#[cfg(test)]
mod tests;
