//! Federations that train named layers only.

use serde_json::{Value, json};

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, layout, quadratic};
use super::*;
use crate::learner::{Capability, Learner};

fn federation(name: &str, more: Value) -> QuadraticFederation {
    let silos = vec![
        quadratic([0.0, 1.0, -1.0, 2.0, 3.0]),
        quadratic([4.0, -1.0, 1.0, 1.0, 1.0]),
    ];
    QuadraticFederation::new(strategy(name, more), silos)
}

/// The models that silos use in the end.
fn deployed(of: &QuadraticFederation) -> Vec<Params> {
    let silos = of.learners.iter().zip(&of.personal).zip(&of.coalitions);
    let model = |((learner, personal), &coalition): ((&Arc<dyn Learner>, &Params), &u32)| {
        let model = &of.state.models[coalition as usize];
        learner.deployed(model, personal).unwrap()
    };
    silos.map(model).collect()
}

/// Tensors of a quadratic are independent of each other: what is trained is as if all were.
#[test]
fn only_named_layers_are_trained_and_travel_and_others_stay() {
    for (name, options) in [
        ("fedavg", json!({})),
        (
            "fedavg",
            json!({ "encoding": "f32", "stop": { "patience": 9 } }),
        ),
        ("fedprox", json!({ "mu": 0.3 })),
        ("scaffold", json!({})),
        ("fedadam", json!({})),
        ("ditto", json!({})),
        ("fednova", json!({})),
        ("feddyn", json!({})),
        ("apfl", json!({})),
        ("pfedme", json!({})),
    ] {
        let mut some = options.clone();
        some["trained"] = json!(["layer0", "norm0.weight"]);
        let some = federation(name, some).rounds(4);
        let all = federation(name, options).rounds(4);
        for tensor in some.learners[0].layout().tensors() {
            let known = ["layer0.weight", "norm0.weight"];
            let attached = |known: &&str| tensor.name.ends_with(*known);
            let ours = known.iter().any(attached) || tensor.name.starts_with("validation");
            assert!(ours, "{name}: {} travels", tensor.name);
        }
        let start = quadratic([0.0; 5]).initial(7);
        for (some, all) in deployed(&some).iter().zip(deployed(&all)) {
            assert_eq!(some.layout(), &layout());
            for trained in ["layer0.weight", "norm0.weight"] {
                assert_eq!(
                    some.tensor(trained),
                    all.tensor(trained),
                    "{name} {trained}"
                );
                assert_ne!(some.tensor(trained), start.tensor(trained), "{name}");
            }
            for frozen in ["layer1.weight", "layer1.bias", "norm0.count"] {
                assert_eq!(some.tensor(frozen), start.tensor(frozen), "{name} {frozen}");
            }
        }
    }
}

#[test]
fn layers_may_be_trained_and_personal() {
    let options = json!({ "trained": ["layer0", "layer1"], "personal": ["layer1.bias"] });
    let federation = federation("fedavg", options).rounds(3);
    let names = federation.learners[0].layout();
    let names: Vec<_> = names.tensors().iter().map(|t| t.name.as_str()).collect();
    assert_eq!(names, ["layer0.weight", "layer1.weight"]);
    let models = deployed(&federation);
    assert_ne!(
        models[0].tensor("layer1.bias"),
        models[1].tensor("layer1.bias")
    );
    assert_eq!(
        models[0].tensor("norm0.weight"),
        models[1].tensor("norm0.weight")
    );
}

#[test]
fn what_cannot_be_trained_in_part_is_refused() {
    let refused = |trained: Value, silo: QuadraticLearner| {
        let strategy = strategy("fedavg", json!({ "trained": trained }));
        let error = strategy.equip(Arc::new(silo)).err().unwrap();
        error.to_string()
    };
    let silo = || quadratic([0.0; 5]);
    let why = refused(json!(["layer7"]), silo());
    assert!(
        why.starts_with("trained: the model has no tensor or layer \"layer7\""),
        "{why}"
    );
    let why = refused(json!(["norm0.count"]), silo());
    assert!(why.contains("name a layer with weights"), "{why}");
    let cannot = silo().without(&[Capability::ModifiedGradients]);
    let why = refused(json!(["layer0"]), cannot);
    assert!(why.contains("modified gradient"), "{why}");
}
