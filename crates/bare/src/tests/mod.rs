//! Many seeds of the bare simulator. `ROTA_SEEDS=20000` runs 20,000 seeds of each test, on all
//! cores.

#![allow(clippy::unwrap_used)]

mod beyond_f;
#[cfg(feature = "mutants")]
mod broken;
mod byzantine;
mod deaths;
mod epochs;
mod masked;
mod masked_byzantine;
mod noised;
mod people;
mod plans;
mod put_back;
mod recoveries;
mod rotation;
mod twins;
mod verification;

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::*;

/// The number of seeds in `ROTA_SEEDS`, if it is set.
fn asked() -> Option<u64> {
    std::env::var("ROTA_SEEDS").ok()?.parse().ok()
}

fn seeds(usual: u64) -> std::ops::Range<u64> {
    0..asked().unwrap_or(usual)
}

/// Runs all seeds. Panics with the first failure and the list of all seeds that fail.
fn run_all(options: &BareOptions, seeds: impl IntoIterator<Item = u64>) -> Vec<Ended> {
    let seeds: Vec<u64> = seeds.into_iter().collect();
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((seed, run(seed, options)));
        }
        done
    };
    let cores = match asked() {
        Some(_) => thread::available_parallelism().map_or(1, NonZero::get),
        None => 1,
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        let others = others.into_iter();
        done.extend(others.flat_map(|other| other.join().unwrap()));
        done
    });
    done.sort_by_key(|(seed, _)| *seed);
    let failed = done.iter().filter(|(_, result)| result.is_err());
    let failed: Vec<_> = failed.map(|(seed, _)| *seed).collect();
    let result = done.into_iter().map(|(_, result)| result).collect();
    let all: Result<Vec<_>, _> = result;
    all.unwrap_or_else(|failure| {
        panic!(
            "{failure}\nof {} seeds these fail: {failed:?}\n{options:?}",
            seeds.len()
        )
    })
}

fn sweep(members: usize, seeds: impl IntoIterator<Item = u64>, faults: Faults) -> Vec<Ended> {
    run_all(&BareOptions::new(members, faults), seeds)
}

#[test]
fn without_faults_every_round_takes_one_view() {
    for members in [1, 2, 3, 4, 7, 10] {
        for ended in sweep(members, 0..5, Faults::none()) {
            assert_eq!(ended.faults, 1, "the end of all faults is the only event");
            assert!(ended.views <= 4, "{members}: {ended:?}");
            // Some trainings take longer than the patience of the others; none is done twice.
            let most = members as u64;
            assert!(
                ended
                    .trainings
                    .iter()
                    .all(|&done| 2 * done >= most && done <= most)
            );
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_and_trace() {
    let options = BareOptions::new(4, Faults::all());
    assert_eq!(run(1, &options).unwrap(), run(1, &options).unwrap());
    assert_ne!(
        run(1, &options).unwrap().trace,
        run(2, &options).unwrap().trace
    );
}

/// Messages of members and their times are pinned for a few federations of every sort; `just digest` compares many.
#[test]
fn traces_of_every_sort_are_as_pinned() {
    let lines = Sort::ALL.iter().map(|sort| {
        let seeds = 0..6_u64.div_ceil(sort.every);
        let traces = seeds.map(|seed| sort.trace(seed).unwrap());
        format!("{} {}\n", sort.name, combine(&traces.collect::<Vec<_>>()))
    });
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/traces.txt");
    let (traces, golden) = (lines.collect::<String>(), std::fs::read_to_string(path));
    if std::env::var_os("ROTA_GOLDEN").is_some() {
        std::fs::write(path, &traces).unwrap();
    } else {
        assert_eq!(
            traces,
            golden.unwrap(),
            "a change of behaviour is written to the golden file by `just golden`"
        );
    }
}

#[test]
fn four_members_finish_under_all_faults() {
    let ended = sweep(4, seeds(150), Faults::all());
    let faults: u64 = ended.iter().map(|ended| ended.faults).sum();
    assert!(faults > 10_000, "{faults}");
}

#[test]
fn seven_and_ten_members_finish_under_all_faults() {
    sweep(7, seeds(30), Faults::all());
    sweep(10, seeds(10), Faults::all());
}

/// A lead that disappears must be replaced whether or not the others have its models.
#[test]
fn rounds_with_or_without_scores_finish_under_all_faults() {
    for cross_evaluate in [Some(false), Some(true)] {
        let mut options = BareOptions::new(4, Faults::all());
        options.cross_evaluate = cross_evaluate;
        run_all(&options, seeds(50));
    }
}

#[test]
fn one_to_three_members_finish_under_crashes_and_deaths() {
    for members in [1, 2, 3] {
        sweep(members, seeds(50), Faults::without_byzantine());
    }
}

/// Seeds that failed once. Which faults a seed stands for changes with the faults that are drawn
/// and with what members send; these were found with the present ones.
#[test]
fn seeds_that_failed_once_pass() {
    // A member restarted with a proof of finality whose blocks it lacked, asked one member, which
    // answered that it had nothing, and never asked again.
    let faults = Faults {
        deaths: Deaths::None,
        byzantine: Byzantine::Only(&[Behaviour::SyncNothing]),
        ..Faults::all()
    };
    let mut options = BareOptions::new(4, faults);
    options.rounds = 6;
    run_all(&options, [591]);
    // Two members each had one of two final blocks, and neither sent its block to the other (1471).
    // The only member of a plan died, or withheld its signature, after it had contributed.
    let mut options = BareOptions::new(3, Faults::without_byzantine());
    options.plans = Plans::Subset;
    run_all(&options, [1471, 7012, 7485]);
    let mut options = BareOptions::new(4, Faults::all());
    options.plans = Plans::Subset;
    run_all(&options, [1065, 1710]);
    // A member that left had the only proof of it, and was gone before it had told anybody.
    for (members, seeds) in [(1, [1199, 6503]), (2, [671, 5295])] {
        let mut options = BareOptions::new(members, Faults::without_byzantine());
        options.changes = 2;
        run_all(&options, seeds);
    }
}

/// Returns whether one of 400 seeds fails with something else than a lack of progress.
fn noticed(options: &BareOptions) -> bool {
    let wrong = |failure: &RunFailure| !matches!(failure.kind, FailureKind::NotLive { .. });
    (0..400).any(|seed| run(seed, options).is_err_and(|failure| wrong(&failure)))
}

#[test]
fn records_that_are_durable_too_late_or_lost_are_detected() {
    let mut late = BareOptions::new(
        4,
        Faults {
            inside: 0.03,
            crashes: 6,
            ..Faults::all()
        },
    );
    late.persist_last = true;
    let mut forget = late.clone();
    (forget.persist_last, forget.journals_vanish) = (false, true);
    assert!(noticed(&late) && noticed(&forget));
}
