//! Silos whose rows have a time to an event.

use std::path::Path;

use methods::learner::{Capability, ExactFit, MissingCapability};
use methods::robust::ridge::Ridge;
use methods::serving::with_own_intercept;
use task::data::{TcgaBrcaConfig, tcga_brca};
use task::survival::{Baseline, observed};

use super::*;

/// Rows whose hazard is `exp(a − b)`, half of them censored; all times are different.
fn lifetimes(rows: usize, seed: u64) -> Table {
    let mut rng = stream(seed, "lifetimes");
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    for _ in 0..rows {
        let mut draw = || uniform(&mut rng);
        let (a, b) = (3.0 * draw() - 1.5, 3.0 * draw() - 1.5);
        let death = -draw().max(1e-9).ln() / (a - b).exp();
        let end = -draw().max(1e-9).ln();
        let event = f64::from(u8::from(death <= end));
        table.push_all(&[a, b], &[event, 100.0 * death.min(end) + 1e-3, 0.0]);
    }
    table
}

fn target(at: &[f64]) -> Target {
    Target::Survival {
        unit: "days".into(),
        at: at.to_vec(),
    }
}

fn of_table(table: &Table, at: &[f64], hidden: Option<&[usize]>) -> TableLearner {
    let split = SplitConfig::default();
    let data = Prepared::new("s", table, target(at), &split, Standardise::Silo, 9).unwrap();
    let features = data.features;
    let model: Box<dyn Model> = match hidden {
        None => Box::new(Linear { features }),
        Some(hidden) => Box::new(Mlp::new(features, hidden, 1)),
    };
    let cost = TransportCost::default();
    TableLearner::new(data, model, Loss::Cox, Standardise::Silo, cost)
}

#[test]
fn cox_models_learn_who_has_the_event_first() {
    let table = lifetimes(600, 1);
    for (hidden, batch) in [
        (None, 0),
        (None, 32),
        (Some(&[8][..]), 0),
        (Some(&[8][..]), 32),
    ] {
        let learner = of_table(&table, &[], hidden);
        let start = learner.initial(1);
        let epochs = if batch == 0 { 120 } else { 20 };
        let update = run(&learner, &start, &task(epochs, batch, 0.1), 7);
        let metrics = test_metrics(&learner, &update.shared).values;
        assert!(
            metrics["concordance"] > 0.68,
            "{hidden:?} {batch}: {metrics:?}"
        );
        assert!(
            metrics["loss"] > 0.0 && metrics["integrated-brier"] < 0.2,
            "{metrics:?}"
        );
        assert!(metrics["calibration-at-time"] < 0.15, "{metrics:?}");
        if hidden.is_none() {
            assert_eq!(update.shared.tensor("bias"), Some(&[0.0][..]));
        }
    }
}

