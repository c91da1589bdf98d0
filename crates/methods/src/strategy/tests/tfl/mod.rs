//! TFL, DRFA and AFL: the worst mixture of members, with and without a topology.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::Strategy as _;
use serde_json::{Value, json};

use super::Strategy;
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;
use crate::learner::{Capabilities, LearnError, Learner, Metrics, Split, Update};
use crate::strategy::wrappers::report::ReportMetrics;
use crate::topology::{Sampling, total_variation, uniform};

mod draws;
mod graph;

/// Epochs of one step each, which is what AFL has.
fn strategy(name: &str, members: usize, more: Value) -> Box<dyn Strategy> {
    let optimiser = json!({ "name": "sgd", "rate": 0.2 });
    let mut config = json!({
        "name": name, "training": { "epochs": 1, "batch": 0, "optimiser": optimiser },
    });
    let more = more.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(more);
    build(&serde_json::from_value(config).unwrap(), members).unwrap()
}

fn layout(values: usize) -> Arc<Layout> {
    Layout::new(vec![TensorSpec::new("weight", [values], Role::Weight)]).unwrap()
}

fn plain(values: &[f32]) -> Params {
    Params::from_values(&layout(values.len()), values)
}

/// A contribution of a member, with these weights and this reported loss.
fn reporting(member: u16, values: &[f32], loss: f32) -> ModelEntry {
    let report = Layout::new(vec![TensorSpec::new("report.loss", [1], Role::Buffer)]).unwrap();
    let report = Params::from_values(&report, &[loss]);
    let whole = ReportMetrics(&["loss"]).contribution(&layout(values.len()));
    ModelEntry {
        model: Params::gather(&whole, &[&plain(values), &report]).unwrap(),
        coalition: Some(0),
        weight: None,
        member: Some(member),
    }
}

fn manifest(entries: Vec<ModelEntry>) -> LoadedManifest {
    super::manifest(entries, None)
}

/// Before round 1, of models of this number of values.
fn genesis(values: usize) -> State {
    State::genesis(plain(&vec![0.0; values]))
}

fn with_memory(mut state: State, name: &str, values: &[f64]) -> State {
    state.memory.insert(name, Kept::Numbers(values.to_vec()));
    state
}

fn memory<'a>(state: &'a State, name: &str) -> &'a [f64] {
    match state.memory.get(name) {
        Some(Kept::Numbers(numbers)) => numbers,
        other => panic!("{name}: {other:?}"),
    }
}

fn number(state: &State, name: &str) -> f64 {
    match state.memory.get(name) {
        Some(Kept::Number(number)) => *number,
        other => panic!("{name}: {other:?}"),
    }
}

/// The adjacency matrix of the graph, row by row.
fn adjacency(state: &State) -> Vec<f64> {
    let Some(Kept::Graph(graph)) = state.memory.get("tfl.graph") else {
        panic!("a graph");
    };
    let nodes = graph.nodes as usize;
    let mut all = vec![0.0; nodes * nodes];
    for [a, b] in graph
        .edges
        .iter()
        .map(|edge| edge.map(|node| node as usize))
    {
        (all[nodes * a + b], all[nodes * b + a]) = (1.0, 1.0);
    }
    all
}

fn values(state: &State) -> Vec<f64> {
    let values = state.models[0].values().iter();
    values.map(|&value| value.into()).collect()
}

fn close(a: &[f64], b: &[f64], within: f64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= within)
}

/// Five silos with centres of their own.
fn silos() -> Vec<QuadraticLearner> {
    let centres = [0.0, 0.5, 1.0, 4.0, -3.0];
    let silo = |&centre: &f64| {
        let silo = quadratic([centre, 1.0, -centre, 2.0, 0.5 * centre]);
        silo.with_curvature(&[1.0, 0.5, 2.0, 1.0, 1.0])
    };
    centres.iter().map(silo).collect()
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, 5, more), silos())
}

