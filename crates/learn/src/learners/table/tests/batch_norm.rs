//! Models with batch normalisation under strategies that keep a whole model at the silo.

use methods::strategy::{Method, OwnRadius, Participant, State, Strategy, StrategyConfig, build};
use serde_json::{Value, json};

use super::*;
use crate::models::{LastLayer, NetworkModel};
use task::model::{LayerConfig, LayersConfig, NetworkConfig};

/// A silo whose features lie around `shift`, with a network with a norm layer.
fn silo(shift: f64, seed: u64) -> Arc<dyn Learner> {
    let mut rng = stream(seed, "batch norm");
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    for _ in 0..60 {
        let mut draw = || uniform(&mut rng) * 2.0 - 1.0;
        let (a, b) = (draw(), draw());
        table.push(&[a + shift, b - 2.0 * shift], f64::from(a > b));
    }
    table.domains = (0..60).map(|row| row % 2).collect();
    let target = Target::Classes(vec!["low".into(), "high".into()]);
    let split = SplitConfig {
        validation: 0.0,
        test: 0.3,
        ..SplitConfig::default()
    };
    let scale = Standardise::None;
    let data = Prepared::new("s", &table, target, &split, scale, 9).unwrap();
    let layers = vec![
        LayerConfig::Dense(6),
        LayerConfig::Norm,
        LayerConfig::Relu,
        LayerConfig::Dense(2),
    ];
    let config = NetworkConfig::new(LayersConfig::Listed(layers));
    let network = NetworkModel::new(&config, 2, LastLayer::Dense(2)).unwrap();
    let cost = TransportCost::default();
    let learner = TableLearner::new(data, Box::new(network), Loss::Softmax, scale, cost);
    Arc::new(learner)
}

/// Returns what every silo uses after these rounds.
fn used(name: &str, options: Value, rounds: u64) -> Vec<Params> {
    let mut method = options;
    method["name"] = name.into();
    let method: Method = serde_json::from_value(method).unwrap();
    let Task::Train(training) = task(2, 8, 0.1) else {
        panic!("a training");
    };
    let config = StrategyConfig::new(method, training);
    let silos = [silo(0.0, 1), silo(6.0, 2)];
    let strategy: Box<dyn Strategy> = build(&config, silos.len()).unwrap();
    let silos = silos.map(|silo| strategy.equip(silo).unwrap());
    let mut state = State::genesis(silos[0].initial(3));
    let mut personal = [0, 1].map(|at| silos[at].initial_personal(3));
    let mut coalitions = vec![0; 2];
    for round in 1..=rounds {
        let plan = strategy.plan(&state, round);
        let mut entries = Vec::new();
        for (at, silo) in silos.iter().enumerate() {
            let participant = Participant {
                member: at as u16,
                coalition: coalitions[at],
                learner: &**silo,
                personal: &personal[at],
                radius: &OwnRadius::default(),
                seed: 100 * round + at as u64,
            };
            let go_on = &mut |_| ControlFlow::Continue(());
            let (coalition, update) = strategy
                .contribute(&state, &plan, round, participant, go_on)
                .unwrap();
            personal[at] = update.personal;
            entries.push(methods::strategy::ModelEntry {
                model: update.shared,
                coalition: Some(coalition),
                weight: Some(update.samples),
                member: None,
            });
        }
        let manifest = methods::strategy::LoadedManifest {
            entries,
            scores: None,
        };
        let decision = strategy.decide(&state, &manifest, round).unwrap();
        let outcome = strategy
            .settle(&state, &manifest, &decision, round)
            .unwrap();
        (coalitions, state) = (outcome.assignment, outcome.state);
    }
    let own = |at: usize| {
        let model = &state.models[coalitions[at] as usize];
        silos[at].deployed(model, &personal[at]).unwrap()
    };
    vec![own(0), own(1)]
}

#[test]
fn ditto_with_lambda_zero_is_training_alone_to_the_bit_with_batch_norms() {
    let alone = used("local", json!({}), 3);
    let ditto = used("ditto", json!({ "lambda": 0.0 }), 3);
    for (own, alone) in ditto.iter().zip(&alone) {
        for tensor in alone.layout().tensors() {
            let name = &tensor.name;
            assert_eq!(own.tensor(name), alone.tensor(name), "{name}");
        }
    }
    let mean = |model: &Params| model.tensor("layer01.norm.mean").unwrap().to_vec();
    assert_ne!(
        mean(&alone[0]),
        mean(&alone[1]),
        "the silos' statistics differ"
    );
    // And a proximal term changes something.
    assert_ne!(used("ditto", json!({ "lambda": 1.0 }), 3), alone);
}

#[test]
fn fedcg_normalises_the_rows_of_all_domains_of_a_batch_together() {
    let options = json!({ "domains": 2, "given": true, "lambda": 0.0, "sigma": "identity" });
    let bare = silo(6.0, 1);
    let by = super::fedcg::strategy("fedcg", options)
        .equip(silo(6.0, 1))
        .unwrap();
    let start = by.initial(4);
    let rows = bare.samples();
    let training = Task::Train(Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    });
    let step = |learner: &dyn Learner, start: &Params| {
        let go_on = &mut |_| ControlFlow::Continue(());
        learner
            .carry_out(start, &Params::empty(), &training, 9, go_on)
            .unwrap()
    };
    let cut = step(&*by, &start);
    let counts = [0, 1].map(|domain| cut.metrics.values[&format!("domain-{domain}")]);
    assert!(counts.iter().all(|&count| count > 1.0), "{counts:?}");
    assert_eq!(counts.iter().sum::<f64>(), rows as f64);
    // As long as λ is 0, branches have no effect: the step is that of the model without any.
    let whole = step(&*bare, &Params::gather(&bare.layout(), &[&start]).unwrap());
    let cut = Params::gather(&bare.layout(), &[&cut.shared]).unwrap();
    for tensor in bare.layout().tensors() {
        let [cut, whole] = [&cut, &whole.shared].map(|model| model.tensor(&tensor.name).unwrap());
        for (cut, whole) in cut.iter().zip(whole) {
            assert!((cut - whole).abs() < 1e-4, "{}: {cut} {whole}", tensor.name);
        }
    }
}
