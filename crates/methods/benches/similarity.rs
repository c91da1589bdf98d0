//! Gram matrices, similarities and k-means at the sizes of federations: 72 hospitals with models
//! of a million weights, and a thousand clients with a hundred thousand.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use methods::clustering::kmeans::KMeans;
use methods::similarity::{SimilarityMetric, Sketch, Vectors, gram, gram_f64};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Rows around ten centres, as far apart as the rows of a group are from each other.
fn models(n: usize, d: usize) -> Vec<Vec<f32>> {
    let row = |seed| {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let value = move |_| (random.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0;
        (0..d).map(value).collect::<Vec<_>>()
    };
    let centres: Vec<_> = (0..10).map(row).collect();
    (0..n)
        .map(|i| {
            let noise = row(100 + i as u64);
            let centre = &centres[i % centres.len()];
            noise.iter().zip(centre).map(|(a, b)| a + b).collect()
        })
        .collect()
}

fn benches(criterion: &mut Criterion) {
    for (n, d) in [(72, 1_000_000), (1000, 100_000)] {
        let models = models(n, d);
        let rows = Vectors::new(&models).expect("rows of one length");
        let mut group = criterion.benchmark_group(format!("{n} × {d}"));
        group.sample_size(10);
        group.bench_function("gram", |bench| bench.iter(|| black_box(gram(&rows))));
        group.bench_function("l2", |bench| {
            bench.iter(|| black_box(SimilarityMetric::L2.similarity(&rows)));
        });
        group.bench_function("kmeans", |bench| {
            bench.iter(|| black_box(KMeans::new(10, 7).fit_rows_f64(&rows)));
        });
        // In f64 throughout: seconds for the larger size.
        if n == 72 {
            group.bench_function("gram in f64", |bench| {
                bench.iter(|| black_box(gram_f64(&rows)))
            });
            group.bench_function("l1", |bench| {
                bench.iter(|| black_box(SimilarityMetric::L1.similarity(&rows)));
            });
            let columns = 1024.try_into().expect("more than 0");
            let sketch = Sketch { columns, seed: 7 };
            group.bench_function("sketch", |bench| bench.iter(|| black_box(sketch.of(&rows))));
        }
        group.finish();
    }
}

criterion_group!(similarity, benches);
criterion_main!(similarity);
