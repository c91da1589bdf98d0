//! A masked round as functions of their arguments: what a silo sends in place of its model, and what
//! members make of the vectors of all. The formulas are those of [`privacy::masks`].

use bytes::Bytes;
use methods::{Params, Sheet};
use privacy::masks::{
    BlockHash, Fixed, Listed, Mask, MemberKeys, Opening, Point, PublicPoints, Reach, ReadyList,
    Root, Seeds, Shape, SumAuthors, Transcript, Transcripts, Void, Width, Word,
};
use protocol::message::{ListDocument, MaskedEntry, MaskedSheet, PublicKeys};
use protocol::privacy::{Masked, Sum, threshold};
use protocol::work::{FinalMasked, MaskedList, WorkError};
use protocol::{Epoch, Hash, MemberIndex, Roster, codec};

mod blame;
mod opened;
mod prepared;

pub use blame::{NotVoid, VoidRound};
pub use opened::OpenSum;
pub(crate) use opened::open_sums;
pub use prepared::disclosed_secret;
pub(crate) use prepared::{PreparedInput, PreparedRound};

use super::RoundBase;
use super::noised::{Noised, declared};
use crate::config::SiloConfig;
use crate::outcome::{MaskedNote, Nothing, Settled, SumNote, VoidSum, unchanged};

/// Begins the blob of the unmaskings that a silo opened a round with.
const UNMASKINGS: &[u8] = b"rota unmaskings 1\n";

/// Whether masked rounds may begin with a model.
///
/// # Errors
/// A number of it is not finite, or too large.
pub(crate) fn check_start(model: &Params) -> Result<(), String> {
    let checked = Fixed::MODEL.check_start(model.values());
    checked.map_err(|error| error.to_string())
}

/// The public keys as they travel.
pub(crate) fn public(points: &PublicPoints) -> PublicKeys {
    PublicKeys {
        exchange: points.exchange.bytes(),
        share: points.share.bytes(),
    }
}

/// Whether public keys can be used.
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

/// The noise that is agreed on.
fn noised(config: &SiloConfig, base: &RoundBase) -> Result<Option<Noised>, String> {
    let masked = config.member.epoch.charter.privacy.masked();
    Noised::of(masked, base.gate.layout.len())
}

/// The shape of the vectors of a sum.
pub(crate) fn shape(config: &SiloConfig, base: &RoundBase, sum: &Sum) -> Result<Shape, String> {
    if let Some(noised) = noised(config, base)? {
        return noised.shape(config, sum);
    }
    Shape::new(base.gate.layout.len(), reach(sum)?).map_err(|error| error.to_string())
}

