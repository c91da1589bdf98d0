//! Plans that nobody made for secure-aggregation rounds.
#![allow(clippy::unwrap_used)]

use methods::strategy::{STRATEGIES, StrategyView};

use crate::draft_check::DraftCheck;
use crate::protocol_config::ProtocolConfig;

use super::*;

/// A plan as a draft has it, of two numbers and a category.
fn plan(model: &str, target: &str) -> (TaskConfig, StrategyConfig) {
    let text = format!(
        "[task.table]
        model = {model}
        split = {{ test = 0.3, group = \"patient\" }}
        [task.table.schema]
        target = {target}
        [[task.table.schema.feature]]
        name = \"age\"
        range = [20, 100]
        missing = \"median\"
        [[task.table.schema.feature]]
        name = \"lactate\"
        range = [0, 20]
        missing = \"indicator\"
        [[task.table.schema.feature]]
        name = \"ward\"
        type = \"category\"
        levels = [\"a\", \"b\", \"c\"]
        missing = \"mean\"
        [strategy]
        name = \"fedavg\"
        training = {{ epochs = 5, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.02 }} }}"
    );
    #[derive(serde::Deserialize)]
    struct Both {
        task: TaskConfig,
        strategy: StrategyConfig,
    }
    let Both { task, mut strategy } = toml::from_str(&text).unwrap();
    strategy.standardise = task.common_scale();
    (task, strategy)
}

const CLASSES: &str = "{ name = \"died\", classes = [\"no\", \"yes\"] }";
const NUMBER: &str = "{ name = \"stay\", range = [0, 50] }";

fn faults(table: &PrivacyTable, task: &TaskConfig, strategy: &StrategyConfig) -> Vec<&'static str> {
    let of = DraftCheck {
        rounds: NOISED.rounds,
        task,
        strategy,
        protocol: &ProtocolConfig::default(),
        privacy: Some(table),
    };
    of.privacy_faults()
        .into_iter()
        .map(|(key, _)| key)
        .collect()
}

#[test]
fn every_method_of_sums_is_given_equal_weights() {
    for info in STRATEGIES {
        let (mut task, mut strategy) = plan("\"logistic\"", CLASSES);
        strategy.method = Method::named(info.name).unwrap();
        if let StrategyView::Sums(_) = strategy.method.sees() {
            PrivacyTable::of_groups(Vec::new()).fit(&mut task, &mut strategy);
            let fitted = strategy.method.sees();
            let equal = StrategyView::Sums(WeightRule::Equal);
            assert_eq!(fitted, equal, "{}: see `weight`", info.name);
        }
    }
}

#[test]
fn a_plan_not_made_for_sums_works_with_them_once_fitted() {
    let masked = PrivacyTable::of_groups(Vec::new());
    let noised = PrivacyTable::noised(1.0, Some("patient".into()), Some(4_000));
    for table in [masked, noised] {
        for (model, target) in [
            ("\"logistic\"", CLASSES),
            ("{ mlp = { hidden = [4] } }", CLASSES),
            ("{ linear = { loss = \"squared\" } }", NUMBER),
            ("{ linear = { loss = \"absolute\" } }", NUMBER),
        ] {
            let (mut task, mut strategy) = plan(model, target);
            assert!(!faults(&table, &task, &strategy).is_empty(), "{model}");
            let changed = table.fit(&mut task, &mut strategy);
            assert!(!changed.is_empty());
            assert_eq!(faults(&table, &task, &strategy), [""; 0], "{model}");
            // What fits stays as it is.
            let (before, steps) = (task.clone(), strategy.clone());
            assert_eq!(table.fit(&mut task, &mut strategy), [""; 0]);
            assert_eq!((task, strategy), (before, steps));
        }
    }
}

#[test]
fn all_that_does_not_fit_is_listed_at_once() {
    let noised = PrivacyTable::noised(1.0, Some("patient".into()), None);
    let (task, strategy) = plan("\"logistic\"", CLASSES);
    let keys = [
        "task.table.standardise",
        "task.table.schema",
        "strategy.training",
        "strategy.weight",
        "task.table.split",
    ];
    assert_eq!(faults(&noised, &task, &strategy), keys);
}

#[test]
fn what_somebody_has_to_choose_is_left_alone() {
    let (mut task, mut strategy) = plan("\"logistic\"", CLASSES);
    strategy.method = toml::from_str::<StrategyConfig>(
        "name = \"scaffold\"\ntraining = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.1 } }",
    )
    .unwrap()
    .method;
    let noised = PrivacyTable::noised(1.0, Some("patient".into()), None);
    noised.fit(&mut task, &mut strategy);
    assert_eq!(faults(&noised, &task, &strategy), ["strategy.name"]);
}

#[test]
fn a_time_to_an_event_goes_with_masks_and_not_with_noise() {
    let (mut task, mut strategy) = plan("\"cox\"", "{ event = \"dead\", time = \"days\" }");
    let masked = PrivacyTable::of_groups(Vec::new());
    masked.fit(&mut task, &mut strategy);
    assert_eq!(faults(&masked, &task, &strategy), [""; 0]);
    let noised = PrivacyTable::noised(1.0, Some("patient".into()), Some(4_000));
    noised.fit(&mut task, &mut strategy);
    let left = faults(&noised, &task, &strategy);
    assert!(left.contains(&"task.table.schema.target"), "{left:?}");
}

#[test]
fn delta_is_small_enough_for_the_rows_of_all() {
    let delta = |rows| PrivacyTable::noised(1.0, None, rows).delta;
    assert_eq!(delta(None), None);
    assert_eq!(delta(Some(600)), Some(1e-5));
    let many = PrivacyTable::noised(1.0, None, Some(60_000));
    assert_eq!(many.delta, Some(1e-6));
    assert_eq!(many.rows_for_delta(), Some(100_000));
    assert_eq!(PrivacyTable::of_groups(Vec::new()).rows_for_delta(), None);
}
