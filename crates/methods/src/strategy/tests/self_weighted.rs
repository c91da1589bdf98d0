//! Strategies of one model in which silos weigh by self-reported numbers.

use serde_json::{Value, json};

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, centre, quadratic, trained};
use super::*;

/// Two silos with a global model between them, one of them nearer to the start (7, 0, …).
fn silos() -> Vec<QuadraticLearner> {
    vec![
        quadratic([6.0, 0.5, 0.0, 0.0, 0.0]),
        quadratic([4.0, 0.0, 1.0, 0.0, 0.0]),
    ]
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), silos())
}

/// A contribution with these weights and self-reported numbers.
fn reporting(strategy: &dyn Strategy, weights: [f32; 2], numbers: &[(&str, f32)]) -> ModelEntry {
    let layout = strategy.expects(&genesis(), &layout(), None, 2);
    let place = |name: &str| layout.range(layout.position(name).unwrap());
    let model = Params::build(&layout, |into| {
        into[place("weight")].copy_from_slice(&weights);
        for (name, value) in numbers {
            into[place(&format!("report.{name}"))].copy_from_slice(&[*value]);
        }
    });
    ModelEntry {
        model,
        coalition: Some(0),
        weight: Some(10),
        member: None,
    }
}

/// Returns where such contributions lead from 0.
fn settled(strategy: &dyn Strategy, entries: &[ModelEntry]) -> [f64; 2] {
    let zero = State::genesis(Params::zeros(&layout()));
    let outcome = round(strategy, &zero, &manifest(entries.to_vec(), None), 2);
    assert!(outcome.assignment.iter().all(|&own| own == 0));
    assert_eq!(outcome.state.models[0].layout(), &layout());
    let weights = weights(&outcome.state.models[0]);
    [weights[0].into(), weights[1].into()]
}

#[test]
fn maxfl_moves_by_the_slope_of_the_sigmoid() {
    let mut maxfl = federation("maxfl", json!({ "rate": 0.5, "epsilon": 0.5 }));
    let start = [7.0, 0.0, 0.0, 0.0, 0.0];
    let left = libm::pow(0.8, 5.0);
    let train = |silo: &QuadraticLearner, from: [f64; 5]| -> [f64; 5] {
        std::array::from_fn(|at| silo.centre()[at] + left * (from[at] - silo.centre()[at]))
    };
    let loss = |silo: &QuadraticLearner, at: [f64; 5]| -> f64 {
        let apart = silo.centre().iter().zip(at).map(|(c, w)| (w - c) * (w - c));
        0.5 * apart.sum::<f64>()
    };
    let [a, b] = [0, 1].map(|at| silos().swap_remove(at));
    // The first round is for finding out what each would reach alone.
    maxfl.round();
    let alone = [train(&a, start), train(&b, start)];
    let mean: [f64; 5] = std::array::from_fn(|at| (alone[0][at] + alone[1][at]) / 2.0);
    let close = |model: &Params, to: [f64; 5]| {
        let own = trained(model).into_iter().zip(to);
        own.into_iter().all(|(own, to)| (own - to).abs() < 1e-5)
    };
    assert!(close(&maxfl.state.models[0], mean));
    let required = [loss(&a, alone[0]), loss(&b, alone[1])];
    maxfl.round();
    let slope = |silo: &QuadraticLearner, required: f64| {
        let sigmoid = 1.0 / (1.0 + libm::exp(required - loss(silo, mean)));
        sigmoid * (1.0 - sigmoid)
    };
    let q = [slope(&a, required[0]), slope(&b, required[1])];
    let next: [f64; 5] = std::array::from_fn(|at| {
        let change = [&a, &b].map(|silo| train(silo, mean)[at] - mean[at]);
        mean[at] + 0.5 * (q[0] * change[0] + q[1] * change[1]) / (q[0] + q[1] + 0.5)
    });
    assert!(close(&maxfl.state.models[0], next));
    // What is required stays what it was.
    for (personal, required) in maxfl.personal.iter().zip(required) {
        let kept = f64::from(personal.tensor("self-reported.required").unwrap()[0]);
        assert!((kept - required).abs() < 1e-6, "{kept} {required}");
    }
}

#[test]
fn maxfl_weighs_undecided_silos_most() {
    let maxfl = strategy("maxfl", json!({}));
    let decided = |apart: f32| {
        let numbers = |loss: f32| [("loss", loss), ("required", 3.0)];
        let entries = [
            reporting(&*maxfl, [1.0, 0.0], &numbers(3.0 + apart)),
            reporting(&*maxfl, [0.0, 1.0], &numbers(3.0)),
        ];
        let [moved, undecided] = settled(&*maxfl, &entries);
        moved / undecided
    };
    assert!((decided(0.0) - 1.0).abs() < 1e-6);
    let slopes = [0.0, 0.5, 1.0, 3.0, 30.0].map(decided);
    assert!(slopes.is_sorted_by(|a, b| a > b), "{slopes:?}");
    assert!((decided(-2.0) - decided(2.0)).abs() < 1e-6, "either way");
    assert!(slopes[4] < 1e-9, "a silo that has decided has no weight");
}

