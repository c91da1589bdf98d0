//! Federations that end when their models get no better on validation rows.

use serde_json::{Value, json};
use std::ops::ControlFlow;

use super::equipped::strategy;
use super::quadratic::{QuadraticFederation, layout, quadratic};
use super::*;
use crate::learner::{
    Capabilities, Job, LearnError, Learner, Metrics, Split, Training, Update, Watch as Progress,
    Work,
};
use crate::strategy::wrappers::stopping::Stopping;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;

fn silos() -> Vec<QuadraticLearner> {
    vec![
        quadratic([0.0, 1.0, -1.0, 2.0, 3.0]),
        quadratic([4.0, -1.0, 1.0, 1.0, -3.0]).with_samples(300),
    ]
}

fn federation(name: &str, more: Value) -> QuadraticFederation {
    QuadraticFederation::new(strategy(name, more), silos())
}

/// The part of a model that a silo uses.
fn used(model: &Params) -> Params {
    Params::gather(&layout(), &[model]).unwrap()
}

/// Mean loss of a model over all rows, as all silos measure it.
fn measured(model: &Params) -> f64 {
    let (mut rows, mut sum) = (0.0, 0.0);
    for silo in silos() {
        let found = silo.evaluate(&used(model), &Params::empty(), Split::Validation);
        let found = found.unwrap();
        rows += found.samples as f64;
        sum += found.samples as f64 * found.get("loss").unwrap();
    }
    sum / rows
}

#[test]
fn a_stop_rule_changes_no_model_until_it_ends_the_federation() {
    let never = json!({ "patience": 1000 });
    for (name, options) in [
        ("fedavg", json!({})),
        ("fedavg", json!({ "personal": ["norm0"] })),
        ("fedprox", json!({ "mu": 0.5 })),
        ("scaffold", json!({})),
        ("fedadam", json!({})),
        ("fedper", json!({})),
        ("ditto", json!({})),
        ("fednova", json!({})),
        ("feddyn", json!({})),
        ("apfl", json!({})),
        ("pfedme", json!({ "beta": 0.5 })),
        ("fedala", json!({})),
        ("hcct-p", json!({})),
        ("ifca", json!({ "models": 2 })),
        ("tfl", json!({})),
        ("maxfl", json!({})),
        ("fedfa", json!({})),
        ("cs-rcfl", json!({ "coalitions": 2 })),
    ] {
        let mut with = options.clone();
        with["stop"] = never.clone();
        let (mut with, mut without) = (federation(name, with), federation(name, options));
        for round in 1..=5 {
            with.round();
            without.round();
            let models = |of: &QuadraticFederation| -> Vec<Vec<f32>> {
                let deployed = of.learners.iter().zip(&of.personal).zip(&of.coalitions);
                let deployed = deployed.map(|((learner, personal), &coalition)| {
                    let model = &of.state.models[coalition as usize];
                    let model = learner.deployed(model, personal).unwrap();
                    used(&model).values().to_vec()
                });
                deployed.collect()
            };
            assert_eq!(models(&with), models(&without), "{name} round {round}");
            assert!(!with.strategy.ends(&with.state));
        }
    }
}

#[test]
fn it_ends_after_rounds_that_are_no_better_and_keeps_the_models_of_the_best() {
    let gain = 0.05;
    let stop = json!({ "patience": 2, "min-delta": gain });
    let mut federation = federation("fedavg", json!({ "stop": stop }));
    let mut models = vec![federation.state.models[0].clone()];
    while !federation.strategy.ends(&federation.state) {
        federation.round();
        models.push(federation.state.models[0].clone());
        assert!(models.len() < 50, "it never ends");
    }
    // Round r measures the models of round r - 1.
    let before_last = &models[..models.len() - 1];
    let (mut best, mut waited) = (0, 0);
    for (round, model) in before_last.iter().enumerate() {
        match measured(model) < measured(&models[best]) - gain {
            true => (best, waited) = (round, 0),
            false if round > 0 => waited += 1,
            false => {}
        }
    }
    assert_eq!(waited, 2);
    assert_eq!(best + 3, models.len() - 1);
    let last = models.last().unwrap();
    assert_eq!(last, &models[best], "the best round is kept");
    assert_ne!(used(last), used(&models[best + 1]));
    let Some(Kept::Number(value)) = federation.state.memory.get("stop.best") else {
        panic!("no measure is kept");
    };
    let expected = measured(&models[best]);
    assert!(
        (value - expected).abs() < 1e-5 * expected,
        "{value} {expected}"
    );
    assert_eq!(last.tensor("validation.rows"), Some([0.0].as_slice()));
}

