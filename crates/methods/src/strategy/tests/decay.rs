//! Learning-rate decay: every strategy trains with the rate of the round.

use serde_json::{Value, json};

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, quadratic};
use super::*;

fn silos() -> Vec<QuadraticLearner> {
    vec![
        quadratic([0.0, 1.0, -1.0, 2.0, 3.0]).with_curvature(&[1.0, 0.5, 2.0, 1.0, 1.0]),
        quadratic([4.0, -1.0, 1.0, 1.0, -3.0]).with_curvature(&[0.2, 1.0, 1.0, 0.5, 2.0]),
    ]
}

/// A strategy that trains with this rate, which falls.
fn with_rate(name: &str, rate: f64, decay: Option<Value>) -> Box<dyn Strategy> {
    let optimiser = json!({ "name": "sgd", "rate": rate });
    let mut training = json!({ "epochs": 5, "batch": 0, "optimiser": optimiser });
    if let Some(decay) = decay {
        training["decay"] = decay;
    }
    strategy(name, json!({ "training": training }))
}

#[test]
fn decay_is_the_same_strategy_with_the_rate_of_each_round() {
    for info in of_any_model() {
        let name = info.name;
        let falling = json!({ "step": { "every": 2, "factor": 0.5 } });
        let mut decayed = QuadraticFederation::new(with_rate(name, 0.2, Some(falling)), silos());
        let mut by_hand = QuadraticFederation::new(with_rate(name, 0.2, None), silos());
        for rate in [0.2, 0.2, 0.1, 0.1, 0.05] {
            by_hand.strategy = with_rate(name, rate, None);
            decayed.round();
            by_hand.round();
            let round = decayed.round;
            assert_eq!(
                decayed.state.models, by_hand.state.models,
                "{name}, round {round}"
            );
            assert_eq!(decayed.personal, by_hand.personal, "{name}, round {round}");
        }
        let constant = QuadraticFederation::new(with_rate(name, 0.2, None), silos()).rounds(5);
        let changed =
            constant.state.models != decayed.state.models || constant.personal != decayed.personal;
        // A robust fit is solved, not trained.
        assert_eq!(changed, name != "robust-local", "{name}: the rate matters");
    }
}

#[test]
fn a_cosine_rate_needs_the_number_of_rounds() {
    let config = json!({ "name": "fedavg", "training": {
        "epochs": 1, "batch": 0, "optimiser": { "name": "sgd", "rate": 0.2 },
        "decay": { "cosine": {} },
    } });
    let mut config: StrategyConfig = serde_json::from_value(config).unwrap();
    let error = build(&config, 2).err().unwrap().to_string();
    assert!(error.contains("training.decay.cosine"), "{error}");
    config.standardise = true;
    config.set_rounds(5);
    let plan = |round| build(&config, 2).unwrap().plan(&genesis(), round).task;
    assert_eq!(plan(1), Task::Summarise);
    // The second of four trainings in five rounds.
    let Task::Train(training) = plan(3) else {
        panic!("a round that trains");
    };
    let wanted = 0.1 * (1.0 + 0.5f64.sqrt());
    assert!(
        (training.optimiser.rate() - wanted).abs() < 1e-12,
        "{training:?}"
    );
}
