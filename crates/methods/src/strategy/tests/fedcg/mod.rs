//! FedCG over whole federations of quadratics, whose last layer is `layer1`: two values.

use serde_json::{Value, json};

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, layout, quadratic};
use super::*;
use crate::learner::{Learner, Optimiser, Training};

mod given;
mod variants;

fn silos() -> Vec<QuadraticLearner> {
    let centres = [[0.0, 1.0, -1.0, 2.0, 3.0], [4.0, -1.0, 1.0, 1.0, -3.0]];
    let curvature = [1.0, 0.5, 2.0, 0.7, 1.0];
    centres
        .map(|centre| quadratic(centre).with_curvature(&curvature))
        .into()
}

/// One step a round.
fn single() -> Value {
    let optimiser = json!({ "name": "sgd", "rate": 0.2 });
    json!({ "epochs": 1, "batch": 0, "optimiser": optimiser })
}

fn federation(more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy("fedcg", more), silos())
}

fn tensor<'a>(model: &'a Params, name: &str) -> &'a [f32] {
    let found = model.tensor(name);
    found.unwrap_or_else(|| panic!("{name} in {}", model.layout().describe()))
}

/// Rows of `A`.
fn graph(model: &Params, domains: usize) -> Vec<Vec<f32>> {
    let rows = tensor(model, "fedcg.graph.adjacency").chunks(domains);
    rows.map(<[f32]>::to_vec).collect()
}

#[test]
fn lambda_that_stays_0_is_fedavg_bit_for_bit() {
    for layers in ["last", "all"] {
        let silent = json!({
            "lambda": 0, "learn-lambda": false, "layers": layers, "training": single(),
        });
        let cut = federation(silent).rounds(5);
        let average = strategy("fedavg", json!({ "training": single() }));
        let average = QuadraticFederation::new(average, silos()).rounds(5);
        let shared = Params::gather(&layout(), &cut.state.models[..1].iter().collect::<Vec<_>>());
        assert_eq!(shared.unwrap(), average.state.models[0]);
        assert_eq!(cut.losses(), average.losses());
    }
    let moving =
        federation(json!({ "lambda": 0, "sigma": "identity", "training": single() })).rounds(2);
    assert_ne!(
        tensor(&moving.state.models[0], "fedcg.graph.layer1.lambda"),
        [0.0]
    );
}

#[test]
fn branches_lower_the_loss_and_everything_trained_moves() {
    for projection in [json!("full"), json!("none"), json!({ "bottleneck": 2 })] {
        for layers in ["last", "all"] {
            let options = json!({ "projection": projection, "layers": layers });
            let start = federation(options.clone());
            let end = federation(options).rounds(20);
            let before: f64 = start.losses().iter().sum();
            let after: f64 = end.losses().iter().sum();
            assert!(after < before, "{projection} {layers}: {before} {after}");
            let moved = |name: &str| {
                let of = |federation: &QuadraticFederation| {
                    tensor(&federation.state.models[0], name).to_vec()
                };
                assert_ne!(of(&start), of(&end), "{projection} {layers}: {name}");
            };
            moved("layer1.weight");
            moved("fedcg.graph.layer1.lambda");
            match projection {
                Value::Object(_) => moved("fedcg.graph.layer1.up"),
                _ if projection == "full" => moved("fedcg.graph.layer1.projection"),
                _ => (),
            }
        }
    }
}

#[test]
fn the_teacher_stays_between_refreshes_and_then_is_the_student() {
    let mut federation = federation(json!({ "refresh": 3, "student-rate": 0.1 }));
    let opinions = |federation: &QuadraticFederation| {
        let model = &federation.state.models[0];
        let names = ["fedcg.teacher.votes", "fedcg.student.votes"];
        names.map(|name| tensor(model, name).to_vec())
    };
    let mut last = opinions(&federation);
    assert_ne!(last[0], last[1], "drawn independently");
    for round in 1..=7 {
        federation.round();
        let now = opinions(&federation);
        assert_ne!(now[1], last[1], "the student learns");
        match round % 3 {
            0 => assert_eq!(now[0], now[1], "round {round}"),
            _ => assert_eq!(now[0], last[0], "round {round}"),
        }
        last = now;
    }
}

