//! Coverage of 95 % intervals of a silo, by simulation: with rare classes, equal scores, few rows, heavy tails, rows
//! of the same persons, and times to an event.

use std::rc::Rc;

use methods::learner::RowResults;
use simulations::random::Random;

use super::*;

mod persons;
mod times;

/// Draws of rows; a comparison takes more.
const DRAWS: usize = 300;
/// Rows from which the truth is known.
const POPULATION: usize = 60_000;

/// Outputs of two models for the same rows.
type SimulatedPair = [RowResults; 2];

/// Difference of two models of classes.
#[derive(Debug, Clone, Copy)]
enum SimulatedModels {
    /// Tosses of coins: neither knows anything.
    Coins,
    /// Nearly the same.
    Near,
    /// One knows less than the other.
    Apart,
    /// The same with probabilities of one digit, so that many rows have equal ones.
    Ties,
    /// Both are nearly always right.
    Right,
}

/// Distribution of errors of numbers.
#[derive(Debug, Clone, Copy)]
enum Errors {
    Normal,
    /// Student's distribution with three degrees of freedom: its squares have no variance.
    Heavy,
    /// Exponentials of normal numbers, of one of the models only.
    Skewed,
}

/// A normal number (Box & Muller 1958).
pub(in crate::compare) fn normal(random: &mut Random) -> f64 {
    let (u, v) = (1.0 - random.uniform(), random.uniform());
    libm::sqrt(-2.0 * libm::log(u)) * libm::cos(std::f64::consts::TAU * v)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// The probabilities that two models give a row for the second class, and its class.
fn row(models: SimulatedModels, prevalence: f64, random: &mut Random) -> ([f64; 2], bool) {
    let numbers = [(); 3].map(|()| normal(random));
    row_of(models, prevalence, numbers, random)
}

/// The same for a row with these three normal numbers: what can be known of it, and each model's noise.
fn row_of(
    models: SimulatedModels,
    prevalence: f64,
    [x, a, b]: [f64; 3],
    random: &mut Random,
) -> ([f64; 2], bool) {
    let odds = libm::log(prevalence / (1.0 - prevalence));
    let sum = 1.5 * x + odds - 0.6;
    let [ours, theirs, truth] = match models {
        SimulatedModels::Coins => [odds + 0.7 * a, odds + 0.7 * b, odds],
        SimulatedModels::Near => [sum + 0.3 * a, sum + 0.3 * b, sum],
        SimulatedModels::Apart | SimulatedModels::Ties => [sum + 0.3 * a, odds + 0.5 * x + b, sum],
        SimulatedModels::Right => [0.0, 0.0, odds],
    };
    let class = random.uniform() < sigmoid(truth);
    let side = if class { 2.5 } else { -2.5 };
    let [ours, theirs] = match models {
        SimulatedModels::Right => [1.5 * (side + a), 1.5 * (side + 1.3 * b)],
        _ => [ours, theirs],
    };
    let given = [ours, theirs].map(sigmoid).map(|p| match models {
        SimulatedModels::Ties => ((10.0 * p).round() / 10.0).clamp(0.02, 0.98),
        _ => p,
    });
    (given, class)
}

fn of_classes(
    models: SimulatedModels,
    prevalence: f64,
    rows: usize,
    random: &mut Random,
) -> SimulatedPair {
    let each: Vec<_> = (0..rows).map(|_| row(models, prevalence, random)).collect();
    outputs(&each)
}

/// The outputs of both models for these rows.
fn outputs(each: &[([f64; 2], bool)]) -> SimulatedPair {
    [0, 1].map(|model| {
        let score = |of: &dyn Fn(f64, bool) -> f64| -> Vec<f64> {
            each.iter()
                .map(|(given, class)| of(given[model], *class))
                .collect()
        };
        let own = |p: f64, class: bool| if class { p } else { 1.0 - p };
        let right = |p: f64, class| f64::from(u8::from((p >= 0.5) == class));
        let scores = [
            ("accuracy", score(&right)),
            (
                "log-loss",
                score(&|p, class| -libm::log(own(p, class).max(1e-12))),
            ),
            ("brier", score(&|p, class| (1.0 - own(p, class)).powi(2))),
        ];
        let both = each
            .iter()
            .flat_map(|(given, _)| [1.0 - given[model], given[model]]);
        RowResults {
            scores: scores
                .map(|(name, values)| (name.to_owned(), values))
                .into(),
            targets: each
                .iter()
                .map(|(_, class)| f32::from(u8::from(*class)))
                .collect(),
            probabilities: both.collect(),
            ..RowResults::default()
        }
    })
}

fn of_numbers(errors: Errors, rows: usize, random: &mut Random) -> SimulatedPair {
    let mut error = |model: usize| match errors {
        Errors::Normal => (1.0 + 0.3 * model as f64) * normal(random),
        Errors::Heavy => {
            let square: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
            normal(random) / libm::sqrt(square / 3.0)
        }
        Errors::Skewed if model == 1 => libm::exp(normal(random)),
        Errors::Skewed => 0.5 * normal(random),
    };
    let each: Vec<[f64; 2]> = (0..rows).map(|_| [0, 1].map(&mut error)).collect();
    [0, 1].map(|model| {
        let score = |of: fn(f64) -> f64| each.iter().map(|errors| of(errors[model])).collect();
        RowResults {
            scores: [
                ("mae".to_owned(), score(f64::abs)),
                ("mse".to_owned(), score(|e| e * e)),
            ]
            .into(),
            ..RowResults::default()
        }
    })
}

/// Shares of simulated silos.
#[derive(Debug)]
struct Shares {
    /// Silos with an interval.
    given: usize,
    /// Of these, those that hold the truth.
    held: f64,
    /// Of all, those whose interval leaves out 0.
    clear: f64,
    /// The standard error of the former, where intervals hold what they promise.
    error: f64,
}

/// Fewest silos with an interval of which a share says anything.
const FEWEST_GIVEN: usize = 50;

/// Returns the coverage of intervals of the difference of two models, over so many silos of so many rows, or persons
/// with their rows. The `truth` is that of many rows, unless it is known.
fn shares(
    metric: &str,
    silos: usize,
    rows: usize,
    truth: Option<f64>,
    pair: impl Fn(usize, &mut Random) -> SimulatedPair,
) -> Shares {
    let mut random = Random::new(3, &format!("{metric} {rows}"));
    let statistics = |pair: &SimulatedPair| {
        let [ours, theirs] = pair.each_ref().map(|one| Statistic::of(metric, &[one]));
        (
            ours.expect("the metric is given"),
            theirs.expect("the metric is given"),
        )
    };
    let (ours, theirs) = statistics(&pair(POPULATION, &mut random));
    let truth = truth.unwrap_or_else(|| ours.measured() - theirs.measured());
    let mut known: Option<(Vec<Vec<usize>>, Rc<DrawnRows>)> = None;
    let (mut given, mut held, mut clear) = (0, 0, 0);
    for _ in 0..silos {
        let pair = pair(rows, &mut random);
        let units = pair[0].together();
        let (ours, theirs) = statistics(&pair);
        if !ours.has_enough_events(&units) {
            continue;
        }
        // Silos whose rows are alone have their draws in common.
        let drawn = match known.take() {
            Some((same, drawn)) if same == units => drawn,
            _ => SharedDraws::default().of("rows", &units, DRAWS),
        };
        let one = DrawnDifference::of(1.0, (&ours, &theirs), ("rows", &units, &drawn));
        known = Some((units, drawn));
        let Some(interval) = over_seeds(&[Some(one)]) else {
            continue;
        };
        given += 1;
        held += usize::from(interval.low <= truth && truth <= interval.high);
        clear += usize::from(interval.is_clear());
    }
    Shares {
        given,
        held: held as f64 / given.max(1) as f64,
        clear: clear as f64 / silos as f64,
        error: (0.95 * 0.05 / given.max(1) as f64).sqrt(),
    }
}

/// Shares of the second class, and rows.
const SIZES: [(f64, usize); 5] = [(0.5, 12), (0.5, 60), (0.2, 60), (0.05, 240), (0.03, 400)];

/// All ways in which models differ.
const MODELS: [SimulatedModels; 5] = [
    SimulatedModels::Coins,
    SimulatedModels::Near,
    SimulatedModels::Apart,
    SimulatedModels::Ties,
    SimulatedModels::Right,
];

/// Results of simulations, with the least share that intervals are to hold.
#[derive(Default)]
struct CheckedCell(Vec<(String, f64, Shares)>);

impl CheckedCell {
    /// Asserts that intervals hold as many as they are to, and that those settings, and no other, have too few
    /// intervals to tell whose names end with one of `few`.
    fn assert(self, metric: &str, few: &[&str]) {
        let (told, untold): (Vec<_>, Vec<_>) = self
            .0
            .into_iter()
            .partition(|(_, _, found)| found.given >= FEWEST_GIVEN);
        let least = told.iter().map(|(_, _, found)| found.held);
        println!("{metric}: at least {}", least.fold(1.0, f64::min));
        for (what, _, found) in &untold {
            println!("{metric}: too few, {} silos: {what}", found.given);
        }
        let is_few = |what: &str| few.iter().any(|end| what.ends_with(end));
        assert!(
            untold.iter().all(|(what, ..)| is_few(what))
                && !told.iter().any(|(what, ..)| is_few(what)),
            "{metric}, too few to tell: {untold:#?}"
        );
        let low = told
            .iter()
            .filter(|(_, least, found)| found.held + found.error < *least);
        let low: Vec<_> = low.collect();
        assert!(low.is_empty(), "{metric}: {low:#?}");
    }
}

/// The least share of intervals that hold the truth, of models of classes with so many rows, or persons. Of models
/// that are nearly always right, a few large losses decide, which a small sample lacks.
fn least(metric: &str, models: SimulatedModels, rows: usize) -> f64 {
    match (metric, models) {
        ("log-loss" | "brier", SimulatedModels::Right) if rows < 30 => 0.75,
        ("log-loss" | "brier", SimulatedModels::Right) => 0.85,
        _ => 0.93,
    }
}

/// Checks a metric of classes; of the settings with these names there are too few intervals.
fn holds(metric: &str, silos: usize, few: &[&str]) {
    let mut checked = CheckedCell::default();
    for models in MODELS {
        for (prevalence, rows) in SIZES {
            let found = shares(metric, silos, rows, None, |rows, random| {
                of_classes(models, prevalence, rows, random)
            });
            let what = format!("{models:?}, {prevalence} of {rows} rows");
            checked.0.push((what, least(metric, models, rows), found));
        }
    }
    checked.assert(metric, few);
}

#[test]
fn intervals_of_means_over_rows_of_classes_hold() {
    for metric in ["accuracy", "log-loss", "brier"] {
        holds(metric, 400, &[]);
    }
}

#[test]
fn intervals_of_areas_hold() {
    // Of twelve rows there are hardly ever ten of both classes.
    holds("roc-auc", 200, &["0.5 of 12 rows"]);
}

#[test]
fn intervals_of_balanced_accuracies_hold() {
    holds("balanced-accuracy", 200, &["0.5 of 12 rows"]);
}

#[test]
fn intervals_of_calibration_errors_hold() {
    holds("calibration-error", 200, &[]);
}

#[test]
fn intervals_of_errors_hold_but_for_few_rows_of_skewed_numbers() {
    for metric in ["mae", "mse"] {
        let mut checked = CheckedCell::default();
        for rows in [10, 30, 100, 400] {
            for errors in [Errors::Normal, Errors::Heavy, Errors::Skewed] {
                let pair = |rows: usize, random: &mut Random| of_numbers(errors, rows, random);
                // Both models have the same heavy tails, of which no sample knows the mean of squares.
                let truth = matches!(errors, Errors::Heavy).then_some(0.0);
                let found = shares(metric, 400, rows, truth, pair);
                // No bootstrap knows of large errors that were not in the sample.
                let least = match (errors, metric, rows) {
                    (Errors::Skewed, "mse", 10) => 0.6,
                    (Errors::Skewed, "mse", _) => 0.7,
                    (Errors::Skewed, ..) => 0.85,
                    _ => 0.93,
                };
                checked
                    .0
                    .push((format!("{errors:?}, {rows} rows"), least, found));
            }
        }
        checked.assert(metric, &[]);
    }
}

#[test]
fn coins_seem_to_differ_at_few_silos_where_a_class_is_rare() {
    let metrics = [
        "accuracy",
        "log-loss",
        "brier",
        "roc-auc",
        "balanced-accuracy",
        "calibration-error",
    ];
    for metric in metrics {
        for (prevalence, rows) in [(0.03, 100), (0.03, 400), (0.01, 300)] {
            let found = shares(metric, 300, rows, None, |rows, random| {
                of_classes(SimulatedModels::Coins, prevalence, rows, random)
            });
            assert!(
                found.clear <= 0.07,
                "{metric}, {prevalence} of {rows} rows: {found:?}"
            );
        }
    }
}
