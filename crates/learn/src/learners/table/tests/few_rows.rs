//! Models that silos with a dozen rows make alone, and models that they serve.

use methods::learner::ExactFit;
use methods::robust::Ridge;
use methods::serving::{Alone, CandidateComparison, Effort, LocalModels, Way};

use super::*;

const SILOS: u64 = 24;
const TRAINING_ROWS: usize = 12;

/// Stays in a hospital as few rows see them: six numbers of which one says a little about the class, and
/// seven rows of ten are of class 1. In every sixth silo nearly all are.
fn stays(seed: u64, rows: usize) -> Table {
    let mut rng = stream(seed, "stays");
    let names = (1..=6).map(|at| format!("x{at}")).collect();
    let mut table = Table::new(names);
    let level = if seed.is_multiple_of(6) { 3.5 } else { 0.9 };
    for _ in 0..rows {
        let mut draw = || (uniform(&mut rng) + uniform(&mut rng) + uniform(&mut rng) - 1.5) * 2.0;
        let x: Vec<f64> = (0..6).map(|_| draw()).collect();
        let chance = 1.0 / (1.0 + (-(level + 0.7 * x[0])).exp());
        let y = uniform(&mut rng) < chance;
        table.push(&x, f64::from(y));
    }
    table
}

/// A silo with a dozen rows to train on and many to test on.
fn small(seed: u64) -> TableLearner {
    of(&stays(seed, 20 * TRAINING_ROWS), 0.95, seed)
}

fn of(table: &Table, test: f64, seed: u64) -> TableLearner {
    let split = SplitConfig {
        validation: 0.0,
        test,
        ..SplitConfig::default()
    };
    let target = Target::Classes(vec!["short".into(), "long".into()]);
    let standardise = Standardise::Silo;
    let data = Prepared::new("s", table, target, &split, standardise, seed).unwrap();
    let model = Box::new(Linear { features: 6 });
    TableLearner::new(
        data,
        model,
        Loss::Logistic,
        standardise,
        TransportCost::default(),
    )
}

