#![allow(clippy::unwrap_used)]

use std::time::Duration;

use super::*;
use bare::Moment;

const GOOD: &str = r#"
name = "test"
rounds = 2
task = { constant = { parameters = 3 } }

[strategy]
name = "fedavg"
training = { epochs = 1, batch = 0, optimiser = { name = "sgd", rate = 0.1 } }
"#;

fn error(text: &str) -> String {
    Scenario::parse("s.toml", text).unwrap_err().to_string()
}

#[test]
fn built_in_scenarios_are_valid() {
    for (name, _) in BUILT_IN {
        assert_eq!(Scenario::load(name).unwrap().name, *name);
    }
    assert!(
        Scenario::load("nowhere.toml")
            .unwrap_err()
            .to_string()
            .contains("built-in scenarios are breast-cancer, diabetes")
    );
}

#[test]
fn a_device_is_refused_where_it_is_unknown_or_not_there() {
    let with = |device: &str| GOOD.replace("rounds = 2", &format!("rounds = 2\n{device}"));
    let own = Scenario::parse("s.toml", &with("device = \"cpu\"\ndevice-slots = 3")).unwrap();
    assert_eq!(own.device.open().unwrap().slots(), 3);
    let unknown = error(&with("device = \"gpu\""));
    assert!(
        unknown.starts_with("s.toml, line 4: ") && unknown.contains("write cpu, tch-cpu or "),
        "{unknown}"
    );
    let none = error(&with("device-slots = 0"));
    assert!(none.starts_with("s.toml, line 4: `device-slots`"), "{none}");
    // No machine has that many.
    let absent = error(&with("device = \"tch-cuda:9999\""));
    assert!(
        absent.starts_with("s.toml, line 4: `device`: tch-cuda:9999 is not "),
        "{absent}"
    );
    let cpu = Overrides {
        device: Some(DeviceName::Cpu),
        ..Overrides::default()
    };
    assert_eq!(own.clone().with(&cpu).unwrap(), own);
    let absent = Overrides {
        device: Some(DeviceName::TchCuda(9999)),
        ..Overrides::default()
    };
    let error = own.with(&absent).unwrap_err().to_string();
    assert!(error.contains("tch-cuda:9999 is not "), "{error}");
}

#[test]
fn errors_name_file_line_key_and_what_is_allowed() {
    let unknown = error(&GOOD.replace("rounds = 2", "rounds = 2\nround = 3"));
    assert!(
        unknown.starts_with("s.toml, line 4: there is no key `round`; did you mean \"rounds\"?"),
        "{unknown}"
    );
    assert!(unknown.contains("`rounds`"), "{unknown}");
    let typed = error(&GOOD.replace("rounds = 2", "rounds = \"two\""));
    assert!(
        typed.starts_with("s.toml, line 3: `rounds` is the text"),
        "{typed}"
    );
    assert!(typed.ends_with("expected a whole number"), "{typed}");
    let few = error(&GOOD.replace("rounds = 2", "rounds = 0"));
    assert_eq!(few, "s.toml, line 3: `rounds` is 0, it must be at least 1");
    let rate = error(&GOOD.replace("rate = 0.1", "rate = -1.0"));
    assert_eq!(
        rate,
        "s.toml, line 8: `training.optimiser.rate` must be a number above 0, not -1"
    );
    for value in ["true", "false"] {
        let scaled = error(&format!("{GOOD}standardise = {value}"));
        assert!(
            scaled.starts_with("s.toml, line 9: `standardise`: not an option of a strategy"),
            "{scaled}"
        );
    }
    let many = error(&GOOD.replace("rounds = 2", "rounds = 2\nsilos = 100000000"));
    assert!(
        many.starts_with("s.toml, line 4: `silos` is 100000000, it must be between 1 and 65535"),
        "{many}"
    );
    let span = error(&format!("{GOOD}[protocol]\nheartbeat = \"5 parsecs\""));
    assert!(
        span.starts_with("s.toml, line 10: `heartbeat`: \"5 parsecs\" is not a span"),
        "{span}"
    );
    let loss = error(&format!("{GOOD}[network]\nloss = 1.5"));
    assert_eq!(
        loss,
        "s.toml, line 10: `loss` must be at least 0 and below 1"
    );
}

#[test]
fn a_fault_is_a_kill_a_split_or_a_byzantine_member() {
    let fault = |text: &str| Scenario::parse("s.toml", &format!("{GOOD}[[fault]]\n{text}"));
    let kill = fault("kill = \"lead\"\nphase = \"scoring\"\nround = 2\nrestart-after = \"30s\"");
    let kill = kill.unwrap().faults;
    let moment = Moment::Phase(protocol::message::Phase::Scoring);
    assert_eq!(
        kill,
        [Fault::Kill {
            who: KillTarget::Lead,
            when: FaultTime::Round { round: 2, moment },
            restart_after: Some(Duration::from_secs(30)),
            journal_lost: false,
        }]
    );
    let wrong = |text: &str| fault(text).unwrap_err().to_string();
    let second = wrong("kill = \"a\"\nat = \"1s\"\n[[fault]]\nbehaviour = \"nan\"");
    assert!(second.contains("line 13: `behaviour` needs"), "{second}");
    assert!(wrong("kill = \"lead\"").contains("line 10: `kill` needs `at`; or `phase`"));
    assert!(
        wrong("kill = \"a\"\nat = \"1s\"\nlasts = \"1s\"")
            .contains("line 12: `lasts` does not go with `kill`")
    );
    assert!(wrong("behaviour = \"nan\"").contains("`behaviour` needs `member`"));
    // Behaviours that only the bare simulator can play are not offered.
    for unknown in ["nothing", "forged-row"] {
        let refused = wrong(&format!("behaviour = \"{unknown}\""));
        assert!(
            refused.contains("here are `nan`, `wrong-shape`")
                && !refused.contains("`forged-entry`"),
            "{refused}"
        );
    }
    assert!(wrong("at = \"1s\"").contains("is empty"));
}

#[test]
fn overrides_change_a_scenario() {
    let scenario = Scenario::parse("s.toml", GOOD).unwrap();
    let change = |strategy: &str| Overrides {
        seed: Some(9),
        rounds: Some(5),
        silos: Some(4),
        strategy: Some(strategy.into()),
        learner: None,
        ..Overrides::default()
    };
    let changed = scenario.clone().with(&change("cs-rcfl")).unwrap();
    assert_eq!(
        (changed.seed, changed.rounds, changed.silos),
        (9, 5, Some(4))
    );
    assert_eq!(changed.strategy.name(), "cs-rcfl");
    assert!(
        scenario
            .clone()
            .with(&change("magic"))
            .unwrap_err()
            .to_string()
            .contains("fedavg, local")
    );
    for silos in [0, 65_536, usize::MAX] {
        let change = Overrides {
            silos: Some(silos),
            ..Overrides::default()
        };
        let error = scenario.clone().with(&change).unwrap_err().to_string();
        assert!(error.starts_with(&format!(
            "--silos is {silos}, it must be between 1 and 65535"
        )));
    }
    let none = Overrides {
        rounds: Some(0),
        ..Overrides::default()
    };
    assert_eq!(
        scenario.with(&none).unwrap_err().to_string(),
        "--rounds is 0, it must be at least 1"
    );
}
