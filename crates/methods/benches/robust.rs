//! Robust losses and fits at the sizes of CS-RCFL's experiments.

#![allow(missing_docs, reason = "the macros of criterion make public items")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use methods::robust::radius::{RadiusSearch, choose_radius};
use methods::robust::synthetic::{Hospital, Hospitals, Targets};
use methods::robust::{FitConfig, LinearModel, RowLoss, TransportCost, fit, robust_loss};

const LINEAR: Targets = Targets::Numbers { noise: 0.5 };
const LABELS: Targets = Targets::Labels { threshold: 0.5 };

fn hospitals(
    hospitals: usize,
    rows: (usize, usize),
    features: usize,
    targets: Targets,
) -> Vec<Hospital> {
    let hospitals = Hospitals {
        hospitals,
        coalitions: 1,
        features,
        rows,
        targets,
        ..Hospitals::default()
    };
    hospitals.draw(1).expect("possible hospitals")
}

fn config(targets: Targets) -> FitConfig {
    FitConfig {
        loss: match targets {
            Targets::Numbers { .. } => RowLoss::Absolute,
            Targets::Labels { .. } => RowLoss::Logistic,
        },
        cost: TransportCost::default(),
        ridge: 0.0,
        intercept: true,
    }
}

/// Every model on every silo: 186 hospitals with 3–18 rows of 6 features, as in eICU's
/// demonstration data, and larger ones.
fn scores(criterion: &mut Criterion) {
    for (name, targets) in [("linear", LINEAR), ("logistic", LABELS)] {
        for rows in [(3, 18), (100, 200)] {
            let hospitals = hospitals(186, rows, 6, targets);
            let models: Vec<LinearModel> = hospitals
                .iter()
                .enumerate()
                .map(|(at, hospital)| {
                    let mut model = hospital.population.model.clone();
                    model.weights[0] += at as f64 / 186.0;
                    model
                })
                .collect();
            let FitConfig { loss, cost, .. } = config(targets);
            criterion.bench_function(
                &format!("scores/{name}/186x186/{}-{}rows", rows.0, rows.1),
                |bencher| {
                    bencher.iter(|| {
                        let losses = hospitals.iter().flat_map(|hospital| {
                            let rows = black_box(&hospital.rows);
                            models
                                .iter()
                                .map(move |model| robust_loss(rows, model, 0.05, loss, cost))
                        });
                        losses.for_each(|loss| {
                            black_box(loss).expect("finite losses");
                        });
                    });
                },
            );
        }
    }
}

fn fits(criterion: &mut Criterion) {
    for (name, targets) in [("linear", LINEAR), ("logistic", LABELS)] {
        for (rows, features) in [(10, 6), (150, 10)] {
            let rows_of = hospitals(1, (rows, rows), features, targets).remove(0).rows;
            let config = config(targets);
            criterion.bench_function(&format!("fit/{name}/{rows}x{features}"), |bencher| {
                bencher.iter(|| fit(black_box(&rows_of), 0.05, &config));
            });
        }
    }
}

fn radii(criterion: &mut Criterion) {
    let rows = hospitals(1, (12, 12), 6, LABELS).remove(0).rows;
    let search = RadiusSearch {
        radii: vec![1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0],
        folds: 5,
        seed: 1,
        one_standard_error: false,
    };
    criterion.bench_function("choose-radius/logistic/12x6/7-radii-5-folds", |bencher| {
        bencher.iter(|| choose_radius(black_box(&rows), &config(LABELS), &search));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = scores, fits, radii
}
criterion_main!(benches);
