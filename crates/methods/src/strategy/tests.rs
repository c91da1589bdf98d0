#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::Strategy;
use super::server::means;
use super::*;
use crate::Digest;
use crate::aggregation::Aggregation;
use crate::learner::{Optimiser, Task, Training};
use crate::params::{Role, TensorSpec};

mod capabilities;
mod cs_rcfl_auto;
mod equipped;
mod fedcg;
mod hcct;
mod hospital;
mod quadratic;
mod robust_local;
mod several;
mod tfl;
mod weighed;

fn training() -> Training {
    let optimiser = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    Training {
        epochs: 1,
        batch: 0,
        optimiser,
    }
}

fn fedavg(weighted: bool) -> FedAvg {
    FedAvg {
        training: training(),
        weighted,
        rule: Aggregation::Mean,
    }
}

fn cs_rcfl(coalitions: usize, freeze: u64) -> CsRcfl {
    CsRcfl {
        training: training(),
        coalitions,
        freeze,
        rule: Aggregation::Mean,
    }
}

fn layout() -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new(MEAN, [2], Role::Buffer),
        TensorSpec::new(DEVIATION, [2], Role::Buffer),
        TensorSpec::new("weight", [2], Role::Weight),
    ])
    .unwrap()
}

/// A model with these weights; buffers as in a model that has a scale.
fn model(weights: [f32; 2]) -> Params {
    Params::from_values(&layout(), &[0.3, 7.1, -0.0, 1e-3, weights[0], weights[1]])
}

fn weights(model: &Params) -> Vec<f32> {
    model.tensor("weight").unwrap().to_vec()
}

fn entry(weights: [f32; 2], coalition: Option<u32>, rows: u64) -> Entry {
    Entry {
        model: model(weights),
        coalition,
        weight: Some(rows),
        member: None,
    }
}

fn sheet(entries: Vec<Entry>, rows: Option<&[Vec<f64>]>) -> Sheet {
    Sheet {
        entries,
        scores: rows.map(|rows| Scores::from_rows(rows).unwrap()),
    }
}

fn genesis() -> State {
    State::genesis(model([0.0, 0.0]))
}

/// Decides, checks and settles.
fn round(strategy: &dyn Strategy, state: &State, sheet: &Sheet, round: u64) -> Outcome {
    let decision = strategy.decide(state, sheet, round).unwrap();
    strategy.check(state, sheet, &decision, round).unwrap();
    strategy.settle(state, sheet, &decision, round).unwrap()
}

/// Two pairs that fit each other: entries 0 and 2, 1 and 3.
fn pairs() -> Sheet {
    let rows = [
        vec![0.1, 0.9, 0.2, 0.8],
        vec![0.9, 0.1, 0.8, 0.3],
        vec![0.3, 0.9, 0.1, 0.9],
        vec![0.7, 0.2, 0.9, 0.1],
    ];
    let models = [[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 5.0]];
    sheet(
        models.map(|weights| entry(weights, Some(0), 10)).to_vec(),
        Some(&rows),
    )
}

#[test]
fn fedavg_weighs_by_rows_or_not() {
    let sheet = sheet(
        vec![entry([1.0, 0.0], None, 10), entry([4.0, 3.0], Some(0), 20)],
        None,
    );
    let exact = round(&fedavg(true), &genesis(), &sheet, 1);
    assert_eq!(exact.assignment, [0, 0]);
    assert_eq!(weights(&exact.state.models[0]), [3.0, 2.0]);
    let equal = round(&fedavg(false), &genesis(), &sheet, 1);
    assert_eq!(weights(&equal.state.models[0]), [2.5, 1.5]);
    // Buffers keep their bits, the negative zero among them.
    let bits = |model: &Params| -> Vec<u32> {
        [MEAN, DEVIATION]
            .iter()
            .flat_map(|t| model.tensor(t).unwrap())
            .map(|v| v.to_bits())
            .collect()
    };
    assert_eq!(bits(&exact.state.models[0]), bits(&sheet.entries[0].model));
    assert!(fedavg(true).plan(&genesis(), 1).weights && !fedavg(false).plan(&genesis(), 1).weights);
}

