//! What strategies add at the silo, over whole federations of quadratics.

use proptest::prelude::{ProptestConfig, prop, prop_assert_eq, proptest};
use serde_json::{Value, json};

use super::quadratic::{QuadraticFederation, layout, quadratic, trained};
use super::*;
use crate::learner::{LearnError, Learner, Split};
use crate::serving::is_never_trained;

/// Two silos that differ in where they want to go and how badly.
fn silos() -> Vec<QuadraticLearner> {
    vec![
        quadratic([0.0, 1.0, -1.0, 2.0, 3.0]).with_curvature(&[1.0, 0.5, 2.0, 1.0, 1.0]),
        quadratic([4.0, -1.0, 1.0, 1.0, -3.0]).with_curvature(&[0.2, 1.0, 1.0, 0.5, 2.0]),
    ]
}

/// Returns where the sum of their losses is smallest.
fn optimum() -> [f64; 5] {
    let [a, b] = [0, 1].map(|at| silos().swap_remove(at));
    std::array::from_fn(|i| {
        let (h, g) = (a.curvature()[i], b.curvature()[i]);
        (h * a.centre()[i] + g * b.centre()[i]) / (h + g)
    })
}

pub(super) fn strategy(name: &str, more: Value) -> Box<dyn Strategy> {
    strategy_for(2, name, more)
}

/// A strategy for a federation of this number of members.
pub(super) fn strategy_for(members: usize, name: &str, more: Value) -> Box<dyn Strategy> {
    let optimiser = json!({ "name": "sgd", "rate": 0.2 });
    let mut config = json!({
        "name": name, "training": { "epochs": 5, "batch": 0, "optimiser": optimiser },
    });
    let more = more.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(more);
    build(&serde_json::from_value(config).unwrap(), members).unwrap()
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), silos())
}

fn distance(model: &Params, to: [f64; 5]) -> f64 {
    let each = trained(model).into_iter().zip(to);
    each.map(|(w, to)| (w - to) * (w - to)).sum::<f64>().sqrt()
}

#[test]
fn fedprox_with_mu_zero_equals_fedavg_bit_for_bit() {
    let average = federation("fedavg", json!({})).rounds(3);
    let proximal = federation("fedprox", json!({ "mu": 0.0 })).rounds(3);
    assert_eq!(average.state.models, proximal.state.models);
    let pulled = federation("fedprox", json!({ "mu": 1.0 })).rounds(3);
    assert_ne!(average.state.models, pulled.state.models);
}

#[test]
fn a_strong_proximal_term_drifts_less_from_the_optimum() {
    let off = |mu: f64| {
        let federation = federation("fedprox", json!({ "mu": mu })).rounds(200);
        distance(&federation.state.models[0], optimum())
    };
    let drifts = [0.0, 0.5, 2.0].map(off);
    assert!(drifts[0] > drifts[1] && drifts[1] > drifts[2], "{drifts:?}");
}

#[test]
fn scaffold_reaches_the_optimum_that_fedavg_misses() {
    let of = |name| {
        let federation = federation(name, json!({})).rounds(150);
        let model = federation.state.models[0].clone();
        let bare = Params::gather(&layout(), &[&model]).unwrap();
        distance(&bare, optimum())
    };
    let (average, scaffold) = (of("fedavg"), of("scaffold"));
    assert!(average > 0.1, "{average}");
    assert!(scaffold < 1e-4, "{scaffold}");
}

#[test]
fn control_variates_are_the_mean_of_the_silos_own() {
    let federation = federation("scaffold", json!({})).rounds(9);
    let common = federation.state.models[0].tensor("scaffold.control.layer0.weight");
    let own = |silo: usize| {
        let own = federation.personal[silo].tensor("scaffold.control.layer0.weight");
        own.unwrap().to_vec()
    };
    for (at, &common) in common.unwrap().iter().enumerate() {
        let mean = (own(0)[at] + own(1)[at]) / 2.0;
        assert!((common - mean).abs() < 1e-5, "{common} {mean}");
        assert!(own(0)[at].abs() > 1e-3);
    }
}