#[test]
fn a_pinned_uniform_prior_is_fedavg_bit_for_bit() {
    let average = federation("fedavg", json!({})).rounds(4);
    let pinned = federation("tfl", json!({ "q": "inf", "centrality": "degree" })).rounds(4);
    assert_eq!(pinned.state.models, average.state.models);
    // The graph of round 5 moves λ from round 6 on.
    let (average, pinned) = (average.rounds(2), pinned.rounds(2));
    assert_ne!(pinned.state.models, average.state.models);
    let prior = memory(&pinned.state, "tfl.prior");
    assert_ne!(prior, uniform(5));
    assert_eq!(memory(&pinned.state, "tfl.lambda"), prior);
}

#[test]
fn a_prior_without_strength_is_drfa() {
    for losses in [
        json!("all"),
        json!({ "uniform": 0 }),
        json!({ "uniform": 2 }),
    ] {
        let tfl = json!({
            "participants": { "sample": 3 }, "losses": losses, "q": 0, "period": 2,
            "centrality": "degree",
        });
        let mut tfl = federation("tfl", tfl);
        let mut drfa = federation("drfa", json!({ "sample": 3, "losses": losses }));
        for round in 1..=8 {
            let plans = [&tfl, &drfa].map(|one| one.strategy.plan(&one.state, round));
            assert_eq!(plans[0], plans[1]);
            tfl.round();
            drfa.round();
            assert_eq!(tfl.state.models, drfa.state.models);
            let lambdas = (
                memory(&tfl.state, "tfl.lambda"),
                memory(&drfa.state, "drfa.lambda"),
            );
            assert_eq!(lambdas.0, lambdas.1);
        }
        assert_eq!(number(&tfl.state, "tfl.tv"), 0.0);
        assert_ne!(memory(&tfl.state, "tfl.prior"), uniform(5));
        assert_ne!(memory(&drfa.state, "drfa.lambda"), uniform(5));
        assert!(drfa.state.tables.is_empty() && tfl.state.tables["tfl.models"].len() == 5);
    }
}

#[test]
fn tfl_with_all_members_and_no_prior_equals_afl() {
    let tfl = federation("tfl", json!({ "q": 0 })).rounds(7);
    let afl = federation("afl", json!({})).rounds(7);
    assert_eq!(tfl.state.models, afl.state.models);
    assert_eq!(
        memory(&tfl.state, "tfl.lambda"),
        memory(&afl.state, "afl.lambda")
    );
}

/// A learner whose updates are of one row if it was to train, else of none.
struct Probe;

impl Learner for Probe {
    fn layout(&self) -> Arc<Layout> {
        Layout::new(Vec::new()).unwrap()
    }

    fn initial(&self, _: u64) -> Params {
        Params::empty()
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        Ok(Update::kept(start, personal, 1))
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Ok(Metrics::default())
    }

