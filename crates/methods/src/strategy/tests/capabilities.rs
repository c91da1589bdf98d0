//! Needs of strategies of a learner, and what their wrappers leave of it.

use super::quadratic::{QuadraticFederation, quadratic};
use super::*;
use crate::learner::{Capability, Learner};

/// A learner with the core and nothing else.
fn core(centre: f64) -> QuadraticLearner {
    quadratic([centre; 5]).without(&Capability::ALL)
}

/// All strategies, by name, with the options that the catalogue gives them.
fn strategies(standardise: bool) -> impl Iterator<Item = (&'static str, Box<dyn Strategy>)> {
    of_any_model().map(move |info| {
        let config = json!({
            "name": info.name,
            "training": { "epochs": 2, "batch": 0, "optimiser": { "name": "sgd", "rate": 0.2 } },
        });
        let mut config: StrategyConfig = serde_json::from_value(config).unwrap();
        config.standardise = standardise;
        (info.name, build(&config, 3).unwrap())
    })
}

#[test]
fn a_core_learner_is_refused_when_equipped_or_runs_all_rounds() {
    let mut refused = Vec::new();
    for (name, strategy) in strategies(false) {
        let silos = || [1.0, 2.0, 5.0].map(core);
        match strategy.equip(Arc::new(core(1.0))) {
            Ok(_) => {
                let silos = silos().into();
                assert_eq!(
                    QuadraticFederation::new(strategy, silos).rounds(4).round,
                    4,
                    "{name}"
                );
            }
            Err(EquipError::Missing(missing)) => {
                assert!(missing.to_string().starts_with("the learner "), "{missing}");
                refused.push((name, Some(missing.0)));
            }
            Err(EquipError::Metric(metric)) => {
                assert_eq!((name, metric), ("fedfa", "accuracy"));
                refused.push((name, None));
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
    refused.sort_by_key(|(name, _)| *name);
    use Capability::{Classifiers, ModifiedGradients, RobustFits, StochasticModels};
    let expected = [
        ("ditto", Some(ModifiedGradients)),
        ("fedcg", Some(Classifiers)),
        ("feddyn", Some(ModifiedGradients)),
        ("fedfa", None),
        ("fedprox", Some(ModifiedGradients)),
        ("fedrep", Some(ModifiedGradients)),
        ("fedsr", Some(StochasticModels)),
        ("pfedme", Some(ModifiedGradients)),
        ("robust-local", Some(RobustFits)),
        ("scaffold", Some(ModifiedGradients)),
    ];
    assert_eq!(refused, expected);
}

#[test]
fn a_common_scale_needs_a_learner_with_summaries() {
    for (name, strategy) in strategies(true) {
        let error = strategy.equip(Arc::new(quadratic([1.0; 5]))).map(drop);
        let missing = crate::learner::MissingCapability(Capability::Summaries);
        assert_eq!(error, Err(EquipError::Missing(missing)), "{name}");
    }
}

#[test]
fn strategies_that_measure_a_radius_above_0_need_robust_losses() {
    let check = |name: &str, learner: Arc<dyn Learner>, radius: f64| {
        let (_, strategy) = strategies(false).find(|(own, _)| *own == name).unwrap();
        equip(&*strategy, learner, &radius.into()).map(drop)
    };
    let core = || Arc::new(core(1.0));
    let missing = crate::learner::MissingCapability(Capability::RobustLosses);
    assert_eq!(
        check("cs-rcfl", core(), 0.1),
        Err(EquipError::Missing(missing))
    );
    assert_eq!(check("cs-rcfl", core(), 0.0), Ok(()));
    assert_eq!(check("fedavg", core(), 0.1), Ok(()), "not used there");
    assert_eq!(check("cs-rcfl", Arc::new(quadratic([1.0; 5])), 0.1), Ok(()));
}

#[test]
fn every_wrapper_passes_on_all_capabilities_it_does_not_use_up() {
    use Capability::{
        Answers, ExactFits, LinearRows, ModifiedGradients, RobustFits, RobustLosses,
        StochasticModels, Summaries,
    };
    for (name, strategy) in strategies(false) {
        let equipped = strategy.equip(Arc::new(quadratic([1.0; 5]))).unwrap();
        let has = equipped.capabilities();
        let lost = Capability::ALL.into_iter().filter(|&one| !has.has(one));
        let lost: Vec<_> = lost.collect();
        let expected: &[_] = match name {
            "apfl" | "ditto" | "fedala" | "feddyn" | "fedprox" | "fedrep" | "pfedme"
            | "scaffold" => &[
                Summaries,
                RobustFits,
                ExactFits,
                ModifiedGradients,
                StochasticModels,
                LinearRows,
                Answers,
            ],
            "fedcg" => &[
                Summaries,
                RobustLosses,
                RobustFits,
                ExactFits,
                ModifiedGradients,
                StochasticModels,
                LinearRows,
                Answers,
            ],
            // The silo's own learner as it is, which has no summaries, no linear rows and no answers.
            _ if has.has(StochasticModels) => &[Summaries, LinearRows, Answers],
            // Wrapped: a stochastic model stands inside all wrappers.
            _ => &[Summaries, StochasticModels, LinearRows, Answers],
        };
        assert_eq!(lost, expected, "{name}");
    }
}