#[test]
fn adaptive_steps_are_those_of_the_paper() {
    // One silo that wants to go from 7 and 0 to 1 in the first two values.
    let silo = || vec![quadratic([1.0; 5])];
    type Second = fn(f64, f64) -> f64;
    let kinds: [(&str, Second); 3] = [
        ("fedadam", |v, square| 0.99 * v + 0.01 * square),
        ("fedyogi", |v, square| {
            v - 0.01 * square * if v > square { 1.0 } else { -1.0 }
        }),
        ("fedadagrad", |v, square| v + square),
    ];
    for (name, second) in kinds {
        let options = json!({ "rate": 0.5, "tau": 0.01 });
        let federation = QuadraticFederation::new(strategy(name, options), silo()).rounds(3);
        for (at, start) in [(0, 7.0), (1, 0.0)] {
            let (mut w, mut m, mut v): (f64, f64, f64) = (start, 0.0, 1e-4);
            for _ in 0..3 {
                let change = (w - 1.0) * (libm::pow(0.8, 5.0) - 1.0);
                m = 0.9 * m + 0.1 * change;
                v = second(v, change * change);
                w += 0.5 * m / (v.sqrt() + 0.01);
            }
            let model = &federation.state.models[0];
            let got = |name: &str| f64::from(model.tensor(name).unwrap()[at]);
            assert!((got("layer0.weight") - w).abs() < 1e-4, "{name}");
            assert!(
                (got("fedopt.first.layer0.weight") - m).abs() < 1e-5,
                "{name}"
            );
            assert!(
                (got("fedopt.second.layer0.weight") - v).abs() < 1e-4,
                "{name}"
            );
        }
        // Buffers are averaged as ever: three trainings.
        assert_eq!(
            federation.state.models[0].tensor("norm0.count"),
            Some([3.0].as_slice())
        );
    }
}

#[test]
fn momentum_keeps_a_share_of_the_last_change_and_buffers_are_averaged() {
    let silo = || vec![quadratic([1.0; 5])];
    let options = json!({ "momentum": 0.5 });
    let federation = QuadraticFederation::new(strategy("fedavg", options), silo()).rounds(4);
    let model = &federation.state.models[0];
    for (at, start) in [(0, 7.0), (1, 0.0)] {
        let (mut w, mut v): (f64, f64) = (start, 0.0);
        for _ in 0..4 {
            v = 0.5 * v + (w - 1.0) * (libm::pow(0.8, 5.0) - 1.0);
            w += v;
        }
        let got = f64::from(model.tensor("layer0.weight").unwrap()[at]);
        assert!((got - w).abs() < 1e-5, "{got} {w}");
    }
    assert_eq!(model.tensor("norm0.count"), Some([4.0].as_slice()));
}

#[test]
fn momentum_of_zero_is_fedavg_bit_for_bit_and_not_written() {
    let run = |options| federation("fedavg", options).rounds(5).state;
    assert_eq!(run(json!({ "momentum": 0.0 })), run(json!({})));
    assert_ne!(run(json!({ "momentum": 0.1 })), run(json!({})));
    let none = serde_json::to_value(FedAvgOptions::default()).unwrap();
    assert_eq!(none, json!({ "weight": "exact" }));
}

#[test]
fn what_is_personal_is_not_shared_and_fits_its_silo() {
    for (name, own) in [
        ("fedper", "layer1."),
        ("fedrep", "layer1."),
        ("fedbn", "norm0."),
    ] {
        let federation = federation(name, json!({})).rounds(60);
        let shared = federation.state.models[0].layout();
        assert!(
            shared
                .tensors()
                .iter()
                .all(|tensor| !tensor.name.starts_with(own)),
            "{name}"
        );
        assert_eq!(
            shared.tensors().len() + federation.personal[0].layout().tensors().len(),
            5
        );
        let average = self::federation("fedavg", json!({})).rounds(60);
        let sum = |federation: &QuadraticFederation| federation.losses().iter().sum::<f64>();
        assert!(sum(&federation) < sum(&average) - 1.0, "{name}");
    }
}

#[test]
fn a_silo_that_no_round_drew_has_never_trained_what_it_keeps() {
    let never = |federation: &QuadraticFederation| {
        let model = (&federation.state.models[0], &federation.personal[0]);
        is_never_trained(&*federation.learners[0], model, 7)
    };
    for own in [
        json!({ "personal": ["layer0"] }),
        json!({ "personal": ["layer0.weight"] }),
    ] {
        let drawn = federation("fedavg", own);
        assert!(never(&drawn));
        assert!(!never(&drawn.rounds(1)));
    }
    for name in ["ditto", "apfl", "pfedme"] {
        assert!(never(&federation(name, json!({}))), "{name}");
    }
    // The model does not depend on what these keep, or they keep nothing.
    for name in [
        "fedavg", "scaffold", "maxfl", "fedprox", "feddyn", "fednova",
    ] {
        assert!(!never(&federation(name, json!({}))), "{name}");
    }
}

