#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::Strategy;
use super::*;
use crate::Digest;
use crate::aggregation::Aggregation;
use crate::learner::{Optimiser, QuadraticLearner, Task, Training};
use crate::params::{Role, TensorSpec};

mod asking;
mod buffers;
mod capabilities;
mod coalition_proofs;
mod cs_rcfl_auto;
mod decay;
mod equipped;
mod exact;
mod fedcg;
mod fedcollab_gap;
mod hcct;
mod hcct_found;
mod hierarchical;
mod hospital;
mod multi_model;
mod personalised;
mod quadratic;
mod robust_local;
mod self_weighted;
mod standardise;
mod stopping;
mod tfl;
mod trained_layers;

pub(crate) fn training() -> Training {
    let optimiser = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    Training {
        epochs: 1,
        batch: 0,
        optimiser,
        decay: None,
    }
}

/// The strategies that learn any model; the others need a linear one and its rows.
fn of_any_model() -> impl Iterator<Item = &'static StrategyInfo> {
    STRATEGIES.iter().filter(|info| info.name != "hierarchical")
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
        fit: Fitting::Trained(training()),
        coalitions,
        gap: 0.25,
        freeze,
        rule: Aggregation::Mean,
    }
}

fn local(members: usize) -> Local {
    Local {
        fit: Fitting::Trained(training()),
        members,
    }
}

