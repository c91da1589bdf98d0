//! Topologies of many clients: betweenness compared with rustworkx, the other centralities, a step
//! of the weights.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use methods::Matrix;
use methods::topology::{
    Ascent, Centrality, Divergence, Graph, Lengths, Scale, epsilon_graph, uniform,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustworkx_core::centrality::betweenness_centrality;

/// A random graph in which every pair is linked with the given chance.
fn random(clients: usize, chance: f64) -> Graph {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut similarity = Matrix::zeros(clients, clients);
    for (row, column) in (0..clients).flat_map(|row| (0..row).map(move |column| (row, column))) {
        let value = f64::from(random.next_u32()) / f64::from(u32::MAX);
        similarity[(row, column)] = value;
        similarity[(column, row)] = value;
    }
    epsilon_graph(&similarity, 1.0 - chance).expect("random similarities are between 0 and 1")
}

fn betweenness(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("betweenness");
    group.sample_size(10);
    // 125,000 edges of 1,000 clients; and a sparse graph, where sets of bits help the least.
    for (clients, chance) in [(1000, 0.25), (1000, 0.01), (100, 0.4)] {
        let graph = random(clients, chance);
        let size = format!("{clients} clients, {} edges", graph.edge_count());
        for lengths in [Lengths::Hops, Lengths::Complement] {
            let id = BenchmarkId::new(format!("{lengths:?}"), &size);
            group.bench_function(id, |bench| {
                bench.iter(|| Centrality::Betweenness.of(&graph, Scale::Normalised, lengths));
            });
        }
        group.bench_function(BenchmarkId::new("rustworkx", &size), |bench| {
            bench.iter(|| betweenness_centrality(&graph, false, true, 50));
        });
    }
    group.finish();
}

fn others(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("centrality of 300 clients");
    group.sample_size(10);
    let graph = random(300, 0.25);
    for centrality in [
        Centrality::Degree,
        Centrality::Closeness,
        Centrality::Eigenvector,
        Centrality::CurrentFlowBetweenness,
        Centrality::CurrentFlowCloseness,
    ] {
        group.bench_function(format!("{centrality:?}"), |bench| {
            bench.iter(|| centrality.of(&graph, Scale::Normalised, Lengths::Hops));
        });
    }
    group.finish();
}

fn ascent(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a step of 1,000 weights");
    let losses: Vec<f64> = (0..1000)
        .map(|client| f64::from(client % 17) / 17.0)
        .collect();
    let lambda = uniform(1000);
    for divergence in [Divergence::L2, Divergence::Kl, Divergence::ChiSquared] {
        let ascent = Ascent {
            divergence,
            ..Ascent::default()
        };
        group.bench_function(format!("{divergence:?}"), |bench| {
            bench.iter(|| ascent.step(&lambda, &lambda, &losses));
        });
    }
    group.finish();
}

criterion_group!(benches, betweenness, others, ascent);
criterion_main!(benches);
