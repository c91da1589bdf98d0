//! The common scale that members agree on before the first model.

use proptest::prelude::*;

use super::Strategy;
use super::*;

#[test]
fn no_contribution_changes_the_agreed_scale() {
    let strategy = Standardised::new(Box::new(fedavg(false)));
    let state = genesis();
    let forged = Params::from_values(&layout(), &[3e38, 1.0, 5.0, -7.0, 3.0, 5.0]);
    let mut bad = entry([3.0, 5.0], Some(0), 1);
    bad.model = forged;
    let manifest = manifest(vec![entry([1.0, 1.0], Some(0), 1), bad], None);
    let after = round(&strategy, &state, &manifest, 2).state;
    for name in [MEAN, DEVIATION] {
        assert_eq!(after.models[0].tensor(name), state.models[0].tensor(name));
    }
    assert_eq!(weights(&after.models[0]), [2.0, 3.0]);
}

/// The summary that a silo with these rows contributes.
fn summary(rows: &[[f64; 2]]) -> Params {
    let layout = Layout::new(vec![
        TensorSpec::new("count", [1], Role::Buffer),
        TensorSpec::new("sum", [2], Role::Buffer),
        TensorSpec::new("squares", [2], Role::Buffer),
    ])
    .unwrap();
    let count = rows.len() as f64;
    let sums = [0, 1].map(|column| rows.iter().map(|row| row[column]).sum::<f64>());
    let squares = [0, 1].map(|column| {
        rows.iter()
            .map(|row| libm::pow(row[column] - sums[column] / count, 2.0))
            .sum::<f64>()
    });
    // In the order of names: count, squares, sum.
    let values = [count, squares[0], squares[1], sums[0], sums[1]].map(|value| value as f32);
    Params::from_values(&layout, &values)
}

fn summaries(silos: &[Vec<[f64; 2]>]) -> LoadedManifest {
    let entries = silos
        .iter()
        .map(|rows| ModelEntry {
            model: summary(rows),
            coalition: Some(0),
            weight: None,
            member: None,
        })
        .collect();
    LoadedManifest {
        entries,
        scores: None,
    }
}

#[test]
fn standardised_rounds_are_one_late() {
    let strategy = Standardised::new(Box::new(cs_rcfl(2, 1)));
    let state = genesis();
    assert_eq!(strategy.plan(&state, 1).task, Task::Summarise);
    assert!(!strategy.plan(&state, 1).cross_evaluate);
    assert_eq!(strategy.plan(&state, 2), cs_rcfl(2, 1).plan(&state, 1));
    assert!(!strategy.plan(&state, 3).cross_evaluate);
    let scale = summary(&[[1.0, 2.0]]).layout().clone();
    assert_eq!(
        strategy.expects(&genesis(), &layout(), Some(&scale), 1),
        scale
    );
    assert_eq!(
        strategy.expects(&genesis(), &layout(), Some(&scale), 2),
        layout()
    );
    assert_eq!(
        round(&strategy, &state, &pairs(), 2).assignment,
        [0, 1, 0, 1]
    );
    assert_eq!(strategy.name(), "cs-rcfl");
}

#[test]
fn a_column_that_never_varies_gets_deviation_one() {
    let silo = |rows: usize, value: f64| vec![[value, 1000.1]; rows];
    let manifest = summaries(&[silo(3, 1.0), silo(7, 3.0), silo(1, 5.0)]);
    let outcome = round(
        &Standardised::new(Box::new(fedavg(true))),
        &genesis(),
        &manifest,
        1,
    );
    let scaled = &outcome.state.models[0];
    assert_eq!(scaled.tensor(DEVIATION).unwrap()[1], 1.0);
    assert_eq!(weights(scaled), [0.0, 0.0]);
    assert_eq!(outcome.assignment, [0, 0, 0]);
}

#[test]
fn unusable_summaries_are_refused_by_name() {
    let strategy = Standardised::new(Box::new(fedavg(true)));
    let good = summary(&[[1.0, 2.0], [2.0, 5.0]]);
    let forged = |at: usize, value: f32| {
        let mut values = good.values().to_vec();
        values[at] = value;
        Params::from_values(good.layout(), &values)
    };
    let cases = [
        (forged(0, 0.5), "rows"),
        (forged(0, f32::NAN), "finite"),
        (forged(2, -1.0), "negative"),
        (forged(3, f32::INFINITY), "finite"),
        (model([1.0, 1.0]), "no tensor"),
    ];
    for (bad, reason) in cases {
        let mut manifest = summaries(&[vec![[1.0, 1.0]], vec![[2.0, 2.0]]]);
        manifest.entries[1].model = bad;
        assert!(
            strategy
                .admit(&manifest.entries[1], 1)
                .unwrap_err()
                .contains(reason)
        );
        assert!(strategy.decide(&genesis(), &manifest, 1).is_err());
        let decision = Decision::fixed(vec![0, 0]);
        assert!(strategy.check(&genesis(), &manifest, &decision, 1).is_err());
        let Err(SettleError::Summary(error)) = strategy.settle(&genesis(), &manifest, &decision, 1)
        else {
            panic!("a forged summary was settled");
        };
        assert!(
            error.contains(reason) && error.contains("entry 1"),
            "{error}"
        );
    }
}

