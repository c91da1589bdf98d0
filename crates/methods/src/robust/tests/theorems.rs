//! Proposition 1 and Theorem 1 of CS-RCFL, for all groupings of a few silos.

use proptest::prelude::*;

use super::{any_model, any_rows, close, labels_of, norm, score_table};
use crate::matrix::Matrix;
use crate::robust::{LinearModel, RowLoss, Samples, TransportCost, robust_loss};

/// Every grouping of `n` entries, coalitions numbered in the order of their first entry.
fn groupings(n: usize) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for _ in 0..n {
        all = all
            .into_iter()
            .flat_map(|grouping: Vec<usize>| {
                let next = grouping.iter().max().map_or(0, |last| last + 1);
                (0..=next).map(move |own| [grouping.clone(), vec![own]].concat())
            })
            .collect();
    }
    all
}

fn coalition(grouping: &[usize], of: usize) -> Vec<usize> {
    let mates = (0..grouping.len()).filter(|&other| grouping[other] == grouping[of]);
    mates.collect()
}

/// `Σ_i mean_{j ∈ C(i)} L_ij`: what the coalition program minimises (eq. (11)).
fn surrogate(losses: &Matrix, grouping: &[usize]) -> f64 {
    let each = (0..grouping.len()).map(|i| {
        let mates = coalition(grouping, i);
        mates.iter().map(|&j| losses[(i, j)]).sum::<f64>() / mates.len() as f64
    });
    each.sum()
}

/// `Σ_i R_i(C(i))`: the robust losses of the coalitions' mean models (eqs. (6), (8), (9)).
fn exact(
    silos: &[(&Samples, f64)],
    models: &[LinearModel],
    loss: RowLoss,
    cost: TransportCost,
    grouping: &[usize],
) -> f64 {
    let each = silos.iter().enumerate().map(|(i, &(rows, radius))| {
        let mates = coalition(grouping, i);
        let mean = |of: &dyn Fn(&LinearModel) -> f64| {
            mates.iter().map(|&j| of(&models[j])).sum::<f64>() / mates.len() as f64
        };
        let model = LinearModel {
            weights: (0..models[0].weights.len())
                .map(|at| mean(&|model| model.weights[at]))
                .collect(),
            intercept: mean(&|model| model.intercept),
        };
        robust_loss(rows, &model, radius, loss, cost).unwrap().loss
    });
    each.sum()
}

fn silos<'a>(rows: &'a [Samples], radii: &[f64]) -> Vec<(&'a Samples, f64)> {
    rows.iter().zip(radii.iter().copied()).collect()
}

prop_compose! {
    fn federation()(n in 2usize..=5)(
        rows in prop::collection::vec(any_rows(2), n),
        models in prop::collection::vec(any_model(2), n),
        radii in prop::collection::vec(0.0..1.0f64, n),
    ) -> (Vec<Samples>, Vec<LinearModel>, Vec<f64>) {
        (rows, models, radii)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Proposition 1: under absolute loss, radii add `Σ_C mean_{i∈C} ε_i · Σ_{j∈C} ‖(−θⱼ, 1)‖*`.
    /// For one radius that is the same for every grouping, so the grouping does not depend on it.
    #[test]
    fn radii_shift_linear_groupings_by_their_norms(
        (rows, models, radii) in federation(),
        norm in norm(),
    ) {
        let n = models.len();
        let slopes: Vec<f64> = models
            .iter()
            .map(|model| norm.dual(model.weights.iter().copied().chain([1.0])))
            .collect();
        let cost = TransportCost { norm, ..TransportCost::default() };
        let losses = |radii: &[f64]| score_table(&silos(&rows, radii), &models, RowLoss::Absolute, cost);
        let plain = losses(&vec![0.0; n]);
        let (own, common) = (losses(&radii), losses(&vec![radii[0]; n]));
        let total = radii[0] * slopes.iter().sum::<f64>();
        for grouping in groupings(n) {
            let before = surrogate(&plain, &grouping);
            let shift: f64 = (0..n)
                .map(|i| {
                    let mates = coalition(&grouping, i);
                    radii[i] * mates.iter().map(|&j| slopes[j]).sum::<f64>() / mates.len() as f64
                })
                .sum();
            prop_assert!(close(surrogate(&own, &grouping), before + shift, 1e-10));
            prop_assert!(close(surrogate(&common, &grouping), before + total, 1e-10));
        }
    }

    /// Theorem 1: no grouping's mean models lose more than the program says, so neither does the
    /// best grouping of the exact program.
    #[test]
    fn the_program_bounds_what_mean_models_lose(
        (rows, models, radii) in federation(),
        label_cost in prop_oneof![0.1..3.0f64, Just(f64::INFINITY)],
        norm in norm(),
    ) {
        let labelled: Vec<Samples> = rows.iter().map(labels_of).collect();
        let cost = TransportCost { norm, label_cost };
        for (loss, rows) in [(RowLoss::Absolute, &rows), (RowLoss::Logistic, &labelled)] {
            let silos = silos(rows, &radii);
            let losses = score_table(&silos, &models, loss, cost);
            let values: Vec<(f64, f64)> = groupings(models.len())
                .iter()
                .map(|grouping| (
                    exact(&silos, &models, loss, cost, grouping),
                    surrogate(&losses, grouping),
                ))
                .collect();
            for (exact, surrogate) in &values {
                prop_assert!(*exact <= surrogate + 1e-10);
            }
            let least = |of: &dyn Fn(&(f64, f64)) -> f64| values.iter().map(of).fold(f64::INFINITY, f64::min);
            prop_assert!(least(&|value| value.0) <= least(&|value| value.1) + 1e-10);
        }
    }
}

/// Proposition 1 is about absolute loss: under logistic loss with labels that may change, a common
/// radius can turn the order of two groupings around.
#[test]
fn a_common_radius_can_change_logistic_groupings() {
    let rows = [[1.0, -1.0], [-1.0, 1.0]].map(|labels| super::rows(&[[3.0], [0.5]], &labels));
    let rows = rows
        .into_iter()
        .chain([super::rows(&[[0.5], [0.5]], &[1.0, 1.0])]);
    let rows: Vec<Samples> = rows.collect();
    let models = [-2.0, 3.0, 0.5].map(|weight| LinearModel {
        weights: vec![weight],
        intercept: 0.0,
    });
    let cost = TransportCost {
        label_cost: 0.5,
        ..TransportCost::default()
    };
    // The first two together, or the last two.
    let advantage = |radius: f64| {
        let losses = score_table(
            &silos(&rows, &[radius; 3]),
            &models,
            RowLoss::Logistic,
            cost,
        );
        surrogate(&losses, &[0, 1, 1]) - surrogate(&losses, &[0, 0, 1])
    };
    assert!(close(advantage(0.0), 1.2066909334742348, 1e-9));
    assert!(close(advantage(0.2), -1.2933090665257672, 1e-9));
}
