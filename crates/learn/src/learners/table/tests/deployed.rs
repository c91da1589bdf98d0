//! The model that a silo predicts with, under every strategy.

use methods::strategy::{Method, STRATEGIES, StrategyConfig, build};

use super::*;

/// The tensors of `params` with some noise.
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
    let plain = learner(LearnerKind::Mlp, &table(60, 1, true), Standardise::Silo);
    let plain: Arc<dyn Learner> = Arc::new(plain.within(Some(0)));
    let (mut refused, mut near) = (Vec::new(), Vec::new());
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
        let own = equipped.deployed(&model, &personal).unwrap();
        assert_eq!(own.layout(), &plain.layout(), "{}", info.name);
        let alone = plain.evaluate(&own, &Params::empty(), Split::Test).unwrap();
        let under = equipped.evaluate(&model, &personal, Split::Test).unwrap();
        if ["fedcg", "fedsr"].contains(&info.name) {
            let off = alone.values["loss"] - under.values["loss"];
            assert!(
                off.abs() < 0.1 * under.values["loss"],
                "{}: {off}",
                info.name
            );
            near.push(info.name);
            continue;
        }
        assert_eq!(alone, under, "{}", info.name);
    }
    // A perceptron has no norm layers to keep at home, no robust fit, and is no linear model.
    assert_eq!(refused, ["fedbn", "robust-local", "hierarchical"]);
    // Every row has a model of its own, or is represented by a distribution: one network stands for them.
    assert_eq!(near, ["fedcg", "fedsr"]);
}

/// A silo whose rows are all of one domain takes out the very model that predicts them.
#[test]
fn a_silo_of_one_domain_takes_out_what_it_predicts_with() {
    let plain: Arc<dyn Learner> = Arc::new(learner(
        LearnerKind::Mlp,
        &table(60, 1, true),
        Standardise::Silo,
    ));
    let more = serde_json::json!({ "domains": 3, "assignment": "hard", "sigma": "identity" });
    let equipped = super::fedcg::strategy("fedcg", more)
        .equip(plain.clone())
        .unwrap();
    let start = noisy(&equipped.initial(3));
    let none = Params::empty();
    // A student that gives all rows the last domain.
    let model = Params::build(start.layout(), |into| {
        into.copy_from_slice(start.values());
        let tensors = start.layout().tensors().iter().enumerate();
        for (at, tensor) in tensors.filter(|(_, tensor)| tensor.name.starts_with("fedcg.student."))
        {
            let own = &mut into[start.layout().range(at)];
            own.fill(0.0);
            if tensor.shape == [3] {
                own.copy_from_slice(&[0.0, 0.0, 50.0]);
            }
        }
    });
    let own = equipped.deployed(&model, &none).unwrap();
    let alone = plain.outputs().unwrap().outputs(&own, &none, Split::Test);
    let under = equipped
        .outputs()
        .unwrap()
        .outputs(&model, &none, Split::Test);
    for (alone, under) in alone.unwrap().iter().zip(under.unwrap()) {
        assert!((alone - under).abs() < 1e-4, "{alone} {under}");
    }
    assert_ne!(own, equipped.deployed(&start, &none).unwrap());
}
