//! What a report says where hardly anything can be measured.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::cli::{folder, good, json};

/// 500 patients, of whom one died.
fn table(hospital: usize) -> String {
    let mut text = String::from("age,lactate,outcome\n");
    for row in 0..500_usize {
        let (age, lactate) = (20 + (row * 17 + hospital * 5) % 61, (row * 37 % 53) as f64);
        let outcome = if row == 123 { "died" } else { "home" };
        writeln!(text, "{age},{:.2},{outcome}", 0.5 + lactate / 20.0).unwrap();
    }
    text
}

/// A scenario of two such hospitals with these lines of a task and of a strategy.
fn hospitals(folder: &Path, task: &str, strategy: &str) -> String {
    for (at, file) in ["a.csv", "b.csv"].into_iter().enumerate() {
        fs::write(folder.join(file), table(at)).unwrap();
    }
    let file = folder.join("rare.toml");
    let text = format!(
        "name = 'rare'\nrounds = 2\n[task.table]\n{task}\nsplit = {{ validation = 0.0, test = 0.3 }}\n\
         [task.table.data.rows]\nfiles = [{{ path = 'a.csv' }}, {{ path = 'b.csv' }}]\n[task.table.schema]\n\
         min-rows = 10\ntarget = {{ name = 'outcome', classes = ['home', 'died'], positive = 'died' }}\n\
         [[task.table.schema.feature]]\nname = ['age', 'lactate']\nrange = [0, 200]\n[strategy]\n{strategy}\n\
         training = {{ epochs = 1, batch = 16, optimiser = {{ name = 'sgd', rate = 0.05 }} }}\n"
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn one_positive_in_five_hundred_is_not_measured_and_the_report_says_why() {
    let folder = folder("rare-positive");
    let task = "model = 'logistic'\nmetric = 'roc-auc'";
    // A seed with which neither hospital holds its only case out.
    let file = hospitals(&folder, task, "name = 'fedavg'");
    let measured = |seed: &str| {
        let summary = json(&[&file, "--seed", seed, "--no-references"]);
        let silos = summary["silos"].as_array().unwrap().clone();
        silos.iter().any(|silo| silo["coalition"].is_number())
    };
    let seeds = ["1", "2", "3", "4", "5", "6", "7", "8"];
    let seed = seeds.into_iter().find(|seed| !measured(seed)).unwrap();
    let out = folder.join("report");
    let said = good(&[
        "simulate",
        &file,
        "--seed",
        seed,
        "--quiet",
        "--out",
        out.to_str().unwrap(),
    ]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Nothing was measured on held-out rows: roc-auc needs some of both classes at a silo",
        "(300 in all)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let page = fs::read_to_string(out.join("rare.html")).unwrap();
    assert!(page.contains("roc-auc needs some of both classes"));
}
