//! Runs many federations of state machines under every fault, of every size, with changes of the
//! agreement, and checks all properties after every event.
//!
//! ```text
//! cargo run --release -p bare --example sweep -- SEEDS [FIRST]              all sizes
//! cargo run --release -p bare --example sweep -- SEEDS FIRST MEMBERS        one size
//! cargo run --release -p bare --example sweep -- replay MEMBERS SEED     the events of one run as text
//! cargo run --release -p bare --example sweep -- masked SEEDS [FIRST]      secure-aggregation rounds
//! cargo run --release -p bare --example sweep -- replay-masked SEED      one run of these
//! cargo run --release -p bare --example sweep -- noised SEEDS [FIRST]      secure-aggregation rounds with noise
//! cargo run --release -p bare --example sweep -- replay-noised SEED      one run of these
//! cargo run --release -p bare --example sweep -- digest SEEDS            a digest of every sort
//! ```

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::ops::Range;
use std::panic::{self, RefUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use bare::{BareOptions, Ended, Sort, combine, run};

/// Sizes of federations, and the share of the seeds that each gets, in thousandths: a federation of
/// fifty costs some two hundred times what one of four costs.
const SIZES: [(usize, u64); 7] = [
    (1, 150),
    (2, 250),
    (3, 280),
    (4, 260),
    (7, 45),
    (10, 13),
    (50, 2),
];

/// Sums over runs.
#[derive(Default)]
struct RunSums {
    runs: u64,
    faults: u64,
    events: u64,
    epochs: u64,
    hours: f64,
}

impl RunSums {
    fn add(&mut self, ended: &Ended) {
        self.runs += 1;
        self.faults += ended.faults;
        self.events += ended.events;
        self.epochs += ended.epochs;
        self.hours += ended.time.elapsed().as_secs_f64() / 3600.0;
    }
}

fn sweep(seeds: u64, first: u64, only: Option<usize>) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    heading();
    let mut failed = false;
    for (members, share) in SIZES {
        let count = match only {
            None => (seeds * share).div_ceil(1000),
            Some(only) if only == members => seeds,
            Some(_) => continue,
        };
        let world = |seed| BareOptions::open_world(members, seed);
        let replay = |seed| format!("just replay {members} {seed}");
        failed |= sweep_worlds(&members.to_string(), first..first + count, &world, &replay);
    }
    ended(began, failed)
}

/// As [`sweep`], of federations with secure-aggregation rounds, or with noise: `world` draws those of this name.
fn sweep_drawn(
    name: &str,
    world: fn(u64) -> BareOptions,
    seeds: u64,
    first: u64,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    heading();
    let replay = |seed| format!("just replay-{name} {seed}");
    let seeds = first..first + seeds;
    let failed = sweep_worlds(name, seeds, &world, &replay);
    ended(began, failed)
}

fn heading() {
    println!("members    runs     faults     events   epochs   simulated hours   seconds");
}

/// Does something for every seed, on all cores.
fn on_all_cores(seeds: Range<u64>, each: &(dyn Fn(u64) + Sync)) {
    let next = AtomicU64::new(seeds.start);
    let some = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            each(seed);
        }
    };
    thread::scope(|scope| (0..cores()).for_each(|_| drop(scope.spawn(some))));
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn ended(began: Instant, failed: bool) -> Result<(), Box<dyn Error>> {
    println!(
        "{:.0} s on {} cores",
        began.elapsed().as_secs_f64(),
        cores()
    );
    if failed {
        Err("some federations failed".into())
    } else {
        Ok(())
    }
}