#[test]
fn fedavg_needs_entries_and_rows() {
    let strategy = fedavg(true);
    let empty = sheet(Vec::new(), None);
    assert_eq!(
        strategy.decide(&genesis(), &empty, 1),
        Err(DecideError::NoEntries)
    );
    let mut bare = sheet(
        vec![entry([1.0, 0.0], None, 5), entry([1.0, 0.0], None, 0)],
        None,
    );
    assert_eq!(
        strategy.decide(&genesis(), &bare, 1),
        Err(DecideError::NoWeight { entry: 1 })
    );
    assert!(
        strategy.admit(&bare.entries[1], 1).is_err() && strategy.admit(&bare.entries[0], 1).is_ok()
    );
    bare.entries[1].weight = None;
    let decision = means::given(vec![0, 0]);
    assert!(strategy.settle(&genesis(), &bare, &decision, 1).is_err());
    assert!(
        fedavg(false)
            .settle(&genesis(), &bare, &decision, 1)
            .is_ok()
    );
}

#[test]
fn decisions_without_a_choice_are_checked() {
    let sheet = sheet(
        vec![entry([1.0, 0.0], Some(0), 1), entry([4.0, 3.0], Some(0), 2)],
        None,
    );
    let strategies: [&dyn Strategy; 2] = [
        &fedavg(true),
        &Local {
            training: training(),
        },
    ];
    for strategy in strategies {
        let honest = strategy.decide(&genesis(), &sheet, 1).unwrap();
        let lies = [
            Decision {
                assignment: vec![1, 0],
                ..honest.clone()
            },
            Decision {
                assignment: vec![0],
                ..honest.clone()
            },
            Decision {
                objective: 1.0,
                ..honest.clone()
            },
            Decision {
                lower_bound: f64::NAN,
                ..honest.clone()
            },
        ];
        for lie in lies {
            assert!(
                strategy.check(&genesis(), &sheet, &lie, 1).is_err(),
                "{lie:?}"
            );
        }
        let short = Decision {
            assignment: vec![0],
            ..honest
        };
        assert_eq!(
            strategy.settle(&genesis(), &sheet, &short, 1).unwrap_err(),
            SettleError::Mismatch {
                assigned: 1,
                entries: 2
            }
        );
    }
}

#[test]
fn local_models_stay_with_their_owners() {
    let strategy = Local {
        training: training(),
    };
    let first = sheet(
        vec![entry([1.0, 0.0], Some(0), 1), entry([2.0, 0.0], Some(0), 1)],
        None,
    );
    let one = round(&strategy, &genesis(), &first, 1);
    assert_eq!(one.assignment, [0, 1]);
    // Owner 0 is away; there is a newcomer, and one that claims what is taken, and one that claims
    // what is not there.
    let claims = [(5.0, None), (6.0, Some(1)), (7.0, Some(1)), (8.0, Some(9))];
    let second = claims.map(|(weight, claim)| entry([weight, 0.0], claim, 1));
    let two = round(&strategy, &one.state, &sheet(second.to_vec(), None), 2);
    assert_eq!(two.assignment, [2, 1, 3, 4]);
    let models: Vec<_> = two
        .state
        .models
        .iter()
        .map(|model| weights(model)[0])
        .collect();
    assert_eq!(models, [1.0, 6.0, 5.0, 7.0, 8.0]);
}

#[test]
fn cs_rcfl_forms_coalitions_and_averages_them_alike() {
    let strategy = cs_rcfl(2, 1);
    let plan = strategy.plan(&genesis(), 1);
    assert!(plan.cross_evaluate && !plan.weights);
    let outcome = round(&strategy, &genesis(), &pairs(), 1);
    assert_eq!(outcome.assignment, [0, 1, 0, 1]);
    let means: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(means, [[2.0, 0.0], [0.0, 3.0]]);
}

