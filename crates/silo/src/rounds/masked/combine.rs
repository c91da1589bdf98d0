//! Opening the sums of a final round and adding them up. It goes block by block, so that nothing of the size
//! of a model is in memory but the model that comes out.

use bytes::Bytes;
use methods::{Params, Sheet};
use privacy::masks::{BLOCK, Fixed, Seeds, Shape, SumAuthors, Void, Width, Word};
use protocol::message::MaskedEntry;
use protocol::privacy::{Sum, Voids};
use protocol::work::WorkError;
use protocol::{Hash, MemberIndex};

use super::{OpeningRound, authors, noised, shape, unmaskings_blob};
use crate::config::SiloConfig;
use crate::outcome::{MaskedNote, Nothing, Settled, SumNote, VoidSum, unchanged};
use crate::rounds::RoundBase;
use crate::rounds::noised::{Noised, declared};

/// The result of opening a round.
pub(crate) struct Combined {
    /// Members whose unmaskings do not hold.
    pub(crate) unproven: Vec<MemberIndex>,
    /// The outcome; [`WorkError::Unavailable`] if too few unmaskings hold.
    pub(crate) result: Result<Settled, WorkError>,
}

/// Opens the sums of a final round and computes its outcome. `vector` gives the bytes of an entry's
/// vector. All sums are means, weighted as agreed, and strategies of secure-aggregation rounds need nothing but the
/// mean of all authors: so they get a sheet of one entry, to which every group adds. `lay` puts the bytes of
/// that entry where they take no memory, see [`Blobs::to_file`](crate::surroundings::Blobs::to_file).
pub(crate) fn combine(
    config: &SiloConfig,
    base: &RoundBase,
    round: &OpeningRound,
    unmaskings: &[(MemberIndex, Vec<u8>)],
    vector: impl Fn(&MaskedEntry) -> Option<Bytes>,
    lay: impl Fn(Bytes) -> Bytes,
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
        let opened = RoundSums::open(config, base, round, &seeds, &vector)?;
        let (notes, of) = (opened.notes(), OpenedOf::round(round));
        let laid = |model: Params| model.read_from(lay(model.document()));
        let model = opened.model.map(|model| model.map(laid));
        let settled = settle(config, base, &of, notes, model);
        Ok(settled.with_masked(&round.blobs(), unmaskings_blob(&used)))
    });
    Combined { unproven, result }
}

/// A sum with what opening it needs.
struct SealedSum {
    shape: Shape,
    authors: SumAuthors,
    /// In the order of the authors.
    vectors: Vec<Bytes>,
    /// Σ w of the authors; with noise the rows that they declared.
    weights: u64,
    group: u16,
    /// Why it tells nothing, as soon as that is known.
    void: Option<VoidSum>,
}

impl SealedSum {
    fn new(
        config: &SiloConfig,
        base: &RoundBase,
        round: &OpeningRound,
        sum: &Sum,
        vector: &impl Fn(&MaskedEntry) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let entries = round.sheet.entries.iter();
        let vectors = entries
            .filter(|entry| sum.has(entry.member))
            .map(|entry| vector(entry).ok_or(WorkError::Unavailable));
        let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
        let epoch = &config.member.epoch;
        let masked = epoch.charter.privacy.masked();
        let weights = if epoch.charter.privacy.is_noised() {
            declared(config, sum)
        } else {
            let weights = sum.authors.iter().map(|(_, weight)| *weight);
            weights.fold(0, u64::saturating_add)
        };
        let group = masked.and_then(|masked| masked.group_of(&epoch.roster, sum));
        let shape = shape(config, base, sum).map_err(WorkError::Refused)?;
        let other = vectors.iter().any(|vector| vector.len() != shape.bytes());
        Ok(Self {
            shape,
            authors: authors(&round.ready, sum).map_err(WorkError::Refused)?,
            vectors,
            weights,
            group: group.unwrap_or_default() as u16,
            void: other.then_some(VoidSum::Length),
        })
    }