/// Runs the worlds of these seeds and prints a line of sums. Whether one failed.
fn sweep_worlds(
    name: &str,
    seeds: Range<u64>,
    world: &(dyn Fn(u64) -> BareOptions + Sync + RefUnwindSafe),
    replay: &dyn Fn(u64) -> String,
) -> bool {
    let since = Instant::now();
    let (sum, failures) = (
        Mutex::new(RunSums::default()),
        Mutex::new(Vec::<(u64, String)>::new()),
    );
    on_all_cores(seeds, &|seed| {
        // A panic is a failure of its seed, and the others continue.
        match panic::catch_unwind(|| run(seed, &world(seed))) {
            Ok(Ok(ended)) => locked(&sum).add(&ended),
            Ok(Err(failure)) => locked(&failures).push((seed, failure.to_string())),
            Err(_) => locked(&failures).push((seed, format!("seed {seed}: panicked"))),
        }
    });
    let sum = locked(&sum);
    println!(
        "{name:>7} {:>7} {:>10} {:>10} {:>8} {:>17.1} {:>9.1}",
        sum.runs,
        sum.faults,
        sum.events,
        sum.epochs,
        sum.hours,
        since.elapsed().as_secs_f64()
    );
    let failures = locked(&failures);
    for (seed, failure) in &*failures {
        println!("{failure}\n  replay: {}", replay(*seed));
    }
    !failures.is_empty()
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn replay(mut options: BareOptions, seed: u64) -> Result<(), Box<dyn Error>> {
    let out = Arc::new(Mutex::new(BufWriter::new(io::stdout())));
    let lines = out.clone();
    options.story = Some(Arc::new(move |time, node, sentence| {
        let who = node.map_or_else(|| "       ".to_owned(), |node| format!("node {node:<2}"));
        let mut out = lines.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that has seen enough closes the pipe.
        let _ = writeln!(
            out,
            "{:>9.3} s  {who}  {sentence}",
            time.elapsed().as_secs_f64()
        );
    }));
    let ended = run(seed, &options);
    let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
    let ended = ended?;
    let (epochs, faults) = (ended.epochs, ended.faults);
    let _ = writeln!(
        out,
        "{epochs} epochs, {faults} faults, no property was violated"
    );
    let _ = out.flush();
    Ok(())
}

/// Prints a digest of the traces of every sort of federations, and one of all: to compare before and after
/// a change that should change nothing.
fn digest(seeds: u64) -> Result<(), Box<dyn Error>> {
    let mut all = Vec::new();
    for sort in &Sort::ALL {
        let began = Instant::now();
        let count = seeds.div_ceil(sort.every);
        let traces = Mutex::new(BTreeMap::new());
        on_all_cores(0..count, &|seed| {
            let trace = sort.trace(seed);
            locked(&traces).insert(seed, trace);
        });
        let traces = traces.into_inner().unwrap_or_else(PoisonError::into_inner);
        let digest = combine(&traces.into_values().collect::<Result<Vec<_>, _>>()?);
        println!("{:>9} {count:>5} seeds  {digest}", sort.name);
        eprintln!("{:>9} {:.0} s", sort.name, began.elapsed().as_secs_f64());
        all.push(digest);
    }
    println!("{:>9}              {}", "all", combine(&all));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["replay", members, seed] => {
            let seed = seed.parse()?;
            replay(BareOptions::open_world(members.parse()?, seed), seed)
        }
        ["replay-masked", seed] => {
            let seed = seed.parse()?;
            replay(BareOptions::masked_world(seed), seed)
        }
        ["replay-noised", seed] => {
            let seed = seed.parse()?;
            replay(BareOptions::noised_world(seed), seed)
        }
        [name @ ("masked" | "noised"), seeds, ref first @ ..] if first.len() < 2 => {
            let world = match name {
                "masked" => BareOptions::masked_world,
                _ => BareOptions::noised_world,
            };
            let first = first.first().map_or(Ok(0), |first| first.parse())?;
            sweep_drawn(name, world, seeds.parse()?, first)
        }
        ["digest", seeds] => digest(seeds.parse()?),
        [seeds] => sweep(seeds.parse()?, 0, None),
        [seeds, first] => sweep(seeds.parse()?, first.parse()?, None),
        [seeds, first, members] => sweep(seeds.parse()?, first.parse()?, Some(members.parse()?)),
        _ => Err("give a number of seeds, or replay MEMBERS SEED".into()),
    }
}