#[test]
fn cs_rcfl_keeps_coalitions_after_the_freeze() {
    let strategy = cs_rcfl(3, 1);
    let models = [[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]].map(model).to_vec();
    let state = genesis().with(models);
    assert!(
        !strategy.plan(&state, 2).cross_evaluate && cs_rcfl(3, 0).plan(&state, 9).cross_evaluate
    );
    // Coalition 0 stays away; the last two have no coalition that exists.
    let entries = vec![
        entry([12.0, 0.0], Some(1), 1),
        entry([0.0, 12.0], Some(2), 1),
        entry([8.0, 2.0], None, 1),
        entry([1.0, 14.0], Some(77), 1),
    ];
    let sheet = sheet(entries, None);
    let outcome = round(&strategy, &state, &sheet, 2);
    assert_eq!(outcome.assignment, [1, 2, 1, 2]);
    let means: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(means, [[0.0, 0.0], [10.0, 1.0], [0.5, 13.0]]);
    assert_eq!(outcome.state.models[0], state.models[0]);
    let moved = means::given(vec![0, 2, 1, 2]);
    assert!(strategy.check(&state, &sheet, &moved, 2).is_err());
    let beyond = means::given(vec![1, 2, 1, 3]);
    assert!(matches!(
        strategy.settle(&state, &sheet, &beyond, 2),
        Err(SettleError::Infeasible(_))
    ));
}

#[test]
fn cs_rcfl_refuses_dishonest_decisions() {
    let (strategy, state, sheet) = (cs_rcfl(2, 1), genesis(), pairs());
    let honest = strategy.decide(&state, &sheet, 1).unwrap();
    let check = |decision: &Decision| strategy.check(&state, &sheet, decision, 1);
    let with = |assignment: &[u32]| Decision {
        assignment: assignment.to_vec(),
        ..honest.clone()
    };
    for infeasible in [
        with(&[1, 0, 1, 0]),
        with(&[0, 0, 0, 0]),
        with(&[0, 1, 2, 0]),
        with(&[0, 1]),
    ] {
        assert!(
            matches!(check(&infeasible), Err(Objection::Infeasible(_))),
            "{infeasible:?}"
        );
    }
    let worse = with(&[0, 0, 1, 1]);
    assert!(matches!(check(&worse), Err(Objection::Misstated { .. })));
    let scores = sheet.scores.as_ref().unwrap();
    let value = crate::coalitions::Program::new(scores, 2)
        .unwrap()
        .objective(&worse.assignment);
    let priced = Decision {
        objective: value,
        ..worse
    };
    assert!(matches!(check(&priced), Err(Objection::NotBest { .. })));
    for lower_bound in [
        honest.objective + 0.1,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let boast = Decision {
            lower_bound,
            ..honest.clone()
        };
        assert!(
            matches!(check(&boast), Err(Objection::Misstated { .. })),
            "{lower_bound}"
        );
    }
    for objective in [f64::NAN, f64::INFINITY, honest.objective * (1.0 + 1e-6)] {
        let lie = Decision {
            objective,
            ..honest.clone()
        };
        assert!(
            matches!(check(&lie), Err(Objection::Misstated { .. })),
            "{objective}"
        );
    }
    // Last bits are forgiven; a weaker bound is true.
    let rounded = Decision {
        objective: honest.objective * (1.0 + 1e-14),
        ..honest.clone()
    };
    check(&rounded).unwrap();
    check(&Decision {
        lower_bound: 0.0,
        ..honest
    })
    .unwrap();
}

#[test]
fn cs_rcfl_needs_scores_of_its_entries() {
    let (strategy, state) = (cs_rcfl(5, 1), genesis());
    let mut sheet = pairs();
    // Fewer contributions than coalitions: as many as there are.
    let alone = strategy.decide(&state, &sheet, 1).unwrap();
    assert_eq!(alone.assignment, [0, 1, 2, 3]);
    strategy.check(&state, &sheet, &alone, 1).unwrap();
    let outcome = strategy.settle(&state, &sheet, &alone, 1).unwrap();
    assert_eq!(outcome.state.models.len(), 4);
    sheet.entries.pop();
    let error = strategy.decide(&state, &sheet, 1).unwrap_err();
    assert_eq!(
        error,
        DecideError::Scores {
            entries: 3,
            scored: 4
        }
    );
    sheet.scores = None;
    assert_eq!(
        strategy.decide(&state, &sheet, 1),
        Err(DecideError::NoScores)
    );
    sheet.entries.clear();
    assert_eq!(
        strategy.decide(&state, &sheet, 1),
        Err(DecideError::NoEntries)
    );
}

