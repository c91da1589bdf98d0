//! Tasks on built-in sources, from TOML to silos and their rows.

use super::*;
use crate::data::Standardise;
use task::TaskConfig;

const TRANSFER: &str =
    "[task.table]\ndata.tpt48 = { from = 'north', to = 'south' }\nmetric = 'mse'\n";

fn rows(study: &Study) -> Vec<(usize, usize, usize)> {
    let each = study.silos.iter().map(|silo| silo.rows);
    each.map(|rows| (rows.train, rows.validation, rows.test))
        .collect()
}

#[test]
fn unseen_states_only_test_and_validation_shares_no_month() {
    let Some(folder) = real_data() else { return };
    let study = |text: &str| config(text).study(None, Some(&folder), 1).unwrap();
    let linear = format!("{TRANSFER}model.mlp.hidden = []\n");
    let all = study(&linear);
    assert_eq!(
        rows(&all),
        [vec![(133, 0, 0); 24], vec![(0, 0, 12); 24]].concat()
    );
    assert_eq!(all.silos[0].group.as_deref(), Some("north"));
    assert_eq!(all.metric.unit, "(standard deviations)²");
    // 14 of 133 windows for validation, and 11 before them that reach into their first month.
    let held = study(&format!("{linear}split.validation = 0.1"));
    assert_eq!(rows(&held)[0], (108, 14, 0));
    assert_eq!(rows(&held)[47], (0, 0, 12));
    // The rows are on a common scale and are not scaled again.
    let target = |study: &Study| {
        study.silos[47]
            .preparation
            .as_ref()
            .unwrap()
            .target_deviation
    };
    assert_eq!(target(&all), 1.0);
    let scaled = config(&format!("{linear}standardise = 'silo'"));
    let error = scaled
        .study(None, Some(&folder), 1)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("has test rows only"), "{error}");
}

#[test]
fn the_paper_s_eight_layers_learn_at_the_rate_of_the_paper() {
    let Some(folder) = real_data() else { return };
    let text = format!("{TRANSFER}model.network.layers = 'tpt48'\n");
    let study = config(&text).study(None, Some(&folder), 1).unwrap();
    let (north, south) = (&study.silos[0].learner, &study.silos[47].learner);
    let task = Task::Train(Training {
        epochs: 15,
        batch: 16,
        optimiser: Optimiser::Sgd {
            rate: 0.01,
            momentum: 0.9,
            weight_decay: 0.0,
        },
        decay: None,
    });
    let none = Params::empty();
    let start = north.initial(1);
    let go_on = &mut |_| ControlFlow::Continue(());
    let update = north.carry_out(&start, &none, &task, 1, go_on).unwrap();
    let error = |learner: &Arc<dyn Learner>, model, split| {
        learner.evaluate(model, &none, split).unwrap().values["mse"]
    };
    let (before, after) = (
        error(north, &start, Split::Train),
        error(north, &update.shared, Split::Train),
    );
    eprintln!(
        "train {before} {after}, elsewhere {}",
        error(south, &update.shared, Split::Test)
    );
    assert!(after < 0.2 * before, "{before} {after}");
}

#[test]
fn synthetic_silos_are_as_many_as_asked_with_fresh_test_rows() {
    let task = config(
        "[task.table]\ndata.synthetic = { target = 'logistic', groups = 2 }\nmodel = 'logistic'",
    );
    let study = task.study(Some(4), None, 5).unwrap();
    assert_eq!(study.silos.len(), 4);
    assert!(
        rows(&study)
            .iter()
            .all(|&(train, _, test)| train >= 100 && test == 1000)
    );
    assert_eq!(study.silos[3].group.as_deref(), Some("group 2"));
    let TaskConfig::Table(table) = &task else {
        panic!("a table")
    };
    assert_eq!(table.scaling(), Standardise::None);
    // Institutions that have no rows of the others know the layout from the task alone.
    let names = vec!["a".into(), "b".into()];
    let stand_ins = table.stand_ins(&names, 5).unwrap();
    assert_eq!(
        stand_ins.silos[0].learner.layout().describe(),
        study.silos[0].learner.layout().describe()
    );
    let text = toml::to_string(&TestScenario { task: task.clone() }).unwrap();
    assert_eq!(config(&text), task);
}

#[test]
fn hospitals_are_drawn_by_the_seed_of_the_study() {
    let Some(folder) = real_data() else { return };
    let text = "[task.table]\ndata.eicu-los = { subgroup = 'ethnicity' }\nmodel = 'logistic'";
    let names = |seed| {
        let study = config(text).study(None, Some(&folder), seed).unwrap();
        assert_eq!(study.subgroups.len(), 6);
        let names = study.silos.into_iter().map(|silo| silo.name);
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(1).len(), 20);
    assert_eq!(names(1), names(1));
    assert_ne!(names(1), names(2));
    let fixed = format!("{text}\nsplit.seed = 1");
    let fixed = config(&fixed).study(None, Some(&folder), 2).unwrap();
    let fixed: Vec<String> = fixed.silos.into_iter().map(|silo| silo.name).collect();
    assert_eq!(fixed, names(1));
    let text = "[task.table]\ndata.eicu-mortality = { encoding = 'hiclseqno' }\nmodel = 'logistic'\nmetric = 'roc-auc'";
    let study = config(text).study(None, Some(&folder), 1).unwrap();
    let west = |silo: &&StudySilo| silo.group.as_deref() == Some("West");
    assert_eq!(study.silos.iter().filter(west).count(), 19);
}
