//! Frequency of recognising the authors of models without names.
//!
//! Where a federation removes names, the lead of a round still learns who sent which model, and every
//! member leads at times. In the next round it sees all models again, without names. A member that
//! knows the authors of one round can compare what it sees in the next with what it saw, and guess
//! whose is whose. The simulator knows the truth and counts how often such a guess is right.
//!
//! The guess is simple: of all pairs of an entry before and an entry now, the two that are most alike
//! belong together, then the next two, and so on. A real attacker may combine clues, know more
//! rounds, or know something of a member's data: what is measured here is the least that it achieves.

use std::cmp::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use multiversion::multiversion;
use protocol::MemberIndex;
use protocol::message::Entry;
use serde::Serialize;

/// Most parameters of a model that are compared. Of larger models every k-th is taken.
const COMPARED: usize = 1 << 14;

/// Frequency of recognising authors from one final round to the next.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkageResult {
    /// Pairs of final rounds, one after the other, that were compared.
    pub rounds: u64,
    /// Entries whose author was also in the round before.
    pub entries: u64,
    /// Share of them that guessing at random would name correctly.
    pub chance: f64,
    /// Clues that give authors away, the strongest first.
    pub clues: Vec<Clue>,
}

/// One thing that entries show.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clue {
    /// Kind of clue.
    pub kind: ClueKind,
    /// Entries whose author it named correctly.
    pub right: u64,
    /// Entries whose author it named correctly, as a share of all entries.
    pub share: f64,
}

/// Clue that an entry without a name shows to every member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClueKind {
    /// The model: the cosine between its differences from the means of the two rounds.
    Model,
    /// The number of training rows, where strategies send it.
    Rows,
    /// The least of its author's losses of all models, where members evaluate each other's models.
    Losses,
    /// The coalition whose model training started from.
    Coalition,
}

impl ClueKind {
    const ALL: [Self; 4] = [Self::Model, Self::Rows, Self::Losses, Self::Coalition];

    /// The name of the clue, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Model => "their similarity to its models",
            Self::Rows => "their numbers of training rows",
            Self::Losses => "the losses that their authors report",
            Self::Coalition => "their coalitions",
        }
    }
}

impl LinkageResult {
    /// The strongest clue, in one sentence without a full stop.
    pub fn sentence(&self) -> Option<String> {
        let strongest = self.clues.first()?;
        Some(format!(
            "members see models without names, but the lead of the round before can tell who wrote {:.0} % of \
             them by {} (guessing: {:.0} %)",
            100.0 * strongest.share,
            strongest.kind.words(),
            100.0 * self.chance
        ))
    }
}

/// An entry of a final round with its true author, its model's document, and its author's losses of
/// all models.
pub(crate) type Shown = (MemberIndex, Entry, Bytes, Option<Vec<f64>>);

/// Rounds that may wait until they are compared.
const WAITING: usize = 2;

/// Counts on a thread of its own, for which the federation does not wait.
#[derive(Default)]
pub(crate) struct LinkageCounter {
    running: Option<LinkageThread>,
}

/// The thread, and what it takes rounds from.
struct LinkageThread {
    rounds: SyncSender<Vec<Shown>>,
    thread: JoinHandle<Option<LinkageResult>>,
}

impl LinkageCounter {
    /// Returns what takes the entries of final rounds, in order. It waits where the comparison is behind.
    pub(crate) fn rounds(&mut self) -> SyncSender<Vec<Shown>> {
        let start = || {
            let (rounds, next) = sync_channel(WAITING);
            let thread = thread::spawn(move || compare(&next));
            LinkageThread { rounds, thread }
        };
        self.running.get_or_insert_with(start).rounds.clone()
    }

