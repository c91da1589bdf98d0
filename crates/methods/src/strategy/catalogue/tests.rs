#![allow(clippy::unwrap_used)]

use serde_json::{Value, from_str, from_value, json, to_value};

use super::*;
use crate::strategy::server::one_model::fedavg::WeightRule;

fn training() -> Value {
    json!({ "epochs": 2, "batch": 16, "optimiser": { "name": "sgd", "rate": 0.5 } })
}

/// A configuration with one option replaced.
fn config(name: &str, pointer: &str, value: Value) -> Result<StrategyConfig, serde_json::Error> {
    let mut config = json!({ "name": name, "training": training() });
    if name == "cs-rcfl" {
        config["coalitions"] = 3.into();
    }
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    config.pointer_mut(parent).unwrap()[key] = value;
    from_value(config)
}

/// A method with its defaults.
fn plain(name: &str) -> StrategyConfig {
    config(name, "/training", training()).unwrap()
}

#[test]
fn every_name_is_listed_built_and_read_back() {
    for info in STRATEGIES {
        for standardise in [true, false] {
            let mut config = plain(info.name);
            config.standardise = standardise;
            assert_eq!(config.name(), info.name);
            let strategy = build(&config, 4).unwrap();
            assert_eq!(strategy.name(), info.name);
            let state = crate::State::genesis(crate::Params::empty());
            assert_eq!(config.validate(4), Ok(()));
            let summarises = strategy.plan(&state, 1).task == crate::Task::Summarise;
            assert_eq!(summarises, standardise);
            let mut read: StrategyConfig = from_value(to_value(&config).unwrap()).unwrap();
            read.standardise = standardise;
            assert_eq!(read, config);
        }
    }
}

#[test]
fn unknown_names_and_keys_report_what_is_allowed() {
    let error = config("fedavgg", "/training", training())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("fedavgg") && error.contains("`cs-rcfl`") && error.contains("`ditto`"),
        "{error}"
    );
    let error = config("fedavg", "/coalitions", 3.into())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`coalitions`")
            && error.contains("`weight`")
            && error.contains("`personal`")
            && !error.contains("`standardise`"),
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
    let error = fedavg.switch("magic").unwrap_err().to_string();
    assert!(
        error.starts_with("unknown strategy \"magic\": expected one of fedavg, local, cs-rcfl"),
        "{error}"
    );
    let error = fedavg.switch("fedproxx").unwrap_err().to_string();
    assert!(error.ends_with("; did you mean \"fedprox\"?"), "{error}");
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
        let error = build(&config, 8).err().unwrap().to_string();
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
fn a_number_of_coalitions_may_be_left_to_be_found() {
    let mut auto = config("cs-rcfl", "/coalitions", "auto".into()).unwrap();
    assert_eq!(to_value(&auto).unwrap()["coalitions"], json!("auto"));
    assert_eq!((auto.validate(1), auto.least_rounds()), (Ok(()), 2));
    auto.standardise = true;
    assert_eq!(auto.least_rounds(), 3);
    let given = config("cs-rcfl", "/freeze", 1.into()).unwrap();
    assert_eq!(given.least_rounds(), 1);
    let error = config("cs-rcfl", "/coalitions", "many".into()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("a number of coalitions, or \"auto\""),
        "{error}"
    );
    if let Method::CsRcfl(options) = &mut auto.method {
        options.folds = 1;
    }
    let error = auto.validate(8).unwrap_err().to_string();
    assert!(error.contains("folds must be at least 2, not 1"), "{error}");
}

#[test]
fn switching_keeps_training_and_scale() {
    let mut config = plain("cs-rcfl");
    config.standardise = true;
    for info in STRATEGIES {
        let other = config.switch(info.name).unwrap();
        assert_eq!(other.name(), info.name);
        assert_eq!(
            (&other.training, other.standardise),
            (&config.training, true)
        );
    }
    assert_eq!(config.switch("cs-rcfl").unwrap(), config);
}