    /// Opens the words from `at` on that `total` has room for, and those of the checks behind the last
    /// coordinates. Adds them to `total`, and notes what is wrong with them.
    fn add_to(&mut self, seeds: &Seeds, at: usize, total: &mut [i64]) -> Result<(), String> {
        match self.shape.width() {
            Width::Bits32 => self.add_words::<u32>(seeds, at, total),
            Width::Bits64 => self.add_words::<u64>(seeds, at, total),
        }
    }

    fn add_words<W: Word>(
        &mut self,
        seeds: &Seeds,
        at: usize,
        total: &mut [i64],
    ) -> Result<(), String> {
        let mut end = at + total.len();
        if end == self.shape.coordinates() {
            end = self.shape.words();
        }
        let (mut words, bytes) = (vec![W::default(); end - at], size_of::<W>());
        let vectors = self.vectors.iter();
        let parts: Vec<_> = vectors
            .map(|vector| &vector[at * bytes..end * bytes])
            .collect();
        let void = seeds.combine_chunk(self.shape, &self.authors, at, &parts, &mut words);
        let void = void.map_err(|error| error.to_string())?;
        self.void = self.void.or(void.map(|void| match void {
            Void::Check(_) => VoidSum::Streams,
            Void::BeyondReach { .. } => VoidSum::Reach,
        }));
        for (total, word) in total.iter_mut().zip(words) {
            *total = total.saturating_add(word.signed());
        }
        Ok(())
    }
}

/// The sums of a round, and the model that they tell.
struct RoundSums<'a> {
    config: &'a SiloConfig,
    base: &'a RoundBase,
    sums: Vec<SealedSum>,
    /// The mean of all models, with noise the model that follows from the sum; `None` if no sum tells
    /// anything, an error if nothing can be made of them.
    model: Option<Result<Params, String>>,
}

impl<'a> RoundSums<'a> {
    fn open(
        config: &'a SiloConfig,
        base: &'a RoundBase,
        round: &OpeningRound,
        seeds: &Seeds,
        vector: &impl Fn(&MaskedEntry) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let sums = round.list.sums.iter();
        let sums = sums.map(|sum| SealedSum::new(config, base, round, sum, vector));
        let mut opened = Self {
            config,
            base,
            sums: sums.collect::<Result<_, _>>()?,
            model: None,
        };
        opened.model = opened.learned(seeds).map_err(WorkError::Refused)?;
        Ok(opened)
    }

    fn learned(&mut self, seeds: &Seeds) -> Result<Option<Result<Params, String>>, String> {
        let noised = noised(self.config, self.base)?;
        // Whether a sum tells something is known at its end only. If one does not, the others are added
        // up again without it.
        loop {
            let live = self.sums.iter().filter(|sum| sum.void.is_none());
            let weights = live.fold(0, |all, sum| sum.weights.saturating_add(all));
            if weights == 0 {
                return Ok(None);
            }
            let (model, whole) = match &noised {
                Some(noised) => self.noised(noised, seeds, weights)?,
                None => self.mean(seeds, weights)?,
            };
            if whole {
                return Ok(Some(model));
            }
        }
    }

    fn notes(&self) -> Vec<SumNote> {
        let notes = self.sums.iter().map(|sum| SumNote {
            group: sum.group,
            void: sum.void,
        });
        notes.collect()
    }

    /// Adds up all sums that are not void, and gives each block of coordinates with its beginning to
    /// `block`. Returns whether none of them turned out to be void.
    fn each_block(
        &mut self,
        seeds: &Seeds,
        mut block: impl FnMut(usize, &[i64]),
    ) -> Result<bool, String> {
        let numbers = self.numbers();
        let live = |sum: &&mut SealedSum| sum.void.is_none();
        let mut live: Vec<_> = self.sums.iter_mut().filter(live).collect();
        let mut total = vec![0; BLOCK.min(numbers)];
        for at in (0..numbers).step_by(BLOCK) {
            let total = &mut total[..BLOCK.min(numbers - at)];
            total.fill(0);
            for sum in &mut live {
                sum.add_to(seeds, at, total)?;
            }
            block(at, total);
        }
        Ok(live.iter().all(|sum| sum.void.is_none()))
    }