    fn samples(&self) -> u64 {
        0
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

/// The members that train in a round, as the silos find out.
fn trains(strategy: &dyn Strategy, state: &State, round: u64, members: u16) -> Vec<u16> {
    let plan = strategy.plan(state, round);
    let (personal, radius) = (Params::empty(), OwnRadius::default());
    let trains = |member: &u16| {
        let participant = Participant {
            member: *member,
            coalition: 0,
            learner: &Probe,
            personal: &personal,
            radius: &radius,
            seed: 0,
        };
        let go_on = &mut |_| std::ops::ControlFlow::Continue(());
        let part = strategy.contribute(state, &plan, round, participant, go_on);
        let (coalition, update) = part.unwrap();
        assert_eq!((&update.shared, coalition), (&state.models[0], 0));
        update.samples == 1
    };
    (0..members).filter(trains).collect()
}

#[test]
fn the_steps_of_the_weights_are_those_of_the_paper() {
    let strategy = strategy("tfl", 5, json!({ "period": 100 }));
    let prior = [
        0.1380228609502245,
        0.22756122669152126,
        0.2688318247165084,
        0.22756122669152126,
        0.1380228609502245,
    ];
    let known = [
        [0.2; 5],
        [
            0.21538022860950223,
            0.17627561226691524,
            0.16668831824716507,
            0.1962756122669152,
            0.24538022860950226,
        ],
        [
            0.23060665493290944,
            0.15278846841116128,
            0.13370975331185847,
            0.19258846841116123,
            0.29030665493290947,
        ],
        [
            0.24568081699308258,
            0.12953619599396488,
            0.10106097402590496,
            0.18893819599396483,
            0.33478381699308263,
        ],
    ];
    let mut state = with_memory(genesis(1), "tfl.prior", &prior);
    for (round, known) in (1..).zip(known) {
        let losses = [0.9, 0.5, 0.4, 0.7, 1.2];
        let entries = (0..5).map(|k| reporting(k, &[f32::from(k)], losses[usize::from(k)]));
        state = super::round(&*strategy, &state, &manifest(entries.collect()), round).state;
        // Losses come in f32.
        assert!(close(memory(&state, "tfl.lambda"), &known, 1e-7));
        let mean: f64 = (0..5).map(|k| known[k] * k as f64).sum();
        assert!(
            (values(&state)[0] - mean).abs() < 1e-6,
            "the weights of this very round"
        );
    }
    let (lambda, without) = (
        memory(&state, "tfl.lambda"),
        memory(&state, "tfl.lambda-uniform"),
    );
    assert_eq!(number(&state, "tfl.tv"), total_variation(lambda, without));
    let effective = 1.0 / lambda.iter().map(|l| l * l).sum::<f64>();
    assert_eq!(number(&state, "tfl.effective"), effective);
}

#[test]
fn afl_serves_the_one_that_fedavg_leaves_behind() {
    // Four want 0, one wants 10: the mean is 2, the fair middle 5.
    let silos = || -> Vec<QuadraticLearner> {
        let centres = [0.0, 0.0, 0.0, 0.0, 10.0];
        centres.map(|centre| quadratic([centre; 5])).into()
    };
    let worst = |name: &str, more: Value| {
        let federation = QuadraticFederation::new(strategy(name, 5, more), silos()).rounds(400);
        let losses = federation.losses();
        losses.into_iter().fold(0.0, f64::max)
    };
    let average = worst("fedavg", json!({}));
    assert!((average - 160.0).abs() < 0.1, "{average}");
    let fair = worst("afl", json!({ "rate": 0.0005 }));
    assert!((fair - 62.5).abs() < 1.0, "{fair}");
    // The prior holds back from that.
    let held = worst("tfl", json!({ "rate": 0.0005, "q": 500 }));
    assert!(held > fair + 5.0 && held < average - 5.0, "{held}");
}

#[test]
fn unusable_entries_are_refused_by_name() {
    let strategy = strategy("afl", 3, json!({}));
    let good = || reporting(0, &[1.0], 0.5);
    let nameless = ModelEntry {
        member: None,
        ..good()
    };
    let bare = ModelEntry {
        model: plain(&[1.0]),
        ..reporting(1, &[1.0], 0.5)
    };
    let cases = [
        (nameless, "needs names"),
        (reporting(3, &[1.0], 0.5), "member 3, expected one below 3"),
        (reporting(1, &[1.0], f32::INFINITY), "finite"),
        (reporting(1, &[1.0], f32::NAN), "finite"),
        (bare, "lacks the loss"),
        (reporting(0, &[2.0], 0.5), "same member"),
    ];
    for (bad, reason) in cases {
        if reason != "same member" {
            assert!(strategy.admit(&bad, 2).unwrap_err().contains(reason));
        }
        let manifest = manifest(vec![good(), bad]);
        let error = strategy.decide(&genesis(1), &manifest, 2).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("entry 1: ") && text.contains(reason),
            "{text}"
        );
        let decision = Decision::fixed(vec![0, 0]);
        assert!(
            strategy
                .check(&genesis(1), &manifest, &decision, 2)
                .is_err()
        );
        let settled = strategy.settle(&genesis(1), &manifest, &decision, 2);
        assert_eq!(settled.unwrap_err(), SettleError::LoadedManifest(error));
    }
    let none = strategy.decide(&genesis(1), &manifest(Vec::new()), 1);
    assert_eq!(none, Err(DecideError::NoEntries));
    let moved = Decision::fixed(vec![1]);
    assert!(
        strategy
            .check(&genesis(1), &manifest(vec![good()]), &moved, 2)
            .is_err()
    );
}

#[test]
fn what_is_to_be_compared_must_be_there() {
    let equip = |part: Value| {
        let strategy = strategy("tfl", 3, json!({ "embedding": { "part": part } }));
        strategy.equip(Arc::new(silos().remove(0))).map(drop)
    };
    assert_eq!(equip(json!({ "last": 2 })), Ok(()));
    let error = equip(json!({ "last": 9 })).unwrap_err().to_string();
    assert!(error.starts_with("embedding: the last 9 layers"), "{error}");
    assert!(equip(json!({ "named": ["head"] })).is_err());
}

#[test]
fn infinite_strength_is_a_word_in_files() {
    let read = |q: Value| {
        let optimiser = json!({ "name": "sgd", "rate": 0.2 });
        let training = json!({ "epochs": 1, "batch": 0, "optimiser": optimiser });
        serde_json::from_value::<StrategyConfig>(
            json!({ "name": "tfl", "q": q, "training": training }),
        )
    };
    let infinite = read(json!("inf")).unwrap();
    let Method::Tfl(options) = &infinite.method else {
        panic!("another method");
    };
    assert_eq!(options.q, f64::INFINITY);
    let written = serde_json::to_value(&infinite).unwrap();
    assert_eq!(written["q"], json!("inf"));
    assert_eq!(
        serde_json::from_value::<StrategyConfig>(written).unwrap(),
        infinite
    );
    assert_eq!(read(json!(2)).unwrap(), read(json!(2.0)).unwrap());
    let error = read(json!(null)).unwrap_err().to_string();
    assert!(error.contains("a number or \"inf\""), "{error}");
    assert!(
        read(json!("much"))
            .unwrap_err()
            .to_string()
            .contains("much")
    );
}

/// Returns what a round of random losses and absences is.
fn rounds() -> impl proptest::strategy::Strategy<Value = Vec<Vec<Option<f32>>>> {
    let loss = prop::option::weighted(0.8, prop_oneof![-5.0..5.0f32, -1e30..1e30f32]);
    prop::collection::vec(prop::collection::vec(loss, 5), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn weights_and_priors_stay_on_the_simplex(
        rounds in rounds(),
        divergence in prop_oneof![Just("l2"), Just("kl"), Just("chi-squared")],
        q in prop_oneof![Just(json!(0)), Just(json!(0.1)), Just(json!(10)), Just(json!("inf"))],
        participants in prop_oneof![Just(json!("all")), Just(json!({ "sample": 3 }))],
        uniform: bool,
        floor in prop_oneof![Just(0.0), Just(0.01)],
    ) {
        let losses = if uniform && participants != json!("all") { json!({ "uniform": 2 }) } else { json!("all") };
        let strategy = strategy("tfl", 5, json!({
            "participants": participants, "losses": losses, "divergence": divergence, "q": q,
            "lambda-floor": floor, "period": 2, "scale": "raw",
        }));
        let mut state = genesis(2);
        for (round, losses) in (1..).zip(rounds) {
            let entries = losses.iter().zip(0..);
            let entries: Vec<_> = entries
                .filter_map(|(loss, k)| Some(reporting(k, &[f32::from(k), 1.0], (*loss)?)))
                .collect();
            if entries.is_empty() {
                continue;
            }
            state = super::round(&*strategy, &state, &manifest(entries), round).state;
            for name in ["tfl.lambda", "tfl.lambda-uniform", "tfl.prior"] {
                let on = memory(&state, name);
                prop_assert!(on.len() == 5 && on.iter().all(|w| (0.0..=1.0 + 1e-9).contains(w)), "{name} {on:?}");
                prop_assert!((on.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{name} {on:?}");
            }
            prop_assert!((0.0..=1.0 + 1e-9).contains(&number(&state, "tfl.tv")));
            prop_assert!((1.0 - 1e-9..=5.0 + 1e-9).contains(&number(&state, "tfl.effective")));
            // What was drawn by the new weights is drawn without complaint.
            let drawn = Sampling::WithReplacement.draw(memory(&state, "tfl.lambda"), 3, round);
            prop_assert!(drawn.is_ok());
        }
    }
}