#[test]
fn fedrep_trains_head_and_body_in_turn() {
    // With a head that never moves a body trains as it would alone, and the other way round.
    let federation = federation("fedrep", json!({ "head-epochs": 30 })).rounds(1);
    for (silo, quadratic) in silos().iter().enumerate() {
        let head = federation.personal[silo]
            .tensor("personal.layer1.weight")
            .unwrap()[0];
        let expected =
            quadratic.centre()[3] * (1.0 - libm::pow(1.0 - 0.2 * quadratic.curvature()[3], 30.0));
        assert!((f64::from(head) - expected).abs() < 1e-5);
    }
    // Five epochs for the body, from 7.
    let alone = silos().into_iter().map(|silo| {
        silo.centre()[0]
            + (7.0 - silo.centre()[0]) * libm::pow(1.0 - 0.2 * silo.curvature()[0], 5.0)
    });
    let mean = alone.sum::<f64>() / 2.0;
    let got = federation.state.models[0].tensor("layer0.weight").unwrap()[0];
    assert!((f64::from(got) - mean).abs() < 1e-5);
}

#[test]
fn personal_layers_go_with_every_strategy() {
    for info in of_any_model().filter(|info| info.name != "fedbn") {
        let mut federation = federation(info.name, json!({ "personal": ["norm0"] }));
        federation = federation.rounds(3);
        let shared = federation.state.models[0].layout();
        assert_eq!(shared.position("norm0.weight"), None, "{}", info.name);
        let kept = &federation.personal[0];
        assert!(
            kept.tensor("personal.norm0.weight").is_some(),
            "{}",
            info.name
        );
        // Where members are drawn, not all members train in every round.
        let trained = if info.name == "drfa" { 0.0 } else { 3.0 };
        assert_eq!(
            kept.tensor("personal.norm0.count")
                .map(|count| count[0] >= trained),
            Some(true)
        );
        assert!(federation.losses().iter().all(|loss| loss.is_finite()));
    }
}

#[test]
fn personal_names_tensors_layers_and_kinds_of_layers() {
    let learner = || Arc::new(silos().remove(0)) as Arc<dyn Learner>;
    let shared = |words: &[&str]| {
        let equipped = strategy("fedavg", json!({ "personal": words })).equip(learner());
        equipped.map(|learner| learner.layout().describe())
    };
    assert_eq!(
        shared(&["intercept"]).unwrap(),
        "layer0.weight [2], layer1.weight [1], norm0.count [1], norm0.weight [1]"
    );
    assert_eq!(
        shared(&["layer0.weight", "norm-layers"]).unwrap(),
        "layer1.bias [1], layer1.weight [1]"
    );
    let nothing = shared(&["layer7"]).unwrap_err().to_string();
    assert!(
        nothing.contains("no tensor or layer \"layer7\"; it has layer0.weight"),
        "{nothing}"
    );
    let all = shared(&["layer0", "layer1", "norm0"])
        .unwrap_err()
        .to_string();
    assert!(all.contains("no tensor is shared"), "{all}");
}

#[test]
fn the_common_scale_stays_common() {
    let scaled = Layout::new(vec![
        TensorSpec::new(MEAN, [2], Role::Buffer),
        TensorSpec::new("weight", [2], Role::Weight),
    ]);
    let select = |words: &[&str]| {
        let words: Vec<_> = words.iter().map(|&word| word.into()).collect();
        crate::strategy::wrappers::personal_layers::select(&scaled.clone().unwrap(), &words)
    };
    assert_eq!(select(&["scale"]), Err(EquipError::Scale));
    assert!(matches!(
        select(&["last-layer"]),
        Err(EquipError::OneLayer(_))
    ));
}

#[test]
fn ditto_lies_between_local_training_and_the_common_model() {
    let average = federation("fedavg", json!({})).rounds(40);
    let local = federation("local", json!({})).rounds(40);
    let ditto = |lambda: f64| federation("ditto", json!({ "lambda": lambda })).rounds(40);
    let weak = ditto(0.0);
    assert_eq!(
        weak.state.models, average.state.models,
        "the global model is FedAvg's"
    );
    for (own, alone) in weak.losses().iter().zip(local.losses()) {
        assert!((own - alone).abs() < 1e-6, "{own} {alone}");
    }
    let between = ditto(0.5).losses();
    let ends = weak.losses().into_iter().zip(average.losses());
    for (between, (weak, average)) in between.into_iter().zip(ends).take(2) {
        assert!(between > weak && between < average);
    }
}