    /// Coordinates of every sum: those of the model, unless other numbers are added with noise.
    fn numbers(&self) -> usize {
        let first = self.sums.first();
        first.map_or(0, |sum| sum.shape.coordinates())
    }

    /// The mean of all models.
    fn mean(
        &mut self,
        seeds: &Seeds,
        weights: u64,
    ) -> Result<(Result<Params, String>, bool), String> {
        let start = self.base.start();
        let layout = self.base.gate.layout.clone();
        let mut whole = Ok(true);
        let mut mean = |start: &Params| {
            Params::build(&layout, |values| {
                whole = self.each_block(seeds, |at, totals| {
                    let start = &start.values()[at..];
                    let parts = values[at..].iter_mut().zip(start).zip(totals);
                    for ((value, start), total) in parts {
                        let moved = Fixed::MODEL.mean(*total, weights);
                        *value = (f64::from(*start) + moved) as f32;
                    }
                });
            })
        };
        let model = start.map(|start| mean(&start));
        Ok((model, whole?))
    }

    /// The model that follows from the sum of all with their noise.
    fn noised(
        &mut self,
        noised: &Noised,
        seeds: &Seeds,
        rows: u64,
    ) -> Result<(Result<Params, String>, bool), String> {
        let live = self.sums.iter().filter(|sum| sum.void.is_none());
        let authors = live.map(|sum| sum.authors.authors().len()).sum();
        let mut total = vec![0; self.numbers()];
        let whole = self.each_block(seeds, |at, block| {
            total[at..at + block.len()].copy_from_slice(block);
        })?;
        let model = noised.model(self.config, self.base, &total, (rows, authors));
        Ok((model, whole))
    }
}

/// Whose vectors are in the opened sums of a round.
pub(super) struct OpenedOf<'a> {
    /// The authors, ascending.
    pub(super) authors: Vec<MemberIndex>,
    /// Hashes of their vectors, in the same order.
    pub(super) vectors: Vec<Hash>,
    pub(super) sums: &'a [Sum],
}

impl<'a> OpenedOf<'a> {
    fn round(round: &'a OpeningRound) -> Self {
        let entries = &round.sheet.entries;
        Self {
            authors: entries.iter().map(|entry| entry.member).collect(),
            vectors: entries.iter().map(|entry| entry.vector.hash).collect(),
            sums: &round.list.sums,
        }
    }
}

/// The outcome of a round of which the sums tell this model.
pub(super) fn settle(
    config: &SiloConfig,
    base: &RoundBase,
    of: &OpenedOf<'_>,
    notes: Vec<SumNote>,
    model: Option<Result<Params, String>>,
) -> Settled {
    let left_out = |by: &MemberIndex| {
        let mut sums = notes.iter().zip(of.sums);
        sums.any(|(note, sum)| note.void.is_some() && sum.has(*by))
    };
    let left_out = of.authors.iter().map(left_out).collect();
    let (state, nothing) = match model.map(|model| learn(config, base, model)) {
        Some(Ok(state)) => (state, None),
        Some(Err(_)) => (None, Some(Nothing::Refused)),
        None => (None, Some(Nothing::Void)),
    };
    let epoch = &config.member.epoch;
    let void = notes.iter().map(|note| note.void.is_some());
    let opened = of.sums.iter().zip(void);
    let masked = epoch.charter.privacy.masked();
    let voids = masked.map(|masked| base.voids.after(masked, &epoch.roster, opened));
    let Voids { rounds, search } = voids.unwrap_or_default();
    let note = MaskedNote {
        epoch: epoch.id,
        authors: of.authors.clone(),
        left_out,
        void: rounds,
        sums: notes,
        nothing,
        search,
    };
    let (vectors, assignment) = (of.vectors.clone(), vec![0; of.authors.len()]);
    let state = state.unwrap_or_else(|| {
        let before = unchanged(base.next(), &base.state).state;
        methods::State::clone(&before)
    });
    Settled::masked(base.next(), vectors, assignment, state, note)
}

/// The strategy's state after a round whose only entry is this model.
fn learn(
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
