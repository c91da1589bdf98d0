//! Opening the sums of a final round and adding them up. It goes block by block, so that nothing of the size
//! of a model is in memory but the model that comes out.

use bytes::Bytes;
use methods::{LoadedManifest, Params};
use privacy::masks::{BLOCK, Seeds, Shape, SumAuthors, Void, Width, Word};
use protocol::message::MaskedEntry;
use protocol::privacy::{Sum, Voids};
use protocol::work::WorkError;
use protocol::{Hash, MemberIndex};

use super::{OpeningRound, authors, unmaskings_blob};
use crate::config::SiloConfig;
use crate::outcome::{MaskedNote, Nothing, Settled, SumNote, VoidSum};
use crate::rounds::RoundBase;
use crate::rounds::sums::{OpenedTotal, SumBasis, Summand, summand};

/// The result of opening a round.
pub(crate) struct Combined {
    /// Members whose unmaskings do not hold.
    pub(crate) unproven: Vec<MemberIndex>,
    /// The outcome; [`WorkError::Unavailable`] if too few unmaskings hold.
    pub(crate) result: Result<Settled, WorkError>,
}

/// Opens the sums of a final round and computes its outcome. `vector` gives the bytes of an entry's
/// vector. Sums of models are means, weighted as agreed, and strategies of secure-aggregation rounds need nothing but the
/// mean of all authors: so they get a manifest of one entry, to which every group adds. Sums of answers to a question are
/// an entry for each group. `lay` puts the bytes of an entry where they take no memory, see [`Blobs::to_file`](crate::environment::Blobs::to_file).
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
        let opened = RoundSums::open(SumBasis { config, base }, round, &seeds, &vector)?;
        let (notes, of) = (opened.notes(), OpenedOf::round(round));
        let laid = |model: Params| model.read_from(lay(model.document()));
        let all = |models: Vec<Params>| models.into_iter().map(laid).collect();
        let models = opened.models.map(|models| models.map(all));
        let settled = settle(config, base, &of, notes, models);
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
    /// Divisor of the sum.
    weights: u64,
    group: u16,
    /// Reason for which it tells nothing, as soon as that is known.
    void: Option<VoidSum>,
}

