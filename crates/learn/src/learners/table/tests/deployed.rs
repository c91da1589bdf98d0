//! The model that a silo predicts with, under every strategy.

use methods::strategy::{Method, STRATEGIES, StrategyConfig, build};

use super::*;

/// The same tensors with some noise.
fn noisy(params: &Params) -> Params {
    let mut rng = stream(5, "noise");
    Params::build(params.layout(), |into| {
        for (value, start) in into.iter_mut().zip(params.values()) {
            *value = start + (0.2 * uniform(&mut rng) - 0.1) as f32;
        }
    })
}

#[test]
fn alone_it_predicts_what_it_predicts_under_the_strategy() {
    let Task::Train(training) = task(1, 8, 0.1) else {
        panic!("a training");
    };
    let plain = learner(Kind::Mlp, &table(60, 1, true), Standardise::Silo);
    let plain: Arc<dyn Learner> = Arc::new(plain.within(Some(0)));
    let (mut refused, mut without) = (Vec::new(), Vec::new());
    for info in STRATEGIES {
        let training = Training {
            optimiser: Optimiser::Sgd {
                rate: 0.1,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            ..training.clone()
        };
        let config = StrategyConfig::new(Method::named(info.name).unwrap(), training);
        let strategy = build(&config, 4).unwrap();
        let Ok(equipped) = strategy.equip(plain.clone()) else {
            refused.push(info.name);
            continue;
        };
        let model = noisy(&equipped.initial(3));
        let personal = noisy(&equipped.initial_personal(3));
        let Some(own) = equipped.deployed(&model, &personal) else {
            without.push(info.name);
            continue;
        };
        assert_eq!(own.layout(), &plain.layout(), "{}", info.name);
        let alone = plain.evaluate(&own, &Params::empty(), Split::Test).unwrap();
        let under = equipped.evaluate(&model, &personal, Split::Test).unwrap();
        assert_eq!(alone, under, "{}", info.name);
    }
    // A perceptron has no norm layers to keep at home, and no robust fit.
    assert_eq!(refused, ["fedbn", "robust-local"]);
    // Several models predict together, or one that represents a row by a distribution.
    assert_eq!(without, ["fedcg", "fedsr"]);
}
