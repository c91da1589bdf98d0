#![allow(clippy::unwrap_used)]
use std::ops::ControlFlow;

use methods::learner::{
    Capability, Job, MissingCapability, Optimiser, RobustLosses, RowAccess, Work,
};
use methods::robust::radius::{RadiusSearch, choose_radius};
use methods::robust::{self, Radius};
use methods::{Progress, Task};

use super::*;
use crate::data::{Moments, SplitConfig, Table};
use crate::models::{Linear, Mlp};
use crate::random::uniform;
use task::loss::RegressionLoss;

mod all_rows;
mod batch_norm;
mod deployed;
mod exact;
mod fedcg;
mod fedsr;
mod few_rows;
mod groups;
mod large;
mod own_intercept;
mod robust_losses;
mod shrunken;
mod survival;
mod units;

/// `y = 3·a − 2·b + 5` with a little noise, features on odd scales; or the class `y > 5`.
fn table(rows: usize, seed: u64, classes: bool) -> Table {
    let mut rng = stream(seed, "test table");
    let mut table = Table::new(vec!["a".into(), "b".into()]);
    for _ in 0..rows {
        let mut draw = |scale: f64| (uniform(&mut rng) * 2.0 - 1.0) * scale;
        let (a, b) = (draw(10.0) + 40.0, draw(0.1));
        let y = 3.0 * (a - 40.0) / 10.0 - 2.0 * b / 0.1 + 5.0 + draw(0.5);
        table.push(&[a, b], if classes { f64::from(y > 5.0) } else { y });
    }
    table
}

#[derive(Clone, Copy)]
enum LearnerKind {
    Absolute,
    Squared,
    Logistic,
    Mlp,
    /// A perceptron that predicts a number.
    Numbers,
    /// Layers so wide that burn works on several threads.
    Wide,
}

fn learner(kind: LearnerKind, table: &Table, standardise: Standardise) -> TableLearner {
    let target = match kind {
        LearnerKind::Absolute | LearnerKind::Squared | LearnerKind::Numbers => {
            Target::Number { unit: "m".into() }
        }
        LearnerKind::Logistic | LearnerKind::Mlp | LearnerKind::Wide => {
            Target::Classes(vec!["low".into(), "high".into()])
        }
    };
    let split = SplitConfig {
        validation: 0.1,
        test: 0.3,
        ..SplitConfig::default()
    };
    let data = Prepared::new("s", table, target, &split, standardise, 9).unwrap();
    let linear = Box::new(Linear { features: 2 });
    let (model, loss): (Box<dyn Model>, _) = match kind {
        LearnerKind::Absolute => (linear, Loss::Regression(RegressionLoss::Absolute)),
        LearnerKind::Squared => (linear, Loss::Regression(RegressionLoss::Squared)),
        LearnerKind::Logistic => (linear, Loss::Logistic),
        LearnerKind::Mlp => (Box::new(Mlp::new(2, &[16], 2)), Loss::Softmax),
        LearnerKind::Numbers => (
            Box::new(Mlp::new(2, &[16], 1)),
            Loss::Regression(RegressionLoss::Squared),
        ),
        LearnerKind::Wide => (Box::new(Mlp::new(2, &[256, 256], 2)), Loss::Softmax),
    };
    TableLearner::new(data, model, loss, standardise, TransportCost::default())
}

fn task(epochs: u32, batch: u32, rate: f64) -> Task {
    let optimiser = Optimiser::Sgd {
        rate,
        momentum: 0.9,
        weight_decay: 0.0,
    };
    Task::Train(Training {
        epochs,
        batch,
        optimiser,
        decay: None,
    })
}

fn run(learner: &TableLearner, start: &Params, task: &Task, seed: u64) -> Update {
    (learner as &dyn Learner)
        .carry_out(start, &Params::empty(), task, seed, &mut |_| {
            ControlFlow::Continue(())
        })
        .unwrap()
}

fn test_metrics(learner: &TableLearner, model: &Params) -> Metrics {
    learner
        .evaluate(model, &Params::empty(), Split::Test)
        .unwrap()
}

