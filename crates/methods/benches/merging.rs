//! HCCT's merging of 1,000 silos, starting from their Gram matrix.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use methods::Matrix;
use methods::merging::{Alpha, Until, Utility};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const SILOS: usize = 1000;
const LENGTH: usize = 256;

/// Updates around `groups` directions (none: each in a direction of its own), and sample counts.
fn silos(count: usize, groups: usize, noise: f64) -> (Matrix, Vec<u64>) {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut vector = || -> Vec<f64> {
        let signed = |bits: u32| f64::from(bits) / f64::from(1u32 << 31) - 1.0;
        (0..LENGTH).map(|_| signed(random.next_u32())).collect()
    };
    let centres: Vec<_> = (0..groups).map(|_| vector()).collect();
    let updates: Vec<Vec<f64>> = (0..count)
        .map(|silo| match centres.get(silo % groups.max(1)) {
            Some(centre) => centre
                .iter()
                .zip(vector())
                .map(|(a, b)| a + noise * b)
                .collect(),
            None => vector(),
        })
        .collect();
    let gram = Matrix::from_fn(count, count, |i, j| {
        updates[i].iter().zip(&updates[j]).map(|(a, b)| a * b).sum()
    });
    let samples = (0..count).map(|_| 50 + u64::from(random.next_u32() % 1000));
    (gram, samples.collect())
}

fn merge(c: &mut Criterion) {
    let mut group = c.benchmark_group("merge 1,000 silos");
    group.sample_size(10);
    let (own, volume) = (Alpha::Own, Alpha::Common(1e9));
    let cases = [
        ("into ten groups of 100", 10, 1.0, &own),
        ("into one, one direction", 1, 0.5, &own),
        ("as far as it gains, random directions", 0, 0.0, &own),
        // The slowest: after a merge every group has to search a new best partner.
        ("into one, volume alone counts", 0, 0.0, &volume),
    ];
    for (name, groups, noise, alpha) in cases {
        let (gram, samples) = silos(SILOS, groups, noise);
        group.bench_function(name, |b| {
            b.iter(|| {
                let utility = Utility::new(black_box(&gram), &samples, alpha);
                utility
                    .expect("a Gram matrix")
                    .merge(Until::NoGain)
                    .expect("one group at least")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, merge);
criterion_main!(benches);
