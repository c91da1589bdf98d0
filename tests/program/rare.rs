//! Content of a report where hardly anything can be measured.

#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::cli::{folder, good, scenario};

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

/// A scenario of two such hospitals.
fn hospitals(folder: &Path) -> String {
    for (at, file) in ["a.csv", "b.csv"].into_iter().enumerate() {
        fs::write(folder.join(file), table(at)).unwrap();
    }
    let file = folder.join("rare.toml");
    let text = "name = 'rare'\nrounds = 2\n[task.table]\nmodel = 'logistic'\nmetric = 'roc-auc'\n\
                split = { validation = 0.0, test = 0.3 }\n[task.table.data.rows]\n\
                files = [{ path = 'a.csv' }, { path = 'b.csv' }]\n[task.table.schema]\nmin-rows = 10\n\
                target = { name = 'outcome', classes = ['home', 'died'], positive = 'died' }\n\
                [[task.table.schema.feature]]\nname = ['age', 'lactate']\nrange = [0, 200]\n[strategy]\n\
                name = 'fedavg'\ntraining = { epochs = 1, batch = 16, optimiser = { name = 'sgd', rate = 0.05 } }\n";
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn one_positive_in_500_is_not_measured_with_the_reason() {
    let folder = folder("rare-positive");
    let file = hospitals(&folder);
    let out = folder.join("report");
    let said = good(&["simulate", &file, "--quiet", "--out", out.to_str().unwrap()]);
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

#[test]
fn heads_that_no_round_has_trained_are_named_in_the_report() {
    let file = scenario(
        "rare-heads",
        "name = 'heads'\nrounds = 1\n[task.table]\ndata = 'diabetes'\nstandardise = 'silo'\n\
         split = { validation = 0.0, test = 0.3 }\nmodel = { mlp = { hidden = [4] } }\n[strategy]\nname = 'fedper'\n\
         participation = 2\ntraining = { epochs = 2, batch = 8, optimiser = { name = 'sgd', rate = 0.01 } }\n",
    );
    let said = good(&["simulate", &file, "--quiet", "--no-references", "--json"]);
    assert!(
        said.contains("no round drew ") && said.contains("keep to themselves were never trained"),
        "{said}"
    );
}