#[test]
fn scores_are_square_and_sane() {
    let ragged = Scores::from_rows(&[vec![1.0, 2.0], vec![1.0]]);
    assert_eq!(
        ragged,
        Err(ScoresError::Ragged {
            row: 1,
            got: 1,
            expected: 2
        })
    );
    for bad in [f64::NAN, f64::INFINITY] {
        let rows = [vec![1.0, 2.0], vec![1.0, bad]];
        assert_eq!(
            Scores::from_rows(&rows),
            Err(ScoresError::NotFinite { row: 1, column: 1 })
        );
    }
    // Whoever gives an absurd score must not cost the others their round.
    let absurd = Scores::from_rows(&[vec![1.0, 1e300], vec![-1e101, 2.0]]).unwrap();
    assert_eq!((absurd.at(0, 1), absurd.at(1, 0)), (1e100, -1e100));
}

#[test]
fn the_agreed_scale_stays_whatever_is_contributed() {
    let strategy = Standardised::new(Box::new(fedavg(false)));
    let state = genesis();
    let forged = Params::from_values(&layout(), &[3e38, 1.0, 5.0, -7.0, 3.0, 5.0]);
    let mut bad = entry([3.0, 5.0], Some(0), 1);
    bad.model = forged;
    let sheet = sheet(vec![entry([1.0, 1.0], Some(0), 1), bad], None);
    let after = round(&strategy, &state, &sheet, 2).state;
    for name in [MEAN, DEVIATION] {
        assert_eq!(after.models[0].tensor(name), state.models[0].tensor(name));
    }
    assert_eq!(weights(&after.models[0]), [2.0, 3.0]);
}