#[test]
fn with_more_patience_a_federation_that_ended_goes_on() {
    let with = |patience: u64| {
        let stop = json!({ "patience": patience, "min-delta": 1e9 });
        federation("fedavg", json!({ "stop": stop }))
    };
    let mut ended = with(1);
    ended.round();
    ended.round();
    assert!(ended.strategy.ends(&ended.state));
    let mut more = with(3);
    more.state = ended.state;
    assert!(!more.strategy.ends(&more.state));
    more.round();
    assert!(!more.strategy.ends(&more.state));
    more.round();
    assert!(more.strategy.ends(&more.state));
}

#[test]
fn accuracy_is_better_where_it_is_larger() {
    let stop = json!({ "patience": 1, "measure": "accuracy" });
    let mut federation = federation("fedavg", json!({ "stop": stop }));
    // From far away every round is better for a while.
    for _ in 0..3 {
        federation.round();
        assert!(!federation.strategy.ends(&federation.state));
    }
}

/// This strategy forms its coalitions anew in every round. The models of the best round were made for
/// other coalitions than those at the end.
#[test]
fn where_a_silo_changed_its_coalition_the_last_models_are_kept() {
    let stop = json!({ "patience": 1, "min-delta": 1e9 });
    let mut federation = federation("cs-rcfl", json!({ "coalitions": 2, "stop": stop }));
    let start = federation.state.models.clone();
    while !federation.strategy.ends(&federation.state) {
        federation.round();
    }
    assert_eq!(federation.state.models.len(), 2);
    assert_ne!(federation.state.models[0], start[0]);
}

#[test]
fn models_of_an_earlier_round_do_not_go_to_silos_that_changed_their_coalition_since() {
    let number = |name| TensorSpec::new(name, [1], Role::Buffer);
    let layout = Layout::new(vec![
        TensorSpec::new("centre", [1], Role::Weight),
        number("validation.rows"),
        number("validation.sum"),
    ]);
    let layout = layout.unwrap();
    let model = |w: f32, loss: f32| Params::from_values(&layout, &[w, 1.0, loss]);
    let stopping = Stopping(Stop {
        patience: 2,
        measure: Measure::Loss,
        gain: 0.0,
    });
    let mut state = State::genesis(model(0.0, 0.0));
    state.models.push(model(0.5, 0.0));
    // The start is the best. In the second round the silos change places, and never again.
    for (round, (loss, assignment)) in [(1.0, [0, 1]), (5.0, [1, 0]), (5.0, [0, 1])]
        .into_iter()
        .enumerate()
    {
        assert!(!stopping.ends(&state));
        let entry = |coalition| ModelEntry {
            model: model(0.0, loss),
            coalition: Some(coalition),
            weight: None,
            member: None,
        };
        let manifest = LoadedManifest {
            entries: vec![entry(0), entry(1)],
            scores: None,
        };
        let w = round as f32 + 1.0;
        let mut after = state.clone();
        after.models = vec![model(w, 0.0), model(w + 0.5, 0.0)];
        let after = Outcome {
            assignment: assignment.to_vec(),
            state: after,
        };
        state = stopping.adopt(&state, &manifest, after).unwrap().state;
    }
    assert!(stopping.ends(&state));
    let weights = state.models.iter().map(|model| model.values()[0]);
    assert_eq!(weights.collect::<Vec<_>>(), [3.0, 3.5]);
}

/// Members that only watch a round measure the models, too.
#[test]
fn members_that_were_not_drawn_report_their_validation_rows() {
    let rule = json!({ "patience": 9 });
    for (name, options) in [
        ("afl", json!({ "stop": rule })),
        ("drfa", json!({ "stop": rule })),
        ("afl", json!({ "stop": rule, "personal": ["norm0"] })),
        ("afl", json!({ "stop": rule, "trained": ["layer0"] })),
        ("maxfl", json!({ "stop": rule, "variant": "joins" })),
    ] {
        let mut federation = federation(name, options);
        for learner in &federation.learners {
            let start = learner.initial(0);
            let personal = learner.initial_personal(0);
            let kept = Job::without_draws(&start, &personal, Work::Keep);
            let kept = kept.run(&**learner, &mut |_| ControlFlow::Continue(()));
            let kept = kept.unwrap();
            assert!(
                kept.shared.tensor("validation.rows").unwrap()[0] > 0.0,
                "{name}"
            );
        }
        federation.round();
    }
}

