//! Does the topology of TFL single out silos that send other models than they trained?
//! `cargo run --release -p methods --example adversaries`
//!
//! Twenty synthetic hospitals fit their own logistic model; some send something else in its place.
//! Printed for every kind of attack, metric, threshold and centrality, over seeds: in how many
//! federations all adversaries and no honest silo have the smallest prior; how many of the
//! adversaries have it, and how many of the honest; what part the prior leaves to adversaries.

use methods::learner::mixed_seed;
use methods::random::normal;
use methods::robust::synthetic::{Hospitals, Targets};
use methods::robust::{FitConfig, Norm, RowLoss, TransportCost, fit};
use methods::similarity::{SimilarityMetric, Vectors, min_max};
use methods::topology::{Centrality, Isolation, Topology, TopologyOptions, isolation};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const SILOS: usize = 20;
const SEEDS: u64 = 20;

type MainResult = Result<(), Box<dyn std::error::Error>>;

/// Contribution of an adversary in the place of its model.
#[derive(Debug, Clone, Copy)]
enum Attack {
    /// The model with all signs turned.
    SignFlip,
    /// The values of the model in another order.
    Shuffle,
    /// The model and normal noise of three times its root mean square.
    Noise,
}

impl Attack {
    fn on(self, model: &[f64], random: &mut ChaCha8Rng) -> Vec<f64> {
        match self {
            Self::SignFlip => model.iter().map(|value| -value).collect(),
            Self::Shuffle => {
                let mut values = model.to_vec();
                for last in (1..values.len()).rev() {
                    values.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
                }
                values
            }
            Self::Noise => {
                let square: f64 = model.iter().map(|value| value * value).sum();
                let scale = 3.0 * (square / model.len() as f64).sqrt();
                model.iter().map(|v| v + scale * normal(random)).collect()
            }
        }
    }
}

/// The models that honest silos of a federation fit.
fn honest(truths: usize, seed: u64) -> Result<Vec<Vec<f64>>, Box<dyn std::error::Error>> {
    let hospitals = Hospitals {
        hospitals: SILOS,
        coalitions: truths,
        targets: Targets::Labels { threshold: 0.5 },
        ..Hospitals::default()
    };
    let config = FitConfig {
        loss: RowLoss::Logistic,
        cost: TransportCost {
            norm: Norm::L2,
            label_cost: f64::INFINITY,
        },
        ridge: 0.05,
        intercept: false,
    };
    let hospitals = hospitals.draw(seed)?;
    let models = hospitals
        .iter()
        .map(|one| Ok(fit(&one.rows, 0.0, &config)?.model.weights));
    models.collect()
}

fn main() -> MainResult {
    println!("{SILOS} silos, {SEEDS} seeds; logistic models of 10 features, 100 to 200 rows");
    println!(
        "truths attack   byzant. metric  centrality   eps singled out byzant. min  honest min  share"
    );
    for truths in [1, 4] {
        let federations: Vec<_> = (0..SEEDS)
            .map(|seed| honest(truths, seed))
            .collect::<Result<_, _>>()?;
        for attack in [Attack::SignFlip, Attack::Shuffle, Attack::Noise] {
            for count in [1, 4] {
                table(truths, &federations, attack, count)?;
            }
        }
    }
    Ok(())
}

/// All metrics, centralities and thresholds under one attack; the first `count` silos are Byzantine.
fn table(truths: usize, federations: &[Vec<Vec<f64>>], attack: Attack, count: usize) -> MainResult {
    let adversaries: Vec<usize> = (0..count).collect();
    let sent = |(seed, models): (usize, &Vec<Vec<f64>>)| -> Vec<Vec<f64>> {
        let mut random = ChaCha8Rng::seed_from_u64(mixed_seed(seed as u64, 1));
        let mut sent = models.clone();
        for model in &mut sent[..count] {
            *model = attack.on(model, &mut random);
        }
        sent
    };
    let federations: Vec<_> = federations.iter().enumerate().map(sent).collect();
    for metric in [
        SimilarityMetric::Dot,
        SimilarityMetric::Cosine,
        SimilarityMetric::L1,
        SimilarityMetric::L2,
    ] {
        for centrality in [
            Centrality::Betweenness,
            Centrality::Degree,
            Centrality::Closeness,
        ] {
            for epsilon in [0.3, 0.4, 0.5] {
                let options = TopologyOptions {
                    epsilon,
                    centrality,
                    ..TopologyOptions::default()
                };
                let mut found: Vec<Isolation> = Vec::new();
                for models in &federations {
                    let similarity = metric.similarity_f64(&Vectors::new(models)?)?;
                    let topology = Topology::learn(&min_max(&similarity)?, &options)?;
                    found.push(isolation(&topology.prior, &adversaries));
                }
                let runs = found.len() as f64;
                let mean = |of: fn(&Isolation) -> f64| found.iter().map(of).sum::<f64>() / runs;
                println!(
                    "{truths:<6} {:<9} {count:>5} {:<7} {:<12} {epsilon:.1} {:>10.0}% {:>9.1}/{count} \
                     {:>8.1}/{} {:>6.3}",
                    format!("{attack:?}"),
                    format!("{metric:?}"),
                    format!("{centrality:?}"),
                    100.0 * mean(|one| f64::from(u8::from(one.singled_out()))),
                    mean(|one| one.adversaries_minimal as f64),
                    mean(|one| one.honest_minimal as f64),
                    SILOS - count,
                    mean(|one| one.share),
                );
            }
        }
    }
    Ok(())
}
