//! Runs a function on many damaged inputs, and fails if it panics, takes long or takes much memory.
//!
//! Inputs are mutations of examples: real files and messages, and what lies in `tests/fuzz/corpus`.
//! The function says in a few words what came of an input, for example which error. An input with an
//! outcome that was not seen before is mutated further, which leads from the first check to the
//! later ones. Nothing needs a nightly compiler or instrumented builds
//! (`docs/reliability.md#damaged-and-invented-input`).
//!
//! Without environment variables a fixed number of inputs runs, the same at every run.
//! `ROTA_FUZZ_MINUTES` gives all [`TARGETS`] together that many minutes, with inputs that differ from
//! run to run; `ROTA_FUZZ_SEED` chooses them.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{self, AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

use peak_alloc::PeakAlloc;

/// Counts the bytes that are allocated in this process.
#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// One target at a time, so that the memory that is counted is its own.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Guard that sets once that panics are printed without backtraces.
static QUIET: Once = Once::new();

/// Number of targets, in all crates: a long run gives each the same time.
const TARGETS: u32 = 20;
/// Most inputs that are mutated further.
const POOL: usize = 4096;
/// Longest input, in bytes.
const LONGEST: usize = 64 << 10;
/// Longest time for one input.
const PATIENCE: Duration = Duration::from_secs(10);

/// Target of the fuzzing.
pub(crate) struct FuzzTarget<'a> {
    /// Name of the target: that of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Valid inputs.
    pub(crate) examples: Vec<Vec<u8>>,
    /// Pieces of inputs that random bytes do not hit.
    pub(crate) words: &'static [&'static str],
    /// Number of inputs of a short run.
    pub(crate) inputs: u64,
    /// Bytes that may be allocated at one time for an input of this length.
    pub(crate) memory: fn(usize) -> usize,
    /// Takes an input, and says in a few words what came of it.
    pub(crate) run: &'a mut dyn FnMut(&[u8]) -> String,
}

/// The letters of a message, without what is quoted and without numbers: which error it is.
pub(crate) fn gist(message: &str) -> String {
    let mut quoted = false;
    let letters = message.chars().filter(|letter| {
        quoted ^= *letter == '"' || *letter == '`';
        !quoted && (letter.is_alphabetic() || *letter == ' ')
    });
    letters.take(60).collect()
}

/// Pseudorandom numbers: SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A range within `length`, at most `most` long.
    fn range(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        from..from + self.below((length - from).min(most) + 1)
    }
}

/// Numbers at which something changes.
const EDGES: [u64; 12] = [
    0,
    1,
    2,
    127,
    250,
    251,
    255,
    256,
    u16::MAX as u64,
    u32::MAX as u64,
    i64::MAX as u64,
    u64::MAX,
];

/// Changes an input in one place. `other` is another input.
fn mutate(draws: &mut Draws, input: &mut Vec<u8>, other: &[u8], words: &[&str]) {
    let length = input.len();
    let at = draws.below(length);
    match draws.below(10) {
        0 | 1 if length > 0 => input[at] ^= 1 << draws.below(8),
        2 if length > 0 => input[at] = draws.next() as u8,
        3 if length > 0 => {
            let edge = EDGES[draws.below(EDGES.len())];
            let bytes = match draws.below(2) {
                0 => edge.to_le_bytes(),
                _ => edge.to_be_bytes(),
            };
            let some = 1 << draws.below(4);
            let from = if bytes[0] == 0 { 8 - some } else { 0 };
            let piece = bytes[from..from + some].iter();
            input[at..]
                .iter_mut()
                .zip(piece)
                .for_each(|(to, from)| *to = *from);
        }
        4 => drop(input.drain(draws.range(length, 64))),
        5 => {
            let piece = input[draws.range(length, 64)].to_vec();
            drop(input.splice(at..at, piece));
        }
        6 if !words.is_empty() => {
            let word = words[draws.below(words.len())].bytes();
            let gone = if draws.below(2) == 0 {
                at
            } else {
                (at + 8).min(length)
            };
            drop(input.splice(at..gone, word));
        }
        7 => {
            let piece = other[draws.range(other.len(), 256)].to_vec();
            let gone = draws.range(length, 64);
            drop(input.splice(gone, piece));
        }
        8 => input.truncate(at),
        _ => {
            let piece: Vec<_> = (0..1 + draws.below(8))
                .map(|_| draws.next() as u8)
                .collect();
            drop(input.splice(at..at, piece));
        }
    }
    input.truncate(LONGEST);
}

/// Inputs that once failed, and others worth keeping.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let folders = above.map(|folder| folder.join("tests/fuzz/corpus").join(name));
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok());
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
        .iter()
        .filter_map(|file| fs::read(file).ok())
        .collect()
}