/// Method, option, a value out of its range as JSON, and part of the sentence that refuses it.
const OUT_OF_RANGE: &[(&str, &str, &str, &str)] = &[
    (
        "fedprox",
        "/mu",
        "-0.5",
        "mu must be a number of at least 0, not -0.5",
    ),
    (
        "fedadam",
        "/rate",
        "0",
        "rate must be a number above 0, not 0",
    ),
    (
        "fedyogi",
        "/beta2",
        "1",
        "beta2 must be at least 0 and below 1, not 1",
    ),
    ("fedadagrad", "/tau", "0", "tau must be a number above 0"),
    ("scaffold", "/rate", "-1", "rate must be a number above 0"),
    (
        "scaffold",
        "/training/optimiser/momentum",
        "0.9",
        "training.optimiser must be sgd without momentum for scaffold",
    ),
    (
        "fedrep",
        "/head-epochs",
        "0",
        "head-epochs must be at least 1, not 0",
    ),
    (
        "ditto",
        "/lambda",
        "-1",
        "lambda must be a number of at least 0, not -1",
    ),
    (
        "fednova",
        "/training/optimiser",
        r#"{ "name": "adam", "rate": 0.1 }"#,
        "training.optimiser must be sgd for fednova",
    ),
    (
        "feddyn",
        "/alpha",
        "0",
        "alpha must be a number above 0, not 0",
    ),
    (
        "apfl",
        "/alpha",
        "1.5",
        "alpha must be from 0 to 1, not 1.5",
    ),
    (
        "apfl",
        "/alpha",
        "0",
        "alpha must be above 0 and at most 1, not 0",
    ),
    (
        "apfl",
        "/training/optimiser",
        r#"{ "name": "adam", "rate": 0.1 }"#,
        "training.optimiser must be sgd for apfl",
    ),
    (
        "pfedme",
        "/rate",
        "1.1",
        "rate must be at most 1/lambda, not 1.1",
    ),
    ("pfedme", "/lambda", "1000", "lambda must be"),
    (
        "pfedme",
        "/local-rounds",
        "0",
        "local-rounds must be at least 1, not 0",
    ),
    ("fedala", "/steps", "0", "steps must be at least 1, not 0"),
    (
        "robust-local",
        "/ridge",
        "-1",
        "ridge must be a number of at least 0, not -1",
    ),
    (
        "hierarchical",
        "/varying",
        "[]",
        "varying must be at least one of",
    ),
    (
        "hierarchical",
        "/varying",
        r#"["slopes", "slopes"]"#,
        "none of them twice, not [\"slopes\", \"slopes\"]",
    ),
    (
        "hierarchical",
        "/tolerance",
        "0",
        "tolerance must be a number above 0, not 0",
    ),
    (
        "hierarchical",
        "/precision",
        "-1",
        "precision must be a number above 0, not -1",
    ),
    (
        "hierarchical",
        "/exponent",
        "21",
        "exponent must be at most 20, not 21",
    ),
    (
        "hierarchical",
        "/unknowns-per-number",
        "0",
        "unknowns-per-number must be a number above 0, not 0",
    ),
    (
        "hierarchical",
        "/participation",
        "2",
        "participation must be left out here: the estimates of this strategy",
    ),
    (
        "hierarchical",
        "/encoding",
        r#""int8""#,
        "encoding must be \"f32\" here: the sums of this strategy",
    ),
    (
        "hcct",
        "/alpha",
        r#"{ "common": -1 }"#,
        "alpha.common must be a number of at least 0, not -1",
    ),
    (
        "hcct-e",
        "/alpha",
        r#"{ "each": [1.0] }"#,
        "alpha.each must be one number for every member, not 1",
    ),
    ("tfl", "/period", "0", "period must be at least 1, not 0"),
    (
        "tfl",
        "/epsilon",
        "1.5",
        "epsilon must be from 0 to 1, not 1.5",
    ),
    (
        "tfl",
        "/q",
        "-1",
        "q must be at least 0, or \"inf\", not -1",
    ),
    (
        "tfl",
        "/clusters",
        "9",
        "clusters must be at most the number of members, not 9",
    ),
    (
        "tfl",
        "/losses",
        r#"{ "uniform": 2 }"#,
        "losses must be \"all\" where all participate",
    ),
    (
        "drfa",
        "/decay",
        "0",
        "decay must be above 0 and at most 1, not 0",
    ),
    (
        "afl",
        "/lambda-floor",
        "-0.1",
        "lambda-floor must be from 0 to 1, not -0.1",
    ),
    (
        "afl",
        "/aggregation",
        r#"{ "name": "coordinate-median" }"#,
        "aggregation must be left out here",
    ),
    (
        "maxfl",
        "/rate",
        "0",
        "rate must be above 0 and at most 1, not 0",
    ),
    (
        "maxfl",
        "/rate",
        "1.5",
        "rate must be above 0 and at most 1, not 1.5",
    ),
    (
        "maxfl",
        "/epsilon",
        "-1",
        "epsilon must be a number above 0, not -1",
    ),
    (
        "fedfa",
        "/alpha",
        "1.5",
        "alpha must be from 0 to 1, not 1.5",
    ),
    (
        "superquantile",
        "/theta",
        "1",
        "theta must be at least 0 and below 1, not 1",
    ),
    (
        "ifca",
        "/models",
        "0",
        "models must be from 1 to 1000, not 0",
    ),
    (
        "flsc",
        "/select",
        "4",
        "select must be from 1 to the number of models, not 4",
    ),
    (
        "fesem",
        "/models",
        "1001",
        "models must be from 1 to 1000, not 1001",
    ),
    (
        "cfl",
        "/mean-below",
        "-1",
        "mean-below must be a number of at least 0, not -1",
    ),
    (
        "fedcollab",
        "/orders",
        "0",
        "orders must be at least 1, not 0",
    ),
    (
        "pfedgraph",
        "/alike",
        "2",
        "alike must be from -1 to 1, not 2",
    ),
];