/// A fit from a model that holds the scale.
fn fitted(learner: &dyn Learner, start: &Params, work: Work<'_>) -> Result<Update, LearnError> {
    let none = Params::empty();
    Job::without_draws(start, &none, work).run(learner, &mut |_| ControlFlow::Continue(()))
}

fn grid(folds: usize) -> Radius {
    Radius::CrossValidated(robust::RadiusGrid {
        folds,
        grid: vec![0.001, 0.05, 0.5],
        one_standard_error: false,
    })
}

#[test]
fn shuffled_targets_keep_the_rows_and_teach_nothing() {
    let honest = learner(
        LearnerKind::Logistic,
        &table(200, 1, true),
        Standardise::Silo,
    );
    let wrong = honest.with_shuffled_targets(3);
    let sum = |learner: &TableLearner| -> f32 { learner.train.targets().iter().sum() };
    assert_eq!(
        (wrong.samples(), sum(&wrong)),
        (honest.samples(), sum(&honest))
    );
    assert_ne!(wrong.train.targets(), honest.train.targets());
    assert_eq!(wrong.test, honest.test);
    let start = honest.initial(0);
    let reached = |learner: &TableLearner| {
        let update = run(learner, &start, &task(40, 8, 0.05), 1);
        test_metrics(&honest, &update.shared).values["accuracy"]
    };
    assert!(reached(&honest) > 0.9 && reached(&wrong) < 0.75);
}

#[test]
fn absolute_loss_converges_on_few_rows() {
    let learner = learner(
        LearnerKind::Absolute,
        &table(66, 1, false),
        Standardise::Silo,
    );
    assert_eq!(learner.samples(), 39);
    for batch in [8, 0] {
        let epochs = if batch == 0 { 2000 } else { 200 };
        let update = run(
            &learner,
            &learner.initial(0),
            &task(epochs, batch, 0.002),
            1,
        );
        assert_eq!(update.samples, 39);
        let metrics = test_metrics(&learner, &update.shared);
        // The noise alone has a mean absolute value of .25.
        assert!(metrics.values["mae"] < 0.35, "batch {batch}: {metrics:?}");
        assert!(update.metrics.values["loss"] < 0.2);
    }
}

#[test]
fn logistic_regression_and_perceptron_learn_classes() {
    for (kind, rate) in [(LearnerKind::Logistic, 0.1), (LearnerKind::Mlp, 0.02)] {
        let learner = learner(kind, &table(300, 1, true), Standardise::Silo);
        let update = run(&learner, &learner.initial(0), &task(60, 16, rate), 1);
        let metrics = test_metrics(&learner, &update.shared);
        assert_eq!(metrics.samples, 90);
        assert!(metrics.values["accuracy"] > 0.9, "{metrics:?}");
        assert!(metrics.values["roc-auc"] > 0.97, "{metrics:?}");
        assert!(metrics.values["log-loss"] < 0.3, "{metrics:?}");
    }
}

/// Merges a summary of each silo into the common scale, as every member does.
fn common_scale(start: &Params, summaries: &[Params]) -> Params {
    let number =
        |of: &Params, name: &str, column: usize| f64::from(of.tensor(name).unwrap()[column]);
    let count_of = |of: &Params| number(of, "count", 0);
    let sum_of = |of: &Params, at| number(of, "sum", at) + number(of, "sum.rest", at);
    let count: f64 = summaries.iter().map(count_of).sum();
    Params::build(start.layout(), |into| {
        into.copy_from_slice(start.values());
        let at = |name: &str| {
            let layout = start.layout();
            layout.range(layout.position(name).unwrap()).start
        };
        for column in 0..summaries[0].tensor("sum").unwrap().len() {
            let mean = summaries.iter().map(|s| sum_of(s, column)).sum::<f64>() / count;
            let squares: f64 = summaries
                .iter()
                .map(|s| {
                    let off = sum_of(s, column) / count_of(s) - mean;
                    number(s, "squares", column) + count_of(s) * off * off
                })
                .sum();
            let (high, rest) = methods::strategy::split_double(mean);
            into[at("scale.mean") + column] = high;
            into[at("scale.rest") + column] = rest;
            into[at("scale.deviation") + column] = (squares / count).sqrt() as f32;
        }
    })
}