#[test]
fn equipped_learners_refuse_models_and_states_of_others() {
    for name in [
        "scaffold", "fedadam", "ditto", "fedper", "fedrep", "feddyn", "apfl", "pfedme", "fedala",
    ] {
        let learner = strategy(name, json!({}))
            .equip(Arc::new(silos().remove(0)))
            .unwrap();
        let (model, own) = (learner.initial(0), learner.initial_personal(0));
        let wrong = super::model([0.0, 0.0]);
        for (model, own) in [(&wrong, &own), (&model, &wrong)] {
            let error = learner.evaluate(model, own, Split::Test);
            assert!(
                matches!(error, Err(LearnError::Layout { .. })),
                "{name}: {error:?}"
            );
        }
    }
}

/// Every strategy over these silos: the states of three rounds, computed on this number of threads.
fn states(name: &str, silos: &[([f64; 5], [f64; 5])], threads: usize) -> Vec<State> {
    let silo =
        |(curvature, centre): &([f64; 5], [f64; 5])| quadratic(*centre).with_curvature(curvature);
    let config = json!({
        "name": name,
        "training": { "epochs": 2, "batch": 0, "optimiser": { "name": "sgd", "rate": 0.2 } },
    });
    let config: StrategyConfig = serde_json::from_value(config).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build().unwrap().install(|| {
        let strategy = build(&config, silos.len()).unwrap();
        let mut federation = QuadraticFederation::new(strategy, silos.iter().map(silo).collect());
        let round = |_| {
            federation.round();
            federation.state.clone()
        };
        (0..3).map(round).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    /// The outcome that all members sign, over all strategies and state of all kinds.
    #[test]
    fn every_strategy_settles_to_the_same_bits_on_any_number_of_threads(
        silos in prop::collection::vec(
            (prop::array::uniform5(0.2..2.0), prop::array::uniform5(-4.0..4.0)),
            2..6,
        ),
        threads in 2..5usize,
    ) {
        for info in of_any_model() {
            let bits = |threads: usize| -> Vec<_> {
                let all = states(info.name, &silos, threads).into_iter();
                all.map(|state| {
                    let hash = |models: &[Params]| models.iter().map(Params::hash).collect();
                    let models: Vec<Digest> = hash(&state.models);
                    let tables = state.tables.iter().map(|(name, table)| (name.clone(), hash(table)));
                    let tables: Vec<(String, Vec<Digest>)> = tables.collect();
                    // Floats print so that equal texts are equal bits.
                    let memory = format!("{:?}", state.memory);
                    (models, tables, memory)
                })
                .collect()
            };
            prop_assert_eq!(bits(1), bits(threads), "{}", info.name);
        }
    }
}

#[test]
fn a_robust_rule_takes_the_place_of_the_mean_in_every_coalition() {
    // Two groups of three, in each a Byzantine member far away.
    let byzantine = [1e6, -1e6];
    let models = [
        [0.0, 1.0],
        [0.2, 1.0],
        byzantine,
        [5.0, 5.0],
        byzantine,
        [5.2, 5.0],
    ];
    let coalitions = [0, 0, 0, 1, 1, 1];
    let entries = models.iter().zip(coalitions);
    let entries = entries.map(|(&weights, own)| entry(weights, Some(own), 1));
    let manifest = manifest(entries.collect(), None);
    let state = genesis().with(vec![model([0.0, 0.0]), model([5.0, 5.0])]);
    let settle = |name: &str| {
        let config = json!({ "coalitions": 2, "aggregation": { "name": name } });
        let strategy = strategy("cs-rcfl", config);
        let decision = strategy.decide(&state, &manifest, 2).unwrap();
        strategy.check(&state, &manifest, &decision, 2).unwrap();
        strategy
            .settle(&state, &manifest, &decision, 2)
            .unwrap()
            .state
            .models
    };
    let median = settle("coordinate-median");
    assert_eq!(
        [weights(&median[0]), weights(&median[1])],
        [[0.2, 1.0], [5.2, 5.0]]
    );
    assert!(weights(&settle("mean")[0])[0] > 1e5);
    // Krum counts on one Byzantine member and needs five models: three take their median.
    assert_eq!(settle("krum"), median);
}

#[test]
fn rules_are_refused_where_nothing_is_averaged() {
    for (name, rule) in [
        ("local", "krum"),
        ("scaffold", "krum"),
        ("fedavg", "trust-weighted"),
    ] {
        let optimiser = json!({ "name": "sgd", "rate": 0.2 });
        let config = json!({
            "name": name, "training": { "epochs": 5, "batch": 0, "optimiser": optimiser },
            "aggregation": { "name": rule },
        });
        let config: StrategyConfig = serde_json::from_value(config).unwrap();
        let error = config.validate(5).unwrap_err().to_string();
        assert!(
            error.starts_with("strategy option aggregation must be left out"),
            "{error}"
        );
    }
}