#[test]
fn who_has_no_entry_stays_where_numbers_are_kept() {
    for (name, more, kept) in [
        ("local", json!({}), [false, true, true]),
        ("robust-local", json!({}), [false, true, true]),
        ("pfedgraph", json!({}), [false, true, true]),
        ("ifca", json!({}), [false, true, true]),
        ("cfl", json!({}), [true, true, true]),
        ("cs-rcfl", json!({ "freeze": 2 }), [false, false, true]),
        (
            "cs-rcfl",
            json!({ "coalitions": "auto" }),
            [false, false, true],
        ),
        ("hcct", json!({}), [false, false, false]),
        ("hcct", json!({ "one-shot": true }), [false, true, true]),
    ] {
        let strategy = equipped::strategy(name, more);
        let kept_by = [1, 2, 3].map(|round| strategy.keeps_numbers(round));
        assert_eq!(kept_by, kept, "{name}");
    }
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

fn summaries(silos: &[Vec<[f64; 2]>]) -> Sheet {
    let entries = silos
        .iter()
        .map(|rows| Entry {
            model: summary(rows),
            coalition: Some(0),
            weight: None,
            member: None,
        })
        .collect();
    Sheet {
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
    assert_eq!(strategy.expects(&layout(), Some(&scale), 1), scale);
    assert_eq!(strategy.expects(&layout(), Some(&scale), 2), layout());
    assert_eq!(
        round(&strategy, &state, &pairs(), 2).assignment,
        [0, 1, 0, 1]
    );
    assert_eq!(strategy.name(), "cs-rcfl");
}

#[test]
fn a_column_that_never_varies_gets_deviation_one() {
    let silo = |rows: usize, value: f64| vec![[value, 1000.1]; rows];
    let sheet = summaries(&[silo(3, 1.0), silo(7, 3.0), silo(1, 5.0)]);
    let outcome = round(
        &Standardised::new(Box::new(fedavg(true))),
        &genesis(),
        &sheet,
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
    for (bad, word) in cases {
        let mut sheet = summaries(&[vec![[1.0, 1.0]], vec![[2.0, 2.0]]]);
        sheet.entries[1].model = bad;
        assert!(
            strategy
                .admit(&sheet.entries[1], 1)
                .unwrap_err()
                .contains(word)
        );
        assert!(strategy.decide(&genesis(), &sheet, 1).is_err());
        let decision = means::given(vec![0, 0]);
        assert!(strategy.check(&genesis(), &sheet, &decision, 1).is_err());
        let Err(SettleError::Summary(error)) = strategy.settle(&genesis(), &sheet, &decision, 1)
        else {
            panic!("a forged summary was settled");
        };
        assert!(error.contains(word) && error.contains("entry 1"), "{error}");
    }
}

#[test]
fn a_model_without_buffers_cannot_be_scaled() {
    let bare = Layout::new(vec![TensorSpec::new(MEAN, [2], Role::Weight)]).unwrap();
    let state = State::genesis(Params::zeros(&bare));
    let sheet = summaries(&[vec![[1.0, 1.0]]]);
    let settled =
        Standardised::new(Box::new(fedavg(true))).settle(&state, &sheet, &means::given(vec![0]), 1);
    assert!(matches!(settled, Err(SettleError::Summary(error)) if error.contains(MEAN)));
}

fn rows() -> impl proptest::strategy::Strategy<Value = Vec<[f64; 2]>> {
    prop::collection::vec([-5.0..5.0f64, 999.0..1001.0], 1..12)
}

proptest! {
    #[test]
    fn summaries_combine_to_the_scale_of_all_rows(silos in prop::collection::vec(rows(), 1..6)) {
        let sheet = summaries(&silos);
        let outcome = round(&Standardised::new(Box::new(fedavg(true))), &genesis(), &sheet, 1);
        let scaled = &outcome.state.models[0];
        let all: Vec<[f64; 2]> = silos.concat();
        let count = all.len() as f64;
        for column in 0..2 {
            let mean = all.iter().map(|row| row[column]).sum::<f64>() / count;
            let spread = all.iter().map(|row| libm::pow(row[column] - mean, 2.0)).sum::<f64>() / count;
            let got = f64::from(scaled.tensor(MEAN).unwrap()[column]);
            prop_assert!((got - mean).abs() <= 1e-6 * mean.abs().max(1.0));
            let got = f64::from(scaled.tensor(DEVIATION).unwrap()[column]);
            let expected = if spread == 0.0 { 1.0 } else { spread.sqrt() };
            prop_assert!((got - expected).abs() <= 1e-3 * expected.max(0.1), "{got} {expected}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// What everybody signs: the same bits again and again, on any number of threads.
    #[test]
    fn settling_gives_the_same_bits_always(seed: u32, k in 1..5usize) {
        let layout = Layout::new(vec![TensorSpec::new("w", [300_000], Role::Weight)]).unwrap();
        let entries: Vec<_> = (0..8u32)
            .map(|i| Entry {
                model: Params::build(&layout, |values| {
                    let mut word = seed ^ i.wrapping_mul(0x9e37_79b9);
                    for value in values {
                        word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        *value = (word >> 8) as f32 / 8e6 - 1.0;
                    }
                }),
                coalition: None,
                weight: Some(u64::from(i) + 3),
                member: None,
            })
            .collect();
        let rows: Vec<Vec<f64>> = (0..8).map(|i| (0..8).map(|j| f64::from(i ^ j)).collect()).collect();
        let sheet = sheet(entries, Some(&rows));
        let state = State::genesis(Params::zeros(&layout));
        let strategies: [&dyn Strategy; 2] = [&fedavg(true), &cs_rcfl(k, 1)];
        for strategy in strategies {
            let hashes = |threads: usize| -> Vec<Digest> {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let outcome = pool.install(|| round(strategy, &state, &sheet, 1));
                outcome.state.models.iter().map(Params::hash).collect()
            };
            let once = hashes(1);
            prop_assert_eq!(&once, &hashes(8));
            prop_assert_eq!(&once, &hashes(8));
        }
    }
}