impl SealedSum {
    fn new(
        summand: &dyn Summand,
        of: SumBasis<'_>,
        round: &OpeningRound,
        sum: &Sum,
        vector: &impl Fn(&MaskedEntry) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let entries = round.manifest.entries.iter();
        let vectors = entries
            .filter(|entry| sum.has(entry.member))
            .map(|entry| vector(entry).ok_or(WorkError::Unavailable));
        let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
        let epoch = &of.config.member.epoch;
        let masked = epoch.protocol.privacy.masked();
        let group = masked.and_then(|masked| masked.group_of(&epoch.roster, sum));
        let shape = summand.shape(of, sum).map_err(WorkError::Refused)?;
        let other = vectors.iter().any(|vector| vector.len() != shape.bytes());
        Ok(Self {
            shape,
            authors: authors(&round.ready, sum).map_err(WorkError::Refused)?,
            vectors,
            weights: summand.weight(of, sum),
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

/// The sums of a round, and the models that they tell.
struct RoundSums {
    sums: Vec<SealedSum>,
    /// The models that follow from the sums; `None` if no sum tells anything, an error if nothing can be made of
    /// them.
    models: Option<Result<Vec<Params>, String>>,
}

impl RoundSums {
    fn open(
        of: SumBasis<'_>,
        round: &OpeningRound,
        seeds: &Seeds,
        vector: &impl Fn(&MaskedEntry) -> Option<Bytes>,
    ) -> Result<Self, WorkError> {
        let summand = summand(of).map_err(WorkError::Refused)?;
        let sums = round.list.sums.iter();
        let sums = sums.map(|sum| SealedSum::new(&*summand, of, round, sum, vector));
        let mut sums = sums.collect::<Result<Vec<_>, _>>()?;
        let mut live = LiveSums {
            sums: &mut sums,
            seeds,
        };
        let models = live.learned(&*summand, of).map_err(WorkError::Refused)?;
        Ok(Self { sums, models })
    }

    fn notes(&self) -> Vec<SumNote> {
        let notes = self.sums.iter().map(|sum| SumNote {
            group: sum.group,
            void: sum.void,
        });
        notes.collect()
    }
}

/// The sums that are not void, as far as that is known.
struct LiveSums<'a> {
    sums: &'a mut [SealedSum],
    seeds: &'a Seeds,
}

impl LiveSums<'_> {
    fn learned(
        &mut self,
        summand: &dyn Summand,
        of: SumBasis<'_>,
    ) -> Result<Option<Result<Vec<Params>, String>>, String> {
        // A sum shows at its end only if it tells something. If it does not, the others are added up again
        // without it.
        loop {
            if self.weights() == 0 {
                return Ok(None);
            }
            let (models, whole) = summand.model(of, self)?;
            if whole {
                return Ok(Some(models));
            }
        }
    }

    fn live(&self) -> impl Iterator<Item = &SealedSum> {
        self.sums.iter().filter(|sum| sum.void.is_none())
    }
}

impl OpenedTotal for LiveSums<'_> {
    fn weights(&self) -> u64 {
        let live = self.live();
        live.fold(0, |all, sum| sum.weights.saturating_add(all))
    }

    fn members(&self) -> Vec<MemberIndex> {
        let all = self.live().flat_map(|sum| sum.authors.authors());
        all.map(|by| MemberIndex(*by)).collect()
    }

    fn each_block(&mut self, block: &mut dyn FnMut(usize, &[i64])) -> Result<bool, String> {
        // All sums have the same coordinates.
        let first = self.sums.first();
        let numbers = first.map_or(0, |sum| sum.shape.coordinates());
        let live = |sum: &&mut SealedSum| sum.void.is_none();
        let mut live: Vec<_> = self.sums.iter_mut().filter(live).collect();
        let mut total = vec![0; BLOCK.min(numbers)];
        for at in (0..numbers).step_by(BLOCK) {
            let total = &mut total[..BLOCK.min(numbers - at)];
            total.fill(0);
            for sum in &mut live {
                sum.add_to(self.seeds, at, total)?;
            }
            block(at, total);
        }
        Ok(live.iter().all(|sum| sum.void.is_none()))
    }

    fn each_sum(&mut self, each: &mut dyn FnMut(&[MemberIndex], &[i64])) -> Result<bool, String> {
        let mut whole = true;
        let live = self.sums.iter_mut().filter(|sum| sum.void.is_none());
        for sum in live {
            let authors = sum.authors.authors().iter();
            let authors: Vec<_> = authors.map(|by| MemberIndex(*by)).collect();
            let mut words = vec![0; sum.shape.coordinates()];
            sum.add_to(self.seeds, 0, &mut words)?;
            whole &= sum.void.is_none();
            each(&authors, &words);
        }
        Ok(whole)
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
        let entries = &round.manifest.entries;
        Self {
            authors: entries.iter().map(|entry| entry.member).collect(),
            vectors: entries.iter().map(|entry| entry.vector.hash).collect(),
            sums: &round.list.sums,
        }
    }
}

/// The outcome of a round of which the sums tell these models.
pub(super) fn settle(
    config: &SiloConfig,
    base: &RoundBase,
    of: &OpenedOf<'_>,
    notes: Vec<SumNote>,
    models: Option<Result<Vec<Params>, String>>,
) -> Settled {
    let left_out = |by: &MemberIndex| {
        let mut sums = notes.iter().zip(of.sums);
        sums.any(|(note, sum)| note.void.is_some() && sum.has(*by))
    };
    let left_out = of.authors.iter().map(left_out).collect();
    let (state, nothing) = match models.map(|models| learn(config, base, models)) {
        Some(Ok(state)) => (state, None),
        Some(Err(_)) => (None, Some(Nothing::Refused)),
        None => (None, Some(Nothing::Void)),
    };
    let epoch = &config.member.epoch;
    let void = notes.iter().map(|note| note.void.is_some());
    let opened = of.sums.iter().zip(void);
    let masked = epoch.protocol.privacy.masked();
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
    let round = base.next();
    let state = state.unwrap_or_else(|| config.strategy.nothing_told(&base.state, round));
    Settled::masked(round, vectors, assignment, state, note)
}

/// The strategy's state after a round whose entries are these models.
fn learn(
    config: &SiloConfig,
    base: &RoundBase,
    models: Result<Vec<Params>, String>,
) -> Result<Option<methods::State>, String> {
    let (strategy, round) = (&config.strategy, base.next());
    let entry = |model| methods::ModelEntry {
        model,
        coalition: Some(0),
        weight: None,
        member: None,
    };
    let manifest = LoadedManifest {
        entries: models?.into_iter().map(entry).collect(),
        scores: None,
    };
    let decision = strategy.decide(&base.state, &manifest, round);
    let decision = decision.map_err(|error| error.to_string())?;
    let outcome = strategy.settle(&base.state, &manifest, &decision, round);
    Ok(Some(outcome.map_err(|error| error.to_string())?.state))
}