#[test]
fn own_options_have_ranges_too() {
    for (name, pointer, value, sentence) in OUT_OF_RANGE {
        let value = from_str(value).unwrap();
        let error = config(name, pointer, value)
            .unwrap()
            .validate(8)
            .unwrap_err();
        assert!(error.to_string().contains(sentence), "{error}");
    }
}

#[test]
fn everything_that_can_be_set_is_described_with_its_default() {
    let described = described();
    assert_eq!(described.len(), STRATEGIES.len());
    let of = |name: &str| {
        let found = described.iter().find(|one| one.info.name == name).unwrap();
        found.options.clone()
    };
    assert_eq!(of("local"), []);
    assert_eq!(
        of("fedprox"),
        [
            ("mu".into(), json!(0.01)),
            ("weight".into(), json!("exact"))
        ]
    );
    assert_eq!(
        of("cs-rcfl"),
        [
            ("coalitions".into(), json!(2)),
            ("folds".into(), json!(5)),
            ("freeze".into(), json!(1)),
            ("gap".into(), json!(0.25))
        ]
    );
    let shown = described.iter().filter(|one| one.names == Names::Shown);
    let shown: Vec<_> = shown.map(|one| one.info.name).collect();
    assert_eq!(shown, ["tfl", "drfa", "afl"]);
}

#[test]
fn what_is_personal_is_written_only_where_there_is_something() {
    let plain = plain("fedavg");
    assert_eq!(to_value(&plain).unwrap().get("personal"), None);
    assert_eq!(plain.plain_average(), Some(WeightRule::Exact));
    let personal = config("fedavg", "/personal", json!(["last-layer"])).unwrap();
    assert_eq!(
        to_value(&personal).unwrap()["personal"],
        json!(["last-layer"])
    );
    assert_eq!(personal.plain_average(), None);
    assert!(personal.switch("fedprox").unwrap().personal.is_empty());
}
