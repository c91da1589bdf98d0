//! The ablations of FedCG's tables 3 and 4: no agnostic part, other starts of the graph, a graph for every
//! layer.

use super::*;
use crate::strategy::findings;

/// The options with more of them.
fn with(options: &Value, more: Value) -> QuadraticFederation {
    let mut all = options.clone();
    let more = more.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(more);
    federation(all)
}

#[test]
fn without_an_agnostic_part_a_layer_is_its_branches_alone() {
    for (graph, projection) in [("identity", "none"), ("distance", "full")] {
        let options = json!({
            "domains": 2, "agnostic": false, "sigma": "identity", "adjacency": graph,
            "projection": projection,
        });
        let start = federation(options.clone());
        let end = federation(options).rounds(8);
        for model in [&start.state.models[0], &end.state.models[0]] {
            assert_eq!(tensor(model, "layer1.weight"), [0.0], "{graph}");
            assert_eq!(tensor(model, "layer1.bias"), [0.0], "{graph}");
            assert_ne!(tensor(model, "layer0.weight"), [0.0, 0.0]);
        }
        let sum = |federation: &QuadraticFederation| federation.losses().iter().sum::<f64>();
        assert!(sum(&end) < sum(&start), "{graph}");
    }
}

#[test]
fn a_first_graph_is_identity_drawn_or_uniform_then_by_distance() {
    let options = json!({ "domains": 3, "beta": 0.4 });
    let first = |start: &str| {
        let federation = with(&options, json!({ "adjacency-start": start }));
        graph(&federation.state.models[0], 3)
    };
    let uniform = first("uniform");
    let drawn = first("random");
    for at in 0..3 {
        assert_eq!(uniform[at][at], 0.4);
        assert!((uniform[at][(at + 1) % 3] - 0.3).abs() < 1e-6);
        assert!((drawn[at].iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert!(drawn[at].iter().all(|&share| share > 0.0 && share < 1.0));
    }
    assert_ne!(drawn[0], drawn[1]);
    assert_eq!(drawn, first("random"), "from the seed");
    // Branches begin alike, and β is on the diagonal after one round.
    let after = with(&options, json!({ "adjacency-start": "random" })).rounds(1);
    assert_eq!(graph(&after.state.models[0], 3)[1][1], 0.4);
}

#[test]
fn every_layer_may_have_a_graph_of_its_own_branches() {
    let options =
        json!({ "domains": 3, "layers": "all", "graphs": "per-layer", "sigma": "identity" });
    let federation = federation(options).rounds(2);
    let model = &federation.state.models[0];
    assert_eq!(model.tensor("fedcg.graph.adjacency"), None);
    for layer in ["layer0", "layer1", "norm0"] {
        let own = tensor(model, &format!("fedcg.graph.{layer}.adjacency"));
        let branch = |domain: usize| -> Vec<f64> {
            ["bias", "weight"]
                .iter()
                .filter_map(|part| model.tensor(&format!("fedcg.domain{domain}.{layer}.{part}")))
                .flatten()
                .map(|&value| value.into())
                .collect()
        };
        let near = |i: usize, j: usize| {
            let pairs = branch(i).into_iter().zip(branch(j));
            1.0 / pairs.map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
        };
        let expected = 0.5 * near(0, 1) / (near(0, 1) + near(0, 2));
        assert!((f64::from(own[1]) - expected).abs() < 1e-5, "{layer}");
    }
    let one = |layer: &str| tensor(model, &format!("fedcg.graph.{layer}.adjacency")).to_vec();
    assert_ne!(one("layer0"), one("layer1"));
}

#[test]
fn lambda_and_the_graph_are_found_in_a_state_for_reports() {
    let one = federation(json!({ "domains": 2, "layers": "all" })).rounds(1);
    let found = findings(&one.state);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "fedcg.adjacency",
            "fedcg.lambda.layer0",
            "fedcg.lambda.layer1",
            "fedcg.lambda.norm0",
        ]
    );
    let lambda = tensor(&one.state.models[0], "fedcg.graph.layer1.lambda")[0];
    let kept = Kept::Number(lambda.into());
    assert_eq!(found["fedcg.lambda.layer1"], kept);
    assert!(matches!(&found["fedcg.adjacency"], Kept::Numbers(rows) if rows.len() == 4));
    let each = federation(json!({ "domains": 2, "graphs": "per-layer" })).rounds(1);
    assert!(findings(&each.state).contains_key("fedcg.adjacency.layer1"));
    let other = QuadraticFederation::new(strategy("fedavg", json!({})), silos()).rounds(1);
    assert!(findings(&other.state).is_empty());
}

#[test]
fn drawn_clients_take_part_in_a_round() {
    let options = json!({ "participation": 1 });
    let mut some = federation(options);
    let before = some.state.models[0].clone();
    some = some.rounds(2);
    assert_ne!(some.state.models[0], before);
    assert_eq!(some.state.memory.count("fedcg.rounds"), Some(2));
}
