//! FedCG in the form of its experiment on FEMNIST, on a small folder of LEAF with made-up letters.

#![allow(clippy::unwrap_used)]

use std::fs;

use lab::run;
use serde_json::{Value, json};
use simulations::{Options, Scenario};

/// A picture of 28×28 pixels with a bar at the height of its class, for a writer of light or dark ink.
fn letter(class: usize, ink: f64) -> Vec<f64> {
    let bar = |row: usize| row / 5 == class;
    (0..28 * 28)
        .map(|at| if bar(at / 28) { ink } else { 0.0 })
        .collect()
}

/// Three writers with twelve letters each.
fn folder() -> Value {
    let writer = |ink: f64| {
        let letters = (0..12).map(|at| letter(at % 3, ink)).collect::<Vec<_>>();
        json!({ "x": letters, "y": (0..12).map(|at| at % 3).collect::<Vec<_>>() })
    };
    json!({
        "users": ["f0", "f1", "f2"],
        "num_samples": [12, 12, 12],
        "user_data": { "f0": writer(1.0), "f1": writer(0.4), "f2": writer(0.8) },
    })
}

#[test]
fn fedcg_learns_letters_with_branches_in_the_last_convolution() {
    let scratch = tempfile::tempdir().unwrap();
    fs::create_dir(scratch.path().join("femnist")).unwrap();
    fs::write(
        scratch.path().join("femnist/all.json"),
        folder().to_string(),
    )
    .unwrap();
    let letters = scratch.path().join("femnist");
    let text = format!(
        r#"
name = "femnist"
seed = 2
rounds = 2

[task.table]
data = {{ images = {{ from = {{ files = [{{ path = {letters:?} }}] }} }} }}
split = {{ validation = 0.0, test = 0.25 }}
model = {{ network = {{ layers = "leaf-femnist", width = 0.05 }} }}

[strategy]
name = "fedcg"
projection = {{ bottleneck = 16 }}
domains = 2
participation = 2
training = {{ epochs = 1, batch = 10, optimiser = {{ name = "sgd", rate = 0.05 }} }}
"#
    );
    let scenario = Scenario::parse("femnist.toml", &text).unwrap();
    let options = Options {
        threads: 1,
        references: false,
        ..Options::default()
    };
    let summary = run(&scenario, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(summary.rounds.len(), 2);
    for round in &summary.rounds {
        assert_eq!(round.authors.len(), 2, "two of three writers are drawn");
        // The second of two convolutions, and neither of the dense layers.
        let names: Vec<_> = round.memory.keys().map(String::as_str).collect();
        assert!(names.contains(&"fedcg.adjacency"), "{names:?}");
        let lambdas: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with("fedcg.lambda"))
            .collect();
        assert_eq!(lambdas, [&"fedcg.lambda.layer01.conv"], "{names:?}");
    }
    let measured = |silo: &lab::summary::SiloInfo| silo.coalition.is_some_and(f64::is_finite);
    assert!(summary.silos.iter().all(measured));
}
