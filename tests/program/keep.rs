//! Models that a run learned, round by round, in a folder.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::cli::{folder, good, json, refused, scenario};

/// The table of contents of a kept run.
fn index(folder: &Path) -> Value {
    let text = fs::read_to_string(folder.join("index.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The values of the only tensor's worth of numbers in a safetensors file.
fn values(file: &Path) -> Vec<f32> {
    let bytes = fs::read(file).unwrap();
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let values = bytes[8 + header..].as_chunks().0.iter();
    values.map(|&value| f32::from_le_bytes(value)).collect()
}

#[test]
fn a_kept_run_has_models_contributions_and_losses_on_every_mesh() {
    let mut contents = Vec::new();
    for mesh in ["virtual", "direct"] {
        let folder = folder(&format!("keep-{mesh}"));
        let into = folder.to_str().unwrap();
        let args = ["diabetes", "--rounds", "3", "--mesh", mesh, "--keep", into];
        let summary = json(&args);
        let index = index(&folder);
        let rounds = index["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 3);
        for (kept, told) in rounds.iter().zip(summary["rounds"].as_array().unwrap()) {
            let groups = |all: &Value, of: &dyn Fn(&Value) -> Value| -> BTreeSet<String> {
                let all = all.as_array().unwrap().iter();
                all.map(|one| of(one).to_string()).collect()
            };
            let models = groups(&kept["models"], &|model| model["silos"].clone());
            assert_eq!(models, groups(&told["coalitions"], &Value::clone));
            let authors = groups(&kept["contributions"], &|one| one["silo"].clone());
            assert_eq!(authors, groups(&told["authors"], &Value::clone));
        }
        // A coalition's model is the mean of what its members sent, each with the weight of its rows.
        let last = &rounds[2];
        let of = |value: &Value| values(&folder.join(value["file"].as_str().unwrap()));
        let model = &last["models"][0];
        let silos = model["silos"].as_array().unwrap();
        let sent = last["contributions"].as_array().unwrap().iter();
        let sent = sent.filter(|one| silos.contains(&one["silo"]));
        let sent: Vec<_> = sent.map(of).collect();
        for (at, value) in of(model).into_iter().enumerate() {
            let each = sent.iter().map(|model| model[at]);
            let (low, high) = each.fold((f32::MAX, f32::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
            assert!(low <= value && value <= high, "{at}: {low} {value} {high}");
        }
        contents.push((index.clone(), folder.clone()));

        // The losses of the round in which coalitions were found lead to the same coalitions.
        let losses = folder.join(rounds[1]["losses"].as_str().unwrap());
        let solved = good(&[
            "solve",
            "coalitions",
            "-k",
            "2",
            "--json",
            losses.to_str().unwrap(),
        ]);
        let solved: Value = serde_json::from_str(&solved).unwrap();
        let authors = rounds[1]["contributions"].as_array().unwrap();
        let name = |at: &Value| authors[at.as_u64().unwrap() as usize]["silo"].clone();
        let named = |group: &Value| -> BTreeSet<String> {
            let members = group.as_array().unwrap().iter();
            members.map(|at| name(at).to_string()).collect()
        };
        let found: BTreeSet<_> = solved["coalitions"]
            .as_array()
            .unwrap()
            .iter()
            .map(named)
            .collect();
        let told = rounds[1]["models"].as_array().unwrap().iter();
        let told: BTreeSet<BTreeSet<String>> = told
            .map(|model| {
                let silos = model["silos"].as_array().unwrap().iter();
                silos.map(Value::to_string).collect()
            })
            .collect();
        assert_eq!(found, told);
        assert!(rounds[0].get("losses").is_none());

        let (code, error) = refused(&args);
        assert!(code == 2 && error.contains("is not empty"), "{error}");
    }
    let [(virtual_index, one), (direct_index, other)] = &contents[..] else {
        panic!("two runs")
    };
    assert_eq!(virtual_index, direct_index);
    for round in virtual_index["rounds"].as_array().unwrap() {
        let files = ["models", "contributions", "personal"].iter();
        for kept in files.flat_map(|key| round[key].as_array().unwrap()) {
            let file = kept["file"].as_str().unwrap();
            assert_eq!(
                fs::read(one.join(file)).unwrap(),
                fs::read(other.join(file)).unwrap(),
                "{file}"
            );
        }
    }
}

#[test]
fn what_a_strategy_keeps_between_rounds_is_there_by_name() {
    let folder = folder("keep-memory");
    let into = folder.to_str().unwrap();
    json(&[
        "diabetes",
        "--strategy",
        "afl",
        "--rounds",
        "3",
        "--keep",
        into,
    ]);
    let index = index(&folder);
    let rounds = index["rounds"].as_array().unwrap();
    let weights = |round: &Value| -> Vec<f64> {
        let lambda = round["kept"]["afl.lambda"].as_array().unwrap().iter();
        lambda.map(|weight| weight.as_f64().unwrap()).collect()
    };
    // The first round agrees on a scale.
    for round in &rounds[1..] {
        let sum: f64 = weights(round).iter().sum();
        assert!((sum - 1.0).abs() < 1e-6, "{round}");
    }
    // The silo that loses most gets more weight from round to round.
    assert_ne!(weights(&rounds[1]), weights(&rounds[2]));
}

#[test]
fn the_merges_of_hcct_have_the_utility_of_their_groups() {
    let kept = ["direct", "virtual"].map(merges_of);
    assert_eq!(kept[0], kept[1]);
}

/// Keeps a run of HCCT, and returns the merges of its second round.
fn merges_of(mesh: &str) -> Value {
    let folder = folder(&format!("keep-merges-{mesh}"));
    let into = folder.to_str().unwrap();
    let file = scenario(
        &format!("keep-merges-scenario-{mesh}"),
        "name = 'merges'\nseed = 1\nrounds = 3\n\n[task.table]\ndata = 'diabetes'\nstandardise = 'federation'\n\
         split = { validation = 0.0, test = 0.3 }\nmodel = { linear = { loss = 'absolute' } }\n\n\
         [strategy]\nname = 'hcct'\n\
         training = { epochs = 2, batch = 8, optimiser = { name = 'sgd', rate = 0.01 } }\n",
    );
    json(&[&file, "--mesh", mesh, "--keep", into]);
    let index = index(&folder);
    // The first round agrees on a scale, the second forms groups.
    let rounds = index["rounds"].as_array().unwrap();
    assert!(rounds[0].get("merges").is_none());
    let merges = &rounds[1]["merges"];
    let each = merges["merges"].as_array().unwrap();
    let silos = rounds[1]["contributions"].as_array().unwrap().len();
    assert_eq!(each.len(), silos - 1, "down to one group");
    let gains = each.iter().map(|merge| merge["benefit"].as_f64().unwrap());
    let gains: Vec<f64> = gains.take_while(|&gain| gain > 0.0).collect();
    let groups = silos - gains.len();
    assert_eq!(rounds[1]["models"].as_array().unwrap().len(), groups);
    let total = merges["alone"].as_f64().unwrap() + gains.iter().sum::<f64>();
    let utility = rounds[1]["kept"]["hcct.utility"].as_f64().unwrap();
    assert!(
        (total / silos as f64 - utility).abs() < 1e-6,
        "{total} {utility}"
    );
    merges.clone()
}

#[test]
fn found_groups_are_a_cut_of_the_merges_of_the_round_before() {
    let folder = folder("keep-found");
    let into = folder.to_str().unwrap();
    let args = ["diabetes", "--strategy", "hcct", "--rounds", "3"];
    json(&[&args[..], &["--mesh", "direct", "--keep", into]].concat());
    let index = index(&folder);
    // The first round agrees on a scale, the second forms groups, and the third measures them.
    let rounds = index["rounds"].as_array().unwrap();
    let silos = rounds[1]["contributions"].as_array().unwrap().len();
    assert_eq!(rounds[1]["models"].as_array().unwrap().len(), silos);
    let merges = rounds[1]["merges"]["merges"].as_array().unwrap();
    assert_eq!(merges.len(), silos - 1, "down to one group");
    let groups = rounds[2]["models"].as_array().unwrap().len();
    assert!(groups < silos, "{groups} of {silos}");
    assert!(rounds[2].get("merges").is_none());
}

/// The last round that was kept of a run of this strategy.
fn last_round_of(strategy: &str) -> Value {
    let folder = folder(&format!("keep-{strategy}"));
    let into = folder.to_str().unwrap();
    let args = ["diabetes", "--strategy", strategy, "--rounds", "6"];
    json(&[&args[..], &["--mesh", "direct", "--keep", into]].concat());
    let index = index(&folder);
    index["rounds"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn what_the_papers_authors_look_at_is_kept_for_their_methods() {
    let numbers = |round: &Value, key: &str| -> Vec<f64> {
        let list = round["kept"][key].as_array();
        let list = list.unwrap_or_else(|| panic!("no list {key}: {}", round["kept"]));
        list.iter().map(|one| one.as_f64().unwrap()).collect()
    };
    // TFL: the weights, those under a uniform prior, the prior from the graph, and how far apart they are.
    let round = last_round_of("tfl");
    let (weights, uniform) = (
        numbers(&round, "tfl.lambda"),
        numbers(&round, "tfl.lambda-uniform"),
    );
    let prior = numbers(&round, "tfl.prior");
    assert_eq!((weights.len(), prior.len()), (8, 8));
    let apart = weights.iter().zip(&uniform).map(|(a, b)| (a - b).abs());
    let variation = round["kept"]["tfl.tv"].as_f64().unwrap();
    assert!((apart.sum::<f64>() / 2.0 - variation).abs() < 1e-6);
    // The graph that the prior comes from: pairs of two of the eight silos, each pair once.
    let graph = &round["kept"]["tfl.graph"];
    assert_eq!(graph["nodes"], 8);
    let edges = graph["edges"].as_array().unwrap().iter();
    let edges: Vec<[u64; 2]> = edges
        .map(|edge| serde_json::from_value(edge.clone()).unwrap())
        .collect();
    let different: BTreeSet<_> = edges.iter().collect();
    assert!(!edges.is_empty() && different.len() == edges.len());
    assert!(edges.iter().all(|[a, b]| a < b && *b < 8), "{edges:?}");
    // FedCG: λ of the layer with branches, and A between the domains, whose rows sum to 1.
    let round = last_round_of("fedcg");
    assert!(round["kept"]["fedcg.lambda"].as_f64().is_some(), "{round}");
    let graph = numbers(&round, "fedcg.adjacency");
    let domains = graph.len().isqrt();
    assert_eq!(domains * domains, graph.len());
    for row in graph.chunks(domains) {
        assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{graph:?}");
    }
    // Clusters that members choose are the models with the silos that have them, each silo once.
    for strategy in ["ifca", "fesem", "cfl"] {
        let round = last_round_of(strategy);
        let models = round["models"].as_array().unwrap().iter();
        let silos = models.flat_map(|model| model["silos"].as_array().unwrap());
        let mut silos: Vec<_> = silos.map(|silo| silo.as_str().unwrap()).collect();
        silos.sort_unstable();
        silos.dedup();
        assert_eq!(silos.len(), 8, "{strategy}");
    }
}
