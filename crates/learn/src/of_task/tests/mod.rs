#![allow(clippy::unwrap_used)]
use crate::data::DataSet;
use crate::data::Target;
use serde::Deserialize;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;
use task::TaskConfig;
use task::metrics::MetricName;

use methods::learner::{Optimiser, Task, Training};
use methods::params::weighted_mean;
use methods::{Params, Split};

use super::*;
use crate::data::Table;

mod devices;
mod networks;
mod sources;

/// The folder of data files; says so if it is not set and the test is skipped.
fn real_data() -> Option<PathBuf> {
    let folder = std::env::var_os("ROTA_DATA").map(PathBuf::from);
    if folder.is_none() {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
    }
    folder
}

/// FedAvg by hand, weighted by samples: the sum of |weights| and the test accuracy at the end.
fn digits_fedavg(folder: &Path, silos: usize, rounds: u64) -> (f64, f64) {
    let study = TaskConfig::Digits8Bench
        .study(Some(silos), Some(folder), 0)
        .unwrap();
    let optimiser = Optimiser::Sgd {
        rate: 0.05,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    let task = Task::Train(Training {
        epochs: 1,
        batch: 32,
        optimiser,
        decay: None,
    });
    let none = Params::empty();
    let mut model = study.silos[0].learner.initial(0);
    let started = Instant::now();
    for round in 1..=rounds {
        let updates = study.silos.iter().map(|silo| {
            let seed = silo.learner.seed(7, round);
            let go_on = &mut |_| ControlFlow::Continue(());
            silo.learner
                .carry_out(&model, &none, &task, seed, go_on)
                .unwrap()
        });
        let updates: Vec<_> = updates.collect();
        let weighted: Vec<_> = updates
            .iter()
            .map(|update| (&update.shared, update.samples as f64))
            .collect();
        model = weighted_mean(&weighted).unwrap();
    }
    eprintln!(
        "digits {silos} × {rounds}: {:.3} s",
        started.elapsed().as_secs_f64()
    );
    let sum = model
        .values()
        .iter()
        .map(|value| f64::from(value.abs()))
        .sum();
    let metrics = study.silos[0]
        .learner
        .evaluate(&model, &none, Split::Test)
        .unwrap();
    (sum, metrics.values["accuracy"])
}

#[test]
fn digits_reach_the_models_of_the_benchmark() {
    let Some(folder) = real_data() else { return };
    for (silos, rounds, sum, accuracy) in [(20, 30, 610.335, 0.7827), (100, 10, 574.564, 0.1448)] {
        let (got_sum, got_accuracy) = digits_fedavg(&folder, silos, rounds);
        assert!((got_sum - sum).abs() < 0.01, "{silos} silos: {got_sum}");
        assert!(
            (got_accuracy - accuracy).abs() < 1e-4,
            "{silos} silos: {got_accuracy}"
        );
    }
}

#[test]
fn digits_have_no_order_beyond_their_rounds() {
    let Some(folder) = real_data() else { return };
    let study = TaskConfig::Digits8Bench
        .study(None, Some(&folder), 0)
        .unwrap();
    assert_eq!(study.silos.len(), 20);
    assert_eq!(
        study.silos[0].rows,
        RowCounts {
            train: 44,
            validation: 0,
            test: 359
        }
    );
    let learner = &study.silos[0].learner;
    let optimiser = Optimiser::Sgd {
        rate: 0.05,
        momentum: 0.0,
        weight_decay: 0.0,
    };
    let task = Task::Train(Training {
        epochs: 1,
        batch: 32,
        optimiser,
        decay: None,
    });
    for round in [0, 31] {
        let go_on = &mut |_| ControlFlow::Continue(());
        let start = learner.initial(0);
        let error = learner
            .carry_out(&start, &Params::empty(), &task, round, go_on)
            .unwrap_err();
        let expected = format!("the order of rows is given for rounds 1 to 30, not for {round}");
        assert_eq!(error.to_string(), expected);
    }
    let error = TaskConfig::Digits8Bench
        .study(Some(7), Some(&folder), 0)
        .err()
        .unwrap();
    assert!(error.to_string().contains("digits_7.json"), "{error}");
}

#[derive(Debug, Serialize, Deserialize)]
struct TestScenario {
    task: TaskConfig,
}

fn config(text: &str) -> TaskConfig {
    toml::from_str::<TestScenario>(text).unwrap().task
}

fn fails(text: &str) -> String {
    config(text).study(None, None, 0).err().unwrap().to_string()
}

#[test]
fn the_diabetes_study_by_default() {
    let task = config("[task.table]\ndata = 'diabetes'\nmodel.linear.loss = 'absolute'");
    let study = task.study(None, None, 5).unwrap();
    assert_eq!(study.silos.len(), 8);
    assert_eq!(study.metric.name, MetricName::Mae);
    assert!(!study.metric.name.higher_is_better());
    assert_eq!(study.metric.unit, "points of disease progression");
    let layout = study.silos[0].learner.layout();
    assert_eq!(
        layout.describe(),
        "bias [1], scale.deviation [11], scale.mean [11], scale.rest [11], weight [1, 10]"
    );
    for silo in &study.silos {
        assert_eq!(silo.learner.layout(), layout);
        assert_eq!(silo.learner.samples(), silo.rows.of(Split::Train) as u64);
        assert_eq!(silo.learner.initial(5), study.silos[0].learner.initial(5));
    }
    let all: usize = study
        .silos
        .iter()
        .map(|s| s.rows.train + s.rows.validation + s.rows.test)
        .sum();
    assert_eq!(all, 442);
    assert_eq!(task.study(Some(5), None, 5).unwrap().silos.len(), 5);
}

#[test]
fn a_written_configuration_is_read_back_unchanged() {
    let task = config(
        "[task.table]\nmodel.mlp.hidden = [8]\nstandardise = 'federation'\nsplit.test = 0.2\n\
         robust = { norm = 'linf', label-cost = inf }\nmetric = 'roc-auc'\n\
         [task.table.data.rows]\nfiles = [{ path = 'a.csv' }]\n[task.table.data.rows.columns]\ntarget = 'y'\npositive = '> 0'",
    );
    let text = toml::to_string(&TestScenario { task: task.clone() }).unwrap();
    assert_eq!(config(&text), task);
    assert_eq!(config("task = 'digits8-bench'"), TaskConfig::Digits8Bench);
    assert_eq!(
        config("[task.constant]\nparameters = 5"),
        TaskConfig::Constant { parameters: 5 }
    );
}

#[test]
fn silos_have_the_configured_domains() {
    let text = "[task.table]\ndata = 'diabetes'\nmodel.linear = {}\n";
    let task = config(&format!("{text}domains = [3, 0, 1, 1]\n"));
    let study = task.study(Some(4), None, 0).unwrap();
    for (silo, domain) in study.silos.iter().zip([3, 0, 1, 1]) {
        let part = silo
            .learner
            .row_access()
            .unwrap()
            .only(Split::Train, &[0, 1])
            .unwrap();
        let rest = silo
            .learner
            .row_access()
            .unwrap()
            .holding_out(0, 2, 7)
            .unwrap();
        for learner in [&silo.learner, &part, &rest] {
            assert_eq!(learner.domain(), Some(domain));
        }
    }
    assert_eq!(study.pooled.unwrap()(&[2, 3]).domain(), None);
    let written = toml::to_string(&TestScenario { task: task.clone() }).unwrap();
    assert_eq!(config(&written), task);
    assert_eq!(
        task.study(None, None, 0).err().unwrap().to_string(),
        "`domains` has 4 entries for 8 silos: give one for every silo, in their order"
    );
    // Without given domains none are written.
    let task = config(text);
    let silos = task.study(None, None, 0).unwrap().silos;
    assert!(silos.iter().all(|silo| silo.learner.domain().is_none()));
    let written = toml::to_string(&TestScenario { task }).unwrap();
    assert!(!written.contains("domains"), "{written}");
}

#[test]
fn unknown_keys_and_names_are_refused_with_their_line() {
    for (text, line, expected) in [
        (
            "[task.table]\ndata = 'diabetes'\nmodel.linear.los = 'absolute'",
            3,
            "los",
        ),
        ("[task.table]\ndata = 'diabetes'\nmodel = 'tree'", 3, "tree"),
        (
            "[task.table]\nmodel = 'logistic'\ndata.rows.file = 'a'",
            3,
            "file",
        ),
        ("[task.constant]\nparameter = 3", 2, "parameter"),
        (
            "[task.table]\ndata = 'heart'\nmodel = 'logistic'\nsplit.tset = 1",
            4,
            "tset",
        ),
    ] {
        let error = toml::from_str::<TestScenario>(text)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("line {line}")) && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn inconsistent_settings_are_refused_with_the_reason() {
    let diabetes = "[task.table]\ndata = 'diabetes'\n";
    assert_eq!(
        fails(&format!("{diabetes}model = 'logistic'")),
        "a logistic model needs two classes: give `positive` or two `classes`, or use another model"
    );
    assert_eq!(
        fails(&format!("{diabetes}model.mlp.hidden = [4, 0]")),
        "mlp: every hidden width must be at least 1"
    );
    assert_eq!(
        fails(&format!(
            "{diabetes}model.linear = {{}}\nrobust.label-cost = 0.0"
        )),
        "`robust.label-cost`: the cost of changing a label must be above 0 (or infinite), not 0"
    );
    assert_eq!(
        fails(&format!(
            "{diabetes}model.linear = {{}}\nmetric = 'accuracy'"
        )),
        "`metric = \"accuracy\"` does not suit this target: choose one of loss, mae, mse"
    );
    assert!(
        fails(&format!("{diabetes}model.linear = {{}}\nsplit.test = 1.0")).starts_with("`split`: ")
    );
    assert!(fails("[task.table]\ndata = 'heart'\nmodel = 'logistic'").contains("--data DIR"));
    assert_eq!(
        fails("[task.constant]\nparameters = 0"),
        "`parameters` must be at least 1"
    );
    let none = config("[task.constant]\nparameters = 3")
        .study(Some(0), None, 0)
        .err()
        .unwrap();
    assert_eq!(none.to_string(), "a federation needs at least one silo");
}

#[test]
fn heart_refuses_more_than_four_silos() {
    let Some(folder) = real_data() else { return };
    let task = config("[task.table]\ndata = 'heart'\nmodel = 'logistic'\nsplit.test = 0.34");
    let study = task.study(None, Some(&folder), 1).unwrap();
    let train: Vec<usize> = study.silos.iter().map(|silo| silo.rows.train).collect();
    assert_eq!(train, [199, 172, 30, 85], "as in Fed-Heart-Disease");
    assert_eq!(study.metric.name, MetricName::Accuracy);
    assert_eq!(
        study.silos[0].learner.layout().describe(),
        "bias [1], weight [1, 13]"
    );
    let optimiser = Optimiser::Sgd {
        rate: 0.1,
        momentum: 0.9,
        weight_decay: 1e-3,
    };
    let training = Task::Train(Training {
        epochs: 100,
        batch: 32,
        optimiser,
        decay: None,
    });
    let (learner, go_on) = (&study.silos[0].learner, &mut |_| ControlFlow::Continue(()));
    let update = learner
        .carry_out(&learner.initial(0), &Params::empty(), &training, 1, go_on)
        .unwrap();
    let metrics = learner
        .evaluate(&update.shared, &Params::empty(), Split::Test)
        .unwrap();
    assert!(metrics.values["accuracy"] > 0.7, "{metrics:?}");
    let error = task.study(Some(5), Some(&folder), 1).err().unwrap();
    assert_eq!(
        error.to_string(),
        "5 silos were asked for, but the heart data have 4"
    );
}

#[test]
fn null_training_allows_any_number_of_silos() {
    let study = config("[task.constant]\nparameters = 1000")
        .study(Some(20), None, 0)
        .unwrap();
    assert_eq!(study.silos.len(), 20);
    assert_eq!(study.silos[19].name, "silo 20");
    assert_eq!(study.silos[0].learner.layout().len(), 1000);
}

#[test]
fn a_column_in_another_unit_is_noted_and_a_rare_level_is_not() {
    let task =
        config("[task.table]\ndata = 'diabetes'\nmodel = { linear = { loss = 'absolute' } }");
    let TaskConfig::Table(task) = task else {
        panic!("a table");
    };
    let silo = |name: &str, unit: f64, level: u32| {
        let mut table = Table::new(vec!["height".into(), "smokes".into()]);
        for row in 0..40 {
            let height = unit * (1.5 + 0.01 * f64::from(row));
            let smokes = f64::from(u8::from(row % 20 < level));
            table.push(&[height, smokes], f64::from(row));
        }
        (name.to_owned(), table)
    };
    let notes = |cm: f64| {
        let data = DataSet {
            target: Target::Number {
                unit: String::new(),
            },
            silos: vec![silo("a", 1.0, 4), silo("b", cm, 4), silo("c", 1.0, 18)],
            schema: None,
            notes: Vec::new(),
            subgroups: Vec::new(),
        };
        study_of(&task, data, 1).unwrap().notes
    };
    let found = notes(100.0);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("perhaps in another unit: height at b (mean 17"),
        "{found:?}"
    );
    assert!(notes(1.0).is_empty());
}
