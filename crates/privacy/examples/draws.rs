//! Nanoseconds of one draw of noise, and of one coordinate that is clipped and rounded, on one core:
//! `cargo run --release -p privacy --example draws`.

#![allow(clippy::disallowed_types, clippy::unwrap_used)] // an example has a clock

use std::hint::black_box;
use std::time::Instant;

use privacy::accountant::{Delta, multiplier};
use privacy::noise::{Gaussian, MOST_SIGMA, Noise, Seed};
use privacy::sensitivity::{Clip, Sensitivity};

/// The best of five, in nanoseconds for each of `count`.
fn best(count: usize, mut work: impl FnMut()) -> f64 {
    let times = (0..5).map(|_| {
        let from = Instant::now();
        work();
        from.elapsed().as_secs_f64() * 1e9 / count as f64
    });
    times.fold(f64::INFINITY, f64::min)
}

fn main() {
    let mut noise = Noise::new(&Seed::new([1; 32]));
    let mut sum = vec![0_i64; 1_000_000];
    for sigma in [1, 3, 1000, 100_000, 1 << 24, MOST_SIGMA] {
        let gaussian = Gaussian::new(sigma).unwrap();
        let time = best(sum.len(), || noise.add(gaussian, black_box(&mut sum)));
        println!("a draw with sigma {sigma:<12} {time:8.0} ns");
    }
    for dimension in [14, 1000, 1_000_000] {
        let clip = Clip::new(1.0, Sensitivity::new(dimension as u64).unwrap()).unwrap();
        let unit: Vec<_> = (0..dimension).map(|at| (at as f32).sin()).collect();
        let (mut sum, times) = (vec![0; dimension], 1_000_000 / dimension);
        let time = best(dimension * times, || {
            for _ in 0..times {
                clip.add(black_box(&unit), &mut sum).unwrap();
            }
        });
        println!("a coordinate of {dimension:<14} {time:8.1} ns");
    }
    let delta = Delta::new(1e-5).unwrap();
    let time = best(1000, || {
        for rounds in 1..=1000 {
            black_box(multiplier(1.0, delta, rounds).unwrap());
        }
    });
    println!("z for epsilon 1                {time:8.0} ns");
}
