//! Buffers, such as the running statistics of norm layers, of the models that silos keep for
//! themselves.

use std::ops::ControlFlow;

use serde_json::json;

use super::equipped::strategy;
use super::quadratic::{layout, quadratic};
use super::*;
use crate::learner::{Learner, Training};

const COUNT: &str = "norm0.count";

fn training() -> Training {
    let optimiser = Optimiser::Sgd {
        rate: 0.2,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    Training {
        epochs: 5,
        batch: 0,
        optimiser,
        decay: None,
    }
}

/// This model, whose buffers hold this value where it has any.
fn counting(model: &Params, value: f32) -> Params {
    Params::build(model.layout(), |into| {
        into.copy_from_slice(model.values());
        for (at, tensor) in model.layout().tensors().iter().enumerate() {
            if [COUNT, MEAN].contains(&tensor.name.as_str()) {
                into[model.layout().range(at)].fill(value);
            }
        }
    })
}

/// Returns what a silo uses after one training for every one of these values of the global model's buffers,
/// with the last of these global models.
fn used(learner: &Arc<dyn Learner>, common: &[f32]) -> Params {
    let mut personal = learner.initial_personal(7);
    let mut model = learner.initial(7);
    for &value in common {
        model = counting(&learner.initial(7), value);
        let go_on = &mut |_| ControlFlow::Continue(());
        let update = learner.train(&model, &personal, &training(), 1, go_on);
        personal = update.unwrap().personal;
    }
    learner.deployed(&model, &personal).unwrap()
}

/// A training adds 1 to a buffer, which is 0 initially.
#[test]
fn local_models_have_local_buffers_and_global_ones_global_ones() {
    let own = [
        ("ditto", json!({})),
        ("ditto", json!({ "lambda": 0.0 })),
        ("ditto", json!({ "personal": ["norm0"] })),
        ("apfl", json!({})),
        ("pfedme", json!({ "local-rounds": 1 })),
        ("fedbn", json!({})),
        ("fedavg", json!({ "personal": ["norm0"] })),
        ("fedrep", json!({ "personal": ["norm-layers"] })),
    ];
    for (name, options) in own {
        let silo = Arc::new(quadratic([1.0; 5])) as Arc<dyn Learner>;
        let learner = strategy(name, options.clone()).equip(silo).unwrap();
        let count = used(&learner, &[100.0, 200.0]).tensor(COUNT).unwrap()[0];
        // FedRep trains twice in a round: the head, then the body.
        let trained = if name == "fedrep" { 4.0 } else { 2.0 };
        assert_eq!(count, trained, "{name} {options}");
    }
    let common = [
        "fedavg",
        "fedprox",
        "scaffold",
        "fedper",
        "fedrep",
        "hcct-p",
        "pfedgraph",
        "local",
        "robust-local",
    ];
    for name in common {
        let silo = Arc::new(quadratic([1.0; 5])) as Arc<dyn Learner>;
        let learner = strategy(name, json!({})).equip(silo).unwrap();
        let count = used(&learner, &[100.0, 200.0]).tensor(COUNT).unwrap()[0];
        assert_eq!(count, 200.0, "{name}");
    }
}

#[test]
fn a_silo_that_continues_alone_has_its_own_buffers() {
    let silo = Arc::new(quadratic([9.0; 5])) as Arc<dyn Learner>;
    let learner = strategy("maxfl", json!({ "variant": "joins" }))
        .equip(silo)
        .unwrap();
    // It leaves a model that is not near it but as near to where its first training led as it was
    // before: here it starts from the initial model in every round.
    let model = learner.initial(7);
    let mut personal = learner.initial_personal(7);
    let train = |personal: &Params, common: f32| {
        let go_on = &mut |_| ControlFlow::Continue(());
        let start = counting(&model, common);
        let update = learner.train(&start, personal, &training(), 1, go_on);
        update.unwrap().personal
    };
    let count = |personal: &Params, common: f32| {
        let used = learner.deployed(&counting(&model, common), personal);
        used.unwrap().tensor(COUNT).unwrap()[0]
    };
    personal = train(&personal, 100.0);
    assert_eq!(count(&personal, 100.0), 100.0, "it joined first");
    personal = train(&personal, 200.0);
    assert_eq!(
        count(&personal, 200.0),
        201.0,
        "it leaves, from the global model"
    );
    personal = train(&personal, 500.0);
    assert_eq!(count(&personal, 500.0), 202.0, "it continues from its own");
}

#[test]
fn the_agreed_scale_is_that_of_the_local_model_too() {
    let mut tensors = layout().tensors().to_vec();
    tensors.push(TensorSpec::new(MEAN, [2], Role::Buffer));
    tensors.push(TensorSpec::new(DEVIATION, [2], Role::Buffer));
    let layout = Layout::by_depth(tensors).unwrap();
    for (name, options) in [
        ("ditto", json!({})),
        ("apfl", json!({})),
        ("pfedme", json!({})),
        ("fedala", json!({})),
        ("maxfl", json!({ "variant": "joins" })),
    ] {
        let silo = QuadraticLearner::with_layout(&layout, &[1.0; 5]);
        let learner = strategy(name, options).equip(Arc::new(silo)).unwrap();
        let used = used(&learner, &[100.0, 200.0]);
        assert_eq!(used.tensor(MEAN), Some([200.0; 2].as_slice()), "{name}");
    }
}