#[test]
fn a_model_without_buffers_cannot_be_scaled() {
    let bare = Layout::new(vec![TensorSpec::new(MEAN, [2], Role::Weight)]).unwrap();
    let state = State::genesis(Params::zeros(&bare));
    let manifest = summaries(&[vec![[1.0, 1.0]]]);
    let settled = Standardised::new(Box::new(fedavg(true))).settle(
        &state,
        &manifest,
        &Decision::fixed(vec![0]),
        1,
    );
    assert!(matches!(settled, Err(SettleError::Summary(error)) if error.contains(MEAN)));
}

fn rows() -> impl proptest::strategy::Strategy<Value = Vec<[f64; 2]>> {
    prop::collection::vec([-5.0..5.0f64, 999.0..1001.0], 1..12)
}

proptest! {
    #[test]
    fn summaries_combine_to_the_scale_of_all_rows(silos in prop::collection::vec(rows(), 1..6)) {
        let manifest = summaries(&silos);
        let outcome = round(&Standardised::new(Box::new(fedavg(true))), &genesis(), &manifest, 1);
        let scaled = &outcome.state.models[0];
        let all: Vec<[f64; 2]> = silos.concat();
        let count = all.len() as f64;
        for column in 0..2 {
            let mean = all.iter().map(|row| row[column]).sum::<f64>() / count;
            let spread = all.iter().map(|row| libm::pow(row[column] - mean, 2.0)).sum::<f64>() / count;
            let got = f64::from(scaled.tensor(MEAN).unwrap()[column]);
            prop_assert!((got - mean).abs() <= 1e-6 * mean.abs().max(1.0));
            let got = f64::from(scaled.tensor(DEVIATION).unwrap()[column]);
            prop_assert!(got > 0.0 && (spread > 0.0 || got == 1.0), "{got}");
            let expected = spread.sqrt();
            // Sums of single precision cannot tell such a column from one that never varies.
            let same = expected <= 1.01 * f64::from(f32::EPSILON) * mean.abs() && got == 1.0;
            prop_assert!(same || (got - expected).abs() <= 1e-3 * expected.max(0.1), "{got} {expected}");
        }
    }
}

#[test]
fn means_far_from_zero_keep_their_digits_and_so_do_deviations() {
    let tensor = |name: &str| TensorSpec::new(name, [2], Role::Buffer);
    let summary = Layout::new(vec![
        TensorSpec::new("count", [1], Role::Buffer),
        tensor("sum"),
        tensor(SUM_REST),
        tensor("squares"),
    ])
    .unwrap();
    // Column 0: milliseconds since 1970, 1 to 60 and 31 to 90; column 1: always the same.
    let silo = |first: f64| {
        let values: Vec<f64> = (0..60).map(|at| 1.7e12 + first + f64::from(at)).collect();
        let sum: f64 = values.iter().map(|value| value - 1.7e12).sum();
        let mean = sum / 60.0;
        let squares: f64 = (0..60)
            .map(|at| libm::pow(first + f64::from(at) - mean, 2.0))
            .sum();
        let (high, rest) = split_double(60.0 * 1.7e12 + sum);
        let (same, left) = split_double(60.0 * 1.7e9);
        // In the order of names: count, squares, sum, rest of the sum.
        let values = [60.0, squares as f32, 0.0, high, same, rest, left];
        ModelEntry {
            model: Params::from_values(&summary, &values),
            coalition: Some(0),
            weight: None,
            member: None,
        }
    };
    let manifest = manifest(vec![silo(1.0), silo(31.0)], None);
    let layout = Layout::new(vec![
        tensor(MEAN),
        tensor(DEVIATION),
        tensor(REST),
        TensorSpec::new("weight", [2], Role::Weight),
    ])
    .unwrap();
    let state = State::genesis(Params::zeros(&layout));
    let strategy = Standardised::new(Box::new(fedavg(true)));
    let scaled = round(&strategy, &state, &manifest, 1).state;
    let number =
        |name: &str, column: usize| f64::from(scaled.models[0].tensor(name).unwrap()[column]);
    assert_eq!(number(MEAN, 0) + number(REST, 0) - 1.7e12, 45.5);
    let expected = libm::sqrt((3599.0 / 12.0) + 225.0);
    assert!((number(DEVIATION, 0) / expected - 1.0).abs() < 1e-6);
    assert_eq!(
        (number(MEAN, 1) + number(REST, 1), number(DEVIATION, 1)),
        (1.7e9, 1.0)
    );
    // Later rounds keep all of it, whatever a contribution says.
    let forged = Params::from_values(&layout, &[7.0; 8]);
    let entries = vec![ModelEntry {
        model: forged,
        coalition: Some(0),
        weight: Some(1),
        member: None,
    }];
    let after = round(&strategy, &scaled, &super::manifest(entries, None), 2).state;
    for name in SCALE {
        assert_eq!(after.models[0].tensor(name), scaled.models[0].tensor(name));
    }
}

#[test]
fn two_numbers_of_single_precision_have_the_digits_of_one_of_double() {
    for value in [1.7e12 + 59.0, -1e9 - 0.25, 0.1, 0.0, f64::from(f32::MAX)] {
        let (high, rest) = split_double(value);
        assert!(
            (f64::from(high) + f64::from(rest) - value).abs() <= value.abs() / (1u64 << 48) as f64
        );
    }
}
