#![allow(clippy::unwrap_used)]

use serde_json::{Value, from_value, json, to_value};

use super::*;

fn training() -> Value {
    json!({ "epochs": 2, "batch": 16, "optimiser": { "name": "sgd", "rate": 0.5 } })
}

/// A configuration with one option replaced.
fn config(name: &str, pointer: &str, value: Value) -> Result<StrategyConfig, serde_json::Error> {
    let mut config = json!({ "name": name, "training": training(), "coalitions": 3 });
    if name != "cs-rcfl" {
        config.as_object_mut().unwrap().remove("coalitions");
    }
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    config.pointer_mut(parent).unwrap()[key] = value;
    from_value(config)
}

#[test]
fn every_name_is_listed_built_and_read_back() {
    for info in STRATEGIES {
        for standardise in [true, false] {
            let config = config(info.name, "/standardise", standardise.into()).unwrap();
            assert_eq!(config.name(), info.name);
            let strategy = build(&config).unwrap();
            assert_eq!(strategy.name(), info.name);
            let state = crate::State::genesis(crate::Params::empty());
            let summarises = strategy.plan(&state, 1).task == crate::Task::Summarise;
            assert_eq!(summarises, standardise);
            assert_eq!(
                from_value::<StrategyConfig>(to_value(&config).unwrap()).unwrap(),
                config
            );
        }
    }
}

#[test]
fn unknown_names_and_keys_say_what_is_allowed() {
    let error = config("fedavgg", "/standardise", true.into())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("fedavgg") && error.contains("`cs-rcfl`"),
        "{error}"
    );
    let error = config("fedavg", "/coalitions", 3.into())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("coalitions") && error.contains("standardise"),
        "{error}"
    );
    let error = config("local", "/training/epoch", 3.into())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`epoch`") && error.contains("epochs"),
        "{error}"
    );
    let fedavg = config("fedavg", "/weight", "exact".into()).unwrap();
    assert_eq!(
        fedavg.switch("ifca").unwrap_err().to_string(),
        "there is no strategy \"ifca\"; there are fedavg, local, cs-rcfl"
    );
}

#[test]
fn options_out_of_range_are_refused_in_one_sentence() {
    let cases = [
        (
            "/training/epochs",
            json!(0),
            "training.epochs must be at least 1, not 0",
        ),
        (
            "/training/optimiser/rate",
            json!(0.0),
            "rate must be a number above 0, not 0",
        ),
        (
            "/training/optimiser/rate",
            json!(-1.5),
            "rate must be a number above 0, not -1.5",
        ),
        (
            "/training/optimiser/momentum",
            json!(1),
            "momentum must be at least 0 and below 1, not 1",
        ),
        (
            "/training/optimiser/weight-decay",
            json!(-1),
            "weight-decay must be a number of at least 0",
        ),
        (
            "/coalitions",
            json!(0),
            "coalitions must be at least 1, not 0",
        ),
    ];
    for (pointer, value, sentence) in cases {
        let config = config("cs-rcfl", pointer, value).unwrap();
        let error = build(&config).err().unwrap().to_string();
        assert!(error.contains(sentence), "{error}");
        assert_eq!(config.validate(8).unwrap_err().to_string(), error);
    }
}

#[test]
fn coalitions_need_members() {
    let config = config("cs-rcfl", "/freeze", 0.into()).unwrap();
    assert_eq!(config.validate(3), Ok(()));
    let error = StrategyError::TooManyCoalitions {
        coalitions: 3,
        members: 2,
    };
    assert_eq!(config.validate(2), Err(error));
}

#[test]
fn switching_keeps_training_and_scale() {
    let config = config("cs-rcfl", "/standardise", true.into()).unwrap();
    for info in STRATEGIES {
        let other = config.switch(info.name).unwrap();
        assert_eq!(other.name(), info.name);
        assert_eq!(
            (other.training(), other.standardise()),
            (config.training(), true)
        );
    }
    assert_eq!(config.switch("cs-rcfl").unwrap(), config);
}
