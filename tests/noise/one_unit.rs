//! For random tables, and the same with one unit less: the integers differ by that unit's own, and no more.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use super::institution::{AgreedCase, Clinic};
use super::rows::{TextRow, file};

/// Every split that goes with noise, where rows are protected.
///
/// **A new kind of split goes here.**
const SPLITS_OF_ROWS: &[&str] = &[
    "{ test = 0.3, column = \"part\" }",
    "{ test = 0.3, keyed = true }",
    "{ test = 0.4, validation = 0.2, keyed = true }",
    "{ test = 0.3, validation = 0.2, keyed = true, column = \"part\" }",
    "{ test-from = \"6\", time = \"day\" }",
];

/// Every split that goes with noise, where persons are protected: those with `group`, whose rows no column can
/// divide.
///
/// **A new kind of split goes here.**
const SPLITS_OF_PERSONS: &[&str] = &[
    "{ test = 0.3, validation = 0.1, keyed = true, group = \"patient\" }",
    "{ test-from = \"6\", validation-from = \"5\", time = \"day\", group = \"patient\" }",
];

/// Origin of the schema of own rows: a table with this rule for missing values, or built-in data, whose rule nobody
/// wrote.
const SOURCES: &[&str] = &["drop", "refuse", "synthetic", "diabetes", "heart"];

/// Ways in which the model is learned: its kind of target, the model, and what else the privacy needs.
const RELEASES: &[(bool, &str, &str)] = &[
    (true, "\"logistic\"", "clipping-norm = 0.5"),
    (true, "{ mlp = { hidden = [3] } }", "clipping-norm = 2.0"),
    (
        false,
        "{ linear = { loss = \"squared\" } }",
        "clipping-norm = 1.0",
    ),
    (
        false,
        "{ linear = { loss = \"absolute\" } }",
        "clipping-norm = 1.0",
    ),
    (
        true,
        "\"logistic\"",
        "mechanism = \"sufficient-statistics\"\nmax-row-norm = 2.0",
    ),
    (
        false,
        "{ linear = { loss = \"squared\" } }",
        "mechanism = \"sufficient-statistics\"\nmax-row-norm = 1.5\nmax-target = 1.0",
    ),
];

/// The table `[task.table]`, where the source goes with this target and scale.
fn task(source: &str, classes: bool, model: &str, scale: &str) -> Option<String> {
    let common = format!("model = {model}\nstandardise = \"{scale}\"\n");
    let built_in = |data: &str| (scale == "none").then(|| format!("{common}data = {data}"));
    match (source, classes) {
        ("synthetic", _) => {
            let target = if classes { "logistic" } else { "linear" };
            let data = format!(
                "{{ synthetic = {{ target = \"{target}\", groups = 1, features = 3, rows = [5, 9] }} }}"
            );
            built_in(&data)
        }
        ("diabetes", false) => built_in("\"diabetes\""),
        ("heart", true) => built_in("\"heart\""),
        ("diabetes" | "heart", _) => None,
        (missing, _) => {
            let target = match classes {
                true => "name = \"ill\"\nclasses = [\"no\", \"yes\", \"1\"]",
                false => "name = \"days\"\nrange = [0.0, 60.0]",
            };
            let target = match model {
                "\"logistic\"" => target.replace(", \"1\"", ""),
                _ => target.to_owned(),
            };
            Some(format!(
                "{common}[task.table.schema]\nmin-rows = 10\nonly = [\"age >= 0\"]\nsubgroup = \"ward\"\n\
                 [task.table.schema.target]\n{target}\n\
                 [[task.table.schema.feature]]\nname = [\"age\", \"severity\"]\nrange = [-9.0, 110.0]\n\
                 missing = \"{missing}\"\n\
                 [[task.table.schema.feature]]\nname = \"ward\"\ntype = \"category\"\nlevels = [\"1\", \"2\", \"x\"]\n\
                 other = {}\nmissing = \"{missing}\"",
                missing == "drop"
            ))
        }
    }
}

/// Every agreement of the test.
fn agreements(unit: &str, splits: &[&'static str], declared: u64) -> Vec<AgreedCase> {
    let mut all = Vec::new();
    for (split, source) in splits
        .iter()
        .flat_map(|split| SOURCES.iter().map(move |source| (split, source)))
    {
        for (classes, model, privacy) in RELEASES {
            for scale in ["none", "ranges"] {
                all.extend(task(source, *classes, model, scale).map(|task| AgreedCase {
                    task,
                    split,
                    privacy: format!("{privacy}\n{unit}"),
                    declared,
                }));
            }
        }
    }
    all
}

/// Δ: no unit adds more than that, in norm.
fn delta(dimension: usize) -> f64 {
    let root = (dimension as f64).sqrt();
    f64::max(1024.0, 50.0 * root) + root / 2.0
}

/// Holds tables, with and without one unit, against each other. A unit is what `of` calls the same.
fn holds(agreed: &AgreedCase, cases: u32, of: fn(usize, &TextRow) -> usize) {
    let clinic = Clinic::new(agreed);
    let schema = clinic.schema();
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases)
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let tables = (vec((0_u8..4, any::<u64>()), 0..14), any::<usize>());
    let result = TestRunner::new_with_rng(config, random).run(&tables, |(rows, chosen)| {
        let rows = rows
            .into_iter()
            .map(|(person, seed)| TextRow::new(&schema, person, seed));
        let rows: Vec<_> = rows.collect();
        let unit = rows
            .get(chosen % rows.len().max(1))
            .map(|row| of(chosen % rows.len(), row));
        let part = |with: bool| -> Vec<_> {
            let rows = rows.iter().enumerate();
            let rows = rows.filter(|(at, row)| (Some(of(*at, row)) == unit) == with);
            rows.map(|(_, row)| row).collect()
        };
        let adds = |rows: Vec<&TextRow>| clinic.adds(&file(&schema, rows));
        let all = adds(rows.iter().collect());
        prop_assert_eq!(&all, &adds(rows.iter().rev().collect()), "in another order");
        let (without, alone) = (adds(part(false)), adds(part(true)));
        let most = delta(all.len());
        let bound = (agreed.declared as f64 * most) as i64;
        let mut squares = 0.0;
        for at in 0..all.len() {
            let (moved, own) = (all[at] - without[at], alone[at]);
            squares += (moved as f64).powi(2);
            prop_assert!(
                moved.abs() <= own.abs() && moved.signum() * own.signum() >= 0,
                "{} by {}",
                moved,
                own
            );
            prop_assert!(all[at].abs() <= bound);
            if rows.len() as u64 <= agreed.declared {
                prop_assert_eq!(moved, own);
            }
        }
        prop_assert!(squares.sqrt() <= most, "{} of {}", squares.sqrt(), most);
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}\n{agreed:#?}"));
}

#[test]
fn one_row_changes_its_own_integers_and_nothing_else() {
    for agreed in agreements("privacy-unit = \"row\"", SPLITS_OF_ROWS, 14) {
        holds(&agreed, 12, |at, _| at);
    }
}

#[test]
fn one_row_more_than_was_declared_changes_no_more() {
    for agreed in agreements("privacy-unit = \"row\"", SPLITS_OF_ROWS, 2)
        .iter()
        .step_by(3)
    {
        holds(agreed, 12, |at, _| at);
    }
}

#[test]
fn one_person_changes_its_own_integers_and_nothing_else() {
    let unit = "privacy-unit = { person = \"patient\" }";
    for declared in [14, 2] {
        for agreed in agreements(unit, SPLITS_OF_PERSONS, declared) {
            holds(&agreed, 12, |_, row| row.person.into());
        }
    }
}