#[test]
fn the_graph_is_the_identity_and_then_by_the_averaged_branches() {
    let mut by_distance = federation(json!({ "domains": 3 }));
    let alone = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    assert_eq!(graph(&by_distance.state.models[0], 3), alone);
    for _ in 0..3 {
        by_distance.round();
        let model = &by_distance.state.models[0];
        let branch = |domain: usize| {
            let parts = ["bias", "weight"];
            parts.map(|part| tensor(model, &format!("fedcg.domain{domain}.layer1.{part}"))[0])
        };
        let near = |i: usize, j: usize| {
            let ([a, b], [c, d]) = (branch(i), branch(j));
            1.0 / f64::from((a - c) * (a - c) + (b - d) * (b - d)).sqrt()
        };
        for (i, row) in graph(model, 3).iter().enumerate() {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
            assert_eq!(row[i], 0.5);
            let others: Vec<usize> = (0..3).filter(|&j| j != i).collect();
            let all: f64 = others.iter().map(|&j| near(i, j)).sum();
            for j in others {
                let expected = 0.5 * near(i, j) / all;
                assert!((f64::from(row[j]) - expected).abs() < 1e-5, "{row:?}");
            }
        }
    }
    let uniform = json!({ "domains": 3, "adjacency": "uniform", "beta": 0.4 });
    let uniform = federation(uniform).rounds(1);
    let row = [0.4f32, 0.3, 0.3];
    for (at, got) in graph(&uniform.state.models[0], 3).iter().enumerate() {
        let mut got = got.clone();
        got.swap(0, at);
        assert_eq!(got, row);
    }
    for more in [json!({ "beta": 1 }), json!({ "adjacency": "identity" })] {
        let mut options = json!({ "domains": 3 });
        options
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let federation = federation(options).rounds(2);
        assert_eq!(graph(&federation.state.models[0], 3), alone);
    }
}

#[test]
fn one_domain_is_one_branch_for_all_rows() {
    let soft = federation(json!({ "domains": 1 })).rounds(4);
    let hard = federation(json!({ "domains": 1, "assignment": "hard" })).rounds(4);
    let model = &soft.state.models[0];
    assert_eq!(graph(model, 1), [[1.0]]);
    assert_eq!(model.tensor("fedcg.domain1.layer1.weight"), None);
    assert_eq!(soft.losses(), hard.losses());
}

/// The equipped learner of one silo, a model of a federation with these options, and the model
/// after one step.
fn one_step(more: Value, rounds: u64) -> (Params, Params, BTreeMap<String, f64>) {
    let federation = federation(more).rounds(rounds);
    let start = federation.state.models[0].clone();
    let training = Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 0.1,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let learner: &dyn Learner = &*federation.learners[0];
    let update = learner
        .train(&start, &Params::empty(), &training, 1, go_on)
        .unwrap();
    (start, update.shared, update.metrics.values)
}

#[test]
fn a_row_of_one_domain_teaches_all_domains_that_are_connected() {
    let moved = |rounds: u64| -> Vec<bool> {
        let (start, end, counts) = one_step(json!({ "domains": 3, "sigma": "identity" }), rounds);
        let found: Vec<f64> = (0..3).map(|at| counts[&format!("domain-{at}")]).collect();
        assert_eq!(found.iter().sum::<f64>(), 1.0);
        let name = |domain: usize| format!("fedcg.domain{domain}.layer1.weight");
        let changed = |domain: usize| tensor(&start, &name(domain)) != tensor(&end, &name(domain));
        (0..3).map(changed).collect()
    };
    // Every domain is alone until the first aggregation.
    assert_eq!(moved(0).iter().filter(|&&moved| moved).count(), 1);
    assert_eq!(moved(1), [true; 3]);
}

#[test]
fn a_step_of_the_branches_is_that_of_the_chain_rule() {
    // Without W and σ, V̂ = A·V, and ∂L/∂V_j = A_ij·λ·∂L/∂P for the row's domain i.
    let options = json!({ "domains": 2, "sigma": "identity", "projection": "none" });
    let (start, end, counts) = one_step(options, 2);
    let own = usize::from(counts["domain-1"] == 1.0);
    let at = |model: &Params, name: &str| f64::from(tensor(model, name)[0]);
    let branch =
        |model: &Params, domain: usize| at(model, &format!("fedcg.domain{domain}.layer1.weight"));
    let bias = |domain: usize| at(&start, &format!("fedcg.domain{domain}.layer1.bias"));
    let shares = &graph(&start, 2)[own];
    let shares = [f64::from(shares[0]), f64::from(shares[1])];
    let lambda = at(&start, "fedcg.graph.layer1.lambda");
    let mixed = shares[0] * branch(&start, 0) + shares[1] * branch(&start, 1);
    let mixed_bias = shares[0] * bias(0) + shares[1] * bias(1);
    let silo = silos().remove(0);
    let slope = |place: usize, shared: &str, mixed: f64| {
        silo.curvature()[place] * (at(&start, shared) + lambda * mixed - silo.centre()[place])
    };
    let weight = slope(3, "layer1.weight", mixed);
    let expected = at(&start, "layer1.weight") - 0.1 * weight;
    assert!((at(&end, "layer1.weight") - expected).abs() < 1e-6);
    for (domain, share) in shares.iter().enumerate() {
        let expected = branch(&start, domain) - 0.1 * share * lambda * weight;
        assert!((branch(&end, domain) - expected).abs() < 1e-6);
    }
    let expected =
        lambda - 0.1 * (weight * mixed + slope(2, "layer1.bias", mixed_bias) * mixed_bias);
    assert!((at(&end, "fedcg.graph.layer1.lambda") - expected).abs() < 1e-6);
}