#[test]
fn a_lead_that_decides_otherwise_ends_with_the_others() {
    let stop = json!({ "patience": 1, "min-delta": 1e9 });
    let mut federation = federation("fedavg", json!({ "stop": stop }));
    while !federation.strategy.ends(&federation.state) {
        federation.round();
    }
    let QuadraticFederation {
        strategy, state, ..
    } = federation;
    assert!(with_altered_decisions(strategy.into(), |_, honest| honest).ends(&state));
}

#[test]
fn a_silo_without_validation_rows_and_a_rule_out_of_its_range_are_refused() {
    struct Without(QuadraticLearner);
    impl Learner for Without {
        fn layout(&self) -> Arc<Layout> {
            self.0.layout()
        }
        fn initial(&self, seed: u64) -> Params {
            self.0.initial(seed)
        }
        fn train(
            &self,
            start: &Params,
            personal: &Params,
            training: &Training,
            seed: u64,
            progress: &mut Progress<'_>,
        ) -> Result<Update, LearnError> {
            self.0.train(start, personal, training, seed, progress)
        }
        fn evaluate(&self, model: &Params, own: &Params, on: Split) -> Result<Metrics, LearnError> {
            match on {
                Split::Validation => Err(LearnError::NoRows("validation")),
                on => self.0.evaluate(model, own, on),
            }
        }
        fn samples(&self) -> u64 {
            self.0.samples()
        }
        fn capabilities(&self) -> Capabilities<'_> {
            Capabilities::NONE
        }
    }
    let stops = strategy("fedavg", json!({ "stop": { "patience": 2 } }));
    let silo = Arc::new(Without(quadratic([0.0; 5])));
    let refused = equip(&*stops, silo, &OwnRadius::default());
    assert_eq!(refused.err(), Some(EquipError::NoValidation));
    let wrong = |stop: Value| {
        let mut config = StrategyConfig::new(Method::named("fedavg").unwrap(), training());
        config.stop = serde_json::from_value(stop).unwrap();
        config.validate(2).unwrap_err().to_string()
    };
    assert!(wrong(json!({ "patience": 0 })).contains("stop.patience"));
    assert!(wrong(json!({ "patience": 1, "min-delta": -1.0 })).contains("stop.min-delta"));
}

#[test]
fn a_metric_of_ones_own_ends_a_federation() {
    let read = |measure: Value| serde_json::from_value::<Measure>(measure);
    let written = json!({ "own": "f1", "better": "larger" });
    let f1 = read(written.clone()).unwrap();
    assert_eq!(f1.name(), "f1");
    assert_eq!(serde_json::to_value(f1).unwrap(), written);
    assert_eq!(serde_json::to_value(Measure::Loss).unwrap(), json!("loss"));
    let refused = read(json!("f1")).unwrap_err().to_string();
    assert!(refused.contains("{ own = \"f1\", better = \"larger\" }"));
    // The loss as a metric of one's own: to want it larger ends the federation where to want it smaller does not.
    let rounds = |better: &str| {
        let measure = json!({ "own": "loss", "better": better });
        let stop = json!({ "patience": 2, "measure": measure });
        let mut federation = federation("fedavg", json!({ "stop": stop }));
        let mut rounds = 0;
        while rounds < 8 && !federation.strategy.ends(&federation.state) {
            federation.round();
            rounds += 1;
        }
        rounds
    };
    assert_eq!(rounds("larger"), 3);
    assert!(rounds("smaller") > 3);
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let stops = strategy("fedavg", json!({ "stop": { "patience": 2 } }));
    let learner = stops.equip(Arc::new(quadratic([0.0; 5]))).unwrap();
    let layout = learner.layout();
    let admit = |rows: f32, sum: f32| {
        let model = Params::build(&layout, |values| {
            for (name, value) in [("validation.rows", rows), ("validation.sum", sum)] {
                values[layout.range(layout.position(name).unwrap())].fill(value);
            }
        });
        let entry = ModelEntry {
            model,
            coalition: Some(0),
            weight: Some(3),
            member: None,
        };
        stops.admit(&entry, 1)
    };
    assert_eq!(admit(3.0, 1.5), Ok(()));
    assert_eq!(admit(0.0, 0.0), Ok(()));
    for (rows, sum) in [(-1.0, 0.0), (0.5, 1.0), (0.0, 2.0)] {
        let why = admit(rows, sum).unwrap_err();
        assert!(why.contains("validation rows"), "{why}");
    }
}