#[test]
fn a_federation_of_one_standardises_as_the_silo_itself() {
    for (kind, classes, metric) in [
        (LearnerKind::Squared, false, "mae"),
        (LearnerKind::Logistic, true, "log-loss"),
    ] {
        let table = table(120, 3, classes);
        let own = learner(kind, &table, Standardise::Silo);
        let common = learner(kind, &table, Standardise::Federation);
        let start = common.initial(0);
        let columns = if classes { 2 } else { 3 };
        assert_eq!(start.tensor("scale.mean").unwrap(), vec![0.0; columns]);
        assert_eq!(start.tensor("scale.deviation").unwrap(), vec![1.0; columns]);
        let summary = run(&common, &start, &Task::Summarise, 0).shared;
        assert_eq!(summary.layout(), &common.summary_layout());
        assert_eq!(summary.tensor("count").unwrap(), [72.0]);
        let start = common_scale(&start, &[summary]);

        let training = task(30, 8, 0.02);
        let alone = run(&own, &own.initial(0), &training, 4);
        let together = run(&common, &start, &training, 4);
        for name in ["weight", "bias"] {
            let pairs = alone.shared.tensor(name).unwrap().iter();
            for (a, b) in pairs.zip(together.shared.tensor(name).unwrap()) {
                assert!((a - b).abs() < 1e-3, "{name}: {a} {b}");
            }
        }
        for name in ["scale.mean", "scale.deviation", "scale.rest"] {
            assert_eq!(
                together.shared.tensor(name),
                start.tensor(name),
                "buffers are not trained"
            );
        }
        let (a, b) = (
            test_metrics(&own, &alone.shared),
            test_metrics(&common, &together.shared),
        );
        assert!(
            (a.values[metric] - b.values[metric]).abs() < 1e-3,
            "{a:?} {b:?}"
        );
        if !classes {
            let loss = |learner: &dyn Learner, model: &Params| {
                let loss = learner.loss(model, &Params::empty(), 0.0, Split::Train);
                loss.unwrap()
            };
            let (a, b) = (loss(&own, &alone.shared), loss(&common, &together.shared));
            return assert!((a - b).abs() < 1e-3);
        }
        let (a, b) = (
            own.robust_loss(&alone.shared, &Params::empty(), 0.2, Split::Train),
            common.robust_loss(&together.shared, &Params::empty(), 0.2, Split::Train),
        );
        assert!((a.unwrap() - b.unwrap()).abs() < 1e-3);
    }
}

#[test]
fn summaries_of_two_halves_merge_into_the_summary_of_all_rows() {
    let scale = ColumnScaling::new(1, true);
    let rows =
        |values: &[f32]| Rows::new(1, values.to_vec(), values.iter().map(|v| v * 2.0).collect());
    let layout = Layout::new(scale.tensors().to_vec()).unwrap();
    let summaries = [
        scale.summarise(&rows(&[1.0, 2.0])),
        scale.summarise(&rows(&[3.0, 6.0, 8.0])),
    ];
    let merged = common_scale(&Params::zeros(&layout), &summaries);
    assert_eq!(merged.tensor("scale.mean").unwrap(), [4.0, 8.0]);
    let deviation = (34f32 / 5.0).sqrt();
    assert_eq!(
        merged.tensor("scale.deviation").unwrap(),
        [deviation, 2.0 * deviation]
    );
}

