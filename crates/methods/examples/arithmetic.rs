//! Prints what the arithmetic of a round costs on this machine:
//! `cargo run --release -p methods --example arithmetic`.

#![allow(clippy::disallowed_types, reason = "it measures wall-clock time")]

use std::time::{Duration, Instant};

use methods::coalitions::CoalitionProgram;
use methods::params::{Gate, weighted_mean};
use methods::{Layout, Params, Role, Scores, TensorSpec};

/// Shortest of several runs.
fn best<T>(runs: usize, mut work: impl FnMut() -> T) -> Duration {
    (0..runs)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn models(silos: usize, parameters: usize) -> Vec<Params> {
    let layout = Layout::new(vec![TensorSpec::new("weight", [parameters], Role::Weight)])
        .expect("one name cannot be twice");
    (0..silos)
        .map(|silo| {
            Params::build(&layout, |values| {
                for (index, value) in values.iter_mut().enumerate() {
                    *value = ((index * 31 + silo * 17) % 1000) as f32 / 500.0 - 1.0;
                }
            })
        })
        .collect()
}

fn main() {
    for (silos, parameters) in [(100, 9_610), (20, 9_610), (20, 1_000_000)] {
        let models = models(silos, parameters);
        let weighted: Vec<_> = models.iter().map(|model| (model, 1.0)).collect();
        let mean = best(20, || weighted_mean(&weighted));
        let one = rayon::ThreadPoolBuilder::new()
            .num_threads(1)
            .build()
            .expect("a pool of one thread can be built");
        let alone = best(20, || one.install(|| weighted_mean(&weighted)));
        let bytes = (4 * silos * parameters) as f64;
        println!(
            "mean of {silos} x {parameters}: {:.3} ms ({:.1} GB/s), one thread {:.3} ms ({:.1} GB/s)",
            mean.as_secs_f64() * 1e3,
            bytes / mean.as_secs_f64() / 1e9,
            alone.as_secs_f64() * 1e3,
            bytes / alone.as_secs_f64() / 1e9,
        );
        let gate = Gate {
            layout: models[0].layout().clone(),
            norm: 1e6,
        };
        let document = models[0].document();
        let admit = best(20, || gate.admit(document.clone()));
        let hash = best(20, || blake3::hash(&document));
        println!(
            "gate of {parameters}: {:.3} ms, hash {:.3} ms",
            admit.as_secs_f64() * 1e3,
            hash.as_secs_f64() * 1e3
        );
    }

    for n in [8, 12, 15, 20, 100, 186] {
        let noise = |i: usize, j: usize| ((i * 7919 + j * 104_729 + i * j) % 1009) as f64 / 1009.0;
        let rows: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| noise(i, j) + f64::from(i % 4 != j % 4))
                    .collect()
            })
            .collect();
        let scores = Scores::from_rows(&rows).expect("noise is finite");
        for coalitions in [2, 4, n / 2, n - 1] {
            let program =
                CoalitionProgram::new(&scores, coalitions).expect("at most one coalition each");
            let solution = program.solve(1);
            let solve = best(3, || program.solve(1));
            let audit = best(3, || program.audit(&solution.assignment));
            println!(
                "{n} entries in {coalitions} coalitions: {:.2} ms, checked in {:.2} ms, \
                 value {:.3}, bound {:.3}, optimal {}",
                solve.as_secs_f64() * 1e3,
                audit.as_secs_f64() * 1e3,
                solution.objective,
                solution.lower_bound,
                solution.optimal,
            );
        }
    }
}
