//! Cost of combining models: `cargo bench -p methods --bench aggregation`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use methods::aggregation::{Aggregation, ReferenceModels};
use methods::{Layout, Params, Role, TensorSpec};

const VALUES: usize = 1_000_000;

/// Models around a common one, as silos send them.
fn models(count: usize) -> Vec<Params> {
    let layout = Layout::new(vec![TensorSpec::new("weight", [VALUES], Role::Weight)])
        .expect("one name cannot be twice");
    (0..count)
        .map(|model| {
            Params::build(&layout, |values| {
                let mut state = (model as u32 + 1).wrapping_mul(2_654_435_761);
                for (place, value) in values.iter_mut().enumerate() {
                    state ^= state << 13;
                    state ^= state >> 17;
                    state ^= state << 5;
                    *value = (place % 97) as f32 / 97.0 + (state >> 8) as f32 / 167_772_160.0;
                }
            })
        })
        .collect()
}

fn combining(criterion: &mut Criterion) {
    let rules = [
        r#"{"name": "mean"}"#,
        r#"{"name": "coordinate-median"}"#,
        r#"{"name": "trimmed-mean"}"#,
        r#"{"name": "geometric-median"}"#,
        r#"{"name": "krum"}"#,
        r#"{"name": "centred-clipping"}"#,
        r#"{"name": "trust-weighted"}"#,
        r#"{"name": "nearest-neighbour-mixing", "then": {"name": "mean"}}"#,
    ];
    let rules = rules
        .map(|rule| serde_json::from_str::<Aggregation>(rule).expect("the rules have these names"));
    for count in [20, 100] {
        let models = models(count);
        let references = ReferenceModels {
            start: Some(&models[0]),
            trusted: Some(&models[1]),
        };
        let equal: Vec<_> = models.iter().map(|model| (model, 1.0)).collect();
        let weighted: Vec<_> = (1u16..)
            .zip(&models)
            .map(|(weight, model)| (model, f64::from(weight)))
            .collect();
        let mut group = criterion.benchmark_group("combine");
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(500))
            .measurement_time(Duration::from_secs(2))
            .throughput(Throughput::Elements((count * VALUES) as u64));
        for threads in [1, 2] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a small pool can be built");
            for rule in &rules {
                let mut run = |name: &str, models: &[(&Params, f64)]| {
                    let id = BenchmarkId::new(name, format!("{count} models, {threads} threads"));
                    group.bench_function(id, |bencher| {
                        pool.install(|| {
                            bencher.iter(|| black_box(rule.combine(models, references)).is_ok());
                        });
                    });
                };
                run(rule.name(), &equal);
                if matches!(
                    rule,
                    Aggregation::CoordinateMedian | Aggregation::TrimmedMean { .. }
                ) {
                    run(&format!("weighted {}", rule.name()), &weighted);
                }
            }
        }
    }
}

criterion_group!(benches, combining);
criterion_main!(benches);
