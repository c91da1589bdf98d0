//! Several rows of one patient.

use std::collections::BTreeSet;

use methods::learner::Outputs;
use methods::serving::{Alone, Effort, LocalModels};

use super::*;

/// Six visits of each patient, with values that are his own; the outcome is a coin toss per patient.
fn visits(patients: u32) -> Table {
    let mut rng = stream(5, "visits");
    let columns = (0..6).map(|at| format!("lab{at}"));
    let mut table = Table::new(columns.collect());
    for patient in 0..patients {
        let own: Vec<f64> = (0..6).map(|_| 4.0 * uniform(&mut rng) - 2.0).collect();
        let outcome = f64::from(uniform(&mut rng) < 0.5);
        for _ in 0..6 {
            let each = own.iter().map(|value| value + 0.05 * uniform(&mut rng));
            table.push(&each.collect::<Vec<_>>(), outcome);
            table.groups.push(patient);
        }
    }
    table
}

fn of(table: &Table, validation: f64) -> TableLearner {
    let target = Target::Classes(vec!["no".into(), "yes".into()]);
    let split = SplitConfig {
        validation,
        ..SplitConfig::default()
    };
    let data = Prepared::new("s", table, target, &split, Standardise::Silo, 9).unwrap();
    let model = Box::new(Mlp::new(6, &[64], 2));
    let cost = TransportCost::default();
    TableLearner::new(data, model, Loss::Softmax, Standardise::Silo, cost)
}

fn area(learner: &TableLearner) -> f64 {
    let update = run(learner, &learner.initial(0), &task(120, 16, 0.03), 1);
    test_metrics(learner, &update.shared).values["roc-auc"]
}

#[test]
fn a_split_by_patient_shows_that_there_is_nothing_to_learn() {
    let by_patient = visits(120);
    let by_visit = Table {
        groups: Vec::new(),
        ..by_patient.clone()
    };
    let (honest, recognised) = (area(&of(&by_patient, 0.0)), area(&of(&by_visit, 0.0)));
    assert!((0.3..0.7).contains(&honest), "{honest}");
    assert!(recognised > 0.9, "{recognised}");
}

/// Five folds of four patients there are none, and a model that nobody tuned is no reference.
#[test]
fn with_fewer_patients_than_folds_every_patient_is_one() {
    let learner = of(&visits(6), 0.0);
    let persons = |rows: &Rows| rows.groups().iter().copied().collect::<BTreeSet<_>>();
    assert_eq!(persons(&learner.train).len(), 4);
    let Task::Train(training) = task(3, 8, 0.03) else {
        panic!("a task that trains");
    };
    let alone = Alone {
        start: learner.initial(0),
        initial: 0,
        task: Task::Train(training),
        seed: 1,
        rounds: 1..=1,
    };
    let local = LocalModels::tune(&learner, &alone, 5, Effort::Full).unwrap();
    assert!(local.tuned.is_some_and(|tuned| tuned.rates));
    let one = of(&visits(2), 0.0);
    assert_eq!(persons(&one.train).len(), 1);
    assert!(
        LocalModels::tune(&one, &alone, 5, Effort::Full)
            .unwrap()
            .tuned
            .is_none()
    );
}

#[test]
fn folds_and_their_rows_keep_patients_together() {
    let learner = of(&visits(20), 0.2);
    let rows = &*learner.train;
    assert_eq!((rows.len(), learner.validation.len()), (60, 24));
    let of = |rows: &Rows| {
        rows.groups()
            .iter()
            .copied()
            .collect::<std::collections::BTreeSet<_>>()
    };
    let mut all = Vec::new();
    for fold in 0..5 {
        let (rest, out) = rows.without_fold(fold, 5, 3).unwrap();
        assert_eq!((rest.len(), out.len()), (48, 12));
        assert!(of(&rest).is_disjoint(&of(&out)));
        all.extend(of(&out));
    }
    all.sort_unstable();
    assert_eq!(all, of(rows).into_iter().collect::<Vec<_>>());
    assert!(rows.without_fold(0, 10, 3).is_some() && rows.without_fold(0, 11, 3).is_none());
    let pooled = Rows::concat(&[rows, rows]);
    assert_eq!(of(&pooled).len(), 2 * of(rows).len());
    let held = learner
        .outputs(&learner.initial(0), &Params::empty(), Split::Validation)
        .unwrap();
    let (model, none) = (learner.initial(0), Params::empty());
    let results = learner.row_results(&model, &none, &held, Split::Validation);
    let sizes: Vec<usize> = results.unwrap().together().iter().map(Vec::len).collect();
    assert_eq!(sizes, [6; 4]);
}
