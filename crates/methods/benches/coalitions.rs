//! Time of solving the coalition program: `cargo bench -p methods --bench coalitions`.

#![allow(clippy::disallowed_types, reason = "a benchmark has a clock")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use methods::Scores;
use methods::coalitions::{CoalitionProgram, Solution};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::hint::black_box;
use std::time::Instant;

/// Uniform in `low..high`.
fn uniform(random: &mut ChaCha8Rng, low: f64, high: f64) -> f64 {
    low + (high - low) * methods::random::uniform(random)
}

/// Approximately normal, mean 0, variance 1.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| uniform(random, 0.0, 1.0)).sum::<f64>() - 6.0
}

fn program(
    n: usize,
    coalitions: usize,
    mut loss: impl FnMut(&mut ChaCha8Rng, usize, usize) -> f64,
) -> CoalitionProgram {
    let mut random = ChaCha8Rng::seed_from_u64(n as u64);
    let row = |i: usize| (0..n).map(|j| loss(&mut random, i, j)).collect();
    let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
    let scores = Scores::from_rows(&rows).expect("square and finite");
    CoalitionProgram::new(&scores, coalitions).expect("fewer coalitions than entries")
}

/// Groups whose losses on each other, 0.2 to 0.6, overlap those on others, 0.5 to 1.
fn planted(n: usize, groups: usize) -> CoalitionProgram {
    program(n, groups, |random, i, j| {
        if i == j {
            uniform(random, 0.1, 0.2)
        } else if i % groups == j % groups {
            uniform(random, 0.2, 0.6)
        } else {
            uniform(random, 0.5, 1.0)
        }
    })
}

/// No structure at all.
fn random(n: usize, coalitions: usize) -> CoalitionProgram {
    program(n, coalitions, |random, _, _| uniform(random, 0.0, 1.0))
}

/// Groups that differ by `apart`, with noise of standard deviation 0.2.
fn noisy(n: usize, groups: usize, apart: f64) -> CoalitionProgram {
    program(n, groups, |random, i, j| {
        if i == j {
            uniform(random, 0.1, 0.3)
        } else {
            let mean = if i % groups == j % groups {
                0.4
            } else {
                0.4 + apart
            };
            (mean + 0.2 * normal(random)).max(0.02)
        }
    })
}

/// Stopped after a minute.
fn prove(program: &CoalitionProgram) -> Solution {
    let start = Instant::now();
    program.prove(1, &|| start.elapsed().as_secs() >= 60)
}

fn proofs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("proven");
    group.sample_size(10);
    for (n, coalitions) in [(20, 3), (20, 8), (60, 3), (60, 8), (186, 3), (186, 8)] {
        let program = planted(n, coalitions);
        assert!(prove(&program).optimal, "planted {n} {coalitions}");
        let id = BenchmarkId::new("planted", format!("{n} in {coalitions}"));
        group.bench_function(id, |bencher| bencher.iter(|| prove(black_box(&program))));
    }
    for n in [15, 20] {
        for coalitions in 2..=6 {
            let program = random(n, coalitions);
            assert!(prove(&program).optimal, "random {n} {coalitions}");
            let id = BenchmarkId::new("random", format!("{n} in {coalitions}"));
            group.bench_function(id, |bencher| bencher.iter(|| prove(black_box(&program))));
        }
    }
    group.finish();
    // One run each: these go on for as long as they may.
    for apart in [0.3, 0.15, 0.1, 0.05] {
        let start = Instant::now();
        let solution = prove(&noisy(100, 5, apart));
        println!(
            "100 noisy silos in 5, {apart} apart: gap {:.2} % after {:.1} s, optimal {}",
            100.0 * (1.0 - solution.lower_bound / solution.objective),
            start.elapsed().as_secs_f64(),
            solution.optimal
        );
    }
}

criterion_group!(benches, proofs);
criterion_main!(benches);
