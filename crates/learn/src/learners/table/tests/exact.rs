//! Exact fits of linear and logistic models, in place of training.

use methods::learner::ExactFit;
use methods::robust::Ridge;
use methods::strategy::StrategyConfig;

use super::*;

fn fit(ridge: f64, around_start: bool) -> ExactFit {
    ExactFit {
        ridge: Ridge::Fixed(ridge),
        around_start,
    }
}

#[test]
fn exact_fits_have_the_least_loss_and_keep_the_scale() {
    let none = Params::empty();
    let kinds = [
        (LearnerKind::Absolute, false),
        (LearnerKind::Squared, false),
        (LearnerKind::Logistic, true),
    ];
    for (kind, classes) in kinds {
        let learner = learner(kind, &table(60, 4, classes), Standardise::Federation);
        let summary = run(&learner, &learner.initial(0), &Task::Summarise, 0).shared;
        let start = common_scale(&learner.initial(0), &[summary]);
        let update = fitted(&learner, &start, Work::ExactFit(&fit(1e-3, false))).unwrap();
        for buffer in ["scale.mean", "scale.deviation"] {
            assert_eq!(update.shared.tensor(buffer), start.tensor(buffer));
        }
        let weight = |model: &Params| -> f64 {
            let weight = model.tensor("weight").unwrap().iter();
            weight.map(|&w| f64::from(w) * f64::from(w)).sum()
        };
        let objective = |model: &Params| {
            let loss = (&learner as &dyn Learner).loss(model, &none, 0.0, Split::Train);
            loss.unwrap() + 1e-3 / 2.0 * weight(model)
        };
        let least = objective(&update.shared);
        let trained = run(&learner, &start, &task(60, 8, 0.01), 1).shared;
        assert!(least < objective(&trained));
        for at in 0..start.values().len() {
            let mut values = update.shared.values().to_vec();
            values[at] += 0.01;
            let other = Params::from_values(&learner.layout(), &values);
            let buffer = start.values()[at] == update.shared.values()[at];
            assert!(buffer || least <= objective(&other) + 1e-6);
        }
        // Around a model, a strong ridge stays there.
        let stay = fitted(&learner, &trained, Work::ExactFit(&fit(1e6, true))).unwrap();
        let pairs = stay.shared.tensor("weight").unwrap().iter();
        for (a, b) in pairs.zip(trained.tensor("weight").unwrap()) {
            assert!((a - b).abs() < 1e-3, "{a} {b}");
        }
    }
}

#[test]
fn a_perceptron_with_exact_fits_is_refused_in_one_sentence() {
    let config = serde_json::json!({
        "name": "cs-rcfl", "fit": "exact",
        "training": { "epochs": 1, "batch": 0, "optimiser": { "name": "sgd", "rate": 0.1 } },
    });
    let config: StrategyConfig = serde_json::from_value(config).unwrap();
    let strategy = methods::strategy::build(&config, 3).unwrap();
    let mlp = learner(LearnerKind::Mlp, &table(50, 2, true), Standardise::Silo);
    let radius = methods::strategy::OwnRadius::default();
    let error = methods::strategy::equip(&*strategy, Arc::new(mlp), &radius);
    assert_eq!(
        error.map(drop).unwrap_err().to_string(),
        "the learner has no exact fits: they are known for linear models with absolute or squared \
         loss and for logistic models; use one of these, or `fit = \"trained\"`"
    );
}