#[test]
fn capabilities_are_those_of_the_model_family_and_the_loss() {
    use Capability::{
        Answers, ExactFits, LinearRows, RobustFits, RobustLosses, StochasticModels, Summaries,
        UnitGradients,
    };
    let lacks = |kind, classes, standardise| -> Vec<Capability> {
        let learner = learner(kind, &table(50, 2, classes), standardise);
        let has = learner.capabilities();
        let all = Capability::ALL.into_iter();
        all.filter(|&one| !has.has(one)).collect()
    };
    let (silo, common) = (Standardise::Silo, Standardise::Federation);
    let lacked = [
        // A common scale hangs on the rows of all.
        (
            LearnerKind::Absolute,
            false,
            common,
            vec![StochasticModels, UnitGradients, Answers],
        ),
        (
            LearnerKind::Logistic,
            true,
            silo,
            vec![Summaries, StochasticModels, Answers],
        ),
        (
            LearnerKind::Mlp,
            true,
            silo,
            vec![Summaries, RobustFits, ExactFits, LinearRows, Answers],
        ),
        (
            LearnerKind::Squared,
            false,
            silo,
            vec![
                Summaries,
                RobustLosses,
                RobustFits,
                StochasticModels,
                Answers,
            ],
        ),
    ];
    for (kind, classes, standardise, expected) in lacked {
        assert_eq!(lacks(kind, classes, standardise), expected);
    }
}

#[test]
fn missing_capabilities_unfit_models_and_divergence_are_errors() {
    let mlp = learner(LearnerKind::Mlp, &table(50, 2, true), Standardise::Silo);
    let (start, none) = (mlp.initial(0), Params::empty());
    let by: &dyn Learner = &mlp;
    assert!(by.loss(&start, &none, 0.0, Split::Train).unwrap() > 0.0);
    let missing = |capability| LearnError::Missing(MissingCapability(capability));
    assert_eq!(
        by.radius(&start, &none, &grid(3)),
        Err(missing(Capability::RobustFits))
    );
    let squared = learner(
        LearnerKind::Squared,
        &table(50, 2, false),
        Standardise::Silo,
    );
    let by: &dyn Learner = &squared;
    let first = squared.initial(0);
    assert!(by.loss(&first, &none, 0.0, Split::Train).unwrap() > 0.0);
    assert_eq!(
        by.loss(&first, &none, 0.1, Split::Train),
        Err(missing(Capability::RobustLosses))
    );
    assert_eq!(
        squared
            .evaluate(&start, &Params::empty(), Split::Test)
            .unwrap_err()
            .to_string(),
        "the model does not fit: expected bias [1], weight [1, 2], got layer0.bias [16], layer0.weight [16, 2], layer1.bias [2], layer1.weight [2, 16]"
    );
    let go_on = &mut |_| ControlFlow::Continue(());
    let start = squared.initial(0);
    let error = by
        .carry_out(&start, &none, &Task::Summarise, 0, go_on)
        .unwrap_err();
    assert_eq!(error, missing(Capability::Summaries));
    let error = by
        .carry_out(&start, &none, &task(200, 8, 1e3), 0, go_on)
        .unwrap_err();
    assert!(
        matches!(error, LearnError::Diverged { rate: 1e3, .. }),
        "{error}"
    );
    let stop = &mut |at: Progress| {
        assert_eq!((at.step, at.steps), (4, 12));
        ControlFlow::Break(())
    };
    let error = by
        .carry_out(&start, &none, &task(3, 8, 0.1), 0, stop)
        .unwrap_err();
    assert_eq!(error, LearnError::Stopped);
}

#[test]
fn the_same_arguments_give_the_same_bits_on_any_thread() {
    for (kind, batch) in [
        (LearnerKind::Logistic, 16),
        (LearnerKind::Mlp, 16),
        (LearnerKind::Wide, 120),
    ] {
        let learner = &learner(kind, &table(200, 2, true), Standardise::Silo);
        let start = &learner.initial(0);
        let go = |seed| run(learner, start, &task(5, batch, 0.05), seed).shared;
        let alone: Vec<Params> = (0..8).map(go).collect();
        assert_ne!(alone[0], alone[1], "another seed is another order");
        let together: Vec<Params> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || go(seed))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(alone, together);
    }
}