    /// Returns what was found; `None` where no author was in two rounds in a row.
    ///
    /// # Panics
    /// As the thread did.
    pub(crate) fn result(&mut self) -> Option<LinkageResult> {
        let LinkageThread { rounds, thread } = self.running.take()?;
        drop(rounds);
        match thread.join() {
            Ok(found) => found,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn compare(rounds: &Receiver<Vec<Shown>>) -> Option<LinkageResult> {
    let mut observer = Observer::default();
    for round in rounds {
        let seen = round.iter().map(|(author, entry, document, losses)| {
            SeenEntry::new(*author, entry, document, losses.as_deref())
        });
        observer.round(seen.collect());
    }
    observer.result()
}

/// An entry of a final round, as all members see it, with its true author.
struct SeenEntry {
    author: MemberIndex,
    model: Vec<f32>,
    /// ℓ2 norm of `model`, once the round's mean is taken off it.
    norm: f64,
    rows: Option<u64>,
    coalition: Option<u32>,
    least_loss: Option<f64>,
}

impl SeenEntry {
    fn new(author: MemberIndex, entry: &Entry, document: &Bytes, losses: Option<&[f64]>) -> Self {
        let least = |losses: &[f64]| losses.iter().copied().min_by(f64::total_cmp);
        Self {
            author,
            model: sample(document),
            norm: 0.0,
            rows: entry.fields.weight,
            coalition: entry.fields.coalition,
            least_loss: losses.and_then(least),
        }
    }
}

/// Some of a model's parameters, evenly spaced: those of a safetensors document of 32-bit floats.
fn sample(document: &Bytes) -> Vec<f32> {
    let header = document
        .first_chunk::<8>()
        .map(|size| u64::from_le_bytes(*size));
    let start = header.and_then(|size| usize::try_from(size).ok()?.checked_add(8));
    let values = start
        .and_then(|start| document.get(start..))
        .unwrap_or_default();
    let (values, _) = values.as_chunks::<4>();
    let step = values.len().div_ceil(COMPARED).max(1);
    let values = values.iter().step_by(step);
    values.map(|value| f32::from_le_bytes(*value)).collect()
}

/// Counts round by round.
#[derive(Default)]
struct Observer {
    before: Vec<SeenEntry>,
    rounds: u64,
    entries: u64,
    by_chance: f64,
    right: [u64; ClueKind::ALL.len()],
    seen: [bool; ClueKind::ALL.len()],
}

impl Observer {
    /// The entries of the next final round.
    fn round(&mut self, now: Vec<SeenEntry>) {
        let before = std::mem::replace(&mut self.before, centred(now));
        let known = |author| before.iter().any(|entry| entry.author == author);
        let common = self
            .before
            .iter()
            .filter(|entry| known(entry.author))
            .count();
        if common == 0 {
            return;
        }
        self.rounds += 1;
        self.entries += common as u64;
        self.by_chance += common as f64 / before.len().max(self.before.len()) as f64;
        for (at, kind) in ClueKind::ALL.into_iter().enumerate() {
            if let Some(right) = recognised(&before, &self.before, kind) {
                self.right[at] += right;
                self.seen[at] = true;
            }
        }
    }

    /// Returns what was found; `None` where no author was in two rounds in a row.
    fn result(&self) -> Option<LinkageResult> {
        let entries = (self.entries > 0).then_some(self.entries)?;
        let found = ClueKind::ALL.into_iter().zip(self.right).zip(self.seen);
        let mut clues: Vec<Clue> = found
            .filter(|(_, seen)| *seen)
            .map(|((kind, right), _)| Clue {
                kind,
                right,
                share: right as f64 / entries as f64,
            })
            .collect();
        clues.sort_by_key(|clue| (std::cmp::Reverse(clue.right), clue.kind));
        Some(LinkageResult {
            rounds: self.rounds,
            entries,
            chance: self.by_chance / entries as f64,
            clues,
        })
    }
}

/// With the round's mean taken off every model, so that what all models share does not count.
fn centred(mut round: Vec<SeenEntry>) -> Vec<SeenEntry> {
    let width = round
        .iter()
        .map(|entry| entry.model.len())
        .min()
        .unwrap_or(0);
    let mut mean = vec![0.0; width];
    for entry in &round {
        let each = mean.iter_mut().zip(&entry.model);
        each.for_each(|(sum, value)| *sum += f64::from(*value));
    }
    let count = round.len() as f64;
    let mean: Vec<f32> = mean.iter().map(|sum| (sum / count) as f32).collect();
    for entry in &mut round {
        let each = entry.model.iter_mut().zip(&mean);
        each.for_each(|(value, mean)| *value -= mean);
        // No product of values that are 1 at most is too large for 32 bits; the cosine stays the same.
        let largest = entry
            .model
            .iter()
            .fold(0f32, |most, value| most.max(value.abs()));
        if largest > 0.0 {
            entry.model.iter_mut().for_each(|value| *value /= largest);
        }
        entry.norm = dot(&entry.model, &entry.model).sqrt();
    }
    round
}

/// Returns the number of entries that the clue gives to their true author; `None` where the entries do not show it, or
/// all alike.
fn recognised(before: &[SeenEntry], now: &[SeenEntry], kind: ClueKind) -> Option<u64> {
    let mut pairs = Vec::with_capacity(before.len() * now.len());
    for (old, known) in before.iter().enumerate() {
        for (new, entry) in now.iter().enumerate() {
            pairs.push((distance(known, entry, kind)?, old, new));
        }
    }
    let (first, ..) = *pairs.first()?;
    if pairs.iter().all(|(distance, ..)| *distance == first) {
        return None;
    }
    pairs.sort_by(|a, b| match a.0.total_cmp(&b.0) {
        Ordering::Equal => (a.1, a.2).cmp(&(b.1, b.2)),
        order => order,
    });
    let (mut used, mut named) = (vec![false; before.len()], vec![false; now.len()]);
    let mut right = 0;
    for (_, old, new) in pairs {
        if !used[old] && !named[new] {
            (used[old], named[new]) = (true, true);
            right += u64::from(before[old].author == now[new].author);
        }
    }
    Some(right)
}

/// Returns how different two entries are; `None` where one does not show it.
fn distance(a: &SeenEntry, b: &SeenEntry, kind: ClueKind) -> Option<f64> {
    let of = |pair: (Option<f64>, Option<f64>)| Some((pair.0? - pair.1?).abs());
    match kind {
        ClueKind::Model => Some(-cosine(a, b)),
        ClueKind::Rows => of((
            a.rows.map(|rows| rows as f64),
            b.rows.map(|rows| rows as f64),
        )),
        ClueKind::Losses => of((a.least_loss, b.least_loss)),
        ClueKind::Coalition => Some(f64::from(a.coalition? != b.coalition?)),
    }
}

/// The cosine between two centred models; 0 where one of them is the mean of its round.
fn cosine(a: &SeenEntry, b: &SeenEntry) -> f64 {
    let norms = a.norm * b.norm;
    if norms > 0.0 {
        dot(&a.model, &b.model) / norms
    } else {
        0.0
    }
}

/// Partial sums of [`dot`], so that it takes several numbers at once: a round of 400 silos has 160,000
/// pairs of models.
const LANES: usize = 64;

/// The product of two models, of different lengths up to the shorter one. The same bits on every
/// processor: products and sums are not fused, and the partial sums are always the same. Each is a sum
/// of a few hundred products, for which 32 bits are enough: who resembles whom does not hang on more.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut sums = [0f32; LANES];
    let length = a.len().min(b.len());
    let (a, a_rest) = a[..length].as_chunks::<LANES>();
    let (b, b_rest) = b[..length].as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += a * b;
    }
    sums.iter().map(|sum| f64::from(*sum)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(author: u16, model: [f32; 2], rows: Option<u64>) -> SeenEntry {
        SeenEntry {
            author: MemberIndex(author),
            model: model.to_vec(),
            norm: 0.0,
            rows,
            coalition: None,
            least_loss: None,
        }
    }

    /// Three members whose models keep their directions; two of them have the same number of rows.
    fn round(order: [usize; 3]) -> Vec<SeenEntry> {
        let models = [[4.0, 0.0], [0.0, 4.0], [-4.0, -4.0]];
        let rows = [100, 100, 7];
        let entry = |at: usize| seen(at as u16, models[at], Some(rows[at]));
        order.map(entry).into()
    }

    #[test]
    fn models_with_a_direction_and_lasting_rows_name_their_authors() {
        let mut observer = Observer::default();
        observer.round(round([0, 1, 2]));
        assert_eq!(observer.result(), None);
        observer.round(round([1, 0, 2]));
        let found = observer.result().expect("three authors were in both");
        assert_eq!(
            (found.rounds, found.entries, found.chance),
            (1, 3, 1.0 / 3.0)
        );
        let right: Vec<_> = found
            .clues
            .iter()
            .map(|clue| (clue.kind, clue.right))
            .collect();
        // The two silos with equal numbers of rows are taken for each other.
        assert_eq!(right, [(ClueKind::Model, 3), (ClueKind::Rows, 1)]);
        let sentence = found.sentence().expect("there is a clue");
        assert!(
            sentence.contains("100 %") && sentence.contains("33 %"),
            "{sentence}"
        );
    }

    #[test]
    fn the_size_of_the_models_does_not_matter() {
        let found = |size: f32| {
            let mut observer = Observer::default();
            for order in [[0, 1, 2], [1, 0, 2]] {
                let mut round = round(order);
                let values = round.iter_mut().flat_map(|entry| &mut entry.model);
                values.for_each(|value| *value *= size);
                observer.round(round);
            }
            observer.result()
        };
        let of_one = found(1.0);
        assert!(of_one.is_some());
        for size in [1e-30, 1e-10, 1e10, 1e37] {
            assert_eq!(found(size), of_one, "{size}");
        }
    }

    #[test]
    fn a_product_has_the_bits_of_its_definition() {
        let mut random = bare::random::Random::new(1, "products");
        for length in 0..200 {
            let mut draw = |length| (0..length).map(|_| random.uniform() as f32 - 0.5).collect();
            let (a, b): (Vec<f32>, Vec<f32>) = (draw(length), draw(length + length % 20));
            let lane = |lane: usize| {
                let products = a.iter().zip(&b).skip(lane).step_by(LANES);
                products.fold(0f32, |sum, (a, b)| sum + a * b)
            };
            let expected: f64 = (0..LANES).map(|at| f64::from(lane(at))).sum();
            assert_eq!(dot(&a, &b).to_bits(), expected.to_bits(), "{length} values");
        }
    }

    #[test]
    fn what_all_models_share_shows_nothing() {
        let mut observer = Observer::default();
        let same = || {
            (0..4)
                .map(|author| seen(author, [1.0, 2.0], None))
                .collect()
        };
        observer.round(same());
        observer.round(same());
        let found = observer.result().expect("the authors are the same");
        assert_eq!((found.chance, found.clues), (0.25, Vec::new()));
    }

    #[test]
    fn authors_that_were_not_there_before_are_not_counted() {
        let mut observer = Observer::default();
        observer.round(vec![seen(0, [1.0, 0.0], None), seen(1, [0.0, 1.0], None)]);
        observer.round(vec![seen(1, [0.0, 2.0], None), seen(2, [3.0, 0.0], None)]);
        let found = observer.result().expect("one author was there before");
        assert_eq!((found.entries, found.chance), (1, 0.5));
    }

    #[test]
    fn parameters_are_read_behind_the_header_and_thinned() {
        let header = br#"{"w":1}"#;
        let mut document = (header.len() as u64).to_le_bytes().to_vec();
        document.extend(header);
        (0..40_000u32).for_each(|at| document.extend((at as f32).to_le_bytes()));
        let read = sample(&Bytes::from(document));
        assert_eq!((read.len(), read[0], read[1]), (13_334, 0.0, 3.0));
        assert_eq!(sample(&Bytes::from_static(b"short")), [0f32; 0]);
    }
}