/// One step of all rows from every region is one step of the stratified fit, if regions count by their events.
#[test]
fn a_full_batch_federation_is_a_stratified_cox_regression() {
    let Some(folder) = std::env::var_os("ROTA_DATA") else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let data = tcga_brca(TcgaBrcaConfig::default(), Some(Path::new(&folder))).unwrap();
    let columns = [
        "age_at_index",
        "race_black or african american",
        "prior_malignancy_yes",
        "treatment_or_therapy_yes",
        "primary_diagnosis_Lobular carcinoma, NOS",
        "ajcc_pathologic_n_N1a",
    ];
    let regions: Vec<(TableLearner, f64)> = data
        .silos
        .iter()
        .map(|(name, all)| {
            let mut table = Table::new(columns.map(str::to_owned).to_vec());
            for row in 0..all.len() {
                let value = |name: &str| {
                    let place = all.columns.iter().position(|own| own == name).unwrap();
                    all.row(row)[place]
                };
                let mut values = columns.map(value);
                values[0] = (values[0] - 58.0) / 10.0;
                let [event, days, _] = all.targets(row) else {
                    panic!("three numbers")
                };
                table.push_all(&values, &[*event, (days / 30.4375).ceil(), 0.0]);
                table.parts.push(Split::Train);
            }
            let events = (0..all.len()).map(|row| all.targets(row)[0]).sum();
            let split = SplitConfig::default();
            let none = Standardise::None;
            let data = Prepared::new(name, &table, target(&[]), &split, none, 0).unwrap();
            let model = Box::new(Linear { features: 6 });
            let cost = TransportCost::default();
            (
                TableLearner::new(data, model, Loss::Cox, none, cost),
                events,
            )
        })
        .collect();
    let step = Task::Train(Training {
        epochs: 1,
        batch: 0,
        optimiser: Optimiser::Sgd {
            rate: 1.0,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    });
    let mut model = regions[0].0.initial(0);
    let total: f64 = regions.iter().map(|(_, events)| events).sum();
    for _ in 0..200 {
        let mut mean = vec![0.0; model.values().len()];
        for (learner, events) in &regions {
            let update = run(learner, &model, &step, 0);
            for (sum, value) in mean.iter_mut().zip(update.shared.values()) {
                *sum += events / total * f64::from(*value);
            }
        }
        let mean: Vec<f32> = mean.iter().map(|&value| value as f32).collect();
        model = Params::from_values(model.layout(), &mean);
    }
    let weights = model.tensor("weight").unwrap();
    assert!(
        (f64::from(weights[3]) + 1.205_152_086).abs() < 1e-4,
        "{weights:?}"
    );
    let likelihood: f64 = regions
        .iter()
        .map(|(learner, events)| {
            let metrics = learner.evaluate(&model, &Params::empty(), Split::Train);
            events * metrics.unwrap().values["loss"]
        })
        .sum();
    assert!((likelihood - 603.608_499_4).abs() < 1e-4, "{likelihood}");
}

#[test]
fn survival_is_measured_by_the_baseline_of_the_training_rows() {
    let learner = of_table(&lifetimes(200, 2), &[20.0, 50.0], None);
    let model = Params::from_values(&learner.layout, &[0.0, 0.8, -0.7]);
    let none = Params::empty();
    let train = learner.scaled(&model, &learner.train);
    let scores = learner.model.outputs(&model, &train);
    let baseline = Baseline::of(&scores, &observed(train.targets())).unwrap();
    let by: &dyn Learner = &learner;
    let outputs = by.outputs().unwrap();
    let scores = outputs.outputs(&model, &none, Split::Test).unwrap();
    let results = outputs.row_results(&model, &none, &scores, Split::Test);
    let surviving = results.unwrap().surviving.unwrap();
    assert_eq!(surviving.until, 50.0);
    for (score, probability) in scores.iter().zip(&surviving.probabilities) {
        assert!((baseline.survival(*score, 50.0) - probability).abs() < 1e-12);
    }
    // A prediction that is the same for all rows has a baseline of its own: that of Nelson and Aalen.
    let mean = outputs.mean_target(&model, &none, 1).unwrap();
    let constant = outputs.constant(&mean).repeat(scores.len());
    let metrics = outputs
        .measure(&model, &none, &constant, Split::Test)
        .unwrap();
    assert_eq!(metrics.values["concordance"], 0.5);
    let better = outputs
        .measure(&model, &none, &scores, Split::Test)
        .unwrap();
    for name in ["loss", "integrated-brier"] {
        assert!(
            better.values[name] < metrics.values[name],
            "{name}: {better:?} {metrics:?}"
        );
    }
    // Of scores from elsewhere nobody knows those of the training rows.
    let others: Vec<f64> = scores.iter().map(|score| 2.0 * score).collect();
    let metrics = outputs
        .measure(&model, &none, &others, Split::Test)
        .unwrap();
    assert!(
        !metrics.values.contains_key("integrated-brier"),
        "{metrics:?}"
    );
    assert_eq!(metrics.values["concordance"], better.values["concordance"]);
    // Not a tenth of the training rows is observed that long.
    let far = of_table(&lifetimes(200, 2), &[1e6], None);
    let metrics = test_metrics(&far, &model);
    assert!(
        !metrics.values.contains_key("integrated-brier"),
        "{metrics:?}"
    );
}

#[test]
fn what_needs_losses_of_single_rows_is_refused_with_what_to_use() {
    let learner = of_table(&lifetimes(60, 3), &[], None);
    let by: &dyn Learner = &learner;
    for capability in [
        Capability::RobustLosses,
        Capability::RobustFits,
        Capability::ExactFits,
        Capability::UnitGradients,
        Capability::LinearRows,
        Capability::StochasticModels,
    ] {
        assert!(!by.has(capability), "{capability:?}");
    }
    let (start, none) = (learner.initial(0), Params::empty());
    let ridge = ExactFit {
        ridge: Ridge::Fixed(0.1),
        around_start: false,
    };
    let job = Job {
        start: &start,
        personal: &none,
        seed: 0,
        work: Work::ExactFit(&ridge),
    };
    let error = by.learn(job, &mut |_| ControlFlow::Continue(()));
    assert_eq!(
        error.unwrap_err(),
        LearnError::Missing(MissingCapability(Capability::ExactFits))
    );
    // The loss itself is known, and a shift of all scores changes nothing of it.
    assert!(by.loss(&start, &none, 0.0, Split::Test).unwrap() > 0.0);
    let model = Params::from_values(&learner.layout, &[0.0, 0.3, -0.2]);
    let (own, _) = with_own_intercept(by, &(model.clone(), none)).unwrap();
    assert_eq!(own.values(), model.values());
}

#[test]
fn every_part_and_fold_has_its_share_of_the_events() {
    let learner = of_table(&lifetimes(300, 4), &[], None);
    let share = |rows: &Rows| {
        let lives = observed(rows.targets());
        lives.iter().filter(|row| row.event).count() as f64 / lives.len() as f64
    };
    let of_test = share(&learner.test);
    assert!((share(&learner.train) - of_test).abs() < 0.02);
    for fold in 0..3 {
        let (rest, out) = learner.train.without_fold(fold, 3, 5).unwrap();
        assert!((share(&rest) - share(&out)).abs() < 0.02, "fold {fold}");
    }
}