/// This decision with another claim.
fn claiming(decision: &Decision, change: impl FnOnce(&mut Claim)) -> Decision {
    let mut claim = decision.claim.clone().unwrap_or_default();
    change(&mut claim);
    Decision {
        claim: Some(claim),
        ..decision.clone()
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

fn entry(weights: [f32; 2], coalition: Option<u32>, rows: u64) -> ModelEntry {
    ModelEntry {
        model: model(weights),
        coalition,
        weight: Some(rows),
        member: None,
    }
}

fn manifest(entries: Vec<ModelEntry>, rows: Option<&[Vec<f64>]>) -> LoadedManifest {
    LoadedManifest {
        entries,
        scores: rows.map(|rows| Scores::from_rows(rows).unwrap()),
    }
}

fn genesis() -> State {
    State::genesis(model([0.0, 0.0]))
}

/// Decides, checks and settles.
fn round(strategy: &dyn Strategy, state: &State, manifest: &LoadedManifest, round: u64) -> Outcome {
    let decision = strategy.decide(state, manifest, round).unwrap();
    strategy.check(state, manifest, &decision, round).unwrap();
    strategy.settle(state, manifest, &decision, round).unwrap()
}

/// Two pairs that fit each other: entries 0 and 2, 1 and 3.
fn pairs() -> LoadedManifest {
    let rows = [
        vec![0.1, 0.9, 0.2, 0.8],
        vec![0.9, 0.1, 0.8, 0.3],
        vec![0.3, 0.9, 0.1, 0.9],
        vec![0.7, 0.2, 0.9, 0.1],
    ];
    let models = [[1.0, 0.0], [0.0, 1.0], [3.0, 0.0], [0.0, 5.0]];
    manifest(
        models.map(|weights| entry(weights, Some(0), 10)).to_vec(),
        Some(&rows),
    )
}

#[test]
fn fedavg_weighs_by_rows_or_not() {
    let manifest = manifest(
        vec![entry([1.0, 0.0], None, 10), entry([4.0, 3.0], Some(0), 20)],
        None,
    );
    let exact = round(&fedavg(true), &genesis(), &manifest, 1);
    assert_eq!(exact.assignment, [0, 0]);
    assert_eq!(weights(&exact.state.models[0]), [3.0, 2.0]);
    let equal = round(&fedavg(false), &genesis(), &manifest, 1);
    assert_eq!(weights(&equal.state.models[0]), [2.5, 1.5]);
    // Buffers keep their bits, the negative zero among them.
    let bits = |model: &Params| -> Vec<u32> {
        [MEAN, DEVIATION]
            .iter()
            .flat_map(|t| model.tensor(t).unwrap())
            .map(|v| v.to_bits())
            .collect()
    };
    assert_eq!(
        bits(&exact.state.models[0]),
        bits(&manifest.entries[0].model)
    );
    assert!(fedavg(true).plan(&genesis(), 1).weights && !fedavg(false).plan(&genesis(), 1).weights);
}

#[test]
fn fedavg_needs_entries_and_rows() {
    let strategy: &dyn Strategy = &fedavg(true);
    let empty = manifest(Vec::new(), None);
    assert_eq!(
        strategy.decide(&genesis(), &empty, 1),
        Err(DecideError::NoEntries)
    );
    let mut bare = manifest(
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
    let decision = Decision::fixed(vec![0, 0]);
    assert!(strategy.settle(&genesis(), &bare, &decision, 1).is_err());
    assert!(
        fedavg(false)
            .settle(&genesis(), &bare, &decision, 1)
            .is_ok()
    );
}

#[test]
fn decisions_without_a_choice_are_checked() {
    let manifest = manifest(
        vec![entry([1.0, 0.0], Some(0), 1), entry([4.0, 3.0], Some(0), 2)],
        None,
    );
    let strategies: [&dyn Strategy; 2] = [&fedavg(true), &local(2)];
    for strategy in strategies {
        let honest = strategy.decide(&genesis(), &manifest, 1).unwrap();
        let lies = [
            Decision {
                assignment: vec![1, 0],
                ..honest.clone()
            },
            Decision {
                assignment: vec![0],
                ..honest.clone()
            },
            claiming(&honest, |_| ()),
            claiming(&honest, |claim| claim.lower_bound = f64::NAN),
        ];
        for lie in lies {
            assert!(
                strategy.check(&genesis(), &manifest, &lie, 1).is_err(),
                "{lie:?}"
            );
        }
        let short = Decision {
            assignment: vec![0],
            ..honest
        };
        assert_eq!(
            strategy
                .settle(&genesis(), &manifest, &short, 1)
                .unwrap_err(),
            SettleError::Mismatch {
                assigned: 1,
                entries: 2
            }
        );
    }
}

#[test]
fn local_models_stay_with_their_owners() {
    let strategy = local(5);
    let first = manifest(
        vec![entry([1.0, 0.0], Some(0), 1), entry([2.0, 0.0], Some(0), 1)],
        None,
    );
    let one = round(&strategy, &genesis(), &first, 1);
    assert_eq!(one.assignment, [0, 1]);
    // Owner 0 is absent; there is a newcomer, and one that claims what is taken, and one that claims
    // what is not there.
    let claims = [(5.0, None), (6.0, Some(1)), (7.0, Some(1)), (8.0, Some(9))];
    let second = claims.map(|(weight, claim)| entry([weight, 0.0], claim, 1));
    let two = round(&strategy, &one.state, &manifest(second.to_vec(), None), 2);
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
fn local_keeps_no_more_models_than_members_when_one_claims_the_numbers_of_others() {
    let strategies: [&dyn Strategy; 2] = [
        &local(3),
        &*equipped::strategy_for(3, "pfedgraph", json!({})),
    ];
    for strategy in strategies {
        let first = [1.0, 2.0, 3.0].map(|weight| entry([weight, 1.0], Some(0), 1));
        let mut outcome = round(strategy, &genesis(), &manifest(first.to_vec(), None), 1);
        assert_eq!(outcome.assignment, [0, 1, 2]);
        let mut own = outcome.assignment;
        for number in 2..12 {
            // The first entry claims the number of one of the others.
            let claims = [own[1 + number as usize % 2], own[1], own[2]];
            let entries = claims.map(|claim| entry([9.0, 1.0], Some(claim), 1));
            outcome = round(
                strategy,
                &outcome.state,
                &manifest(entries.to_vec(), None),
                number,
            );
            assert_eq!(outcome.state.models.len(), 3, "{}", strategy.name());
            own = outcome.assignment;
            let mut all = own.clone();
            all.sort_unstable();
            assert_eq!(
                all,
                [0, 1, 2],
                "{}: all have different numbers",
                strategy.name()
            );
        }
    }
}

#[test]
fn cfl_keeps_no_more_models_than_members_when_both_claim_the_newest_cluster() {
    let cfl = equipped::strategy(
        "cfl",
        json!({ "mean-below": 1.0, "largest-above": 1.0, "larger-than": 1, "after": 0 }),
    );
    let mut state = genesis();
    for number in 1..10 {
        let newest = state.models.len() - 1;
        let start = weights(&state.models[newest]);
        let entries = [5.0, -5.0].map(|by| {
            let claim = Some(newest as u32);
            entry([start[0] + by, start[1]], claim, 1)
        });
        state = round(&*cfl, &state, &manifest(entries.to_vec(), None), number).state;
        assert_eq!(state.models.len(), 2, "round {number}");
    }
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
    // Coalition 0 is absent; the last two have no coalition that exists.
    let entries = vec![
        entry([12.0, 0.0], Some(1), 1),
        entry([0.0, 12.0], Some(2), 1),
        entry([8.0, 2.0], None, 1),
        entry([1.0, 14.0], Some(77), 1),
    ];
    let manifest = manifest(entries, None);
    let outcome = round(&strategy, &state, &manifest, 2);
    assert_eq!(outcome.assignment, [1, 2, 1, 2]);
    let means: Vec<_> = outcome.state.models.iter().map(weights).collect();
    assert_eq!(means, [[0.0, 0.0], [10.0, 1.0], [0.5, 13.0]]);
    assert_eq!(outcome.state.models[0], state.models[0]);
    let moved = Decision::fixed(vec![0, 2, 1, 2]);
    assert!(strategy.check(&state, &manifest, &moved, 2).is_err());
    let beyond = Decision::fixed(vec![1, 2, 1, 3]);
    assert!(matches!(
        strategy.settle(&state, &manifest, &beyond, 2),
        Err(SettleError::Infeasible(_))
    ));
}

#[test]
fn cs_rcfl_refuses_dishonest_decisions() {
    let (strategy, state, manifest) = (cs_rcfl(2, 1), genesis(), pairs());
    let honest = strategy.decide(&state, &manifest, 1).unwrap();
    let check = |decision: &Decision| strategy.check(&state, &manifest, decision, 1);
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
    let scores = manifest.scores.as_ref().unwrap();
    let value = crate::coalitions::CoalitionProgram::new(scores, 2)
        .unwrap()
        .objective(&worse.assignment);
    let priced = claiming(&worse, |claim| claim.objective = value);
    assert!(matches!(check(&priced), Err(Objection::NotBest { .. })));
    let claimed = honest.claim.clone().unwrap();
    for lower_bound in [
        claimed.objective + 0.1,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let boast = claiming(&honest, |claim| claim.lower_bound = lower_bound);
        assert!(
            matches!(check(&boast), Err(Objection::Misstated { .. })),
            "{lower_bound}"
        );
    }
    for objective in [f64::NAN, f64::INFINITY, claimed.objective * (1.0 + 1e-6)] {
        let lie = claiming(&honest, |claim| claim.objective = objective);
        assert!(
            matches!(check(&lie), Err(Objection::Misstated { .. })),
            "{objective}"
        );
    }
    // Last bits are forgiven; a weaker bound is true.
    let rounded = claiming(&honest, |claim| claim.objective *= 1.0 + 1e-14);
    check(&rounded).unwrap();
    check(&claiming(&honest, |claim| claim.lower_bound = 0.0)).unwrap();
    let silent = Decision::fixed(honest.assignment);
    assert!(matches!(check(&silent), Err(Objection::Infeasible(_))));
}

#[test]
fn cs_rcfl_needs_scores_of_its_entries() {
    let (strategy, state) = (cs_rcfl(5, 1), genesis());
    let mut manifest = pairs();
    // Fewer contributions than coalitions: as many as there are.
    let alone = strategy.decide(&state, &manifest, 1).unwrap();
    assert_eq!(alone.assignment, [0, 1, 2, 3]);
    strategy.check(&state, &manifest, &alone, 1).unwrap();
    let outcome = strategy.settle(&state, &manifest, &alone, 1).unwrap();
    assert_eq!(outcome.state.models.len(), 4);
    manifest.entries.pop();
    let error = strategy.decide(&state, &manifest, 1).unwrap_err();
    assert_eq!(
        error,
        DecideError::Scores {
            entries: 3,
            scored: 4
        }
    );
    manifest.scores = None;
    assert_eq!(
        strategy.decide(&state, &manifest, 1),
        Err(DecideError::NoScores)
    );
    manifest.entries.clear();
    assert_eq!(
        strategy.decide(&state, &manifest, 1),
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
    // An absurd score of one member must not cost the others their round.
    let absurd = Scores::from_rows(&[vec![1.0, 1e300], vec![-1e101, 2.0]]).unwrap();
    assert_eq!((absurd.at(0, 1), absurd.at(1, 0)), (1e100, -1e100));
}

#[test]
fn silos_without_an_entry_keep_their_coalition_where_numbers_are_kept() {
    for (name, more, kept) in [
        ("local", json!({}), [false, true, true]),
        ("robust-local", json!({}), [false, true, true]),
        ("pfedgraph", json!({}), [false, true, true]),
        ("ifca", json!({}), [true, true, true]),
        ("ifca", json!({ "start": "k-means" }), [false, true, true]),
        ("cfl", json!({}), [true, true, true]),
        ("cs-rcfl", json!({ "freeze": 2 }), [false, false, true]),
        (
            "cs-rcfl",
            json!({ "coalitions": "auto", "warm-up": 0 }),
            [false, false, true],
        ),
        ("hcct", json!({}), [false, false, false]),
        ("hcct", json!({ "freeze": 1 }), [false, true, true]),
    ] {
        let strategy = equipped::strategy(name, more);
        let kept_by = [1, 2, 3].map(|round| strategy.keeps_numbers(round));
        assert_eq!(kept_by, kept, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The outcome that all members sign: the same bits again and again, on any number of threads.
    #[test]
    fn settling_gives_the_same_bits_always(seed: u32, k in 1..5usize) {
        let layout = Layout::new(vec![TensorSpec::new("w", [300_000], Role::Weight)]).unwrap();
        let entries: Vec<_> = (0..8u32)
            .map(|i| ModelEntry {
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
        let manifest = manifest(entries, Some(&rows));
        let state = State::genesis(Params::zeros(&layout));
        let strategies: [&dyn Strategy; 2] = [&fedavg(true), &cs_rcfl(k, 1)];
        for strategy in strategies {
            let hashes = |threads: usize| -> Vec<Digest> {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let outcome = pool.install(|| round(strategy, &state, &manifest, 1));
                outcome.state.models.iter().map(Params::hash).collect()
            };
            let once = hashes(1);
            prop_assert_eq!(&once, &hashes(8));
            prop_assert_eq!(&once, &hashes(8));
        }
    }
}
