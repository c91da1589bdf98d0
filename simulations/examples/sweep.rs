//! Runs many federations of state machines under every fault, of every size, with changes of the
//! agreement, and checks all properties after every event.
//!
//! ```text
//! cargo run --release -p simulations --example sweep -- SEEDS [FIRST]              all sizes
//! cargo run --release -p simulations --example sweep -- SEEDS FIRST MEMBERS        one size
//! cargo run --release -p simulations --example sweep -- replay MEMBERS SEED     one run, told in sentences
//! ```

use std::env;
use std::error::Error;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use simulations::bare::{BareOptions, Byzantine, Ended, Faults, JournalLoss, RunFailure, run};

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

/// What a run of this size goes through. Fewer than four members tolerate no Byzantine one, and
/// cannot get back a member that lost its journal. In every fifth run the Byzantine members are twins.
fn options(members: usize, seed: u64) -> BareOptions {
    let faults = match members {
        0..4 => Faults {
            journal_loss: JournalLoss::Never,
            byzantine: Byzantine::None,
            ..Faults::all()
        },
        _ if seed % 5 == 4 => Faults {
            byzantine: Byzantine::Twins,
            ..Faults::all()
        },
        _ => Faults::all(),
    };
    BareOptions {
        changes: 2,
        ..BareOptions::new(members, faults)
    }
}

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
    println!("members    runs     faults     events   epochs   simulated hours   seconds");
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut failed = false;
    for (members, share) in SIZES {
        let count = match only {
            None => (seeds * share).div_ceil(1000),
            Some(only) if only == members => seeds,
            Some(_) => continue,
        };
        let (since, next) = (Instant::now(), AtomicU64::new(first));
        let (sum, failures) = (
            Mutex::new(RunSums::default()),
            Mutex::new(Vec::<Box<RunFailure>>::new()),
        );
        thread::scope(|scope| {
            for _ in 0..cores {
                scope.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= first + count {
                            break;
                        }
                        match run(seed, &options(members, seed)) {
                            Ok(ended) => sum
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner)
                                .add(&ended),
                            Err(failure) => {
                                let mut all =
                                    failures.lock().unwrap_or_else(PoisonError::into_inner);
                                all.push(failure);
                            }
                        }
                    }
                });
            }
        });
        let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!(
            "{members:>7} {:>7} {:>10} {:>10} {:>8} {:>17.1} {:>9.1}",
            sum.runs,
            sum.faults,
            sum.events,
            sum.epochs,
            sum.hours,
            since.elapsed().as_secs_f64()
        );
        let failures = failures
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        for failure in &failures {
            println!(
                "{failure}\n  replay: just replay {members} {}",
                failure.seed
            );
        }
        failed |= !failures.is_empty();
    }
    println!("{:.0} s on {cores} cores", began.elapsed().as_secs_f64());
    if failed {
        Err("some federations failed".into())
    } else {
        Ok(())
    }
}

fn replay(members: usize, seed: u64) -> Result<(), Box<dyn Error>> {
    let out = Arc::new(Mutex::new(BufWriter::new(io::stdout())));
    let lines = out.clone();
    let mut options = options(members, seed);
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

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["replay", members, seed] => replay(members.parse()?, seed.parse()?),
        [seeds] => sweep(seeds.parse()?, 0, None),
        [seeds, first] => sweep(seeds.parse()?, first.parse()?, None),
        [seeds, first, members] => sweep(seeds.parse()?, first.parse()?, Some(members.parse()?)),
        _ => Err("give a number of seeds, or replay MEMBERS SEED".into()),
    }
}
