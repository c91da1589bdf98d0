#![allow(clippy::unwrap_used)]

use super::*;
use crate::coalitions::CoalitionProgram;
use crate::robust::fit::FitConfig;
use crate::robust::tests::score_table;
use crate::robust::{RowLoss, TransportCost, fit};
use crate::strategy::Scores;

#[test]
fn the_same_seed_draws_the_same_federation() {
    let hospitals = Hospitals::default();
    assert_eq!(hospitals.draw(1), hospitals.draw(1));
    assert_ne!(hospitals.draw(1), hospitals.draw(2));
    let drawn = hospitals.draw(1).unwrap();
    assert_eq!(drawn.len(), 20);
    for (at, hospital) in drawn.iter().enumerate() {
        assert!((100..=200).contains(&hospital.rows.len()));
        assert_eq!(hospital.rows.features(), 10);
        assert_eq!(hospital.coalition, at % 4);
        assert_eq!(
            hospital.population.model,
            drawn[hospital.coalition].population.model
        );
    }
    assert_ne!(drawn[0].population.model, drawn[1].population.model);
    assert_ne!(drawn[0].rows.len(), drawn[4].rows.len());
}

#[test]
fn rows_have_the_mean_and_covariance_of_their_population() {
    let hospitals = Hospitals {
        features: 2,
        ..Hospitals::default()
    };
    let population = hospitals.draw(3).unwrap().remove(0).population;
    let count = 40_000;
    let rows = population.draw(count, 9);
    let mean = |of: &dyn Fn(&[f64], f64) -> f64| {
        rows.iter().map(|(x, y)| of(x, y)).sum::<f64>() / count as f64
    };
    for a in 0..2 {
        assert!((mean(&|x, _| x[a]) - population.mean[a]).abs() < 0.03);
        for b in 0..2 {
            let factor = |at: usize| population.factor.row(at).to_vec();
            let shared: f64 = factor(a).iter().zip(factor(b)).map(|(a, b)| a * b).sum();
            let expected = shared + if a == b { FLOOR } else { 0.0 };
            let centred = |x: &[f64], at: usize| x[at] - population.mean[at];
            let covariance = mean(&|x, _| centred(x, a) * centred(x, b));
            assert!((covariance - expected).abs() < 0.05 * (1.0 + expected.abs()));
        }
    }
    let noise = mean(&|x, y| (y - population.model.output(x)) * (y - population.model.output(x)));
    assert!((noise - 0.25).abs() < 0.01, "{noise}");
}

#[test]
fn labels_are_above_or_below_the_threshold() {
    let hospitals = Hospitals {
        targets: Targets::Labels { threshold: 0.8 },
        ..Hospitals::default()
    };
    for hospital in hospitals.draw(4).unwrap() {
        for (x, y) in hospital.rows.iter() {
            let probability = 1.0 / (1.0 + libm::exp(-hospital.population.model.output(x)));
            assert_eq!(y, if probability > 0.8 { 1.0 } else { -1.0 });
        }
    }
}

/// The experiment of the paper: fit alone, score each other, form as many coalitions as there are
/// true ones.
#[test]
fn the_coalition_program_recovers_the_true_coalitions() {
    for targets in [
        Targets::Numbers { noise: 0.5 },
        Targets::Labels { threshold: 0.5 },
    ] {
        let hospitals = Hospitals {
            hospitals: 9,
            coalitions: 3,
            features: 4,
            rows: (40, 80),
            targets,
            ..Hospitals::default()
        };
        let drawn = hospitals.draw(2).unwrap();
        let loss = match targets {
            Targets::Numbers { .. } => RowLoss::Absolute,
            Targets::Labels { .. } => RowLoss::Logistic,
        };
        let config = FitConfig {
            loss,
            cost: TransportCost::default(),
            ridge: 0.01,
            intercept: false,
        };
        let models: Vec<LinearModel> = drawn
            .iter()
            .map(|hospital| fit(&hospital.rows, 0.0, &config).unwrap().model)
            .collect();
        let silos: Vec<(&Samples, f64)> = drawn
            .iter()
            .map(|hospital| (&hospital.rows, 0.01))
            .collect();
        let losses = score_table(&silos, &models, loss, config.cost);
        let rows: Vec<Vec<f64>> = (0..9).map(|row| losses.row(row).to_vec()).collect();
        let program = CoalitionProgram::new(&Scores::from_rows(&rows).unwrap(), 3).unwrap();
        assert_eq!(program.solve(1).assignment, [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }
}

#[test]
fn impossible_federations_are_refused() {
    let good = Hospitals::default();
    let labels = |threshold: f64| Targets::Labels { threshold };
    for hospitals in [
        Hospitals {
            features: 0,
            ..good.clone()
        },
        Hospitals {
            rows: (0, 5),
            ..good.clone()
        },
        Hospitals {
            rows: (5, 4),
            ..good.clone()
        },
        Hospitals {
            coalitions: 0,
            ..good.clone()
        },
        Hospitals {
            coalitions: 21,
            ..good.clone()
        },
        Hospitals {
            scale: f64::NAN,
            ..good.clone()
        },
        Hospitals {
            targets: Targets::Numbers { noise: -1.0 },
            ..good.clone()
        },
        Hospitals {
            targets: labels(0.0),
            ..good.clone()
        },
        Hospitals {
            targets: labels(1.0),
            ..good
        },
    ] {
        assert_eq!(hospitals.draw(1), Err(HospitalsError), "{hospitals:?}");
    }
}