fn alone(learner: &TableLearner, seed: u64) -> Alone {
    let Task::Train(training) = task(5, 8, 0.03) else {
        panic!("a task that trains");
    };
    Alone {
        start: learner.initial(0),
        initial: 0,
        task: Task::Train(Training {
            optimiser: Optimiser::Sgd {
                rate: 0.03,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            ..training
        }),
        seed,
        rounds: 1..=20,
    }
}

fn tuned(learner: &TableLearner, seed: u64) -> LocalModels {
    LocalModels::tune(learner, &alone(learner, seed), 5, Effort::Full).unwrap()
}

fn test_loss(learner: &TableLearner, model: &Params) -> f64 {
    test_metrics(learner, model).values["loss"]
}

/// The log loss of the share of class 1 by the rule of succession.
fn constant_loss(learner: &TableLearner) -> f64 {
    let ones: f32 = learner.train.targets().iter().sum();
    let share = (f64::from(ones) + 1.0) / (learner.train.len() as f64 + 2.0);
    let each = learner.test.targets().iter().map(|&y| {
        if y > 0.5 {
            -share.ln()
        } else {
            -(1.0 - share).ln()
        }
    });
    each.sum::<f64>() / learner.test.len() as f64
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn most(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, &value| most.max(value))
}

#[test]
fn with_a_dozen_rows_a_local_model_about_equals_class_shares() {
    let (mut own, mut constant) = (Vec::new(), Vec::new());
    for seed in 0..SILOS {
        let learner = small(seed);
        assert_eq!(learner.samples() as usize, TRAINING_ROWS);
        own.push(test_loss(&learner, &tuned(&learner, seed).model.0));
        constant.push(constant_loss(&learner));
    }
    println!(
        "own {:.3}, at most {:.3}; constant {:.3}, at most {:.3}",
        mean(&own),
        most(&own),
        mean(&constant),
        most(&constant)
    );
    assert!(mean(&own) < mean(&constant) + 0.04, "{own:?} {constant:?}");
    assert!(most(&own) < 1.0, "{own:?}");
}

#[test]
fn with_a_dozen_rows_no_global_model_makes_the_choice_harmful() {
    // The global model knows more rows than any silo has.
    let all = of(&stays(1, 4_000), 0.3, 1);
    let fit = ExactFit {
        ridge: Ridge::Fixed(0.01),
        around_start: false,
    };
    let start = all.initial(0);
    let good = fitted(&all, &start, Work::ExactFit(&fit)).unwrap().shared;
    let values = good.values().iter().map(|value| -value);
    let bad = Params::from_values(&all.layout(), &values.collect::<Vec<_>>());
    for (model, name) in [(good, "good"), (bad, "bad")] {
        let (mut served, mut own, mut common, mut shared) = (vec![], vec![], vec![], 0);
        for seed in (0..SILOS).filter(|seed: &u64| !seed.is_multiple_of(6)) {
            let learner = small(seed);
            let local = tuned(&learner, seed);
            let chosen = CandidateComparison {
                plain: &learner,
                equipped: &learner,
                alone: &alone(&learner, seed),
                local: &local,
                coalition: &(model.clone(), Params::empty()),
                members: SILOS as usize,
                global: None,
                folds: 5,
                adapted: false,
            }
            .serve();
            shared += usize::from(!chosen.candidate.is_own());
            own.push(test_loss(&learner, &local.model.0));
            common.push(test_loss(&learner, &model));
            served.push(test_loss(&learner, &chosen.model.0));
        }
        println!(
            "{name}: own {:.3}, common {:.3}, served {:.3}, common served by {shared} of {}",
            mean(&own),
            mean(&common),
            mean(&served),
            own.len()
        );
        assert!(mean(&served) < mean(&own) + 0.02, "{served:?}");
        match name {
            "good" => assert!(shared > 0, "{served:?}"),
            _ => assert_eq!(shared, 0, "{served:?}"),
        }
    }
}

/// Rows that tell much: two of six numbers decide nearly alone.
fn telling(seed: u64, rows: usize) -> Table {
    let mut rng = stream(seed, "telling");
    let names = (1..=6).map(|at| format!("x{at}")).collect();
    let mut table = Table::new(names);
    for _ in 0..rows {
        let mut draw = || (uniform(&mut rng) + uniform(&mut rng) + uniform(&mut rng) - 1.5) * 2.0;
        let x: Vec<f64> = (0..6).map(|_| draw()).collect();
        let chance = 1.0 / (1.0 + (-3.5 * (x[0] - x[1])).exp());
        let y = uniform(&mut rng) < chance;
        table.push(&x, f64::from(y));
    }
    table
}

#[test]
fn few_telling_rows_do_not_hold_the_local_model_back() {
    for (rows, most) in [(20, 0.08), (42, 0.035), (51, 0.035), (200, 0.02)] {
        let (mut own, mut best) = (Vec::new(), Vec::new());
        for seed in 0..SILOS {
            let all = telling(seed, rows + 1_000);
            let learner = of(&all, 1_000.0 / (rows + 1_000) as f64, seed);
            own.push(test_loss(&learner, &tuned(&learner, seed).model.0));
            // The best of all strengths, which only the test rows know.
            let fits = [0.01, 0.03, 0.1, 0.3, 1.0, 10.0].map(|ridge| {
                let fit = ExactFit {
                    ridge: Ridge::Fixed(ridge),
                    around_start: false,
                };
                let fitted = fitted(&learner, &learner.initial(0), Work::ExactFit(&fit));
                test_loss(&learner, &fitted.unwrap().shared)
            });
            best.push(fits.into_iter().fold(f64::INFINITY, f64::min));
        }
        let (own, best) = (mean(&own), mean(&best));
        println!("{rows} rows: own {own:.3}, best {best:.3}");
        assert!(own < best + most, "{rows} rows: {own} and {best}");
    }
}

#[test]
fn rows_of_one_class_are_answered_by_the_rule_of_succession() {
    let mut table = stays(1, 60);
    table.target.fill(1.0);
    let learner = of(&table, 0.8, 1);
    let local = tuned(&learner, 1);
    assert!(
        matches!(local.tuned.unwrap().way, Way::Fit { radius: 0.0, .. }),
        "an exact fit"
    );
    // Twelve rows of class 1: the chance of class 1 is 13 of 14.
    let expected = -(13f64 / 14.0).ln();
    let found = test_loss(&learner, &local.model.0);
    assert!((found - expected).abs() < 1e-3, "{found} {expected}");
}