#[test]
fn graph_and_teacher_are_not_taken_from_a_contribution() {
    let federation = federation(json!({})).rounds(1);
    let state = &federation.state;
    let honest = ModelEntry {
        model: state.models[0].clone(),
        coalition: Some(0),
        weight: Some(3),
        member: None,
    };
    let forged = Params::build(state.models[0].layout(), |into| {
        into.copy_from_slice(state.models[0].values());
        for name in ["fedcg.graph.adjacency", "fedcg.teacher.votes"] {
            let layout = state.models[0].layout();
            into[layout.range(layout.position(name).unwrap())].fill(9.0);
        }
    });
    let forged = ModelEntry {
        model: forged,
        ..honest.clone()
    };
    let strategy = &*federation.strategy;
    let settle =
        |entries: Vec<ModelEntry>| round(strategy, state, &manifest(entries, None), 2).state;
    let (clean, other) = (settle(vec![honest.clone()]), settle(vec![honest, forged]));
    assert_eq!(clean.models, other.models);
    assert_eq!(clean.memory.count("fedcg.rounds"), Some(2));
}

#[test]
fn contributions_with_an_absurd_lambda_or_projection_are_refused() {
    let federation = federation(json!({})).rounds(1);
    let model = &federation.state.models[0];
    let with = |name: &str, value: f32| ModelEntry {
        model: Params::build(model.layout(), |into| {
            into.copy_from_slice(model.values());
            into[model.layout().range(model.layout().position(name).unwrap())][0] = value;
        }),
        coalition: Some(0),
        weight: Some(3),
        member: None,
    };
    let admit = |name, value| federation.strategy.admit(&with(name, value), 2);
    for name in ["fedcg.graph.layer1.lambda", "fedcg.graph.layer1.projection"] {
        assert_eq!(admit(name, 999.0), Ok(()), "{name}");
        for value in [-1001.0, 1e30] {
            let error = admit(name, value).unwrap_err();
            assert!(
                error.contains(name) && error.contains("at most 1000"),
                "{error}"
            );
        }
    }
    // What no contribution decides may be anything.
    assert_eq!(admit("fedcg.graph.adjacency", 1e30), Ok(()));
}

#[test]
fn the_report_counts_the_rows_of_every_domain() {
    let rows = |federation: &QuadraticFederation| -> u64 {
        federation.learners.iter().map(|silo| silo.samples()).sum()
    };
    let exact = federation(json!({ "domains": 3 })).rounds(2);
    let kept = exact.state.memory.counts("fedcg.rows", 3).unwrap();
    assert_eq!(kept.iter().sum::<u64>(), rows(&exact));
    let silos = exact.state.memory.counts("fedcg.silos", 3).unwrap();
    for (rows, silos) in kept.iter().zip(silos) {
        assert_eq!((*rows > 0, *silos <= 2), (*silos > 0, true));
    }
    assert_eq!(
        tensor(&exact.state.models[0], "fedcg.graph.shares"),
        [0.0; 3]
    );
    // Without numbers of rows: mean shares.
    let equal = federation(json!({ "domains": 3, "weight": "equal" })).rounds(1);
    assert!(equal.state.memory.counts("fedcg.rows", 3).is_none());
    assert!(equal.state.memory.distribution("fedcg.shares", 3).is_some());
    let model = &exact.state.models[0];
    for wrong in [-0.5, 1.5, f32::NAN] {
        let forged = Params::build(model.layout(), |into| {
            into.copy_from_slice(model.values());
            let at = model.layout().position("fedcg.graph.shares").unwrap();
            into[model.layout().range(at)][0] = wrong;
        });
        let entry = ModelEntry {
            model: forged,
            coalition: Some(0),
            weight: Some(3),
            member: None,
        };
        let error = exact.strategy.admit(&entry, 3).unwrap_err();
        assert!(error.contains("shares of rows from 0 to 1"), "{error}");
    }
}

#[test]
fn options_out_of_range_are_refused() {
    for (more, sentence) in [
        (
            json!({ "domains": 0 }),
            "domains must be from 1 to 1024, not 0",
        ),
        (json!({ "beta": 1.5 }), "beta must be from 0 to 1, not 1.5"),
        (json!({ "refresh": 0 }), "refresh must be at least 1, not 0"),
        (
            json!({ "student-rate": 0 }),
            "student-rate must be a number above 0",
        ),
        (
            json!({ "hidden": [0] }),
            "hidden must be widths of at least 1",
        ),
        (
            json!({ "projection": { "bottleneck": 0 } }),
            "projection.bottleneck must be at least 1",
        ),
        (
            json!({ "training": { "epochs": 1, "batch": 0, "optimiser": { "name": "adam", "rate": 0.1 } } }),
            "training.optimiser must be sgd for fedcg",
        ),
    ] {
        let mut config = json!({ "name": "fedcg", "training": single() });
        config
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let config: StrategyConfig = serde_json::from_value(config).unwrap();
        let error = config.validate(4).unwrap_err().to_string();
        assert!(error.contains(sentence), "{error}");
    }
}
