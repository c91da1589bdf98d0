//! Prints what proofs of coalitions cost: `cargo run --release -p methods --example coalition_proofs`.

#![allow(clippy::disallowed_types, reason = "it measures wall-clock time")]

use std::time::{Duration, Instant};

use methods::Scores;
use methods::coalitions::CoalitionProgram;
use methods::coalitions::proof::Proof;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// Uniform in `low..high`.
fn uniform(random: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * methods::random::uniform(random)
}

/// Approximately normal, mean 0, variance 1.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| uniform(random, 0.0, 1.0)).sum::<f64>() - 6.0
}

/// Losses of `n` silos of `kinds` kinds. Silos of a kind have one true model of six weights, and every
/// silo's local model is off by `error` in each.
fn silos(n: usize, kinds: usize, error: f64, seed: u64) -> Scores {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut weights = |scale: f64| [0; 6].map(|_| scale * normal(&mut random));
    let truths: Vec<[f64; 6]> = (0..kinds).map(|_| weights(1.0)).collect();
    let models: Vec<[f64; 6]> = (0..n)
        .map(|silo| {
            let off = weights(error);
            std::array::from_fn(|at| truths[silo % kinds][at] + off[at])
        })
        .collect();
    let loss = |data: &[f64; 6], model: &[f64; 6]| {
        let squares = data.iter().zip(model).map(|(a, b)| (a - b) * (a - b));
        0.5 + squares.sum::<f64>()
    };
    let row = |data| models.iter().map(|model| loss(data, model)).collect();
    let rows: Vec<Vec<f64>> = models.iter().map(row).collect();
    Scores::from_rows(&rows).expect("square and finite")
}

/// Losses of no structure at all.
fn noise(n: usize, seed: u64) -> Scores {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut row = || (0..n).map(|_| uniform(&mut random, 0.0, 1.0)).collect();
    let rows: Vec<Vec<f64>> = (0..n).map(|_| row()).collect();
    Scores::from_rows(&rows).expect("square and finite")
}

/// Bytes of a proof in a decision: numbers below 251 take one byte, larger ones three.
fn bytes(proof: &Proof) -> usize {
    let number = |at: u16| if at < 251 { 1 } else { 3 };
    let cuts = proof.cuts.iter();
    let cuts = cuts.map(|cut| number(cut.i) + number(cut.j) + number(cut.k) + 4);
    4 * proof.prices.len() + cuts.sum::<usize>() + 6 + 8
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed())
}

fn main() {
    println!("| losses | n | K | lead | gap | bytes | inequalities | check | search |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for n in [16, 30, 50, 139] {
        let cases = [
            ("four kinds, clear", silos(n, 4, 0.2, 1), 4),
            ("four kinds that overlap", silos(n, 4, 0.7, 1), 4),
            ("four kinds that overlap", silos(n, 4, 0.7, 1), 8),
            ("one kind", silos(n, 1, 0.5, 1), 4),
            ("noise", noise(n, 1), 4),
        ];
        for (name, scores, coalitions) in cases {
            let program =
                CoalitionProgram::new(&scores, coalitions).expect("fewer coalitions than silos");
            let (proven, lead) = timed(|| program.solve_with_proof(1));
            let proof = proven.proof.expect("more entries than are solved exactly");
            let grouping = &proven.solution.assignment;
            let (gap, check) = timed(|| program.gap(grouping, &proof).expect("it is valid"));
            assert_eq!(gap.to_bits(), proven.gap.to_bits());
            let (better, search) = timed(|| program.better(grouping, 1));
            assert!(better.is_none());
            println!(
                "| {name} | {n} | {coalitions} | {:.1} ms | {:.2e} | {} | {} | {:.2} ms | {:.1} ms |",
                1e3 * lead.as_secs_f64(),
                gap,
                bytes(&proof),
                proof.cuts.len(),
                1e3 * check.as_secs_f64(),
                1e3 * search.as_secs_f64(),
            );
        }
    }
}