/// Returns where the input under way is kept: what is found there after a crash is what crashed.
fn place(name: &str) -> PathBuf {
    let folder = env::temp_dir().join("rota-fuzz").join(name);
    fs::create_dir_all(&folder).expect("temporary files can be written");
    folder
}

struct FuzzRun<'a> {
    target: FuzzTarget<'a>,
    folder: PathBuf,
    /// True if every input is written to a file before it runs, which is found there should the
    /// process itself end.
    careful: bool,
    /// Hashes of the outcomes so far.
    seen: BTreeSet<u64>,
    largest: usize,
    slowest: Duration,
    inputs: u64,
}

impl FuzzRun<'_> {
    /// Runs one input. Returns whether its outcome is new.
    fn one(&mut self, input: &[u8]) -> bool {
        if self.careful {
            let last = self.folder.join("last");
            fs::write(&last, input).expect("temporary files can be written");
        }
        let (began, before) = (Instant::now(), MEMORY.current_usage());
        MEMORY.reset_peak_usage();
        let outcome = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        let (took, name) = (began.elapsed(), self.target.name);
        let memory = MEMORY.peak_usage().saturating_sub(before);
        let keep = |why: &str| {
            let mut hasher = DefaultHasher::new();
            input.hash(&mut hasher);
            let file = self.folder.join(format!("{:016x}", hasher.finish()));
            let _ = fs::write(&file, input);
            eprintln!(
                "{name}: {why}\n  the input: {}\n  put it into tests/fuzz/corpus/{name} and run this test again",
                file.display()
            );
        };
        let outcome = outcome.unwrap_or_else(|panic| {
            keep("it panicked");
            resume_unwind(panic)
        });
        let allowed = (self.target.memory)(input.len());
        if memory > allowed {
            keep("it took too much memory");
            panic!("{name}: expected at most {allowed} bytes of memory, found {memory}: {outcome}");
        }
        // Memory that is taken has to be provided, which takes time.
        let patience = PATIENCE + PATIENCE * (allowed >> 30) as u32;
        if took > patience {
            keep("it took too long");
            panic!("{name}: expected at most {patience:?}, found {took:?}: {outcome}");
        }
        self.largest = self.largest.max(memory);
        self.slowest = self.slowest.max(took);
        self.inputs += 1;
        let mut hasher = DefaultHasher::new();
        outcome.hash(&mut hasher);
        self.seen.insert(hasher.finish())
    }
}

/// Fuzzes one target.
pub(crate) fn fuzz(target: FuzzTarget<'_>) {
    // A backtrace would take memory that is then charged to the input: libraries panic on some
    // inputs, and the target catches it. An input that fails is kept, and shows it when run alone.
    QUIET.call_once(|| panic::set_hook(Box::new(|panic| eprintln!("{panic}"))));
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let minutes = number("ROTA_FUZZ_MINUTES");
    let clock = SystemTime::UNIX_EPOCH
        .elapsed()
        .map_or(0, |since| since.as_nanos() as u64);
    let usual = if minutes.is_some() { clock } else { 1 };
    let seed = number("ROTA_FUZZ_SEED").unwrap_or(usual);
    let until = minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes) / TARGETS);
    let (name, most, words) = (target.name, target.inputs, target.words);
    let mut pool = target.examples.clone();
    assert!(!pool.is_empty(), "{name} has no example");
    pool.extend(corpus(name));
    let mut run = FuzzRun {
        folder: place(name),
        careful: minutes.is_some(),
        target,
        seen: BTreeSet::new(),
        largest: 0,
        slowest: Duration::ZERO,
        inputs: 0,
    };
    let began = Instant::now();
    for input in &pool {
        run.one(input);
    }
    let (examples, mut draws) = (pool.len(), Draws(seed));
    loop {
        let more = until.map_or(run.inputs < most, |until| Instant::now() < until);
        if !more {
            break;
        }
        let parent = draws.below(pool.len());
        let mut input = pool[parent].clone();
        for _ in 0..1 + draws.below(4) {
            let other = draws.below(pool.len());
            mutate(&mut draws, &mut input, &pool[other], words);
        }
        if run.one(&input) {
            if pool.len() < POOL {
                pool.push(input)
            } else {
                // Examples stay, whatever is found.

                let at = examples + draws.below(POOL - examples);
                pool[at] = input;
            }
        }
    }
    println!(
        "{name}: {} inputs, {} outcomes, at most {} bytes of memory and {:.1?} for one, {:.0} s, seed {seed}",
        run.inputs,
        run.seen.len(),
        run.largest,
        run.slowest,
        began.elapsed().as_secs_f64()
    );
    if minutes.is_some() {
        // The smallest of what was found can join the corpus.
        pool.drain(..examples);
        pool.sort_by_key(Vec::len);
        for (nth, input) in pool.iter().take(40).enumerate() {
            let _ = fs::write(run.folder.join(format!("found-{nth:02}")), input);
        }
    }
}