/// Returns where a silo is after the training of a round.
fn trained_from(silo: &QuadraticLearner, from: [f64; 5]) -> [f64; 5] {
    let left = libm::pow(0.8, 5.0);
    std::array::from_fn(|at| silo.centre()[at] + left * (from[at] - silo.centre()[at]))
}

fn squared(a: [f64; 5], b: [f64; 5]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[test]
fn silos_join_the_common_model_or_go_on_alone() {
    let three = || {
        let mut silos = silos();
        silos.push(quadratic([-9.0; 5]));
        silos
    };
    let joins = strategy("maxfl", json!({ "variant": "joins" }));
    let mut federation = QuadraticFederation::new(joins, three());
    let mut common = [7.0, 0.0, 0.0, 0.0, 0.0];
    let priors: Vec<_> = three()
        .iter()
        .map(|silo| trained_from(silo, common))
        .collect();
    let mut own = priors.clone();
    let mut alone = [false; 3];
    let mut left = 0;
    for round in 1..=7 {
        let joined: Vec<[f64; 5]> = (0..3)
            .filter_map(|silo| {
                let quadratic = &three()[silo];
                let loss = 0.5 * squared(common, centre(quadratic));
                let joins = round == 1 || loss < squared(priors[silo], common);
                let from = if alone[silo] && !joins {
                    own[silo]
                } else {
                    common
                };
                own[silo] = trained_from(quadratic, from);
                left += u32::from(!joins && !alone[silo]);
                alone[silo] = !joins;
                joins.then_some(own[silo])
            })
            .collect();
        common = std::array::from_fn(|at| {
            joined.iter().map(|own| own[at]).sum::<f64>() / joined.len() as f64
        });
        federation.round();
        let model = trained(&federation.state.models[0]);
        assert!(
            squared(model, common) < 1e-8,
            "{round}: {model:?} {common:?}"
        );
        for (silo, loss) in federation.losses().into_iter().enumerate() {
            let used = if alone[silo] { own[silo] } else { common };
            let expected = 0.5 * squared(used, centre(&three()[silo]));
            assert!(
                (loss - expected).abs() < 1e-3 * (1.0 + expected),
                "{round}, {silo}"
            );
        }
    }
    // One leaves at once, another one later, one stays.
    assert_eq!((left, alone), (2, [false, true, true]));
    let entry = reporting(&*federation.strategy, [0.0, 0.0], &[("joined", 0.5)]);
    let error = federation.strategy.admit(&entry, 2).unwrap_err();
    assert!(error.contains("joined is 0 or 1"), "{error}");
    // No silo joins: the model stays.
    let none = reporting(&*federation.strategy, [5.0, 5.0], &[("joined", 0.0)]);
    assert_eq!(settled(&*federation.strategy, &[none]), [0.0, 0.0]);
}

#[test]
fn fedfa_weighs_by_the_information_of_accuracies() {
    let entries = |strategy: &dyn Strategy, rounds: [f32; 2]| {
        let numbers = |accuracy, rounds| [("accuracy", accuracy), ("participations", rounds)];
        [
            reporting(strategy, [1.0, 0.0], &numbers(0.5, rounds[0])),
            reporting(strategy, [0.0, 1.0], &numbers(0.25, rounds[1])),
        ]
    };
    // −log₂ of ½ and ¼ are 1 and 2.
    let simple = strategy("fedfa", json!({ "variant": "accuracy" }));
    let [a, b] = settled(&*simple, &entries(&*simple, [1.0, 1.0]));
    assert!((a - 1.0 / 3.0).abs() < 1e-6 && (b - 2.0 / 3.0).abs() < 1e-6);
    // Shares ⅔ and ⅓ of the accuracy, and equal parts in taking part.
    let paper = strategy("fedfa", json!({ "alpha": 0.5 }));
    let [a, b] = settled(&*paper, &entries(&*paper, [2.0, 2.0]));
    let (less, more) = (libm::log2(1.5), libm::log2(3.0));
    let share = less / (less + more);
    assert!((a - (share + 0.5) / 2.0).abs() < 1e-6, "{a}");
    assert!((a + b - 1.0).abs() < 1e-6);
    // Who took part more often weighs more.
    let [often, _] = settled(&*paper, &entries(&*paper, [2.0, 1.0]));
    assert!(often > a);
}

#[test]
fn silos_count_the_rounds_that_they_took_part_in() {
    let federation = federation("fedfa", json!({})).rounds(3);
    for personal in &federation.personal {
        assert_eq!(
            personal.tensor("self-reported.participations"),
            Some([3.0].as_slice())
        );
    }
    for (accuracy, rounds, word) in [
        (1.5, 1.0, "accuracy of 1.5"),
        (-0.1, 1.0, "not from 0 to 1"),
        (0.5, 0.0, "0 rounds"),
        (0.5, 3.0, "3 rounds taken part in, of 2"),
        (0.5, 1.5, "1.5 rounds"),
    ] {
        let numbers = [("accuracy", accuracy), ("participations", rounds)];
        let entry = reporting(&*federation.strategy, [0.0, 0.0], &numbers);
        let error = federation.strategy.admit(&entry, 2).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn the_superquantile_is_the_mean_of_the_worst() {
    let entries = |strategy: &dyn Strategy| {
        [
            reporting(strategy, [1.0, 0.0], &[("loss", 0.1)]),
            reporting(strategy, [0.0, 1.0], &[("loss", 0.4)]),
        ]
    };
    let at = |theta: f64| {
        let strategy = strategy("superquantile", json!({ "theta": theta }));
        settled(&*strategy, &entries(&*strategy))
    };
    assert_eq!(at(0.0), [0.5, 0.5]);
    assert_eq!(at(0.5), [0.0, 1.0]);
    // A quarter of the losses left out: the smaller one has half its weight.
    let [best, worst] = at(0.25);
    assert!((best - 1.0 / 3.0).abs() < 1e-6 && (worst - 2.0 / 3.0).abs() < 1e-6);
}

#[test]
fn with_the_superquantile_the_worst_fare_better_than_with_fedavg() {
    let three = || {
        let mut silos = silos();
        silos.push(quadratic([-9.0; 5]));
        silos
    };
    let worst = |name: &str| {
        let federation = QuadraticFederation::new(strategy(name, json!({})), three()).rounds(60);
        federation.losses().into_iter().fold(0.0, f64::max)
    };
    let (average, tail) = (worst("fedavg"), worst("superquantile"));
    assert!(tail < 0.7 * average, "{tail} {average}");
    let all = QuadraticFederation::new(strategy("superquantile", json!({ "theta": 0.0 })), three())
        .rounds(3);
    let average = QuadraticFederation::new(strategy("fedavg", json!({})), three()).rounds(3);
    let pairs = trained(&all.state.models[0]).into_iter();
    let mut pairs = pairs.zip(trained(&average.state.models[0]));
    assert!(
        pairs.all(|(a, b)| (a - b).abs() < 1e-5),
        "all losses are FedAvg"
    );
}

#[test]
fn contributions_without_their_reports_are_refused() {
    for (name, names) in [
        ("maxfl", "loss, required"),
        ("fedfa", "accuracy, participations"),
        ("superquantile", "loss"),
    ] {
        let strategy = strategy(name, json!({}));
        let silent = entry([1.0, 0.0], Some(0), 1);
        let error = strategy.admit(&silent, 2).unwrap_err();
        assert!(error.contains(&format!("report its {names}")), "{error}");
        let manifest = manifest(vec![silent], None);
        let error = strategy.decide(&genesis(), &manifest, 2).unwrap_err();
        assert!(matches!(error, DecideError::Unusable { entry: 0, .. }));
        let empty = LoadedManifest {
            entries: Vec::new(),
            scores: None,
        };
        let elsewhere = strategy.settle(&genesis(), &manifest, &Decision::fixed(vec![1]), 2);
        assert!(matches!(elsewhere, Err(SettleError::Infeasible(_))));
        let error = strategy.decide(&genesis(), &empty, 2).unwrap_err();
        assert_eq!(error, DecideError::NoEntries, "{name}");
    }
}

#[test]
fn a_metric_that_the_task_does_not_measure_is_named_in_the_error() {
    let layout = layout();
    let metrics = crate::learner::Metrics::default();
    let error = metrics.get("accuracy").unwrap_err();
    assert_eq!(error, crate::LearnError::Metric("accuracy".into()));
    assert!(
        error.to_string().contains("the metric \"accuracy\""),
        "{error}"
    );
    // A model with such a tensor of its own cannot be reported with.
    let taken = layout.tensors().iter().cloned();
    let taken = taken.chain([TensorSpec::new("report.loss", [1], Role::Buffer)]);
    let taken = Layout::new(taken.collect()).unwrap();
    let report = crate::strategy::wrappers::report::ReportMetrics(&["loss"]);
    assert!(report.attached(&taken).is_err());
}