/// How large the numbers of a sum of models may become.
fn reach(sum: &Sum) -> Result<Reach, String> {
    let weights: Vec<_> = sum.authors.iter().map(|(_, weight)| *weight).collect();
    Reach::of(&weights, Fixed::MODEL).map_err(|error| error.to_string())
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

/// Masks the silo's own model for a list.
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
        Width::Bits32 => words::<u32>(&mask, shape, &input)?,
        Width::Bits64 => words::<u64>(&mask, shape, &input)?,
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

/// The masked words as bytes, and how many coordinates were clipped.
fn words<W: Word>(mask: &Mask, shape: Shape, of: &MaskInput<'_>) -> Result<(Bytes, u64), String> {
    let (words, clipped) = match of.prepared {
        PreparedInput::Model(model) => {
            let (start, model) = (of.start, model.values());
            let masked = mask.vector::<W>(shape, Fixed::MODEL, of.weight, start, model);
            let masked = masked.map_err(|error| error.to_string())?;
            (masked.words, masked.clipped)
        }
        PreparedInput::Noised(integers) => {
            let masked = mask.integers::<W>(shape, integers);
            (masked.map_err(|error| error.to_string())?, 0)
        }
    };
    let mut bytes = Vec::with_capacity(shape.bytes());
    W::write(&words, &mut bytes);
    Ok((bytes.into(), clipped))
}

/// Checks the transcripts of a sheet for its list; `blob` gives the bytes of an entry's transcript.
///
/// # Errors
/// [`WorkError::Unavailable`]: one is not here. [`WorkError::Refused`]: one does not fit, and whose it is.
pub(crate) fn check_transcripts(
    config: &SiloConfig,
    ready: &ReadyList,
    sheet: &MaskedSheet,
    blob: impl Fn(&MaskedEntry) -> Option<Bytes>,
) -> Result<Vec<Transcript>, WorkError> {
    let roster = &config.member.epoch.roster;
    let checked = sheet.entries.iter().map(|entry| {
        let bytes = blob(entry).ok_or(WorkError::Unavailable)?;
        Transcript::check(ready, entry.member.0, &bytes).map_err(|why| {
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

/// A final masked round with everything that opening it needs, but the vectors.
pub(crate) struct OpeningRound {
    pub(crate) of: FinalMasked,
    pub(crate) list: MaskedList,
    pub(crate) sheet: MaskedSheet,
    pub(crate) ready: ReadyList,
    pub(crate) transcripts: Transcripts,
}

impl OpeningRound {
    /// Reads a final round; `blob` returns list, sheet and transcripts by hash.
    ///
    /// # Errors
    /// [`WorkError::Unavailable`]: a blob is missing. [`WorkError::Refused`]: what is wrong with one.
    pub(crate) fn read(
        config: &SiloConfig,
        of: FinalMasked,
        blob: impl Fn(&Hash) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let found = |hash: &Hash| blob(hash).ok_or(WorkError::Unavailable);
        let other =
            |what: &str| WorkError::Refused(format!("what the block names as its {what} is none"));
        let list = read_list(&found(&of.round.list)?, of.threshold).ok_or_else(|| other("list"))?;
        let sheet = MaskedSheet::read(&found(&of.round.sheet)?).ok_or_else(|| other("sheet"))?;
        let ready = ready(&config.member.epoch, &list).map_err(WorkError::Refused)?;
        let transcript = |entry: &MaskedEntry| blob(&entry.transcript.hash);
        let transcripts = check_transcripts(config, &ready, &sheet, transcript)?;
        let transcripts = Transcripts::new(&ready, transcripts);
        let transcripts = transcripts.map_err(|why| WorkError::Refused(why.to_string()))?;
        Ok(Self {
            of,
            list,
            sheet,
            ready,
            transcripts,
        })
    }

    fn block(&self) -> BlockHash {
        BlockHash(self.of.block.0)
    }

    /// Everything that the round can be opened with again, besides unmaskings.
    fn blobs(&self) -> Vec<Hash> {
        let entries = self.sheet.entries.iter();
        let blobs = entries.flat_map(|entry| [entry.vector.hash, entry.transcript.hash]);
        blobs.chain([self.list.root, self.of.round.sheet]).collect()
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

/// The result of opening a round.
pub(crate) struct Combined {
    /// Members whose unmaskings do not hold.
    pub(crate) unproven: Vec<MemberIndex>,
    /// The outcome; [`WorkError::Unavailable`] if too few unmaskings hold.
    pub(crate) result: Result<Settled, WorkError>,
}

/// Opens the sums of a final round and computes its outcome. `vector` gives the bytes of an entry's
/// vector. All sums are means, weighted as agreed, and strategies of masked rounds need nothing but the
/// mean of all authors: so they get a sheet of one entry, to which every group adds.
pub(crate) fn combine(
    config: &SiloConfig,
    base: &RoundBase,
    round: &OpeningRound,
    unmaskings: &[(MemberIndex, Vec<u8>)],
    vector: impl Fn(&MaskedEntry) -> Option<Bytes>,
) -> Combined {
    let (held, unproven) = round.proven(unmaskings);
    if held.len() < round.list.threshold {
        let result = Err(WorkError::Unavailable);
        return Combined { unproven, result };
    }
    let openings: Vec<_> = held.iter().map(|(_, opening)| opening).collect();
    let seeds = Seeds::recover(&round.ready, &round.transcripts, &openings);
    let seeds = seeds.map_err(|error| WorkError::Refused(error.to_string()));
    let used = unmaskings
        .iter()
        .filter(|(by, _)| held.iter().any(|(other, _)| other == by));
    let used: Vec<_> = used.cloned().collect();
    let result = seeds.and_then(|seeds| {
        let opened = OpenedSums::open(config, base, round, &seeds, &vector)?;
        let settled = opened.settle(config, base, round);
        Ok(settled.with_masked(&round.blobs(), unmaskings_blob(&used)))
    });
    Combined { unproven, result }
}

/// The sums of a round, opened and added up.
struct OpenedSums {
    /// Σ w·v of all groups that tell something, by coordinate.
    total: Vec<i64>,
    /// Σ w of these; with noise the rows that their authors declared.
    weights: u64,
    /// The agreement on noise, if there is one.
    noised: Option<Noised>,
    notes: Vec<SumNote>,
}

impl OpenedSums {
    fn open(
        config: &SiloConfig,
        base: &RoundBase,
        round: &OpeningRound,
        seeds: &Seeds,
        vector: &impl Fn(&MaskedEntry) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let epoch = &config.member.epoch;
        let masked = epoch.charter.privacy.masked();
        let mut sums = Self {
            total: vec![0; base.gate.layout.len()],
            weights: 0,
            noised: noised(config, base).map_err(WorkError::Refused)?,
            notes: Vec::new(),
        };
        for sum in &round.list.sums {
            let entries = round.sheet.entries.iter();
            let vectors = entries
                .filter(|entry| sum.has(entry.member))
                .map(|entry| vector(entry).ok_or(WorkError::Unavailable));
            let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
            let void = sums.add((config, base), round, seeds, sum, &vectors);
            let group = masked.and_then(|masked| masked.group_of(&epoch.roster, sum));
            sums.notes.push(SumNote {
                group: group.unwrap_or_default() as u16,
                void: void.map_err(WorkError::Refused)?,
            });
        }
        Ok(sums)
    }

    /// Adds a sum, unless it tells nothing; then says why.
    fn add(
        &mut self,
        (config, base): (&SiloConfig, &RoundBase),
        round: &OpeningRound,
        seeds: &Seeds,
        sum: &Sum,
        vectors: &[Bytes],
    ) -> Result<Option<VoidSum>, String> {
        let shape = shape(config, base, sum)?;
        if vectors.iter().any(|vector| vector.len() != shape.bytes()) {
            return Ok(Some(VoidSum::Length));
        }
        let authors = authors(&round.ready, sum)?;
        let parts: Vec<&[u8]> = vectors.iter().map(|vector| &vector[..]).collect();
        let (words, void) = match shape.width() {
            Width::Bits32 => opened::<u32>(seeds, shape, &authors, &parts)?,
            Width::Bits64 => opened::<u64>(seeds, shape, &authors, &parts)?,
        };
        if let Some(void) = void {
            return Ok(Some(match void {
                Void::Check(_) => VoidSum::Streams,
                Void::BeyondReach { .. } => VoidSum::Reach,
            }));
        }
        for (total, word) in self.total.iter_mut().zip(words) {
            *total = total.saturating_add(word);
        }
        let weights = if self.noised.is_some() {
            declared(config, sum)
        } else {
            let weights = sum.authors.iter().map(|(_, weight)| *weight);
            weights.fold(0, u64::saturating_add)
        };
        self.weights = self.weights.saturating_add(weights);
        Ok(None)
    }

    /// The outcome that follows.
    fn settle(self, config: &SiloConfig, base: &RoundBase, round: &OpeningRound) -> Settled {
        let entries = &round.sheet.entries;
        let names = || entries.iter().map(|entry| entry.vector.hash).collect();
        let left_out = |by: MemberIndex| {
            let mut sums = self.notes.iter().zip(&round.list.sums);
            sums.any(|(note, sum)| note.void.is_some() && sum.has(by))
        };
        let learned = self
            .mean(config, base)
            .map(|model| learn(config, base, model));
        let (state, nothing) = match learned {
            Some(Ok(state)) => (state, None),
            Some(Err(_)) => (None, Some(Nothing::Refused)),
            None => (None, Some(Nothing::Void)),
        };
        let mut note = MaskedNote {
            epoch: config.member.epoch.id,
            authors: entries.iter().map(|entry| entry.member).collect(),
            left_out: entries.iter().map(|entry| left_out(entry.member)).collect(),
            void: base.void.clone(),
            sums: self.notes,
            nothing,
        };
        let masked = config.member.epoch.charter.privacy.masked();
        note.count(masked.map_or(0, Masked::most_sums));
        let assignment = vec![0; entries.len()];
        match state {
            Some(state) => Settled::masked(base.next(), names(), assignment, state, note),
            None => {
                let before = unchanged(base.next(), &base.state).state;
                let state = methods::State::clone(&before);
                Settled::masked(base.next(), names(), assignment, state, note)
            }
        }
    }

    /// The mean of all models, with noise the model after the common step; `None` if no sum tells anything.
    fn mean(&self, config: &SiloConfig, base: &RoundBase) -> Option<Result<Params, String>> {
        if self.weights == 0 {
            return None;
        }
        if let Some(noised) = &self.noised {
            return Some(noised.step(config, base, &self.total, self.weights));
        }
        let start = match base.start() {
            Ok(start) => start,
            Err(why) => return Some(Err(why)),
        };
        let model = Params::build(&base.gate.layout, |values| {
            let parts = values.iter_mut().zip(start.values()).zip(&self.total);
            for ((value, start), total) in parts {
                let moved = Fixed::MODEL.mean(*total, self.weights);
                *value = (f64::from(*start) + moved) as f32;
            }
        });
        Some(Ok(model))
    }
}

/// The strategy's state after a round whose only entry is this model.
pub(super) fn learn(
    config: &SiloConfig,
    base: &RoundBase,
    model: Result<Params, String>,
) -> Result<Option<methods::State>, String> {
    let (strategy, round) = (&config.strategy, base.next());
    let entry = methods::ModelEntry {
        model: model?,
        coalition: Some(0),
        weight: None,
        member: None,
    };
    let sheet = Sheet {
        entries: vec![entry],
        scores: None,
    };
    let decision = strategy.decide(&base.state, &sheet, round);
    let decision = decision.map_err(|error| error.to_string())?;
    let outcome = strategy.settle(&base.state, &sheet, &decision, round);
    Ok(Some(outcome.map_err(|error| error.to_string())?.state))
}

fn opened<W: Word>(
    seeds: &Seeds,
    shape: Shape,
    authors: &SumAuthors,
    vectors: &[&[u8]],
) -> Result<(Vec<i64>, Option<Void>), String> {
    let opened = seeds.combine::<W>(shape, authors, vectors);
    let opened = opened.map_err(|error| error.to_string())?;
    let words = opened.words.iter().take(shape.coordinates());
    Ok((words.map(|word| word.signed()).collect(), opened.void))
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
